"""Convert the ResourceManager's answers to the records that ``deciding`` uses.

Percentages become absolute vectors, rows for nodes and racks are left out of the demand, MapReduce's
priorities get their meaning, and a queue gets its full path, by walking the tree (``queuePath`` is missing in
older versions). Nodes, use, capacities and requests are those of one ``label`` ("": of no label, the default
partition), as YARN schedules each on its own. ``names``: the resources beside memory and vcores that vectors
have, in this order. Requests for others are left out, and those with a placement constraint or for
opportunistic containers (``NotModelled`` says what of these).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import NamedTuple

import msgspec

from yarnctl.deciding.model import (
    NAME_MAX,
    ApplicationView,
    ContainerRequest,
    ParentView,
    QueueView,
    TaskKind,
)
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.deciding.reasons.demand import NotModelled
from yarnctl.deciding.reasons.eligibility import EligibilityReason, LeftAlone, MasterUnreachable
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.tags import deadline_tag_ms, tags_in
from yarnctl.units import NOTHING, Resources, at_least, at_most, fits, minus, plus, times

ANYWHERE = "*"
AM_PRIORITY, FAILED_MAP, REDUCE, MAPS = 0, 5, 10, (19, 20)
"""MapReduce's request priorities (facts, section 1.1)."""
NAMES_MAX, NAME_LENGTH_MAX = 8, 64  # Names of labels and resources: job owners write them

_WAITING_FOR_LIMIT = "not yet activated"


class Leaf(msgspec.Struct, frozen=True):
    """One leaf queue with its path from the root."""

    path: str
    queue: yarn.QueueInfo


def leaves(root_queue: yarn.QueueInfo) -> tuple[Leaf, ...]:
    """Return the leaf queues in the tree's order, paths built by walking (YARN-10610).

    A parent without children is not a leaf. (``type`` marks a leaf in every version, ``queueType`` from 3.4
    on.)
    """
    return tuple(Leaf(path, queue) for path, queue in _walk(root_queue, root_queue.name) if is_leaf(queue))


def queues_of(root_queue: yarn.QueueInfo) -> tuple[Leaf, ...]:
    """Return all queues, parents too, each with its path."""
    return tuple(Leaf(path, queue) for path, queue in _walk(root_queue, root_queue.name))


def is_leaf(queue: yarn.QueueInfo) -> bool:
    """Return whether applications can be in this queue."""
    return not queue.children and ("Leaf" in queue.kind or queue.queue_type.lower() == "leaf")


def queue_tree(root_queue: yarn.QueueInfo) -> QueueTree:
    """Return the paths of all queues."""
    leaves, parents = list[str](), list[str]()
    for path, queue in _walk(root_queue, root_queue.name):
        (leaves if is_leaf(queue) else parents).append(path)
    return QueueTree(leaves, parents)


def queue_views(
    root_queue: yarn.QueueInfo,
    total: Resources,
    label: str = "",
    names: Sequence[str] = (),
    smallest_resources: Resources = NOTHING,
) -> tuple[QueueView, ...]:
    """Return the leaf queues by path; ``total`` (live nodes with the label) turns shares into vectors."""
    return tuple(
        sorted(
            (queue_view(leaf, total, label, names, smallest_resources) for leaf in leaves(root_queue)),
            key=lambda view: view.queue,
        )
    )


def queue_view(
    leaf: Leaf,
    total: Resources,
    label: str = "",
    names: Sequence[str] = (),
    smallest_resources: Resources = NOTHING,
) -> QueueView:
    """Return one leaf queue. Its user limit is guarantee x factor (-1: none).

    A guarantee below the ``smallest_resources`` container counts as one. Without a guarantee the factor is
    not applied (``UsersManager.computeUserLimit`` of 3.4). The softer share by minimum-user-limit-percent
    changes with the active users and is left out.
    """
    queue = leaf.queue
    guaranteed, maximum = _shares(queue, total, label, names)
    limit: Resources | None = None
    if queue.user_limit_factor >= 0 and any(guaranteed):
        base = at_least(guaranteed, smallest_resources)
        limit = Resources(*(int(part * queue.user_limit_factor) for part in base))
        if fits(maximum, limit):
            limit = None
    return QueueView(
        queue=leaf.path,
        guaranteed=guaranteed,
        maximum=maximum,
        used=queue.used_of(label, names),
        priority=queue.priority,
        user_limit=limit,
        am_limit=queue.am_limit.resources if queue.am_limit is not None else None,
        am_used=queue.am_used.resources,
    )


def parent_views(
    root_queue: yarn.QueueInfo,
    total: Resources,
    nodes: Iterable[yarn.NodeRow],
    simple: bool = True,
    label: str = "",
    names: Sequence[str] = (),
) -> tuple[ParentView, ...]:
    """Return the parents with leaves below them, by path; none for a flat tree (see ``Snapshot``).

    ``simple``: the cluster has neither labels nor other resource types, and no leaf has pending requests of
    several sizes.

    What a parent uses is the sum of its leaves. Root's answer has no use; the nodes and the queues are read
    one after the other, so root's use is taken from the nodes: what is not free, and what is reserved.
    """
    found: dict[str, ParentView] = {}
    _sum_up(root_queue, root_queue.name, total, found, label, names)
    root = found.get(root_queue.name)
    plain = root is None or (
        simple and root.order == "utilization" and root.reserved == NOTHING and not root.fair
    )
    if root is None or (plain and len(found) == 1):
        return ()
    free = _sum_of(
        node.free_of(names)
        for node in nodes
        if node.state == "RUNNING" and (names or node.available_mib > 0 or node.available_vcores > 0)
    )
    found[root.queue] = msgspec.structs.replace(
        root, guaranteed=total, maximum=total, used=plus(minus(total, free), root.reserved)
    )
    return tuple(found[path] for path in sorted(found))


def _sum_up(
    queue: yarn.QueueInfo,
    path: str,
    total: Resources,
    found: dict[str, ParentView],
    label: str,
    names: Sequence[str],
) -> tuple[Resources, Resources] | None:
    """Note the parents at and below a queue; return what it uses and has reserved, None without a leaf."""
    if is_leaf(queue):
        return queue.used_of(label, names), queue.reserved_of(label, names)
    rows = [_sum_up(child, f"{path}.{child.name}", total, found, label, names) for child in queue.children]
    sums = [row for row in rows if row is not None]
    if not sums:
        return None
    used = reserved = NOTHING
    for of_used, of_reserved in sums:
        used, reserved = plus(used, of_used), plus(reserved, of_reserved)
    guaranteed, maximum = _shares(queue, total, label, names)
    by_priority = queue.ordering_policy == "priority-utilization"
    children = sorted((f"{path}.{child.name}", child.priority) for child in queue.children)
    found[path] = ParentView(
        queue=path,
        guaranteed=guaranteed,
        maximum=maximum,
        used=used,
        reserved=reserved,
        order="priority-utilization" if by_priority else "utilization",
        priorities={name: value for name, value in children if value} if by_priority else {},
        fair=tuple(
            sorted(
                f"{path}.{child.name}" for child in queue.children if is_leaf(child) and child.order == "fair"
            )
        ),
    )
    return used, reserved


def user_limits(
    root_queue: yarn.QueueInfo, queues: Iterable[QueueView], names: Sequence[str] = ()
) -> dict[str, dict[str, Resources]]:
    """Return, by queue and user, the limits that the ResourceManager shows, where they may bind.

    0 is shown before anything was requested, and means unknown. The limit of the only active user rises with
    its own use, up to guarantee x factor x weight: it binds only where it is that, or below what the user
    has. With a minimum-user-limit-percent of 100 each limit is above what all users have
    (``UsersManager.computeUserLimit``): without a weight it binds only where it is that highest one. A user
    with a weight has that highest limit until one binds.
    """
    shown = {leaf.path: leaf.queue for leaf in leaves(root_queue)}
    found: dict[str, dict[str, Resources]] = {}
    for view in queues:
        queue = shown.get(view.queue)
        rows = () if queue is None or queue.users is None else queue.users.rows
        active = sum(row.is_active for row in rows)
        for row in rows:
            limit = NOTHING if row.limit is None else row.limit.of(names)
            highest = view.user_limit
            if queue is not None and row.weight != 1:
                highest = _weighted(view, queue.user_limit_factor * row.weight)
            if limit[:2] != NOTHING and limit != view.user_limit and not fits(view.maximum, limit):
                is_highest = highest is not None and fits(highest, limit)
                is_above_all = queue is not None and queue.user_limit_percent == 100 and row.weight == 1
                is_other = active > 1 or not fits(row.used.of(names), limit)
                if is_highest or (is_other and not is_above_all):
                    found.setdefault(view.queue, {})[row.user] = limit
                    continue
            if highest is not None and highest != view.user_limit:
                found.setdefault(view.queue, {})[row.user] = highest
    return found


def user_percents(root_queue: yarn.QueueInfo) -> dict[str, float]:
    """Return, by queue, minimum-user-limit-percent where it is below 100 and no user has a weight."""
    return {
        leaf.path: leaf.queue.user_limit_percent
        for leaf in leaves(root_queue)
        if leaf.queue.user_limit_percent is not None
        and 0 < leaf.queue.user_limit_percent < 100
        and all(row.weight == 1 for row in (leaf.queue.users.rows if leaf.queue.users else ()))
    }


def _weighted(view: QueueView, factor: float) -> Resources | None:
    """Return the highest limit of a user with a weight; None: a factor of -1, or no guarantee."""
    if factor < 0 or not any(view.guaranteed):
        return None
    return at_most(Resources(*(int(part * factor) for part in view.guaranteed)), view.maximum)


LabelledRequests = Mapping[str, tuple[ContainerRequest, ...]]
"""The pending requests of an application, by node label ("": none); none of them is empty."""


class Requested(NamedTuple):
    """The demand of an application, and its requests that are not modelled (None: all are)."""

    asks: LabelledRequests
    left_out: NotModelled | None


def requested(application: yarn.AppInfo, queue_label: str = "", names: Sequence[str] = ()) -> Requested:
    """Return an application's demand; ``queue_label``: the queue's default label."""
    rows = _unmet(application.requests)
    others = {name for row in rows for name in row.size.others}.difference(names)
    left_out = not_modelled(
        (),
        others,
        constrained=any(row.is_constrained for row in rows),
        opportunistic=any(row.is_opportunistic for row in rows),
    )
    return Requested(asks(rows, label_of(application, queue_label), names), left_out)


def asks(
    requests: Iterable[yarn.ResourceRequest], label: str = "", names: Sequence[str] = ()
) -> LabelledRequests:
    """Return the demand: the pending ``*`` rows (others repeat the same containers), by priority and size.

    ``label``: that of requests that name none.
    """
    found: dict[str, dict[tuple[int, Resources], int]] = {}
    for row in _unmet(requests):
        if row.is_constrained or row.is_opportunistic:
            continue
        if all(name in names for name in row.size.others):
            own = yarn.label_in(row.label)
            counts = found.setdefault(label if own is None else own, {})
            key = (row.priority, row.size.of(names))
            counts[key] = counts.get(key, 0) + row.count
    return {
        name: tuple(
            ContainerRequest(priority, size, count) for (priority, size), count in sorted(counts.items())
        )
        for name, counts in found.items()
    }


def _unmet(requests: Iterable[yarn.ResourceRequest]) -> list[yarn.ResourceRequest]:
    return [row for row in requests if row.location in (ANYWHERE, None) and row.count > 0]


def label_of(application: yarn.AppInfo, queue_label: str = "") -> str:
    """Return the label of requests that name none (before its master runs: the master's); "": the default."""
    own = yarn.label_in(application.label)
    if application.state == "ACCEPTED" and yarn.label_in(application.am_label) is not None:
        own = yarn.label_in(application.am_label)
    return queue_label if own is None else own


def queue_labels(tree: Iterable[Leaf]) -> dict[str, str]:
    """Return, by a queue's path, the label of its requests that name none, where it has one."""
    labels = ((leaf.path, yarn.label_in(leaf.queue.default_label)) for leaf in tree)
    return {path: label for path, label in labels if label}


def not_modelled(
    labels: Iterable[str],
    resources: Iterable[str],
    *,
    constrained: bool = False,
    opportunistic: bool = False,
) -> NotModelled | None:
    """Return the names of labels ("": none) and resources, at most ``NAMES_MAX`` each; None: nothing."""
    found = NotModelled(
        _shown_names(labels), _shown_names(resources), constrained=constrained, opportunistic=opportunistic
    )
    return None if found == NotModelled() else found


def _shown_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({shown_name(name) for name in names if name}))[:NAMES_MAX]


def shown_name(name: str) -> str:
    """Return the name of a label or a resource as it may be shown."""
    return re.sub(r"[^!-~]", "?", name[:NAME_LENGTH_MAX])


def merged(left: NotModelled | None, right: NotModelled | None) -> NotModelled | None:
    """Return the names of both."""
    if left is None or right is None:
        return left or right
    return not_modelled(
        (*left.labels, *right.labels),
        (*left.resources, *right.resources),
        constrained=left.constrained or right.constrained,
        opportunistic=left.opportunistic or right.opportunistic,
    )


class PendingSum(NamedTuple):
    """The pending sum of an application without a label, and by label (only those that are not 0)."""

    memory_mib: int
    vcores: int
    labelled: tuple[tuple[str, Resources], ...] = ()


def pending(application: yarn.AppInfo) -> PendingSum:
    """Return the pending sums: from ``uses`` if given, else from the asks."""
    sums: dict[str, Resources] = {}
    if application.uses is not None:
        sums = {row.partition: row.pending.resources for row in application.uses.partitions}
    else:
        for label, requests in asks(application.requests, label_of(application)).items():
            for ask in requests:
                sums[label] = plus(sums.get(label, NOTHING), times(ask.size, ask.count))
    labelled = sorted((label, sum_) for label, sum_ in sums.items() if label and sum_ > NOTHING)
    plain = sums.get("", NOTHING)
    return PendingSum(plain.memory_mib, plain.vcores, tuple(labelled))


def pending_elsewhere(application: yarn.AppInfo) -> NotModelled | None:
    """Return the resources of the pending sums that are not modelled; None: all are."""
    rows = () if application.uses is None else application.uses.partitions
    return not_modelled((), [name for row in rows for name in row.pending.others])


def used(application: yarn.AppInfo, label: str = "", names: Sequence[str] = ()) -> Resources:
    """Return an application's usage of the nodes with a label; its flat fields are sums over all."""
    if label:
        return NOTHING if application.uses is None else application.uses.of(label).used.of(names)
    total = Resources(max(0, application.allocated_mib), max(0, application.allocated_vcores))
    for row in application.uses.labelled if application.uses is not None else ():
        total = minus(total, row.used.resources)
    total = at_least(NOTHING, total)
    if not names or application.uses is None:
        return total
    return Resources(*total, *application.uses.of("").used.of(names)[2:])


def activated(application: yarn.AppInfo) -> bool:
    """Return whether the queue's AM limit lets its master be scheduled (only its diagnostics show it)."""
    return application.state != "ACCEPTED" or _WAITING_FOR_LIMIT not in application.diagnostics


def deadline_at_ms(application: yarn.AppInfo) -> int | None:
    """Return the deadline of the application's tags, as ``deadline_of`` does."""
    return deadline_of(application.tags) if application.tags else None


def deadline_of(tags: str) -> int | None:
    """Return the deadline from the tag ``deadline:<seconds since the epoch>`` (ms if 13 digits)."""
    return deadline_tag_ms(tags_in(tags))


def order(application: str) -> tuple[int, int, str]:
    """Return the sort key of an application id: application_9 comes before application_10."""
    parts = application.split("_")
    try:
        return int(parts[-2]), int(parts[-1]), application
    except (IndexError, ValueError):
        return 0, 0, application


def application_view(
    application: yarn.AppInfo,
    *,
    queue: str,
    rank: int,
    am_size: Resources,
    task_size: Resources,
    demand: Sequence[ContainerRequest] = (),
    why_not: EligibilityReason | None = None,
    names: Sequence[str] = (),
) -> ApplicationView:
    """Return one application as a record of deciding; a count of -1 (3.5.0, just accepted) means 0."""
    return ApplicationView(
        application=application.application,
        queue=queue,
        user=application.user,
        name=application.name[:NAME_MAX],
        submitted_at_ms=application.submitted_at_ms,
        rank=rank,
        containers=max(0, application.containers),
        used=used(application, names=names),
        am_size=am_size,
        task_size=task_size,
        requests=tuple(demand),
        activated=activated(application),
        runner=None if isinstance(why_not, MasterUnreachable) else why_not is None,
        why_not=why_not,
        priority=application.priority,
        deadline_at_ms=deadline_at_ms(application),
        progress_ratio=progress_ratio(application),
        left_alone=isinstance(why_not, LeftAlone),
    )


def progress_ratio(application: yarn.AppInfo) -> float:
    """Return the progress, 0 to 1."""
    return min(1.0, max(0.0, application.progress_percent / 100))


def kind_of(container: yarn.ContainerRow) -> TaskKind | None:
    """Return the kind of a MapReduce container by its priority; None for other frameworks."""
    if container.priority == AM_PRIORITY:
        return "am"
    if container.priority == REDUCE:
        return "reduce"
    return "map" if container.priority in (FAILED_MAP, *MAPS) else None


def by_partition(nodes: Iterable[yarn.NodeRow]) -> dict[str, list[yarn.NodeRow]]:
    """Return the nodes by label; "": those without one, always there."""
    rows = list(nodes)
    labelled = [node for node in rows if node.labels]
    found = {"": [node for node in rows if not node.labels] if labelled else rows}
    for node in labelled:
        found.setdefault(node.partition, []).append(node)
    return found


_CAPACITY = attrgetter("capacity")


def cluster_room(
    nodes: Sequence[yarn.NodeRow], names: Sequence[str] = ()
) -> tuple[Resources, Resources, Mapping[str, Resources]]:
    """Return the total over nodes of one partition, the largest node, and the free capacity by node.

    A node that is being decommissioned counts in the total (its containers run) but has no free capacity.
    """
    sizes = _sizes(nodes, names)
    largest = max(sizes, default=NOTHING)
    for size in sizes if names else ():  # the most of each: a node with GPUs may have less memory
        largest = at_least(largest, size)
    offering = [node for node in nodes if (names or node.available_mib > 0) and node.state == "RUNNING"]
    free = {node.node: node.free_of(names) for node in sorted(offering, key=attrgetter("node"))}
    if names:  # a node without free memory counts with its free GPUs once memory is freed there
        free = {node: size for node, size in free.items() if size[0] > 0 or any(size[2:])}
    return _sum_of(times(size, count) for size, count in sizes.items()), largest, free


def total_of(nodes: Iterable[yarn.NodeRow], names: Sequence[str] = ()) -> Resources:
    """Return the total over nodes."""
    return _sum_of(times(size, count) for size, count in _sizes(nodes, names).items())


def _sizes(nodes: Iterable[yarn.NodeRow], names: Sequence[str]) -> Counter[Resources]:
    sizes = Counter[Resources]()
    for capacity, alike in groupby(nodes, _CAPACITY):  # thousands of nodes have few sizes
        rows = list(alike)
        if capacity is not None and capacity.memory_mib > 0:
            sizes[rows[0].total_of(names)] += len(rows)
        else:
            sizes.update(node.total_of(names) for node in rows)
    return sizes


def node_totals(
    nodes: Iterable[yarn.NodeRow], largest_node: Resources, names: Sequence[str]
) -> dict[str, Resources]:
    """Return the sizes of the nodes that are not like the largest one."""
    sizes = ((node.node, node.total_of(names)) for node in nodes)
    return {node: size for node, size in sorted(sizes) if size != largest_node}


def names_hosts(application: yarn.AppInfo) -> bool:
    """Return whether a request of an application names a node: YARN may wait for that node."""
    return any(
        row.count > 0 and row.location not in (ANYWHERE, None) and not row.location.startswith("/")
        for row in application.requests
    )


def _sum_of(sizes: Iterable[Resources]) -> Resources:
    return Resources(*map(sum, zip_longest(*sizes, fillvalue=0))) if (sizes := list(sizes)) else NOTHING


def other_resources(nodes: Iterable[yarn.NodeRow]) -> tuple[str, ...]:
    """Return the names of the resources beside memory and vcores that nodes have, sorted."""
    return yarn.other_names(capacity for capacity, _ in groupby(nodes, _CAPACITY) if capacity is not None)


def reserved(application: yarn.AppInfo, label: str = "", names: Sequence[str] = ()) -> Resources:
    """Return what is reserved for an application on nodes with a label; its flat fields are sums."""
    if label:
        return NOTHING if application.uses is None else application.uses.of(label).reserved.of(names)
    total = Resources(max(0, application.reserved_mib), max(0, application.reserved_vcores))
    for row in application.uses.labelled if application.uses is not None else ():
        total = minus(total, row.reserved.resources)
    total = at_least(NOTHING, total)
    if not names or application.uses is None:
        return total
    return Resources(*total, *application.uses.of("").reserved.of(names)[2:])


def _walk(queue: yarn.QueueInfo, path: str) -> Iterator[tuple[str, yarn.QueueInfo]]:
    yield path, queue
    for child in queue.children:
        yield from _walk(child, f"{path}.{child.name}")


def _shares(
    queue: yarn.QueueInfo, total: Resources, label: str, names: Sequence[str]
) -> tuple[Resources, Resources]:
    """Return what a queue is guaranteed, and its maximum, of the nodes with a label."""
    share = queue.share_of(label) or yarn.PartitionShare()
    if label:
        return (
            _vector(share.guaranteed, None, share.guaranteed_percent, total, names),
            _vector(share.maximum, None, share.maximum_percent, total, names),
        )
    return (
        _vector(share.guaranteed, queue.guaranteed, queue.guaranteed_percent, total, names),
        _vector(share.maximum, queue.maximum, queue.maximum_percent, total, names),
    )


def _vector(
    of_partition: yarn.Vector | None,
    vector: yarn.Vector | None,
    percent: float,
    total: Resources,
    names: Sequence[str],
) -> Resources:
    """Return the partition's vector, 0 included; else the given one, or the share of the nodes."""
    if of_partition is None and vector is not None and vector.memory_mib > 0:
        of_partition = vector
    if of_partition is not None and (not names or bytes(of_partition.amounts)):
        return of_partition.of(names)
    of_total = Resources(*(int(part * percent / 100) for part in total))
    if of_partition is None:
        return of_total
    return Resources(*of_partition.resources, *of_total[2:])  # the others are not shown by name
