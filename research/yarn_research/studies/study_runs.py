"""The runs of a study: every pair of hours, seed and row, on all cores, each kept as soon as it is done.

Law: a run is what ``yarn-emulator compare`` runs of the same hours, peaks and seed, to the millisecond. What
a folder holds is found again by the run's identity, whichever hours, schemes and seeds were asked for when
it was made; of another cluster or of other traces it is another study, and refused.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from emulator.experiments.results.folder import Folder
from emulator.experiments.results.runs import NoJournal, RunDone, program_facts, sample_ms
from emulator.scenario import Scenario, setup
from emulator.scenario.preparing import require_room, slots_of
from emulator.virtual.run import Result, run_scheme
from emulator.workload.scaling import scale_to_load
from emulator.workload.spec import load, merge, parse_spec
from yarn_research.studies.cells import STUDY, Cell, CellRuns, identity_of
from yarn_research.studies.hour_pairs import HourPair, hours_of, pairs_of
from yarn_research.studies.study_rows import SchemeRow, with_options
from yarnctl.command_line import ProgressBar
from yarnctl.errors import BadInput
from yarnctl.traces.job import Job, JobClass

FAR_FROM_PEAK = 0.01
"""A peak that is missed by a larger part is noted."""


class StudyRun(NamedTuple):
    """Which run it is: the hours, the seed, the row."""

    pair: HourPair
    seed: int
    row: str


class Study(NamedTuple):
    """What is played. ``scenario``: cluster and rules of all runs; ``seeds``: those of each pair."""

    scenario: Scenario
    rows: tuple[SchemeRow, ...]
    seeds: tuple[int, ...]
    jobs: Mapping[HourPair, tuple[Job, ...]]
    notes: tuple[str, ...]
    sources: tuple[str, ...]
    identity: str

    def cells(self) -> dict[StudyRun, Cell]:
        """Return every run, pair by pair."""
        setups = {seed: setup(msgspec.structs.replace(self.scenario, seed=seed)) for seed in self.seeds}
        return {
            StudyRun(pair, seed, row.name): Cell(with_options(setups[seed], row), jobs, row.scheme)
            for pair, jobs in self.jobs.items()
            for seed in self.seeds
            for row in self.rows
        }


class _Side(NamedTuple):
    """One trace, its hours with work, and what was noted on reading it."""

    job_class: JobClass
    hours: Mapping[int, tuple[Job, ...]]
    notes: tuple[str, ...]
    source: str


def _side(scenario: Scenario, job_class: JobClass) -> _Side:
    text: str = getattr(scenario, job_class)
    spec, option = parse_spec(text), f"--{job_class}"
    if spec.hours is not None:
        raise BadInput(option, f"{text[:80]!r} names hours", "leave out what follows the @; see --hours")
    if spec.kind == "synthetic":
        raise BadInput(option, f"{text[:80]!r} is generated and has no recorded hours", "give a trace")
    loaded = load(text, job_class)
    hours = hours_of(loaded.jobs)
    notes = tuple(f"{job_class} {loaded.source}: {note}" for note in loaded.notes)
    return _Side(job_class, hours, notes, loaded.source)


def _scaled(scenario: Scenario, side: _Side, hour: int) -> tuple[tuple[Job, ...], list[str]]:
    """Return an hour's jobs at the wished peak, and a note if it cannot be reached."""
    peak: float = getattr(scenario, f"{side.job_class}_peak")
    scaled = scale_to_load(side.hours[hour], slots_of(scenario), peak)
    far = abs(scaled.achieved_load - peak) > FAR_FROM_PEAK * peak
    note = f"{side.job_class} hour {hour}: peak load {scaled.achieved_load:.2f} (wished {peak:g})"
    return scaled.jobs, [note] if far else []


def prepare_study(
    scenario: Scenario,
    rows: tuple[SchemeRow, ...],
    seeds: int,
    wanted: tuple[int, ...] | None,
    named: tuple[HourPair, ...] | None = None,
) -> Study:
    """Read the traces and pair their hours; ``wanted`` are hours of production (None: all with work).

    ``named``: pairs of a plan, in the place of those by the rule of :mod:`yarn_research.studies.hour_pairs`.
    """
    production, research = _side(scenario, "production"), _side(scenario, "research")
    pairs = pairs_of(tuple(production.hours), tuple(research.hours))
    chosen = _chosen(pairs, wanted) if named is None else _named(named, production, research)
    scaled = {
        (side.job_class, hour): _scaled(scenario, side, hour)
        for side in (production, research)
        for hour in sorted({getattr(pair, side.job_class) for pair in chosen})
    }
    jobs = {
        pair: merge(scaled["production", pair.production][0], scaled["research", pair.research][0])
        for pair in chosen
    }
    for each in jobs.values():
        require_room(scenario, each)
    return Study(
        scenario,
        rows,
        tuple(range(1, seeds + 1)),
        jobs,
        (*production.notes, *research.notes, *(note for _, notes in scaled.values() for note in notes)),
        (production.source, research.source),
        _identity(scenario, production, research),
    )


def _chosen(pairs: tuple[HourPair, ...], wanted: tuple[int, ...] | None) -> tuple[HourPair, ...]:
    if not pairs:
        raise BadInput("--research", "no hour with work can be paired with one of production", "give a day")
    known = {pair.production: pair for pair in pairs}
    for hour in wanted or ():
        if hour not in known:
            remedy = f"all, or some of {', '.join(map(str, known))}"
            raise BadInput("--hours", f"{hour}: production's trace has no work in this hour", remedy)
    return pairs if wanted is None else tuple(pair for pair in pairs if pair.production in wanted)


def _named(named: tuple[HourPair, ...], production: _Side, research: _Side) -> tuple[HourPair, ...]:
    for pair in named:
        if pair.production not in production.hours or pair.research not in research.hours:
            raise BadInput("--pairs", f"{pair.production}/{pair.research}: an hour has no work", "use others")
    return named


def _identity(scenario: Scenario, production: _Side, research: _Side) -> str:
    """Return sha256 over all that the runs of a study have in common: traces, peaks, cluster and rules."""
    decides = {
        "setup": setup(msgspec.structs.replace(scenario, seed=0)),
        "peaks": (scenario.production_peak, scenario.research_peak),
        "jobs": [list(side.hours.items()) for side in (production, research)],
    }
    return hashlib.sha256(msgspec.json.encode(decides, order="sorted")).hexdigest()


# --- running -----------------------------------------------------------------------------------


def run_counted(order: tuple[str, Cell]) -> RunDone:
    """Run one cell and count what waits, by cause; samples of occupancy are dropped."""
    identity, cell = order
    begun = time.perf_counter()
    result = run_scheme(cell.setup, cell.jobs, cell.scheme, NoJournal(), sample_ms(cell.jobs))
    kept = msgspec.structs.replace(result, samples=())
    return RunDone(identity, kept, time.perf_counter() - begun)


Results = Mapping[StudyRun, Result]

Answer = Callable[[Results], dict[str, Any]]
"""Makes of the results what ``results.json`` is to hold."""


def run_study(
    study: Study, out: Path, workers: int | None, progress: ProgressBar, answer: Answer
) -> dict[str, Any]:
    """Run what the folder ``out`` does not hold yet; write the answer there, too, and return it."""
    cells = study.cells()
    identities = {played: identity_of(cell) for played, cell in cells.items()}
    by_identity = {identities[played]: cell for played, cell in cells.items()}
    folder = Folder(out, study.identity, STUDY)
    with folder.opened():
        begun = time.perf_counter()
        run = CellRuns(folder, workers, progress, run_counted)
        known = run(by_identity)
        results = {played: known[identity] for played, identity in identities.items()}
        found = answer(results)
        folder.write("results.json", found)
        folder.write("run.json", _run_json(study, run, time.perf_counter() - begun))
    return found


def _run_json(study: Study, run: CellRuns, wall_s: float) -> dict[str, object]:
    """Return what ``run.json`` holds: all that may differ between two runs of one study."""
    return {
        "identity": study.identity,
        "scenario": study.scenario,
        "sources": study.sources,
        "notes": study.notes,
        "ran": run.ran,
        "known": len(run.store.known),
        "wall_s": round(wall_s, 3),
        "runs_s": round(run.cells_s, 3),
        **program_facts(),
    }
