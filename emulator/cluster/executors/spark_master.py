"""The driver of one Spark application: executors that run the tasks of two stages, leave and come back.

Law: every task of both stages is done once and counted once, whatever leaves, is killed or lost. An executor
that is asked to leave ends its running tasks, moves its blocks to the others, and goes; nothing of it is
lost. One that was chosen as idle stays if it has a task by then, and leaves without moving a block otherwise.
One that is killed takes its blocks with it: what the second stage still needs is computed again before that
goes on. Sources: docs/facts/spark.md, 2 to 4 (SPARK-44635: a reduce stage does not learn where blocks
went; once an order's executors are gone, the next task that begins looks for a block in vain, Spark attempts
the stage again, and the tasks that run at that instant are begun twice).

The first stage is the job's maps, the second its reduces: what a trace says of one framework can be played as
the other. Times are those of the tasks; an executor starts once and keeps its container until the end.
"""

from __future__ import annotations

import msgspec

from emulator.cluster.app_master import AppMaster, MasterHost
from emulator.cluster.entities import EXECUTOR, GRANTED, NEVER, RUNNING, Application, Ask, Container
from emulator.cluster.executors.spark_stages import SparkExecutor, SparkStages, TaskRun, cut
from yarnctl.traces.job import Job

EXECUTOR_PRIORITY = 1
"""The request priority of executors: any but 0, which is the driver's own."""
ORDER_LOOK_MS = 1000
"""How often a plugin reads its orders; a signal is delivered at the node's next heartbeat."""
LEAVE_MS = 1500
"""From the last task's end, with all blocks moved, to the process's end: two looks of a second each."""
ASK_AGAIN_MS = 3000
"""How long until Spark asks for an executor again that left by the signal."""
ATTEMPT_AGAIN_MS = 200
"""From a block that is not found to the next attempt at its stage, by when a task that ends is done
(DAGScheduler.RESUBMIT_TIMEOUT). That the task which looked begins so much later is left out."""


class SparkMaster(AppMaster):
    """A driver. ``target``: the executors that are wanted; ``gone``: how many left, by decision.

    ``again_ms``: work that was done twice though nothing was killed; ``drained``: executors that left;
    ``misled``: blocks have moved of which the running reduce stage does not know.
    """

    def __init__(self, job: Job, app: Application, host: MasterHost) -> None:
        assert job.spark
        super().__init__(msgspec.structs.replace(job, map_ms=(), reduce_ms=(), reduce_keys=()), app, host)
        self.shape = job.spark
        longest_ms = job.spark.task_ms
        self.stages = SparkStages((cut(job.map_ms, longest_ms), cut(job.reduce_ms, longest_ms)))
        self.again_ms = self.drained = 0
        self.executors: dict[int, SparkExecutor] = {}
        self.gone: dict[int, int] = {}
        self.leaving_of: dict[int, set[int]] = {}
        self._begin()

    def _begin(self) -> None:
        self.target = self.shape.executors
        self.coming = 0
        self.misled = False
        self.stages.begin()
        self.gone.clear()
        self.leaving_of.clear()

    def register(self, now_ms: int) -> None:
        """The driver is up: ask for executors. After a restart everything is done again."""
        self.alive = True
        self.phase_ms = now_ms
        self._begin()
        self.pending.begin([])
        self._ask_missing()
        self.beat(now_ms)
        if self.stages.is_done():
            self._commit_job(now_ms)

    def _ask_missing(self) -> None:
        """Ask for as many executors as are wanted and neither there nor coming.

        Those under order count until they are gone where Spark does not know that they leave (the signal).
        """
        unaware = self.shape.route == "signal"
        staying = sum(1 for each in self.executors.values() if unaware or not each.decision)
        more = self.target - staying - self.coming
        if self.alive and more > 0 and not self.stages.is_done():
            size = self.job.map_size
            self.coming += more
            ask = Ask(EXECUTOR_PRIORITY, size.memory_mib, size.vcores, off_switch=False)
            if isinstance(self.job.map_label, str):
                ask.label = self.job.map_label
            self.unsent.append((ask, more))
            self.wake()

    def _ask_again(self, attempt: int) -> None:
        if attempt == self.app.attempt:
            self._ask_missing()

    def _launch(self, granted: list[Container], now_ms: int) -> None:
        for container in granted:
            self.coming = max(0, self.coming - 1)
            if container.state != GRANTED:
                continue
            if self.stages.is_done():
                self.give_back(container, now_ms)
                continue
            container.kind, container.state = EXECUTOR, RUNNING
            container.task, container.launched_at_ms = container.number, now_ms
            container.work_at_ms = now_ms + self.timing.launch_ms + self.shape.start_ms
            self.running[container.number] = container
            self.executors[container.number] = SparkExecutor(container)
            if self.drained:
                self.overhead_ms += container.work_at_ms - now_ms
            if not container.node.dead:
                self.kernel.at(container.work_at_ms, self._up, container)
        self._ask_missing()

    def _up(self, container: Container) -> None:
        executor = self.executors.get(container.number)
        if executor is not None and container.state == RUNNING and not container.node.dead:
            executor.works = True
            self._fill()

    def _fill(self) -> None:
        """Begin waiting tasks on free cores."""
        stage = self.stages.current()
        waiting, now_ms = self.stages.waiting[stage], self.kernel.now_ms
        for executor in self.executors.values():
            if executor.leaves or not executor.works or executor.container.node.dead:
                continue
            while waiting and len(executor.runs) < self.shape.cores:
                self._run(executor, stage, waiting.popleft(), now_ms)

    def _run(
        self, executor: SparkExecutor, stage: int, task: int, now_ms: int, *, is_again: bool = False
    ) -> None:
        if self.misled and stage == 1 and not is_again:
            self._attempt_again(now_ms)
        span_ms = round(self.stages.lengths_ms[stage][task] * executor.container.node.slow_ratio)
        run = TaskRun(executor, stage, task, now_ms, now_ms + span_ms, is_again)
        executor.runs.append(run)
        self._set_end(executor)
        self.kernel.at(run.ends_ms, self._task_done, run)

    def _set_end(self, executor: SparkExecutor) -> None:
        executor.container.finish_at_ms = max((run.ends_ms for run in executor.runs), default=NEVER)

    def _task_done(self, run: TaskRun) -> None:
        executor, now_ms = run.executor, self.kernel.now_ms
        if run not in executor.runs or executor.container.node.dead:
            return
        executor.runs.remove(run)
        if not run.is_again:
            self.stages.places[run.stage][run.task] = executor.number
        if run.repeats and not executor.leaves:
            self.again_ms += self.stages.lengths_ms[run.stage][run.task]
            self._run(executor, run.stage, run.task, now_ms, is_again=True)
        self._set_end(executor)
        if self.stages.is_done():
            self._end_repeats()
            self._commit_job(now_ms)
            return
        if executor.leaves and not executor.runs:
            self._move(executor, now_ms)
        self._fill()

    def _end_repeats(self) -> None:
        """All is done: what is begun a second time is broken off, and counts as far as it came."""
        for executor in self.executors.values():
            for run in executor.runs:
                if run.is_again:
                    self.again_ms -= max(0, run.ends_ms - self.kernel.now_ms)
            executor.runs.clear()
            self._set_end(executor)

    def drain(
        self, container: Container, order: str, decision: int, mates: set[int], *, only_idle: bool = False
    ) -> bool:
        """Ask an executor to leave; False: there is none, or it is leaving. ``mates``: container numbers.

        ``only_idle``: it stays if it has a task when its driver reads the order.
        """
        executor = self.executors.get(container.number)
        if executor is None or executor.decision or container.state != RUNNING or not self.alive:
            return False
        executor.decision, executor.only_idle = decision, only_idle
        container.order = order
        container.node.watched = True
        if not only_idle:
            self.leaving_of.setdefault(decision, set()).update(mates & self.executors.keys())
        now_ms = self.kernel.now_ms
        if self.shape.route == "plugin":
            at_ms = now_ms + ORDER_LOOK_MS
            self.target = max(0, self.target - 1)
            self.gone[decision] = self.gone.get(decision, 0) + 1
        else:
            at_ms = container.node.next_beat_ms(now_ms + 1, self.timing.nm_heartbeat_ms)
        if not container.node.dead:
            self.kernel.at(at_ms, self._heard, executor)
        return True

    def _heard(self, executor: SparkExecutor) -> None:
        if executor.only_idle and executor.runs:
            self._stay(executor)
        elif executor.container.state == RUNNING and executor.number in self.executors:
            executor.leaves = True
            if not executor.runs:
                self._move(executor, self.kernel.now_ms)

    def _stay(self, executor: SparkExecutor) -> None:
        """Skip an executor that has got a task: it is not under order, and wanted as before."""
        if executor.decision in self.gone:
            self.gone[executor.decision] -= 1
            self.target += 1
        executor.decision, executor.only_idle = 0, False

    def move_ms(self, executor: SparkExecutor) -> int:
        """Return how long an executor's blocks take to move, and it to go."""
        if executor.only_idle:
            return LEAVE_MS
        blocks_mib = len(self.stages.held(executor.number)) * self.shape.block_mib
        return blocks_mib * 1000 // max(1, self.shape.move_mib_per_s) + LEAVE_MS

    def _move(self, executor: SparkExecutor, now_ms: int) -> None:
        ends_ms = now_ms + self.move_ms(executor)
        self.overhead_ms += 0 if executor.only_idle else ends_ms - now_ms
        executor.container.finish_at_ms = ends_ms
        self.kernel.at(ends_ms, self._left, executor)

    def _left(self, executor: SparkExecutor) -> None:
        container, now_ms = executor.container, self.kernel.now_ms
        if container.state != RUNNING or executor.number not in self.executors or container.node.dead:
            return
        del self.executors[executor.number]
        if not executor.only_idle:
            self._hand_over(executor)
        self._end(container, "suspended")
        self.suspended_at_ms.append(now_ms)
        self.drained += 1
        self.host.exit(container, now_ms + self.timing.exit_ms)
        mates = self.leaving_of.get(executor.decision, set())
        mates.discard(executor.number)
        if not mates and self.leaving_of.pop(executor.decision, None) is not None:
            self.misled = self.stages.current() == 1
        if self.shape.route == "signal":
            self.kernel.at(now_ms + ASK_AGAIN_MS, self._ask_again, self.app.attempt)
        self._fill()

    def _hand_over(self, executor: SparkExecutor) -> None:
        """Give an executor's blocks to the others; a map stage's run again where the host is the same."""
        others = [each for each in self.executors.values() if each.works and not each.leaves]
        others = others or [each for each in self.executors.values() if each.works]
        in_maps, node = self.stages.current() == 0, executor.container.node
        for place, task in enumerate(self.stages.held(executor.number)):
            receiver = others[place % len(others)] if others else None
            if receiver is None or (in_maps and receiver.container.node is node):
                self.again_ms += self.stages.redo(task)
            else:
                self.stages.places[0][task] = receiver.number

    def _attempt_again(self, now_ms: int) -> None:
        """A task of the reduce stage looks for a block that has moved: what runs is begun a second time."""
        self.misled = False
        for executor in self.executors.values():
            for run in executor.runs:
                runs_on = run.stage == 1 and run.ends_ms > now_ms + ATTEMPT_AGAIN_MS
                run.repeats |= runs_on and not run.is_again

    def grow(self, decisions: tuple[int, ...]) -> None:
        """Ask again for as many executors as left by these decisions; a second time changes nothing."""
        self.target += sum(self.gone.pop(decision, 0) for decision in decisions)
        self._ask_missing()

    def _lose(self, container: Container, now_ms: int) -> None:
        """An executor is gone without leaving: what ran, and what the next stage needs of it, is lost."""
        executor = self.executors.pop(container.number, None)
        if executor is None:
            return
        for run in executor.runs:
            if not run.is_again:
                self.lost_ms += max(0, min(now_ms, run.ends_ms) - run.began_ms)
                self.stages.waiting[run.stage].appendleft(run.task)
        executor.runs.clear()
        for task in self.stages.held(executor.number):
            self.lost_ms += self.stages.redo(task)
        mates = self.leaving_of.get(executor.decision, set())
        mates.discard(container.number)
        if not mates:
            self.leaving_of.pop(executor.decision, None)

    def preempted(self, container: Container, now_ms: int) -> None:
        """The ResourceManager ended a container that this driver had not released."""
        if container.number in self.running:
            self._lose(container, min(now_ms, container.released_at_ms))
            self._end(container, container.terminal_state)
        self._ask_missing()
        self._fill()

    def kill(self, container: Container, ending: str, exit_at_ms: int) -> None:
        """End an executor at once."""
        self._lose(container, self.kernel.now_ms)
        self._end(container, ending)
        self.host.exit(container, exit_at_ms)
        self._ask_missing()
        self._fill()

    def node_lost(self, node_index: int) -> None:
        """Executors of a lost node are reported one by one."""

    def die(self) -> None:
        """The driver is gone, and its executors with it; what was done is done again, if it was not all."""
        now_ms, done = self.kernel.now_ms, self.stages.is_done()
        if not done:
            self.lost_ms += self.stages.done_ms()
            for executor in self.executors.values():
                for run in executor.runs:
                    if not run.is_again:
                        self.lost_ms += max(0, min(now_ms, run.ends_ms) - run.began_ms)
        for executor in self.executors.values():
            executor.runs.clear()
        self.executors.clear()
        super().die()

    def _count_lost(self, container: Container, now_ms: int) -> None:
        """What an executor loses is counted by its tasks."""

    def rest_ms(self, executor: SparkExecutor, now_ms: int) -> int:
        """Return how long an executor's longest task still runs."""
        return max((run.ends_ms - now_ms for run in executor.runs), default=0)

    def progress_ratio(self, now_ms: int) -> float:
        """Return the part of the tasks that is done."""
        return self.stages.done_ratio()
