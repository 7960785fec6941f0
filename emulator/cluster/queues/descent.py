"""One descent of the capacity scheduler: which request does the free capacity of a node go to?

Sources: docs/facts/hadoop.md, section 5, and the classes ``AbstractParentQueue``, ``AbstractLeafQueue``,
``RegularContainerAllocator`` and ``UsersManager`` of Hadoop 3.4.2. Vectors are compared by their shares of
the cluster, the larger one first (``DominantResourceCalculator``); only what is said to *fit* is compared
component by component.

* A queue's *limit* is what its parent has left beside it, in whole containers of the smallest size, or its
  own maximum if that is less. What the limit leaves is its *headroom*. Reserved counts as used.
* A queue at its limit is passed over, and nothing is kept from its siblings for it. One with reservations is
  entered if it would be below the limit without them. A leaf checks this before each application until one
  without a reservation has passed, idle applications included.
* An application whose user is over the limit is passed over. One that is over it only with its own
  reservations may take a container only by giving one up.
* The leaf is left at the first request that does not fit in the headroom and the application's own
  reservations. That headroom is then kept from its siblings that come later, and so on upward.
* In every partition "without reservations" means without those on nodes without a label, for a parent in
  memory and vcores alone. So does "over the limit only with its own reservations", of what the user holds
  there: a user that holds little there is not passed over on nodes with a label.
* A request beyond the headroom gives up a reservation of its own that is large enough; if there is none the
  application is passed over. So does one that has as many reservations as containers requested.
* A request that fits on the node takes it. Another one reserves it, unless it would have to give up a
  reservation.
* The container or reservation that was found must fit under the maximum of every queue above, and its user
  must not be over the limit; otherwise the heartbeat grants nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from emulator.cluster.entities import Application, Ask, Node, NodeReservation
from emulator.cluster.queues.tree_queue import TreeQueue
from emulator.cluster.queues.user_shares import shares
from yarnctl.units import NOTHING, Resources, fits, minus, plus


class Proposal(NamedTuple):
    """What a descent has found. ``given_up``: the node of a reservation that the container replaces."""

    queue: TreeQueue
    app: Application
    ask: Ask
    reserves: bool = False
    given_up: Node | None = None


class Outcome(NamedTuple):
    """``kept``: what a queue without a proposal keeps from its later siblings (None: it was not left)."""

    proposal: Proposal | None = None
    kept: Resources | None = None


PASSED = Outcome()


class Descent:
    """A descent for one node. ``kept``: the nodes reserved for each application.

    ``may_have_more``: whether a request may hold another reservation. ``missed``: counts a turn of a request
    without a label, and returns whether idle nodes of a shared partition may serve it. ``total``: of the
    nodes of all partitions. ``is_rejected``: something was found that was not accepted.
    """

    shares_idle = False

    def __init__(
        self,
        node: Node,
        total: Resources,
        kept: dict[Application, list[Node]],
        may_have_more: Callable[[Application, Ask], bool],
        missed: Callable[[Ask], bool],
    ) -> None:
        self._node = node
        self._free = node.free
        self._total = total
        self._kept = kept
        self._may_have_more = may_have_more
        self._missed = missed
        self.is_rejected = False

    def from_root(self, root_queue: TreeQueue) -> Proposal | None:
        """Return what gets the node's free capacity; None: nothing."""
        if not fits(root_queue.smallest, self._free):
            return None
        found = self._enter(root_queue, root_queue.all_maximum).proposal
        if found is None:
            return None
        if not self._node.label:
            found.ask.missed = 0  # before it is checked, and for a reservation too
        self.is_rejected = not self._is_accepted(found)
        return None if self.is_rejected else found

    def is_less(self, left: Resources, right: Resources) -> bool:
        """Return whether a vector has the smaller shares of the cluster."""
        return shares(left, self._total) < shares(right, self._total)

    def _limit(self, queue: TreeQueue, limit_resources: Resources) -> Resources:
        """Return the limit of a queue; ``limit_resources``: what its parent has left beside it."""
        maximum = queue.all_maximum
        return limit_resources if self.is_less(limit_resources, maximum) else maximum

    def _children(self, queue: TreeQueue) -> list[TreeQueue]:
        """Return the children with demand."""
        return queue.demanding

    def _first_ask(self, app: Application, queue: TreeQueue) -> Ask | None:
        return app.first_ask(queue.label)

    def _maximum(self, queue: TreeQueue) -> Resources:
        """Return up to what the queue may use, as a container that was found is checked."""
        return queue.all_maximum

    def _enter(self, queue: TreeQueue, limit_resources: Resources) -> Outcome:
        limit = self._limit(queue, limit_resources)
        if queue.leaf is not None:
            return self._leaf(queue, limit)
        used = queue.used
        if not self._is_below(used, limit, Resources(*queue.unlabelled.reserved[:2])):
            return PASSED
        kept: Resources | None = None
        children = self._children(queue)
        for child in sorted(children, key=TreeQueue.place) if len(children) > 1 else children[:]:
            left = minus(plus(minus(limit, kept or NOTHING), child.used), used)
            found = self._enter(child, rounded_down(left, queue.smallest))
            if found.proposal is not None:
                return found
            if found.kept is not None:
                more = found.kept if self.is_less(NOTHING, found.kept) else NOTHING
                kept = plus(kept or NOTHING, more)
        return Outcome(kept=kept)

    def _is_below(self, used: Resources, limit_resources: Resources, reserved_resources: Resources) -> bool:
        """Return whether a queue is below its limit, if need be without what is reserved."""
        if self.is_less(used, limit_resources):
            return True
        left = minus(used, reserved_resources)
        return reserved_resources != NOTHING and self.is_less(left, limit_resources)

    def _leaf(self, queue: TreeQueue, limit_resources: Resources) -> Outcome:
        assert queue.leaf is not None
        headroom = minus(limit_resources, queue.used)
        user_limit = queue.user_limit(shares_idle=self.shares_idle)
        is_checked = False
        active = queue.leaf.active
        for app in sorted(active, key=queue.serving_key) if queue.fair else active:
            unlabelled_resources = self._reserved_for(app, queue.unlabelled)
            if not is_checked:
                if not self._is_below(queue.used, limit_resources, unlabelled_resources):
                    return PASSED
                is_checked = unlabelled_resources == NOTHING
            over = NOTHING
            if user_limit is not None:
                held = queue.held_by(app.user)
                if self.is_less(user_limit, held):
                    unlabelled_held = queue.unlabelled.held_by(app.user)
                    if self.is_less(user_limit, minus(unlabelled_held, unlabelled_resources)):
                        continue
                    over = minus(held, user_limit)
            ask = self._first_ask(app, queue)
            if ask is None:
                continue
            size = ask.size
            if not fits(size, plus(headroom, self._reserved_for(app, queue))):
                return Outcome(kept=headroom)
            if self._node.name in app.blacklist:
                continue
            if not ask.label and not self._missed(ask) and self.shares_idle:
                continue
            found = self._offer(queue, app, ask, minus(size, headroom), over)
            if found is not None:
                return Outcome(found)
        return PASSED

    def _offer(
        self,
        queue: TreeQueue,
        app: Application,
        ask: Ask,
        beyond_resources: Resources,
        over_resources: Resources,
    ) -> Proposal | None:
        """Return what a request does with the node; None: the application is passed over.

        ``beyond_resources``: its size less the headroom; ``over_resources``: the user's, over the limit.
        """
        size = ask.size
        if not fits(size, self._node.total):
            return None
        is_over = self.is_less(beyond_resources, over_resources)
        lacking = over_resources if is_over else beyond_resources
        gives_up = max(lacking) > 0
        may_have_more = self._may_have_more(app, ask)
        if not fits(size, self._free):
            return Proposal(queue, app, ask, reserves=True) if may_have_more and not gives_up else None
        if may_have_more and not gives_up:
            return Proposal(queue, app, ask)
        wanted = lacking if gives_up else size
        for node in self._kept.get(app, ()):
            reservation = node.reserved
            assert isinstance(reservation, NodeReservation)
            if reservation.ask is ask and fits(wanted, size):
                return Proposal(queue, app, ask, given_up=node)
        return None

    def _reserved_for(self, app: Application, queue: TreeQueue) -> Resources:
        found = NOTHING
        for node in self._kept.get(app, ()):
            reservation = node.reserved
            assert isinstance(reservation, NodeReservation)
            if node.label == queue.label:
                found = plus(found, reservation.ask.size)
        return found

    def _is_accepted(self, proposal: Proposal) -> bool:
        queue, ask = proposal.queue, proposal.ask
        given_up = NOTHING if proposal.given_up is None else ask.size
        limit, held = queue.user_limit(shares_idle=self.shares_idle), queue.held_by(proposal.app.user)
        if limit is not None and self.is_less(limit, minus(held, given_up)):
            return False
        more = minus(ask.size, given_up)
        return all(fits(plus(each.used, more), self._maximum(each)) for each in queue.chain)


class IdleDescent(Descent):
    """A descent for a node of a shared partition that looks at requests without a label.

    The limit of every queue is all of the partition, and so is the highest limit of a user.
    """

    shares_idle = True

    def _limit(self, queue: TreeQueue, limit_resources: Resources) -> Resources:
        return self._maximum(queue)

    def _children(self, queue: TreeQueue) -> list[TreeQueue]:
        return [child for child in queue.below if self._wants(child)]

    def _wants(self, queue: TreeQueue) -> bool:
        if queue.leaf is not None:
            return any(self._first_ask(app, queue) is not None for app in queue.leaf.demand)
        return any(map(self._wants, queue.below))

    def _first_ask(self, app: Application, queue: TreeQueue) -> Ask | None:
        """Return the first request without a label; a master never goes to such a node."""
        ask = app.first_ask("")
        return ask if ask is not None and ask.priority else None

    def _maximum(self, queue: TreeQueue) -> Resources:
        return queue.chain[-1].all_maximum


def rounded_down(size: Resources, step_resources: Resources) -> Resources:
    """Return a vector in whole steps; towards zero, as a division of Java."""
    steps = (*step_resources, *[0] * (len(size) - len(step_resources)))
    return Resources(
        *(
            part if not step else (part // step if part >= 0 else -(-part // step)) * step
            for part, step in zip(size, steps, strict=True)
        )
    )
