"""Partitions: YARN schedules the nodes of each label apart, so each is decided on as a cluster of its own.

* A snapshot is that of the nodes without a label; ``labelled`` has one of the same kind for each label.
* A container counts in the partition of its node, whatever its request: victims, orders and expected capacity
  are those of the partition's nodes.
* Idle nodes of a label that is not exclusive may serve requests without a label. What they have free after
  the requests for the label counts for these, so that nothing is preempted for them; capacity that is freed
  there does not, because YARN serves requests for the label first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from yarnctl.deciding.forecast import FreeCapacity, QueueModel
from yarnctl.deciding.model import ApplicationView, ContainerRequest, Snapshot

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
    """Return the partition of a label, with what holds for the whole cluster."""
    part = snapshot.labelled[label]
    names = snapshot.resource_names
    return msgspec.structs.replace(
        part, aside=snapshot.aside, held_back=snapshot.held_back, resource_names=names
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


def place_on_shared(
    queues: Mapping[str, QueueModel], free: FreeCapacity, is_requester: Callable[[ApplicationView], bool]
) -> dict[str, int]:
    """Give idle capacity of shared nodes to requests without a label; return placed per application.

    Requesters come first: at worst the next snapshot shows that YARN has served others.
    """
    placed: dict[str, int] = {}
    waits = {path: queue.waiting()[queue.head :] for path, queue in queues.items() if queue.pending}
    for first in (True, False):
        for requests in waits.values():
            for place, request in enumerate(requests):
                name, count = request.application.application, 0
                while (
                    is_requester(request.application) is first
                    and count < request.containers
                    and free.place(request.size)
                ):
                    count += 1
                if count:
                    placed[name] = placed.get(name, 0) + count
                    requests[place] = request._replace(containers=request.containers - count)
    for path, requests in waits.items():
        queues[path].leave([request for request in requests if request.containers > 0])
    return placed
