"""``yarnctl profile APP.toml``: run an application with several numbers of containers; keep how long it took.

Law: the commands are the user's, run as the user by this process, never by a shell, one after another. A run
is kept as soon as it has ended: who is interrupted goes on where it was. Only a run that succeeded is kept.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from yarnctl.cli.cluster import cluster_of, cluster_options
from yarnctl.cli.place import application_at, require_programs
from yarnctl.command_line import output_option, print_json
from yarnctl.errors import BadInput, Different, Unreachable

if TYPE_CHECKING:
    from yarnctl.hadoop.resource_manager import ResourceManager
    from yarnctl.prediction.application_runs import KnownRun
    from yarnctl.submitting.application_files import ApplicationFile, ApplicationSection

SOURCE = "profile:"
TAG = "yarnctl-profile-"
POLL_S = 0.2
APPEARS_S = 120.0
"""So long after its command has ended an application may take until the ResourceManager lists it."""
UNREACHABLE_S = 60.0
SAID_CHARACTERS = 600
CONTAINERS_MAX = 1_000
CELLS_MAX = 2_000


class ProfileCell(NamedTuple):
    """What is run: a framework with so many ``workers`` beside its master, and settings."""

    section: ApplicationSection
    workers: int
    settings: Mapping[str, str]

    def __str__(self) -> str:
        told = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{self.section.kind}, {self.workers} + 1 containers" + (f", {told}" if told else "")


@click.command()
@cluster_options
@click.argument("file", metavar="APP.toml", type=click.Path(path_type=Path))
@click.option(
    "--containers",
    default="1,2,3",
    show_default=True,
    metavar="N,M,...",
    help="With how many containers; its master's is one more.",
)
@click.option(
    "--repeat", default=2, show_default=True, type=click.IntRange(1, 100), help="How often each is run."
)
@click.option("--kind", metavar="KIND", help="Only on this framework.")
@click.option(
    "--store", type=click.Path(path_type=Path, dir_okay=False), help="The file that runs are kept in."
)
@output_option
def command(file: Path, containers: str, repeat: int, output: str, **given: Any) -> None:
    """Run the application of APP.toml with each number of containers, and keep how long each run took.

    What was run before with the same features, settings and containers is not run again.
    """
    from yarnctl.cli.runs import default_store, keep_run, kept_runs

    app = application_at(file).only(given["kind"])
    cells = cells_of(app, numbers_of(containers))
    require_programs(app, print_it=False)
    store = given["store"] or default_store()
    manager = cluster_of(given, hdfs=False).resource_manager()
    manager.identify()  # before anything is submitted of which nobody would see the end
    made: list[KnownRun] = []
    for number, (cell, times) in enumerate(missing(app, cells, repeat, kept_runs(store)), 1):
        for _ in range(times):
            click.echo(f"{number} of {len(cells)}: {cell}", err=True)
            run = profiled(app, cell, manager)
            keep_run(store, run)
            made.append(run)
            click.echo(f"    {run.elapsed_ms / 1000:.1f} s", err=True)
    if output == "json":
        print_json({"application": app.name, "ran": len(made), "runs": made})
        return
    click.echo(f"{app.name}: {len(made)} runs were made; yarnctl runs {app.name} shows all")


def numbers_of(text: str) -> tuple[int, ...]:
    """Return the numbers of containers that an option names."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and 0 < int(word) <= CONTAINERS_MAX for word in words):
        raise BadInput("--containers", f"{text[:60]!r} is no list of numbers above 0", "write 1,2,3")
    return tuple(sorted({int(word) for word in words}))


def cells_of(app: ApplicationFile, numbers: Sequence[int]) -> list[ProfileCell]:
    """Return all that is to be run, each framework from the most containers down."""
    from yarnctl.submitting.application_files import profile_settings

    found = [
        ProfileCell(section, workers, settings)
        for section in app.sections.values()
        for settings in profile_settings(section.tunables)
        for workers in reversed(numbers)
    ]
    if len(found) > CELLS_MAX:
        raise BadInput("--containers", f"makes {len(found)} cells", f"at most {CELLS_MAX}: name fewer")
    return found


def missing(
    app: ApplicationFile, cells: Sequence[ProfileCell], repeat: int, known: Sequence[KnownRun]
) -> list[tuple[ProfileCell, int]]:
    """Return how often each cell is still to be run."""
    return [(cell, max(0, repeat - sum(_is_of(run, app, cell) for run in known))) for cell in cells]


def _is_of(run: KnownRun, app: ApplicationFile, cell: ProfileCell) -> bool:
    same = (run.application, run.kind, run.containers) == (app.name, cell.section.kind, cell.workers + 1)
    return same and run.features == dict(app.features) and run.settings == dict(cell.settings)


def profiled(app: ApplicationFile, cell: ProfileCell, manager: ResourceManager) -> KnownRun:
    """Run one cell, and return how long it took: from its command's start to its application's end."""
    from uuid import uuid4

    from yarnctl.prediction.application_runs import KnownRun
    from yarnctl.submitting.gate_settings import with_tags

    run = uuid4().hex[:12]
    framework, job = cell.section.framework, cell.section.job(run)
    own = job.settings()
    given = {**framework.given(cell.workers + 1), **cell.settings}
    given[framework.TAGS] = with_tags(framework.tags_of(own), [TAG + run])
    with tempfile.TemporaryFile() as said:
        began_s = time.monotonic()
        process = subprocess.Popen(  # noqa: S603
            job.words(given), stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=dict(os.environ)
        )
        try:
            name, elapsed_ms = Watched(manager, TAG + run, process, began_s).until_ended()
        except Different as error:
            said.seek(max(0, said.tell() - SAID_CHARACTERS))
            tail = said.read().decode("utf-8", "replace").strip()
            raise Different(f"{cell}: {error}" + (f"; its command said: {tail}" if tail else "")) from None
        finally:
            if process.poll() is None:
                process.terminate()
    return KnownRun(
        application=app.name,
        kind=cell.section.kind,
        features=dict(app.features),
        settings=dict(cell.settings),
        containers=cell.workers + 1,
        elapsed_ms=max(1, elapsed_ms),
        source=SOURCE + name,
    )


class Watched:
    """One application, found by its tag, from its command's start on (``began_s``, of the monotonic clock).

    Instants of the ResourceManager are compared with each other only: its clock may differ from ours.
    """

    def __init__(
        self, manager: ResourceManager, tag: str, process: subprocess.Popen[bytes], began_s: float
    ) -> None:
        self._manager, self._tag, self._process, self._began_s = manager, tag, process, began_s
        self._pause = threading.Event()
        self._name = ""
        self._before_ms = 0
        self._answered_s = began_s

    def until_ended(self) -> tuple[str, int]:
        """Return the application's id and how long it took in all, in ms; Different if it did not succeed."""
        from yarnctl.hadoop.resource_manager import ENDED

        gone_s: float | None = None
        while True:
            rows = self._asked(lambda: self._manager.tagged(self._tag)) or ()
            if rows and not self._name:
                self._name = rows[0].application
                waited_ms = (time.monotonic() - self._began_s) * 1000
                self._before_ms = max(0, round(waited_ms - rows[0].elapsed_ms))
            if rows and rows[0].state in ENDED:
                return self._name, self._outcome_ms()
            if self._process.poll() is not None and not rows:
                gone_s = gone_s or time.monotonic()
                if self._process.returncode or time.monotonic() - gone_s > APPEARS_S:
                    raise Different(f"nothing was submitted (status {self._process.returncode})")
            self._pause.wait(POLL_S)

    def _outcome_ms(self) -> int:
        found = self._asked(lambda: self._manager.ended_application(self._name))
        if found is None:
            raise Different(f"{self._name} cannot be read any more")
        if found.final_status != "SUCCEEDED":
            raise Different(f"{self._name} ended {found.final_status or 'in an unknown state'}")
        return self._before_ms + int(found.ended_at_ms - found.submitted_at_ms)

    def _asked(self, question: Callable[[], Any]) -> Any:
        """Ask the ResourceManager; None while it does not answer, Unreachable if that lasts too long."""
        try:
            answer = question()
        except Unreachable:
            if time.monotonic() - self._answered_s > UNREACHABLE_S:
                raise
            return None
        self._answered_s = time.monotonic()
        return answer
