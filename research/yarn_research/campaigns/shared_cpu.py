"""An ApplicationMaster on a small cluster, where launches share cores and a heartbeat more or less counts.

Law: it is the AppMaster in all it decides; only instants differ. A task is up once its process has been
given ``launch_cpu_ms`` of its machine's cores (``launch_crowd``), and with ``asks_after_beat`` an ask for
reduces leaves with the heartbeat after the one that found it due: RMContainerAllocator.heartbeat() calls
allocate first and schedules reduces afterwards (Hadoop 2 and 3).

A small real cluster in virtual time: its nodes are on few machines, whose launches share their cores.

Law: nothing is decided here either; what differs from ``Cluster`` is when messages are sent. Large clusters
pay nothing for it: a plain ``Timing`` without ``SharedCpuTiming`` gives a plain ``Cluster``.

Launches that share a machine's cores: egalitarian processor sharing, exact in whole milliseconds.

Law: n launches at one moment are served at the same speed, and a machine's cores are all it has to give:
each gets min(width, cores / n) ms of CPU per ms (Kleinrock, "Time-shared systems: a theoretical treatment",
Journal of the ACM 14(2), 1967). Since all are served alike, one sum tells what each has been given: a
launch is done when the sum has grown by its demand since it came.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

import msgspec

from emulator.cluster.app_master import AppMaster, MasterHost
from emulator.cluster.cluster import Cluster
from emulator.cluster.entities import (
    GRANTED,
    MAP,
    NEVER,
    RELEASED,
    RUNNING,
    Application,
    Container,
    NodeLabel,
    ParentConfig,
    QueueConfig,
)
from emulator.cluster.faults import Fault
from emulator.cluster.kernel import Kernel
from emulator.cluster.pending_tasks import FAILED_MAP, MAP_PRIORITY
from emulator.cluster.task import Launching, LaunchingMaster
from emulator.cluster.timing import Timing
from emulator.virtual.run import CLUSTERS
from yarnctl.traces.job import Job
from yarnctl.units import Resources

Launch = TypeVar("Launch")

UNIT = 1 << 40
"""Parts of a millisecond in which service is counted; sharing them out loses less than one a change."""

SLACK = 1 << 20
"""So few parts, a millionth of a millisecond, are lost by rounding: a launch that lacks them is done."""


class SharedCpuTiming(Timing, frozen=True, kw_only=True):
    """Spans of a small real cluster, where launches share cores and a heartbeat more or less counts.

    After ``launch_ms`` each launch needs ``launch_cpu_ms`` of CPU, for which all launches on the
    ``machine_nodes`` nodes of one machine share its ``machine_cores``, one using ``launch_width`` of them
    at most; with 0 a launch is over then. ``asks_after_beat``:
    an ask for reduces leaves one AM heartbeat later (RMContainerAllocator.heartbeat allocates before it
    schedules reduces). ``beats_at_exit``: a node reports at once when a container ends (ContainerImpl calls
    sendOutofBandHeartBeat). ``am_linger_ms``: so much longer than ``exit_ms`` does a finished AM keep its
    container (MRAppMaster.shutDownJob sleeps 5 s after it has unregistered).
    """

    launch_cpu_ms: int = 0
    launch_width: int = 2
    machine_cores: int = 2
    machine_nodes: int = 1
    asks_after_beat: bool = False
    beats_at_exit: bool = False
    am_linger_ms: int = 0


def shared_cpu(timing: Timing) -> SharedCpuTiming:
    """Return the same spans for a small cluster; those that only ``SharedCpuTiming`` has are its defaults."""
    return SharedCpuTiming(**msgspec.structs.asdict(timing))


class ProcessorSharing(Generic[Launch]):
    """The launches in progress on one machine of ``cores``, of which one can use ``width`` at most."""

    def __init__(self, kernel: Kernel, cores: int, width: int) -> None:
        self._kernel = kernel
        self._cores = cores
        self._width = width
        self._served = 0
        self._since_ms = 0
        self._turn = 0
        self._joined = 0
        self._waiting: list[tuple[int, int, Launch, Callable[[Launch], object]]] = []
        self._done: list[tuple[int, int, Launch, Callable[[Launch], object]]] = []

    def __len__(self) -> int:
        """Return how many launches are in progress."""
        return len(self._waiting) + len(self._done)

    def join(self, launch: Launch, cpu_ms: int, up: Callable[[Launch], object]) -> None:
        """Begin a launch that needs ``cpu_ms`` of CPU; ``up(launch)`` is called when it has had them."""
        self._advance()
        self._joined += 1
        heappush(self._waiting, (self._served + cpu_ms * UNIT, self._joined, launch, up))
        self._plan()

    def leave(self, launch: Launch) -> None:
        """A process that was being launched is gone: its share is the others' from now on."""
        self._advance()
        self._waiting = [each for each in self._waiting if each[2] != launch]
        self._done = [each for each in self._done if each[2] != launch]
        heapify(self._waiting)
        self._plan()

    def _advance(self) -> None:
        """Count what each has been given since the last change: a launch that was done then left it then."""
        left = (self._kernel.now_ms - self._since_ms) * UNIT
        self._since_ms = self._kernel.now_ms
        waiting = self._waiting
        while waiting:
            given, among = self._speed()
            short = waiting[0][0] - self._served
            takes = -(-short * among // given)
            if takes > left + SLACK:
                self._served += left * given // among
                return
            left = max(0, left - takes)
            self._served += short
            self._done.append(heappop(waiting))

    def _speed(self) -> tuple[int, int]:
        """Return what each launch is given in a millisecond, as a fraction: so many ms among so many."""
        crowd = len(self._waiting)
        return (self._width, 1) if self._width * crowd < self._cores else (self._cores, crowd)

    def _plan(self) -> None:
        """Schedule a check for the millisecond in which the next launch is done; an earlier one is void."""
        self._turn += 1
        span_ms = 0
        if not self._done:
            if not self._waiting:
                return
            given, among = self._speed()
            takes = -(-(self._waiting[0][0] - self._served) * among // given)
            span_ms = -(-max(0, takes - SLACK) // UNIT)
        self._kernel.at(self._kernel.now_ms + span_ms, self._check_done, self._turn)

    def _check_done(self, turn: int) -> None:
        if turn == self._turn:
            self._advance()
            done, self._done = self._done, []
            self._plan()
            for _, _, launch, up in done:
                up(launch)


def launch_queues(kernel: Kernel, timing: SharedCpuTiming, nodes: int) -> list[ProcessorSharing[Container]]:
    """Return the launches of each machine; node ``i`` is on machine ``i // timing.machine_nodes``."""
    machines = -(-nodes // timing.machine_nodes)
    return [ProcessorSharing(kernel, timing.machine_cores, timing.launch_width) for _ in range(machines)]


class CrowdedLaunching(Launching):
    """Launches share the cores of their machine."""

    __slots__ = ("_launch_queues", "_small", "_starting")

    def __init__(
        self, master: LaunchingMaster, timing: SharedCpuTiming, crowds: list[ProcessorSharing[Container]]
    ) -> None:
        super().__init__(master)
        self._small = timing
        self._launch_queues = crowds
        self._starting: set[int] = set()

    def launch(self, granted: list[Container], now_ms: int) -> bool:
        """Begin an attempt in each container; return whether there were maps among them."""
        if not self._small.launch_cpu_ms:
            return super().launch(granted, now_ms)
        launched = [container for container in granted if container.state == GRANTED]
        for container in launched:
            self._starting.add(container.number)
        maps = super().launch(granted, now_ms)
        for container in launched:
            if container.state == RUNNING:
                # Its timetable is not known yet; what has been put down for it is void.
                container.work_at_ms = container.finish_at_ms = NEVER
                self._at(now_ms + self.timing.launch_ms, self._begun, container)
            else:
                self._starting.discard(container.number)
        return maps

    def _begun(self, container: Container) -> None:
        """What every launch waits for is over: from now on it needs CPU."""
        if container.number in self._starting and not container.node.dead:
            self._launch_queue(container).join(container, self._small.launch_cpu_ms, self._up)

    def _launch_queue(self, container: Container) -> ProcessorSharing[Container]:
        return self._launch_queues[container.node.index // self._small.machine_nodes]

    def _up(self, container: Container) -> None:
        """The process is up: a map begins, a reduce does once all maps are done."""
        self._starting.discard(container.number)
        now_ms = self.master.kernel.now_ms
        if container.state != RUNNING or container.node.dead:
            return
        if container.kind == MAP:
            if container.attempt:
                self.master.overhead_ms += now_ms - container.launched_at_ms - self.timing.launch_ms
            container.work_at_ms = now_ms
            container.finish_at_ms = now_ms + container.length_ms
            self._at(container.finish_at_ms, self._map_done, container)
        elif container not in self.shuffling:
            super().timetable(container, now_ms)

    def timetable(self, container: Container, ready_ms: int) -> None:
        """Fix the phases of an attempt, unless its process is not up yet."""
        if container.number not in self._starting:
            super().timetable(container, max(ready_ms, self.master.kernel.now_ms))

    def ended(self, container: Container) -> None:
        """The attempt has been ended before its time: its launch no longer needs CPU."""
        super().ended(container)
        if container.number in self._starting:
            self._starting.remove(container.number)
            self._launch_queue(container).leave(container)

    def starting(self, container: Container) -> bool:
        """Say whether the container's process is being launched."""
        return container.number in self._starting


class SharedCpuMaster(AppMaster):
    """An AM whose launches share cores, and whose asks for reduces may go out one heartbeat later."""

    __slots__ = ("_asks_after_beat", "_due", "_held_back")

    def __init__(
        self,
        job: Job,
        app: Application,
        host: MasterHost,
        timing: SharedCpuTiming,
        crowds: list[ProcessorSharing[Container]],
    ) -> None:
        super().__init__(job, app, host)
        self.launching = CrowdedLaunching(self, timing, crowds)
        self._asks_after_beat = timing.asks_after_beat
        self._due: list[tuple[int, int]] = []
        self._held_back = False

    def _ask(self, priority: int, count: int) -> None:
        maps = priority in (FAILED_MAP, MAP_PRIORITY)
        if self._asks_after_beat and not maps and not self._held_back:
            self._due.append((priority, count))
            self.wake()
        else:
            super()._ask(priority, count)

    def beat(self, now_ms: int) -> None:
        """Send the heartbeat, then queue the asks that it found due for the next one."""
        due, self._due = self._due, []
        super().beat(now_ms)
        self._held_back = True
        for priority, count in due:
            self._ask(priority, count)
        self._held_back = False

    def due(self, priority: int) -> int:
        """Return how many containers wait for the next heartbeat to be asked for."""
        return sum(count for each, count in self._due if each == priority)

    def die(self) -> None:
        """The AM itself is gone: what it was about to ask for, the next one finds out again."""
        super().die()
        self._due.clear()


class SharedCpuCluster(Cluster):
    """A cluster whose ``timing`` is a ``SharedCpuTiming``; all else is as for ``Cluster``."""

    def __init__(
        self,
        *,
        nodes: int,
        node_size: Resources,
        queues: tuple[QueueConfig, ...],
        jobs: tuple[Job, ...],
        timing: SharedCpuTiming,
        seed: int,
        faults: tuple[Fault, ...] = (),
        parents: tuple[ParentConfig, ...] = (),
        labels: tuple[NodeLabel, ...] = (),
    ) -> None:
        super().__init__(
            nodes=nodes,
            node_size=node_size,
            queues=queues,
            jobs=jobs,
            timing=timing,
            seed=seed,
            faults=faults,
            parents=parents,
            labels=labels,
        )
        self.small = timing
        self.linger_ms = timing.am_linger_ms
        self.beats_at_exit = timing.beats_at_exit
        self.launch_queues = launch_queues(self.kernel, timing, nodes)

    def master_of(self, job: Job, app: Application) -> AppMaster:
        """Return a new application's master."""
        return SharedCpuMaster(job, app, self, self.small, self.launch_queues)

    def exit(self, container: Container, at_ms: int) -> None:
        """A process is gone at ``at_ms``: its node reports it at its next heartbeat, or sends one at once."""
        node = container.node
        silent = node.dead or node.lost or at_ms < node.silent_until_ms
        if not self.beats_at_exit or silent or container.state == RELEASED:
            super().exit(container, at_ms)
            return
        container.exit_at_ms = at_ms
        node.exited += (container,)
        # What ends at the very instant of a past heartbeat is reported by the next one.
        self._at(max(at_ms, node.beat_at_ms + 1), self._on_beat, node)


# A program with a SharedCpuTiming has imported this module, a worker process that was sent one as well.
CLUSTERS[SharedCpuTiming] = SharedCpuCluster
