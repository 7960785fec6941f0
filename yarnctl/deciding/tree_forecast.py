"""The scheduler simulation in a tree of queues: whose containers help a requester, and how many.

A victim's container is subtracted from its leaf and all ancestors; it helps only if the descent of
:mod:`yarnctl.deciding.tree_model` then comes to the requester. The victim's task requests a container again
at once, as in :mod:`yarnctl.deciding.forecast`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from yarnctl.deciding.forecast import FreeCapacity, Servable, SimulatedRequest, below_guarantee, serving_key
from yarnctl.deciding.model import ApplicationView
from yarnctl.deciding.reasons import demand
from yarnctl.deciding.tree_model import NO_USERS, QueueNode, QueueTreeModel
from yarnctl.units import NOTHING, Resources, at_least, fits, minus, plus, times


class Helped(NamedTuple):
    """``victims``: the queues of which a container helps.

    ``beside``: the most that may count of what is free on a node beside freed containers (None: all).
    """

    victims: tuple[str, ...]
    beside: Resources | None = None


EVERY_VICTIM = Helped(())
"""In a flat tree it does not matter which queue a container is taken from."""


class TreeSimulation:
    """Continue as if containers became free, as :class:`yarnctl.deciding.forecast.SchedulerSimulation`.

    For each container of a requester the victims are tried, first the one that is furthest over its
    guarantee.
    ``helped``: of each admitted application, which queues' containers help it. ``relieved``: as there.
    """

    def __init__(
        self,
        tree: QueueTreeModel,
        victims: Sequence[str],
        is_requester: Callable[[ApplicationView], bool],
        allowance: Mapping[str, int],
        free: FreeCapacity,
        relieved: Mapping[str, None] | None = None,
    ) -> None:
        self.tree = tree
        self.free = free
        self.is_requester = is_requester
        self.left = dict(allowance)
        self.relieved = relieved
        self.admitted: dict[str, Servable] = {}
        self.refused: dict[str, demand.TriggerReason] = {}
        self.helped: dict[str, Helped] = {}
        self._victims = [tree.leaves[name] for name in victims if name in tree.leaves]
        self._helping: dict[str, list[QueueNode]] = {}
        self._evicted: dict[str, Resources] = {}
        self._requesting = {
            path: leaf
            for path, leaf in tree.leaves.items()
            if leaf.model is not None and any(is_requester(each.application) for each in leaf.model.waiting())
        }
        for victim in self._victims:
            tree.open(victim)
        while (leaf := self._first_requester()) is not None:
            self._serve(leaf)

    def _first_requester(self) -> QueueNode | None:
        return next((leaf for leaf in self.tree.in_order() if leaf.path in self._requesting), None)

    def _serve(self, leaf: QueueNode, before: QueueNode | None = None) -> None:
        """Admit one container of the leaf's first request, or refuse what is pending in the leaf.

        ``before``: the leaf that would be served after this one.
        """
        wanted = self._first(leaf)
        if wanted is None:
            del self._requesting[leaf.path]
            return
        name = wanted.application.application
        if not self.is_requester(wanted.application):
            self._refuse(leaf, demand.RoomGoesTo(name, leaf.path))
            return
        if self._fits_free(leaf, wanted):
            self.left[name] = self.left.get(name, 0) - 1
            self.tree.grant(leaf, wanted)
            return
        victims = [leaf] if self.relieved is not None else self._helping.get(leaf.path, self._victims)
        victims = sorted(victims, key=QueueNode.over, reverse=True)
        why: demand.TriggerReason | None = None
        for place, victim in enumerate(victims):
            found = self._tried(leaf, wanted, victim)
            if found is None:
                self._note_help(leaf, wanted, victims[place:])
                self._admit(leaf, wanted, victim)
                return
            why = why or found
        if name not in self.helped and self._helping.pop(leaf.path, None) is not None:
            self._serve(leaf, before)  # others may help now
            return
        first = self._requesting.get(why.queue) if isinstance(why, demand.RoomGoesTo) else None
        if first is not None and before is None:
            self._serve(first, leaf)
            return
        self._refuse(leaf, why or demand.NoQueueOverGuarantee())

    def _note_help(self, leaf: QueueNode, wanted: SimulatedRequest, victims: list[QueueNode]) -> None:
        """Note which victims help an application: those that help the first request of its leaf.

        Of ``victims`` the first one does.
        """
        name = wanted.application.application
        if name in self.helped:
            return
        if leaf.path not in self._helping:
            more = [each for each in victims[1:] if self._tried(leaf, wanted, each) is None]
            self._helping[leaf.path] = [victims[0], *more]
        helping = tuple(each.path for each in self._helping[leaf.path])
        own = self.tree.reserved.get(name, NOTHING)
        self.helped[name] = Helped(helping, plus(leaf.headroom(), own))

    def _fits_free(self, leaf: QueueNode, wanted: SimulatedRequest) -> bool:
        """Take free capacity for a request that waited only behind another one of its leaf."""
        own = self.tree.reserved.get(wanted.application.application, NOTHING)
        return (
            self.free.fits(wanted.size)
            and leaf.binding(wanted.size, own) is None
            and self._outcome(leaf, wanted.size) is None
            and self.free.place(wanted.size)
        )

    def _admit(self, leaf: QueueNode, wanted: SimulatedRequest, victim: QueueNode) -> None:
        evicted = self._size(leaf, wanted, victim)
        victim.add(times(evicted, -1))
        if victim is not leaf:
            self._evicted[victim.path] = evicted
        name = wanted.application.application
        needs = self.admitted.setdefault(name, Servable(wanted.application, {})).shortfalls
        needs[wanted.size] = needs.get(wanted.size, 0) + 1
        self.left[name] = self.left.get(name, 0) - 1
        self.tree.grant(leaf, wanted)

    @staticmethod
    def _size(leaf: QueueNode, wanted: SimulatedRequest, victim: QueueNode) -> Resources:
        """Return what a victim queue loses for one container: at most one of its largest tasks."""
        if victim is leaf or victim.model is None:
            return wanted.size
        return at_least(wanted.size, victim.model.largest_task)

    def _tried(
        self, leaf: QueueNode, wanted: SimulatedRequest, victim: QueueNode
    ) -> demand.TriggerReason | None:
        """Return why a container of a victim queue does not go to a request; None: it does."""
        evicted = self._size(leaf, wanted, victim)
        if victim is not leaf:
            after = serving_key(minus(victim.used, evicted), victim.guaranteed, victim.path)
            if below_guarantee(after):
                return demand.QueueBelowGuarantee(victim.path)
        before = self._evicted.get(victim.path)
        victim.add(times(evicted, -1))
        if victim is not leaf:
            self._evicted[victim.path] = evicted
        try:
            return self._outcome(leaf, evicted)
        finally:
            victim.add(evicted)
            if before is not None:
                self._evicted[victim.path] = before
            else:
                self._evicted.pop(victim.path, None)

    def _outcome(self, wanted_leaf: QueueNode, slot: Resources) -> demand.TriggerReason | None:
        """Descend with one free slot; return why the wanted leaf does not get it."""
        limit: demand.TriggerReason | None = None
        for leaf in self.tree.in_order():
            found = self._taking(leaf, slot)
            if isinstance(found, SimulatedRequest):
                if leaf is wanted_leaf:
                    return None
                return limit or demand.RoomGoesTo(found.application.application, leaf.path)
            if leaf is wanted_leaf:
                assert found is not None
                limit = demand.QueueAtMaximum() if found is leaf else demand.ParentAtMaximum(found.path)
            size = self._evicted.get(leaf.path)
            if size is not None and leaf.binding(size) is None:
                return limit or demand.QueueTakesBack(leaf.path)
        return limit or demand.OthersFirst()

    def _taking(self, leaf: QueueNode, slot: Resources) -> SimulatedRequest | QueueNode | None:
        """Return the leaf's request that takes or reserves a slot, the queue whose maximum binds, or None."""
        assert leaf.model is not None
        line = leaf.model.waiting()
        passed = ""
        for place in range(leaf.model.head, len(line)):
            wanted = line[place]
            name = wanted.application.application
            if name == passed or self._passed(leaf, wanted) is not None:
                continue
            binding = leaf.binding(wanted.size, self.tree.reserved.get(name, NOTHING))
            if binding is not None:
                return binding
            if fits(wanted.size, slot) or self.free.has_node(wanted.size):
                return wanted
            if self.tree.may_reserve(leaf, wanted):
                return wanted
            passed = name
        return None

    def _passed(self, leaf: QueueNode, wanted: SimulatedRequest) -> demand.TriggerReason | None:
        if self.is_requester(wanted.application) and self.left.get(wanted.application.application, 0) <= 0:
            return demand.OnItsWay()
        return self.tree.passes(leaf, wanted, self.relieved or NO_USERS)

    def _first(self, leaf: QueueNode) -> SimulatedRequest | None:
        """Move the leaf's head to its first request that is not passed over; None: no more."""
        model = leaf.model
        assert model is not None
        line = model.waiting()
        while model.head < len(line):
            wanted = line[model.head]
            why = self._passed(leaf, wanted)
            if why is None:
                return wanted
            if self.is_requester(wanted.application):
                self.refused.setdefault(wanted.application.application, why)
            model.head += 1
        return None

    def _refuse(self, leaf: QueueNode, why: demand.TriggerReason) -> None:
        """Refuse what is pending in a leaf; behind a first request at a limit, because of that request."""
        model = leaf.model
        assert model is not None
        first = model.waiting()[model.head].application.application
        behind = why
        if isinstance(why, demand.ParentAtMaximum | demand.QueueAtMaximum):
            limit = why.queue if isinstance(why, demand.ParentAtMaximum) else leaf.path
            behind = demand.FirstRequestTooLarge(first, limit)
        for wanted in model.waiting()[model.head :]:
            name = wanted.application.application
            if self.is_requester(wanted.application):
                self.refused.setdefault(name, why if name == first else behind)
        del self._requesting[leaf.path]
