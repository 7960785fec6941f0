"""The model of a tree of queues: which request does the capacity scheduler serve next?

It descends from root for each container. At each parent the queues with pending requests are compared by
that parent's policy, with what is used after the last grant; the first that can take the container gets it.
Source: docs/facts/hadoop.md, section 5, tried on a ResourceManager 3.4.2. Rules of one leaf:

* A user over the user limit is passed over, with all its applications. What is reserved counts as used,
  except for the application of the reservation.
* The leaf is left at the first request that exceeds the *headroom*: what the leaf and each ancestor have left
  below their maximum, reserved containers counted as used. Root's maximum is the total of the nodes. An
  application's own reservation is not held against it. What the leaf had as headroom is *blocked*: its
  siblings that come later have that much less (``ResourceLimits.addBlockedHeadroom``), and so on upward.
* A request within the headroom that fits on no node reserves one node, and its application is passed over.
* A reservation on a known node is filled there first, whatever the shares and limits have become.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from yarnctl.deciding.forecast import (
    SCALE,
    FreeCapacity,
    Key,
    QueueModel,
    SimulatedRequest,
    place_pending,
)
from yarnctl.deciding.model import ApplicationView, ParentView, QueueView, Snapshot
from yarnctl.deciding.reasons import demand
from yarnctl.units import NOTHING, Resources, at_least, at_most, dominant, fits, minus, plus

EQUAL = 1_000_000
"""Shares of a guarantee are compared in parts of this."""
NO_USERS: Mapping[str, None] = MappingProxyType({})


class QueueNode:
    """A queue in the tree: a parent, or a leaf with its ``model``.

    ``chain``: the queue and its ancestors, root last. ``active``: its children with pending requests at or
    below them. ``priority`` None: its parent orders by utilization alone. ``fair``: a leaf that serves the
    application first that uses the least. ``smallest``: of root, the smallest container. ``blocked``: of a
    parent, the headroom of leaves below it that were left in this descent.
    """

    __slots__ = (
        "_key",
        "_over",
        "active",
        "blocked",
        "chain",
        "fair",
        "guaranteed",
        "maximum",
        "model",
        "path",
        "priority",
        "smallest",
        "used",
    )

    def __init__(
        self,
        view: ParentView | QueueView,
        parent_node: QueueNode | None,
        priority: int | None,
        model: QueueModel | None = None,
    ) -> None:
        self.path, self.guaranteed, self.maximum = view.queue, view.guaranteed, view.maximum
        self.used = view.used
        self.priority = priority
        self.model = model
        self.chain: tuple[QueueNode, ...] = (self,) if parent_node is None else (self, *parent_node.chain)
        self.fair = False
        self.active: list[QueueNode] = []
        self.blocked = self.smallest = NOTHING
        self._key: tuple[int | str, ...] | None = None
        self._over: Key | None = None

    def add(self, size: Resources) -> None:
        """Count ``size`` (negative: freed) as used here and in all ancestors."""
        for node in self.chain:
            node.used = plus(node.used, size)
            node._key = node._over = None

    def binding(self, size: Resources, own_resources: Resources = NOTHING) -> QueueNode | None:
        """Return the queue whose maximum ``size`` exceeds, from the leaf up; None: no limit binds.

        ``own_resources``: the application's own reservation.
        """
        memory_mib, vcores = size[0] - own_resources[0], size[1] - own_resources[1]
        others = minus(size, own_resources) if len(size) > 2 else None
        for node in self.chain:
            used, maximum, blocked = node.used, node.maximum, node.blocked
            memory_mib, vcores = memory_mib + blocked[0], vcores + blocked[1]
            if used[0] + memory_mib > maximum[0] or used[1] + vcores > maximum[1]:
                return node
            if others is not None:
                others = plus(others, blocked)
                if not fits(plus(used, others), maximum):
                    return node
        return None

    def headroom(self) -> Resources:
        """Return what is left below every maximum, never negative."""
        least, blocked = self.maximum, NOTHING
        for node in self.chain:
            blocked = plus(blocked, node.blocked)
            least = at_most(least, minus(minus(node.maximum, node.used), blocked))
        return at_least(least, NOTHING)

    def block(self) -> None:
        """Keep a leaf's headroom from the siblings that come later in this descent."""
        if len(self.chain) > 1:
            self.chain[1].blocked = plus(self.chain[1].blocked, self.headroom())

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
            self._over = self.over_without(NOTHING)
        return self._over

    def over_without(self, size: Resources) -> Key:
        """Return :meth:`over` with ``size`` less: YARN compares dominant shares of the cluster.

        A guarantee is cut off to whole resources, so the ratio in one resource alone can be far higher. One
        below the smallest container counts as one. Its numbers have 32 bits: shares that differ by less than
        a millionth are equal.
        """
        used, guaranteed = minus(self.used, size), self.guaranteed
        total = at_least(self.chain[-1].maximum, Resources(1, 1))
        share, guaranteed_share = dominant(used, total), dominant(guaranteed, total)
        if guaranteed_share > 0:
            guaranteed_share = max(guaranteed_share, dominant(self.chain[-1].smallest, total))
        if guaranteed_share <= 0:
            return (1, used[0], 0, self.path)
        ratio = (share * EQUAL * 2 + guaranteed_share) // (guaranteed_share * 2)
        return (0, ratio * (SCALE // EQUAL), -guaranteed[0], self.path)


class UserLimits:
    """The limits of the users of leaves, as they follow grants.

    Source: docs/facts/hadoop.md, section 5 (``UsersManager.computeUserLimit``): the larger of an equal part
    of what the active users hold, and minimum-user-limit-percent of what is guaranteed or held; at most
    guarantee x user-limit-factor; rounded up to the smallest container. Reserved counts as held. Vectors
    have memory and vcores only, and are compared by their shares of the cluster, the larger one first.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.total = at_least(Resources(*snapshot.total[:2]), Resources(1, 1))
        self.smallest = Resources(*snapshot.smallest[:2])
        self._percents = snapshot.user_percents
        self._users: dict[str, set[str]] = {}
        self._pending: dict[str, dict[str, int]] = {}
        for view in snapshot.applications:
            if view.queue not in self._percents:
                continue  # the limits of its users do not follow
            self._users.setdefault(view.queue, set()).add(view.user)
            count = sum(request.count for request in view.requests) if view.activated else 0
            if count:
                pending = self._pending.setdefault(view.queue, {})
                pending[view.user] = pending.get(view.user, 0) + count

    def count(self, queue: QueueNode, request: SimulatedRequest) -> None:
        """Count a container as granted."""
        pending = self._pending.get(queue.path, {})
        user = request.application.user
        pending[user] = pending.get(user, 0) - 1

    @staticmethod
    def held(model: QueueModel, user: str) -> Resources:
        """Return what a user's containers and reservations have in a leaf."""
        return Resources(*model.user_used.get(user, NOTHING)[:2])

    def of(self, queue: QueueNode, user: str) -> Resources | None:
        """Return the limit of a user in a leaf; None: there is none."""
        model = queue.model
        assert model is not None
        percent = self._percents.get(queue.path)
        most = model.view.user_limit
        if percent is None:
            most = model.user_limits.get(user, most)
            return None if most is None else self._rounded(Resources(*most[:2]))
        least = self._larger(Resources(*queue.guaranteed[:2]), self.smallest)
        held = {each: self.held(model, each) for each in sorted(self._users.get(queue.path, ()))}
        whole = self._rounded(Resources(*(sum(size[kind] for size in held.values()) for kind in (0, 1))))
        whole = plus(whole, self.smallest) if self.shares(whole) >= self.shares(least) else least
        limit = Resources(*(math.ceil(int(part * percent) / 100) for part in whole))
        active = [size for each, size in held.items() if self._pending.get(queue.path, {}).get(each, 0) > 0]
        if active:
            sums = (sum(size[kind] for size in active) + self.smallest[kind] for kind in (0, 1))
            limit = self._larger(Resources(*(-(-part // len(active)) for part in sums)), limit)
        if most is not None and self.shares(limit) > self.shares(most):
            limit = Resources(*most[:2])
        return self._rounded(limit)

    def is_over(self, held_resources: Resources, limit_resources: Resources | None) -> bool:
        """Return whether what is held exceeds a limit."""
        return limit_resources is not None and self.shares(held_resources) > self.shares(limit_resources)

    def shares(self, size: Resources) -> tuple[int, int]:
        """Return both shares of the cluster, the larger one first, in a common unit."""
        first, second = size[0] * self.total[1], size[1] * self.total[0]
        return (first, second) if first >= second else (second, first)

    def _larger(self, left: Resources, right: Resources) -> Resources:
        return left if self.shares(left) >= self.shares(right) else right

    def _rounded(self, size: Resources) -> Resources:
        return Resources(
            *(
                -(-part // step) * step if step else part
                for part, step in zip(size[:2], self.smallest, strict=True)
            )
        )


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
        self._reserved_nodes = sorted(snapshot.reserved_by_node.items())
        # The observer leaves out nodes with certain reservations; what is freed there is not for others.
        self._kept_nodes = snapshot.reserved_by_node.keys() - snapshot.free_by_node.keys()
        self.held: dict[str, str] = {}
        self.largest_node = snapshot.largest_node
        self._user_limits = UserLimits(snapshot) if snapshot.smallest != NOTHING else None
        self.leaves: dict[str, QueueNode] = {}
        self._used_mib: dict[str, int] = {}
        parents: dict[str, QueueNode] = {}
        views = {view.queue: view for view in snapshot.parents}
        for path, view in sorted(views.items(), key=lambda each: (each[0].count("."), each[0])):
            above = parent_path(path)
            parents[path] = QueueNode(view, parents.get(above), _priority(views.get(above), path))
        self.root = next(iter(parents.values()))
        self.root.smallest = snapshot.smallest
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
                self._used_mib.update(
                    (name, view.used.memory_mib - model.leaving_mib.get(name, 0))
                    for view in model.pending
                    for name in (view.application,)
                )
                model.reorder(self._used_mib)
            if model.waiting():
                self.open(node)

    @staticmethod
    def open(queue: QueueNode) -> None:
        """Let the descent come to a leaf."""
        for node, above in zip(queue.chain, queue.chain[1:], strict=False):
            if node in above.active:
                return
            above.active.append(node)

    @staticmethod
    def close(queue: QueueNode) -> None:
        """Take a leaf out of the descent, and each parent that then has nothing pending below it."""
        for node, above in zip(queue.chain, queue.chain[1:], strict=False):
            above.active.remove(node)
            if above.active:
                return

    def close_idle(self) -> None:
        """Take the leaves without pending requests out of the descent."""
        for queue in [queue for queue in _below(self.root) if queue.model and not queue.model.waiting()]:
            self.close(queue)

    def in_order(self) -> Iterator[QueueNode]:
        """Yield the open leaves as the descent comes to them; :meth:`QueueNode.block` those that are left."""
        return _below(self.root)

    def passes(
        self, queue: QueueNode, request: SimulatedRequest, relieved: Mapping[str, None] = NO_USERS
    ) -> demand.TriggerReason | None:
        """Return why YARN passes over a request and looks at the next one; None: it does not."""
        assert queue.model is not None
        if not fits(request.size, self.largest_node):
            return demand.NoNodeLargeEnough()
        user = request.application.user
        if queue.model.limited and user not in relieved and self._is_over_limit(queue, request.application):
            return demand.UserAtLimit()
        return None

    def _is_over_limit(
        self, queue: QueueNode, application: ApplicationView, *, with_own: bool = False
    ) -> bool:
        """Return whether a user is over the limit; ``with_own``: the application's own reservation counts."""
        model = queue.model
        assert model is not None
        if self._user_limits is None:
            own_resources = NOTHING if with_own else self.reserved.get(application.application, NOTHING)
            return model.is_over_limit(application.user, minus(NOTHING, own_resources))
        if not model.limited:
            return False
        held = self._user_limits.held(model, application.user)
        if not with_own:
            held = minus(held, self.reserved.get(application.application, NOTHING))
        return self._user_limits.is_over(held, self._user_limits.of(queue, application.user))

    def is_full(self, queue: QueueNode, application: str) -> bool:
        """Return whether a leaf is left at an application because nothing is below its limits.

        It is checked before the user's limit; an application with a reservation may still be served.
        """
        if self._user_limits is None or self.reserved.get(application, NOTHING) != NOTHING:
            return False
        return queue.headroom()[:2] == NOTHING

    def may_take(self, queue: QueueNode, request: SimulatedRequest) -> bool:
        """Return whether a request that fits on a node is given it.

        One that is within the limits only without the application's own reservation takes the place of that,
        which must be for the same request.
        """
        own_resources = self.reserved.get(request.application.application)
        if self._user_limits is None or own_resources is None or own_resources == NOTHING:
            return True
        if queue.binding(request.size) is None and not self._is_over_limit(
            queue, request.application, with_own=True
        ):
            return True
        return self._reserved_size(request.application, own_resources) == request.size

    def _may_keep(self, queue: QueueNode, request: SimulatedRequest, own_resources: Resources) -> bool:
        """Return whether an application keeps its reservation when it is granted a container elsewhere."""
        if self._user_limits is None or self._is_over_limit(queue, request.application, with_own=True):
            return False
        size = self._reserved_size(request.application, own_resources)
        others = own_resources[0] // size[0] if size == request.size and size[0] else 0
        return request.containers > others and queue.binding(request.size) is None

    def _reserved_size(self, application: ApplicationView, own_resources: Resources) -> Resources:
        """Return the size of one reservation; the answer has only the sum of an application's."""
        count = sum(name == application.application for _, name in self._reserved_nodes) or 1
        return Resources(*(part // count for part in own_resources))

    def may_reserve(self, queue: QueueNode, request: SimulatedRequest) -> bool:
        """Return whether a request that fits on no node would reserve one (more).

        Not if the application would have to give up a reservation to stay within a limit.
        """
        held = self.reserved.get(request.application.application, NOTHING)
        mine = held[0] // request.size[0] if request.size[0] > 0 else 0
        if mine >= request.containers or queue.binding(request.size) is not None:
            return False
        return self._user_limits is None or not (
            held != NOTHING
            and queue.model is not None
            and queue.model.limited
            and self._is_over_limit(queue, request.application, with_own=True)
        )

    def grant(
        self,
        queue: QueueNode,
        request: SimulatedRequest,
        place: int | None = None,
        *,
        filling: bool = False,
    ) -> None:
        """Count one container as granted.

        It takes the place of a reservation of its application, unless that is within the limits beside it.

        ``place``: the request's place in its leaf (None: the first). ``filling``: it fills the reservation.
        """
        assert queue.model is not None
        name, size = request.application.application, request.size
        own_resources = self.reserved.get(name)
        if own_resources is not None and not filling and self._may_keep(queue, request, own_resources):
            own_resources = None
        queue.model.grant(request, place=place)
        if self._user_limits is not None:
            self._user_limits.count(queue, request)
        if queue.fair:
            self._used_mib[name] += size.memory_mib
            queue.model.reorder(self._used_mib)
        if own_resources is None:
            queue.add(size)
            return
        filled = at_most(own_resources, size)
        queue.add(minus(size, filled))
        queue.model.hold(request.application.user, minus(NOTHING, filled))
        self.reserved[name] = minus(own_resources, filled)

    def place(self, free: FreeCapacity) -> dict[str, int]:
        """Serve the pending requests from the free capacity; the rest stays pending; return placed."""
        placed: dict[str, int] = {}
        if not free.free:
            return placed
        for node, name in self._reserved_nodes:
            if node not in free.free:
                continue
            if self._fill(node, name, free):
                placed[name] = placed.get(name, 0) + 1
            elif node in self._kept_nodes:
                free.hold(node)
        stuck: dict[str, list[SimulatedRequest]] = {
            queue.path: []
            for queue in self.leaves.values()
            if queue.model is not None and queue.model.waiting()
        }
        # A descent through a large tree takes a millisecond: none is made where nothing is left to give.
        of_leaves = [self.leaves[path].model for path in stuck]
        need_memory = all(
            request.size[0] > 0 for model in of_leaves if model is not None for request in model.waiting()
        )
        passed: set[str] = set()
        while (
            not (need_memory and free.is_used_up()) and (found := self._next(free, stuck, passed)) is not None
        ):
            queue, request = found
            if free.place(request.size):
                self.grant(queue, request)
                name = request.application.application
                placed[name] = placed.get(name, 0) + 1
            else:
                self._reserve(queue, request, free)
        for path, left in stuck.items():
            queue = self.leaves[path]
            assert queue.model is not None
            queue.model.leave([*left, *queue.model.waiting()[queue.model.head :]])
            if queue.fair:
                queue.model.reorder(self._used_mib)
            if queue.model.waiting():
                self.open(queue)
        self.close_idle()
        return placed

    def _next(
        self, free: FreeCapacity, stuck: Mapping[str, list[SimulatedRequest]], passed: set[str]
    ) -> tuple[QueueNode, SimulatedRequest] | None:
        """Return the request that the next descent serves; close the leaves with nothing more to place."""
        for queue in self.in_order():
            request = self._placeable(queue, free, stuck[queue.path], passed)
            if request is not None:
                return queue, request
            assert queue.model is not None
            if queue.model.head < len(queue.model.waiting()):
                queue.block()  # nothing, if the leaf is full
            else:
                self.close(queue)
        return None

    def _fill(self, node: str, application: str, free: FreeCapacity) -> bool:
        """Fill an application's reservation on a node if what is free there is enough."""
        reserved_resources = self.reserved.get(application, NOTHING)
        for queue in self.leaves.values():
            model = queue.model
            assert model is not None
            line = model.waiting() if any(view.application == application for view in model.pending) else []
            for place, request in enumerate(line):
                size = request.size
                if request.application.application != application or not fits(size, reserved_resources):
                    continue
                if not fits(size, free.free[node]):
                    return False
                free.free[node] = minus(free.free[node], size)
                self.grant(queue, request, place, filling=True)
                return True
        return False

    def _placeable(
        self, queue: QueueNode, free: FreeCapacity, stuck: list[SimulatedRequest], passed: set[str]
    ) -> SimulatedRequest | None:
        """Move a leaf's head to the first request that is given, or reserves, a node; None: none is.

        ``passed``: applications of which no request is looked at any more.
        """
        model = queue.model
        assert model is not None
        line = model.waiting()
        while model.head < len(line):
            request = line[model.head]
            name = request.application.application
            if self.is_full(queue, name):
                return None
            if name not in passed and self.passes(queue, request) is None:
                if queue.binding(request.size, self.reserved.get(name, NOTHING)) is not None:
                    return None
                if free.has_node(request.size):
                    if self.may_take(queue, request):
                        return request
                elif self.may_reserve(queue, request) and free.first_partly_free(request.size) is not None:
                    return request
                passed.add(name)
            stuck.append(request)
            model.head += 1
        return None

    def _reserve(self, queue: QueueNode, request: SimulatedRequest, free: FreeCapacity) -> None:
        """Let a request hold the first node with some free capacity; which one it will be is not known."""
        name = request.application.application
        node = free.first_partly_free(request.size)
        assert node is not None
        free.hold(node)
        self.held[node] = name
        self.reserved[name] = plus(self.reserved.get(name, NOTHING), request.size)
        queue.add(request.size)
        assert queue.model is not None
        queue.model.hold(request.application.user, request.size)


def _priority(parent: ParentView | None, queue: str) -> int | None:
    if parent is None or parent.order == "utilization":
        return None
    return parent.priorities.get(queue, 0)


def _below(node: QueueNode) -> Iterator[QueueNode]:
    active, node.blocked = node.active, NOTHING
    for child in sorted(active, key=QueueNode.key) if len(active) > 1 else active[:]:
        if child.model is not None:
            yield child
        else:
            yield from _below(child)
            node.blocked = plus(node.blocked, child.blocked)


def placed_in(
    snapshot: Snapshot, queues: Mapping[str, QueueModel], free: FreeCapacity
) -> tuple[dict[str, int], QueueTreeModel | None]:
    """Serve the pending requests from the free capacity; return placed per application, and the tree."""
    if not snapshot.parents:
        return place_pending(queues, free), None
    tree = QueueTreeModel(snapshot, queues)
    return tree.place(free), tree
