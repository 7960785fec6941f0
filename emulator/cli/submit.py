"""``yarn-emulator submit``: hand a streaming job, or a whole workload, to a ResourceManager and wait for it.

Law: exit status 0 if it succeeded, 1 if it failed or was killed, 2 if it cannot be submitted, 3 if nobody
answers. Everything is checked before anything is submitted.
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
    from emulator.live.wire.submitted_job import ModelledJob, StreamingJob


@click.command("submit")
@click.option("--rm", required=True, metavar="URL", help="Where yarn-emulator serve (or rm) answers.")
@click.option("--queue", default="research", show_default=True, metavar="Q", help="The queue it goes to.")
@click.option("--input", "inputs", multiple=True, metavar="DIR", help="File or folder to read; repeatable.")
@click.option("--output", "folder", metavar="DIR", help="A new folder for the result.")
@click.option("--mapper", default="cat", show_default=True, metavar="CMD", help="As for Hadoop streaming.")
@click.option("--reducer", default="", metavar="CMD", help="The same.")
@click.option("--combiner", default="", metavar="CMD", help="The same.")
@click.option("--reduces", default=1, show_default=True, type=click.IntRange(0), metavar="N")
@click.option("--file", "files", multiple=True, metavar="FILE", help="Ship a file; those named plainly are.")
@click.option("--restartable", is_flag=True, help="Promise: the reducer keeps nothing between key groups.")
@click.option("--group-fields", default=0, type=click.IntRange(0), metavar="N", help="It groups by so many.")
@click.option("--no-runner", is_flag=True, help="Leave the reducer as it is: it cannot be suspended.")
@click.option("-D", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the job.")
@click.option("--cmdenv", multiple=True, metavar="NAME=VALUE", help="An environment entry of its commands.")
@click.option("--name", default="streamjob", show_default=True, help="The job's name.")
@click.option("--user", metavar="NAME", help="Whose job it is.  [default: you]")
@click.option("--requests-owner", default="yarnctl", show_default=True, help="Whose requests are obeyed.")
@click.option("--deadline", type=click.FloatRange(min=0), metavar="S", help="Seconds from now (a tag).")
@click.option("--priority", default=0, show_default=True, type=click.IntRange(0), help="YARN's priority.")
@click.option("--modelled", metavar="MAPS[,REDUCES]", help="Instead: a job of timetables, 12x20,4x30 (s).")
@click.option("--workload", metavar="SPEC", help="Instead: replay a workload as modelled jobs.")
@click.option("--speed", default=1.0, type=click.FloatRange(min=0, min_open=True), help="That of serve.")
@click.option("--no-wait", is_flag=True, help="Leave once it is submitted.")
@output_option
def command(output: str, **given: Any) -> int:
    """Submit a streaming job with your own mapper and reducer; or replay a workload live."""
    from emulator.live.jobs.submission_client import Client

    user = given["user"] or getpass.getuser()
    client = Client(given["rm"], user)
    if given["workload"]:
        from emulator.live.jobs.workload_replay import replay

        spec, queue, speed = given["workload"], given["queue"], given["speed"]
        return replay(client, spec, queue, speed, wait=not given["no_wait"], as_json=output == "json")
    job = modelled_of(given, user) if given["modelled"] else job_of(given, user, client)
    name = client.submit(job, given["queue"], tags_of(given["deadline"]), given["priority"])
    if given["no_wait"]:
        report({"application": name}, output, f"submitted {name}")
        return 0
    click.echo(f"submitted {name}", err=True)
    row = client.wait(name, 0.5, ProgressLine())
    final = str(row.get("finalStatus", ""))
    said = f"{name} {final}" + (f": {row['diagnostics']}" if row.get("diagnostics") else "")
    shown = {"application": name, "final_status": final, "diagnostics": str(row.get("diagnostics", ""))}
    shown |= {"started_at_ms": row.get("startedTime", 0), "finished_at_ms": row.get("finishedTime", 0)}
    report(shown, output, said)
    return 0 if final == "SUCCEEDED" else 1


def report(shown: dict[str, Any], output: str, said: str) -> None:
    """Print the outcome."""
    if output == "json":
        print_json(shown)
    else:
        click.echo(" ".join(said.split()))


def job_of(given: dict[str, Any], user: str, client: Client) -> StreamingJob:
    """Return the job that the options describe, checked; queries the cluster only for its store."""
    from emulator.live.jobs.streaming_job import checked, pairs, shipped, sized, wrapped
    from emulator.live.jobs.submission_client import CHECKPOINTS, checkpoint_environment
    from emulator.live.wire.submitted_job import StreamingJob

    if not given["inputs"] or not given["folder"]:
        raise BadInput("--input, --output", "both are needed", "name folders that every node sees")
    reduces = given["reduces"]
    if reduces and not given["reducer"]:
        raise BadInput("--reducer", "is missing", "give one, or --reduces 0")
    commands = (given["mapper"], given["reducer"], given["combiner"])
    job = StreamingJob(
        name=given["name"],
        inputs=tuple(str(Path(name).absolute()) for name in given["inputs"]),
        output=str(Path(given["folder"]).absolute()),
        mapper=given["mapper"],
        reducer=given["reducer"] if reduces else "",
        combiner=given["combiner"] if reduces else "",
        reduces=reduces,
        user=user,
        queue=given["queue"],
        settings=pairs("-D", given["settings"]),
        cmdenv=pairs("--cmdenv", given["cmdenv"]),
        files=shipped(commands, given["files"]),
    )
    job = checked(sized(job))
    if given["no_runner"] or not reduces:
        return job
    if not given["restartable"]:
        click.echo("note: without --restartable no reduce of this job is ever suspended", err=True)
    job = wrapped(job, given["restartable"], given["group_fields"], {})
    if "YARNCTL_STORE" not in job.cmdenv and given["restartable"]:
        import msgspec

        webhdfs = client.webhdfs()
        for folder in (CHECKPOINTS.rpartition("/")[0], CHECKPOINTS):
            client.make_folder(webhdfs, folder)
        told = checkpoint_environment(webhdfs, given["requests_owner"])
        job = msgspec.structs.replace(job, cmdenv={**told, **job.cmdenv})
    return job


def modelled_of(given: dict[str, Any], user: str) -> ModelledJob:
    """Return the job of timetables that the options describe, checked."""
    from emulator.live.jobs.streaming_job import pairs
    from emulator.live.wire.submitted_job import ModelledJob, check
    from yarnctl.traces.job import Job

    maps, _, reduces = given["modelled"].partition(",")
    map_ms, reduce_ms = spans_of(maps), spans_of(reduces) if reduces else ()
    work = Job(
        name=given["name"],
        job_class="production" if given["queue"] == "production" else "research",
        submitted_at_ms=0,
        map_ms=map_ms,
        reduce_ms=reduce_ms,
        reduce_keys=tuple(max(1, span // 100) for span in reduce_ms),
        shuffle_ms=0,
        user=user,
        queue=given["queue"],
    )
    job = ModelledJob(job=work, runner=False, settings=pairs("-D", given["settings"]))
    check(job)
    return job


def spans_of(text: str) -> tuple[int, ...]:
    """Return so many spans in ms: ``12x20`` is twelve of 20 s."""
    import re

    match = re.fullmatch(r"([0-9]{1,5})x([0-9]{1,6}(?:\.[0-9]{1,3})?)", text.strip())
    if match is None or not int(match[1]):
        raise BadInput(f"--modelled {text[:40]}", "is no COUNTxSECONDS", "write it like 12x20 or 12x20,4x30")
    return (max(1, round(float(match[2]) * 1000)),) * int(match[1])


def tags_of(deadline_s: float | None) -> tuple[str, ...]:
    """Return the tag that carries a deadline: seconds since the epoch."""
    if deadline_s is None:
        return ()
    import time

    return (f"deadline:{int(time.time() + deadline_s)}",)


class ProgressLine:
    """Prints on stderr how far the job is, whenever that changes by a whole percent."""

    def __init__(self) -> None:
        self._printed = ""

    def __call__(self, row: dict[str, Any]) -> None:
        """Print the progress of an application's row."""
        percent = float(row.get("progress", 0) or 0)
        said = f"{row.get('state', 'UNREACHABLE')} {percent:.0f} %"
        if said != self._printed:
            self._printed = said
            click.echo(said, err=True)
