"""The papers' metrics of a replay.

Law: each is a formula over the outcome's columns, in integers until the last division. Whoever
never ran spent nothing; ratios of work are over the computation of *all* jobs of the trace.
What is taken over time (fairness, equality, utilisation, idle groups) is taken while the trace
lasts, from its first submission to its last: an allocator that never drops a job continues for
months on a cluster that empties, which has no bearing on sharing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from yarn_research.admission.traces.trace import ReplayOutcome, Trace

INTERVAL_MS = 60_000
"""Fairness and equality are taken at every full minute (Justice 5.1: "60-sec intervals")."""
PARTS = 100_000
CONFIDENCE = 1.959964
"""Standard deviations of a normal distribution around 0.95 of it."""


class Bar(NamedTuple):
    """A mean over intervals, half the width of its 0.95 confidence interval, and how many there were."""

    mean: float
    bar: float
    intervals: int


class Scores(msgspec.Struct, frozen=True):
    """All metrics of one replay; times in ms, ratios between 0 and 1."""

    jobs: int
    met: int
    missed: int
    dropped: int
    sdr: float
    ptr: float
    wtr: float
    fairness: Bar
    equality: Bar
    utilisation: float


def scores(trace: Trace, outcome: ReplayOutcome) -> Scores:
    """Return every metric of one replay."""
    jobs, met = len(trace), int(outcome.met.sum())
    demand, minutes = demands(trace, outcome), Minutes(trace, outcome)
    ran = int((outcome.containers > 0).sum())
    return Scores(
        jobs=jobs,
        met=met,
        missed=ran - met,
        dropped=jobs - ran,
        sdr=met / jobs,
        ptr=productive_ratio(trace, outcome),
        wtr=wasted_ratio(trace, outcome),
        fairness=_fairness(demand, outcome.containers, minutes),
        equality=_equality(demand, outcome.containers, minutes),
        utilisation=utilisation(trace, outcome),
    )


def productive_ratio(trace: Trace, outcome: ReplayOutcome) -> float:
    """PTR = sum of T_i over the jobs that met their deadline / sum of T_j over all jobs.

    T is a job's computation over all its tasks (PYTHIA III, Justice 5.3).
    """
    return int(trace.work_ms[outcome.met].sum()) / int(trace.work_ms.sum())


def wasted_ratio(trace: Trace, outcome: ReplayOutcome) -> float:
    """WTR = computation spent on jobs that did not meet their deadline / sum of T_j over all jobs.

    A job that was ended counts with what it had computed, a dropped one with nothing ("wasted
    work: computation time spent for jobs that miss their deadlines and are terminated
    midstream", PYTHIA V.B). Justice's formula sums T_i of all "failed or dropped" jobs, by which
    WTR would be 1 - PTR: its text and figures say otherwise.
    """
    missed = (outcome.containers > 0) & ~outcome.met
    return int(spent_ms(trace, outcome)[missed].sum()) / int(trace.work_ms.sum())


def spent_ms(trace: Trace, outcome: ReplayOutcome) -> NDArray[np.int64]:
    """Return the computation of each job that was done, in container-ms."""
    if outcome.spent_ms is not None:
        return outcome.spent_ms
    held = outcome.containers * (outcome.ended_at_ms - outcome.started_at_ms)
    result: NDArray[np.int64] = np.minimum(held, trace.work_ms)
    return result


def utilisation(trace: Trace, outcome: ReplayOutcome) -> float:
    """Busy / (idle + busy) (Justice 5.4): container time held while the trace lasts / (capacity x time)."""
    first_ms, last_ms = lasting(trace)
    ran = outcome.containers > 0
    held_ms = np.minimum(outcome.ended_at_ms[ran], last_ms) - outcome.started_at_ms[ran]
    busy = int((outcome.containers[ran] * np.maximum(held_ms, 0)).sum())
    return busy / (outcome.capacity * (last_ms - first_ms))


def lasting(trace: Trace) -> tuple[int, int]:
    """Return the first instant of the trace and the one after its last submission, in ms."""
    return int(trace.submitted_at_ms[0]), int(trace.submitted_at_ms[-1]) + 1


def demands(trace: Trace, outcome: ReplayOutcome) -> NDArray[np.int64]:
    """Return D_i, the most containers a job can be given: min(tasks, capacity)."""
    return np.minimum(trace.tasks, outcome.capacity)


def fairness(trace: Trace, outcome: ReplayOutcome) -> Bar:
    """Jain's index of F_i = min(A_i / D_i, 1): (sum F)^2 / (n sum F^2), at every full minute.

    Over the jobs that are there (submitted, and neither done nor rejected); a waiting job has A_i
    = 0 (Justice 5.1). Minutes without jobs, or without a job that has containers, have no index. F is
    rounded down to hundred-thousandths, so that the sums are exact.
    """
    return _fairness(demands(trace, outcome), outcome.containers, Minutes(trace, outcome))


def _fairness(demand: NDArray[np.int64], containers: NDArray[np.int64], minutes: Minutes) -> Bar:
    fraction = containers * PARTS // demand
    first = minutes.running(fraction).astype(np.float64)
    second = minutes.running(fraction * fraction).astype(np.float64)
    some = second > 0
    return _bar(first[some] ** 2 / (minutes.there(None)[some] * second[some]))


def equality(trace: Trace, outcome: ReplayOutcome) -> Bar:
    """Jain's index of A_i within each class of equal demand, averaged with the classes' numbers of jobs.

    (sum over classes of n_c J_c) / n with J_c = (sum A)^2 / (n_c sum A^2), at every full minute
    (Justice 5.1). A class in which no job has containers is equal: J_c = 1.
    """
    return _equality(demands(trace, outcome), outcome.containers, Minutes(trace, outcome))


def _equality(demand: NDArray[np.int64], containers: NDArray[np.int64], minutes: Minutes) -> Bar:
    there = minutes.there(None)
    total = _of_one(minutes, demand == 1) + _of_several(minutes, demand, containers)
    some = (there > 0) & (minutes.running(containers) > 0)
    return _bar(total[some] / there[some])


class Minutes:
    """Sums over jobs at every full minute, by differences: time for jobs plus minutes, not their product.

    ``submitted``, ``started`` and ``ended`` are the first full minutes at or after these instants,
    at most ``count``, one after the last; a job that never started has ``count``.
    """

    def __init__(self, trace: Trace, outcome: ReplayOutcome) -> None:
        first_ms, last_ms = lasting(trace)
        self.count = 1 + (last_ms - 1 - first_ms) // INTERVAL_MS
        self.submitted = self._minute(trace.submitted_at_ms - first_ms)
        self.ended = self._minute(outcome.ended_at_ms - first_ms)
        started = self._minute(outcome.started_at_ms - first_ms)
        self.started = np.where(outcome.containers > 0, started, self.count)
        self._there = np.flatnonzero(self.submitted < self.ended)
        self._running = np.flatnonzero(self.started < self.ended)

    def there(self, values: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Sum values (None: ones) over the jobs from their submission to their end."""
        return self._summed(self.submitted, self._there, values)

    def running(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum values over the jobs from their start to their end."""
        return self._summed(self.started, self._running, values)

    def _summed(
        self, begin: NDArray[np.int64], jobs: NDArray[np.int64], values: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """Doubles hold these sums exactly: they stay below 2^53."""
        weights = None if values is None else values[jobs].astype(np.float64)
        come = np.bincount(begin[jobs], weights, self.count + 1)
        gone = np.bincount(self.ended[jobs], weights, self.count + 1)
        result: NDArray[np.int64] = np.cumsum((come - gone).astype(np.int64))[:-1]
        return result

    def _minute(self, at_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.minimum(-(-at_ms // INTERVAL_MS), self.count)


def _of_one(minutes: Minutes, one: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return n J of the class of demand 1, for every minute: a job has one or none, so J = running / n."""
    chosen = one.astype(np.int64)
    running = minutes.running(chosen)
    return np.where(running > 0, running, minutes.there(chosen)).astype(np.float64)


def _of_several(
    minutes: Minutes, demand: NDArray[np.int64], containers: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the sum over the other classes of n_c J_c for every minute, by each class's changes."""
    rows = _changes(minutes, demand, containers)
    order = np.argsort(rows[0] * (minutes.count + 1) + rows[1])  # the order of equals does not change a sum
    classes, at = rows[0][order], rows[1][order]
    # each class's changes cancel out, so that running sums over all classes are those of one
    there, held, second = (np.cumsum(column[order]) for column in rows[2:])
    last = np.append((np.diff(classes) != 0) | (np.diff(at) != 0), True)[: len(at)]  # of its class and minute
    classes, at = classes[last], at[last]
    there, first, second = there[last], held[last].astype(np.float64), second[last]
    jain: NDArray[np.float64] = first * first / np.maximum(second, 1)  # n_c J_c
    index: NDArray[np.float64] = np.where(second > 0, jain, there.astype(np.float64))
    before = np.concatenate(([0.0], index[:-1]))[: len(index)]
    before[np.concatenate(([True], classes[1:] != classes[:-1]))[: len(before)]] = 0.0
    changes = np.bincount(at, index - before, minutes.count + 1).astype(np.float64)
    result: NDArray[np.float64] = np.cumsum(changes)[: minutes.count]
    return result


def _changes(
    minutes: Minutes, demand: NDArray[np.int64], containers: NDArray[np.int64]
) -> tuple[NDArray[np.int64], ...]:
    """Return what changes when, as columns: class, minute, jobs there, sum A, sum A^2."""
    jobs = np.flatnonzero((demand > 1) & (minutes.submitted < minutes.ended))
    demand, submitted, started, ended = (
        column[jobs] for column in (demand, minutes.submitted, minutes.started, minutes.ended)
    )
    held = np.where(started < ended, containers[jobs], 0)
    now = np.where(started == submitted, held, 0)  # what a job has in the minute it comes in
    later = np.flatnonzero(held != now)
    one, none = np.ones(len(jobs), dtype=np.int64), np.zeros(len(later), dtype=np.int64)
    columns = (
        (demand, demand, demand[later]),
        (submitted, ended, started[later]),
        (one, -one, none),
        (now, -held, held[later]),
    )
    classes, at, there, first = (np.concatenate(parts) for parts in columns)
    return classes, at, there, first, np.sign(first) * first * first


def _bar(values: NDArray[np.float64]) -> Bar:
    """Return mean and 0.95 bar: 1.96 s / sqrt(k), s the sample standard deviation."""
    count = len(values)
    if not count:
        return Bar(1.0, 0.0, 0)
    spread = float(values.std(ddof=1)) if count > 1 else 0.0
    return Bar(float(values.mean()), CONFIDENCE * spread / count**0.5, count)


# --- idle groups (Justice Fig. 8) -------------------------------------------------------------


class IdleGroups(NamedTuple):
    """How long groups of ``size`` containers stay idle: spans in ms, and how many groups had each."""

    size: int
    spans_ms: NDArray[np.int64]
    groups: NDArray[np.int64]
    present_ratio: float

    def longer_than(self, span_ms: int) -> float:
        """Return the share of idle groups that stay idle longer (1 - CDF)."""
        total = int(self.groups.sum())
        return int(self.groups[self.spans_ms > span_ms].sum()) / total if total else 0.0


def idle_groups(trace: Trace, outcome: ReplayOutcome, size: int) -> IdleGroups:
    """Return the idle times of groups of ``size`` containers that are idle at the same time.

    At each instant floor(idle / size) groups are idle; what becomes idle last is taken first. The
    i-th group's idle times are thus the spans in which at least i groups are idle. ``present_ratio``
    is the part of the time with at least one. (Justice 5.4 gives no rule for the members of a group.)
    """
    at_ms, idle = idle_steps(trace, outcome)
    level = idle // size
    stack: list[list[int]] = []  # [since, groups]
    spans: list[int] = []
    groups: list[int] = []
    height = 0
    end_ms = lasting(trace)[1]
    for now, wanted in zip([*at_ms.tolist(), end_ms], [*level.tolist(), 0], strict=True):
        if wanted > height:
            stack.append([now, wanted - height])
        while wanted < height:
            since, count = stack[-1]
            gone = min(count, height - wanted)
            spans.append(now - since)
            groups.append(gone)
            height -= gone
            stack[-1][1] -= gone
            if not stack[-1][1]:
                stack.pop()
        height = wanted
    lengths = np.diff(np.append(at_ms, end_ms))
    present = int(lengths[level > 0].sum()) / max(1, int(lengths.sum()))
    kept = np.array(spans, dtype=np.int64) > 0
    return IdleGroups(size, _ints(spans)[kept], _ints(groups)[kept], present)


def idle_steps(trace: Trace, outcome: ReplayOutcome) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the idle containers as steps: instants, and what is idle from each of them on."""
    ran = outcome.containers > 0
    held = outcome.containers[ran]
    first = np.array([int(trace.submitted_at_ms[0])])
    at_ms = np.concatenate((first, outcome.started_at_ms[ran], outcome.ended_at_ms[ran]))
    change = np.concatenate((np.zeros(1, dtype=np.int64), -held, held))
    order = np.argsort(at_ms, kind="stable")
    at_ms, idle = at_ms[order], outcome.capacity + np.cumsum(change[order])
    last = np.append(np.diff(at_ms) != 0, True) & (at_ms < lasting(trace)[1])
    return at_ms[last], idle[last]


def _ints(values: list[int]) -> Any:
    return np.array(values, dtype=np.int64)
