"""What one scenario's recorded attempts say of the cluster: the emulator's spans, read off and fitted.

Law: only instants of the calibration's own timetables (``overhead.timetable``) are looked at, and nothing of
any other scenario. Launches are fitted as they were begun: the recorded starts go through the emulator's own
``ProcessorSharing``, and (launch_ms, launch_cpu_ms) is the pair with the least mean absolute deviation until
the first key group, relative to what was seen (no squares: one run on a busy machine must not outweigh the
others). Everything else is a median.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from emulator.cluster.kernel import Kernel
from emulator.cluster.timing import HADOOP3
from yarn_research.campaigns.bench import SHAPE, production, research
from yarn_research.campaigns.schemes import ALL
from yarn_research.campaigns.shared_cpu import ProcessorSharing, SharedCpuTiming, shared_cpu

JOBS = ("production", "research")
CORES = 2
"""Cores of the machine on which the recorded cluster ran, all of its nodes together."""

LINGER_MS = 5000
"""MRAppMaster.shutDownJob: so long a master sleeps after it has unregistered (Hadoop 3.4.2)."""

FITTED = (
    "submit_ms",
    "am_start_ms",
    "launch_ms",
    "launch_cpu_ms",
    "task_commit_ms",
    "job_commit_ms",
    "map_ms",
    "plain_ratio",
    "wrapped_ratio",
    "drain_ms",
    "resume_ms",
)
"""All that is read off."""

ONLY_ATTACHED = ("drain_ms", "resume_ms", "wrapped_ratio")
"""What only runs with yarnctl attached show. Without them it is as ``HADOOP3`` has it, and ``wrapped_ratio``
is ``plain_ratio``: eight numbers are read off then, eleven with them.
"""

LATENCIES_MS = range(0, 2001, 200)
DEMANDS_MS = range(200, 4001, 200)
FINE_MS = range(-200, 201, 25)
"""The pairs that are tried: a coarse net first, then round its best a fine one."""


class Fit(NamedTuple):
    """What was read off: the emulator's timing, a map's length once it is up, how much longer than its
    nominal span a key group takes, alone and fed by the task runner, and what the launches' fit leaves.
    """

    timing: SharedCpuTiming
    map_ms: int
    plain_ratio: float
    wrapped_ratio: float
    launch_error_ratio: float


class Launch(NamedTuple):
    """One recorded start, ms on the run's clock; ``seen_ms`` is how long until it worked, -1: never seen."""

    at_ms: int
    seen_ms: int
    ended_ms: int
    reduce: bool
    again: bool


def launches(run: Mapping[str, Any]) -> list[Launch]:
    """Return every start of a task in a run, maps with their whole length, in the order of time."""
    found = []
    for name, zero_ms in clocks(run):
        table = run[f"{name}_timetable"]
        for began, ended in table["maps"]:
            found.append(Launch(zero_ms + began, ended - began, zero_ms + ended, False, False))
        for task in table["reduces"]:
            for number, row in enumerate(task):
                seen = row[3] - row[0] if row[3] >= 0 else -1
                found.append(Launch(zero_ms + row[0], seen, zero_ms + row[5], True, number > 0))
    return sorted(found)


def clocks(run: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the jobs of a run and their zeros on one clock, the first job's."""
    zeros = {name: run[f"{name}_started_ms"] for name in JOBS if f"{name}_timetable" in run}
    first = min(zeros.values())
    return [(name, at_ms - first) for name, at_ms in zeros.items()]


def launched(starts: Sequence[Launch], launch_ms: int, cpu_ms: int) -> list[int]:
    """Return how long each launch would take, had it been begun when it was; -1 where it was ended before."""
    kernel = Kernel()
    crowd = ProcessorSharing[int](kernel, CORES, CORES)
    took = [-1] * len(starts)

    def up(number: int) -> None:
        took[number] = kernel.now_ms - starts[number].at_ms

    for number, one in enumerate(starts):
        kernel.at(one.at_ms + launch_ms, lambda number: crowd.join(number, cpu_ms, up), number)
        if one.seen_ms < 0:
            kernel.at(max(one.ended_ms, one.at_ms + launch_ms), crowd.leave, number)
    kernel.run()
    return took


def _errors(runs: Iterable[Sequence[Launch]], launch_ms: int, cpu_ms: int) -> list[float]:
    """Return predicted over recorded, less 1, for every reduce's first launch that came to work."""
    return [
        took / one.seen_ms - 1
        for starts in runs
        for one, took in zip(starts, launched(starts, launch_ms, cpu_ms), strict=True)
        if one.reduce and not one.again and one.seen_ms > 0
    ]


def _nearest(runs: Sequence[Sequence[Launch]]) -> tuple[int, int, float]:
    """Return launch_ms and launch_cpu_ms that lie nearest, and the mean absolute deviation that is left."""

    def best(latencies_ms: Iterable[int], demands_ms: Sequence[int]) -> tuple[float, int, int]:
        return min(
            (statistics.mean(abs(error) for error in _errors(runs, launch_ms, cpu_ms)), launch_ms, cpu_ms)
            for launch_ms in latencies_ms
            for cpu_ms in demands_ms
        )

    _, launch_ms, cpu_ms = best(LATENCIES_MS, DEMANDS_MS)
    latencies_ms = [max(0, launch_ms + step) for step in FINE_MS]
    demands_ms = [cpu_ms + step for step in FINE_MS]
    left, launch_ms, cpu_ms = best(latencies_ms, demands_ms)
    return launch_ms, cpu_ms, left


def fit(runs: Sequence[Mapping[str, Any]]) -> Fit:
    """Read the spans off all recorded runs of one scenario.

    What does not occur in it stays as ``HADOOP3`` has it (the cost of suspending, without suspensions), or is
    taken for equal (both kinds of reduces, where only one was seen).
    """
    started = [launches(run) for run in runs]
    launch_ms, cpu_ms, error_ratio = _nearest(started)
    beyond = _beyond(started, launch_ms, cpu_ms)
    timing = msgspec.structs.replace(
        shared_cpu(HADOOP3),
        submit_ms=_submit_ms(runs),
        am_start_ms=max(0, _master_ms(runs) - HADOOP3.am_heartbeat_ms),
        launch_ms=launch_ms,
        launch_cpu_ms=cpu_ms,
        launch_width=CORES,
        machine_cores=CORES,
        machine_nodes=SHAPE.nodes,
        asks_after_beat=True,
        beats_at_exit=True,
        am_linger_ms=LINGER_MS,
        skip_ratio=0.0,
        **_endings(runs),
        **_returns(runs, beyond),
    )
    plain, wrapped = _stretches(runs)
    return Fit(
        timing,
        max(1, _median([span_ms for one, span_ms in beyond if not one.reduce])),
        plain,
        wrapped,
        error_ratio,
    )


def _beyond(starts: Sequence[Sequence[Launch]], launch_ms: int, cpu_ms: int) -> list[tuple[Launch, int]]:
    """Return every start that came to work, and how much longer than its launch it took."""
    return [
        (one, one.seen_ms - took)
        for each in starts
        for one, took in zip(each, launched(each, launch_ms, cpu_ms), strict=True)
        if one.seen_ms >= 0
    ]


def _rows(runs: Sequence[Mapping[str, Any]], state: str) -> list[Sequence[Any]]:
    """Return the attempts at reduces that came to work and ended so."""
    tables = [run[f"{name}_timetable"] for run in runs for name, _ in clocks(run)]
    rows = [row for table in tables for task in table["reduces"] for row in task]
    return [row for row in rows if row[3] >= 0 and row[6] == state]


def _endings(runs: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the spans from the last key group to a task's end, and from the last task's end to the job's."""
    tables = [run[f"{name}_timetable"] for run in runs for name, _ in clocks(run)]
    ends = [table["ended_ms"] - max(row[5] for task in table["reduces"] for row in task) for table in tables]
    commits = [row[5] - row[4] for row in _rows(runs, "SUCCEEDED")]
    return {"task_commit_ms": _median(commits), "job_commit_ms": _median(ends)}


def _returns(runs: Sequence[Mapping[str, Any]], beyond: Sequence[tuple[Launch, int]]) -> dict[str, int]:
    """Return what suspending costs, where somebody was suspended."""
    if not any(run["suspensions"] for run in runs):
        return {}
    stops = [row[5] - row[4] for row in _rows(runs, "KILLED")]
    again = [span_ms for one, span_ms in beyond if one.again]
    return {
        "drain_ms": max(0, _median(stops) - HADOOP3.upload_ms),
        "resume_ms": max(0, _median(again)),
    }


def _median(spans: Sequence[float]) -> int:
    return round(statistics.median(spans))


def _master_ms(runs: Sequence[Mapping[str, Any]]) -> int:
    """Return the span from a master's container to its first map's start, where no map had to wait.

    The master's start is seen for every job; the rest of the span only where containers were free.
    """
    starts, rest = [], []
    for run in runs:
        for name, zero_ms in clocks(run):
            table = run[f"{name}_timetable"]
            starts.append(table["master_ms"] - run[f"{name}_am_wait_s"] * 1000)
            if not zero_ms:
                rest.append(min(began for began, _ in table["maps"]) - table["master_ms"])
    return _median(starts) + _median(rest)


def _submit_ms(runs: Sequence[Mapping[str, Any]]) -> int:
    """Return what a master waits for its container beyond a node's next heartbeat, where there is room."""
    waits = [run[f"{name}_am_wait_s"] * 1000 for run in runs for name, zero_ms in clocks(run) if not zero_ms]
    return max(0, _median(waits) - HADOOP3.nm_heartbeat_ms // (SHAPE.nodes + 1))


def _stretches(runs: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return work seen over work planned: of plain reduces, and of those under the task runner."""
    plans = {plan.name: plan for plan in (production(), research(attached=False))}
    seen: dict[bool, list[float]] = {False: [], True: []}
    for run in runs:
        for name, _ in clocks(run):
            planned_ms = sum(plans[name].groups) * plans[name].key_s * 1000
            wrapped = ALL[run["scheme"]].attached and name == "research"
            seen[wrapped].append(_worked_ms(run, name) / planned_ms)
    plain, fed = (statistics.median(seen[wrapped] or seen[not wrapped]) for wrapped in (False, True))
    return plain, fed


def _worked_ms(run: Mapping[str, Any], name: str) -> int:
    """Return the work of a job's reduces without what was done twice: then only who got to the end counts."""
    whole = run[f"{name}_twice"] == 0
    rows = [row for task in run[f"{name}_timetable"]["reduces"] for row in task if row[3] >= 0]
    return sum(row[4] - row[3] for row in rows if whole or row[6] == "SUCCEEDED")
