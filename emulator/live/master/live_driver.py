"""The driver of Spark on a wire: the actor of virtual time, and what it remembers of executors for its REST.

It is asked by a signal to one executor, or by a plugin's orders, which name executors and decisions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, cast

from emulator.cluster.app_master import MasterHost
from emulator.cluster.entities import ENDED, RUNNING, Application, Container
from emulator.cluster.executors.spark_master import EXECUTOR_PRIORITY, SparkMaster
from emulator.cluster.executors.spark_stages import SparkExecutor, TaskRun
from emulator.live.master.live_actor import LiveActor, LiveHost
from yarnctl.traces.job import Job

Ending = Literal["", "left", "removed", "preempted", "failed"]
ENDINGS: dict[str, Ending] = {"suspended": "left", "killed": "preempted"}
"""By what the actor calls it."""


@dataclass(slots=True)
class ExecutorFacts:
    """What a driver remembers of an executor: ``done`` and ``spent_ms`` by stage; ``ending``: how it went.

    ``is_removed``: it leaves as an idle one, which the driver removes.
    """

    executor: int
    container: Container
    added_at_ms: int
    ending: Ending = ""
    is_removed: bool = False
    ended_at_ms: int = 0
    done: list[int] = field(default_factory=lambda: [0, 0])
    spent_ms: list[int] = field(default_factory=lambda: [0, 0])


class LiveDriver(SparkMaster, LiveActor):
    """``facts``: container number -> what is remembered.

    ``last_order``: the number of the last order that a plugin is done with; -1: this driver has none.
    By stage: ``spans_ms`` are how long finished tasks took, ``stage_began_ms`` and ``stage_ended_ms`` are 0
    while it has not.
    """

    def __init__(self, job: Job, app: Application, live: LiveHost) -> None:
        self.facts: dict[int, ExecutorFacts] = {}
        self.spans_ms: tuple[list[int], list[int]] = ([], [])
        self.stage_began_ms, self.stage_ended_ms = [0, 0], [0, 0]
        self.last_order = -1
        self._decisions: dict[str, int] = {}
        super().__init__(job, app, cast(MasterHost, live))

    def _launch(self, granted: list[Container], now_ms: int) -> None:
        super()._launch(granted, now_ms)
        for container in granted:
            if container.state == RUNNING:
                self.live.launched(container)

    def _up(self, container: Container) -> None:
        if container.number in self.executors and container.number not in self.facts:
            number = len(self.facts) + 1
            self.facts[container.number] = ExecutorFacts(number, container, self.kernel.now_ms)
        super()._up(container)

    def _end(self, container: Container, ending: str) -> None:
        """An executor that has left ends by itself, with exit status 0."""
        super()._end(container, "completed" if ending == "suspended" else ending)
        facts = self.facts.get(container.number)
        if facts is not None and not facts.ending:
            left = ENDINGS.get(ending, "failed")
            facts.ending = "removed" if facts.is_removed and left == "left" else left
            facts.ended_at_ms = self.kernel.now_ms

    def pending_asks(self) -> dict[int, int]:
        """Return how many executors are asked for and not there yet."""
        return {EXECUTOR_PRIORITY: self.coming} if self.coming else {}

    def ask_again(self) -> None:
        """Ask for every executor that is wanted anew."""
        self.unsent.clear()
        self.coming = 0
        self._ask_missing()

    def _run(
        self, executor: SparkExecutor, stage: int, task: int, now_ms: int, *, is_again: bool = False
    ) -> None:
        self.stage_began_ms[stage] = self.stage_began_ms[stage] or now_ms
        super()._run(executor, stage, task, now_ms, is_again=is_again)

    def _task_done(self, run: TaskRun) -> None:
        facts = self.facts.get(run.executor.number)
        if facts is not None and run in run.executor.runs:
            span_ms = run.ends_ms - run.began_ms
            facts.done[run.stage] += 1
            facts.spent_ms[run.stage] += span_ms
            self.spans_ms[run.stage].append(span_ms)
        super()._task_done(run)
        for stage, places in enumerate(self.stages.places):
            ended_ms = self.stage_ended_ms[stage] or self.kernel.now_ms
            self.stage_ended_ms[stage] = 0 if -1 in places else ended_ms

    def signalled(self, number: int) -> None:
        """SIGTERM has arrived at an executor, by the number of its container; it traps that."""
        executor = self.executors.get(number)
        if self.alive and executor is not None and not executor.decision:
            self._order([executor], number)

    def leave(self, decision: str, names: Iterable[str], *, only_idle: bool = False) -> None:
        """Obey a plugin's order: these executors leave together; ``only_idle``: those that have no task."""
        held = {str(facts.executor): number for number, facts in self.facts.items()}
        found = [self.executors.get(held.get(name, -1)) for name in names]
        asked = [each for each in found if each is not None and not each.decision]
        if not self.alive or not asked:
            return
        number = self._decisions.setdefault(decision, len(self._decisions) + 1)
        self.target = max(0, self.target - len(asked))
        self.gone[number] = self.gone.get(number, 0) + len(asked)
        self._order(asked, number, only_idle=only_idle)
        for each in asked:
            self.facts[each.number].is_removed = each.only_idle

    def back(self, decisions: Iterable[str]) -> None:
        """Obey a plugin's order: ask again for as many executors as left by these decisions."""
        if self.alive:
            self.grow(tuple(self._decisions[name] for name in decisions if name in self._decisions))

    def _order(self, executors: list[SparkExecutor], decision: int, *, only_idle: bool = False) -> None:
        if not only_idle:
            self.leaving_of.setdefault(decision, set()).update(each.number for each in executors)
        for each in executors:
            each.decision, each.only_idle = decision, only_idle
            self._heard(each)

    @property
    def staying(self) -> int:
        """How many executors are there and were not asked to leave."""
        return sum(
            not self.executors[number].decision
            for number, facts in self.facts.items()
            if self.is_active(facts)
        )

    def is_active(self, facts: ExecutorFacts) -> bool:
        """Return whether an executor is there."""
        return facts.container.state != ENDED and facts.container.number in self.executors

    def running_tasks(self, stage: int) -> list[TaskRun]:
        """Return the tasks of a stage that run."""
        return [run for each in self.executors.values() for run in each.runs if run.stage == stage]
