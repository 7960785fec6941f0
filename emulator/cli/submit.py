"""``yarn-emulator submit``: submit a streaming job or a whole workload, and wait for it.

Exit status 0 if the job succeeded, 1 if it failed or was killed, 2 if it cannot be submitted, 3 if the
ResourceManager does not answer. Everything is checked before anything is submitted.
"""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.command_line import output_option, print_json
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from emulator.live.jobs.submission_client import Client
    from emulator.live.wire.submitted_job import ModelledJob, StreamingJob, SubmittedJob


@click.command("submit")
@click.option("--rm", required=True, metavar="URL", help="Address of yarn-emulator serve (or rm).")
@click.option("--queue", default="research", show_default=True, metavar="Q", help="Queue of the job.")
@click.option("--input", "inputs", multiple=True, metavar="DIR", help="File or folder to read; repeatable.")
@click.option("--output", "folder", metavar="DIR", help="New folder for the result.")
@click.option("--mapper", default="cat", show_default=True, metavar="CMD", help="As in Hadoop streaming.")
@click.option("--reducer", default="", metavar="CMD", help="As in Hadoop streaming.")
@click.option("--combiner", default="", metavar="CMD", help="As in Hadoop streaming.")
@click.option(
    "--reduces", default=1, show_default=True, type=click.IntRange(0), metavar="N", help="Number of reduces."
)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="Ship FILE to the tasks; repeatable. A command's word that names a file here is shipped, too.",
)
@click.option(
    "--restartable",
    is_flag=True,
    help="Let yarnctl suspend the reduces. The reducer must keep nothing between key groups.",
)
@click.option(
    "--group-fields", default=0, type=click.IntRange(0), metavar="N", help="Number of fields to group by."
)
@click.option("--no-runner", is_flag=True, help="Run the reducer without the task runner.")
@click.option("-D", "settings", multiple=True, metavar="NAME=VALUE", help="Setting of the job; repeatable.")
@click.option(
    "--cmdenv", multiple=True, metavar="NAME=VALUE", help="Environment entry of the commands; repeatable."
)
@click.option("--name", default="streamjob", show_default=True, help="Name of the job.")
@click.option("--user", metavar="NAME", help="Owner of the job.  [default: you]")
@click.option(
    "--requests-owner",
    default="yarnctl",
    show_default=True,
    help="User of the daemon that may suspend tasks.",
)
@click.option(
    "--deadline",
    type=click.FloatRange(min=0),
    metavar="S",
    help="Tag the job with a deadline S seconds from now.",
)
@click.option("--priority", default=0, show_default=True, type=click.IntRange(0), help="Priority in YARN.")
@click.option(
    "--modelled",
    metavar="MAPS[,REDUCES]",
    help="Submit a job of modelled tasks instead: 12x20,4x30 is 12 maps of 20 s and 4 reduces of 30 s.",
)
@click.option("--workload", metavar="SPEC", help="Replay a workload as modelled jobs instead.")
@click.option(
    "--speed",
    default=1.0,
    type=click.FloatRange(min=0, min_open=True),
    help="With --workload: the --speed of serve.",
)
@click.option("--no-wait", is_flag=True, help="Return after the submission.")
@output_option
def command(
    rm: str,
    queue: str,
    inputs: tuple[str, ...],
    folder: str | None,
    mapper: str,
    reducer: str,
    combiner: str,
    reduces: int,
    files: tuple[str, ...],
    restartable: bool,
    group_fields: int,
    no_runner: bool,
    settings: tuple[str, ...],
    cmdenv: tuple[str, ...],
    name: str,
    user: str | None,
    requests_owner: str,
    deadline: float | None,
    priority: int,
    modelled: str | None,
    workload: str | None,
    speed: float,
    no_wait: bool,
    output: str,
) -> int:
    """Submit a streaming job with your own mapper and reducer, or replay a workload, and wait for the end."""
    from emulator.live.jobs.submission_client import Client

    owner = user or getpass.getuser()
    client = Client(rm, owner)
    if workload:
        from emulator.live.jobs.workload_replay import replay

        return replay(client, workload, queue, speed, wait=not no_wait, as_json=output == "json")
    job: SubmittedJob
    if modelled:
        job = modelled_of(modelled, name=name, user=owner, queue=queue, settings=settings)
    else:
        from emulator.live.jobs.streaming_job import checked, pairs, shipped, sized
        from emulator.live.wire.submitted_job import StreamingJob

        if not inputs or not folder:
            raise BadInput("--input, --output", "both are needed", "name folders that every node can read")
        if reduces and not reducer:
            raise BadInput("--reducer", "is missing", "give one, or --reduces 0")
        streaming = StreamingJob(
            name=name,
            inputs=tuple(str(Path(path).absolute()) for path in inputs),
            output=str(Path(folder).absolute()),
            mapper=mapper,
            reducer=reducer if reduces else "",
            combiner=combiner if reduces else "",
            reduces=reduces,
            user=owner,
            queue=queue,
            settings=pairs("-D", settings),
            cmdenv=pairs("--cmdenv", cmdenv),
            files=shipped((mapper, reducer, combiner), files),
        )
        job = streaming = checked(sized(streaming))
        if reduces and not no_runner:
            job = with_runner(streaming, client, restartable, group_fields, requests_owner)
    application = client.submit(job, queue, tags_of(deadline), priority)
    if no_wait:
        report({"application": application}, output, f"submitted {application}")
        return 0
    click.echo(f"submitted {application}", err=True)
    row = client.wait(application, 0.5, ProgressLine())
    final = str(row.get("finalStatus", ""))
    said = f"{application} {final}" + (f": {row['diagnostics']}" if row.get("diagnostics") else "")
    shown = {
        "application": application,
        "final_status": final,
        "diagnostics": str(row.get("diagnostics", "")),
    }
    shown |= {"started_at_ms": row.get("startedTime", 0), "finished_at_ms": row.get("finishedTime", 0)}
    report(shown, output, said)
    return 0 if final == "SUCCEEDED" else 1


def report(shown: dict[str, Any], output: str, said: str) -> None:
    """Print the outcome."""
    if output == "json":
        print_json(shown)
    else:
        click.echo(" ".join(said.split()))


def with_runner(
    job: StreamingJob, client: Client, restartable: bool, group_fields: int, requests_owner: str
) -> StreamingJob:
    """Return the job with the task runner around its reducer; reads the store's address from the cluster."""
    from emulator.live.jobs.streaming_job import wrapped
    from emulator.live.jobs.submission_client import checkpoint_environment

    if not restartable:
        click.echo("note: without --restartable yarnctl never suspends a reduce of this job", err=True)
    job = wrapped(job, restartable, group_fields, {})
    if "YARNCTL_STORE" not in job.cmdenv and restartable:
        import msgspec

        webhdfs = client.webhdfs()
        client.make_checkpoint_folders(webhdfs, requests_owner)
        entries = checkpoint_environment(webhdfs, requests_owner)
        job = msgspec.structs.replace(job, cmdenv={**entries, **job.cmdenv})
    return job


def modelled_of(text: str, *, name: str, user: str, queue: str, settings: tuple[str, ...]) -> ModelledJob:
    """Return the job of modelled tasks that ``--modelled`` describes, checked. Raises BadInput."""
    from emulator.live.jobs.streaming_job import pairs
    from emulator.live.wire.submitted_job import ModelledJob, check
    from yarnctl.traces.job import Job

    maps, _, reduces = text.partition(",")
    map_ms, reduce_ms = spans_of(maps), spans_of(reduces) if reduces else ()
    work = Job(
        name=name,
        job_class="production" if queue == "production" else "research",
        submitted_at_ms=0,
        map_ms=map_ms,
        reduce_ms=reduce_ms,
        reduce_keys=tuple(max(1, span // 100) for span in reduce_ms),
        shuffle_ms=0,
        user=user,
        queue=queue,
    )
    job = ModelledJob(job=work, runner=False, settings=pairs("-D", settings))
    check(job)
    return job


def spans_of(text: str) -> tuple[int, ...]:
    """Return the spans in ms of COUNTxSECONDS: ``12x20`` is twelve of 20 s. Raises BadInput."""
    import re

    match = re.fullmatch(r"([0-9]{1,5})x([0-9]{1,6}(?:\.[0-9]{1,3})?)", text.strip())
    if match is None or not int(match[1]):
        raise BadInput(
            f"--modelled {text[:40]}", "is not COUNTxSECONDS", "use for example 12x20 or 12x20,4x30"
        )
    return (max(1, round(float(match[2]) * 1000)),) * int(match[1])


def tags_of(deadline_s: float | None) -> tuple[str, ...]:
    """Return the tag that carries a deadline: seconds since the epoch."""
    if deadline_s is None:
        return ()
    import time

    return (f"deadline:{int(time.time() + deadline_s)}",)


class ProgressLine:
    """Prints a job's state and progress on stderr, whenever the progress changes by a percent."""

    def __init__(self) -> None:
        self._printed = ""

    def __call__(self, row: dict[str, Any]) -> None:
        """Print the progress of an application's row."""
        percent = float(row.get("progress", 0) or 0)
        said = f"{row.get('state', 'UNREACHABLE')} {percent:.0f} %"
        if said != self._printed:
            self._printed = said
            click.echo(said, err=True)
