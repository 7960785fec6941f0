"""Partitions: YARN schedules the nodes of each label apart, so each is decided on as a cluster of its own.

* A snapshot is that of the nodes without a label; ``labelled`` has one of the same kind for each label.
* A container counts in the partition of its node, whatever its request: victims, orders and expected capacity
  are those of the partition's nodes.
* Idle nodes of a label that is not exclusive may serve requests without a label. What they have free after
  the requests for the label counts for these, so that nothing is preempted for them; capacity that is freed
  there does not, because YARN serves requests for the label first.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from yarnctl.deciding.model import ContainerRequest, Snapshot
from yarnctl.units import NOTHING, plus

HasNode = Callable[[str], bool]
"""Returns whether a node is in a partition."""


def every_node(_node: str) -> bool:
    """Return True: the cluster has no label."""
    return True


def has_node(snapshot: Snapshot, label: str) -> HasNode:
    """Return which nodes are in the partition of a label ("": those of no label)."""
    if label:
        return frozenset(snapshot.labelled[label].nodes).__contains__
    elsewhere = frozenset(node for part in snapshot.labelled.values() for node in part.nodes)
    return (lambda node: node not in elsewhere) if elsewhere else every_node


def part_of(snapshot: Snapshot, label: str) -> Snapshot:
    """Return the partition of a label ("": of none), with what holds for the whole cluster.

    The limits of users that a ResourceManager shows are left out, for each may be that of any partition.
    """
    if not snapshot.labelled:
        return snapshot
    part = snapshot.labelled[label] if label else snapshot
    total, active, elsewhere_mib = snapshot.total, dict[str, frozenset[str]](), dict[str, int]()
    for other in snapshot.labelled.values():
        total = plus(total, other.total)
    for other in (snapshot, *snapshot.labelled.values()):
        for view in other.applications if other is not part else ():
            if view.used.memory_mib:
                before_mib = elsewhere_mib.get(view.application, 0)
                elsewhere_mib[view.application] = before_mib + view.used.memory_mib
            if view.requests and view.activated:
                active[view.queue] = active.get(view.queue, frozenset()) | {view.user}
    for view in snapshot.applications:
        if view.application in snapshot.left_out and view.activated:
            active[view.queue] = active.get(view.queue, frozenset()) | {view.user}
    return msgspec.structs.replace(
        part,
        aside=snapshot.aside,
        held_back=snapshot.held_back,
        resource_names=snapshot.resource_names,
        smallest=snapshot.smallest if part.parents else NOTHING,
        user_percents=snapshot.user_percents if part.parents else {},
        cluster_total=total,
        active_elsewhere=active,
        elsewhere_mib=elsewhere_mib,
        user_limits={} if part.parents else part.user_limits,
        unlabelled=msgspec.structs.replace(snapshot, labelled={}) if label else None,
    )


def merged(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot whose applications have their requests for every label, without ``labelled``."""
    if not snapshot.labelled:
        return snapshot
    more: dict[str, tuple[ContainerRequest, ...]] = {}
    for part in snapshot.labelled.values():
        for view in part.applications:
            if view.requests:
                more[view.application] = (*more.get(view.application, ()), *view.requests)
    applications = tuple(
        msgspec.structs.replace(view, requests=(*view.requests, *more[view.application]))
        if view.application in more
        else view
        for view in snapshot.applications
    )
    return msgspec.structs.replace(snapshot, applications=applications, labelled={})
