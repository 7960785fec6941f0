"""The cluster in virtual time: actors wired together, messages delivered by the kernel.

Law: this is the transport and nothing else: it decides no allocation and has no policy. It
leaves out heartbeats that provably change nothing: a node's heartbeat happens when a process has
gone on it, or when it has room and an ask waits; a *sweep* visits nodes with room in the order
of their phases and ends once a whole round granted nothing and nothing has changed since.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from emulator.cluster.app_master import AppMaster
from emulator.cluster.entities import (
    AM,
    ENDED,
    NEVER,
    RELEASED,
    RUNNING,
    Application,
    Ask,
    Container,
    Node,
    ParentConfig,
    QueueConfig,
)
from emulator.cluster.executors.spark_master import SparkMaster
from emulator.cluster.faults import Fault, HeartbeatLost, MasterDead, NodeLost, NodeSlow, StoreDown, TaskDead
from emulator.cluster.kernel import Kernel
from emulator.cluster.resource_manager import ResourceManager
from emulator.cluster.suspension import Suspension
from emulator.cluster.timing import Timing
from yarnctl.deciding.draws import uniform
from yarnctl.errors import BadInput, YarnctlError
from yarnctl.traces.job import Job
from yarnctl.units import Resources, fits

LONGEST_MS = 366 * 24 * 3_600_000
"""No instant of submission and no task is beyond a year of virtual time."""


class Stuck(YarnctlError):
    """No event is left, or time is up, and jobs are unfinished."""


def require_possible(job: Job, node_size: Resources) -> None:
    """Raise BadInput for a job with a container that fits on no node, or a span beyond a year."""
    longest_ms = max(job.submitted_at_ms, job.shuffle_ms, *job.map_ms, *job.reduce_ms, 0)
    if longest_ms > LONGEST_MS:
        raise BadInput(f"job {job.name}", f"{longest_ms} ms is longer than a year", "use shorter times")
    wanted = {"am_size": job.am_size}
    if job.map_ms:
        wanted["map_size"] = job.map_size
    if job.reduce_ms:
        wanted["reduce_size"] = job.reduce_size
    for field, size in wanted.items():
        if not fits(size, node_size):
            raise BadInput(
                f"job {job.name}, field {field}",
                f"{size.memory_mib} MiB and {size.vcores} vcores fit on no node"
                f" ({node_size.memory_mib} MiB, {node_size.vcores} vcores)",
                "use larger nodes or a smaller container",
            )


class Sweep:
    """Heartbeats in turn of the nodes with room, while an ask waits. ``under_way``: a round continues."""

    def __init__(
        self, kernel: Kernel, manager: ResourceManager, interval_ms: int, beat: Callable[[Node], object]
    ) -> None:
        self._kernel = kernel
        self._manager = manager
        self._interval_ms = interval_ms
        self._beat = beat
        self.under_way = False
        self._idle_version = -1
        self._checked_version = -1
        self._fruitless = 0

    def begin(self) -> None:
        """Something changed: if an ask waits and a node has room, visit the nodes."""
        rm = self._manager
        if self.under_way or not rm.open_nodes or not rm.scheduler.demanding:
            return
        if self._idle_version == rm.scheduler.version or not rm.scheduler.servable():
            return
        self.under_way = True
        self._fruitless = 0
        now_ms = self._kernel.now_ms
        self._visit_next(now_ms, (now_ms % self._interval_ms, len(rm.nodes)))

    def _visit_next(self, now_ms: int, place: tuple[int, int]) -> None:
        open_nodes, interval_ms = self._manager.open_nodes, self._interval_ms
        found = bisect_right(open_nodes, place)
        if found < len(open_nodes):
            phase_ms, index = open_nodes[found]
            at_ms = now_ms + phase_ms - now_ms % interval_ms
        else:
            phase_ms, index = open_nodes[0]
            at_ms = now_ms + interval_ms + phase_ms - now_ms % interval_ms
        self._kernel.at(at_ms, self._visit, self._manager.nodes[index])

    def _visit(self, node: Node) -> None:
        rm, scheduler = self._manager, self._manager.scheduler
        self._beat(node)
        # A node may have sent its heartbeat at this very instant, for a process that has ended: what that
        # one changed counts, so versions are compared from visit to visit.
        if scheduler.version != self._checked_version:
            self._checked_version = scheduler.version
            self._fruitless = 0
        else:
            self._fruitless += 1
        if not rm.open_nodes or not scheduler.servable():
            self.under_way = False
        elif self._fruitless > len(rm.open_nodes):
            self.under_way = False
            self._idle_version = scheduler.version
        else:
            self._visit_next(self._kernel.now_ms, (node.phase_ms, node.index))


class Cluster:
    """A cluster and its workload. ``masters`` holds every job's AM in the order of submission."""

    def __init__(
        self,
        *,
        nodes: int,
        node_size: Resources,
        queues: tuple[QueueConfig, ...],
        jobs: tuple[Job, ...],
        timing: Timing,
        seed: int,
        faults: tuple[Fault, ...] = (),
        parents: tuple[ParentConfig, ...] = (),
    ) -> None:
        self.kernel = Kernel()
        self.timing = timing
        self.seed = seed
        self.jobs = jobs
        self.rm = ResourceManager(queues, self, parents)
        self.suspension = Suspension(self)
        self.masters: list[AppMaster] = []
        self.linger_ms = 0
        self.beats_at_exit = False
        self.unfinished = len(jobs)
        self.store_downs: list[tuple[int, int]] = []
        # One bound method for all events: tens of thousands of them wait at a time.
        self._on_beat = self._beat
        self._at = self.kernel.at
        self._nm_heartbeat_ms = timing.nm_heartbeat_ms
        self.serial_ms = max((job.submitted_at_ms for job in jobs), default=0)
        self.serial_ms += sum(sum(job.map_ms) + sum(job.reduce_ms) for job in jobs)
        self.sweep = Sweep(self.kernel, self.rm, timing.nm_heartbeat_ms, self._beat)
        self._default_queue = queues[0].name if queues else ""
        interval_ms = timing.nm_heartbeat_ms
        for index in range(nodes):
            phase_ms = uniform(seed, 2, index) * interval_ms >> 64
            self.rm.register_node(Node(index, node_size.memory_mib, node_size.vcores, phase_ms))
        for number, job in enumerate(jobs, 1):
            require_possible(job, node_size)
            self.kernel.at(job.submitted_at_ms + timing.submit_ms, self._submit, (number, job))
        for fault in faults:
            self.kernel.at(fault.at_ms, self._play, fault)

    # --- running --------------------------------------------------------------------------

    def run(self, until_ms: int | None = None) -> None:
        """Run until every job is done. Raise Stuck, naming a job, if that does not come."""
        self.kernel.run(until_ms)
        self.require_done()

    def at_rest(self) -> bool:
        """Say whether all jobs are submitted and no attempt that runs will ever end."""
        return len(self.masters) == len(self.jobs) and not any(
            container.finish_at_ms != NEVER
            for master in self.masters
            if master.app.finished_at_ms is None
            for container in master.running.values()
        )

    def require_done(self) -> None:
        """Raise Stuck unless every job has finished."""
        if self.unfinished:
            left = [job.name for number, job in enumerate(self.jobs, 1) if not self._done(number)]
            now_ms = self.kernel.now_ms
            raise Stuck(f"{len(left)} jobs are unfinished at {now_ms} ms, first {left[0]}: {self._why()}")

    def _why(self) -> str:
        """Say in words why nothing can happen any more."""
        if all(node.lost for node in self.rm.nodes):
            return "no node is left"
        held = self.rm.scheduler.live.values()
        if held and all(container.kind == AM for container in held):
            return "masters hold all containers and no task can run; use more slots or a smaller AM share"
        if self.kernel.now_ms > self.serial_ms:
            return "its tasks are stopped and started over for ever; other shares or policies may help"
        return "nothing that happens can give it the containers it waits for"

    def _done(self, number: int) -> bool:
        return number <= len(self.masters) and self.masters[number - 1].app.finished_at_ms is not None

    # --- submission and masters -----------------------------------------------------------

    def _submit(self, numbered: tuple[int, Job]) -> None:
        _, job = numbered
        scheduler = self.rm.scheduler
        queue = scheduler.leaf_for(job.queue or job.job_class) or scheduler.queues[self._default_queue]
        number = len(self.masters) + 1
        app = Application(number, queue, job.user, job.submitted_at_ms, job.am_size.memory_mib)
        app.deadline_at_ms = job.deadline_at_ms
        app.master = self.master_of(job, app)
        self.masters.append(app.master)
        self.rm.submit(app, job.am_size)
        self.sweep.begin()

    def master_of(self, job: Job, app: Application) -> AppMaster:
        """Return a new application's master."""
        return SparkMaster(job, app, self) if job.spark else AppMaster(job, app, self)

    def launch_master(self, container: Container) -> None:
        """Start an AM: it registers ``am_start_ms`` later."""
        container.state = RUNNING
        container.task = 0
        container.attempt = container.app.attempt
        self.kernel.at(self.kernel.now_ms + self.timing.am_start_ms, self._master_up, container)

    def _master_up(self, container: Container) -> None:
        app = container.app
        if container.state == RUNNING and container.attempt == app.attempt and not container.node.dead:
            app.master.register(self.kernel.now_ms)

    def wake(self, app: Application) -> None:
        """Let the application's AM have its next heartbeat."""
        app.master.wake()

    def allocate(
        self, app: Application, asks: list[tuple[Ask, int]]
    ) -> tuple[list[Container], list[Container]]:
        """Carry an AM's heartbeat to the ResourceManager."""
        answer = self.rm.allocate(app, asks)
        if asks:
            self.sweep.begin()
        return answer

    def finished(self, master: AppMaster) -> None:
        """Count a finished job; the cluster stops when it was the last."""
        now_ms = self.kernel.now_ms
        master.die()
        self._end_master(master.app, "completed")
        self.rm.finish(master.app, now_ms)
        self.unfinished -= 1
        if not self.unfinished:
            self.kernel.stop()
        self.sweep.begin()

    # --- nodes ----------------------------------------------------------------------------

    def exit(self, container: Container, at_ms: int) -> None:
        """A process is gone at ``at_ms``: its node reports it at its next heartbeat."""
        node = container.node
        if container.state == RELEASED or node.lost:
            return
        container.exit_at_ms = at_ms
        node.exited += (container,)
        if node.dead:
            return
        # What ends at the very instant of a past heartbeat is reported by the next one.
        if at_ms <= node.beat_at_ms:
            at_ms = node.beat_at_ms + 1
        # node.next_beat_ms, spelled out: this runs once a task.
        if at_ms < node.silent_until_ms:
            at_ms = node.silent_until_ms
        self._at(at_ms + (node.phase_ms - at_ms) % self._nm_heartbeat_ms, self._on_beat, node)

    def _beat(self, node: Node) -> None:
        """Let a node have its heartbeat."""
        now_ms = self.kernel.now_ms
        if node.beat_at_ms == now_ms:
            return
        if now_ms < node.silent_until_ms:  # for ever, once it is lost
            if node.exited and not node.dead:
                at_ms = node.next_beat_ms(now_ms, self.timing.nm_heartbeat_ms)
                self.kernel.at(at_ms, self._beat, node)
            return
        node.beat_at_ms = now_ms
        rm, exited = self.rm, node.exited
        if len(exited) == 1 and exited[0].exit_at_ms <= now_ms:
            node.exited = ()
        elif exited:
            exited = node.take_exited(now_ms)
        rm.node_heartbeat(node, exited, now_ms)
        if rm.open_nodes and not self.sweep.under_way:
            self.sweep.begin()

    # --- faults ---------------------------------------------------------------------------

    def store_down(self, at_ms: int) -> bool:
        """Say whether the checkpoint store is down at ``at_ms``."""
        return any(begin <= at_ms < end for begin, end in self.store_downs)

    def _play(self, fault: Fault) -> None:
        match fault:
            case NodeLost():
                self._node_dies(self.rm.nodes[fault.node % len(self.rm.nodes)])
            case NodeSlow():
                node = self.rm.nodes[fault.node % len(self.rm.nodes)]
                node.slow_ratio = fault.ratio
                self.kernel.at(fault.until_ms, self._node_recovers, node)
            case HeartbeatLost():
                node = self.rm.nodes[fault.node % len(self.rm.nodes)]
                node.silent_until_ms = max(node.silent_until_ms, fault.until_ms)
                self.kernel.at(fault.until_ms, self._node_reconnects, node)
            case TaskDead():
                self._task_dies(fault)
            case MasterDead():
                if fault.job < len(self.masters):
                    self._master_dies(self.masters[fault.job])
            case StoreDown():
                self.store_downs.append((fault.at_ms, fault.until_ms))

    def _node_recovers(self, node: Node) -> None:
        node.slow_ratio = 1.0

    def _node_reconnects(self, node: Node) -> None:
        self.rm.scheduler.version += 1
        self.sweep.begin()

    def _node_dies(self, node: Node) -> None:
        if node.dead:
            return
        node.dead = True
        node.silent_until_ms = NEVER
        for container in node.containers.values():
            container.finish_at_ms = NEVER
            container.release_wait_token += 1
            if container.kind == AM and container.state == RUNNING:
                container.app.master.alive = False
        self.kernel.at(self.kernel.now_ms + self.timing.node_expiry_ms, self._node_expires, node)

    def _node_expires(self, node: Node) -> None:
        masters = [each for each in node.containers.values() if each.kind == AM and each.state == RUNNING]
        self.rm.lose_node(node, self.kernel.now_ms)
        for master in self.masters:
            if master.app.finished_at_ms is None:
                master.node_lost(node.index)
        for container in masters:
            self._restart(container.app.master)
        self.sweep.begin()

    def _task_dies(self, dead: TaskDead) -> None:
        if dead.job < len(self.masters):
            master = self.masters[dead.job]
            running = [each for each in master.running.values() if not each.node.dead]
            if master.alive and running:
                master.fail(running[dead.pick % len(running)])

    def _master_dies(self, master: AppMaster) -> None:
        if not master.alive:
            return
        self._end_master(master.app, "failed")
        self._restart(master)

    def _end_master(self, app: Application, ending: str) -> None:
        container = app.am_container
        if container is not None and container.state == RUNNING:
            container.state = ENDED
            container.terminal_state = ending
            linger_ms = self.linger_ms if ending == "completed" else 0
            self.exit(container, self.kernel.now_ms + self.timing.exit_ms + linger_ms)

    def _restart(self, master: AppMaster) -> None:
        master.die()
        self.rm.scheduler.clear_asks(master.app)
        self.kernel.at(self.kernel.now_ms + self.timing.am_retry_ms, self._retry, master)

    def _retry(self, master: AppMaster) -> None:
        self.rm.retry_master(master.app, master.job.am_size)
        self.sweep.begin()
