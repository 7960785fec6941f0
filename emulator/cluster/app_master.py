"""The ApplicationMaster of one MapReduce job: asks, launches, commits, starts over.

Law: every map is done once and every key of every reduce is committed once, whatever is killed,
lost or suspended on the way. The AM has reports of its own tasks at once (by the umbilical) and of
the ResourceManager's decisions on its own heartbeat only.

It asks for all reduces once slow start is reached and no map is unassigned, as Hadoop's RMContainerAllocator
does. What waits for a container is in ``pending_tasks``; what runs in one is begun in ``task``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from emulator.cluster.entities import ENDED, GRANTED, MAP, NEVER, REDUCE, RUNNING, Application, Ask, Container
from emulator.cluster.kernel import Kernel
from emulator.cluster.pending_tasks import FAILED_MAP, MAP_PRIORITY, REDUCE_PRIORITY, PendingTasks
from emulator.cluster.task import KeyLog, Launching, SavedReduce, keys_done, lost_ms
from emulator.cluster.timing import Timing
from yarnctl.traces.job import Job

OWN_PREEMPTION_MS = 5000
"""Maps that wait this long while reduces sit in shuffle: the AM gives one of those reduces up."""


class MasterHost(Protocol):
    """What an AM needs of its message transport."""

    kernel: Kernel
    timing: Timing

    def allocate(
        self, app: Application, asks: list[tuple[Ask, int]]
    ) -> tuple[list[Container], list[Container]]:
        """Heartbeat to the ResourceManager."""

    def exit(self, container: Container, at_ms: int) -> None:
        """The process in the container is gone at ``at_ms``; its node reports it later."""

    def finished(self, master: AppMaster) -> None:
        """The job is done."""


_NUMBERS = tuple(range(4096))


def numbers(count: int) -> Sequence[int]:
    """Return 0, 1, 2 ...: the same objects for all jobs, to save memory."""
    return _NUMBERS[:count] if count <= len(_NUMBERS) else range(count)


class AppMaster:
    """The AM's state: what is unassigned, what runs, what is done, what is saved."""

    def __init__(self, job: Job, app: Application, host: MasterHost) -> None:
        self.job = job
        self.app = app
        self.host = host
        self.kernel = host.kernel
        self.timing = host.timing
        self._exit = host.exit
        self._exit_ms = host.timing.exit_ms
        self.alive = False
        self.phase_ms = 0
        self.beat_at_ms = -1
        self.unsent: list[tuple[Ask, int]] = []
        self.maps_left = len(job.map_ms)
        self.map_node = [-1] * len(job.map_ms)
        self.reduces_left = len(job.reduce_ms)
        self.reduces_requested = not job.reduce_ms
        self.reduce_attempts = [0] * len(job.reduce_ms)
        self.running: dict[int, Container] = {}
        self.keys = KeyLog(job.reduce_keys)
        self.store: dict[int, SavedReduce] = {}
        self.suspended_at_ms: list[int] = []
        self.lost_ms = 0
        self.overhead_ms = 0
        self.pending = PendingTasks(self._ask, host.timing.resume_priority, self.store)
        self.launching = Launching(self)

    @property
    def suspensions(self) -> int:
        """Return how many attempts have been suspended."""
        return len(self.suspended_at_ms)

    def register(self, now_ms: int) -> None:
        """The AM is up: ask for what is not done yet (after a restart: recovered from history)."""
        self.alive = True
        self.phase_ms = now_ms
        places = zip(numbers(len(self.map_node)), self.map_node, strict=True)
        maps = [task for task, node in places if node < 0]
        self.reduces_requested = not self.job.reduce_ms
        self.pending.begin(maps)
        if self.maps_left == 0:
            self._maps_done()
        if self.job.reduce_ms and self.reduces_left == 0:
            self._commit_job(now_ms)
        self.beat(now_ms)

    def _ask(self, priority: int, count: int) -> None:
        is_map = priority in (MAP_PRIORITY, FAILED_MAP)
        size = self.job.map_size if is_map else self.job.reduce_size
        ask = Ask(priority, size.memory_mib, size.vcores, off_switch=priority == REDUCE_PRIORITY)
        label = self.job.map_label if is_map else self.job.reduce_label
        if isinstance(label, str):
            ask.label = label
        self.unsent.append((ask, count))
        self.wake()

    def wake(self) -> None:
        """Have a heartbeat at the next whole second of this AM's own clock."""
        if self.alive:
            now_ms, interval_ms = self.kernel.now_ms, self.timing.am_heartbeat_ms
            at_ms = now_ms + interval_ms - (now_ms - self.phase_ms) % interval_ms
            if self.beat_at_ms != at_ms:
                self.beat_at_ms = at_ms
                self.kernel.at(at_ms, self._on_beat, at_ms)

    def _on_beat(self, at_ms: int) -> None:
        if self.alive and self.beat_at_ms == at_ms:
            self.beat(at_ms)

    def beat(self, now_ms: int) -> None:
        """Send changed asks, launch in granted containers, queue the tasks of preempted ones again."""
        asks, self.unsent = self.unsent, []
        self._take(*self.host.allocate(self.app, asks), now_ms)

    def _take(self, granted: list[Container], ended: list[Container], now_ms: int) -> None:
        """Launch in granted containers, start the tasks of preempted ones again."""
        if granted:
            self._launch(granted, now_ms)
        for container in ended:
            self.preempted(container, now_ms)
        if self.pending.map_wait_since_ms != NEVER or self.pending.deferred:
            self._check_waiting_maps(now_ms)

    def _launch(self, granted: list[Container], now_ms: int) -> None:
        if self.launching.launch(granted, now_ms):
            self._consider_reduces()

    def give_back(self, container: Container, now_ms: int) -> None:
        """Return a container that no task needs."""
        container.state = ENDED
        container.terminal_state = "completed"
        self.host.exit(container, now_ms)

    def on_map_done(self, container: Container) -> None:
        """A map is done: count it, perhaps ask for the reduces, perhaps let them begin."""
        now_ms = self.kernel.now_ms
        if container.finish_at_ms != now_ms or container.state != RUNNING:
            return
        container.state = ENDED
        container.terminal_state = "completed"
        del self.running[container.number]
        self._exit(container, now_ms + self._exit_ms)
        self.map_node[container.task] = container.node.index
        self.maps_left -= 1
        if self.maps_left == 0:
            self._maps_done()
        elif not self.reduces_requested:
            self._consider_reduces()

    def _maps_done(self) -> None:
        now_ms = self.kernel.now_ms
        if not self.job.reduce_ms:
            self._commit_job(now_ms)
            return
        self._consider_reduces()
        self.launching.maps_done(now_ms)

    def _consider_reduces(self) -> None:
        """Ask for all reduces once slow start is reached and no map is unassigned."""
        if self.reduces_requested or self.pending.unassigned[MAP_PRIORITY]:
            return
        maps = len(self.map_node)
        if maps - self.maps_left < self.timing.slow_start_ratio * maps:
            return
        self.reduces_requested = True
        committed = self.keys.committed
        numbered = zip(numbers(len(committed)), committed, strict=True)
        self.pending.add_reduces([task for task, attempt in numbered if attempt == -1])

    def on_reduce_done(self, container: Container) -> None:
        """A reduce is done and commits its output."""
        now_ms = self.kernel.now_ms
        if container.finish_at_ms != now_ms or container.state != RUNNING:
            return
        self.keys.commit(container.task, container.attempt, container.log_from_key)
        container.state = ENDED
        container.terminal_state = "completed"
        del self.running[container.number]
        self._exit(container, now_ms + self._exit_ms)
        self.reduces_left -= 1
        if self.reduces_left == 0:
            self._commit_job(now_ms)

    def _commit_job(self, now_ms: int) -> None:
        self.kernel.at(now_ms + self.timing.job_commit_ms, self._on_job_done, self.app.attempt)

    def _on_job_done(self, attempt: int) -> None:
        if self.alive and attempt == self.app.attempt:
            self.alive = False
            self.host.finished(self)

    def suspended(self, container: Container, exit_at_ms: int) -> None:
        """The attempt has saved its work and stops: its task waits to resume."""
        self.suspended_at_ms.append(self.kernel.now_ms)
        self._end(container, "suspended")
        self.host.exit(container, exit_at_ms)
        self._again(container)

    def kill(self, container: Container, ending: str, exit_at_ms: int) -> None:
        """End an attempt; what it has not saved is lost."""
        self._count_lost(container, self.kernel.now_ms)
        self._end(container, ending)
        self.host.exit(container, exit_at_ms)
        self._again(container)

    def preempted(self, container: Container, now_ms: int) -> None:
        """The ResourceManager ended a container that this AM had not released."""
        if container.task < 0:
            # It never got a task: a task that is pending at that priority needs another one.
            if self.pending.unassigned.get(container.priority):
                self._ask(container.priority, 1)
            return
        if container.number not in self.running:
            return
        self._count_lost(container, min(now_ms, container.released_at_ms))
        self._end(container, container.terminal_state)
        self._again(container)

    def _end(self, container: Container, ending: str) -> None:
        if container.state == RUNNING:
            container.state = ENDED
        container.terminal_state = ending
        container.finish_at_ms = NEVER
        self.running.pop(container.number, None)
        self.launching.ended(container)

    def _count_lost(self, container: Container, now_ms: int) -> None:
        keys = 0 if container.kind == MAP else self.job.reduce_keys[container.task]
        self.lost_ms += lost_ms(container, now_ms, keys)

    def _again(self, container: Container) -> None:
        """Queue the task of an ended attempt again."""
        task = container.task
        if container.kind == MAP:
            self.pending.add_map(task, self.kernel.now_ms)
        elif self.pending.defer(task):
            self.wake()
        else:
            self.pending.add_reduce(task)

    def node_lost(self, node_index: int) -> None:
        """Map output on a lost node is gone: while reduces are left, those maps run again."""
        if self.reduces_left == 0 or not self.job.reduce_ms:
            return
        for task, node in enumerate(self.map_node):
            if node == node_index:
                self.map_node[task] = -1
                self.maps_left += 1
                self.lost_ms += self.job.map_ms[task]
                if self.alive:
                    self.pending.add_map(task, self.kernel.now_ms)

    def _check_waiting_maps(self, now_ms: int) -> None:
        """Keep maps that must run again from waiting for ever behind this job's own reduces."""
        pending, shuffling = self.pending, self.launching.shuffling
        if not pending.unassigned[FAILED_MAP]:
            pending.add_deferred()
            return
        if now_ms - pending.map_wait_since_ms >= OWN_PREEMPTION_MS and shuffling:
            self.kill(shuffling[-1], "killed", now_ms + self.timing.exit_ms)
        self.wake()

    def fail(self, container: Container) -> None:
        """An attempt fails by itself."""
        self.kill(container, "failed", self.kernel.now_ms + self.timing.exit_ms)

    def die(self) -> None:
        """The AM itself is gone, and its running attempts with it (no job keeps them in Hadoop 3)."""
        now_ms = self.kernel.now_ms
        self.alive = False
        self.unsent.clear()
        self.pending.deferred.clear()
        for container in list(self.running.values()):
            self._count_lost(container, min(now_ms, container.released_at_ms))
            self._end(container, "killed")
            self.host.exit(container, now_ms + self.timing.exit_ms)
        for container in self.app.mail_granted:
            if container.state == GRANTED:
                self.give_back(container, now_ms)
        self.app.mail_granted.clear()
        self.app.mail_ended.clear()
        self.pending.map_wait_since_ms = NEVER

    def due(self, priority: int) -> int:
        """Return how many containers it will ask for at its next heartbeat, and has not put down yet."""
        return 0

    def progress_ratio(self, now_ms: int) -> float:
        """Return the job's progress as Hadoop reports it: 5 % setup, 45 % maps, 45 % reduces, 5 % cleanup.

        Running tasks count with what they have done.
        """
        job = self.job
        begun = sum(
            min(1.0, (now_ms - each.work_at_ms) / max(1, each.length_ms))
            for each in self.running.values()
            if each.kind == MAP and each.work_at_ms <= now_ms
        )
        map_part = (len(job.map_ms) - self.maps_left + begun) / len(job.map_ms) if job.map_ms else 1.0
        if not job.reduce_ms:
            return 0.05 + 0.9 * map_part
        done = float(len(job.reduce_ms) - self.reduces_left)
        for task, manifest in self.store.items():
            if self.keys.committed[task] == -1:
                done += manifest.keys_done / job.reduce_keys[task]
        for container in self.running.values():
            if container.kind == REDUCE and container.work_at_ms <= now_ms:
                keys = job.reduce_keys[container.task]
                saved = self.store[container.task].keys_done if container.task in self.store else 0
                done += (keys_done(container, now_ms, keys) - saved) / keys
        return 0.05 + 0.45 * map_part + 0.45 * done / len(job.reduce_ms)
