"""Compare the tasks of a Spark application that ran again after drains with what was expected of them.

* A drain counts when its result is known: its stage has ended, or, in a map stage, its tasks had twice their
  slow time since it left. Reduce tasks are counted only when their stage has ended.
* What ran again is what completed beyond once, by the driver's list of stages. So tasks that ran again for
  another reason make later predictions larger, never smaller.
* The state is that of one daemon. The next one begins with the expectation alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from yarnctl.frameworks.spark.cost import AgainKind, AgainRatios, AgainTasks, DriverLook, ExecutorCost
from yarnctl.frameworks.spark.rest import Stage

PRIOR_TASKS = 4.0  # The expectation counts like so many tasks that ran again as expected
RATIO_MIN, RATIO_MAX = 0.25, 4.0
DRAINS_MAX = 200  # The newest drains of an application that count
_DRAINED = re.compile("decommission", re.IGNORECASE)


def was_drained(removal: str) -> bool:
    """Return whether an executor was decommissioned, by its driver's ``removeReason``."""
    return _DRAINED.search(removal) is not None


class Drained(NamedTuple):
    """A drained executor: what was expected in a stage, what had run again there before, and when it left."""

    expected: AgainTasks
    before: int
    gone_at_ms: int


class TasksAgain:
    """The drains of one application."""

    def __init__(self) -> None:
        self._expected: dict[str, tuple[tuple[AgainTasks, int], ...]] = {}
        self._drained: list[Drained] = []
        self._counted: dict[int, int] = {}

    def expect(self, look: DriverLook, costs: Mapping[str, ExecutorCost]) -> None:
        """Note what is expected of each executor; not while some are leaving."""
        self._expected = {
            name: tuple((each, _again(each.stage, look.attempts)) for each in cost.again)
            for name, cost in costs.items()
        }

    def ratios(self, look: DriverLook, now_ms: int) -> AgainRatios:
        """Note which executors have left, and return by which factor the expectation was wrong so far."""
        for row in look.executors:
            expected = () if row.is_active else self._expected.pop(row.executor, ())
            if was_drained(row.remove_reason):
                self._drained += [Drained(each, before, now_ms) for each, before in expected]
        self._drained = self._drained[-DRAINS_MAX:]
        status = {each.stage: each.status for each in sorted(look.attempts, key=lambda each: each.attempt)}
        for stage in {each.expected.stage for each in self._drained} & status.keys():
            self._counted[stage] = _again(stage, look.attempts)
        return AgainRatios(self._ratio("map", status, now_ms), self._ratio("reduce", status, now_ms))

    def _ratio(self, kind: AgainKind, status: Mapping[int, str], now_ms: int) -> float:
        expected, before = PRIOR_TASKS, dict[int, int]()
        for each in self._drained:
            stage, _, tasks, slow_ms = each.expected
            is_over = status.get(stage, "COMPLETE") == "COMPLETE"
            if each.expected.kind == kind and (
                is_over or (kind == "map" and now_ms >= each.gone_at_ms + 2 * slow_ms)
            ):
                expected += tasks
                before[stage] = min(before.get(stage, each.before), each.before)
        again = sum(max(0, self._counted.get(stage, count) - count) for stage, count in before.items())
        return min(RATIO_MAX, max(RATIO_MIN, (PRIOR_TASKS + again) / expected))


def _again(stage: int, attempts: Iterable[Stage]) -> int:
    """Return how many tasks of a stage completed beyond once, as far as is known."""
    mine = [each for each in attempts if each.stage == stage]
    if not mine:
        return 0
    once = (mine[0].indices or mine[0].complete) if len(mine) == 1 else max(each.tasks for each in mine)
    return max(0, sum(each.complete for each in mine) - once)
