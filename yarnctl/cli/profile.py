"""``yarnctl profile APP.toml``: run an application with several numbers of containers; store the run times.

The commands run as the user, one after another, never by a shell. A run is stored as soon as it has
succeeded, so that an interrupted profile resumes with the missing runs.
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

from yarnctl.cli.cluster import ClusterOptions, cluster_of, cluster_options
from yarnctl.cli.place import application_at, require_programs
from yarnctl.command_line import output_option, print_json
from yarnctl.errors import BadInput, Different, Unreachable

if TYPE_CHECKING:
    from yarnctl.frameworks.application_files import ApplicationFile, ApplicationSection
    from yarnctl.hadoop.resource_manager import ResourceManager
    from yarnctl.prediction.application_runs import KnownRun

SOURCE = "profile:"
TAG = "yarnctl-profile-"
POLL_S = 0.2
APPEARS_S = 120.0  # Maximum time from the end of a command until the ResourceManager lists its application
UNREACHABLE_S = 60.0
OUTPUT_CHARACTERS = 600
CONTAINERS_MAX = 1_000
CELLS_MAX = 2_000


class ProfileCell(NamedTuple):
    """One configuration to run: a framework, its ``workers`` (its master is one more), and settings."""

    section: ApplicationSection
    workers: int
    settings: Mapping[str, str]

    def __str__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.settings.items())
        return f"{self.section.kind}, {self.workers} + 1 containers{settings}"


@click.command()
@cluster_options
@click.argument("file", metavar="APP.toml", type=click.Path(path_type=Path))
@click.option(
    "--containers",
    default="1,2,3",
    show_default=True,
    metavar="N,M,...",
    help="Numbers of containers to run with; the application master's is one more.",
)
@click.option(
    "--repeat", default=2, show_default=True, type=click.IntRange(1, 100), help="Number of runs of each."
)
@click.option("--kind", metavar="KIND", help="Use only this framework.")
@click.option("--store", type=click.Path(path_type=Path, dir_okay=False), help="File to store the runs in.")
@output_option
def command(
    cluster: ClusterOptions,
    file: Path,
    containers: str,
    repeat: int,
    kind: str | None,
    store: Path | None,
    output: str,
) -> None:
    """Run the application of APP.toml with each number of containers, and store how long each run took.

    Runs that are stored already, with the same features, settings and containers, are not repeated.
    """
    from yarnctl.cli.runs import default_store, keep_run, kept_runs

    app = application_at(file).only(kind)
    cells = cells_of(app, numbers_of(containers))
    require_programs(app)
    store = store or default_store()
    manager = cluster_of(cluster, hdfs=False).resource_manager()
    manager.identify()  # fail before the first submission, not at its end
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
    click.echo(f"{app.name}: {len(made)} runs made; run yarnctl runs {app.name} to see all")


def numbers_of(text: str) -> tuple[int, ...]:
    """Return the numbers of containers of ``--containers``, sorted; raises BadInput."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and 0 < int(word) <= CONTAINERS_MAX for word in words):
        problem = f"{text[:60]!r} is not a list of numbers from 1 to {CONTAINERS_MAX}"
        raise BadInput("--containers", problem, "use for example 1,2,3")
    return tuple(sorted({int(word) for word in words}))


def cells_of(app: ApplicationFile, numbers: Sequence[int]) -> list[ProfileCell]:
    """Return all configurations, each framework from the most containers down; raises BadInput."""
    from yarnctl.frameworks.application_files import profile_settings

    found = [
        ProfileCell(section, workers, settings)
        for section in app.sections.values()
        for settings in profile_settings(section.tunables)
        for workers in reversed(numbers)
    ]
    if len(found) > CELLS_MAX:
        problem = f"{len(found)} configurations exceed the maximum of {CELLS_MAX}"
        raise BadInput("--containers", problem, "give fewer numbers or tunables")
    return found


def missing(
    app: ApplicationFile, cells: Sequence[ProfileCell], repeat: int, known: Sequence[KnownRun]
) -> list[tuple[ProfileCell, int]]:
    """Return each configuration with its number of missing runs."""
    return [(cell, max(0, repeat - sum(_is_of(run, app, cell) for run in known))) for cell in cells]


def _is_of(run: KnownRun, app: ApplicationFile, cell: ProfileCell) -> bool:
    same = (run.application, run.kind, run.containers) == (app.name, cell.section.kind, cell.workers + 1)
    return same and run.features == dict(app.features) and run.settings == dict(cell.settings)


def profiled(app: ApplicationFile, cell: ProfileCell, manager: ResourceManager) -> KnownRun:
    """Run one configuration, from its command's start to its application's end; raises Different."""
    from uuid import uuid4

    from yarnctl.frameworks.submitting import with_tags
    from yarnctl.prediction.application_runs import KnownRun

    run = uuid4().hex[:12]
    framework, submission = cell.section.framework, cell.section.job(run)
    own = submission.settings()
    settings = {**framework.given(cell.workers + 1), **cell.settings}
    settings[framework.TAGS] = with_tags(framework.tags_of(own), [TAG + run])
    with tempfile.TemporaryFile() as output:
        began_s = time.monotonic()
        process = subprocess.Popen(  # noqa: S603
            submission.words(settings),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(os.environ),
        )
        try:
            name, elapsed_ms = Watched(manager, TAG + run, process, began_s).until_ended()
        except Different as error:
            output.seek(max(0, output.tell() - OUTPUT_CHARACTERS))
            tail = output.read().decode("utf-8", "replace").strip()
            cause = f"; output of its command: {tail}" if tail else ""
            raise Different(f"{cell}: {error}{cause}") from None
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
    """One application, found by its tag, from its command's start (``began_s``, monotonic) to its end."""

    def __init__(
        self, manager: ResourceManager, tag: str, process: subprocess.Popen[bytes], began_s: float
    ) -> None:
        self._manager, self._tag, self._process, self._began_s = manager, tag, process, began_s
        self._pause = threading.Event()
        self._name = ""
        self._before_ms = 0
        self._answered_s = began_s

    def until_ended(self) -> tuple[str, int]:
        """Return the application's id and its total time in ms; raises Different if it did not succeed."""
        from yarnctl.hadoop.resource_manager import ENDED

        gone_s: float | None = None
        while True:
            rows = self._queried(lambda: self._manager.tagged(self._tag)) or ()
            if rows and not self._name:
                self._name = rows[0].application
                waited_ms = (time.monotonic() - self._began_s) * 1000
                self._before_ms = max(0, round(waited_ms - rows[0].elapsed_ms))
            if rows and rows[0].state in ENDED:
                found = self._queried(lambda: self._manager.ended_application(self._name))
                if found is None:
                    raise Different(f"{self._name}: the ResourceManager no longer reports it")
                if found.final_status != "SUCCEEDED":
                    raise Different(f"{self._name} ended with status {found.final_status or 'unknown'}")
                return self._name, self._before_ms + int(found.ended_at_ms - found.submitted_at_ms)
            if self._process.poll() is not None and not rows:
                gone_s = gone_s or time.monotonic()
                if self._process.returncode or time.monotonic() - gone_s > APPEARS_S:
                    raise Different(f"no application was submitted (exit status {self._process.returncode})")
            self._pause.wait(POLL_S)

    def _queried(self, query: Callable[[], Any]) -> Any:
        """Query the ResourceManager; None while it does not answer, Unreachable after ``UNREACHABLE_S``."""
        try:
            answer = query()
        except Unreachable:
            if time.monotonic() - self._answered_s > UNREACHABLE_S:
                raise
            return None
        self._answered_s = time.monotonic()
        return answer
