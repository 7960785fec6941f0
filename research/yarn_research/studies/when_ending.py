"""When: do the 90 % intervals of an application's end hold, and are they narrower than its queue's range?

    python -m yarn_research.studies.when_ending [--seed 1] [--output FILE]

The trace is the packaged day of Facebook's cluster (5,894 jobs), played in virtual time on 100 nodes of 8
containers: a job with reduces is production's with even numbers, every other one is research's. Production
preempts research (scheme natjam). A look every 5 s is all that ``daemon/view/when_followed.py`` is given.

The rule, written before it was played: a job is held out until it has ended, because an interval is fixed
when its job first requests tasks (or is first seen, if no look sees it before that), from jobs that had ended
by then. The first ``WARM_UP`` jobs to end are not judged. Of the others, 87 to 93 % of the ends lie in their
intervals, and the median width is at most 0.7 of the 5 to 95 % range of all spans of its queue from the same
instant on. Played once with seed 1; another seed shows how much chance is in it.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from emulator.cluster.timing import HADOOP3
from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from emulator.workload.spec import load
from yarn_research.campaigns.provenance import head
from yarnctl.daemon.view.when_followed import Following
from yarnctl.deciding.model import Snapshot
from yarnctl.deciding.settings import DEFAULT
from yarnctl.errors import BadInput
from yarnctl.journal.chain import MemoryJournal
from yarnctl.traces.job import Job
from yarnctl.units import Resources

NODES, SLOTS = 100, 8
LOOK_MS = 5_000
WARM_UP = 500
COVERED_LEAST, COVERED_MOST = 0.87, 0.93
WIDTH_MOST = 0.7


class Judged(NamedTuple):
    """One held-out job: its queue, how long it took from the look that foretold it, and its interval."""

    queue: str
    span_ms: int
    least_ms: int
    most_ms: int

    @property
    def is_inside(self) -> bool:
        """Return whether the end lies in the interval."""
        return self.least_ms <= self.span_ms <= self.most_ms


class Figures(NamedTuple):
    """What came of all judged jobs."""

    jobs: int
    covered_ratio: float
    width_ratio: float
    by_queue: dict[str, tuple[int, float, float]]

    @property
    def holds(self) -> bool:
        """Return whether coverage and width are within the rule."""
        return COVERED_LEAST <= self.covered_ratio <= COVERED_MOST and self.width_ratio <= WIDTH_MOST


class Looking:
    """Looks at a run every ``LOOK_MS`` and notes what came of each foretold end."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.following = Following()
        self.judged: list[Judged] = []
        self.spans: dict[str, list[int]] = {}
        self._ended = 0
        run.cluster.kernel.at(LOOK_MS, self._look, None)

    def _snapshot(self, now_ms: int) -> Snapshot:
        port = self._run.port
        snapshot = port._snapshot(now_ms)
        shown = []
        for view in snapshot.applications:
            master = port._applications[view.application].master
            shown.append(msgspec.structs.replace(view, progress_ratio=master.progress_ratio(now_ms)))
        return msgspec.structs.replace(snapshot, applications=tuple(shown))

    def _look(self, _: object) -> None:
        kernel = self._run.cluster.kernel
        snapshot = self._snapshot(kernel.now_ms)
        alive = {view.application for view in snapshot.applications}
        for name in [name for name in self.following._followed if name not in alive]:
            self._note(name, kernel.now_ms)
        self.following.look(snapshot, kernel.now_ms)
        kernel.at(kernel.now_ms + LOOK_MS, self._look, None)

    def _note(self, name: str, now_ms: int) -> None:
        self._ended += 1
        followed = self.following._followed[name]
        stage = "requested" if "requested" in followed.passed else "submitted"
        if stage not in followed.passed or self._ended <= WARM_UP:
            return
        known, at_ms = followed.passed[stage]
        self.spans.setdefault(known.queue, []).append(now_ms - at_ms)
        given = followed.given.get("end")
        if given is not None:
            interval = given[2]
            self.judged.append(Judged(known.queue, now_ms - given[1], interval.least_ms, interval.most_ms))


def figures(judged: list[Judged], spans: dict[str, list[int]]) -> Figures:
    """Return coverage and width, of all jobs and by queue."""
    ranges = {}
    for queue, found in spans.items():
        twentieths = statistics.quantiles(found, n=20)
        ranges[queue] = max(1.0, twentieths[-1] - twentieths[0])
    by_queue = {}
    for queue in sorted(ranges):
        mine = [each for each in judged if each.queue == queue]
        if mine:
            by_queue[queue] = (len(mine), *_of(mine, ranges))
    return Figures(len(judged), *_of(judged, ranges), by_queue)


def _of(judged: list[Judged], ranges: dict[str, float]) -> tuple[float, float]:
    covered = sum(each.is_inside for each in judged) / len(judged)
    widths = [(each.most_ms - each.least_ms) / ranges[each.queue] for each in judged]
    return covered, statistics.median(widths)


def jobs_of(spec: str) -> tuple[Job, ...]:
    """Return the jobs of a trace, divided between the two queues."""
    jobs = load(spec, "research").jobs
    return tuple(
        msgspec.structs.replace(job, job_class="production") if job.reduce_ms and place % 2 == 0 else job
        for place, job in enumerate(jobs)
    )


def play(spec: str, seed: int) -> Figures:
    """Play the trace and judge every job after the warm-up."""
    setup = Setup(
        nodes=NODES, node_size=Resources(SLOTS * 1024, SLOTS), timing=HADOOP3, settings=DEFAULT, seed=seed
    )
    run = Run(setup, jobs_of(spec), SCHEMES["natjam"], MemoryJournal())
    looking = Looking(run)
    run.go()
    return figures(looking.judged, looking.spans)


@click.command()
@click.option("--trace", "spec", default="packaged:fb2009-day", show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the record to this file, which must not be there.",
)
def command(spec: str, seed: int, output: Path | None) -> None:
    """Print coverage and width; exit status 1 if one is outside of the rule."""
    record = {"head": head("when-ending"), "trace": spec, "seed": seed, "nodes": NODES, "slots": SLOTS}
    if output is not None and output.exists():
        raise BadInput(str(output), "is there already", "give another name: a record is never changed")
    found = play(spec, seed)
    click.echo(f"{found.jobs} jobs: {found.covered_ratio:.1%} inside, median width {found.width_ratio:.2f}")
    for queue, (jobs, covered, width) in found.by_queue.items():
        click.echo(f"  {queue}: {jobs} jobs, {covered:.1%} inside, median width {width:.2f}")
    if output is not None:
        rule = {
            "warm_up_jobs": WARM_UP,
            "covered_ratio": (COVERED_LEAST, COVERED_MOST),
            "width_ratio": WIDTH_MOST,
        }
        record |= {"rule": rule, "holds": found.holds, "found": found._asdict()}
        output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    sys.exit(not found.holds)


if __name__ == "__main__":
    command()
