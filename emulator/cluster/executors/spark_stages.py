"""The two stages of an emulated Spark application: what waits, runs and is done, and who holds its output.

Law: arithmetic on tasks and nothing else. Each task of a stage waits, runs or is done; the second stage
begins when the first is done, and is held up again when output that it still reads is gone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from emulator.cluster.entities import Container


@dataclass(slots=True, eq=False)
class TaskRun:
    """An attempt at a task; ``is_again``: it is done a second time, and its first result counted."""

    executor: SparkExecutor
    stage: int
    task: int
    began_ms: int
    ends_ms: int
    is_again: bool = False
    repeats: bool = False


@dataclass(slots=True, eq=False)
class SparkExecutor:
    """One executor: its running tasks; ``decision`` 0: it is not under order.

    ``only_idle``: its order holds while it has no task; a shuffle service serves its blocks, so none moves.
    """

    container: Container
    runs: list[TaskRun] = field(default_factory=list)
    works: bool = False
    leaves: bool = False
    decision: int = 0
    only_idle: bool = False

    @property
    def number(self) -> int:
        """The number of its container."""
        return self.container.number


def cut(lengths_ms: tuple[int, ...], most_ms: int) -> tuple[int, ...]:
    """Return the same work in even tasks of at most ``most_ms`` (0: as it is)."""
    if not most_ms:
        return lengths_ms
    found: list[int] = []
    for length_ms in lengths_ms:
        parts = max(1, -(-length_ms // most_ms))
        found += [(place + 1) * length_ms // parts - place * length_ms // parts for place in range(parts)]
    return tuple(found)


class SparkStages:
    """``places``: stage -> the executor that holds each task's output, -1: it is not done."""

    def __init__(self, lengths_ms: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
        self.lengths_ms = lengths_ms
        self.begin()

    def begin(self) -> None:
        """Nothing is done."""
        self.places = [[-1] * len(stage) for stage in self.lengths_ms]
        self.waiting = [deque(range(len(stage))) for stage in self.lengths_ms]

    def current(self) -> int:
        """Return the stage whose tasks may begin: the first that is not done."""
        return 0 if -1 in self.places[0] else 1

    def is_done(self) -> bool:
        """Return whether both stages are done."""
        return not any(-1 in places for places in self.places)

    def held(self, executor: int) -> list[int]:
        """Return the tasks of the first stage whose output an executor holds, while it is read."""
        if -1 not in self.places[1]:
            return []
        return [task for task, number in enumerate(self.places[0]) if number == executor]

    def redo(self, task: int) -> int:
        """Do a task of the first stage again, for its output is gone; return its length, ms."""
        self.places[0][task] = -1
        self.waiting[0].append(task)
        return self.lengths_ms[0][task]

    def done_ms(self) -> int:
        """Return the work of what is done."""
        return sum(
            length_ms
            for stage, places in zip(self.lengths_ms, self.places, strict=True)
            for length_ms, place in zip(stage, places, strict=True)
            if place != -1
        )

    def twice_ms(self, executor: SparkExecutor, others: Iterable[SparkExecutor], cores: int) -> int:
        """Return what is done twice if an executor leaves now: of maps what is expected, else the most.

        Each map that it has done, or runs, moves to any of the others; those that stay on its node run again.
        """
        stage, others = self.current(), list(others)
        if self.is_done() or not self.lengths_ms[stage]:
            return 0
        if stage == 1:
            return max(self.lengths_ms[1]) * cores * len(others)
        near = sum(each.container.node is executor.container.node for each in others)
        tasks = [*self.held(executor.number), *(run.task for run in executor.runs)]
        return sum(self.lengths_ms[0][task] for task in tasks) * near // max(1, len(others))

    def done_ratio(self) -> float:
        """Return the part of the tasks that is done."""
        total = sum(map(len, self.lengths_ms))
        return sum(len(places) - places.count(-1) for places in self.places) / total if total else 1.0
