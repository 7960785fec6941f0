"""Promises of jobs that overrun, in virtual time: are they known to be late before their deadline?

    python -m tests.soak late-promises [--promises 50] [--seed 1]

Half of the jobs compute what was estimated (0.7 to 1.15 times it), the others overrun (1.7 to 3.5 times). A
promise gives a job 1.4 times as long as its estimate takes on its share of the cluster. Looks, one a second,
show progress as a ResourceManager does. Law: what was missed is read from the cluster, not from the watch.
Exit status 1 if fewer than 90 % of the missed promises are known before their deadline, or if more than 10 %
of the kept ones were called late.
"""

from __future__ import annotations

import argparse
import random
from typing import NamedTuple

import msgspec

from emulator.virtual.run import Run
from emulator.virtual.schemes import SCHEMES
from tests.property.stories import job, three_nodes
from yarnctl.deciding.admission.late.late_promises import LateWatch, RunningPromise, passed_ratio
from yarnctl.deciding.admission.records import Phase, Phases
from yarnctl.traces.job import Job

SHARE = 8
"""Tasks at once: three nodes of four containers, of which production may use 80 %, less its master."""
LOOK_MS = 1_000
TASK_MS = 20_000
FIXED_MS = 20_000
GIVEN_RATIO = 1.4
DETECTED_LEAST, FALSE_MOST = 0.9, 0.1


class Promised(NamedTuple):
    """A job and its promise; ``overruns``: it computes more than was estimated."""

    job: Job
    deadline_at_ms: int
    overruns: bool


class Watched(NamedTuple):
    """What came of a promise; ``known_at_ms``: when it was called late first (None: never)."""

    overruns: bool
    missed: bool
    deadline_at_ms: int
    known_at_ms: int | None

    @property
    def is_detected(self) -> bool:
        """Whether a missed promise was known before its deadline."""
        return self.missed and self.known_at_ms is not None and self.known_at_ms < self.deadline_at_ms


def promises_of(count: int, seed: int) -> list[Promised]:
    """Return so many overrunning jobs, and as many that do not."""
    chance, found, at_ms = random.Random(seed), list[Promised](), 0
    for number in range(2 * count):
        overruns = number % 2 == 0
        factor = chance.uniform(1.7, 3.5) if overruns else chance.uniform(0.7, 1.15)
        maps, reduces = chance.randint(2, 6) * SHARE, chance.randint(0, SHARE)
        lengths = [round(TASK_MS * factor * chance.uniform(0.8, 1.2)) for _ in range(maps + reduces)]
        waves = -(-maps // SHARE) + (reduces > 0)
        span_ms = round(GIVEN_RATIO * (FIXED_MS + waves * TASK_MS * 1.2))
        wanted = job(
            f"j{number}", "production", at_ms, maps, reduces,
            map_ms=tuple(lengths[:maps]), reduce_ms=tuple(lengths[maps:]),
        )  # fmt: skip
        found.append(Promised(wanted, at_ms + span_ms, overruns))
        at_ms += chance.randint(150_000, 300_000)
    return found


def estimated(wanted: Job) -> Phases:
    """Return the phases of the estimate: the tasks are known, their length is the usual one."""
    kinds = (("map", len(wanted.map_ms)), ("reduce", len(wanted.reduce_ms)))
    return Phases(tuple(Phase(kind, tasks, TASK_MS, 0) for kind, tasks in kinds if tasks), 0, 0)


class Watching:
    """Looks at a run each second."""

    def __init__(self, run: Run, promises: list[Promised]) -> None:
        self._run = run
        self._promises = {each.job.name: each for each in promises}
        self._watch = LateWatch()
        self.known_at_ms: dict[str, int] = {}
        run.cluster.kernel.at(LOOK_MS, self._look, None)

    def _look(self, _: object) -> None:
        now_ms = self._run.cluster.kernel.now_ms
        shown = [
            RunningPromise(
                master.job.name,
                master.app.submitted_at_ms,
                self._promises[master.job.name].deadline_at_ms,
                passed_ratio(float(master.progress_ratio(now_ms)), estimated(master.job), SHARE),
            )
            for master in self._run.cluster.masters
            if master.app.containers and master.app.finished_at_ms is None
        ]
        for late in self._watch.look(shown, now_ms):
            self.known_at_ms.setdefault(late.admission, now_ms)
        self._run.cluster.kernel.at(now_ms + LOOK_MS, self._look, None)


def play(count: int, seed: int) -> list[Watched]:
    """Play the promises; return what came of each."""
    promises = promises_of(count, seed)
    setup = msgspec.structs.replace(three_nodes(am_ratio=0.5), seed=seed)
    run = Run(setup, tuple(each.job for each in promises), SCHEMES["natjam"])
    watching = Watching(run, promises)
    result = run.go()
    ended = {each.name: each.submitted_at_ms + each.completion_ms for each in result.jobs}
    return [
        Watched(
            each.overruns,
            ended[each.job.name] > each.deadline_at_ms,
            each.deadline_at_ms,
            watching.known_at_ms.get(each.job.name),
        )
        for each in promises
    ]


def figures(found: list[Watched]) -> tuple[int, int, int, int]:
    """Return missed promises, those detected in time, kept promises, and those called late."""
    missed = [each for each in found if each.missed]
    kept = [each for each in found if not each.missed]
    detected = sum(each.is_detected for each in missed)
    return len(missed), detected, len(kept), sum(each.known_at_ms is not None for each in kept)


def main(arguments: list[str]) -> int:
    """Play the promises and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak late-promises", description=__doc__)
    parser.add_argument("--promises", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    missed, detected, kept, alarms = figures(play(options.promises, options.seed))
    print(f"{missed} promises missed, {detected} known before the deadline")
    print(f"{kept} promises kept, {alarms} called late")
    return 0 if detected >= DETECTED_LEAST * missed and alarms <= FALSE_MOST * kept else 1
