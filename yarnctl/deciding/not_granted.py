"""When a request that fits counts as not granted: it then takes no free capacity in the forecast.

A node gets one container for each heartbeat (facts, section 5), so "fits, not granted yet" is usual. Until
the conclusion pass ceil(containers that fit / nodes with free capacity) heartbeats and ``MORE_HEARTBEATS``,
counted from the first look in which the request fits, and anew after each container that the application
receives. A request that names hosts waits for them first (``Snapshot.located``).

* What is concluded fits nowhere: others get the free capacity, and one container is ordered for it.
* If the container of an order does not reach it, no other is ordered.
* Evidence ends both: a container that the application receives, or a request of another priority or size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yarnctl.deciding.inputs import Fitting
from yarnctl.deciding.model import ApplicationView, Snapshot
from yarnctl.deciding.partitions import merged
from yarnctl.units import Resources, fits

MORE_HEARTBEATS = 2
LOCALITY_DELAY = 40
"""node-locality-delay; the scheduler caps it by the number of nodes."""
IN_VAIN = ("misdirected", "unclaimed")
"""Events of a freed container that its requester did not receive."""


def heartbeats_until_granted(fitting: int, nodes: int, located: int = 0) -> int:
    """Return the heartbeats until a request that fits counts as not granted.

    ``fitting``: containers that fit into the free capacity of ``nodes`` nodes, of all applications.
    ``located``: heartbeats that the application waits for its hosts first.
    """
    return -(-fitting // max(1, nodes)) + MORE_HEARTBEATS + located


def heartbeats_for_hosts(containers: int, live_nodes: int) -> int:
    """Return the heartbeats that requests which name hosts wait for them.

    For the rack at most ``LOCALITY_DELAY`` nodes' heartbeats, for any other node as many as containers are
    requested, each counted once per node and round (``RegularContainerAllocator``).
    """
    rounds = max(1, live_nodes)
    return -(-min(LOCALITY_DELAY, rounds) // rounds) + -(-containers // rounds)


class NotGrantedRequests:
    """Keeps since when the requests of each application fit. ``rows``: its state."""

    def __init__(self) -> None:
        self.rows: dict[str, Fitting] = {}

    def concluded(self) -> dict[str, bool]:
        """Return the applications whose requests are not granted; True: an order was in vain."""
        return {name: row.in_vain for name, row in self.rows.items() if row.requested}

    def look(self, snapshot: Snapshot, as_of_ms: int) -> None:
        """Forget what new evidence contradicts, and conclude what is due."""
        if not self.rows:
            return
        views = {view.application: view for view in snapshot.applications if view.application in self.rows}
        self.rows = {
            name: _looked_at(row, views[name], as_of_ms)
            for name, row in self.rows.items()
            if name in views and not _is_contradicted(row, views[name], as_of_ms)
        }

    def note(self, granted: Mapping[str, int], snapshot: Snapshot, as_of_ms: int) -> None:
        """Begin to wait for what would be granted; forget what fits no more.

        ``granted``: application -> containers that fit into free capacity.
        """
        if not snapshot.heartbeat_ms:
            return  # a wait cannot be judged
        fitting, parts = sum(granted.values()), (snapshot, *snapshot.labelled.values())
        rows = {name: row for name, row in self.rows.items() if row.requested}
        for view in merged(snapshot).applications if granted else ():
            name = view.application
            if not granted.get(name) or name in rows or view.predicted:
                continue
            if any(name in part.reserved for part in parts):
                continue  # YARN serves the reservation first
            before = self.rows.get(name)
            if before is None or fitting > before.fitting:
                beats = heartbeats_until_granted(fitting, _nodes(view, parts), snapshot.located.get(name, 0))
                within_ms = beats * snapshot.heartbeat_ms
                before = Fitting(as_of_ms, within_ms, view.containers, fitting)
            rows[name] = before
        self.rows = rows

    def note_in_vain(self, requester: str) -> None:
        """Note that the container of an order did not reach its requester."""
        if requester in self.rows:
            self.rows[requester] = self.rows[requester]._replace(in_vain=True)


def _is_contradicted(fitting: Fitting, view: ApplicationView, as_of_ms: int) -> bool:
    if not view.requests or view.predicted or view.containers > fitting.containers:
        return True
    if as_of_ms < fitting.since_ms:
        return True  # the clock was set back
    return bool(fitting.requested) and not set(_kinds(view)) <= set(fitting.requested)


def _looked_at(fitting: Fitting, view: ApplicationView, as_of_ms: int) -> Fitting:
    fitting = fitting._replace(containers=view.containers)
    if fitting.requested or as_of_ms - fitting.since_ms < fitting.within_ms:
        return fitting
    return fitting._replace(requested=_kinds(view))


def _kinds(view: ApplicationView) -> tuple[tuple[int, Resources], ...]:
    return tuple((request.priority, request.size) for request in view.requests)


def _nodes(view: ApplicationView, parts: Iterable[Snapshot]) -> int:
    """Return how many nodes have free capacity for one of an application's requests."""
    sizes = {request.size for request in view.requests}
    rooms = (room for part in parts for room in part.free_by_node.values())
    return sum(any(fits(size, room) for size in sizes) for room in rooms)
