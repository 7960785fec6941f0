"""Suppositions: a snapshot as it would be with one more application, another guarantee, or one node less.

Law: values only. What is not known is kept as it is: the tasks of a lost node request a container each, of
their own size, and a user without applications has no limit beyond that of the queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

import msgspec

from yarnctl.deciding.forecast import SCALE
from yarnctl.deciding.model import ApplicationView, ContainerRequest, ParentView, QueueView, Snapshot
from yarnctl.units import NOTHING, Resources, at_least, fits, minus, plus

NEW = "what-if"
"""The id of the application that is supposed."""
MASTER_PRIORITY, RETURNING_PRIORITY, TASK_PRIORITY = 0, 5, 20
"""MapReduce's request priorities of a master, of a task that runs again, and of a map."""


class NewApplication(msgspec.Struct, frozen=True, kw_only=True):
    """An application that is submitted now, with ``containers`` of ``size`` beside its master's."""

    queue: str
    user: str
    containers: int
    size: Resources
    master_size: Resources


class LostNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that ends now, its whole ``size``, and the sizes of what runs on it, by application."""

    node: str
    size: Resources
    held: Mapping[str, tuple[Resources, ...]] = {}


class Supposition(msgspec.Struct, frozen=True, kw_only=True):
    """What is supposed; ``guarantees``: the path of a queue -> its part of its parent (0 to 1)."""

    application: NewApplication | None = None
    guarantees: Mapping[str, float] = {}
    lost_node: LostNode | None = None


def supposed(snapshot: Snapshot, supposition: Supposition, now_ms: int) -> Snapshot:
    """Return the snapshot with everything that is supposed."""
    if supposition.lost_node is not None:
        snapshot = without_node(snapshot, supposition.lost_node)
    for path, ratio in sorted(supposition.guarantees.items()):
        snapshot = with_guarantee(snapshot, path, ratio)
    if supposition.application is not None:
        snapshot = with_application(snapshot, supposition.application, now_ms)
    return snapshot


def with_application(snapshot: Snapshot, new: NewApplication, now_ms: int) -> Snapshot:
    """Return the snapshot with one more application, the last of its queue, whose master is pending."""
    queue = next(view for view in snapshot.queues if view.queue == new.queue)
    ranks = [view.rank for view in snapshot.applications if view.queue == new.queue]
    masters = plus(queue.am_used, new.master_size)
    view = ApplicationView(
        application=NEW,
        queue=new.queue,
        user=new.user,
        submitted_at_ms=now_ms,
        rank=max(ranks, default=0) + 1,
        containers=0,
        used=NOTHING,
        am_size=new.master_size,
        task_size=new.size,
        requests=(ContainerRequest(MASTER_PRIORITY, new.master_size, 1),),
        activated=queue.am_limit is None or fits(masters, queue.am_limit),
        runner=None,
    )
    return msgspec.structs.replace(snapshot, applications=(*snapshot.applications, view))


def with_guarantee(snapshot: Snapshot, path: str, ratio: float) -> Snapshot:
    """Return the snapshot with a queue that is guaranteed this part of its parent.

    The others below the same parent share the rest as before, and so do all queues below each of them.
    """
    parent = path.rpartition(".")[0]
    known = _guarantees(snapshot)
    whole = known.get(parent, snapshot.total)
    beside = [name for name in known if name.rpartition(".")[0] == parent and name not in ("", "root", path)]
    rest = minus(whole, _part(whole, ratio))
    before = NOTHING
    for name in beside:
        before = plus(before, known[name])

    def guaranteed(name: str, own_resources: Resources) -> Resources:
        if _is_below(name, path):
            return _scaled(own_resources, _part(whole, ratio), known[path])
        if any(_is_below(name, other) for other in beside):
            return _scaled(own_resources, rest, before)
        return own_resources

    return _with_guarantees(snapshot, {name: guaranteed(name, own) for name, own in known.items()})


def without_node(snapshot: Snapshot, lost: LostNode) -> Snapshot:
    """Return the snapshot without a node: guarantees shrink with the cluster, and its tasks request anew."""
    total = minus(snapshot.total, lost.size)
    known = _guarantees(snapshot)
    snapshot = _with_guarantees(
        snapshot, {name: _scaled(own, total, snapshot.total) for name, own in known.items()}
    )
    used: dict[str, Resources] = {}
    applications = []
    for view in snapshot.applications:
        sizes = lost.held.get(view.application, ())
        for size in sizes:
            used[view.queue] = plus(used.get(view.queue, NOTHING), size)
            request = ContainerRequest(RETURNING_PRIORITY, size, 1)
            view = msgspec.structs.replace(
                view,
                containers=view.containers - 1,
                used=minus(view.used, size),
                requests=(*view.requests, request),
            )
        applications.append(view)
    free = {node: size for node, size in snapshot.free_by_node.items() if node != lost.node}
    reserved = {node: name for node, name in snapshot.reserved_by_node.items() if node != lost.node}
    return less_used(
        msgspec.structs.replace(
            snapshot,
            total=total,
            applications=tuple(applications),
            free_by_node=free,
            reserved_by_node=reserved,
            node_count=None if snapshot.node_count is None else snapshot.node_count - 1,
        ),
        used,
    )


def less_used(snapshot: Snapshot, used: Mapping[str, Resources]) -> Snapshot:
    """Return a snapshot whose leaf queues use so much less (negative: more), and all parents of them."""

    def left(view: QueueView | ParentView) -> Resources:
        now = view.used
        for leaf, size in used.items():
            now = minus(now, size) if _is_below(leaf, view.queue) else now
        return now

    return msgspec.structs.replace(
        snapshot,
        queues=tuple(msgspec.structs.replace(view, used=left(view)) for view in snapshot.queues),
        parents=tuple(msgspec.structs.replace(view, used=left(view)) for view in snapshot.parents),
    )


def _guarantees(snapshot: Snapshot) -> dict[str, Resources]:
    """Return the guarantee of each queue, parents included."""
    found = {view.queue: view.guaranteed for view in snapshot.parents}
    return found | {view.queue: view.guaranteed for view in snapshot.queues}


def _with_guarantees(snapshot: Snapshot, guaranteed: Mapping[str, Resources]) -> Snapshot:
    def changed(view: QueueView) -> QueueView:
        own = guaranteed[view.queue]
        return msgspec.structs.replace(view, guaranteed=own, maximum=at_least(view.maximum, own))

    def changed_parent(view: ParentView) -> ParentView:
        own = guaranteed[view.queue]
        return msgspec.structs.replace(view, guaranteed=own, maximum=at_least(view.maximum, own))

    return msgspec.structs.replace(
        snapshot,
        queues=tuple(changed(view) for view in snapshot.queues),
        parents=tuple(changed_parent(view) for view in snapshot.parents),
    )


def _is_below(name: str, path: str) -> bool:
    """Return whether a queue is this one or below it; "" and "root" are the root of a tree."""
    return name == path or name.startswith(f"{path}.") or path in ("", "root")


def _part(whole_resources: Resources, ratio: float) -> Resources:
    return Resources(*(part * round(ratio * SCALE) // SCALE for part in whole_resources))


def _scaled(own_resources: Resources, now_resources: Resources, before_resources: Resources) -> Resources:
    """Return a part of ``before_resources`` as the same part of ``now_resources``."""
    parts = zip_longest(own_resources, now_resources, before_resources, fillvalue=0)
    return Resources(*(own * now // before if before else 0 for own, now, before in parts))
