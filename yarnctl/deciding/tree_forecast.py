"""The scheduler simulation in a tree of queues: which request does the capacity scheduler serve next?

It descends from root for each container. At each parent the queues with pending requests are compared by
that parent's policy, with what is used after the last grant; the first that can take the container gets it.
Source: docs/facts/hadoop.md, section 5, tried on a ResourceManager 3.4.2. Rules of one leaf:

* A user over the user limit is passed over, with all its applications.
* The leaf is left at the first request that exceeds the *headroom*: what the leaf and each ancestor have left
  below their maximum, reserved containers counted as used. Root's maximum is the total of the nodes. An
  application's own reservation is not held against it.
* A request within the headroom that fits on no node reserves one node, and its application is passed over.

A victim's container is subtracted from its leaf and all ancestors; it helps only if the descent then comes to
the requester. The victim's task requests a container again at once, as in :mod:`yarnctl.deciding.forecast`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from yarnctl.deciding.forecast import (
    SCALE,
    FreeCapacity,
    Key,
    QueueModel,
    Servable,
    SimulatedRequest,
    below_guarantee,
    place_pending,
    serving_key,
)
from yarnctl.deciding.model import ApplicationView, ParentView, QueueView, Snapshot
from yarnctl.deciding.reasons import demand
from yarnctl.units import NOTHING, Resources, at_least, fits, minus, plus, times

_NO_USERS: Mapping[str, None] = MappingProxyType({})


class QueueNode:
    """A queue in the tree: a parent, or a leaf with its ``model``.

    ``chain``: the queue and its ancestors, root last. ``active``: its children with pending requests at or
    below them. ``priority`` None: its parent orders by utilization alone. ``fair``: a leaf that serves the
    application first that uses the least.
    """

    __slots__ = (
        "_key",
        "_over",
        "active",
        "chain",
        "fair",
        "guaranteed",
        "maximum",
        "model",
        "path",
        "priority",
        "used",
    )

    def __init__(
        self,
        view: ParentView | QueueView,
        parent: QueueNode | None,
        priority: int | None,
        model: QueueModel | None = None,
    ) -> None:
        self.path, self.guaranteed, self.maximum = view.queue, view.guaranteed, view.maximum
        self.used = view.used
        self.priority = priority
        self.model = model
        self.chain: tuple[QueueNode, ...] = (self,) if parent is None else (self, *parent.chain)
        self.fair = False
        self.active: list[QueueNode] = []
        self._key: tuple[int | str, ...] | None = None
        self._over: Key | None = None

    def add(self, size: Resources) -> None:
        """Count ``size`` (negative: freed) as used here and in all ancestors."""
        for node in self.chain:
            node.used = plus(node.used, size)
            node._key = node._over = None

    def binding(self, size: Resources, own: Resources = NOTHING) -> QueueNode | None:
        """Return the queue whose maximum ``size`` exceeds, from the leaf up; ``own``: its own reservation."""
        memory_mib, vcores = size[0] - own[0], size[1] - own[1]
        for node in self.chain:
            used, maximum = node.used, node.maximum
            if used[0] + memory_mib > maximum[0] or used[1] + vcores > maximum[1]:
                return node
        return None

    def headroom(self) -> Resources:
        """Return what is left below every maximum, never negative."""
        left = [minus(node.maximum, node.used) for node in self.chain]
        return Resources(max(0, min(each[0] for each in left)), max(0, min(each[1] for each in left)))

    def key(self) -> tuple[int | str, ...]:
        """Return the place among its siblings by its parent's policy.

        Under ``priority-utilization`` a queue below its guarantee comes first, then the higher priority.
        """
        if self._key is None:
            key = self.over()
            if self.priority is None:
                self._key = key
            else:
                self._key = (key[0], int(key[1] >= SCALE), -self.priority, *key[1:])
        return self._key

    def over(self) -> Key:
        """Return how far a victim is over its own guarantee; the largest gives first."""
        if self._over is None:
            self._over = serving_key(self.used, self.guaranteed, self.path)
        return self._over


def parent_path(queue: str) -> str:
    """Return the path of a queue's parent; "" for root."""
    return queue.rpartition(".")[0]


class QueueTreeModel:
    """The queues of a snapshot with parents; ``queues`` are its leaves, with the expected capacity free.

    ``reserved``: application -> reserved for it. ``held``: node -> application that is foreseen to reserve
    it.
    """

    def __init__(self, snapshot: Snapshot, queues: Mapping[str, QueueModel]) -> None:
        self.reserved: dict[str, Resources] = dict(snapshot.reserved)
        self.held: dict[str, str] = {}
        self.largest_node = snapshot.largest_node
        self.leaves: dict[str, QueueNode] = {}
        self._used_mib: dict[str, int] = {}
        parents: dict[str, QueueNode] = {}
        views = {view.queue: view for view in snapshot.parents}
        for path, view in sorted(views.items(), key=lambda each: (each[0].count("."), each[0])):
            above = parent_path(path)
            parents[path] = QueueNode(view, parents.get(above), _priority(views.get(above), path))
        self.root = next(iter(parents.values()))
        for path, model in queues.items():
            above = parent_path(path)
            node = QueueNode(
                model.view, parents.get(above, self.root), _priority(views.get(above), path), model
            )
            self.leaves[path] = node
            node.fair = above in views and path in views[above].fair
            leaving = minus(model.used, model.view.used)
            if leaving != NOTHING:
                node.add(leaving)
            if node.fair:
                self._used_mib.update((view.application, view.used.memory_mib) for view in model.pending)
                model.reorder(self._used_mib)
            if model.waiting():
                self.open(node)

    @staticmethod
    def open(leaf: QueueNode) -> None:
        """Let the descent come to a leaf."""
        for node, above in zip(leaf.chain, leaf.chain[1:], strict=False):
            if node in above.active:
                return
            above.active.append(node)

    @staticmethod
    def close(leaf: QueueNode) -> None:
        """Take a leaf out of the descent, and each parent that then has nothing pending below it."""
        for node, above in zip(leaf.chain, leaf.chain[1:], strict=False):
            above.active.remove(node)
            if above.active:
                return

    def in_order(self) -> Iterator[QueueNode]:
        """Yield the open leaves as the descent comes to them."""
        return _below(self.root)

    def passes(
        self, leaf: QueueNode, wanted: SimulatedRequest, relieved: Mapping[str, None] = _NO_USERS
    ) -> demand.TriggerReason | None:
        """Return why YARN passes over a request and looks at the next one; None: it does not."""
        assert leaf.model is not None
        if not fits(wanted.size, self.largest_node):
            return demand.NoNodeLargeEnough()
        user = wanted.application.user
        if leaf.model.limited and user not in relieved and leaf.model.is_over_limit(user):
            return demand.UserAtLimit()
        return None

    def may_reserve(self, leaf: QueueNode, wanted: SimulatedRequest) -> bool:
        """Return whether a request that fits on no node would reserve one (more)."""
        held = self.reserved.get(wanted.application.application, NOTHING)
        mine = held[0] // wanted.size[0] if wanted.size[0] > 0 else 0
        return mine < wanted.containers and leaf.binding(wanted.size) is None

    def grant(self, leaf: QueueNode, wanted: SimulatedRequest) -> None:
        """Count one container as granted; it takes the place of a reservation of its application."""
        assert leaf.model is not None
        name, size = wanted.application.application, wanted.size
        own = self.reserved.get(name)
        leaf.model.grant(wanted)
        if leaf.fair:
            self._used_mib[name] += size.memory_mib
            leaf.model.reorder(self._used_mib)
        if own is None:
            leaf.add(size)
            return
        filled = Resources(min(own[0], size[0]), min(own[1], size[1]))
        leaf.add(minus(size, filled))
        self.reserved[name] = minus(own, filled)

    def place(self, free: FreeCapacity) -> dict[str, int]:
        """Serve the pending requests from the free capacity; the rest stays pending; return placed."""
        placed: dict[str, int] = {}
        if not free.free:
            return placed
        stuck: dict[str, list[SimulatedRequest]] = {
            leaf.path: [] for leaf in self.leaves.values() if leaf.model is not None and leaf.model.waiting()
        }
        passed: set[str] = set()
        while (leaf := next(self.in_order(), None)) is not None:
            wanted = self._placeable(leaf, free, stuck[leaf.path], passed)
            if wanted is None:
                self.close(leaf)
            elif free.place(wanted.size):
                self.grant(leaf, wanted)
                name = wanted.application.application
                placed[name] = placed.get(name, 0) + 1
            else:
                self._reserve(leaf, wanted, free)
        for path, left in stuck.items():
            leaf = self.leaves[path]
            assert leaf.model is not None
            leaf.model.leave([*left, *leaf.model.waiting()[leaf.model.head :]])
            if leaf.fair:
                leaf.model.reorder(self._used_mib)
            if leaf.model.waiting():
                self.open(leaf)
        return placed

    def _placeable(
        self, leaf: QueueNode, free: FreeCapacity, stuck: list[SimulatedRequest], passed: set[str]
    ) -> SimulatedRequest | None:
        """Move a leaf's head to the first request that is given, or reserves, a node; None: none is.

        ``passed``: applications of which no request is looked at any more.
        """
        model = leaf.model
        assert model is not None
        line = model.waiting()
        while model.head < len(line):
            wanted = line[model.head]
            name = wanted.application.application
            if name not in passed and self.passes(leaf, wanted) is None:
                if leaf.binding(wanted.size, self.reserved.get(name, NOTHING)) is not None:
                    return None
                if free.has_node(wanted.size) or (self.may_reserve(leaf, wanted) and free.is_partly_free):
                    return wanted
                passed.add(name)
            stuck.append(wanted)
            model.head += 1
        return None

    def _reserve(self, leaf: QueueNode, wanted: SimulatedRequest, free: FreeCapacity) -> None:
        """Let a request hold the first node with some free capacity; which one it will be is not known."""
        name = wanted.application.application
        self.held[free.hold_first()] = name
        self.reserved[name] = plus(self.reserved.get(name, NOTHING), wanted.size)
        leaf.add(wanted.size)


def _priority(above: ParentView | None, queue: str) -> int | None:
    if above is None or above.order == "utilization":
        return None
    return above.priorities.get(queue, 0)


def _below(node: QueueNode) -> Iterator[QueueNode]:
    active = node.active
    for child in sorted(active, key=QueueNode.key) if len(active) > 1 else active[:]:
        if child.model is not None:
            yield child
        else:
            yield from _below(child)


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
        return self.tree.passes(leaf, wanted, self.relieved or _NO_USERS)

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


def placed_in(
    snapshot: Snapshot, queues: Mapping[str, QueueModel], free: FreeCapacity
) -> tuple[dict[str, int], QueueTreeModel | None]:
    """Serve the pending requests from the free capacity; return placed per application, and the tree."""
    if not snapshot.parents:
        return place_pending(queues, free), None
    tree = QueueTreeModel(snapshot, queues)
    return tree.place(free), tree
