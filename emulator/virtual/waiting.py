"""Where the time goes: every container second that an application waits, under the cause that holds it up.

Law: it reads the cluster and changes nothing. A container *waits* from the instant its ask reaches the
ResourceManager until its process has started. Each such second is under exactly one cause, the first that
applies, so that the causes of a class add up to all that it waited. Between two events nothing changes:
what waits is counted once for each state of the scheduler and multiplied by how long that state lasted.

==============  ===============================================================================
master_limit    its master may not start: the queue's share for masters is used up
user_limit      its user is at the queue's limit for one user
queue_limit     its queue is at its maximum
launch          room is there: the next heartbeat of a node, the start of the container, of the master
taken_back      other queues are over their guarantee with containers that were granted after the job
                was submitted: room that came free and went back to them (facts/hadoop.md, section 11)
tail            other queues are over their guarantee with containers that ran before it was submitted
stopped         no room is owed to it, and the task had a container before: suspended or killed
no_room         no room is owed to it: its own queue, or others within their guarantee, fill the cluster
==============  ===============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from emulator.cluster.cluster import Cluster
from emulator.cluster.entities import AM, ENDED, GRANTED, MAP, NEVER, Application, Ask, Container, LeafQueue
from emulator.cluster.pending_tasks import FAILED_MAP, MAP_PRIORITY
from yarnctl.traces.job import JobClass

CAUSES = ("no_room", "master_limit", "user_limit", "queue_limit", "launch", "tail", "taken_back", "stopped")

Waiting = Mapping[str, Mapping[str, int]]
"""Class -> cause -> ms of waiting containers."""


def waiting_of(parts: Sequence[Waiting]) -> Waiting:
    """Return the sum of several runs' waiting (each class alone)."""
    return {
        each: {cause: sum(part[each][cause] for part in parts) for cause in CAUSES}
        for each in (parts[0] if parts else ())
    }


_SETTLE_AT = 2048
_ENDLESS = 1 << 60

_Free = list[list[int]]
"""Free memory (MiB) and vcores of the nodes that are open and not reserved."""


class WaitingCauses:
    """Counts what waits in a cluster, from its start until :meth:`close`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._scheduler = cluster.rm.scheduler
        self._at_ms = 0
        self._version = -1
        self._seen = 0
        self._counts: dict[tuple[str, str], int] = {}
        self._starting: list[Container] = []
        self._totals_ms = {(each, cause): 0 for each in get_args(JobClass) for cause in CAUSES}
        cluster.kernel.before_advance = self.advance

    def advance(self, at_ms: int) -> None:
        """Count the span up to ``at_ms``, in which nothing changed."""
        span_ms = at_ms - self._at_ms
        if span_ms <= 0:
            return
        if self._version != self._scheduler.version:
            self._version = self._scheduler.version
            self._counts = self._counted()
            self._note_granted()
        for key, count in self._counts.items():
            self._totals_ms[key] += count * span_ms
        self._at_ms = at_ms

    def close(self) -> Waiting:
        """Count up to now, and return all that was waited."""
        self.advance(self._cluster.kernel.now_ms)
        self._note_granted()
        self._settle(last=True)
        return {
            each: {cause: self._totals_ms[each, cause] for cause in CAUSES} for each in get_args(JobClass)
        }

    def _note_granted(self) -> None:
        granted, live = self._cluster.rm.containers_granted, self._scheduler.live
        for number in range(self._seen + 1, granted + 1):
            if number in live:
                self._starting.append(live[number])
        self._seen = granted
        if len(self._starting) > _SETTLE_AT:
            self._settle(last=False)

    def _settle(self, *, last: bool) -> None:
        """Count the start of every container that has started or ended (``last``: of all)."""
        now_ms, left = self._cluster.kernel.now_ms, []
        for container in self._starting:
            over_ms = min(container.exit_at_ms, container.released_at_ms)
            until_ms = min(self._started_at_ms(container), over_ms)
            if last or until_ms <= now_ms or container.state >= ENDED:
                span_ms = max(0, min(until_ms, now_ms) - container.granted_at_ms)
                self._totals_ms[container.app.master.job.job_class, "launch"] += span_ms
            else:
                left.append(container)
        self._starting = left

    def _started_at_ms(self, container: Container) -> int:
        """Return when the process is up; NEVER while that is unknown."""
        timing = self._cluster.timing
        if container.kind == AM:
            return container.granted_at_ms + timing.am_start_ms
        if container.state == GRANTED or container.launched_at_ms == NEVER:
            return NEVER
        if container.kind == MAP:
            return container.work_at_ms
        return container.launched_at_ms + timing.launch_ms

    def _counted(self) -> dict[tuple[str, str], int]:
        """Count the waiting containers of now, by class and cause."""
        counts: dict[tuple[str, str], int] = {}
        free: _Free | None = None
        for queue in sorted(self._scheduler.queues.values(), key=LeafQueue.ratio):
            for app in queue.waiting:
                _add(counts, app, "master_limit", app.pending)
            if queue.demand:
                free = self._free() if free is None else free
                self._count_demand(counts, queue, free)
        return counts

    def _free(self) -> _Free:
        rm = self._cluster.rm
        nodes = [rm.nodes[index] for _, index in rm.open_nodes]
        return [[node.free_mib, node.free_vcores] for node in nodes if node.reserved is None]

    def _below_maximum(self, queue: LeafQueue) -> list[int]:
        """Return what a queue may still be given; one that may have the whole cluster has no limit."""
        total = self._cluster.rm.total
        left = (queue.maximum_mib - queue.used_mib, queue.maximum_vcores - queue.used_vcores)
        return [
            _ENDLESS if most >= whole else room
            for room, most, whole in zip(left, (queue.maximum_mib, queue.maximum_vcores), total, strict=True)
        ]

    def _count_demand(self, counts: dict[tuple[str, str], int], queue: LeafQueue, free: _Free) -> None:
        left = self._below_maximum(queue)
        owed = _OwedRoom(queue, self._scheduler.queues.values(), self._scheduler.live)
        for app in queue.demand:
            if queue.user_mib is not None and queue.users.get(app.user, 0) > queue.user_mib:
                _add(counts, app, "user_limit", app.pending)
                continue
            stopped = None
            for ask in app.asks:
                allowed = min(ask.count, _times(left, ask))
                _add(counts, app, "queue_limit", ask.count - allowed)
                _take(left, ask, allowed)
                placed = _placed(free, ask, allowed)
                _add(counts, app, "launch", placed)
                rest = allowed - placed
                if not rest:
                    continue
                tail, back = owed.share(app, ask, rest)
                _add(counts, app, "tail", tail)
                _add(counts, app, "taken_back", back)
                rest -= tail + back
                stopped = _stopped(app) if stopped is None else stopped
                again = min(rest, stopped.get(ask.priority, 0))
                _add(counts, app, "stopped", again)
                _add(counts, app, "no_room", rest - again)


class _OwedRoom:
    """What other queues use beyond their guarantees, as far as a queue is below its own."""

    def __init__(self, queue: LeafQueue, queues: Iterable[LeafQueue], live: dict[int, Container]) -> None:
        self._over = {
            other.name: other.used_mib - other.guaranteed.memory_mib
            for other in queues
            if other is not queue and other.used_mib > other.guaranteed.memory_mib
        }
        lacks_mib = max(0, queue.guaranteed.memory_mib - queue.used_mib)
        self._left_mib = min(lacks_mib, sum(self._over.values()))
        self._live = live
        self._given_newer = 0

    def share(self, app: Application, ask: Ask, wanted: int) -> tuple[int, int]:
        """Return how many of ``wanted`` wait for older, and for newer, containers of other queues."""
        owed = min(wanted, self._left_mib // ask.memory_mib)
        if not owed:
            return 0, 0
        self._left_mib -= owed * ask.memory_mib
        newer = min(owed, max(0, self._newer(app) - self._given_newer))
        self._given_newer += newer
        return owed - newer, newer

    def _newer(self, app: Application) -> int:
        """Count the containers over guarantee that were granted after a job was submitted."""
        count = 0
        for container in reversed(self._live.values()):
            if container.granted_at_ms <= app.submitted_at_ms:
                break
            count += container.app.queue.name in self._over
        return count


def _add(counts: dict[tuple[str, str], int], app: Application, cause: str, count: int) -> None:
    if count:
        key = (app.master.job.job_class, cause)
        counts[key] = counts.get(key, 0) + count


def _times(room: list[int], ask: Ask) -> int:
    """Return how many containers of an ask fit into a room."""
    by_memory = room[0] // ask.memory_mib if ask.memory_mib else ask.count
    by_vcores = room[1] // ask.vcores if ask.vcores else ask.count
    return max(0, min(by_memory, by_vcores))


def _take(room: list[int], ask: Ask, count: int) -> None:
    room[0] -= count * ask.memory_mib
    room[1] -= count * ask.vcores


def _placed(free: _Free, ask: Ask, wanted: int) -> int:
    """Place ``wanted`` containers into the free room of the nodes; return how many fit."""
    placed = 0
    for room in free:
        if placed == wanted:
            break
        count = min(wanted - placed, _times(room, ask))
        _take(room, ask, count)
        placed += count
    return placed


def _stopped(app: Application) -> dict[int, int]:
    """Count, by request priority, the tasks without a container that had one before."""
    master = app.master
    found = {}
    for priority, tasks in master.pending.unassigned.items():
        if priority == FAILED_MAP:
            found[priority] = len(tasks)
        elif priority != MAP_PRIORITY:
            found[priority] = sum(1 for task in tasks if master.reduce_attempts[task])
    return found
