"""The virtual cluster behind the border: a ClusterPort that never touches JSON or a clock.

Law: it shows what a real cluster could show and no more, and it performs by handing the action
to the actors. A snapshot is a copy: the controller may keep it.
"""

from __future__ import annotations

from operator import attrgetter

import msgspec

from emulator.cluster.app_master import AppMaster
from emulator.cluster.cluster import Cluster
from emulator.cluster.entities import (
    MAP,
    REDUCE,
    RUNNING,
    Application,
    Container,
    LeafQueue,
    NodeReservation,
)
from emulator.cluster.executors.spark_master import SparkMaster
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.queues.tree_queue import TreeQueue
from emulator.cluster.resource_manager import application_id, attempt_id, container_id, node_id
from emulator.cluster.task import checkpointable, keys_done, remaining_ms
from emulator.virtual.spark_view import executor_views, obey
from emulator.virtual.tree_views import (
    highest_user_limit,
    labelled_applications,
    labelled_queues,
    parent_views,
    requests_of,
    reserved_by_application,
    user_percents,
)
from yarnctl.deciding import model
from yarnctl.deciding.foresight import Prediction, first_wave
from yarnctl.deciding.held_windows import HeldWindows
from yarnctl.deciding.reasons import outcomes
from yarnctl.loop import ClusterIdentity
from yarnctl.units import NOTHING, Resources

_ORDER = attrgetter("order")
RANKS_PER_PRIORITY = 1 << 32
"""Ranks need only be in serving order: by priority, then by submission."""


class VirtualPort:
    """A ClusterPort onto a ``Cluster``; ``maps`` says whether victims' maps are shown too.

    ``ahead_max`` containers of its first wave are predicted for a starting job of ``preempting``, as on one
    on which each job has run before. ``held``: where it is counted what queues held (None: nowhere); the
    first sample is that of the beginning, and :meth:`sample` takes the next. ``drains``: executors of Spark
    are shown.
    """

    def __init__(
        self, cluster: Cluster, maps: bool = False, ahead_max: int = 0, preempting: tuple[str, ...] = ()
    ) -> None:
        self.cluster = cluster
        self.maps = maps
        self.killed_at_ms: list[int] = []
        self.held: HeldWindows | None = None
        self.drains = False
        timing = cluster.timing
        heard_ms = timing.suspend_poll_ms if timing.trigger == "umbilical" else timing.nm_heartbeat_ms
        self._leave_ms = (
            heard_ms // 2 + timing.drain_ms + timing.upload_ms + timing.exit_ms + timing.launch_ms
        )
        self._prediction = Prediction(ahead_max, frozenset(preempting).__contains__, self._first_asks)
        self._ordered: dict[str, Container] = {}
        self._suspending: dict[int, tuple[AppMaster, dict[int, str]]] = {}
        self._applications: dict[str, Application] = {}
        self._shown: dict[int, tuple[int, model.ApplicationView]] = {}

    def identify(self) -> ClusterIdentity:
        """Name the emulated ResourceManager; there is only ever one."""
        capabilities = {"releases-itself"} if self.cluster.timing.releases_itself else set()
        return ClusterIdentity("virtual-1", len(self.cluster.rm.nodes), frozenset(capabilities))

    # --- observing ------------------------------------------------------------------------

    def demand(self, gate_queues: tuple[str, ...]) -> bool:
        """The cheap gate: does any of these queues (none named: any queue) wait for containers?"""
        demanding = self.cluster.rm.scheduler.demanding
        if self._prediction.expects:
            return True
        if not gate_queues:
            return bool(demanding)
        return any(queue.name in gate_queues for queue in demanding)

    def facts_waiting(self) -> bool:
        """Say whether something has happened that no observation has reported yet."""
        return bool(self.cluster.rm.facts)

    def observe(self, request: model.ObservationRequest) -> model.Observation:
        """Observe what ``request`` names."""
        rm, now_ms = self.cluster.rm, self.cluster.kernel.now_ms
        facts, rm.facts = (*rm.facts, *self._resumed_task(now_ms)), []
        rm.watching = bool(request.orders)
        snapshot = None
        if request.cluster and self.demand(request.probe_queues):
            snapshot = self._snapshot(now_ms)
        tasks: dict[str, tuple[model.TaskView, ...]] = {}
        unreachable = []
        for victim in request.victims:
            app = self._applications.get(victim)
            if app is None or app.finished_at_ms is not None or not app.master.alive:
                unreachable.append(victim)
            else:
                tasks[victim] = self._tasks(app, now_ms)
        return model.Observation(
            now_ms=now_ms,
            as_of_ms=now_ms,
            snapshot=snapshot,
            tasks=tasks,
            unreachable=tuple(unreachable),
            facts=facts,
            held=() if snapshot is None else self.sample(),
        )

    def sample(self) -> tuple[model.HeldTime, ...]:
        """Count what was held until now; return what was held in the windows that end now."""
        if self.held is None:
            return ()
        now_ms = self.cluster.kernel.now_ms
        self.held.sample(now_ms, held_time(self.cluster, now_ms))
        return self.held.held(now_ms)

    def _resumed_task(self, now_ms: int) -> list[model.CameBack]:
        """Return the attempts that have begun new keys behind one of our checkpoints."""
        facts = []
        for number, (master, orders) in list(self._suspending.items()):
            if master.app.finished_at_ms is not None:
                del self._suspending[number]
            launching = master.launching
            if not launching.returning:
                continue
            waiting, launching.returning = launching.returning, []
            for container in waiting:
                if container.work_at_ms > now_ms:
                    if container.state == RUNNING:
                        launching.returning.append(container)
                elif container.task in orders and container.terminal_state in ("", "completed", "suspended"):
                    facts.append(_came_back(container, master, orders[container.task], now_ms))
        return facts

    def _snapshot(self, now_ms: int) -> model.Snapshot:
        rm, views = self.cluster.rm, self._views(now_ms)
        found = self._part("")
        found = msgspec.structs.replace(
            found,
            total=rm.total,
            queues=self._queues(),
            applications=self._prediction.predict(views, now_ms),
        )
        scheduler = rm.scheduler
        if not isinstance(scheduler, TreeScheduler):
            return found
        found = msgspec.structs.replace(
            found, smallest=scheduler.root.smallest, user_percents=user_percents(scheduler)
        )
        if not scheduler.labels:
            return found
        seen = [(self._applications[view.application], view) for view in views]
        labelled = {}
        for label, exclusive in scheduler.labels.items():
            queues = labelled_queues(scheduler, label)
            nodes = tuple(sorted(node.name for node in rm.nodes if node.label == label and not node.lost))
            labelled[label] = msgspec.structs.replace(
                self._part(label),
                total=scheduler.totals[label],
                queues=queues,
                applications=labelled_applications(scheduler, seen, queues, label),
                nodes=nodes,
                is_shared=not exclusive and any(view.guaranteed != NOTHING for view in queues),
            )
        return msgspec.structs.replace(found, labelled=labelled)

    def _part(self, label: str) -> model.Snapshot:
        """Return the nodes with a label ("": none) and the parents, without queues and applications."""
        rm = self.cluster.rm
        here = [node for node in rm.nodes if node.label == label and not node.lost]
        largest_mib = max((node.total_mib for node in here), default=0)
        largest_vcores = max((node.total_vcores for node in here), default=0)
        free: dict[str, Resources] = {}
        reserved: dict[str, str] = {}
        reserved_free: dict[str, Resources] = {}
        for _, index in rm.open_nodes:
            node = rm.nodes[index]
            if node.label != label:
                continue
            if isinstance(node.reserved, NodeReservation):  # its room is for that application alone
                reserved[node.name] = application_id(node.reserved.app)
                if isinstance(rm.scheduler, TreeScheduler):
                    reserved_free[node_id(node)] = Resources(node.free_mib, node.free_vcores)
                continue
            free[node_id(node)] = Resources(node.free_mib, node.free_vcores)
        tree = rm.scheduler if isinstance(rm.scheduler, TreeScheduler) else None
        return model.Snapshot(
            total=NOTHING,
            largest_node=Resources(largest_mib, largest_vcores),
            queues=(),
            applications=(),
            free_by_node=free,
            reserved_by_node=reserved,
            reserved_free=reserved_free,
            parents=() if tree is None else parent_views(tree, label),
            reserved={} if tree is None else reserved_by_application(tree, label),
        )

    def _queues(self) -> tuple[model.QueueView, ...]:
        views = []
        scheduler, vcores = self.cluster.rm.scheduler, self.cluster.rm.total.vcores
        for queue in scheduler.queues.values():
            # In a tree, reserved counts as used.
            used: LeafQueue | TreeQueue = queue
            if isinstance(scheduler, TreeScheduler):
                used = scheduler.nodes[queue.name]
                limit = highest_user_limit(used)
            else:
                limit = None if queue.user_mib is None else Resources(queue.user_mib, vcores)
            views.append(
                model.QueueView(
                    queue=queue.name,
                    guaranteed=queue.guaranteed,
                    maximum=Resources(queue.maximum_mib, queue.maximum_vcores),
                    used=Resources(used.used_mib, used.used_vcores),
                    user_limit=limit,
                    am_limit=Resources(queue.am_mib, vcores),
                    am_used=Resources(queue.am_used_mib, 0),
                )
            )
        return tuple(views)

    def _views(self, now_ms: int) -> tuple[model.ApplicationView, ...]:
        """Show every application in serving order; one that has not changed keeps its record."""
        alive = self.cluster.rm.applications
        views = []
        shown: dict[int, tuple[int, model.ApplicationView]] = {}
        for app in sorted(alive.values(), key=_ORDER):
            last = self._shown.get(app.number)
            if last is None or last[0] != app.version or app.deadline_at_ms is not None:
                last = (app.version, self._view(app, now_ms))
                self._applications[last[1].application] = app
            shown[app.number] = last
            views.append(last[1])
        self._shown = shown
        return tuple(views)

    def _first_asks(self, view: model.ApplicationView) -> tuple[model.ContainerRequest, ...]:
        app = self._applications[view.application]
        job = app.master.job
        if app.label or job.map_label or job.reduce_label:
            return ()  # as where a ResourceManager is read: how much of a partition is not predicted
        return first_wave(len(job.map_ms), job.map_size, len(job.reduce_ms), job.reduce_size)

    @staticmethod
    def _view(app: Application, now_ms: int) -> model.ApplicationView:
        job = app.master.job
        return model.ApplicationView(
            application=application_id(app),
            queue=app.queue.name,
            user=app.user,
            name=job.name,
            submitted_at_ms=app.submitted_at_ms,
            rank=app.number - app.priority * RANKS_PER_PRIORITY,
            containers=app.containers,
            used=Resources(app.used_mib, app.used_vcores),
            am_size=job.am_size,
            task_size=job.map_size if job.spark else job.reduce_size,
            requests=requests_of(app),
            activated=app.activated,
            priority=app.priority,
            deadline_at_ms=app.deadline_at_ms,
            progress_ratio=app.master.progress_ratio(now_ms) if app.deadline_at_ms is not None else 0.0,
        )

    def _tasks(self, app: Application, now_ms: int) -> tuple[model.TaskView, ...]:
        """Show an application's running reduces, and its maps, or executors, if they may be victims."""
        master = app.master
        if isinstance(master, SparkMaster):
            return executor_views(master, now_ms) if self.drains else ()
        return tuple(
            [
                self._map(container, now_ms)
                if container.kind == MAP
                else self._reduce(container, master, now_ms)
                for container in master.running.values()
                if container.kind == REDUCE or self.maps
            ]
        )

    def _map(self, container: Container, now_ms: int) -> model.TaskView:
        return model.TaskView(
            attempt_id(container),
            container_id(container),
            container.node.name,
            Resources(container.memory_mib, container.vcores),
            "map",
            max(0, container.finish_at_ms - now_ms),
            self.cluster.timing.launch_ms,
            min(container.work_at_ms, now_ms),
            0,
            False,
            False,
        )

    def _reduce(self, container: Container, master: AppMaster, now_ms: int) -> model.TaskView:
        """Show a reduce. Coming back costs drain, upload, relaunch, re-shuffle, skip and replay."""
        keys = master.job.reduce_keys[container.task]
        manifest = master.store.get(container.task)
        done = keys_done(container, now_ms, keys)
        return model.TaskView(
            attempt_id(container),
            container_id(container),
            container.node.name,
            Resources(container.memory_mib, container.vcores),
            "reduce",
            self._remaining_ms(container, now_ms, keys),
            self._leave_ms + master.launching.return_ms(container.task, done),
            min(container.work_at_ms, now_ms),
            manifest.generation if manifest else 0,
            checkpointable(container, now_ms, master.timing.task_commit_ms),
            manifest is not None,  # it resumed: in a new container, or in place after a release wait
        )

    def _remaining_ms(self, container: Container, now_ms: int, keys: int) -> int:
        """Return what is shown as a reduce's remaining work."""
        return remaining_ms(container, now_ms, keys)

    def _find(self, action: model.Suspend | model.Withdraw | model.Release | model.Kill) -> Container | None:
        """Return the running container that an action names (a container's id ends in its number)."""
        if action.order in self._ordered:
            return self._ordered[action.order]
        return self.running(action.application, action.container)

    def running(self, application: str, container: str) -> Container | None:
        """Return the running container of an application by its id."""
        app = self._applications.get(application)
        number = int(container.rpartition("_")[2])
        return None if app is None else app.master.running.get(number)

    # --- performing -----------------------------------------------------------------------

    def perform(self, action: model.Action) -> model.Outcome:
        """Pass an action to the actors."""
        if isinstance(action, model.SetPriority):
            return self._set_priority(action)
        if isinstance(action, model.SetQueueMaximum | model.DisablePreemption | model.Restore):
            return model.Refused(outcomes.NotInVirtualTime())
        if isinstance(action, model.Drain | model.Grow):
            self.cluster.rm.watching = True
            return obey(self._applications.get(action.application), action)
        container = self._find(action)
        if container is None:
            return model.Refused(outcomes.NoSuchContainer())
        suspension = self.cluster.suspension
        match action:
            case model.Suspend():
                self._ordered[action.order] = container
                self._leave(container, action.order)
                self.cluster.rm.watching = True
                return suspension.request(container, action.order)
            case model.Withdraw():
                return suspension.withdraw(container, action.order)
            case model.Release():
                return suspension.release(container, action.order)
            case model.Kill():
                self._ordered[action.order] = container
                return self._kill(container, action.order)

    def _leave(self, container: Container, order: str) -> None:
        """Keep the order that suspends a task, to report when it has resumed."""
        master: AppMaster = container.app.master
        if master.launching.returning is None:
            master.launching.returning = []
        _, orders = self._suspending.setdefault(container.app.number, (master, {}))
        orders[container.task] = order

    def _kill(self, container: Container, order: str) -> model.Outcome:
        if container.state != RUNNING:
            return model.Refused(outcomes.AttemptEnded())
        self.killed_at_ms.append(self.cluster.kernel.now_ms)
        container.order = order
        container.node.watched = True
        cluster = self.cluster
        cluster.rm.watching = True
        if cluster.timing.kill_at_rm:
            cluster.rm.kill_now(container, "killed", cluster.kernel.now_ms)
            cluster.sweep.begin()
        else:
            container.app.master.kill(container, "killed", cluster.kernel.now_ms + cluster.timing.exit_ms)
        return model.Accepted()

    def _set_priority(self, action: model.SetPriority) -> model.Outcome:
        app = self._applications.get(action.application)
        if app is None or app.finished_at_ms is not None:
            return model.Refused(outcomes.NoSuchApplication())
        self.cluster.rm.scheduler.reprioritise(app, action.priority)
        return model.Accepted()


def held_time(cluster: Cluster, now_ms: int) -> dict[str, int]:
    """Return the container time (MiB-ms) that each queue has held so far; users have no budgets here."""
    scheduler = cluster.rm.scheduler
    found = {queue.name: sum(queue.usage_mib_ms.values()) for queue in scheduler.queues.values()}
    for container in scheduler.live.values():
        found[container.app.queue.name] += container.memory_mib * (now_ms - container.granted_at_ms)
    return found


def _came_back(container: Container, master: AppMaster, order: str, now_ms: int) -> model.CameBack:
    """Return the fact that a reduce works behind its checkpoint, with what coming back took."""
    back_ms = master.launching.return_ms(container.task, container.from_key)
    shuffle_ms = master.job.shuffle_ms if master.timing.reshuffle else 0
    launch_ms = max(0, container.work_at_ms - back_ms - container.granted_at_ms)
    return model.CameBack(order, attempt_id(container), launch_ms, shuffle_ms, back_ms - shuffle_ms, now_ms)
