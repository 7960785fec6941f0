"""What counts of the nodes and requests without a label when YARN serves nodes with one.

Source: docs/facts/hadoop.md, section 5 (``AbstractLeafQueue.canAssignToUser``, ``AbstractParentQueue``): YARN
reads an application's reservations, those below a parent and, of a user over the limit, what the user holds
from the partition without a label, whichever partition the node is in. A reservation for a request without a
label, on a node of a shared partition, is filled first (``CapacityScheduler.allocateFromReservedContainer``).
"""

from __future__ import annotations

from yarnctl.deciding.forecast import SimulatedRequest
from yarnctl.deciding.model import Snapshot
from yarnctl.units import NOTHING, Resources, plus


class UnlabelledUse:
    """What is reserved, held and requested of the nodes without a label, by a snapshot of them.

    ``reserved``: application -> reserved for it. ``below``: queue -> reserved in it and below it.
    ``filled``: (application, priority, size) -> containers that have filled reservations on nodes with the
    label.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.reserved = snapshot.reserved
        self.below: dict[str, Resources] = {}
        self._applications = snapshot.applications
        self.filled: dict[tuple[str, int, Resources], int] = {}
        self._held: dict[tuple[str, str], Resources] = {}
        for view in snapshot.applications:
            mine = self.reserved.get(view.application, NOTHING)
            held = self._held.get((view.queue, view.user), NOTHING)
            self._held[view.queue, view.user] = plus(held, plus(view.used, mine))
            queue = view.queue if mine != NOTHING else ""
            while queue:
                self.below[queue] = plus(self.below.get(queue, NOTHING), mine)
                queue = queue.rpartition(".")[0]

    def held(self, queue: str, user: str) -> Resources:
        """Return what a user has in a leaf, with its reservations."""
        return self._held.get((queue, user), NOTHING)

    def request(self, application: str, priority: int | None) -> SimulatedRequest | None:
        """Return what is pending of an application's request without a label, of a priority that is known."""
        for view in self._applications:
            for request in view.requests if view.application == application else ():
                left = request.count - self.filled.get((application, request.priority, request.size), 0)
                if request.priority == priority and left > 0:
                    return SimulatedRequest(view, request.size, left, request.priority)
        return None
