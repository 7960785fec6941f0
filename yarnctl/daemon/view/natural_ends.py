"""Without yarnctl: when production would have received its containers, from research tasks' natural ends.

* Tasks of mean length D end at a rate of 1/D for each container (renewal theory, whatever the distribution).
  Lengths come from the tasks that decisions read: the time since a task began, and what remains.
* What remains of a map is extrapolated from its progress, and a map has no progress while it starts. So an
  early look finds it too long. Attempts that were read twice show how long a start takes; it is taken off.
* So research containers end at a rate L: of each application its containers / D. Executors and workers do not
  end by themselves; applications without a known task count as the others do.
* Each container that yarnctl orders joins a queue that L serves, in order: the k-th of a decision would have
  come k/L after the decision, or after those before it. An order that is withdrawn or lost leaves the queue:
  its request is still pending, and the next decision lets it join again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.partitions import merged
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.snapshot_rows import Reader

MODEL_RATIO = 0.08
"""The error that the model itself is taken to have: twins in virtual time err by -10 to 5 % in the mean.

-10 % where each look takes 0.3 s: what is served before it is ordered does not count.
"""
BETWEEN_MS = 4_000
"""How much longer a container lives than its task works: start and end (docs/facts/hadoop.md, section 11)."""
HEARTBEATS_MS = 1_000
"""From a container's end to the next one at its application: half an interval of node and master each."""
SAMPLE_MAX = 200
"""The latest attempts of an application whose lengths count."""
APART_RATIO = 0.05
"""The progress between two looks from which a map's start is found; with less it is rounding."""


class Arrival(NamedTuple):
    """When a container would have come without yarnctl; ``spread_ratio``: the relative error of the wait.

    ``each_ms``: what it adds to the waits behind it.
    """

    at_ms: float
    spread_ratio: float
    each_ms: float = 0.0


class _WorkSeen(NamedTuple):
    """An attempt as a look showed it: how long it has worked, and in all with what remains.

    ``whole_ms`` is infinite if it does not end by itself.
    """

    is_map: bool
    worked_ms: float
    whole_ms: float

    @property
    def done_ratio(self) -> float:
        """Return the progress that the remaining time was extrapolated from."""
        return self.worked_ms / self.whole_ms if self.whole_ms else 1.0


class _Attempt(NamedTuple):
    """The first and the newest look at an attempt."""

    first: _WorkSeen
    newest: _WorkSeen

    def start_ms(self) -> float | None:
        """Return how long a map worked before it made progress; None: not known from two looks."""
        done_ratio = self.newest.done_ratio - self.first.done_ratio
        if not self.newest.is_map or done_ratio < APART_RATIO:
            return None
        apart_ms = self.newest.worked_ms - self.first.worked_ms
        return max(0.0, self.newest.worked_ms - self.newest.done_ratio / done_ratio * apart_ms)

    def length_ms(self, start_ms: float) -> float | None:
        """Return how long the attempt works in all, after an ordinary start; None: it has hardly worked."""
        read = self.newest
        if not read.is_map or not start_ms:
            return read.whole_ms
        return (
            None
            if read.worked_ms <= start_ms
            else read.whole_ms * (1 - start_ms / read.worked_ms) + max(0.0, start_ms - BETWEEN_MS)
        )


class NaturalEnds:
    """Follows the recorded looks; ``arrivals`` is called with each decision.

    ``pending``: containers that each application requests, by the newest look.
    """

    def __init__(self) -> None:
        self.pending: dict[str, int] = {}
        self._rows: Reader | None = None
        self._attempts: dict[str, dict[str, _Attempt]] = {}
        self._starts: dict[str, list[float]] = {}
        self._lengths: dict[str, list[float]] = {}
        self._start_ms = 0.0
        self._containers: dict[str, int] = {}
        self._free_at_ms = 0.0

    def begin(self) -> None:
        """A controller begins: its looks are whole again."""
        self._rows, self._containers = Reader(), {}
        self._attempts, self._starts, self._lengths = {}, {}, {}

    def look(self, observed: Observed, settings: Settings) -> None:
        """Take a recorded look."""
        if self._rows is None:
            return  # the looks before it were pruned
        if observed.change is not None:
            views = merged(self._rows.snapshot(observed.change)).applications
            self.pending = {each.application: sum(row.count for row in each.requests) for each in views}
            research = [each for each in views if settings.may_be_preempted(each.queue)]
            self._containers = {each.application: max(0, each.containers - 1) for each in research}
            self._attempts = {name: self._attempts.get(name, {}) for name in self._containers}
            self._starts = {name: each for name, each in self._starts.items() if name in self._attempts}
            self._lengths = {name: each for name, each in self._lengths.items() if name in self._attempts}
        at_ms = observed.at_ms if observed.as_of_ms is None else observed.as_of_ms
        for name, tasks in observed.tasks.items():
            if name in self._attempts:
                _note(self._attempts[name], tasks, at_ms)
                self._starts.pop(name, None)
                self._lengths.pop(name, None)

    def arrivals(self, at_ms: int, containers: int) -> list[Arrival] | None:
        """Return when so many more containers would have come; None: no task's end is known."""
        lengths = self._known_lengths()
        sample = [length for each in lengths.values() for length in each]
        others = _rate(sample)
        rate = sum(
            count * (_rate(lengths[name]) if lengths[name] else others)
            for name, count in self._containers.items()
        )
        if rate <= 0:
            return None
        ends = [length for length in sample if length < math.inf]
        mean = sum(ends) / len(ends)
        spread = math.sqrt(sum((each - mean) ** 2 for each in ends)) / len(ends) / mean
        begin_ms = max(self._free_at_ms, float(at_ms))
        self._free_at_ms = begin_ms + containers / rate
        begin_ms += HEARTBEATS_MS
        return [Arrival(begin_ms + place / rate, spread, 1 / rate) for place in range(1, containers + 1)]

    def _known_lengths(self) -> Mapping[str, list[float]]:
        """Return how long attempts work in all, by application; infinite: they do not end by themselves.

        What was found stays until the application's tasks are read again, or the start changes.
        """
        for name, attempts in self._attempts.items():
            if name not in self._starts:
                starts = (each.start_ms() for each in attempts.values())
                self._starts[name] = [each for each in starts if each is not None]
        known = [start for starts_ms in self._starts.values() for start in starts_ms]
        start_ms = round(median(known), -2) if known else 0.0
        if start_ms != self._start_ms:
            self._start_ms, self._lengths = start_ms, {}
        for name, attempts in self._attempts.items():
            if name not in self._lengths:
                lengths = (each.length_ms(start_ms) for each in attempts.values())
                self._lengths[name] = [each for each in lengths if each is not None]
        return self._lengths

    def leave(self, arrivals: Iterable[Arrival], at_ms: int) -> None:
        """Let ordered containers that would not have come yet leave the queue.

        Their requests are ordered again, or are gone.
        """
        self._free_at_ms -= sum(each.each_ms for each in arrivals if each.at_ms > at_ms)


def _rate(lengths: Sequence[float]) -> float:
    """Return how many of such tasks end in a ms, for each container of them."""
    ends = [length for length in lengths if length < math.inf]
    if not ends:
        return 0.0
    return len(ends) / len(lengths) / (sum(ends) / len(ends) + BETWEEN_MS)


def _note(attempts: dict[str, _Attempt], tasks: Iterable[TaskView], at_ms: int) -> None:
    """Note a look at tasks; the attempts that were read longest ago are dropped."""
    for task in tasks:
        is_map, worked_ms = task.kind == "map", float(at_ms - task.since_ms)
        if task.kind not in ("map", "reduce"):
            read = _WorkSeen(is_map, worked_ms, math.inf)
        elif task.remaining_ms >= 0 and worked_ms >= 0:
            read = _WorkSeen(is_map, worked_ms, worked_ms + task.remaining_ms)
        else:
            continue
        before = attempts.pop(task.attempt, None)
        attempts[task.attempt] = _Attempt(read if before is None else before.first, read)
    while len(attempts) > SAMPLE_MAX:
        del attempts[next(iter(attempts))]
