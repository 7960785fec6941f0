"""Equal to undisturbed: jobs suspended 1 to 5 times at random moments, beside the same jobs left alone.

Law: a run counts as equal only if every part has the same bytes as without runner and without suspensions,
side files too, the final counters are the same, every key group was computed, and none that a checkpoint held
was computed again. A run in which nothing was suspended proves nothing, nor does a planted bug that had no
occasion: it is tried again, at other moments. A workload that may not be suspended must be refused with its
reason; where it could be suspended before the reason arose, it must be equal all the same.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import msgspec

from tests.soak.planted import BUGS, plant
from tests.soak.rig import (
    HADOOP_BEATS,
    PATIENCE_S,
    QUICK,
    Counters,
    LiveCluster,
    computed_twice,
    digests,
    live_cluster,
    number_of,
    parts_of,
    read_log,
    total,
    user_counters,
)
from tests.soak.suspending import Asked, Suspender, Victim
from tests.soak.workloads import QUICK_MASTER, WORKLOADS, Workload, job_of, write_input

TICK_S = 0.25
"""As often as the daemon looks while orders are open."""
MOST_TRIES = 5
TIMED = "slow"
"""The workload whose spans are reported: 80 ms a key."""
MANIFEST_TARGET_S, RESUME_TARGET_S = 1.5, 2.0


class Reference(msgspec.Struct):
    """What an undisturbed job without runner left behind; ``start_ms``: container start to first key."""

    parts: dict[str, tuple[int, str]]
    elsewhere: dict[str, tuple[int, str]]
    counters: Counters
    keys: frozenset[bytes]
    start_ms: list[int]


class Run(msgspec.Struct, kw_only=True):
    """One disturbed job. ``differs`` says what is not as it must be; spans in ms."""

    index: int
    workload: str
    variant: int
    times: int
    planted: str = ""
    tries: int = 1
    application: str = ""
    differs: list[str] = []
    groups: int = 0
    attempts: int = 0
    computed_twice: int = 0
    suspended: int = 0
    saved: int = 0
    refused: int = 0
    asked: list[Asked] = []
    notes: list[str] = []
    manifest_ms: list[int] = []
    resume_ms: list[int] = []
    took_ms: int = 0


class Job(NamedTuple):
    """A job that runs now: a run, or a reference if there is none."""

    workload: Workload
    variant: int
    folder: Path
    application: str
    since_s: float
    run: Run | None = None
    victim: Victim | None = None


class Campaign:
    """All runs on one cluster, ``jobs`` at a time."""

    def __init__(
        self,
        cluster: LiveCluster,
        seed: int,
        jobs: int,
        say: Callable[[str], object],
        variants: int,
        settings: Mapping[str, str],
    ) -> None:
        self.cluster = cluster
        self.seed = seed
        self.jobs = jobs
        self.say = say
        self.variants = variants
        self.settings = settings
        self.references: dict[tuple[str, int], Reference] = {}
        self.runs: list[Run] = []
        self._sources: dict[tuple[str, int], Path] = {}
        self._active: list[Job] = []
        self._unjudged: list[Job] = []
        self._waiting: list[Callable[[], Job]] = []

    def play(self, runs: int, workloads: Sequence[str], planted: Sequence[str] = ()) -> None:
        """Run the references, all runs, and one for each planted bug; what became of them is in ``runs``."""
        made = [
            Run(index=runs + at, workload=BUGS[bug].workload, variant=0, times=3, planted=bug)
            for at, bug in enumerate(planted)
        ]
        made += [self._plan(index, workloads) for index in range(runs)]
        needed = dict.fromkeys((run.workload, run.variant) for run in made)
        waiting = self._waiting = [partial(self._start, *key) for key in needed]
        waiting += [partial(self._start, run.workload, run.variant, run) for run in made]
        with contextlib.closing(self.cluster.attach()) as port:
            self._suspender = Suspender(self.cluster, port)
            while waiting or self._active:
                began_s = time.monotonic()
                while waiting and len(self._active) < self.jobs:
                    self._active.append(waiting.pop(0)())
                self._suspender.tick()
                self._collect()
                threading.Event().wait(max(0.0, TICK_S - (time.monotonic() - began_s)))

    def _plan(self, index: int, workloads: Sequence[str]) -> Run:
        times = self._chance(f"{index}:times").randint(1, 5)
        name = workloads[index % len(workloads)]
        return Run(index=index, workload=name, variant=index // len(workloads) % self.variants, times=times)

    @staticmethod
    def _fresh(run: Run) -> Run:
        return Run(
            index=run.index, workload=run.workload, variant=run.variant, times=run.times, planted=run.planted,
            tries=run.tries + 1,
        )  # fmt: skip

    def _chance(self, what: str) -> random.Random:
        return random.Random(f"{self.seed}:{what}")

    def _start(self, name: str, variant: int, run: Run | None = None) -> Job:
        work = WORKLOADS[name]
        base = self.cluster.folder / f"{name}-{variant}"
        if (name, variant) not in self._sources:
            self._sources[name, variant] = write_input(work, base, f"{self.seed}:{name}:{variant}")
        source = self._sources[name, variant]
        folder = base / ("reference" if run is None else f"run-{run.index}-{run.tries}")
        job = job_of(work, source, folder, pause_ms=0 if run is None else None, settings=self.settings)
        if run is None:
            return Job(work, variant, folder, self.cluster.submit(job), time.monotonic())
        runner = plant(run.planted, folder) if run.planted else None
        job = self.cluster.with_runner(job, work.group_fields, runner=runner, options=work.options)
        run.application = self.cluster.submit(job)
        moments = self._chance(f"{run.index}:moments:{run.tries}")
        victim = Victim(run.application, moments, run.times, work.work_ms, work.pause_ms, work.reduces)
        self._suspender.victims.append(victim)
        return Job(work, variant, folder, run.application, time.monotonic(), run, victim)

    # --- judging ------------------------------------------------------------------------------

    def _collect(self) -> None:
        ended = self.cluster.ended()
        for job in list(self._active):
            late = time.monotonic() - job.since_s > PATIENCE_S
            if job.application not in ended and not late:
                continue
            self._active.remove(job)
            if job.victim is not None:
                self._suspender.drop(job.victim)
            if job.run is None:
                self.references[job.workload.name, job.variant] = self._reference(job)
            elif late:
                job.run.differs.append(f"did not end within {PATIENCE_S:.0f} s")
                self._told(job.run)
            else:
                self._unjudged.append(job)
        for job in list(self._unjudged):
            if (job.workload.name, job.variant) in self.references:
                self._unjudged.remove(job)
                self._judge(job)

    def _counters(self, job: Job) -> Counters:
        """Return the final user counters, and those of MapReduce's own that must be the same."""
        found = total(self.cluster.finished(job.application))
        own = found.get("org.apache.hadoop.mapreduce.TaskCounter", {})
        return {
            **user_counters(found),
            "compared": {name: own.get(name, 0) for name in job.workload.compared},
        }

    def _reference(self, job: Job) -> Reference:
        status, why = self.cluster.ending(job.application)
        if status != "SUCCEEDED":
            raise AssertionError(f"the undisturbed {job.workload.name} {status}: {why}")
        log = read_log(job.folder / "groups")
        firsts = {one.attempt: one.at_ms for one in reversed(log)}
        tasks = self.cluster.finished(job.application)
        starts = {done.attempt: done.started_at_ms for done in tasks.values() if done.kind == "reduce"}
        return Reference(
            parts_of(job.folder / "out"),
            digests(job.folder / "elsewhere"),
            self._counters(job),
            frozenset(one.key for one in log),
            [at_ms - starts[attempt] for attempt, at_ms in firsts.items()],
        )

    def _judge(self, job: Job) -> None:
        run, reference, victim = job.run, self.references[job.workload.name, job.variant], job.victim
        assert run is not None
        assert victim is not None
        status, why = self.cluster.ending(job.application)
        run.took_ms = int((time.monotonic() - job.since_s) * 1000)
        log = read_log(job.folder / "groups")
        twice = computed_twice(log, self.cluster.manifests(job.application, even_aside=True))
        keys = frozenset(one.key for one in log)
        parts, counters = parts_of(job.folder / "out"), self._counters(job)
        run.groups, run.computed_twice = len(keys), len(twice)
        run.attempts = len({one.attempt for one in log})
        run.asked = [asked for plan in victim.tasks.values() for asked in plan.done]
        run.notes = victim.notes
        run.suspended = sum(asked.ending == "suspended" for asked in run.asked)
        run.saved = sum(asked.is_new for asked in run.asked)
        words = job.workload.refused
        said = [*run.notes, *(asked.said for asked in run.asked)]
        run.refused = sum(bool(words) and words in what for what in said)
        if status != "SUCCEEDED":
            run.differs.append(f"{status}: {why}")
        for what, here, there in (
            ("output", parts, reference.parts),
            ("files elsewhere", digests(job.folder / "elsewhere"), reference.elsewhere),
            ("counters", counters, reference.counters),
        ):
            if here != there:
                run.differs.append(f"{what}: {here}, undisturbed {there}")
        if keys != reference.keys:
            run.differs.append(f"{len(reference.keys ^ keys)} groups computed here or there only")
        run.differs += twice
        self._spans(run, {one.attempt: one.at_ms for one in reversed(log)})
        self._settle(job.folder, run)

    def _settle(self, folder: Path, run: Run) -> None:
        """Count a run that shows something, and try one that does not again."""
        if not run.differs:
            shutil.rmtree(folder)
        shown = self.found(run) if run.planted else run.suspended or run.refused or run.differs
        if shown or run.tries == MOST_TRIES:
            self._told(run)
        else:
            again = self._fresh(run)
            self._waiting.append(partial(self._start, again.workload, again.variant, again))

    def _spans(self, run: Run, first_key_at_ms: dict[str, int]) -> None:
        saved = [asked for asked in run.asked if asked.manifest_at_ms]
        run.manifest_ms = [asked.manifest_at_ms - asked.ordered_at_ms for asked in saved if asked.is_new]
        for seen in self.cluster.reduces(run.application):
            number = number_of(seen.attempt)
            resumed = any(number_of(asked.attempt) < number for asked in saved)
            if resumed and seen.attempt in first_key_at_ms:
                run.resume_ms.append(first_key_at_ms[seen.attempt] - seen.started_at_ms)

    def _told(self, run: Run) -> None:
        self.runs.append(run)
        word = "DIFFERS: " + "; ".join(run.differs)[:500] if run.differs else "equal"
        planted = f"with the bug {run.planted} " if run.planted else ""
        refused = f"refused {run.refused} times, " if run.refused else ""
        self.say(
            f"{len(self.runs):4} run {run.index:3} {run.workload:<10} {planted}suspended {run.suspended} of"
            f" {len(run.asked)} asked, {refused}{run.attempts} attempts, {run.took_ms / 1000:.1f} s: {word}"
        )

    # --- summing up ---------------------------------------------------------------------------

    def summary(self) -> dict[str, Any]:
        """Return what the rows of the issue ask for."""
        runs = [run for run in self.runs if not run.planted]
        timed = [run for run in runs if run.workload == TIMED]
        starts = [
            ms for (name, _), one in self.references.items() if name != "long-lines" for ms in one.start_ms
        ]
        plain_ms = median(starts) if starts else 0.0
        resume = [ms - plain_ms for run in timed for ms in run.resume_ms]
        manifest = [float(ms) for run in timed for ms in run.manifest_ms]
        return {
            "runs": len(runs), "different": sum(bool(run.differs) for run in runs),
            "never_suspended": sum(not run.suspended and not run.refused for run in runs),
            "refused": sum(bool(run.refused) for run in runs),
            "by_workload": Counter(run.workload for run in runs),
            "suspensions": sum(run.suspended for run in runs), "checkpoints": sum(run.saved for run in runs),
            "tried_again": sum(run.tries - 1 for run in runs),
            "by_times": Counter(str(run.suspended) for run in runs),
            "computed_twice": sum(run.computed_twice for run in runs),
            "groups": sum(run.groups for run in runs),
            "planted_found": {run.planted: self.found(run) for run in self.runs if run.planted},
            "request_to_manifest_ms": spread(manifest),
            "request_to_manifest_target_ms": MANIFEST_TARGET_S * 1000,
            "plain_start_ms": spread([float(ms) for ms in starts]), "resume_overhead_ms": spread(resume),
            "resume_overhead_target_ms": RESUME_TARGET_S * 1000,
        }  # fmt: skip

    def found(self, run: Run) -> bool:
        """Say whether the campaign noticed a planted bug, in the words that tell it."""
        return any(BUGS[run.planted].says in what for what in run.differs)


def spread(values: list[float]) -> dict[str, float]:
    """Return median, 90th percentile and extremes; empty without values."""
    if not values:
        return {}
    ninth = quantiles(values, n=10, method="inclusive")[8] if len(values) > 1 else values[0]
    return {"n": len(values), "median": median(values), "p90": ninth, "min": min(values), "max": max(values)}


def campaign(
    runs: int,
    seed: int,
    folder: Path,
    *,
    jobs: int = 8,
    quick: bool = False,
    variants: int = 3,
    workloads: Sequence[str] = tuple(WORKLOADS),
    planted: Sequence[str] = (),
    say: Callable[[str], object] = print,
) -> Campaign:
    """Run a campaign in ``folder`` and return it. ``quick``: heartbeats of 100 ms instead of a second."""
    with live_cluster(folder, nodes=8, slots=16, timing=QUICK if quick else HADOOP_BEATS) as cluster:
        played = Campaign(cluster, seed, jobs, say, variants, QUICK_MASTER if quick else {})
        played.play(runs, workloads, planted)
    return played


def main(arguments: Sequence[str]) -> int:
    """``python -m tests.soak equal``: return 1 if any run differs or was never suspended."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak equal")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=10, help="so many jobs at a time")
    parser.add_argument("--quick", action="store_true", help="heartbeats of 100 ms: spans mean less")
    parser.add_argument("--planted", nargs="+", choices=list(BUGS), default=list(BUGS))
    parser.add_argument("--workloads", nargs="+", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--out", type=Path, default=Path("soak-equal.json"))
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="soak-equal-"))
    played = campaign(
        given.runs, given.seed, folder, jobs=given.jobs, quick=given.quick, workloads=given.workloads,
        planted=given.planted, say=lambda line: print(line, flush=True),
    )  # fmt: skip
    summary = played.summary()
    told = {"seed": given.seed, "quick": given.quick, "summary": summary, "runs": played.runs}
    given.out.write_bytes(msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n")
    print(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())
    missed = [name for name, found in summary["planted_found"].items() if not found]
    bad = summary["different"] or summary["never_suspended"] or summary["runs"] < given.runs or missed
    if bad:
        print(f"what differs was kept in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if bad else 0
