"""``yarnctl place APP.toml``: choose framework, containers, settings and start for a deadline, and submit.

Law: as of ``admit``: the daemon submits nothing. Run times are predicted here, from the user's runs and those
that the daemon has; the daemon chooses among the options. What runs in the end is the file's own command with
what the white lists allow to be set, in this process's place, never by a shell.
"""

from __future__ import annotations

import getpass
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.amounts import ratio_of
from yarnctl.cli.admissions import span_of
from yarnctl.cli.admit import EndedBySignal, StderrNotes, ask_and_submit, ended_by, leave, with_signals
from yarnctl.cli.asking import Busy, ask_all, plain, url_option
from yarnctl.cli.taking_place import require_program
from yarnctl.command_line import output_option
from yarnctl.errors import BadInput, Different, Unreachable

if TYPE_CHECKING:
    from yarnctl.api.admission_answers import AdmissionOut
    from yarnctl.prediction.application_options import PredictedOptions
    from yarnctl.prediction.application_runs import KnownRun
    from yarnctl.submitting.application_files import ApplicationFile

RUNS_PATH, RUNS_MAX = "v1/runs", 1_000
PROFILE = "run yarnctl profile {file} first: a kind needs three runs"


@click.command()
@click.argument("file", metavar="APP.toml", type=click.Path(path_type=Path))
@click.option("--deadline", required=True, metavar="SPAN", help="Until when from now: 90s, 15m, 1h30m, 2d.")
@click.option("--kind", metavar="KIND", help="Only on this framework.")
@click.option(
    "--late",
    default="5%",
    show_default=True,
    metavar="CHANCE",
    help="The chance to exceed an upper bound; point: the prediction itself is the bound.",
)
@click.option(
    "--user", metavar="USER", help="Whose application it is.  [default: HADOOP_USER_NAME, else you]"
)
@click.option("--no-wait", is_flag=True, help="Leave with 75 if it cannot start now.")
@click.option("--print", "print_it", is_flag=True, help="Print the command instead of running it.")
@click.option(
    "--store", type=click.Path(path_type=Path, dir_okay=False), help="The file that your runs are kept in."
)
@url_option
@output_option
def command(file: Path, url: str, output: str, **given: Any) -> int:
    """Place the application of APP.toml: on the framework that meets the deadline at the least cost.

    It waits until its containers are free, and submits as you. Asking needs a token with the scope submit:
    name its file in YARNCTL_TOKEN_FILE.
    """
    from uuid import uuid4

    from yarnctl.cli.gate_asking import GateRequest
    from yarnctl.cli.runs import default_store, kept_runs

    app = application_at(file).only(given["kind"])
    deadline_ms, late_ratio = span_of("--deadline", given["deadline"]), late_of(given["late"])
    require_programs(app, given["print_it"])
    user = given["user"] or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    known = (*kept_runs(given["store"] or default_store()), *runs_at(url, app.name))
    found = options_for(file, app, known, late_ratio)
    body = body_of(app, found, user, deadline_ms) | {"options": options_in_queues(app, found, url)}
    asking = GateRequest(url, body, uuid4().hex, StderrNotes())
    with with_signals():
        try:
            how = (not given["no_wait"], given["print_it"], output == "json")
            return ask_and_submit(asking, partial(line_of, app, uuid4().hex[:12]), *how)
        except KeyboardInterrupt as ending:
            return ended_by(asking, ending.number if isinstance(ending, EndedBySignal) else signal.SIGINT)
        except Exception:
            leave(asking)
            raise


def application_at(file: Path) -> ApplicationFile:
    """Read an application's file; raises BadInput by name."""
    from yarnctl.submitting.application_files import FILE_BYTES_MAX, read_application

    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise BadInput(str(file), f"cannot be read ({error.strerror})", "name a readable file") from None
    return read_application(content, str(file))


def late_of(text: str) -> float:
    """Return the chance that ``--late`` says: ``5%``, ``0.05``, or ``point``."""
    from yarnctl.prediction.application_options import POINT

    if text == "point":
        return POINT
    ratio = ratio_of(text)
    if not 0 < ratio < POINT:
        raise BadInput("--late", f"{text[:40]!r} is no chance between 0 and 50%", "give 5%, or point")
    return ratio


def require_programs(app: ApplicationFile, print_it: bool) -> None:
    """Refuse a command whose program is not there, before anything is asked."""
    for section in app.sections.values():
        if not print_it:
            require_program(section.command, f"[{section.kind}] ")


def runs_at(url: str, application: str) -> tuple[KnownRun, ...]:
    """Return the runs of an application that the daemon has; none from a daemon that knows no runs."""
    import msgspec

    from yarnctl.prediction.application_runs import KnownRun

    try:
        answer = ask_all(url, RUNS_PATH, {"application": application}, RUNS_MAX)
    except Busy:
        raise
    except Different:
        return ()
    try:
        return tuple(msgspec.convert(answer["items"], list[KnownRun]))
    except msgspec.ValidationError as error:
        raise Unreachable(f"{url}: answers, but not with runs ({error})") from None


def options_for(
    file: Path, app: ApplicationFile, known: tuple[KnownRun, ...], late_ratio: float
) -> PredictedOptions:
    """Return what the application may be run as; BadInput where nothing is known of it."""
    from yarnctl.prediction.application_options import predicted_options
    from yarnctl.prediction.application_runs import merged

    tunables = {kind: section.tunables for kind, section in app.sections.items()}
    found = predicted_options(merged((), known), app.name, app.features, tunables, late_ratio)
    if not found.options:
        told = f"fewer than three runs are known of {app.name} on {', '.join(app.sections)}"
        raise BadInput(str(file), told, PROFILE.format(file=file))
    if found.lacking:
        click.echo(f"note: too few runs are known on {', '.join(found.lacking)}: left out", err=True)
    return found


def body_of(app: ApplicationFile, found: PredictedOptions, user: str, deadline_ms: int) -> dict[str, Any]:
    """Return the body of the request without its options."""
    return {
        "name": app.name,
        "user": user,
        "deadline_ms": deadline_ms,
        "application": app.name,
        "features": dict(app.features),
        "lacking": list(found.lacking),
    }


def options_in_queues(app: ApplicationFile, found: PredictedOptions, url: str) -> list[dict[str, Any]]:
    """Return the options as they are sent; one whose command names a queue goes to that queue's pool.

    Raises BadInput for a kind that no pool takes, and for a queue that is no pool's.
    """
    from yarnctl.cli.gate_asking import gate_at
    from yarnctl.deciding.queue_names import is_name_of

    gate = gate_at(url)
    pools = [] if gate is None else gate.pools
    pool_of: dict[str, str] = {}
    for kind in sorted({each.kind for each in found.options}):
        section = app.sections[kind]
        taking = [pool for pool in pools if not pool.kinds or kind in pool.kinds]
        if pools and not taking:
            told = f"no pool takes {kind}"
            raise BadInput(
                f"[{kind}]", told, f"the pools are {', '.join(plain(pool.name) for pool in pools)}"
            )
        queue = section.job().settings().get(section.framework.QUEUE)
        fits = [pool for pool in taking if any(is_name_of(queue or "", one) for one in pool.queues)]
        if pools and queue is not None and not fits:
            queues = ", ".join(plain(one) for pool in taking for one in pool.queues)
            raise BadInput(
                f"[{kind}] queue {queue}", f"is no pool's that takes {kind}", f"use {queues}, or none"
            )
        if len(fits) > 1:
            paths = ", ".join(plain(one) for pool in fits for one in pool.queues)
            raise BadInput(f"[{kind}] queue {queue}", "may be several pools' queue", f"name one of {paths}")
        pool_of[kind] = fits[0].name if fits else ""
    return [
        {
            "kind": each.kind,
            "pool": pool_of[each.kind],
            "containers": each.containers,
            "upper_ms": each.upper_ms,
            "predicted_ms": min(each.predicted_ms, each.upper_ms),
            "settings": dict(each.settings),
            **({} if each.late_ratio is None else {"late_ratio": each.late_ratio}),
        }
        for each in found.options
    ]


def line_of(app: ApplicationFile, run: str, seen: AdmissionOut) -> list[str]:
    """Return the command line to run; BadInput names what the gate may not give, or what contradicts it."""
    plan = seen.placement
    if plan is None or plan.kind not in app.sections:
        raise BadInput("--url", "its daemon chose no framework of the file", "is this your daemon?")
    section = app.sections[plan.kind]
    job = section.job(run)
    more, notes = section.framework.settled(job.settings(), seen.settings, seen.tags, section.tunables)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    sys.stderr.flush()
    return job.words(more)
