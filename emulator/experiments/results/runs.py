"""Runs: one scenario under several schemes, over all cores, each result kept as soon as it is whole.

Law: what comes out depends on the scenario alone: not on the number of workers, not on which scheme finishes
first, not on what was interrupted before. Only ``run.json`` holds wall-clock, versions and the command line.
"""

from __future__ import annotations

import contextlib
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from emulator.experiments.results.folder import JOURNAL, Folder, unwritable, write_whole
from emulator.experiments.results.store import ResultStore, SchemeStore
from emulator.experiments.results.summary import SchemeSummary, levers_of, summary_of, time_lost_of, waiting_s
from emulator.experiments.results.workers import spread
from emulator.scenario import Prepared, setup
from emulator.virtual.run import SAMPLES, Result, run_scheme
from emulator.virtual.schemes import SCHEMES
from yarnctl.deciding.records import Record
from yarnctl.loop import Journal
from yarnctl.traces.job import Job

_MOST_WALL_S = 1e9


RunProgress = Callable[[str, float | None], object]
"""Called for each scheme that is done, with the seconds it took (None: it had been done before)."""


class Comparison(NamedTuple):
    """What came of an experiment: results by scheme in a fixed order, and the seconds each took.

    ``wall_s`` has None where an earlier run, interrupted, did not say. ``ran`` are the schemes
    run now; the others had been finished before.
    """

    prepared: Prepared
    results: Mapping[str, Result]
    wall_s: Mapping[str, float | None]
    ran: tuple[str, ...]

    def summaries(self) -> dict[str, SchemeSummary]:
        """Return the summary of every scheme."""
        return {name: summary_of(result) for name, result in self.results.items()}


class RunOrder(NamedTuple):
    """One run, as it is handed to a worker; ``part`` is the temporary folder of what is kept of it."""

    prepared: Prepared
    scheme: str
    part: Path | None
    journal: bool


class RunDone(NamedTuple):
    """One run's result, and the seconds it took."""

    name: str
    result: Result
    wall_s: float


class NoJournal:
    """A journal that keeps nothing."""

    def append(self, records: Sequence[Record]) -> None:
        """Drop the records."""


Pages = Callable[[Comparison], Mapping[str, str]]
"""Draws an outcome: the text of each file to be written into the folder."""


def run_experiment(
    prepared: Prepared,
    *,
    out: Path | None = None,
    journal: bool = True,
    workers: int | None = None,
    replace: bool = False,
    progress: RunProgress | None = None,
    pages: Pages | None = None,
) -> Comparison:
    """Run what is not finished yet; with ``out``, keep results, journals, ``run.json`` and pages there.

    ``replace``: results of another scenario in ``out`` make room instead of being an error.
    """
    folder = None if out is None else Folder(out, prepared.identity)
    with contextlib.nullcontext() if folder is None else folder.opened(replace):
        store = ResultStore() if folder is None else SchemeStore(folder, journal)
        known = {} if folder is None else _known_walls(folder)
        wanted = [name for name in SCHEMES if name in prepared.scenario.schemes]
        left = [name for name in wanted if name not in store.known]
        for name in wanted:
            if progress and name in store.known:
                progress(name, None)
        walls = dict(known)
        orders = [RunOrder(prepared, name, store.part(name), journal) for name in left]
        for done in spread(run_order, orders, workers, lambda order: f"scheme {order.scheme}"):
            store.keep(done.name, done.result)
            walls[done.name] = done.wall_s
            if progress:
                progress(done.name, done.wall_s)
        results = {name: store.known[name] for name in wanted}
        outcome = Comparison(prepared, results, {name: walls.get(name) for name in wanted}, tuple(left))
        if folder is not None:
            _write(folder, outcome, known, pages(outcome) if pages else {})
    return outcome


def _write(
    folder: Folder, comparison: Comparison, known: Mapping[str, float], pages: Mapping[str, str]
) -> None:
    prepared = comparison.prepared
    folder.write("results.json", results_json(comparison))
    waiting = {name: waiting_s(result) for name, result in comparison.results.items()}
    folder.write("waiting.json", {"waiting": waiting, "identity": prepared.identity})
    run = {
        "identity": prepared.identity,
        "scenario": prepared.scenario,
        "sources": prepared.sources,
        "notes": prepared.notes,
        "wall_s": {name: _rounded(wall) for name, wall in {**known, **comparison.wall_s}.items()},
        "ran": comparison.ran,
        **program_facts(),
    }
    folder.write("run.json", run)  # all that may differ between two runs of one scenario
    for name, text in pages.items():
        write_whole(folder.path / name, text.encode())


def _known_walls(folder: Folder) -> dict[str, float]:
    """Return the seconds that earlier runs recorded; an impossible value counts as none."""
    told = folder.read("run.json").get("wall_s")
    if not isinstance(told, dict):
        return {}
    numbers = {name: wall for name, wall in told.items() if name in SCHEMES and type(wall) in (int, float)}
    return {name: wall for name, wall in numbers.items() if 0 <= wall < _MOST_WALL_S}


def results_json(comparison: Comparison) -> dict[str, object]:
    """Return what ``results.json`` holds."""
    return {"schemes": comparison.summaries(), "identity": comparison.prepared.identity}


def compare_json(comparison: Comparison) -> dict[str, object]:
    """Return what ``compare --json`` prints: the results, and the seconds each scheme took."""
    schemes = {
        name: {
            **msgspec.structs.asdict(summary),
            "waiting": waiting_s(comparison.results[name]),
            **levers_of(comparison.results[name]),
            **time_lost_of(comparison.results[name]),
            "wall_s": _rounded(comparison.wall_s.get(name)),
        }
        for name, summary in comparison.summaries().items()
    }
    return {"schemes": schemes, "identity": comparison.prepared.identity}


def program_version() -> str:
    """Return the version of yarnctl that is installed; "unknown" in a tree that is not."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("yarnctl")
    except PackageNotFoundError:
        return "unknown"


def program_facts() -> dict[str, object]:
    """Return the command line, versions and machine: the part of a ``run.json`` common to all runs."""
    return {
        "argv": sys.argv,
        "yarnctl": program_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def _rounded(wall_s: float | None) -> float | None:
    return None if wall_s is None else round(wall_s, 3)


def run_order(order: RunOrder) -> RunDone:
    """Run one scheme; if it is to be kept, make its temporary folder, and the journal in it."""
    if order.part is None:
        return RunDone(order.scheme, *_timed(order, None))
    decides = SCHEMES[order.scheme].eviction is not None and order.journal
    try:
        order.part.mkdir()
        return RunDone(order.scheme, *_timed(order, order.part / JOURNAL if decides else None))
    except OSError as error:
        raise unwritable(order.part.parent, error) from None


def _timed(order: RunOrder, journal: Path | None) -> tuple[Result, float]:
    from yarnctl.journal.file import JournalStream

    scenario, jobs = order.prepared.scenario, order.prepared.jobs
    begun = time.perf_counter()
    with contextlib.ExitStack() as stack:
        kept: Journal = NoJournal()
        if journal:  # whole when its folder gets its name: nothing is synced before
            kept = stack.enter_context(JournalStream(stack.enter_context(journal.open("wb"))))
        made = msgspec.structs.replace(setup(scenario), validate=order.prepared.validate)
        result = run_scheme(made, jobs, SCHEMES[order.scheme], kept, sample_ms(jobs))
    return result, time.perf_counter() - begun


def sample_ms(jobs: Sequence[Job]) -> int:
    """Return how often occupancy is sampled: some 400 times while jobs arrive, in whole seconds."""
    last_ms = max(job.submitted_at_ms for job in jobs)
    return 1000 * max(1, -(-last_ms // (SAMPLES * 1000)))
