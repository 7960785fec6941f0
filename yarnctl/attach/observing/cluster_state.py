"""Read the state of the cluster: a cheap demand probe and, if it finds demand, one snapshot.

An observation costs one GET of /scheduler while no preempting application has pending asks; else one each of
/nodes and /apps, and one for each preempting application with pending asks (only its own page has the asks'
sizes), which is read again when the sum or the containers change, or after ``ASKS_AGE_MS``. The asks of other
queues are read within bounds and kept while their sum is unchanged; beyond the bounds they are counted as
asks of the application's own average size.

Reservations: no answer names the node of a reservation. YARN reserves only on a node that has some free
capacity in every resource, but too little for the ask; those nodes are the candidates. A reservation of an
application that is not preempting is put on every candidate: then no attempt there is preempted for a
container that another application would get. Candidates are excluded from the free capacity only if they
are certainly reserved: when there are no more of them than reserved containers, or when the records of nodes'
heartbeats (:mod:`yarnctl.attach.observing.activity_reader`) name the node of every one. A preempting
application's own reservation is named only if it is certain: it must not prevent orders on other nodes for
it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import NamedTuple

import msgspec

from yarnctl.attach.connection.application_rows import serving_order
from yarnctl.attach.connection.calls import Problem, attempt
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.observing.activity_reader import ActivityReader
from yarnctl.deciding.foresight import Prediction
from yarnctl.deciding.model import ApplicationView, ContainerRequest, QueueView, Snapshot
from yarnctl.deciding.not_granted import heartbeats_for_hosts
from yarnctl.deciding.queue_hold import QueueLimits
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.deciding.reasons.demand import NotModelled
from yarnctl.deciding.reasons.eligibility import EligibilityReason, QueueUnclear
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.resource_manager import ENDED, least_in
from yarnctl.hadoop.wire import views, yarn
from yarnctl.hadoop.wire.active_limits import active_limits
from yarnctl.hadoop.wire.calculator import by_memory
from yarnctl.units import NOTHING, Resources, fits, minus, plus

RESERVED = "RESERVED"
RESERVED_MAX = 16  # Reservations of one application of which each sum is tried


class Held(NamedTuple):
    """The usage of an application. ``ended``: it has reached a terminal state."""

    containers: dict[str, yarn.ContainerRow]
    ended: bool = False


class Grant(NamedTuple):
    """A new container."""

    application: str
    container: yarn.ContainerRow


EMPTY_AGE_MS = 2_000
"""How long an application without containers is asked neither for a newer attempt nor for its end.

YARN lists the containers of the current attempt, whichever attempt is named.
"""


class LiveContainers:
    """Reads live containers; ``holding``: application -> container -> a resource that is not modelled."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._manager = connection.manager
        self._calls = connection.calls
        self._attempts: dict[str, str] = {}
        self._known: dict[str, set[str]] = {}
        self._empty_at_ms: dict[str, int] = {}
        self.holding: dict[str, dict[str, str]] = {}

    def observe(self, applications: Iterable[str]) -> dict[str, Held | Problem]:
        """Return each application's usage."""
        return self._calls.each(self.of, applications)

    def observe_anew(self, applications: Iterable[str]) -> dict[str, Held | Problem]:
        """Return each application's usage; those without containers are asked for their end, too."""
        self._empty_at_ms.clear()
        return self.observe(applications)

    def of(self, application: str) -> Held:
        """Return one application's usage; raises as the client does."""
        rows: tuple[yarn.ContainerRow, ...] = ()
        attempt = self._attempts.get(application)
        if attempt is not None:
            rows = self._listed(application, attempt)
        now_ms = self._connection.clock()
        is_due = now_ms >= self._empty_at_ms.get(application, -EMPTY_AGE_MS) + EMPTY_AGE_MS
        if not rows and (is_due or attempt is None):
            newest = self._newest(application)
            if newest is not None and newest != attempt:
                self._attempts[application] = newest
                rows = self._listed(application, newest)
        self.holding.pop(application, None)
        names = self._connection.resource_names
        unknown = {row.container: [name for name in row.others if name not in names] for row in rows}
        if holding := {container: others[0] for container, others in unknown.items() if others}:
            self.holding[application] = holding
        if rows:
            self._empty_at_ms.pop(application, None)
            return Held({row.container: row.with_others(names) for row in rows if row.state != RESERVED})
        if not is_due:
            return Held({})
        ended = self._ended(application)
        if not ended:
            self._empty_at_ms[application] = now_ms
        return Held({}, ended=ended)

    def _listed(self, application: str, attempt: str) -> tuple[yarn.ContainerRow, ...]:
        try:
            return self._manager.containers(application, attempt)
        except Missing:
            return ()

    def _newest(self, application: str) -> str | None:
        try:
            attempts = self._manager.app_attempts(application)
        except Missing:
            return None
        return attempts[-1].attempt if attempts else None

    def _ended(self, application: str) -> bool:
        try:
            return self._manager.state(application) in ENDED
        except Missing:
            return False  # unknown is not finished

    def grants(self, seen: Mapping[str, Held | Problem], new: Iterable[str]) -> list[Grant]:
        """Return the containers that are not remembered, by application and id.

        The first observation of an application yields no grants, unless it is one of ``new``, which did not
        exist at the last observation: all of their containers are new.
        """
        if not self._connection.is_rejoining:  # then an application may only be listed again
            for name in new:
                self._known.setdefault(name, set())
        return [
            Grant(application, held.containers[name])
            for application, held in sorted(seen.items())
            if isinstance(held, Held) and application in self._known
            for name in sorted(set(held.containers) - self._known[application])
        ]

    def count(self, application: str) -> int | None:
        """Return how many containers of an application are remembered; None: it was not listed."""
        known = self._known.get(application)
        return None if known is None else len(known)

    def remember(self, seen: Mapping[str, Held | Problem], but: Container[str] = ()) -> None:
        """Remember the containers of an observation, without those in ``but``: they are grants again.

        While nodes register again, no container is forgotten because it is not listed.
        """
        for application, held in seen.items():
            if isinstance(held, Problem):
                continue
            missed = self._known.get(application, set()) if self._connection.is_rejoining else set[str]()
            self._known[application] = {*(name for name in held.containers if name not in but), *missed}

    def drop(self, keep: Iterable[str] = ()) -> None:
        """Forget the containers of all applications but ``keep``."""
        kept = set(keep)
        self._known = {name: held for name, held in self._known.items() if name in kept}

    def drop_attempts(self, applications: Iterable[str]) -> None:
        """Drop the attempts of applications that have ended."""
        for name in applications:
            self._attempts.pop(name, None)
            self._empty_at_ms.pop(name, None)
            self.holding.pop(name, None)


SMALLEST = Resources(1024, 1)  # Assumed if a container's size is unknown (YARN's default minimum)


class Sizes(NamedTuple):
    """The size of an application's master and of its tasks."""

    am: Resources
    task: Resources


class Asks(NamedTuple):
    """An application's asks, valid while the sum is ``pending``; ``reported``, or only assumed.

    ``containers``: how many it had when they were read at ``read_at_ms``.
    """

    pending: views.PendingSum
    asks: views.LabelledRequests
    reported: bool
    left_out: NotModelled | None = None
    containers: int = -1
    read_at_ms: int = 0


ASKS_AGE_MS = 5_000
"""How long requests that were read count while the application's sum and containers stay the same."""


class ClusterObserver:
    """Makes snapshots; the connection keeps the observed applications and queues."""

    def __init__(self, connection: Connection, activities: ActivityReader) -> None:
        self._connection = connection
        self._activities = activities
        self._manager = connection.manager
        self._calls = connection.calls
        self._settings = connection.settings
        self._applications = connection.applications
        self.sizes: dict[str, Sizes] = {}
        self._asks: dict[str, Asks] = {}
        self._tree: QueueTree | None = None
        self._exclusive: dict[str, bool] = {}
        self._labels: list[str] = []

    def probe_demand(self, queues: Sequence[str]) -> yarn.QueueInfo | None:
        """Return the tree of queues if one of ``queues`` (paths; none: any) has pending asks."""
        root = self.tree()
        waits = any(
            _waits(leaf.queue) for leaf in self._connection.leaves if not queues or leaf.path in queues
        )
        return root if waits else None

    def tree(self) -> yarn.QueueInfo:
        """Return the tree of queues; raises as the client does."""
        root = self._manager.root_queue()
        self._connection.leaves = views.leaves(root)
        self._connection.queues.read(views.queue_tree(root))
        states = {leaf.path: leaf.queue.state for leaf in self._connection.leaves}
        self._connection.queues.read_states(states)
        return root

    def snapshot(
        self,
        root_queue: yarn.QueueInfo,
        nodes: Sequence[yarn.NodeRow],
        why_not: Mapping[str, EligibilityReason],
    ) -> Snapshot:
        """Return the current snapshot; ``why_not``: applications that may not be suspended."""
        self._note_names(nodes)
        self._connection.note_calculator(root_queue, nodes)
        if self._connection.calculator == "memory":
            root_queue, nodes = by_memory(root_queue, nodes)
        demand = self._demand()
        self._activities.suspects = ()
        held_back = self._held_back()
        plain = _of_label(demand, "")
        applications = self._views(plain, why_not, held_back)
        parts = views.by_partition(nodes)
        self._labels = labels = sorted(parts.keys() - {""})
        snapshot = self._partition(root_queue, parts[""], plain, applications, "")
        self._read_labels(labels)
        known = bool(snapshot.parents) and self._connection.configuration is not None
        limits: Mapping[str, Mapping[str, Resources]] = {}
        if self._settings.mode == "guarantees":
            least = least_in(self._connection.configuration or {})
            limits = active_limits(root_queue, snapshot.queues, snapshot.total, least)
        found = msgspec.structs.replace(
            snapshot,
            node_count=len(nodes),
            smallest=self._smallest() if known else NOTHING,
            user_percents=views.user_percents(root_queue) if known else {},
            user_limits=views.user_limits(root_queue, snapshot.queues, self._connection.resource_names),
            active_limits=limits,
            held_back=held_back,
            heartbeat_ms=self._activities.heartbeat_ms(),
            located=self._located(demand, len(nodes)),
            resource_names=self._connection.resource_names,
            labelled={
                label: self._labelled(root_queue, parts[label], demand, applications, label)
                for label in labels
            },
        )
        return msgspec.structs.replace(found, left_out=self._left_out(found))

    def _located(self, demand: Mapping[str, views.LabelledRequests], live_nodes: int) -> dict[str, int]:
        """Return how many heartbeats applications wait for the hosts that their requests name."""
        return {
            name: heartbeats_for_hosts(
                sum(request.count for row in demand[name].values() for request in row), live_nodes
            )
            for name in sorted(self._activities.located & demand.keys())
        }

    def _partition(
        self,
        root_queue: yarn.QueueInfo,
        nodes: Sequence[yarn.NodeRow],
        asks: Mapping[str, tuple[ContainerRequest, ...]],
        applications: tuple[ApplicationView, ...],
        label: str,
        unlabelled: Mapping[str, tuple[ContainerRequest, ...]] | None = None,
    ) -> Snapshot:
        """Return ``nodes``, those with a label ("": none), with what is used and requested of them.

        ``unlabelled``: requests without a label that may reserve them too, by application.
        """
        names = self._connection.resource_names
        total, largest, free = views.cluster_room(nodes, names)
        holders = self._holders(label)
        reserving = {
            row.application: (*asks.get(row.application, ()), *(unlabelled or {}).get(row.application, ()))
            for row, _ in holders
        }
        reserved, sure, priorities = self._reserved(free, nodes, reserving, holders)
        simple = self._even(asks) and not names and not self._labels
        parents = views.parent_views(root_queue, total, nodes, simple, label, names)
        return Snapshot(
            total=total,
            largest_node=largest,
            queues=views.queue_views(root_queue, total, label, names, self._smallest()),
            applications=applications,
            free_by_node={node: room for node, room in free.items() if node not in sure},
            reserved_by_node=reserved,
            reserved_free={node: free[node] for node in sorted(sure) if node in free} if parents else {},
            reserved_priority=priorities,
            parents=parents,
            reserved={row.application: size for row, size in holders},
            node_totals=views.node_totals(nodes, largest, names) if parents and names else {},
        )

    def _smallest(self) -> Resources:
        """Return the smallest container; nothing while the configuration is not known."""
        known = self._connection.configuration
        return NOTHING if known is None else least_in(known)

    def _note_names(self, nodes: Sequence[yarn.NodeRow]) -> None:
        """Note resources beside memory and vcores; a vector's order never changes while the daemon lives."""
        known = self._connection.resource_names
        new = tuple(name for name in views.other_resources(nodes) if name not in known)
        if new:
            self._connection.resource_names = (*known, *new)
            self._applications.make_all_anew()
            self._asks.clear()

    def _labelled(
        self,
        root_queue: yarn.QueueInfo,
        nodes: Sequence[yarn.NodeRow],
        demand: Mapping[str, views.LabelledRequests],
        applications: Sequence[ApplicationView],
        label: str,
    ) -> Snapshot:
        """Return one of ``labelled``: requests of queues without a part of these nodes are left out."""
        total, _, _ = views.cluster_room(nodes)
        may_use = _users(views.queue_views(root_queue, total, label))
        asks = {
            name: requests
            for name, requests in _of_label(demand, label).items()
            if self._connection.rows[name].queue in may_use
        }
        rows = self._connection.rows
        found = []
        for view in applications:
            used = views.used(rows[view.application], label, self._connection.resource_names)
            requests = asks.get(view.application, ())
            if requests or used > NOTHING:
                # How many of its containers are here is not shown: none, or at most all of them
                containers = view.containers if used > NOTHING else 0
                changed = {"used": used, "requests": requests, "containers": containers}
                found.append(msgspec.structs.replace(view, **changed))
        is_shared = bool(may_use) and not self._exclusive.get(label, True)
        unlabelled = _of_label(demand, "") if is_shared else None
        part = self._partition(root_queue, nodes, asks, tuple(found), label, unlabelled)
        return msgspec.structs.replace(
            part, nodes=tuple(sorted(node.node for node in nodes)), is_shared=is_shared
        )

    def _read_labels(self, labels: Sequence[str]) -> None:
        """Read whether new labels are exclusive; unknown ones count as exclusive.

        That never changes, but a label may be removed, and added anew with the other kind.
        """
        self._exclusive = {label: self._exclusive[label] for label in labels if label in self._exclusive}
        if all(label in self._exclusive for label in labels):
            return
        try:
            rows = self._manager.node_labels()
        except YarnctlError:
            return
        self._exclusive = dict.fromkeys(labels, True) | {row.name: row.is_exclusive for row in rows}

    def refresh(self) -> None:
        """Read the unfinished applications anew; raises as the client does."""
        self._applications.update([self._connection.placed(row) for row in self._manager.applications()])
        for gone in self._asks.keys() - self._applications.waiting.keys():  # new asks may have the same sum
            del self._asks[gone]
        for gone in self.sizes.keys() - self._connection.rows.keys():
            del self.sizes[gone]
        self._activities.located &= self._asks.keys()

    def _views(
        self,
        asks: Mapping[str, tuple[ContainerRequest, ...]],
        why_not: Mapping[str, EligibilityReason],
        held_back: Sequence[str],
    ) -> tuple[ApplicationView, ...]:
        queues, names = self._connection.queues, self._connection.resource_names

        def make(app: yarn.AppInfo, rank: int) -> ApplicationView:
            name = app.application
            size = self.sizes.get(name) or average(app, names)
            unclear = QueueUnclear(app.queue) if queues.is_unclear(app.queue) else None
            return views.application_view(
                app,
                names=names,
                queue=app.queue,
                rank=rank,
                am_size=size.am,
                task_size=size.task,
                demand=asks.get(name, ()),
                why_not=self._connection.left_alone(app) or unclear or why_not.get(name),
            )

        if self._tree != queues.tree:
            self._tree = queues.tree
            self._applications.make_all_anew()
        found = self._applications.views(make, asks, self.sizes, why_not)
        if not held_back:
            return found
        return tuple(
            msgspec.structs.replace(view, activated=False) if view.application in held_back else view
            for view in found
        )

    def _demand(self) -> dict[str, views.LabelledRequests]:
        known, waiting, rows = self._asks, self._applications.waiting, self._connection.rows
        is_preempting = self._connection.queues.is_preempting
        for name in [name for name in waiting if name not in known or known[name].pending != waiting[name]]:
            asks = supposed(rows[name], waiting[name], self.sizes.get(name))
            known[name] = Asks(waiting[name], asks, reported=False)
        found = {name: known[name].asks for name in waiting}
        fresh_ms = self._connection.clock() - ASKS_AGE_MS
        preempting = [
            rows[name]
            for name in waiting
            if is_preempting(rows[name].queue)
            and (known[name].read_at_ms <= fresh_ms or known[name].containers != rows[name].containers)
        ]
        unknown = [rows[name] for name in waiting if not known[name].reported]
        others = [row for row in unknown if not is_preempting(row.queue)]
        found.update(self._ask(preempting, self._settings.asks_max))
        found.update(self._ask(others, self._settings.others_max))
        return {name: asks for name, asks in found.items() if asks}

    def _ask(self, rows: list[yarn.AppInfo], most: int) -> dict[str, views.LabelledRequests]:
        """Read the sizes of the first ``most`` in serving order; keep the assumed ones if that fails."""
        if len(rows) > most:
            rows = nsmallest(most, rows, key=serving_order)
        if not rows:
            return {}
        answers = self._calls.each(self._manager.application, (row.application for row in rows))
        labels = views.queue_labels(self._connection.leaves)
        now_ms = self._connection.clock()
        found: dict[str, views.LabelledRequests] = {}
        for name, answer in answers.items():
            if not isinstance(answer, Problem):
                found[name], left_out = views.requested(
                    answer,
                    labels.get(self._connection.placed(answer).queue, ""),
                    self._connection.resource_names,
                )
                pending, containers = self._applications.waiting[name], self._connection.rows[name].containers
                self._asks[name] = Asks(pending, found[name], True, left_out, containers, now_ms)
                if views.names_hosts(answer):
                    self._activities.located.add(name)
        return found

    def _left_out(self, snapshot: Snapshot) -> dict[str, NotModelled]:
        found: dict[str, NotModelled] = {}
        names = {views.shown_name(name) for name in snapshot.resource_names}
        for name, why in self._applications.left_out.items():
            known = self._asks.get(name)
            if known is None or not known.reported or not names.issuperset(why.resources):
                found[name] = why
        may_use = {label: _users(part.queues) for label, part in snapshot.labelled.items()}
        for name in self._applications.waiting:
            known = self._asks[name]
            labels = {*known.asks, *(label for label, _ in known.pending.labelled)} - {""}
            queue = self._connection.rows[name].queue
            closed = [label for label in labels if queue not in may_use.get(label, ())]
            mine = views.merged(known.left_out, views.not_modelled(closed, ()))
            left_out = views.merged(found.get(name), mine)
            if left_out is not None:
                found[name] = left_out
        return found

    def _even(self, asks: Mapping[str, tuple[ContainerRequest, ...]]) -> bool:
        """Return whether each queue's requests have one size: then the first one stops no smaller one."""
        first: dict[str, Resources] = {}
        rows = self._connection.rows
        return all(
            first.setdefault(rows[name].queue, request.size) == request.size
            for name, requests in asks.items()
            for request in requests
        )

    def _held_back(self) -> tuple[str, ...]:
        """Return the applications that wait because of max-parallel-apps: the last of their queue."""
        counts = {leaf.path: leaf.queue.held_back for leaf in self._connection.leaves}
        found: list[str] = []
        for path, count in counts.items():
            rows = [row for row in self._connection.rows.values() if row.queue == path] if count else []
            waiting = [row for row in rows if row.state == "ACCEPTED" and row.containers <= 0]
            last = sorted([row for row in waiting if views.activated(row)], key=serving_order)[-count:]
            found += [row.application for row in last]
        return tuple(sorted(found))

    def _holders(self, label: str) -> list[tuple[yarn.AppInfo, Resources]]:
        """Return the applications with reservations on nodes with a label, in serving order, and these."""
        rows = [row for row in self._connection.rows.values() if row.reserved_mib > 0]
        names = self._connection.resource_names
        sizes = [(row, views.reserved(row, label, names)) for row in sorted(rows, key=serving_order)]
        return [(row, size) for row, size in sizes if size > NOTHING]

    def _reserved(
        self,
        free: Mapping[str, Resources],
        nodes: Sequence[yarn.NodeRow],
        asks: Mapping[str, tuple[ContainerRequest, ...]],
        holders: Sequence[tuple[yarn.AppInfo, Resources]],
    ) -> tuple[dict[str, str], frozenset[str], dict[str, int]]:
        """Return where reservations are.

        Node -> application, the nodes that are certainly reserved, and node -> priority of the request if it
        is known.
        """
        named: dict[str, str] = {}
        priorities: dict[str, int] = {}
        sure: set[str] = set()
        suspects: list[str] = []
        rows = {node.node: node for node in nodes} if holders else {}
        recorded = self._activities.reserved() if holders else {}
        least_mib = least_in(self._connection.configuration or {}, 1)[0]
        for row, sum_ in holders:
            sizes = {ask.priority: ask.size for ask in asks.get(row.application, ())} or {-1: sum_}
            ways = ways_to_reserve(sum_, set(sizes.values()))
            possible = {size for way in ways for size in way}
            totals = {node: rows[node].total_of(self._connection.resource_names) for node in free}
            candidates = [
                node
                for node, room in free.items()
                if any(not fits(size, room) and fits(size, totals[node]) for size in possible)
                and room.memory_mib >= least_mib
                and rows[node].available_vcores > 0
            ]
            count = min(map(len, ways))
            certain = len(candidates) <= count
            mine = {node: each for node, each in recorded.items() if each.application == row.application}
            own: dict[str, int | None] = {}
            known_mib: list[int] = []
            # One that was there before, and of a later record: the others have moved or were rejected.
            for node in sorted(mine.keys() & rows, key=lambda node: (mine[node].is_new, -mine[node].at_ms)):
                if sum(known_mib) < sum_.memory_mib:
                    own[node] = priority = mine[node].priority
                    known_mib += [] if priority is None else [sizes.get(priority, NOTHING).memory_mib]
            is_guessed = not certain
            if not certain and own:  # are these all its reservations?
                is_all = sum(known_mib) >= sum_.memory_mib
                if is_all or (len(known_mib) < len(own) and len(own) >= count):
                    candidates, certain = list(own), True
            if is_guessed or len(sizes) > 1:
                suspects += candidates  # what is known is read again: a reservation moves
            if certain or not self._connection.queues.is_preempting(row.queue):
                for node in candidates:
                    named.setdefault(node, row.application)
                priorities |= {node: priority for node, priority in own.items() if priority is not None}
            if certain:  # what has enough room for it is not left out: YARN fills it there
                for node in candidates:
                    priority = own.get(node)
                    known = possible if priority is None or priority not in sizes else {sizes[priority]}
                    if any(not fits(size, free.get(node, NOTHING)) for size in known):
                        sure.add(node)
        self._activities.suspects = tuple(dict.fromkeys((*self._activities.suspects, *suspects)))
        return named, frozenset(sure), {node: priorities[node] for node in sorted(priorities.keys() & named)}


def ways_to_reserve(sum_resources: Resources, sizes: Collection[Resources]) -> list[list[Resources]]:
    """Return in which ways reservations of some sizes add up to a sum; if in none, as many of the largest."""
    found: list[list[Resources]] = []

    def add(left: Resources, ordered: Sequence[Resources], way: list[Resources]) -> None:
        if max(left) == 0:
            found.append(way)
        for place, size in enumerate(ordered):
            if fits(size, left) and len(way) < RESERVED_MAX:
                add(minus(left, size), ordered[place:], [*way, size])

    largest = max(sizes)
    if len(sizes) > 1:
        add(sum_resources, [size for size in sorted(sizes, reverse=True) if max(size) > 0], [])
    return found or [[largest] * max(1, sum_resources.memory_mib // max(1, largest.memory_mib))]


def _waits(queue: yarn.QueueInfo) -> bool:
    return queue.pending_containers > 0 or queue.applications_pending > 0 or queue.pending() > NOTHING


def average(app: yarn.AppInfo, names: Sequence[str] = ()) -> Sizes:
    """Return the average size of an application's containers, for use if the sizes are unknown.

    Of what it has of another resource a container has one at least: its tasks are to be looked at.
    """
    if app.containers <= 0 or app.allocated_mib <= 0:
        return Sizes(SMALLEST, SMALLEST)
    size = Resources(app.allocated_mib // app.containers, max(1, app.allocated_vcores // app.containers))
    if names and app.uses is not None:
        held = NOTHING
        for row in app.uses.partitions:
            held = plus(held, row.used.of(names))
        size = Resources(*size, *(min(count, max(1, count // app.containers)) for count in held[2:]))
    return Sizes(size, size)


def supposed(app: yarn.AppInfo, pending: views.PendingSum, sizes: Sizes | None) -> views.LabelledRequests:
    """Return an application's requests estimated from its pending sums; none if one has other resources."""
    if views.pending_elsewhere(app) is not None:
        return {}
    size = (sizes or average(app)).task
    sums = [("", pending.memory_mib), *((label, sum_.memory_mib) for label, sum_ in pending.labelled)]
    counts = [(label, -(-memory_mib // max(1, size.memory_mib))) for label, memory_mib in sums]
    return {label: (ContainerRequest(views.REDUCE, size, count),) for label, count in counts if count > 0}


def _of_label(
    demand: Mapping[str, views.LabelledRequests], label: str
) -> dict[str, tuple[ContainerRequest, ...]]:
    return {name: requests[label] for name, requests in demand.items() if label in requests}


def _users(queues: Sequence[QueueView]) -> frozenset[str]:
    """Return the queues that YARN serves on nodes with a label; none until one has a guarantee there."""
    if all(view.guaranteed == NOTHING for view in queues):
        return frozenset()
    return frozenset(view.queue for view in queues if view.maximum > NOTHING)


def sizes_of(containers: Iterable[yarn.ContainerRow]) -> Sizes | None:
    """Return the sizes of a MapReduce application's live containers; None while it has no task."""
    am, tasks = NOTHING, NOTHING
    for container in containers:
        kind = views.kind_of(container)
        if kind == "am":
            am = container.size
        elif kind == "reduce" or (kind == "map" and tasks == NOTHING):
            tasks = max(tasks, container.size) if kind == "reduce" else container.size
    return Sizes(am if am != NOTHING else tasks, tasks) if tasks != NOTHING else None


class Queues:
    """Reads queues' settings."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def limits(self, queue: str) -> tuple[str, QueueLimits] | str:
        """Return a preemptable queue's path and configured limits, or why they are unknown or fixed."""
        try:
            return queue, QueueLimits(*self._connection.manager.queue_share(queue))
        except YarnctlError as problem:
            return str(problem)

    def preemption_key(self, queue: str) -> str:
        """Return a queue's own key of YARN's preemption ("": absent). Raises as the client does."""
        return self._connection.manager.preemption_key(queue)


class StartingJob(NamedTuple):
    """The application id, name and user of a job with a starting master."""

    application: str
    name: str
    user: str


FirstAsksOf = Callable[[StartingJob], tuple[ContainerRequest, ...]]
"""Returns a starting job's first requests in their original sizes; (): not known (yet)."""


class PredictedDemand:
    """Adds the demand of starting jobs to snapshots, before their masters have sent their first requests."""

    def __init__(self, connection: Connection, first_asks: FirstAsksOf) -> None:
        settings = connection.settings
        self._connection = connection
        self._first_asks = first_asks
        self._prediction = Prediction(
            settings.predicted_max, connection.queues.is_preempting, self._predicted
        )
        self._wanted = settings.predicted_max > 0

    @property
    def expected(self) -> bool:
        """Return whether first requests are still predicted; then a snapshot is needed without demand."""
        return self._prediction.expects

    def added(self, snapshot: Snapshot, now_ms: int) -> Snapshot:
        """Return a snapshot with the predicted demand."""
        if not self._wanted:
            return snapshot
        shown = self._prediction.predict(snapshot.applications, now_ms)
        return msgspec.structs.replace(snapshot, applications=shown)

    def _predicted(self, view: ApplicationView) -> tuple[ContainerRequest, ...]:
        row = self._connection.rows.get(view.application)
        if row is None or self._has_label(row):
            return ()
        job = StartingJob(row.application, row.name, row.user)
        asks = attempt(self._first_asks, job)
        if isinstance(asks, Problem):
            return ()
        known = self._connection.configuration or {}
        return tuple(ask._replace(size=normalised(ask.size, known)) for ask in asks)

    def _has_label(self, app: yarn.AppInfo) -> bool:
        labels = views.queue_labels(self._connection.leaves)
        own = yarn.label_in(app.label)
        return bool(labels.get(app.queue, "") if own is None else own)


def normalised(size: Resources, configuration: Mapping[str, str]) -> Resources:
    """Return an ask's size as the capacity scheduler rounds it: memory to multiples of the smallest one."""
    least = least_in(configuration)
    return Resources(-(-size.memory_mib // least[0]) * least[0], max(size.vcores, least[1]))
