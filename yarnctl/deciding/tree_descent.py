"""One descent of the capacity scheduler: which request does the free capacity of one node go to?

Sources: docs/facts/hadoop.md, section 5, and the classes ``AbstractParentQueue``, ``AbstractLeafQueue``,
``RegularContainerAllocator`` and ``UsersManager`` of Hadoop 3.4.2. Vectors are compared by their shares of
the cluster, the larger one first (``DominantResourceCalculator``); only what is said to *fit* is compared
component by component.

* A queue's *limit* is what its parent has left beside it, in whole containers of the smallest size, or its
  own maximum if that is less. What the limit leaves is its *headroom*. Reserved counts as used.
* A queue at its limit is passed over, and nothing is kept from its siblings for it. One with reservations is
  entered if it would be below the limit without them. A leaf checks this before each application until one
  without a reservation has passed, idle applications included.
* An application with a user over the limit is passed over. One that is over it only with its own
  reservations may take a container only by giving one up.
* In every partition "without reservations" means without those on nodes without a label, for a parent in
  memory and vcores alone. So does "over the limit only with its own reservations", of what the user holds
  there: a user that holds little there is not passed over on nodes with a label.
* The leaf is left at the first request that does not fit in the headroom and the application's own
  reservations. That headroom is then kept from its siblings that come later, and so on upward.
* A request beyond the headroom gives up a reservation of its own that is large enough; if there is none the
  application is passed over. So does one that has as many reservations as containers requested.
* A request that fits on the node takes it. Another one reserves it, unless it would have to give up a
  reservation. A request that is larger than the node passes.
* In a shared partition's second descent (``shares_idle``) each queue's limit is its maximum alone.
* The container or reservation that was found must fit under the maximum of every queue above, and its user
  must not be over the limit. Otherwise the node grants nothing, in a shared partition to no other request.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fmod
from typing import NamedTuple, Protocol

from yarnctl.deciding.forecast import SimulatedRequest
from yarnctl.deciding.model import ApplicationView
from yarnctl.deciding.queue_node import QueueNode
from yarnctl.units import NOTHING, Resources, at_least, fits, minus, plus, shares


class TreeState(Protocol):
    """What a descent reads of the model of a tree (:class:`yarnctl.deciding.tree_model.QueueTreeModel`)."""

    root: QueueNode
    cluster_total: Resources
    shares_idle: bool

    @property
    def reserved(self) -> Mapping[str, Resources]:
        """What is reserved for each application."""

    def could_end(self, application: str) -> Resources:
        """Return what an application has reserved of the nodes without a label."""

    def could_end_below(self, queue: QueueNode) -> Resources:
        """Return the memory and vcores that are reserved below a parent, of the nodes without a label."""

    def over_limit(self, queue: QueueNode, application: ApplicationView) -> Resources | None:
        """Return how far a user is over the limit; None: also without the application's reservations."""

    def is_over_without(self, queue: QueueNode, application: ApplicationView, size: Resources) -> bool:
        """Return whether a user is over the limit with ``size`` less."""

    def only_reserving_before(self, queue: QueueNode, application: str) -> bool:
        """Return whether each application before one in its leaf has a reservation that it could end."""

    def may_have_more(self, request: SimulatedRequest) -> bool:
        """Return whether a request may hold another reservation."""

    def gives_up(self, request: SimulatedRequest, wanted_resources: Resources) -> bool:
        """Return whether a reservation of its own is large enough to be given up."""


class Taking(NamedTuple):
    """What a descent has found: a leaf's request, by its place in the leaf's line."""

    queue: QueueNode
    place: int
    request: SimulatedRequest
    reserves: bool = False
    gives_up: bool = False


class TreeDescent:
    """A descent with the state of a tree, for a node of a size with ``free`` capacity.

    ``rejected``: what was found and not accepted.
    """

    def __init__(self, tree: TreeState, free: Resources, node_size: Resources) -> None:
        self._tree = tree
        self._free = free
        self._node_size = node_size
        self._total = at_least(tree.cluster_total, Resources(1, 1))
        self._step = tree.root.smallest
        self.rejected: Taking | None = None

    def from_root(self) -> Taking | None:
        """Return what gets the free capacity; None: nothing does."""
        root = self._tree.root
        if not root.active or not fits(self._step, self._free) or min(self._free[:2]) <= 0:
            return None
        found = self._enter(root, root.maximum)[0]
        if found is None or self._is_accepted(found):
            return found
        self.rejected = found
        return None

    def _is_accepted(self, taking: Taking) -> bool:
        """Return whether a container or reservation fits under every maximum."""
        size = taking.request.size
        more = minus(size, size) if taking.gives_up else size
        if self._tree.is_over_without(taking.queue, taking.request.application, minus(size, more)):
            return False
        return all(fits(plus(each.used, more), each.maximum) for each in taking.queue.chain)

    def is_less(self, left: Resources, right: Resources) -> bool:
        """Return whether a vector has the smaller shares of the cluster."""
        return shares(left, self._total) < shares(right, self._total)

    def _enter(self, queue: QueueNode, limit_resources: Resources) -> tuple[Taking | None, Resources | None]:
        """Return what a queue takes, or what it keeps from its later siblings (None: it was not left)."""
        if self._tree.shares_idle or not self.is_less(limit_resources, queue.maximum):
            limit_resources = queue.maximum
        if queue.model is not None:
            return self._leaf(queue, limit_resources)
        if not self._is_below(queue.used, limit_resources, self._tree.could_end_below(queue)):
            return None, None
        kept: Resources | None = None
        for child in queue.in_order():
            left = minus(plus(limit_resources, child.used), queue.used)
            found, more = self._enter(child, self._rounded_down(left if kept is None else minus(left, kept)))
            if found is not None:
                return found, None
            if more is not None:
                kept = plus(kept or NOTHING, more if self.is_less(NOTHING, more) else NOTHING)
        return None, kept

    def _is_below(self, used: Resources, limit_resources: Resources, reserved_resources: Resources) -> bool:
        """Return whether a queue is below its limit, if need be without what is reserved."""
        if self.is_less(used, limit_resources):
            return True
        left = minus(used, reserved_resources)
        return reserved_resources != NOTHING and self.is_less(left, limit_resources)

    def _leaf(self, queue: QueueNode, limit_resources: Resources) -> tuple[Taking | None, Resources | None]:
        tree, model = self._tree, queue.model
        assert model is not None
        is_full = not self.is_less(queue.used, limit_resources)
        headroom = minus(limit_resources, queue.used)
        line, name = model.waiting(), ""
        for place in range(model.head, len(line)):
            request = line[place]
            if request.application.application == name:
                continue
            name = request.application.application
            if is_full and not self._is_below(queue.used, limit_resources, tree.could_end(name)):
                return None, None
            if is_full and not tree.only_reserving_before(queue, name):
                return None, None
            over = tree.over_limit(queue, request.application)
            if over is None:
                continue
            if not fits(request.size, plus(headroom, tree.reserved.get(name, NOTHING))):
                return None, headroom
            found = self._offer(queue, place, request, minus(request.size, headroom), over)
            if found is not None:
                return found, None
        return None, None

    def _offer(
        self,
        queue: QueueNode,
        place: int,
        request: SimulatedRequest,
        beyond_resources: Resources,
        over_resources: Resources,
    ) -> Taking | None:
        """Return what a request does with the node; None: the application is passed over.

        ``beyond_resources``: its size less the headroom; ``over_resources``: the user's, over the limit.
        """
        tree, size = self._tree, request.size
        if not fits(size, self._node_size):
            return None
        is_over = self.is_less(beyond_resources, over_resources)
        lacking = over_resources if is_over else beyond_resources
        gives_up = max(lacking) > 0
        may_have_more = tree.may_have_more(request)
        if not fits(size, self._free):
            if may_have_more and not gives_up:
                return Taking(queue, place, request, reserves=True)
            return None
        if may_have_more and not gives_up:
            return Taking(queue, place, request)
        if tree.gives_up(request, lacking if gives_up else size):
            return Taking(queue, place, request, gives_up=True)
        return None

    def _rounded_down(self, size: Resources) -> Resources:
        """Return a vector in whole steps of the smallest container, towards zero, as Java divides."""
        steps = (*self._step, *(0,) * (len(size) - len(self._step)))
        return Resources(
            *(part - int(fmod(part, step)) if step else part for part, step in zip(size, steps, strict=True))
        )
