"""One run in virtual time: a cluster, a workload, a scheme, and the result.

Law: the controller, its loop and its journal are the very objects that drive a real cluster;
here the kernel calls the loop as an event. Same arguments, same bytes out.

Preemptable queues are capped in virtual time as ``--cap-queue`` does on a cluster: ``yarnctl/deciding/
queue_hold.py`` decides when; here the emulated scheduler's configuration is changed and restored. Both are
recorded in the journal first.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping

import msgspec

from emulator.cluster.cluster import Cluster
from emulator.cluster.entities import NodeLabel, ParentConfig, QueueConfig
from emulator.cluster.executors.spark_master import SparkMaster
from emulator.cluster.faults import Fault
from emulator.cluster.preemption import CapacityPreemption
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.queues.tree_queue import QueueSource
from emulator.cluster.timing import Timing
from emulator.virtual.lever_tally import LeverFigures, LeverTally
from emulator.virtual.port import VirtualPort
from emulator.virtual.schemes import LeafLimits, Scheme, limited, queues_of
from emulator.virtual.waiting import Waiting, WaitingCauses, waiting_of
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.held_windows import MARK_MS, HeldWindows
from yarnctl.deciding.model import Accepted, Change, Restore, SetQueueMaximum
from yarnctl.deciding.queue_hold import QueueCap, QueueLimits, capping
from yarnctl.deciding.reasons.orders import DemandOver, QueueServing, ReadBack
from yarnctl.deciding.records import Lowering, Record, Restored, Restoring, performed
from yarnctl.deciding.settings import LeverSettings, Settings
from yarnctl.deciding.time_lost import TimeCause, TimeLost
from yarnctl.deciding.waiting_worth import ROOM_SUSPENSIONS
from yarnctl.errors import BadInput, InvariantBroken
from yarnctl.journal.chain import MemoryJournal
from yarnctl.loop import Journal, tick
from yarnctl.traces.job import Job, JobClass
from yarnctl.units import Resources


def lever_settings(
    timing: Timing,
    may_lose_ratio: float,
    room_within_ms: int | None,
    second_worth_ratio: float | msgspec.UnsetType = msgspec.UNSET,
    kills_max: int | msgspec.UnsetType = msgspec.UNSET,
) -> LeverSettings:
    """Return what is predicted of levers on a cluster with these times.

    A suspension that has written its checkpoint is seen by the next look, and its container is then
    released; a kill frees its container when the process is gone and the node has reported it. Each of the
    two heartbeats of a suspension takes half of its period; the one of a kill alone is counted as
    three quarters, so that nine predictions of ten hold with a quarter more.
    """
    beat_ms = timing.nm_heartbeat_ms // 2
    heard_ms = timing.suspend_poll_ms // 2 if timing.trigger == "umbilical" else beat_ms
    leave_ms = timing.exit_ms + timing.nm_heartbeat_ms * 3 // 4
    suspend_ms = heard_ms + timing.drain_ms + timing.upload_ms + timing.exit_ms + beat_ms
    usual_ms = suspend_ms * ROOM_SUSPENSIONS if second_worth_ratio else suspend_ms
    within_ms = usual_ms if room_within_ms is None else room_within_ms
    return LeverSettings(
        room_within_ms=within_ms,
        suspend_ms=suspend_ms,
        leave_ms=leave_ms,
        commit_ms=timing.task_commit_ms,
        may_lose_ratio=may_lose_ratio,
        second_worth_ratio=second_worth_ratio,
        kills_max=kills_max,
    )


CLUSTERS: dict[type[Timing], Callable[..., Cluster]] = {Timing: Cluster}
"""The cluster of each kind of timing; research adds kinds of its own."""


def cluster_of(
    *,
    nodes: int,
    node_size: Resources,
    queues: tuple[QueueConfig, ...],
    jobs: tuple[Job, ...],
    timing: Timing,
    seed: int,
    faults: tuple[Fault, ...] = (),
    parents: tuple[ParentConfig, ...] = (),
    labels: tuple[NodeLabel, ...] = (),
) -> Cluster:
    """Return the cluster of that kind of timing; raise BadInput for a Spark job in a variant."""
    sparks = [job.name for job in jobs if job.spark]
    if sparks and type(timing) is not Timing:
        raise BadInput(f"job {sparks[0]}", "is of Spark, which these timings do not know", "use others")
    return CLUSTERS[type(timing)](
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


class VirtualQueueCap:
    """Caps the queues ``victims`` of a cluster while asks are being served."""

    def __init__(self, cluster: Cluster, victims: tuple[str, ...]) -> None:
        self._cluster = cluster
        self._preemptable_queues = victims
        self._when = QueueCap()
        self.capped: dict[str, Change] = {}

    def reconcile(self, write: Callable[[tuple[Record, ...]], None], orders: int, waiting: bool) -> None:
        """After a tick: cap, or restore; ``orders`` are open; ``waiting``: a preempting queue has asks."""
        now_ms = self._cluster.kernel.now_ms
        if not self._when.is_due(now_ms, orders, waiting):
            for name, change in sorted(self.capped.items()):
                write((Restoring(now_ms, change, DemandOver()),))
                self._set(name, float(change.before))
                write((performed(now_ms, Restore(change), Accepted()),))
                write((Restored(now_ms, change.kind, name, change.before, ReadBack()),))
            self.capped.clear()
        elif not self.capped:
            for name in self._preemptable_queues:
                if name not in self._cluster.rm.scheduler.queues:
                    continue  # not created yet
                config = self._cluster.rm.scheduler.queues[name].config
                found = capping(name, QueueLimits(config.capacity_ratio, config.maximum_ratio))
                if found is not None:
                    self.capped[name] = found
                    write((Lowering(now_ms, (found,), QueueServing()),))
                    self._set(name, float(found.now))
                    write((performed(now_ms, SetQueueMaximum(name, float(found.now)), Accepted()),))

    def _set(self, name: str, ratio: float) -> None:
        rm = self._cluster.rm
        queue = rm.scheduler.queues[name]
        queue.config = msgspec.structs.replace(queue.config, maximum_ratio=ratio)
        rm.scheduler.resize(*rm.total)
        self._cluster.sweep.begin()


SAMPLES = 400
"""How many samples of occupancy a run should have, about."""

IDLE_MAX_MS = 100 * 3_600_000
"""What takes so much longer than all work one after the other is started over for ever."""

STALL_MS = 3_600_000
"""A cluster in which nothing has changed for so long, and nothing runs, is stuck."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What stays the same between the schemes of one comparison.

    ``lower``: with ``--cap-queue``; ``ahead_max``: with ``--predicted-demand`` so many. Of a mix:
    ``may_lose_ratio`` of the preemptable queues' container time, how soon a lever must give room (None: as
    soon as a suspension does), what a second is worth and how often a task may be killed. ``leaves`` and
    ``parents``: a tree, in the place of all other queues; ``source``: where its queues on demand come from;
    ``labels``: of its first nodes. ``governed``: a mix has its governor, as shipped.
    """

    nodes: int
    node_size: Resources
    timing: Timing
    settings: Settings
    shares: tuple[float, float] = (0.95, 0.05)
    caps: tuple[float, float] = (0.8, 0.2)
    am_ratio: float = 1.0
    seed: int = 0
    faults: tuple[Fault, ...] = ()
    more_queues: tuple[QueueConfig, ...] = ()
    limits: tuple[LeafLimits, ...] = ()
    validate: bool = False
    hold: bool = False
    ahead_max: int = 0
    may_lose_ratio: float = 0.0
    room_within_ms: int | None = None
    second_worth_ratio: float | msgspec.UnsetType = msgspec.UNSET
    kills_max: int | msgspec.UnsetType = msgspec.UNSET
    leaves: tuple[QueueConfig, ...] = ()
    parents: tuple[ParentConfig, ...] = ()
    source: QueueSource | None = None
    labels: tuple[NodeLabel, ...] = ()
    governed: bool = True


class JobResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finished job; ``completion_ms`` counts from its submission, ``lost_ms`` is work done again."""

    name: str
    job_class: JobClass
    submitted_at_ms: int
    completion_ms: int
    deadline_at_ms: int | None
    suspensions: int
    lost_ms: int = 0


class MemorySample(msgspec.Struct, frozen=True):
    """Memory in use at one instant, by class, and how many tasks were waiting to resume."""

    at_ms: int
    production_mib: int
    research_mib: int
    suspended: int


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one run. ``waiting``: class -> cause -> ms of waiting containers, if it was counted.

    ``suspended_at_ms`` and ``killed_at_ms``: when a task left or was killed, in order; ``levers``: of a mix.
    ``time_lost``: cause -> ms that production waited, as yarnctl found it, if what waits was counted.
    """

    scheme: str
    jobs: tuple[JobResult, ...]
    lost_work_ms: int
    overhead_ms: int
    suspensions: int
    kills: int
    utilisation_ratio: float
    makespan_ms: int
    events: int
    samples: tuple[MemorySample, ...] = ()
    suspended_at_ms: tuple[int, ...] = ()
    killed_at_ms: tuple[int, ...] = ()
    waiting: Waiting | msgspec.UnsetType = msgspec.UNSET
    levers: LeverFigures | msgspec.UnsetType = msgspec.UNSET
    time_lost: Mapping[TimeCause, int] | msgspec.UnsetType = msgspec.UNSET


class Run:
    """A cluster with what watches it; ``after_each`` (invariants) is called after every event.

    With ``sample_ms`` occupancy is sampled so often, and what waits is counted by its cause.
    """

    def __init__(
        self,
        setup: Setup,
        jobs: tuple[Job, ...],
        scheme: Scheme,
        journal: Journal | None = None,
        sample_ms: int = 0,
    ) -> None:
        self.setup = setup
        self.scheme = scheme
        deadlines = setup.settings.mode == "deadlines"
        queues = limited(queues_of(scheme, setup.shares, setup.caps, setup.am_ratio), setup.limits)
        if deadlines:
            queues = (
                msgspec.structs.replace(queues[0], name="default", capacity_ratio=1.0, maximum_ratio=1.0),
            )
        queues += setup.more_queues
        if setup.parents:
            queues = setup.leaves
        self.cluster = cluster_of(
            nodes=setup.nodes,
            node_size=setup.node_size,
            queues=queues,
            jobs=jobs,
            timing=setup.timing,
            seed=setup.seed,
            faults=setup.faults,
            parents=setup.parents,
            labels=setup.labels,
        )
        if isinstance(self.cluster.rm.scheduler, TreeScheduler):
            self.cluster.rm.scheduler.source = setup.source
            expiry_ms = None if setup.source is None else setup.source.expiry_ms
            if expiry_ms:
                self.cluster.kernel.at(expiry_ms, self._expire, expiry_ms)
        self.samples: list[MemorySample] = []
        self.time_lost = TimeLost()
        self.sample_ms = sample_ms
        self.controller: Controller | None = None
        self.levers: LeverTally | None = None
        self.preemption: CapacityPreemption | None = None
        if scheme.eviction is not None:
            self._attach(journal if journal is not None else MemoryJournal())
        if scheme.preemption is not None:
            self.preemption = CapacityPreemption(self.cluster, scheme.preemption)
            self.preemption.start()
        self.waiting = WaitingCauses(self.cluster) if sample_ms else None
        if sample_ms:
            self.cluster.kernel.at(0, self._sample, None)

    def _attach(self, journal: Journal) -> None:
        settings = msgspec.structs.replace(self.setup.settings, eviction=self.scheme.eviction)
        if self.scheme.mix:
            levers = lever_settings(
                self.setup.timing,
                self.setup.may_lose_ratio,
                self.setup.room_within_ms,
                self.setup.second_worth_ratio,
                self.setup.kills_max,
            )
            governed = True if self.setup.governed else msgspec.UNSET
            settings = msgspec.structs.replace(settings, levers=levers, governed=governed)
        self.journal: Journal = journal
        ahead_max, preempting = self.setup.ahead_max, settings.preempting_queues
        port_type = PORTS.get(type(self.cluster.timing), VirtualPort)
        self.port = port_type(self.cluster, settings.kill_maps or self.scheme.mix, ahead_max, preempting)
        self.port.drains = self.scheme.mix
        if settings.levers is not None:
            self.port.held = HeldWindows(settings.levers.window_ms, settings.levers.budgets)
            self.cluster.kernel.at(0, self._sample_held, None)
            self.levers = LeverTally(journal, self.port.running)
            self.journal = self.levers
        self.controller = Controller(
            settings, self.port.identify().capabilities, validate=self.setup.validate
        )
        self.queue_cap = (
            VirtualQueueCap(self.cluster, settings.preemptable_queues) if self.setup.hold else None
        )
        self.cluster.kernel.at(settings.tick_ms, self._tick, settings.tick_ms)

    def _expire(self, expiry_ms: int) -> None:
        """Delete queues on demand that have expired; look again after as long."""
        kernel, scheduler = self.cluster.kernel, self.cluster.rm.scheduler
        if isinstance(scheduler, TreeScheduler) and scheduler.expire(kernel.now_ms):
            self.cluster.sweep.begin()
        kernel.at(kernel.now_ms + expiry_ms, self._expire, expiry_ms)

    def _tick(self, grid_ms: int) -> None:
        controller, kernel = self.controller, self.cluster.kernel
        assert controller is not None
        # A tick that would observe no demand, no open order and no fact, while no application is smaller for
        # our orders, decides nothing: leave it out.
        scope, small = controller.to_observe, controller.ledger.regrowing.shrunk
        if scope.orders or small or self.port.facts_waiting() or self.port.demand(scope.probe_queues):
            wake_at_ms = tick(controller, self.port, self.journal)
            if self.sample_ms:
                self.time_lost.look(controller.verdicts, kernel.now_ms)
        else:
            self.time_lost.look({}, kernel.now_ms)
            # Nothing can change before the next event: the first tick that could observe it is the next.
            next_ms = max(kernel.now_ms + 1, kernel.next_at_ms() or 0)
            wake_at_ms = next_ms + (-next_ms) % grid_ms
        if self.queue_cap is not None:
            waiting = self.port.demand(controller.settings.preempting_queues)
            self.queue_cap.reconcile(self.journal.append, len(controller.ledger.open), waiting)
            if self.queue_cap.capped:
                wake_at_ms = min(wake_at_ms, kernel.now_ms + grid_ms)
        if self.cluster.unfinished:
            kernel.at(max(wake_at_ms, kernel.now_ms), self._tick, grid_ms)

    def _sample_held(self, _: None) -> None:
        """Count what queues held, also while no tick observes the cluster."""
        self.port.sample()
        if self.cluster.unfinished:
            self.cluster.kernel.at(self.cluster.kernel.now_ms + MARK_MS, self._sample_held, None)

    def _sample(self, _: None) -> None:
        cluster = self.cluster
        held = {"production": 0, "research": 0}
        suspended = 0
        for app in cluster.rm.applications.values():
            held[app.master.job.job_class] += app.used_mib
            for queue in app.master.pending.unassigned.values():
                suspended += sum(1 for task in queue if task in app.master.store) if app.master.store else 0
        self.samples.append(
            MemorySample(cluster.kernel.now_ms, held["production"], held["research"], suspended)
        )
        if cluster.unfinished:
            cluster.kernel.at(cluster.kernel.now_ms + self.sample_ms, self._sample, None)

    def go(self, after_each: Callable[[], None] | None = None, until_ms: int | None = None) -> Result:
        """Run to the end and return what came of it. Raises Stuck when jobs cannot finish."""
        collecting = gc.isenabled()
        # Millions of small live objects and no cycles among the short-lived ones: collecting only costs.
        gc.disable()
        try:
            self._play(after_each, until_ms)
        finally:
            if collecting:
                gc.enable()
        self.cluster.require_done()
        return self.result()

    def _play(self, after_each: Callable[[], None] | None, until_ms: int | None) -> None:
        """Run the kernel an hour at a time; stop when for a whole hour nothing moved and nothing can.

        The ticks of a controller or a monitor go on for ever: only the cluster's state
        shows whether anything can still change.
        """
        kernel, cluster = self.cluster.kernel, self.cluster
        while cluster.unfinished and kernel.next_at_ms() is not None:
            version = cluster.rm.scheduler.version
            stop_ms = max(kernel.now_ms, kernel.next_at_ms() or 0) + STALL_MS
            kernel.run(stop_ms if until_ms is None else min(stop_ms, until_ms), after_each)
            if until_ms is not None and kernel.now_ms >= until_ms:
                return
            if version == cluster.rm.scheduler.version and cluster.at_rest():
                return
            if kernel.now_ms > cluster.serial_ms + IDLE_MAX_MS:
                return

    def result(self) -> Result:
        """Return what came of the run."""
        cluster = self.cluster
        makespan_ms = max((master.app.finished_at_ms or 0 for master in cluster.masters), default=0)
        scheduler = cluster.rm.scheduler
        queues = (*scheduler.queues.values(), *scheduler.gone)
        held = sum(sum(queue.usage_mib_ms.values()) for queue in queues)
        for container in cluster.rm.scheduler.live.values():
            held += container.memory_mib * (cluster.kernel.now_ms - container.granted_at_ms)
        offered = self.setup.nodes * self.setup.node_size.memory_mib * makespan_ms
        killed_at_ms = list(self.preemption.killed_at_ms) if self.preemption else []
        if self.controller is not None:
            killed_at_ms += self.port.killed_at_ms
        suspended_at_ms = [at_ms for master in cluster.masters for at_ms in master.suspended_at_ms]
        jobs = tuple(self._job(master) for master in cluster.masters)
        return Result(
            scheme=self.scheme.name,
            jobs=jobs,
            lost_work_ms=sum(job.lost_ms for job in jobs),
            overhead_ms=sum(master.overhead_ms for master in cluster.masters),
            suspensions=len(suspended_at_ms),
            kills=len(killed_at_ms),
            utilisation_ratio=held / offered if offered else 0.0,
            makespan_ms=makespan_ms,
            events=cluster.kernel.events,
            samples=tuple(self.samples),
            suspended_at_ms=tuple(sorted(suspended_at_ms)),
            killed_at_ms=tuple(sorted(killed_at_ms)),
            waiting=self.waiting.close() if self.waiting else msgspec.UNSET,
            levers=self.levers.close() if self.levers else msgspec.UNSET,
            time_lost=self.time_lost.waited_ms if self.controller and self.sample_ms else msgspec.UNSET,
        )

    @staticmethod
    def _job(master: object) -> JobResult:
        job, app = master.job, master.app  # type: ignore[attr-defined]
        return JobResult(
            job.name,
            job.job_class,
            job.submitted_at_ms,
            (app.finished_at_ms or 0) - job.submitted_at_ms,
            job.deadline_at_ms,
            master.suspensions,  # type: ignore[attr-defined]
            # Applications of Spark do work twice, too, though nothing of theirs was killed.
            master.lost_ms + (master.again_ms if isinstance(master, SparkMaster) else 0),  # type: ignore[attr-defined]
        )


def drained(result: Result) -> bool:
    """Return whether executors left at a request: what they let others do twice is charged to budgets."""
    return isinstance(result.levers, LeverFigures) and result.levers.pulled.get("drain", 0) > 0


def require_nothing_lost(result: Result, setup: Setup) -> None:
    """Raise InvariantBroken if suspending lost work though nothing failed: the promise of the scheme."""
    if drained(result):
        return
    if result.scheme in ("natjam", "mix") and not setup.faults and not result.kills and result.lost_work_ms:
        raise InvariantBroken(
            "suspended-loses-nothing",
            f"{result.lost_work_ms} ms of work must be done again though nothing failed or was killed",
        )


def run_scheme(
    setup: Setup, jobs: tuple[Job, ...], scheme: Scheme, journal: Journal | None = None, sample_ms: int = 0
) -> Result:
    """Run one scheme; ``ideal`` runs each class alone and puts the two results together."""
    if not scheme.alone:
        if setup.validate:
            result = _validated(setup, jobs, scheme, journal, sample_ms)
        else:
            result = Run(setup, jobs, scheme, journal, sample_ms).go()
        require_nothing_lost(result, setup)
        return result
    parts = []
    for job_class in ("production", "research"):
        own = tuple(job for job in jobs if job.job_class == job_class)
        if own:
            parts.append(Run(setup, own, scheme, None, sample_ms).go())
    return _together(scheme, parts)


def _validated(
    setup: Setup, jobs: tuple[Job, ...], scheme: Scheme, journal: Journal | None, sample_ms: int
) -> Result:
    """Run with every invariant checked after every event; raise InvariantBroken with its name.

    The invariants read the journal too, so it is kept in memory and handed on at the end.
    """
    from emulator.invariants import RunWatch, check_all, check_end

    kept = MemoryJournal()
    run = Run(setup, jobs, scheme, kept, sample_ms)
    watch = RunWatch(run)
    result = run.go(lambda: check_all(watch))
    check_end(watch)
    if journal is not None:
        journal.append(kept.records)
    return result


PORTS: dict[type[Timing], type[VirtualPort]] = {}
"""The port of a kind of timing that needs another than ``VirtualPort``; research adds kinds of its own."""


def _together(scheme: Scheme, parts: list[Result]) -> Result:
    return Result(
        scheme=scheme.name,
        jobs=tuple(job for part in parts for job in part.jobs),
        lost_work_ms=sum(part.lost_work_ms for part in parts),
        overhead_ms=sum(part.overhead_ms for part in parts),
        suspensions=0,
        kills=0,
        utilisation_ratio=sum(part.utilisation_ratio for part in parts) / len(parts) if parts else 0.0,
        makespan_ms=max((part.makespan_ms for part in parts), default=0),
        events=sum(part.events for part in parts),
        samples=tuple(sample for part in parts for sample in part.samples),
        waiting=waiting_of([part.waiting for part in parts if part.waiting]) or msgspec.UNSET,
    )
