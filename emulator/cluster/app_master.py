"""The ApplicationMaster of one MapReduce job: asks, launches, commits, starts over.

Law: every map is done once and every key of every reduce is committed once, whatever is killed,
lost or suspended on the way. The AM learns of its own tasks at once (they talk to it) and of
the ResourceManager's decisions on its own heartbeat only.

Asks follow Hadoop's RMContainerAllocator: maps first (20, a failed one 5), all reduces (10)
once slow start is reached and no map is unassigned; a resuming reduce asks at ``resume_priority``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from emulator.cluster.entities import (
    ENDED,
    GRANTED,
    HOLDING,
    MAP,
    NEVER,
    NOT_ASKED,
    REDUCE,
    RUNNING,
    Application,
    Ask,
    Container,
)
from emulator.cluster.kernel import Kernel
from emulator.cluster.key_log import KeyLog
from emulator.cluster.task import key_end_ms, keys_done
from emulator.cluster.timing import Timing
from emulator.workload.job import Job

FAILED_MAP, REDUCE_PRIORITY, MAP_PRIORITY = 5, 10, 20
OWN_PREEMPTION_MS = 5000
"""Maps that wait this long while reduces sit in shuffle: the AM gives one of those reduces up."""


class MasterHost(Protocol):
    """What an AM needs of whoever carries its messages."""

    kernel: Kernel
    timing: Timing

    def allocate(
        self, app: Application, asks: list[tuple[Ask, int]]
    ) -> tuple[list[Container], list[Container]]:
        """Heartbeat to the ResourceManager."""
        ...

    def exit(self, container: Container, at_ms: int) -> None:
        """The process in the container is gone at ``at_ms``; its node reports it later."""
        ...

    def finished(self, master: AppMaster) -> None:
        """The job is done."""
        ...


class Manifest(NamedTuple):
    """What the checkpoint store holds of one reduce: its newest generation."""

    generation: int
    keys_done: int


_NUMBERS = tuple(range(4096))


def numbers(count: int) -> Sequence[int]:
    """Return 0, 1, 2 ...: the same objects for all jobs, since each lies in memory of its own."""
    return _NUMBERS[:count] if count <= len(_NUMBERS) else range(count)


class AppMaster:
    """The AM's state: what is unassigned, what runs, what is done, what is saved."""

    __slots__ = (
        "_at",
        "_begin_ms",
        "_exit",
        "_exit_ms",
        "_map_done",
        "_ready_ms",
        "_reduce_done",
        "alive",
        "app",
        "beat_at_ms",
        "deferred",
        "host",
        "job",
        "kernel",
        "keys",
        "lost_ms",
        "map_attempts",
        "map_node",
        "map_wait_since_ms",
        "maps_left",
        "overhead_ms",
        "phase_ms",
        "reduce_attempts",
        "reduces_asked",
        "reduces_left",
        "returning",
        "running",
        "shuffling",
        "store",
        "suspensions",
        "timing",
        "unassigned",
        "unsent",
    )

    def __init__(self, job: Job, app: Application, host: MasterHost) -> None:
        self.job = job
        self.app = app
        self.host = host
        self.kernel = host.kernel
        self.timing = host.timing
        # One bound method for all events: tens of thousands of them wait at a time.
        self._at = host.kernel.at
        self._exit = host.exit
        self._ready_ms = self._begin_ms = -1
        self._exit_ms = host.timing.exit_ms
        self._map_done = self.on_map_done
        self._reduce_done = self.on_reduce_done
        self.alive = False
        self.phase_ms = 0
        self.beat_at_ms = -1
        self.unsent: list[tuple[Ask, int]] = []
        self.unassigned: dict[int, deque[int]] = {}
        self.maps_left = len(job.map_ms)
        self.map_node = [-1] * len(job.map_ms)
        self.map_attempts: dict[int, int] = {}
        self.map_wait_since_ms = NEVER
        self.reduces_left = len(job.reduce_ms)
        self.reduces_asked = not job.reduce_ms
        self.deferred: list[int] = []
        self.reduce_attempts = [0] * len(job.reduce_ms)
        self.running: dict[int, Container] = {}
        self.shuffling: list[Container] = []
        self.keys = KeyLog(job.reduce_keys)
        self.store: dict[int, Manifest] = {}
        self.suspensions = 0
        self.returning: list[Container] | None = None
        self.lost_ms = 0
        self.overhead_ms = 0

    # --- heartbeat ------------------------------------------------------------------------

    def register(self, now_ms: int) -> None:
        """The AM is up: ask for what is not done yet (after a restart: recovered from history)."""
        self.alive = True
        self.phase_ms = now_ms
        places = zip(numbers(len(self.map_node)), self.map_node, strict=True)
        maps = [task for task, node in places if node < 0]
        self.unassigned = {MAP_PRIORITY: deque(maps), FAILED_MAP: deque(), REDUCE_PRIORITY: deque()}
        self.unassigned.setdefault(self.timing.resume_priority, deque())
        self.reduces_asked = not self.job.reduce_ms
        if maps:
            self._ask(MAP_PRIORITY, len(maps))
        elif self.maps_left == 0:
            self._maps_done()
        if self.job.reduce_ms and self.reduces_left == 0:
            self._commit_job(now_ms)
        self.beat(now_ms)

    def _ask(self, priority: int, count: int) -> None:
        size = self.job.map_size if priority in (MAP_PRIORITY, FAILED_MAP) else self.job.reduce_size
        ask = Ask(priority, size.memory_mib, size.vcores, off_switch=priority == REDUCE_PRIORITY)
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
        """Send what changed, launch what was granted, start over what was taken."""
        asks, self.unsent = self.unsent, []
        granted, ended = self.host.allocate(self.app, asks)
        if granted:
            self._launch(granted, now_ms)
        for container in ended:
            self.taken(container, now_ms)
        if self.map_wait_since_ms != NEVER or self.deferred:
            self._mind_waiting_maps(now_ms)

    # --- launching ------------------------------------------------------------------------

    def _launch(self, granted: list[Container], now_ms: int) -> None:
        unassigned, running = self.unassigned, self.running
        start_ms = now_ms + self.timing.launch_ms
        at, map_ms, done = self.kernel.at, self.job.map_ms, self._map_done
        maps = False
        for container in granted:
            if container.state != GRANTED:
                continue
            priority = container.priority
            tasks = unassigned[priority]
            if not tasks:
                self._surplus(container, now_ms)
                continue
            container.task = task = tasks.popleft()
            container.state = RUNNING
            container.launched_at_ms = now_ms
            running[container.number] = container
            if priority != MAP_PRIORITY and priority != FAILED_MAP:
                self._launch_reduce(container, task, start_ms)
                continue
            maps = True
            length_ms = map_ms[task]
            if container.node.slow_ratio != 1.0:
                length_ms = round(length_ms * container.node.slow_ratio)
            if priority == FAILED_MAP:
                container.attempt = self.map_attempts.get(task, 0)
                self.overhead_ms += self.timing.launch_ms
            container.work_at_ms = start_ms
            container.length_ms = length_ms
            if container.node.dead:
                continue
            finish_ms = start_ms + length_ms
            container.finish_at_ms = finish_ms
            at(finish_ms, done, container)
        if maps:
            self._consider_reduces()

    def _surplus(self, container: Container, now_ms: int) -> None:
        """A container nobody needs any more goes straight back."""
        container.state = ENDED
        container.ending = "completed"
        self.host.exit(container, now_ms)

    def _launch_reduce(self, container: Container, task: int, start_ms: int) -> None:
        container.kind = REDUCE
        length_ms = self.job.reduce_ms[task]
        if container.node.slow_ratio != 1.0:
            length_ms = round(length_ms * container.node.slow_ratio)
        container.length_ms = length_ms
        attempts = self.reduce_attempts
        attempt = attempts[task]
        attempts[task] = attempt + 1
        if attempt:
            container.attempt = attempt
            if task in self.store:
                container.from_key = container.log_from_key = self.store[task].keys_done
                container.resumed = True
        if self.maps_left:
            self.shuffling.append(container)
        else:
            self._timetable(container, start_ms)

    def _timetable(self, container: Container, ready_ms: int) -> None:
        """The attempt has its JVM at ``ready_ms`` and all map output exists: fix its phases."""
        if container.resumed:
            work_at_ms = ready_ms + self.return_ms(container.task, container.from_key)
            if self.returning is not None:
                self.returning.append(container)
        else:
            if ready_ms != self._ready_ms:
                self._ready_ms, self._begin_ms = ready_ms, ready_ms + self.job.shuffle_ms
            work_at_ms = self._begin_ms
        if container.attempt:
            self.overhead_ms += work_at_ms - container.launched_at_ms
            self.go_on(container, work_at_ms, container.from_key)
        elif not container.node.dead:
            # go_on from key 0, spelled out: nearly every reduce takes this way.
            container.work_at_ms = work_at_ms
            container.finish_at_ms = finish_ms = work_at_ms + container.length_ms + self.timing.task_commit_ms
            self._at(finish_ms, self._reduce_done, container)
        else:
            container.work_at_ms = work_at_ms

    def return_ms(self, task: int, done: int) -> int:
        """Return the time from a running JVM to the first new key of a reduce that resumes at ``done``."""
        timing, job = self.timing, self.job
        keys = job.reduce_keys[task]
        skip_ms = round(key_end_ms(done, keys, job.reduce_ms[task]) * timing.skip_ratio)
        shuffle_ms = job.shuffle_ms if timing.reshuffle else 0
        return shuffle_ms + timing.resume_ms + skip_ms + job.replay_ms * done // keys

    def go_on(self, container: Container, work_at_ms: int, from_key: int) -> None:
        """Let the attempt work from ``from_key`` on, beginning at ``work_at_ms``."""
        length_ms = container.length_ms
        container.from_key = from_key
        container.work_at_ms = work_at_ms
        if container.node.dead:
            return
        finish_ms = work_at_ms + length_ms + self.timing.task_commit_ms
        if from_key:
            finish_ms -= key_end_ms(from_key, self.job.reduce_keys[container.task], length_ms)
        container.finish_at_ms = finish_ms
        self.kernel.at(finish_ms, self._reduce_done, container)

    # --- tasks that end -------------------------------------------------------------------

    def on_map_done(self, container: Container) -> None:
        """A map is done: count it, perhaps ask for the reduces, perhaps let them begin."""
        now_ms = self.kernel.now_ms
        if container.finish_at_ms != now_ms or container.state != RUNNING:
            return
        container.state = ENDED
        container.ending = "completed"
        del self.running[container.number]
        self._exit(container, now_ms + self._exit_ms)
        self.map_node[container.task] = container.node.index
        self.maps_left -= 1
        if self.maps_left == 0:
            self._maps_done()
        elif not self.reduces_asked:
            self._consider_reduces()

    def _maps_done(self) -> None:
        now_ms = self.kernel.now_ms
        if not self.job.reduce_ms:
            self._commit_job(now_ms)
            return
        self._consider_reduces()
        shuffling, self.shuffling = self.shuffling, []
        launch_ms = self.timing.launch_ms
        for container in shuffling:
            if container.state == RUNNING:
                ready_ms = container.launched_at_ms + launch_ms
                self._timetable(container, ready_ms if ready_ms > now_ms else now_ms)

    def _consider_reduces(self) -> None:
        """Ask for all reduces once slow start is reached and no map is unassigned."""
        unassigned = self.unassigned
        if self.reduces_asked or unassigned[MAP_PRIORITY]:
            return
        maps = len(self.map_node)
        if maps - self.maps_left < self.timing.slow_start_ratio * maps:
            return
        self.reduces_asked = True
        committed, resume = self.keys.committed, self.timing.resume_priority
        for task, attempt in zip(numbers(len(committed)), committed, strict=True):
            if attempt == -1:
                unassigned[resume if task in self.store else REDUCE_PRIORITY].append(task)
        for priority in {REDUCE_PRIORITY: 0, resume: 0}:
            if unassigned[priority]:
                self._ask(priority, len(unassigned[priority]))

    def on_reduce_done(self, container: Container) -> None:
        """A reduce is done and commits its output."""
        now_ms = self.kernel.now_ms
        if container.finish_at_ms != now_ms or container.state != RUNNING:
            return
        self.keys.commit(container.task, container.attempt, container.log_from_key)
        container.state = ENDED
        container.ending = "completed"
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

    # --- tasks that are taken away --------------------------------------------------------

    def suspended(self, container: Container, exit_at_ms: int) -> None:
        """The attempt has saved its work and stops: its task waits to resume."""
        self.suspensions += 1
        self._end(container, "suspended")
        self.host.exit(container, exit_at_ms)
        self._again(container)

    def kill(self, container: Container, ending: str, exit_at_ms: int) -> None:
        """The AM is told to end an attempt; what it has not saved is lost."""
        self._count_lost(container, self.kernel.now_ms)
        self._end(container, ending)
        self.host.exit(container, exit_at_ms)
        self._again(container)

    def taken(self, container: Container, now_ms: int) -> None:
        """The ResourceManager says a container is gone that this AM had not given up."""
        if container.task < 0:
            # It never got a task: whoever still waits at that priority needs another one.
            if self.unassigned.get(container.priority):
                self._ask(container.priority, 1)
            return
        if container.number not in self.running:
            return
        self._count_lost(container, min(now_ms, container.released_at_ms))
        self._end(container, container.ending)
        self._again(container)

    def _end(self, container: Container, ending: str) -> None:
        if container.state == RUNNING:
            container.state = ENDED
        container.ending = ending
        container.finish_at_ms = NEVER
        self.running.pop(container.number, None)
        if container in self.shuffling:
            self.shuffling.remove(container)

    def _count_lost(self, container: Container, now_ms: int) -> None:
        """Add the container time whose result is gone: it will be spent a second time."""
        ended_ms = min(now_ms, container.finish_at_ms)
        if container.kind == MAP:
            self.lost_ms += max(0, min(ended_ms - container.work_at_ms, container.length_ms))
        elif container.stage != HOLDING and container.work_at_ms != NEVER:
            keys, length_ms = self.job.reduce_keys[container.task], container.length_ms
            position_ms = key_end_ms(container.from_key, keys, length_ms)
            position_ms += max(0, ended_ms - container.work_at_ms)
            self.lost_ms += min(position_ms, length_ms) - key_end_ms(container.log_from_key, keys, length_ms)

    def _again(self, container: Container) -> None:
        """Queue the task of an ended attempt again."""
        task = container.task
        if container.kind == MAP:
            self._map_again(task)
            return
        if self.deferred or self.unassigned[FAILED_MAP]:
            self.deferred.append(task)
            self.wake()
            return
        self._reduce_again(task)

    def _reduce_again(self, task: int) -> None:
        priority = self.timing.resume_priority if task in self.store else REDUCE_PRIORITY
        self.unassigned[priority].append(task)
        self._ask(priority, 1)

    def _map_again(self, task: int) -> None:
        self.map_attempts[task] = self.map_attempts.get(task, 0) + 1
        self.unassigned[FAILED_MAP].append(task)
        if self.map_wait_since_ms == NEVER:
            self.map_wait_since_ms = self.kernel.now_ms
        self._ask(FAILED_MAP, 1)

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
                    self._map_again(task)

    def _mind_waiting_maps(self, now_ms: int) -> None:
        """Keep maps that must run again from waiting for ever behind this job's own reduces."""
        if not self.unassigned[FAILED_MAP]:
            self.map_wait_since_ms = NEVER
            deferred, self.deferred = self.deferred, []
            for task in deferred:
                self._reduce_again(task)
            return
        if now_ms - self.map_wait_since_ms >= OWN_PREEMPTION_MS and self.shuffling:
            self.kill(self.shuffling[-1], "killed", now_ms + self.timing.exit_ms)
        self.wake()

    def fail(self, container: Container) -> None:
        """An attempt dies by itself."""
        self.kill(container, "failed", self.kernel.now_ms + self.timing.exit_ms)

    def die(self) -> None:
        """The AM itself is gone, and its running attempts with it (no job keeps them in Hadoop 3)."""
        now_ms = self.kernel.now_ms
        self.alive = False
        self.unsent.clear()
        self.deferred.clear()
        for container in list(self.running.values()):
            self._count_lost(container, min(now_ms, container.released_at_ms))
            self._end(container, "killed")
            self.host.exit(container, now_ms + self.timing.exit_ms)
        for container in self.app.mail_granted:
            if container.state == GRANTED:
                self._surplus(container, now_ms)
        self.app.mail_granted.clear()
        self.app.mail_ended.clear()
        self.map_wait_since_ms = NEVER

    # --- what others ask of it ------------------------------------------------------------

    def starting(self, container: Container) -> bool:
        """Say whether it is not known yet when the container's process will be up."""
        return False

    def due(self, priority: int) -> int:
        """Return how many containers it will ask for at its next heartbeat, and has not put down yet."""
        return 0

    def progress_ratio(self, now_ms: int) -> float:
        """Return the job's progress as Hadoop reports it: 5 % setup, 45 % maps, 45 % reduces, 5 % cleanup."""
        job = self.job
        maps = len(job.map_ms) - self.maps_left
        map_part = maps / len(job.map_ms) if job.map_ms else 1.0
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

    def checkpointable(self, container: Container, now_ms: int) -> bool:
        """Say whether a suspend sent now would be answered: on new keys, and keys are left."""
        return (
            container.state == RUNNING
            and container.kind == REDUCE
            and container.stage == NOT_ASKED
            and container.work_at_ms <= now_ms
            and now_ms < container.finish_at_ms - self.timing.task_commit_ms
        )
