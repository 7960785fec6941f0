"""The attached port: a real cluster (or the live emulator) behind the ClusterPort, over HTTP.

It never raises for a fault of the cluster. A cluster that does not answer is "unreachable"; then no order is
sent. At the first contact, and after another ResourceManager has taken over, no snapshot is made until the
number of nodes was constant for some observations (facts, section 9). Requests of the loop have tighter
bounds than those of single commands and are not repeated, so that a master that hangs does not delay the
loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches

import msgspec

from yarnctl.attach.connection.application_guard import LateAnswer
from yarnctl.attach.connection.application_rows import kind_of
from yarnctl.attach.connection.calls import Problem, attempt, fault_text
from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.attach.connection.connection import Attachment, Connection
from yarnctl.attach.connection.web_proxy import WebProxy
from yarnctl.attach.eligibility.permission import Permission
from yarnctl.attach.eligibility.settings_reader import Readers
from yarnctl.attach.observing.activity_reader import ActivityReader
from yarnctl.attach.observing.cluster_state import (
    ClusterObserver,
    FirstAsksOf,
    LiveContainers,
    PredictedDemand,
    Queues,
)
from yarnctl.attach.observing.held_time import HeldTimes
from yarnctl.attach.observing.victims import ObservedVictim, Unmodelled, Victim
from yarnctl.attach.orders.connected import Connected, LeavingObserver, SavedWork
from yarnctl.attach.orders.performing import Performing
from yarnctl.attach.orders.polled_applications import PolledApplications
from yarnctl.attach.orders.reversible import ApplicationPriority, QueueMaximum, QueuePreemption
from yarnctl.attach.orders.tracking import OrderTracking
from yarnctl.config import ClusterAddress
from yarnctl.deciding.model import (
    Action,
    ChangeKind,
    EpochChanged,
    Fact,
    Kill,
    Observation,
    ObservationRequest,
    OrderAction,
    Outcome,
    Snapshot,
    TaskView,
)
from yarnctl.deciding.order import Order
from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.deciding.reasons.modes import ClusterFault, ManagerSettling, ModeReason
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.deciding.settings import LossRule
from yarnctl.deciding.what_if.supposed import LostNode
from yarnctl.errors import BadInput, Unreachable, YarnctlError
from yarnctl.frameworks.framework import Framework, Parts
from yarnctl.frameworks.registry import all_frameworks
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.lock import LOCK_PATH
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.hadoop.wire import yarn
from yarnctl.loop import ClusterIdentity
from yarnctl.restoring.change_file import ChangeFiles
from yarnctl.restoring.restorer import Restorer, ReversibleSetting
from yarnctl.units import NOTHING, Resources, plus

GROUP_LEAST_MS = 100
"""A suspension does not notice key groups that take less."""

READ_TOGETHER = 64  # Applications; their containers are read before the time is checked
IDENTIFY_MS = 2_000  # While nothing waits and no order is open, the epoch is read at most once in this time
REJOINING_MS = 60_000
"""How long nodes may take to register with a ResourceManager that was started anew: they retry every 30 s."""


class AttachedPort:
    """A ClusterPort onto one cluster. ``clock`` returns ms since the epoch.

    ``hdfs`` None: no task can be suspended. ``frameworks``, by kind: those whose containers can leave by an
    order (``frameworks/registry``).
    ``first_asks`` predicts the demand of starting jobs (at most ``Attachment.predicted_max`` containers).
    ``web_proxy`` keeps the clients of masters at its address (None: their address does not change).
    ``queues``: the host's resolved queue names (None: those of the settings, resolved here).
    ``explaining_manager``: a client with tighter bounds for what only explains (None: ``manager``).
    """

    def __init__(
        self,
        manager: ResourceManager,
        hdfs: WebHdfs | None,
        attachment: Attachment,
        clock: Callable[[], int],
        frameworks: Mapping[str, Framework],
        first_asks: FirstAsksOf = lambda _: (),
        web_proxy: WebProxy | None = None,
        queues: QueueNames | None = None,
        explaining_manager: ResourceManager | None = None,
    ) -> None:
        self.attachment = attachment
        self._web_proxy = web_proxy
        self._connection = connection = Connection(manager, hdfs, attachment, clock, queues)
        explaining = explaining_manager or manager

        def new_activities() -> ActivityReader:
            return ActivityReader(explaining.activities, clock, lambda: connection.configuration or {})

        self.activities = new_activities()
        self._observer = ClusterObserver(connection, self.activities)
        self._predicted = PredictedDemand(connection, first_asks)
        self._live = LiveContainers(connection)
        self._unmodelled = Unmodelled(self._live)
        self._readers = readers = Readers(connection)
        self._held = HeldTimes(attachment, connection.queues) if attachment.levers else None
        self._connected: dict[str, Connected] = {}
        self._tracking = OrderTracking(
            connection, self._live, self._connected, lambda name: self._observer_of(self._kind_of(name))
        )
        self._polled = PolledApplications(connection, self._live, self._tracking)
        self.permission = Permission(connection, readers)
        self.queue_settings = Queues(connection)
        reversible: dict[ChangeKind, ReversibleSetting] = {"queue": QueueMaximum(connection)}
        reversible["priority"] = ApplicationPriority(connection, new_activities)
        reversible["preemption"] = QueuePreemption(connection)
        files = None if hdfs is None else ChangeFiles(hdfs, LOCK_PATH, attachment.instance or "port")
        self.restorer = restorer = Restorer(files, reversible, self.perform, clock)
        are_leaving = self._tracking.are_leaving
        parts = Parts(connection, self._live, readers.reasons, self.permission, restorer, are_leaving)
        for kind, framework in frameworks.items():
            self._connected[kind] = found = framework.connect(parts)
            reversible.update(found.settings)
            # Without levers no driver is read, but executors that an earlier daemon drained are restored.
            if attachment.levers or "drain" not in found.reader.verbs:
                readers.of_kind[kind] = found.reader
        self._acting = Performing(
            connection, self._tracking, self.permission, self._connected, reversible, restorer
        )
        self._epoch = ""
        self._identify_at_ms = 0
        self._node_counts: list[int] = []

    @property
    def last_problem(self) -> ModeReason | None:
        """Return why the last observation of the cluster failed; None: it succeeded."""
        return self._connection.last_problem

    def identify(self) -> ClusterIdentity:
        """Return the cluster's identity; epoch "" and no nodes if no ResourceManager answers."""
        try:
            info, nodes = self._connection.manager.identify(), self._connection.manager.nodes()
        except YarnctlError as problem:
            self._connection.last_problem = ClusterFault(str(problem)[:FAULT_MAX])
            return ClusterIdentity("", 0)
        self._epoch = self._epoch or str(info.epoch)
        return ClusterIdentity(str(info.epoch), len(nodes))

    @property
    def why_not(self) -> dict[str, EligibilityReason]:
        """Return application -> why its reduces may not be suspended."""
        return self._readers.reasons

    def left_alone(self) -> dict[str, EligibilityReason]:
        """Return attempt -> why it is not suspended, as last observed: its runner's reason, or yarnctl's."""
        found: dict[str, EligibilityReason] = {}
        for reasons in (*(each.left_alone() for each in self._saved_work), *self._unmodelled.why.values()):
            found.update(reasons)
        return found

    @property
    def notes(self) -> dict[str, str]:
        """Return order -> the last message about it: an answer, or a signal that failed."""
        return {name: one.note for name, one in self._tracking.orders.items() if one.note}

    @property
    def _saved_work(self) -> list[SavedWork]:
        return [each.saved_work for each in self._connected.values() if each.saved_work is not None]

    def adopt(self, orders: Iterable[Order], epoch: str = "") -> None:
        """Track orders made before this port began; ``epoch``: the ResourceManager's at that time."""
        self._epoch = epoch or self._epoch
        for order in orders:
            if order.observed:
                continue  # it was not sent, and the end of its task shows in snapshots
            one = self._tracking.begin(
                order.order, order.victim, order.attempt, order.container, order.generation, order.verb
            )
            if one is None:
                continue
            one.node = one.node or order.node
            one.ordered_at_ms = order.ordered_at_ms
            if order.verb == "kill" or order.state == "killed":
                one.killed_at_ms = order.ordered_at_ms
            if order.verb == "drain":
                one.released_at_ms = order.ordered_at_ms  # perhaps; the order is not sent again
            if order.state == "checkpointed":
                one.released_at_ms = order.progress_at_ms  # perhaps; then its end was ordered
            one.ended = order.state == "freed"

    def expect(self, orders: Iterable[Order]) -> None:
        """Poll for the resumption of tasks that were suspended by these orders before this port began."""
        for order in orders:
            for each in self._saved_work:
                each.expect(order)

    def has_news(self) -> bool | None:
        """Return whether saved work has appeared since the last poll of orders; None: none is awaited."""
        running = [one for one in self._tracking.orders.values() if not one.ended]
        found = [each.has_news(running) for each in self._saved_work]
        return None if all(each is None for each in found) else any(found)

    def close(self) -> None:
        """End the threads of the calls."""
        self._connection.close()

    def observe(self, request: ObservationRequest) -> Observation:
        """Observe what ``request`` names; mark what does not answer as unreachable."""
        as_of_ms = self._connection.clock()
        self._connection.guard.begin_look()
        facts: list[Fact] = []
        snapshot, cluster = None, "quiet"
        if request.cluster:
            try:
                snapshot, cluster = self._cluster(request, facts)
                if cluster != "unreachable":
                    self._connection.last_problem = None
            except Exception as problem:
                # Data that a job's owner wrote must not hide the open orders.
                cluster = "unreachable"
                self._connection.last_problem = ClusterFault(fault_text(problem)[:FAULT_MAX])
        tasks, late, bound_ms = self._observe_victims(request.victims)
        facts += self._safely(lambda: self._orders(request))
        if request.cluster and cluster != "unreachable":
            for each in self._saved_work:
                facts += self._safely(each.resumed)
        self._connection.guard.begin_orders()
        now_ms = max(as_of_ms, self._connection.clock())
        return Observation(
            now_ms=now_ms,
            as_of_ms=as_of_ms,
            snapshot=snapshot,
            cluster=cluster,  # type: ignore[arg-type]  # one of its three values
            tasks=tasks,
            unreachable=tuple(name for name in request.victims if name not in tasks and name not in late),
            late=tuple(name for name in request.victims if name in late),
            facts=tuple(facts),
            held=() if self._held is None else self._held.held(now_ms),
            consents=() if self._held is None else self._held.consents(),
            group_ms=self._group_ms(tasks) if self.attachment.levers else {},
            bound_ms=bound_ms,
        )

    def _cluster(self, request: ObservationRequest, facts: list[Fact]) -> tuple[Snapshot | None, str]:
        """Probe the demand and make a snapshot; "unreachable" while a new ResourceManager settles."""
        nodes: tuple[yarn.NodeRow, ...] | None = None
        at_once = bool(request.orders) or self._connection.settling
        is_identified = at_once or self._connection.clock() >= self._identify_at_ms
        if is_identified:
            self._identify(facts)
        if self._connection.settling:
            nodes = self._connection.manager.nodes()
            if not self._nodes_are_stable(len(nodes)):
                self._locate_masters()  # open orders are observed meanwhile
                self._connection.last_problem = ManagerSettling()
                return None, "unreachable"
        self._connection.read_configuration()
        self._locate_masters()
        root = (
            self._observer.tree()
            if self._predicted.expected
            else self._observer.probe_demand(request.probe_queues)
        )
        if root is None:
            if self._held is not None and self._held.is_due(self._connection.clock()):
                self._both(())
            return None, "quiet"
        if not is_identified:
            self._identify(facts)
            if self._connection.settling:
                self._connection.last_problem = ManagerSettling()
                return None, "unreachable"
        return self._predicted.added(self._snapshot(root, nodes), self._connection.clock()), "seen"

    def _snapshot(self, root_queue: yarn.QueueInfo, counted: tuple[yarn.NodeRow, ...] | None) -> Snapshot:
        """Return a snapshot of the applications as they are now; ``counted``: the nodes, if just read."""
        nodes = self._both(counted)
        self._drop(self._connection.applications.ended())
        self._readers.read_some(self._connection.applications.unjudged())
        snapshot = self._observer.snapshot(root_queue, nodes, self._readers.reasons)
        self._unmodelled.note(nodes, snapshot.left_out)
        return snapshot

    def _locate_masters(self) -> None:
        if self._web_proxy is not None:
            self._connection.read_configuration()
            self._web_proxy.locate(self._connection.configuration, self._connection.clock())

    def observe_soon(self) -> Snapshot | None:
        """Return a snapshot even without preempting demand; None if the cluster does not answer."""
        if self._connection.settling:
            self._connection.last_problem = self._connection.last_problem or ManagerSettling()
            return None
        try:
            return self._snapshot(self._observer.tree(), None)
        except Exception as problem:
            self._connection.last_problem = ClusterFault(fault_text(problem)[:FAULT_MAX])
            return None

    def tasks_of(self, applications: tuple[str, ...]) -> dict[str, tuple[TaskView, ...]]:
        """Return the tasks of the applications that answer; reads no facts, so that none is missed."""
        self._connection.guard.begin_look()
        try:
            return self._observe_victims(applications)[0]
        finally:
            self._connection.guard.begin_orders()

    def node_load(self, node: str, snapshot: Snapshot, require_time: Callable[[], None]) -> LostNode:
        """Return a node's size and what runs on it, of those without a label; raises BadInput.

        ``node`` is its id, or its host if no other node is there. ``require_time`` raises after too long.
        """
        nodes = self._connection.manager.nodes()
        rows = [row for row in nodes if not row.partition]
        found = [row for row in rows if node in (row.node, row.host)]
        labels = {row.partition for row in nodes if row.partition and node in (row.node, row.host)}
        if labels and not found:
            problem = f"{node[:100]!r} has the label {min(labels)}; what-if knows nodes without a label only"
            raise BadInput("node", problem, "use a node without a label")
        if len(found) != 1:
            names = sorted(row.node for row in rows)
            near = get_close_matches(node, names, 3) or names[:3]
            problem = f"{len(found)} nodes without a label are {node[:100]!r}"
            raise BadInput("node", problem, f"use one of {', '.join(near)}")
        running = [view.application for view in snapshot.applications if view.containers]
        held: dict[str, tuple[Resources, ...]] = {}
        for first in range(0, len(running), READ_TOGETHER):
            require_time()
            for name, one in self._live.observe(running[first : first + READ_TOGETHER]).items():
                if isinstance(one, Problem):
                    raise Unreachable(f"the containers of {name} cannot be read: {one}")
                sizes = tuple(row.size for row in one.containers.values() if row.node == found[0].node)
                if sizes:
                    held[name] = sizes
        free = snapshot.free_by_node.get(found[0].node, NOTHING)
        size = free
        for sizes in held.values():
            for each in sizes:
                size = plus(size, each)
        return LostNode(node=found[0].node, size=size, held=held)

    def _both(self, nodes: tuple[yarn.NodeRow, ...] | None) -> tuple[yarn.NodeRow, ...]:
        """Read nodes and applications in parallel: each takes the ResourceManager some time."""
        at_ms = self._connection.clock()
        refreshed = self._connection.calls.begin(self._observer.refresh)
        try:
            return self._connection.manager.nodes() if nodes is None else nodes
        finally:
            refreshed.result()
            if self._held is not None:
                self._held.update(at_ms, self._connection.rows.values())

    def _identify(self, facts: list[Fact]) -> None:
        epoch = str(self._connection.manager.identify().epoch)
        if self._epoch and epoch != self._epoch:
            facts.append(EpochChanged(epoch, self._connection.clock()))
            self._connection.settling, self._node_counts = True, []
            self._connection.rejoining_until_ms = self._connection.clock() + REJOINING_MS
            self._connection.configuration = self._connection.calculator = None
            self._connection.scheduler_keys, self._connection.is_calculator_proven = None, False
            if self._held is not None:
                self._held.restart()
        self._epoch, self._identify_at_ms = epoch, self._connection.clock() + IDENTIFY_MS

    def _nodes_are_stable(self, nodes: int) -> bool:
        """Return whether the number of nodes has been the same, and not 0, for some observations."""
        least = self.attachment.stable_observations
        self._node_counts = counts = [*self._node_counts, nodes][-least:]
        if len(counts) < least or not nodes or len(set(counts)) > 1:
            return False
        self._connection.settling = False
        return True

    def _observe_victims(
        self, victims: tuple[str, ...]
    ) -> tuple[dict[str, tuple[TaskView, ...]], set[str], dict[str, int]]:
        """Return the tasks of those that answered, those that are late, and the bounds of lost work."""
        tasks: dict[str, tuple[TaskView, ...]] = {}
        bound_ms: dict[str, int] = {}
        of_kind: dict[str, list[str]] = {}
        for name in victims:
            of_kind.setdefault(self._kind_of(name), []).append(name)
        seen: dict[str, ObservedVictim] = {}
        for kind, names in of_kind.items():
            observer = self._observer_of(kind)
            found: dict[str, ObservedVictim] | Problem = dict.fromkeys(names, Victim((), None))
            if observer is not None:
                found = attempt(observer.observe, names)
            seen |= dict.fromkeys(names, found) if isinstance(found, Problem) else found
        for name, each in seen.items():
            if not isinstance(each, Problem):
                tasks[name] = self._unmodelled.modelled(name, each.tasks)
                bound_ms |= each.bound_ms
                if each.sizes is not None:
                    self._observer.sizes[name] = each.sizes
        return tasks, {name for name, each in seen.items() if isinstance(each, LateAnswer)}, bound_ms

    def _group_ms(self, tasks: Mapping[str, tuple[TaskView, ...]]) -> dict[str, int]:
        """Return how long tasks that can be suspended work on one key group, where that is not short."""
        attempts = [task.attempt for each in tasks.values() for task in each if task.checkpointable]
        found = {name: each.group_ms(name) for each in self._saved_work for name in attempts}
        return {name: span_ms for name, span_ms in found.items() if span_ms >= GROUP_LEAST_MS}

    @staticmethod
    def _safely(poll: Callable[[], Sequence[Fact]]) -> Sequence[Fact]:
        """Return facts; none if polling failed because of an application's data: the next poll repeats it."""
        found = attempt(lambda _: poll(), None)
        return () if isinstance(found, Problem) else found

    def _kind_of(self, application: str) -> str:
        return kind_of(self._connection.rows.get(application))

    def _observer_of(self, kind: str) -> LeavingObserver | None:
        return self._connected[kind].observer if kind in self._readers.of_kind else None

    def _orders(self, request: ObservationRequest) -> list[Fact]:
        self._tracking.retain(request.orders)
        if not self._tracking.orders:
            self._polled.clear()
            return []
        return self._tracking.poll(*self._polled.renew(request.requesters))

    def _drop(self, ended: set[str]) -> None:
        gone = ended - {one.application for one in self._tracking.orders.values()}
        self._readers.drop(gone)
        for each in self._saved_work:
            each.drop(gone)
        self._unmodelled.drop(gone)
        self._live.drop_attempts(gone.difference(self._polled.names))
        self._connection.guard.forget(gone)

    def restore_due(self) -> None:
        """Restore what is due without an observation: no daemon runs."""
        self._connection.guard.begin_look()
        self._connection.guard.begin_orders()
        self.restorer.reconcile()

    def announce(self, actions: Sequence[OrderAction]) -> None:
        """Prepare for orders that are about to be performed in several threads."""
        if any(isinstance(action, Kill) for action in actions):
            self._polled.list_before_kill()
        self._tracking.announce(action.order for action in actions)

    def use_budgets(self, budgets: tuple[LossRule, ...], left_alone_users: tuple[str, ...]) -> None:
        """Use other loss budgets, with queues by path, and other users that opt out from now on."""
        self._connection.left_alone_users = left_alone_users
        if self._held is not None:
            self._held.use(budgets, left_alone_users)

    def perform(self, action: Action) -> Outcome:
        """Perform one action, if it is permitted; see :mod:`yarnctl.attach.orders.performing`.

        Several threads may perform orders that were announced.
        """
        if isinstance(action, Kill) and not self._tracking.is_announced(action.order):
            self._polled.list_before_kill()
        return self._acting.perform(action)


MASTER_BYTES = 64 << 20
EXPLAINING_MS, EXPLAINING_BYTES = 500, 1 << 20
"""Bounds of an answer that only explains: it takes 3 to 7 ms and a kilobyte (facts, section 5.1)."""
HDFS_BYTES = 32 << 20  # A listing of a job owner's folder (some 100,000 files), or a small file


def loop_limits(limits: CallLimits) -> CallLimits:
    """Return bounds for calls of the loop: no repeats, at most 5 s for an answer."""
    return msgspec.structs.replace(
        limits,
        connect_ms=min(limits.connect_ms, 2_000),
        read_timeout_ms=min(limits.read_timeout_ms, 4_000),
        answer_ms=min(limits.answer_ms, 5_000),
        retries=0,
    )


def loop_manager(cluster: ClusterAddress) -> ResourceManager:
    """Return a client of the ResourceManagers with the bounds of the loop; send nothing."""
    limits = loop_limits(cluster.limits)
    return ResourceManager(
        Transport(cluster.resource_managers, cluster.identity, limits, ca_file=cluster.ca_file)
    )


def hdfs_limits(limits: CallLimits) -> CallLimits:
    """Return bounds for the loop's calls to HDFS."""
    return msgspec.structs.replace(loop_limits(limits), answer_bytes=HDFS_BYTES)


def attach(
    cluster: ClusterAddress,
    attachment: Attachment,
    clock: Callable[[], int],
    first_asks: FirstAsksOf = lambda _: (),
    queues: QueueNames | None = None,
) -> AttachedPort:
    """Return a port onto ``cluster``; ``name_nodes`` of both count as addresses of its HDFS."""
    limits = loop_limits(cluster.limits)
    manager = Transport(cluster.resource_managers, cluster.identity, limits, ca_file=cluster.ca_file)
    masters = Transport(
        cluster.resource_managers,
        cluster.identity,
        msgspec.structs.replace(limits, answer_bytes=MASTER_BYTES),
        ca_file=cluster.ca_file,
    )
    tight = msgspec.structs.replace(
        limits,
        connect_ms=EXPLAINING_MS,
        read_timeout_ms=EXPLAINING_MS,
        answer_ms=EXPLAINING_MS,
        answer_bytes=EXPLAINING_BYTES,
    )
    explaining = Transport(cluster.resource_managers, cluster.identity, tight, ca_file=cluster.ca_file)
    hdfs = None
    if cluster.name_nodes:
        bounds = hdfs_limits(cluster.limits)
        hdfs = WebHdfs(
            cluster.name_nodes, cluster.identity, bounds, bulk_limits=bounds, ca_file=cluster.ca_file
        )
    known = tuple(dict.fromkeys([*attachment.name_nodes, *cluster.name_nodes]))
    attachment = msgspec.structs.replace(attachment, name_nodes=known)
    return AttachedPort(
        ResourceManager(manager),
        hdfs,
        attachment,
        clock,
        all_frameworks(masters),
        first_asks,
        WebProxy(cluster, manager, masters),
        queues,
        ResourceManager(explaining),
    )
