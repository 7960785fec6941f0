"""The task attempts of one job: their arithmetic, their key log, and how they begin in granted containers.

Law: pure arithmetic on integers. A container knows when its keys begin and how long they take; all else (how
many keys are done now, how much remains, when the current key ends) is derived, so that time never has to be
counted down. A timetable is fixed once its attempt has a JVM and, for a reduce, once all map output exists;
on a failed node nothing finishes.

Every key of every reduce is committed exactly once, in order. An attempt may only go on where saved work
ends, saving only ever moves forward, and a commit is refused unless the saved pieces and the last attempt's
own piece cover all keys without gap or overlap.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from emulator.cluster.entities import (
    GRANTED,
    MAP,
    NEVER,
    NOT_REQUESTED,
    REDUCE,
    RELEASE_WAIT,
    RUNNING,
    Container,
)
from emulator.cluster.kernel import Kernel
from emulator.cluster.pending_tasks import FAILED_MAP, MAP_PRIORITY, PendingTasks
from emulator.cluster.timing import Timing
from yarnctl.errors import InvariantBroken
from yarnctl.traces.job import Job


class Piece(NamedTuple):
    """Keys ``from_key`` (inclusive) to ``to_key`` (exclusive) were done by attempt ``attempt``."""

    attempt: int
    from_key: int
    to_key: int


class KeyLog:
    """The pieces of one job's reduces. A reduce that one attempt did alone costs one integer."""

    __slots__ = ("_keys", "_pieces", "committed")

    def __init__(self, keys: tuple[int, ...]) -> None:
        self._keys = keys
        self._pieces: dict[int, list[Piece]] = {}
        self.committed: list[int] = [-1] * len(keys)
        """The attempt that committed each reduce, -1 while none has."""

    def saved(self, task: int) -> int:
        """Return how many keys of reduce ``task`` are saved: where the next attempt begins."""
        pieces = self._pieces.get(task)
        return pieces[-1].to_key if pieces else 0

    def save(self, task: int, attempt: int, from_key: int, to_key: int) -> None:
        """Note a checkpoint: ``attempt`` did the keys from ``from_key`` up to ``to_key``."""
        if from_key != self.saved(task):
            raise InvariantBroken(
                "keys-without-gap",
                f"reduce {task}: attempt {attempt} saves from key {from_key}, saved is {self.saved(task)}",
            )
        if not from_key <= to_key <= self._keys[task]:
            raise InvariantBroken("keys-in-range", f"reduce {task}: saves {from_key}..{to_key}")
        self._pieces.setdefault(task, []).append(Piece(attempt, from_key, to_key))

    def commit(self, task: int, attempt: int, from_key: int) -> None:
        """Commit reduce ``task``: ``attempt`` did all keys from ``from_key`` to the end."""
        if self.committed[task] != -1:
            raise InvariantBroken(
                "committed-once", f"reduce {task}: committed by {self.committed[task]} and by {attempt}"
            )
        if from_key != (self.saved(task) if self._pieces else 0):
            raise InvariantBroken(
                "keys-without-gap",
                f"reduce {task}: attempt {attempt} commits from key {from_key}, saved is {self.saved(task)}",
            )
        self.committed[task] = attempt

    def pieces(self, task: int) -> tuple[Piece, ...]:
        """Return all pieces of a committed reduce, in order, the committing attempt's last."""
        saved = tuple(self._pieces.get(task, ()))
        if self.committed[task] == -1:
            return saved
        start = saved[-1].to_key if saved else 0
        return (*saved, Piece(self.committed[task], start, self._keys[task]))


class SavedReduce(NamedTuple):
    """The newest generation of one reduce in the checkpoint store."""

    generation: int
    keys_done: int


def key_end_ms(key: int, keys: int, length_ms: int) -> int:
    """Return when key number ``key`` (1-based count of keys done) ends, from the reduce's own zero.

    The ``length_ms`` of a reduce is spread evenly over its ``keys``; rounding never drifts
    because each border is computed from zero.
    """
    return key * length_ms // keys


def keys_done(container: Container, now_ms: int, keys: int) -> int:
    """Return how many keys of the reduce are done at ``now_ms`` (those before ``from_key`` included)."""
    length_ms = container.length_ms
    worked_ms = now_ms - container.work_at_ms
    if worked_ms <= 0:
        return container.from_key
    if not length_ms:
        return keys
    position_ms = container.from_key * length_ms // keys + worked_ms
    # The largest k whose end, k * length // keys, is not after the position (exact, also where many
    # keys end within one millisecond).
    done = ((position_ms + 1) * keys - 1) // length_ms
    return done if done < keys else keys


def drained(container: Container, now_ms: int, drain_ms: int, keys: int) -> tuple[int, int]:
    """Return how many keys are done, and when, at the first key border after a drain that begins now.

    What is fed ahead is still worked off within ``drain_ms``.
    """
    length_ms, stop_ms = container.length_ms, now_ms + drain_ms
    begun_ms = container.work_at_ms - key_end_ms(container.from_key, keys, length_ms)
    to_key = keys_done(container, stop_ms, keys)
    if begun_ms + key_end_ms(to_key, keys, length_ms) < stop_ms:
        to_key += 1
    return to_key, max(stop_ms, begun_ms + key_end_ms(to_key, keys, length_ms))


def remaining_ms(container: Container, now_ms: int, keys: int) -> int:
    """Return the work that remains at ``now_ms``: own keys only, no launch, shuffle or commit."""
    length_ms = container.length_ms
    whole_ms = length_ms - container.from_key * length_ms // keys
    worked_ms = now_ms - container.work_at_ms
    if worked_ms <= 0:
        return whole_ms
    return whole_ms - worked_ms if worked_ms < whole_ms else 0


def lost_ms(container: Container, now_ms: int, keys: int) -> int:
    """Return the container time whose result is gone if the attempt ends: it will be spent a second time.

    ``keys`` are those of the reduce; a map has none.
    """
    ended_ms = min(now_ms, container.finish_at_ms)
    if container.kind == MAP:
        return max(0, min(ended_ms - container.work_at_ms, container.length_ms))
    if container.stage == RELEASE_WAIT or container.work_at_ms == NEVER:
        return 0
    length_ms = container.length_ms
    position_ms = key_end_ms(container.from_key, keys, length_ms)
    position_ms += max(0, ended_ms - container.work_at_ms)
    return min(position_ms, length_ms) - key_end_ms(container.log_from_key, keys, length_ms)


def checkpointable(container: Container, now_ms: int, commit_ms: int) -> bool:
    """Say whether a suspend sent now would be answered: on new keys, and keys are left."""
    return (
        container.state == RUNNING
        and container.kind == REDUCE
        and container.stage == NOT_REQUESTED
        and container.work_at_ms <= now_ms
        and now_ms < container.finish_at_ms - commit_ms
    )


class LaunchingMaster(Protocol):
    """What launching needs of the AM whose attempts it begins: ``app_master.AppMaster`` is one."""

    job: Job
    kernel: Kernel
    timing: Timing
    pending: PendingTasks
    running: dict[int, Container]
    reduce_attempts: list[int]
    store: dict[int, SavedReduce]
    maps_left: int
    overhead_ms: int

    def on_map_done(self, container: Container) -> None:
        """A map is done."""

    def on_reduce_done(self, container: Container) -> None:
        """A reduce is done."""

    def give_back(self, container: Container, now_ms: int) -> None:
        """Return a container that no task needs."""


class Launching:
    """``shuffling``: reduces that wait for map output; ``returning``: resumed ones, where somebody asks."""

    def __init__(self, master: LaunchingMaster) -> None:
        self.master = master
        self.job = master.job
        self.timing = master.timing
        # One bound method for all events: tens of thousands of them wait at a time.
        self._at = master.kernel.at
        self._map_done = master.on_map_done
        self._reduce_done = master.on_reduce_done
        self._ready_ms = self._begin_ms = -1
        self.shuffling: list[Container] = []
        self.returning: list[Container] | None = None

    def launch(self, granted: list[Container], now_ms: int) -> bool:
        """Begin an attempt in each container; return whether there were maps among them."""
        master = self.master
        unassigned, running = master.pending.unassigned, master.running
        start_ms = now_ms + self.timing.launch_ms
        at, map_ms, done = self._at, self.job.map_ms, self._map_done
        maps = False
        for container in granted:
            if container.state != GRANTED:
                continue
            priority = container.priority
            tasks = unassigned[priority]
            if not tasks:
                master.give_back(container, now_ms)
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
                container.attempt = master.pending.map_attempts.get(task, 0)
                master.overhead_ms += self.timing.launch_ms
            container.work_at_ms = start_ms
            container.length_ms = length_ms
            if container.node.dead:
                continue
            finish_ms = start_ms + length_ms
            container.finish_at_ms = finish_ms
            at(finish_ms, done, container)
        return maps

    def _launch_reduce(self, container: Container, task: int, start_ms: int) -> None:
        container.kind = REDUCE
        length_ms = self.job.reduce_ms[task]
        if container.node.slow_ratio != 1.0:
            length_ms = round(length_ms * container.node.slow_ratio)
        container.length_ms = length_ms
        master = self.master
        attempts = master.reduce_attempts
        attempt = attempts[task]
        attempts[task] = attempt + 1
        if attempt:
            container.attempt = attempt
            if task in master.store:
                container.from_key = container.log_from_key = master.store[task].keys_done
                container.resumed = True
        if master.maps_left:
            self.shuffling.append(container)
        else:
            self.timetable(container, start_ms)

    def maps_done(self, now_ms: int) -> None:
        """All map output exists: the reduces that wait for it begin."""
        shuffling, self.shuffling = self.shuffling, []
        launch_ms = self.timing.launch_ms
        for container in shuffling:
            if container.state == RUNNING:
                ready_ms = container.launched_at_ms + launch_ms
                self.timetable(container, ready_ms if ready_ms > now_ms else now_ms)

    def timetable(self, container: Container, ready_ms: int) -> None:
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
            self.master.overhead_ms += work_at_ms - container.launched_at_ms
            self.go_on(container, work_at_ms, container.from_key)
        elif not container.node.dead:
            # go_on from key 0, spelled out: nearly every reduce begins here.
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
        self._at(finish_ms, self._reduce_done, container)

    def restart_in_place(self, container: Container, now_ms: int) -> None:
        """Restart the child in its container behind the last key that it finished (``to_key``)."""
        keys, length_ms = self.job.reduce_keys[container.task], container.length_ms
        worked_ms = key_end_ms(container.to_key, keys, length_ms)
        worked_ms -= key_end_ms(container.from_key, keys, length_ms)
        drained_ms = container.work_at_ms + worked_ms
        work_at_ms = max(now_ms, drained_ms) + self.timing.restart_ms
        self.master.overhead_ms += work_at_ms - drained_ms
        self.go_on(container, work_at_ms, container.to_key)

    def ended(self, container: Container) -> None:
        """The attempt has been ended before its time."""
        if container in self.shuffling:
            self.shuffling.remove(container)

    def starting(self, container: Container) -> bool:
        """Say whether it is not known yet when the container's process will be up."""
        return False
