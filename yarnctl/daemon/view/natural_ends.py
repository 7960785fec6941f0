"""Without yarnctl: when production would have received its containers, from research tasks' natural ends.

* Tasks of mean length D end at a rate of 1/D for each container (renewal theory, whatever the distribution).
  Lengths come from the tasks that decisions read: the time since a task began, and what remains.
* So research containers end at a rate L: of each application its containers / D. Executors and workers do not
  end by themselves; applications without a known task count as the others do.
* Each container that yarnctl orders joins a queue that L serves, in order: the k-th of a decision would have
  come k/L after the decision, or after those before it. An order that is withdrawn or lost leaves the queue:
  its request is still pending, and the next decision lets it join again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.partitions import merged
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.snapshot_rows import Reader

MODEL_RATIO = 0.05
"""The error that the model itself is taken to have."""
BETWEEN_MS = 4_000
"""How much longer a container lives than its task works: start and end (docs/facts/hadoop.md, section 11)."""
HEARTBEATS_MS = 1_000
"""From a container's end to the next one at its application: half an interval of node and master each."""
SAMPLE_MAX = 200
"""The newest tasks of an application whose lengths count."""


class Arrival(NamedTuple):
    """When a container would have come without yarnctl; ``spread_ratio``: the relative error of the wait.

    ``each_ms``: what it adds to the waits behind it.
    """

    at_ms: float
    spread_ratio: float
    each_ms: float = 0.0


class NaturalEnds:
    """Follows the recorded looks; ``arrivals`` is called with each decision.

    ``pending``: containers that each application requests, by the newest look.
    """

    def __init__(self) -> None:
        self.pending: dict[str, int] = {}
        self._rows: Reader | None = None
        self._lengths: dict[str, list[float]] = {}  # of tasks that do not end by themselves: infinite
        self._containers: dict[str, int] = {}
        self._free_at_ms = 0.0

    def begin(self) -> None:
        """A controller begins: its looks are whole again."""
        self._rows, self._lengths, self._containers = Reader(), {}, {}

    def look(self, observed: Observed, settings: Settings) -> None:
        """Take a recorded look."""
        if self._rows is None:
            return  # the looks before it were pruned
        if observed.change is not None:
            views = merged(self._rows.snapshot(observed.change)).applications
            self.pending = {each.application: sum(row.count for row in each.requests) for each in views}
            research = [each for each in views if settings.may_be_preempted(each.queue)]
            self._containers = {each.application: max(0, each.containers - 1) for each in research}
            self._lengths = {name: self._lengths.get(name, []) for name in self._containers}
        at_ms = observed.at_ms if observed.as_of_ms is None else observed.as_of_ms
        for name, tasks in observed.tasks.items():
            if name in self._lengths:
                self._lengths[name] += _lengths(tasks, at_ms)
                del self._lengths[name][:-SAMPLE_MAX]

    def arrivals(self, at_ms: int, containers: int) -> list[Arrival] | None:
        """Return when so many more containers would have come; None: no task's end is known."""
        sample = [length for lengths in self._lengths.values() for length in lengths]
        others = _rate(sample)
        rate = sum(
            count * (_rate(self._lengths[name]) if self._lengths[name] else others)
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


def _lengths(tasks: Iterable[TaskView], at_ms: int) -> list[float]:
    """Return how long each task takes in all."""
    found = []
    for task in tasks:
        if task.kind not in ("map", "reduce"):
            found.append(math.inf)
        elif task.remaining_ms >= 0 and task.since_ms <= at_ms:
            found.append(float(at_ms - task.since_ms + task.remaining_ms))
    return found
