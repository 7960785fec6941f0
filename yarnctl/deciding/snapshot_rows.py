"""Changes of the snapshot: the rows that a step reads, and how they differ from the snapshot written last.

:class:`Writer` returns how a snapshot differs from the one before it, :class:`Reader` rebuilds the same
snapshot from that; the controller reads no column that is not a row's (a test drops each column and must
fail). That a view is the same object may save work, and never decides what is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from yarnctl.deciding.model import (
    NAME_MAX,
    ApplicationView,
    ContainerRequest,
    ParentView,
    QueueView,
    Snapshot,
)
from yarnctl.deciding.reasons.demand import NotModelled, StandingAside
from yarnctl.deciding.settings import Settings
from yarnctl.units import Resources

NOT_READ = Resources(0, 0)
"""Means a size that no step reads."""


class QueueRow(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What a step reads of a queue."""

    queue: str
    guaranteed: Resources
    maximum: Resources
    used: Resources
    user_limit: Resources | None = None

    def view(self) -> QueueView:
        """Return the queue as a step reads it."""
        return QueueView(**msgspec.structs.asdict(self))


class ApplicationRow(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What a step reads of an application; ``priority``, deadline and progress only where they are read.

    ``name``: in its first row only; it is cut at :data:`NAME_MAX`, and decides nothing.
    """

    application: str
    queue: str
    user: str
    submitted_at_ms: int
    rank: int
    containers: int
    used: Resources
    task_size: Resources
    requests: tuple[ContainerRequest, ...] = ()
    activated: bool = True
    runner: bool | None = True
    predicted: int = 0
    priority: int = 0
    deadline_at_ms: int | None = None
    progress_ratio: float = 0.0
    name: str = ""

    def view(self, earlier_view: ApplicationView | None) -> ApplicationView:
        """Return the application as a step reads it; ``earlier_view``: that of the row before."""
        fields = msgspec.structs.asdict(self)
        known = {"name": earlier_view.name} if earlier_view else {}
        return ApplicationView(am_size=NOT_READ, **fields | known)


class SnapshotChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a snapshot differs from the one before. ``order``: where appending new rows does not give it.

    ``free``: nodes whose free capacity differs (None: none any more, or gone); ``reserved`` (by node), and of
    what is read, ``reserved_free``, ``reserved_priority``, ``node_totals``, ``left_out``, ``aside``,
    ``reservations`` (by application), both limits of users, ``held_back``, ``user_percents``, ``left_alone``
    and ``located``: all of them, if they differ. A flat tree has no ``parents``; they are sorted by path.
    ``labelled``: of the labels of which something differs; only these have ``nodes``.
    """

    total: Resources | None = None
    largest_node: Resources | None = None
    queues: tuple[QueueRow, ...] = ()
    queues_gone: tuple[str, ...] = ()
    queue_order: tuple[str, ...] | None = None
    applications: tuple[ApplicationRow, ...] = ()
    gone: tuple[str, ...] = ()
    order: tuple[str, ...] | None = None
    free: Mapping[str, Resources | None] = {}
    reserved: Mapping[str, str] | None = None
    reserved_free: Mapping[str, Resources] | None = None
    reserved_priority: Mapping[str, int] | None = None
    left_out: Mapping[str, NotModelled] | None = None
    aside: Mapping[str, StandingAside] | None = None
    parents: tuple[ParentView, ...] = ()
    parents_gone: tuple[str, ...] = ()
    reservations: Mapping[str, Resources] | None = None
    user_limits: Mapping[str, Mapping[str, Resources]] | None = None
    active_limits: Mapping[str, Mapping[str, Resources]] | None = None
    held_back: tuple[str, ...] | None = None
    smallest: Resources | None = None
    user_percents: Mapping[str, float] | None = None
    labelled: Mapping[str, SnapshotChange] = {}
    labels_gone: tuple[str, ...] = ()
    nodes: tuple[str, ...] | None = None
    is_shared: bool | None = None
    resource_names: tuple[str, ...] | None = None
    left_alone: tuple[str, ...] | None = None
    node_totals: Mapping[str, Resources] | None = None
    heartbeat_ms: int | None = None
    located: Mapping[str, int] | None = None


NO_CHANGE = SnapshotChange()


class Columns:
    """Which rows and columns are read under these settings."""

    def __init__(self, settings: Settings) -> None:
        self._by_name = settings.mode == "queues"
        self._named = frozenset((*settings.preempting_queues, *settings.preemptable_queues))
        self._urgency = settings.mode == "deadlines"
        self._deadline = self._urgency or settings.job_policy in ("MDF", "MLF")
        self._progress = settings.job_policy == "MLF"

    def rows(self, snapshot: Snapshot) -> Iterable[ApplicationView]:
        """Yield the applications that are read."""
        limited = bool(snapshot.user_limits or snapshot.user_percents)
        limited = limited or any(view.user_limit is not None for view in snapshot.queues)
        if not self._by_name or limited:
            return snapshot.applications
        return [view for view in snapshot.applications if view.requests or view.queue in self._named]

    def row(self, view: ApplicationView) -> ApplicationRow:
        """Return what is read of one application."""
        return ApplicationRow(
            view.application,
            view.queue,
            view.user,
            view.submitted_at_ms,
            view.rank,
            view.containers,
            view.used,
            view.task_size,
            view.requests,
            view.activated,
            view.runner,
            view.predicted,
            view.priority if self._urgency else 0,
            view.deadline_at_ms if self._deadline else None,
            view.progress_ratio if self._progress else 0.0,
        )


def _by_name(limits: Mapping[str, Mapping[str, Resources]]) -> dict[str, dict[str, Resources]]:
    return {queue: dict(sorted(limits[queue].items())) for queue in sorted(limits)}


class Writer:
    """Makes changes: keeps the snapshot that was written last, by the identity of its views."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._columns = Columns(settings)
        self._labelled: dict[str, Writer] = {}
        self._nodes: tuple[str, ...] = ()
        self._is_shared = False
        self._names: tuple[str, ...] = ()
        self._views: dict[str, ApplicationView] = {}
        self._rows: dict[str, ApplicationRow] = {}
        self._queues: dict[str, QueueRow] = {}
        self._free: dict[str, Resources] = {}
        self._reserved: dict[str, str] = {}
        self._reserved_free: dict[str, Resources] = {}
        self._reserved_priority: dict[str, int] = {}
        self._left_out: dict[str, NotModelled] = {}
        self._aside: dict[str, StandingAside] = {}
        self._parents: dict[str, ParentView] = {}
        self._reservations: dict[str, Resources] = {}
        self._user_limits: dict[str, dict[str, Resources]] = {}
        self._active_limits: dict[str, dict[str, Resources]] = {}
        self._held_back: tuple[str, ...] = ()
        self._user_percents: dict[str, float] = {}
        self._left_alone: tuple[str, ...] = ()
        self._node_totals: dict[str, Resources] = {}
        self._heartbeat_ms = 0
        self._located: dict[str, int] = {}
        self._total = self._largest = self._smallest = NOT_READ

    def change(self, snapshot: Snapshot) -> SnapshotChange:
        """Return how ``snapshot`` differs from what was written last; from now on that is ``snapshot``."""
        applications, gone, order = self._applications(snapshot)
        queues, queues_gone, queue_order = self._queue_rows(snapshot)
        parents = {view.queue: view for view in snapshot.parents}
        reservations = {name: snapshot.reserved[name] for name in sorted(snapshot.reserved)}
        user_limits, active_limits = _by_name(snapshot.user_limits), _by_name(snapshot.active_limits)
        user_percents = dict(sorted(snapshot.user_percents.items()))
        node_totals = dict(sorted(snapshot.node_totals.items()))
        located = dict(sorted(snapshot.located.items()))
        left_alone = tuple(sorted(name for name, view in self._views.items() if view.left_alone))
        free: dict[str, Resources | None] = {
            node: size for node, size in snapshot.free_by_node.items() if self._free.get(node) != size
        }
        free.update((node, None) for node in self._free if node not in snapshot.free_by_node)
        other_reserved = snapshot.reserved_by_node != self._reserved
        reserved_free = dict(sorted(snapshot.reserved_free.items()))
        priorities = dict(sorted(snapshot.reserved_priority.items()))
        left_out = {
            name: snapshot.left_out[name] for name in sorted(snapshot.left_out) if name in self._views
        }
        change = SnapshotChange(
            total=snapshot.total if snapshot.total != self._total else None,
            largest_node=snapshot.largest_node if snapshot.largest_node != self._largest else None,
            queues=queues,
            queues_gone=queues_gone,
            queue_order=queue_order,
            applications=applications,
            gone=gone,
            order=order,
            free=dict(sorted(free.items())),
            reserved=dict(sorted(snapshot.reserved_by_node.items())) if other_reserved else None,
            reserved_free=reserved_free if reserved_free != self._reserved_free else None,
            reserved_priority=priorities if priorities != self._reserved_priority else None,
            left_out=left_out if left_out != self._left_out else None,
            aside=dict(sorted(snapshot.aside.items())) if snapshot.aside != self._aside else None,
            parents=tuple(view for name, view in parents.items() if self._parents.get(name) != view),
            parents_gone=tuple(name for name in self._parents if name not in parents),
            reservations=reservations if reservations != self._reservations else None,
            user_limits=user_limits if user_limits != self._user_limits else None,
            active_limits=active_limits if active_limits != self._active_limits else None,
            held_back=snapshot.held_back if snapshot.held_back != self._held_back else None,
            smallest=snapshot.smallest if snapshot.smallest != self._smallest else None,
            user_percents=user_percents if user_percents != self._user_percents else None,
            labelled=self._changed_labels(snapshot),
            labels_gone=tuple(sorted(self._labelled.keys() - snapshot.labelled.keys())),
            nodes=snapshot.nodes if snapshot.nodes != self._nodes else None,
            is_shared=snapshot.is_shared if snapshot.is_shared != self._is_shared else None,
            resource_names=snapshot.resource_names if snapshot.resource_names != self._names else None,
            left_alone=left_alone if left_alone != self._left_alone else None,
            node_totals=node_totals if node_totals != self._node_totals else None,
            heartbeat_ms=snapshot.heartbeat_ms if snapshot.heartbeat_ms != self._heartbeat_ms else None,
            located=located if located != self._located else None,
        )
        self._heartbeat_ms, self._located = snapshot.heartbeat_ms, located
        self._left_alone, self._node_totals = left_alone, node_totals
        self._names = snapshot.resource_names
        for label in change.labels_gone:
            del self._labelled[label]
        self._nodes, self._is_shared = snapshot.nodes, snapshot.is_shared
        self._held_back = snapshot.held_back
        self._smallest, self._user_percents = snapshot.smallest, user_percents
        self._parents, self._reservations = parents, reservations
        self._user_limits, self._active_limits = user_limits, active_limits
        self._free, self._reserved = dict(snapshot.free_by_node), dict(snapshot.reserved_by_node)
        self._reserved_free, self._reserved_priority = reserved_free, priorities
        self._left_out, self._aside = left_out, dict(snapshot.aside)
        self._total, self._largest = snapshot.total, snapshot.largest_node
        return change

    def _changed_labels(self, snapshot: Snapshot) -> dict[str, SnapshotChange]:
        found: dict[str, SnapshotChange] = {}
        for label, part in sorted(snapshot.labelled.items()):
            if label not in self._labelled:
                self._labelled[label] = Writer(self._settings)
            change = self._labelled[label].change(part)
            if change != NO_CHANGE:
                found[label] = change
        return found

    def _applications(
        self, snapshot: Snapshot
    ) -> tuple[tuple[ApplicationRow, ...], tuple[str, ...], tuple[str, ...] | None]:
        """Return rows that differ, ids that are gone, and the order where appending does not give it."""
        views = {view.application: view for view in self._columns.rows(snapshot)}
        changed: list[ApplicationRow] = []
        rows = self._rows
        for name, view in views.items():
            if self._views.get(name) is view:
                continue
            row = self._columns.row(view)
            if name not in rows:
                changed.append(msgspec.structs.replace(row, name=view.name[:NAME_MAX]))
            elif rows[name] != row:
                changed.append(row)
            rows[name] = row
        gone = tuple(name for name in rows if name not in views)
        for name in gone:
            del rows[name]
        order = tuple(views) if list(rows) != list(views) else None
        if order is not None:
            self._rows = {name: rows[name] for name in order}
        self._views = views
        return tuple(changed), gone, order

    def _queue_rows(
        self, snapshot: Snapshot
    ) -> tuple[tuple[QueueRow, ...], tuple[str, ...], tuple[str, ...] | None]:
        queues = {
            view.queue: QueueRow(view.queue, view.guaranteed, view.maximum, view.used, view.user_limit)
            for view in snapshot.queues
        }
        before, self._queues = self._queues, queues
        changed = tuple(row for name, row in queues.items() if before.get(name) != row)
        gone = tuple(name for name in before if name not in queues)
        appended = [name for name in before if name in queues]
        appended += [name for name in queues if name not in before]
        return changed, gone, tuple(queues) if appended != list(queues) else None


class Reader:
    """Applies changes: the snapshot that was written last, as far as it is read."""

    def __init__(self) -> None:
        self.total = self.largest_node = NOT_READ
        self.queues: dict[str, QueueView] = {}
        self.applications: dict[str, ApplicationView] = {}
        self.free: dict[str, Resources] = {}
        self.reserved: dict[str, str] = {}
        self.reserved_free: Mapping[str, Resources] = {}
        self.reserved_priority: Mapping[str, int] = {}
        self.left_out: dict[str, NotModelled] = {}
        self.aside: dict[str, StandingAside] = {}
        self.parents: dict[str, ParentView] = {}
        self.reservations: Mapping[str, Resources] = {}
        self.user_limits: Mapping[str, Mapping[str, Resources]] = {}
        self.active_limits: Mapping[str, Mapping[str, Resources]] = {}
        self.held_back: tuple[str, ...] = ()
        self.smallest = NOT_READ
        self.user_percents: Mapping[str, float] = {}
        self.labelled: dict[str, Reader] = {}
        self.nodes: tuple[str, ...] = ()
        self.is_shared = False
        self.resource_names: tuple[str, ...] = ()
        self.left_alone: frozenset[str] = frozenset()
        self.node_totals: Mapping[str, Resources] = {}
        self.heartbeat_ms = 0
        self.located: dict[str, int] = {}

    def snapshot(self, change: SnapshotChange) -> Snapshot:
        """Apply a change; return the new snapshot."""
        self._apply(change)
        return Snapshot(
            total=self.total,
            largest_node=self.largest_node,
            queues=tuple(self.queues.values()),
            applications=self._views(),
            free_by_node=dict(self.free),
            reserved_by_node=dict(self.reserved),
            reserved_free=self.reserved_free,
            reserved_priority=self.reserved_priority,
            left_out=dict(self.left_out),
            aside=dict(self.aside),
            parents=tuple(self.parents.values()),
            reserved=self.reservations,
            user_limits=self.user_limits,
            active_limits=self.active_limits,
            held_back=self.held_back,
            smallest=self.smallest,
            user_percents=self.user_percents,
            labelled=self._partitions(change),
            nodes=self.nodes,
            is_shared=self.is_shared,
            resource_names=self.resource_names,
            node_totals=self.node_totals,
            heartbeat_ms=self.heartbeat_ms,
            located=self.located,
        )

    def _views(self) -> tuple[ApplicationView, ...]:
        alone = self.left_alone
        return tuple(
            msgspec.structs.replace(view, left_alone=True) if alone and name in alone else view
            for name, view in self.applications.items()
        )

    def _apply(self, change: SnapshotChange) -> None:
        self.total = change.total or self.total
        self.largest_node = change.largest_node or self.largest_node
        self.queues = _applied(
            self.queues,
            {row.queue: row.view() for row in change.queues},
            change.queues_gone,
            change.queue_order,
        )
        self.applications = _applied(
            self.applications,
            {
                row.application: row.view(self.applications.get(row.application))
                for row in change.applications
            },
            change.gone,
            change.order,
        )
        for node, size in change.free.items():
            if size is None:
                self.free.pop(node, None)
            else:
                self.free[node] = size
        if change.reserved is not None:
            self.reserved = dict(change.reserved)
        self.reserved_free = self.reserved_free if change.reserved_free is None else change.reserved_free
        if change.reserved_priority is not None:
            self.reserved_priority = change.reserved_priority
        if change.left_out is not None:
            self.left_out = dict(change.left_out)
        if change.aside is not None:
            self.aside = dict(change.aside)
        if change.parents or change.parents_gone:
            changed = {view.queue: view for view in change.parents}
            rows = _applied(self.parents, changed, change.parents_gone, None)
            self.parents = dict(sorted(rows.items()))
        if change.reservations is not None:
            self.reservations = change.reservations
        self.user_limits = self.user_limits if change.user_limits is None else change.user_limits
        self.active_limits = self.active_limits if change.active_limits is None else change.active_limits
        self.held_back = self.held_back if change.held_back is None else change.held_back
        self.smallest = change.smallest or self.smallest
        self.user_percents = self.user_percents if change.user_percents is None else change.user_percents
        self.nodes = self.nodes if change.nodes is None else change.nodes
        self.is_shared = self.is_shared if change.is_shared is None else change.is_shared
        self.resource_names = change.resource_names or self.resource_names
        if change.node_totals is not None:
            self.node_totals = change.node_totals
        if change.heartbeat_ms is not None:
            self.heartbeat_ms = change.heartbeat_ms
        self.located = self.located if change.located is None else dict(change.located)
        if change.left_alone is not None:
            self.left_alone = frozenset(change.left_alone)

    def _partitions(self, change: SnapshotChange) -> dict[str, Snapshot]:
        for label in change.labels_gone:
            del self.labelled[label]
        for label in change.labelled:
            self.labelled.setdefault(label, Reader())
        return {
            label: reader.snapshot(change.labelled.get(label, NO_CHANGE))
            for label, reader in sorted(self.labelled.items())
        }


View = TypeVar("View", ApplicationView, QueueView, ParentView)


def _applied(
    before: Mapping[str, View],
    changed: Mapping[str, View],
    gone: Collection[str],
    order: Sequence[str] | None,
) -> dict[str, View]:
    rows = {name: view for name, view in before.items() if name not in gone} | dict(changed)
    return rows if order is None else {name: rows[name] for name in order}
