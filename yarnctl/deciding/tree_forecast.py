"""The scheduler simulation in a tree of queues: whose containers help a requester, and how many.

A victim's container is subtracted from its leaf and all ancestors; it helps only if the descent of
:mod:`yarnctl.deciding.tree_model` then comes to the requester. The victim's task requests a container again
at once, as in :mod:`yarnctl.deciding.forecast`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from yarnctl.deciding.forecast import (
    FreeCapacity,
    Servable,
    SimulatedRequest,
    below_guarantee,
    held_by_none,
    serving_key,
)
from yarnctl.deciding.model import ApplicationView
from yarnctl.deciding.queue_node import QueueNode
from yarnctl.deciding.reasons import demand
from yarnctl.deciding.tree_model import NO_USERS, QueueTreeModel
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
    guarantee; each with its largest task, and if none helps with smaller ones.
    ``helped``: of each admitted application, which queues' containers help it. ``relieved``: as there.
    ``not_granted``: applications to which YARN does not grant what is free.
    """

    def __init__(
        self,
        tree: QueueTreeModel,
        victims: Sequence[str],
        is_requester: Callable[[ApplicationView], bool],
        allowance: Mapping[str, int],
        free: FreeCapacity,
        relieved: Mapping[str, None] | None = None,
        resource_names: Sequence[str] = (),
        not_granted: Collection[str] = (),
    ) -> None:
        self.not_granted = not_granted
        self.tree = tree
        self.resource_names = resource_names
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
            path: queue
            for path, queue in tree.leaves.items()
            if queue.model is not None
            and any(is_requester(each.application) for each in queue.model.waiting())
        }
        for victim_queue in self._victims:
            tree.open(victim_queue)
        while (queue := self._first_requester()) is not None:
            self._serve(queue)

    def _first_requester(self) -> QueueNode | None:
        return next((queue for queue in self.tree.in_order() if queue.path in self._requesting), None)

    def _serve(self, queue: QueueNode, next_queue: QueueNode | None = None) -> None:
        """Admit one container of the leaf's first request, or refuse what is pending in the leaf.

        ``next_queue``: the leaf that would be served after this one.
        """
        request = self._first(queue)
        if request is None:
            del self._requesting[queue.path]
            return
        name = request.application.application
        if not self.is_requester(request.application):
            self._refuse(queue, demand.RoomGoesTo(name, queue.path))
            return
        if self._fits_free(queue, request):
            self.left[name] = self.left.get(name, 0) - 1
            self.tree.grant(queue, request)
            return
        victims = [queue] if self.relieved is not None else self._helping.get(queue.path, self._victims)
        victims = sorted(victims, key=QueueNode.over, reverse=True)
        why: demand.TriggerReason | None = None
        larger = [each for each in victims if self._size(queue, request, each) != request.size]
        for small, tried in ((False, victims), (True, larger)):
            for place, victim_queue in enumerate(tried):
                found = self._tried(queue, request, victim_queue, small=small)
                if found is None:
                    self._note_help(queue, request, tried[place:], small=small)
                    self._admit(queue, request, victim_queue, small=small)
                    return
                why = why or found
        if name not in self.helped and self._helping.pop(queue.path, None) is not None:
            self._serve(queue, next_queue)  # others may help now
            return
        first = self._requesting.get(why.queue) if isinstance(why, demand.RoomGoesTo) else None
        if first is not None and next_queue is None:
            self._serve(first, queue)
            return
        self._refuse(queue, why or demand.NoQueueOverGuarantee())

    def _note_help(
        self, queue: QueueNode, request: SimulatedRequest, victims: list[QueueNode], *, small: bool
    ) -> None:
        """Note which victims help an application: those that help the first request of its leaf.

        Of ``victims`` the first one does.
        """
        name = request.application.application
        if name in self.helped:
            return
        if queue.path not in self._helping:
            more = [each for each in victims[1:] if self._tried(queue, request, each, small=small) is None]
            self._helping[queue.path] = [victims[0], *more]
        helping = tuple(each.path for each in self._helping[queue.path])
        own_resources = self.tree.reserved.get(name, NOTHING)
        self.helped[name] = Helped(helping, plus(queue.headroom(), own_resources))

    def _fits_free(self, queue: QueueNode, request: SimulatedRequest) -> bool:
        """Take free capacity for a request that waited only behind another one of its leaf."""
        own_resources = self.tree.reserved.get(request.application.application, NOTHING)
        return (
            request.application.application not in self.not_granted
            and self.free.fits(request.size)
            and queue.binding(request.size, own_resources) is None
            and self._outcome(queue, request.size) is None
            and self.free.place(request.size)
        )

    def _admit(
        self, queue: QueueNode, request: SimulatedRequest, victim_queue: QueueNode, *, small: bool
    ) -> None:
        evicted = request.size if small else self._size(queue, request, victim_queue)
        victim_queue.add(times(evicted, -1))
        if victim_queue is not queue:
            self._evicted[victim_queue.path] = evicted
        name = request.application.application
        needs = self.admitted.setdefault(name, Servable(request.application, {})).shortfalls
        needs[request.size] = needs.get(request.size, 0) + 1
        self.left[name] = self.left.get(name, 0) - 1
        self.tree.grant(queue, request)

    @staticmethod
    def _size(queue: QueueNode, request: SimulatedRequest, victim_queue: QueueNode) -> Resources:
        """Return what a victim queue loses for one container: at most one of its largest tasks."""
        if victim_queue is queue or victim_queue.model is None:
            return request.size
        return at_least(request.size, victim_queue.model.largest_task)

    def _tried(
        self, queue: QueueNode, request: SimulatedRequest, victim_queue: QueueNode, *, small: bool
    ) -> demand.TriggerReason | None:
        """Return why a container of a victim queue does not go to a request; None: it does.

        ``small``: the queue loses no more than the size of the request.
        """
        evicted = request.size if small else self._size(queue, request, victim_queue)
        held_none = held_by_none(request.size, [victim_queue.used], self.resource_names)
        if held_none is not None:
            return held_none
        if victim_queue is not queue:
            # As elsewhere a queue keeps its guarantee while it has it of one resource: it is cut off to whole
            # ones. Whether YARN then serves it first is asked below.
            left = minus(victim_queue.used, evicted)
            if below_guarantee(serving_key(left, victim_queue.guaranteed, victim_queue.path)):
                return demand.QueueBelowGuarantee(victim_queue.path)
        before = self._evicted.get(victim_queue.path)
        victim_queue.add(times(evicted, -1))
        if victim_queue is not queue:
            self._evicted[victim_queue.path] = evicted
        try:
            return self._outcome(queue, evicted)
        finally:
            victim_queue.add(evicted)
            if before is not None:
                self._evicted[victim_queue.path] = before
            else:
                self._evicted.pop(victim_queue.path, None)

    def _outcome(self, wanted_queue: QueueNode, freed_resources: Resources) -> demand.TriggerReason | None:
        """Descend with one free slot; return why the wanted leaf does not get it."""
        limit: demand.TriggerReason | None = None
        for queue in self.tree.in_order():
            found = self._taking(queue, freed_resources)
            if isinstance(found, SimulatedRequest):
                if queue is wanted_queue:
                    return None
                return limit or demand.RoomGoesTo(found.application.application, queue.path)
            if queue is wanted_queue:
                assert found is not None
                limit = demand.QueueAtMaximum() if found is queue else demand.ParentAtMaximum(found.path)
            size = self._evicted.get(queue.path)
            if size is not None and queue.binding(size) is None:
                return limit or demand.QueueTakesBack(queue.path)
            if found is not None:
                queue.block()
        return limit or demand.OthersFirst()

    def _taking(self, queue: QueueNode, freed_resources: Resources) -> SimulatedRequest | QueueNode | None:
        """Return the leaf's request that takes or reserves a slot, the queue whose maximum binds, or None."""
        assert queue.model is not None
        line = queue.model.waiting()
        passed = ""
        for place in range(queue.model.head, len(line)):
            request = line[place]
            name = request.application.application
            if name == passed or self._passed(queue, request) is not None:
                continue
            binding = queue.binding(request.size, self.tree.reserved.get(name, NOTHING))
            if binding is not None:
                return binding
            if fits(request.size, freed_resources) or self.free.has_node(request.size):
                return request
            if self.tree.may_reserve(queue, request):
                return request
            passed = name
        return None

    def _passed(self, queue: QueueNode, request: SimulatedRequest) -> demand.TriggerReason | None:
        if self.is_requester(request.application) and self.left.get(request.application.application, 0) <= 0:
            return demand.OnItsWay()
        return self.tree.passes(queue, request, self.relieved or NO_USERS)

    def _first(self, queue: QueueNode) -> SimulatedRequest | None:
        """Move the leaf's head to its first request that is not passed over; None: no more."""
        model = queue.model
        assert model is not None
        line = model.waiting()
        while model.head < len(line):
            request = line[model.head]
            why = self._passed(queue, request)
            if why is None and len(request.size) > 2 and not self.free.has_node(request.size):
                givers = [queue] if self.relieved is not None else self._victims
                why = held_by_none(request.size, [giver.used for giver in givers], self.resource_names)
            if why is None:
                return request
            name = request.application.application
            if self.is_requester(request.application):
                self.refused.setdefault(name, why)
            model.head += 1
            others = Resources(0, 0, *request.size[2:])  # memory and vcores may be freed
            binding = queue.binding(others, self.tree.reserved.get(name, NOTHING))
            if isinstance(why, demand.NoQueueHolds) and binding is not None:
                self._refuse_left(queue, demand.FirstRequestTooLarge(name, binding.path))
                return None
        return None

    def _refuse_left(self, queue: QueueNode, why: demand.TriggerReason) -> None:
        """Refuse what is pending in a leaf from its head on."""
        assert queue.model is not None
        for request in queue.model.waiting()[queue.model.head :]:
            if self.is_requester(request.application):
                self.refused.setdefault(request.application.application, why)

    def _refuse(self, queue: QueueNode, why: demand.TriggerReason) -> None:
        """Refuse what is pending in a leaf; behind a first request at a limit, because of that request."""
        model = queue.model
        assert model is not None
        first = model.waiting()[model.head].application.application
        behind = why
        if isinstance(why, demand.ParentAtMaximum | demand.QueueAtMaximum):
            limit = why.queue if isinstance(why, demand.ParentAtMaximum) else queue.path
            behind = demand.FirstRequestTooLarge(first, limit)
        for request in model.waiting()[model.head :]:
            name = request.application.application
            if self.is_requester(request.application):
                self.refused.setdefault(name, why if name == first else behind)
        del self._requesting[queue.path]
