"""``yarnctl place APP.toml``: choose framework, containers, settings and start for a deadline, and submit.

This command predicts run times, from the user's runs and the daemon's; the daemon chooses an option. The
file's own command runs in this process's place, with the settings that the white lists allow; never by a
shell.
"""

from __future__ import annotations

import getpass
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.amounts import ratio_of
from yarnctl.cli.admissions import span_of
from yarnctl.cli.admit import StderrNotes, submit
from yarnctl.cli.asking import plain, url_option
from yarnctl.cli.taking_place import require_program
from yarnctl.command_line import output_option
from yarnctl.errors import BadInput, Different

if TYPE_CHECKING:
    from yarnctl.api.admission_answers import AdmissionOut
    from yarnctl.frameworks.application_files import ApplicationFile
    from yarnctl.prediction.application_options import PredictedOptions
    from yarnctl.prediction.application_runs import KnownRun

PROFILE = "run yarnctl profile {file} first; each framework needs three runs"


@click.command()
@click.argument("file", metavar="APP.toml", type=click.Path(path_type=Path))
@click.option(
    "--deadline", required=True, metavar="SPAN", help="Time until the deadline: 90s, 15m, 1h30m, 2d."
)
@click.option("--kind", metavar="KIND", help="Use only this framework.")
@click.option(
    "--late",
    default="5%",
    show_default=True,
    metavar="CHANCE",
    help="Accepted chance that a run exceeds its predicted upper bound; point: use the prediction as the"
    " bound.",
)
@click.option(
    "--user", metavar="USER", help="Owner of the application.  [default: HADOOP_USER_NAME, else you]"
)
@click.option("--no-wait", is_flag=True, help="Exit with 75 if the application cannot start now.")
@click.option("--print", "print_it", is_flag=True, help="Print the command instead of running it.")
@click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with your known runs (yarnctl runs).",
)
@url_option
@output_option
def command(
    file: Path,
    deadline: str,
    kind: str | None,
    late: str,
    user: str | None,
    no_wait: bool,
    print_it: bool,
    store: Path | None,
    url: str,
    output: str,
) -> int:
    """Place the application of APP.toml on the framework that meets the deadline at the lowest cost.

    Waits until containers are free, then submits as you. Requires a token with scope submit. Set
    YARNCTL_TOKEN_FILE to the file with the token.
    """
    from uuid import uuid4

    from yarnctl.cli.gate_asking import GateRequest
    from yarnctl.cli.runs import default_store, kept_runs, runs_at

    app = application_at(file).only(kind)
    deadline_ms, late_ratio = span_of("--deadline", deadline), late_of(late)
    if not print_it:
        require_programs(app)
    user = user or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    try:
        published = runs_at(url, app.name)
    except Different:  # a daemon without runs
        published = ()
    known = (*kept_runs(store or default_store()), *published)
    found = options_for(file, app, known, late_ratio)
    body = body_of(app, found, user, deadline_ms) | {"options": options_in_queues(app, found, url)}
    request = GateRequest(url, body, uuid4().hex, StderrNotes())
    line_for = partial(line_of, app, uuid4().hex[:12])
    return submit(request, line_for, wait=not no_wait, print_it=print_it, as_json=output == "json")


def application_at(file: Path) -> ApplicationFile:
    """Read an application's file; BadInput names the file and what is wrong."""
    from yarnctl.frameworks.application_files import FILE_BYTES_MAX, read_application

    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise BadInput(str(file), f"cannot be read ({error.strerror})", "give a readable file") from None
    return read_application(content, str(file))


def late_of(text: str) -> float:
    """Return the value of ``--late`` as a ratio: ``5%``, ``0.05``, or ``point``; raises BadInput."""
    from yarnctl.prediction.application_options import POINT

    if text == "point":
        return POINT
    ratio = ratio_of(text)
    if not 0 < ratio < POINT:
        raise BadInput("--late", f"{text[:40]!r} is not between 0 and 50%", "use for example 5%, or point")
    return ratio


def require_programs(app: ApplicationFile) -> None:
    """Raise BadInput for a section whose program is not installed."""
    for section in app.sections.values():
        require_program(section.command, f"[{section.kind}] ")


def options_for(
    file: Path, app: ApplicationFile, known: tuple[KnownRun, ...], late_ratio: float
) -> PredictedOptions:
    """Return the options with predicted run times; BadInput where too few runs are known."""
    from yarnctl.prediction.application_options import predicted_options
    from yarnctl.prediction.application_runs import merged

    tunables = {kind: section.tunables for kind, section in app.sections.items()}
    found = predicted_options(merged((), known), app.name, app.features, tunables, late_ratio)
    if not found.options:
        problem = f"fewer than three runs of {app.name} are known on {', '.join(app.sections)}"
        raise BadInput(str(file), problem, PROFILE.format(file=file))
    if found.lacking:
        click.echo(f"note: {', '.join(found.lacking)} not considered: fewer than three runs known", err=True)
    return found


def body_of(app: ApplicationFile, options: PredictedOptions, user: str, deadline_ms: int) -> dict[str, Any]:
    """Return the body of the request without its options."""
    return {
        "name": app.name,
        "user": user,
        "deadline_ms": deadline_ms,
        "application": app.name,
        "features": dict(app.features),
        "lacking": list(options.lacking),
    }


def options_in_queues(app: ApplicationFile, options: PredictedOptions, url: str) -> list[dict[str, Any]]:
    """Return the options as fields of the request; a queue in a section's command selects its pool."""
    from yarnctl.cli.gate_asking import gate_at
    from yarnctl.deciding.queue_names import is_name_of

    gate = gate_at(url)
    pools = [] if gate is None else gate.pools
    pool_of: dict[str, str] = {}
    for kind in sorted({each.kind for each in options.options}):
        section = app.sections[kind]
        taking = [pool for pool in pools if not pool.kinds or kind in pool.kinds]
        if pools and not taking:
            problem = f"no pool accepts {kind}"
            raise BadInput(
                f"[{kind}]", problem, f"pools: {', '.join(plain(pool.name) for pool in pools)}; use --kind"
            )
        queue = section.job().settings().get(section.framework.QUEUE)
        fits = [pool for pool in taking if any(is_name_of(queue or "", one) for one in pool.queues)]
        if pools and queue is not None and not fits:
            queues = ", ".join(plain(one) for pool in taking for one in pool.queues)
            raise BadInput(
                f"[{kind}] queue {queue}", f"belongs to no pool that accepts {kind}", f"use {queues}, or none"
            )
        if len(fits) > 1:
            paths = ", ".join(plain(one) for pool in fits for one in pool.queues)
            raise BadInput(f"[{kind}] queue {queue}", "is ambiguous", f"use one of {paths}")
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
        for each in options.options
    ]


def line_of(app: ApplicationFile, run: str, admission: AdmissionOut) -> list[str]:
    """Return the command line to run; BadInput names a setting that is not allowed or contradicts another."""
    plan = admission.placement
    if plan is None or plan.kind not in app.sections:
        raise BadInput("--url", "the daemon chose no framework of the file", "check your daemon's address")
    section = app.sections[plan.kind]
    submission = section.job(run)
    own = submission.settings()
    more, notes = section.framework.settled(own, admission.settings, admission.tags, section.tunables)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    sys.stderr.flush()
    return submission.words(more)
