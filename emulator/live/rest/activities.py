"""What a node's heartbeat looked at: GET /scheduler/activities?nodeId= (facts, section 5.1; shape of 3.4.2).

As in YARN, a request has the node's next heartbeat recorded and is answered the last record. The record is
made when it is read, from the state of the scheduler after that heartbeat. A node without free room says so
at root, and nothing of queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from emulator.cluster.entities import Application, Ask, LeafQueue, Node, NodeReservation
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.queues.tree_queue import TreeQueue
from emulator.live.manager.service import LiveResourceManager
from emulator.live.manager.state import NodeRecord
from yarnctl.units import Resources

FULL = "Initial check: node resource is insufficient for minimum allocation"
NO_DEMAND = "Queue does not need more resource"
AT_MAXIMUM = "Queue hits max-capacity limit"
NO_HEADROOM = "Queue does not have enough headroom for inner highest-priority request from "
USER_AT_LIMIT = "Queue hits user max-capacity limit"


class Activities:
    """The records of the nodes of one ResourceManager."""

    def __init__(self, manager: LiveResourceManager) -> None:
        self._manager = manager
        self._armed: dict[str, int] = {}

    def answer(self, name: str) -> dict[str, Any]:
        """Return the last record of a node, and have its next heartbeat recorded."""
        found: dict[str, Any] = {"nodeId": name, "diagnostic": "waiting for next allocation"}
        node = self._manager.nodes.get(name)
        if node is None:
            return found
        armed_ms = self._armed.setdefault(name, node.heartbeat_at_ms)
        if node.heartbeat_at_ms == armed_ms:
            return found
        return {
            "nodeId": name,
            "timestamp": self._manager.driver.wall_of(node.heartbeat_at_ms),
            "allocations": [self._allocation(node)],
        }

    def _allocation(self, node: NodeRecord) -> dict[str, Any]:
        actor = node.actor
        reservation = actor.reserved
        if isinstance(reservation, NodeReservation):
            root = self._reserved(actor, reservation)
            return {"partition": "", "finalAllocationState": "RESERVED", "root": root}
        if actor.free_mib <= 0 or actor.free_vcores <= 0:
            root = {"name": "root", "allocationState": "REJECTED", "diagnostic": FULL}
        else:
            root = self._queues(actor)
        return {"partition": "", "finalAllocationState": "SKIPPED", "root": root}

    @property
    def _types(self) -> Sequence[str]:
        return self._manager.actor.scheduler.types

    def _id(self, app: Application) -> str:
        return self._manager.register.of(app).id

    def _reserved(self, node: Node, reservation: NodeReservation) -> dict[str, Any]:
        """Return the way to the request that holds a node."""
        app, ask = reservation
        element = {
            **_application(app, self._id(app), "RE_RESERVED"),
            "children": [_request(node, ask, self._types, "RE_RESERVED")],
        }
        path = f"root.{app.queue.name}"
        while path:
            element = {"name": path, "allocationState": "RE_RESERVED", "children": [element]}
            path = path.rpartition(".")[0]
        return element

    def _queues(self, node: Node) -> dict[str, Any]:
        scheduler = self._manager.actor.scheduler
        if isinstance(scheduler, TreeScheduler):
            return self._branch(scheduler, scheduler.root, node)
        rows = [self._leaf(leaf, f"root.{leaf.name}", node) for leaf in scheduler.queues.values()]
        return {"name": "root", "allocationState": "SKIPPED", "children": rows}

    def _branch(self, scheduler: TreeScheduler, queue: TreeQueue, node: Node) -> dict[str, Any]:
        if queue.leaf is not None:
            return self._leaf(queue.leaf, queue.path, node, queue, scheduler)
        if not queue.demanding and not _is_waited_in(scheduler, queue):
            return {"name": queue.path, "allocationState": "SKIPPED", "diagnostic": NO_DEMAND}
        if not queue.has_room(1, 1):
            return {"name": queue.path, "allocationState": "REJECTED", "diagnostic": AT_MAXIMUM}
        below = [each for each in scheduler.nodes.values() if each.above is queue]
        rows = [self._branch(scheduler, each, node) for each in below]
        return {"name": queue.path, "allocationState": "SKIPPED", "children": rows}

    def _leaf(
        self,
        leaf: LeafQueue,
        path: str,
        node: Node,
        queue: TreeQueue | None = None,
        scheduler: TreeScheduler | None = None,
    ) -> dict[str, Any]:
        if not leaf.demand and not leaf.waiting:
            return {"name": path, "allocationState": "SKIPPED", "diagnostic": NO_DEMAND}
        room = Resources(leaf.maximum_mib - leaf.used_mib, leaf.maximum_vcores - leaf.used_vcores)
        if min(room) <= 0 or (queue is not None and not queue.has_room(1, 1)):
            return {"name": path, "allocationState": "REJECTED", "diagnostic": AT_MAXIMUM}
        rows: list[dict[str, Any]] = []
        for app in leaf.demand:
            name = self._id(app)
            if leaf.user_mib is not None and leaf.users.get(app.user, 0) > leaf.user_mib:
                rows.append({**_application(app, name), "diagnostic": USER_AT_LIMIT})
                continue
            ask = app.first_ask(node.label)
            if ask is None:
                continue
            if scheduler is not None and not scheduler.within_headroom(app, ask):
                said = NO_HEADROOM + name
                rows.append(_application(app, name, "REJECTED"))
                return {"name": path, "allocationState": "SKIPPED", "diagnostic": said, "children": rows}
            rows.append({**_application(app, name), "children": [_request(node, ask, self._types)]})
        return {"name": path, "allocationState": "SKIPPED", "children": rows}


def _is_waited_in(scheduler: TreeScheduler, queue: TreeQueue) -> bool:
    """Return whether an application below a queue waits for its activation: that is demand, too."""
    return any(
        each.leaf.waiting
        for each in scheduler.nodes.values()
        if each.leaf is not None and (each is queue or queue in each.chain)
    )


def _application(app: Application, name: str, state: str = "SKIPPED") -> dict[str, Any]:
    """Return an application's element; its priority is what the scheduler grants by, not what /apps shows."""
    return {"name": name, "appPriority": app.priority, "allocationState": state}


def _request(node: Node, ask: Ask, types: Sequence[str], state: str = "SKIPPED") -> dict[str, Any]:
    """Return a request, with the node below it if it does not fit there."""
    wanted, free = Resources(ask.memory_mib, ask.vcores, *ask.others[2:]), node.free_others[2:]
    rows = zip_longest(wanted, (node.free_mib, node.free_vcores, *free), fillvalue=0)
    names = ("memory-mb", "vcores", *types)
    short = [name for name, (want, have) in zip(names, rows, strict=False) if want > have]
    element: dict[str, Any] = {
        "name": f"request_{ask.priority}_-1", "requestPriority": ask.priority, "allocationState": state,
    }  # fmt: skip
    if short:
        said = (
            f"Node does not have sufficient resource for request, insufficient resources=[{', '.join(short)}]"
            f" required=<memory:{ask.memory_mib}, vCores:{ask.vcores}>"
            f" available=<memory:{node.free_mib}, vCores:{node.true_free_vcores}>"
        )
        element["children"] = [{"name": node.name, "allocationState": state, "diagnostic": said}]
    return element
