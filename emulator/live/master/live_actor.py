"""The AM actor on a wire: asks go out with a heartbeat, what was granted or has ended comes back later.

A live AM sends a heartbeat each interval, since the answer brings what was granted. Tasks that are processes
have no timetable: their ends are reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from emulator.cluster.app_master import AppMaster, MasterHost
from emulator.cluster.entities import MAP, NEVER, RUNNING, Application, Ask, Container
from emulator.cluster.pending_tasks import FAILED_MAP, MAP_PRIORITY
from emulator.cluster.task import Launching
from emulator.live.wire.submitted_job import number_setting
from yarnctl.traces.job import Job


class LiveHost(MasterHost, Protocol):
    """What a live actor needs of the master that sends its messages."""

    conf: dict[str, str]

    def usage(self) -> Iterable[Container]:
        """Return the containers of tasks that have not been reported as ended."""

    def exchange(self, asks: list[tuple[Ask, int]]) -> None:
        """Send a heartbeat; its answer comes later (``LiveActor.received``)."""

    def launched(self, container: Container) -> None:
        """The actor has begun an attempt in this container."""


def is_map(priority: int) -> bool:
    """Whether containers of this priority are for maps."""
    return priority in (FAILED_MAP, MAP_PRIORITY)


class RunningLimits:
    """At most so many maps, and so many reduces, of one job at once. ``limit``: by whether for maps; 0: none.

    What a job asks for beyond its limit is deferred by its master, as MapReduce does it (MAPREDUCE-5583:
    ``mapreduce.job.running.map.limit`` and ``.reduce.limit``, 0 or less: none). A container counts from the
    ask until the ResourceManager has reported its end; a failed map goes before the others, a reduce that
    resumes likewise.
    """

    def __init__(self, conf: dict[str, str]) -> None:
        self.limit = {
            True: max(0, int(number_setting(conf, "mapreduce.job.running.map.limit", 0))),
            False: max(0, int(number_setting(conf, "mapreduce.job.running.reduce.limit", 0))),
        }
        self._usage: dict[int, int] = {}
        self._open = {True: 0, False: 0}

    def asked(self, priority: int, count: int) -> int:
        """Add an ask; return how many of it go out at once: all without a limit, else none yet."""
        if not self.limit[is_map(priority)]:
            return count
        self._usage[priority] = self._usage.get(priority, 0) + count
        return 0

    def due(self, held: Iterable[Container]) -> Iterator[tuple[int, int]]:
        """Yield priority and count of what may go out now, while the job holds these containers."""
        if not self._usage:
            return
        kinds = [is_map(container.priority) for container in held]
        for priority in sorted(self._usage):
            for_maps = is_map(priority)
            room = self.limit[for_maps] - kinds.count(for_maps) - self._open[for_maps]
            count = min(room, self._usage[priority])
            if count <= 0:
                continue
            self._usage[priority] -= count
            self._open[for_maps] += count
            if not self._usage[priority]:
                del self._usage[priority]
            yield priority, count

    def granted(self, containers: Iterable[Container]) -> None:
        """Add what was granted."""
        for container in containers:
            for_maps = is_map(container.priority)
            self._open[for_maps] = max(0, self._open[for_maps] - 1)

    def drop(self) -> None:
        """Nothing that was asked for is known any more."""
        self._usage.clear()
        self._open = {True: 0, False: 0}


class LiveActor(AppMaster):
    """The actor of a modelled job; ``live`` sends its messages."""

    def __init__(self, job: Job, app: Application, live: LiveHost) -> None:
        super().__init__(job, app, live)
        self.live = live
        self._limits = RunningLimits(live.conf)

    def _ask(self, priority: int, count: int) -> None:
        """Ask at once, or as soon as the job's running limits let it."""
        at_once = self._limits.asked(priority, count)
        if at_once:
            super()._ask(priority, at_once)

    def beat(self, now_ms: int) -> None:
        """Send what changed, and the next heartbeat an interval later."""
        for priority, count in self._limits.due(self.live.usage()):
            super()._ask(priority, count)
        asks, self.unsent = self.unsent, []
        self.live.exchange(asks)
        self.wake()

    def received(self, granted: list[Container], ended: list[Container], now_ms: int) -> None:
        """Launch what was granted, start over what was taken."""
        if not self.alive:
            return
        if granted:
            self._limits.granted(granted)
        self._take(granted, ended, now_ms)

    def _launch(self, granted: list[Container], now_ms: int) -> None:
        super()._launch(granted, now_ms)
        for container in granted:
            if container.state == RUNNING:
                self.live.launched(container)

    def pending_asks(self) -> dict[int, int]:
        """Return how many containers are pending, by priority: what a new ResourceManager must be sent."""
        return {priority: len(tasks) for priority, tasks in self.pending.unassigned.items() if tasks}

    def ask_again(self) -> None:
        """Ask for everything anew (nothing that was asked is known any more)."""
        self.unsent.clear()
        self._limits.drop()
        for priority, count in self.pending_asks().items():
            self._ask(priority, count)

    def rerun_map(self, task: int) -> None:
        """Have a finished map run again: its output is not to be used any more."""
        self.map_node[task] = -1
        self.maps_left += 1
        self.pending.add_map(task, self.kernel.now_ms)


class ProcessLaunching(Launching):
    """Attempts that are processes."""

    def timetable(self, container: Container, ready_ms: int) -> None:
        """A process needs none."""


class ProcessActor(LiveActor):
    """The actor of a job whose tasks are processes."""

    def __init__(self, job: Job, app: Application, live: LiveHost) -> None:
        super().__init__(job, app, live)
        self.launching = ProcessLaunching(self)

    def _launch(self, granted: list[Container], now_ms: int) -> None:
        super()._launch(granted, now_ms)
        for container in granted:
            container.finish_at_ms = NEVER

    def done(self, container: Container) -> None:
        """The task's process has reported that it is done, its output in place."""
        container.finish_at_ms = self.kernel.now_ms
        if container.kind == MAP:
            self.on_map_done(container)
        else:
            self.on_reduce_done(container)
