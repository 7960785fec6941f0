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
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from types import MappingProxyType

import msgspec

from yarnctl.deciding.forecast import (
    FreeCapacity,
    QueueModel,
    SimulatedRequest,
    place_pending,
)
from yarnctl.deciding.model import ApplicationView, ParentView, Snapshot
from yarnctl.deciding.queue_node import QueueNode
from yarnctl.deciding.reasons import demand
from yarnctl.deciding.tree_descent import Taking, TreeDescent
from yarnctl.deciding.unlabelled_use import UnlabelledUse
from yarnctl.units import NOTHING, Resources, at_least, at_most, fits, minus, plus, shares

MANY = 1_000_000
"""Heartbeats in vain of a reservation that was there before: how many there were is not known."""
NO_USERS: Mapping[str, None] = MappingProxyType({})


class UserLimits:
    """The limits of the users of leaves, as they follow grants.

    Source: docs/facts/hadoop.md, section 5 (``UsersManager.computeUserLimit``): the larger of an equal part
    of what the active users hold, and minimum-user-limit-percent of what is guaranteed or held; at most
    guarantee x user-limit-factor; rounded up to the smallest container. Reserved counts as held. Vectors
    are compared by their shares, the larger one first: those of the partition, and what a user holds and the
    limit by those of the cluster. A user is active with a pending request for any partition.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.total = at_least(snapshot.total, Resources(1, 1))
        self._cluster_total = at_least(snapshot.cluster_total, self.total)
        self.smallest = snapshot.smallest
        self._percents = snapshot.user_percents
        self._elsewhere = snapshot.active_elsewhere
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
        return model.user_used.get(user, NOTHING)

    def of(self, queue: QueueNode, user: str, most_resources: Resources | None = None) -> Resources | None:
        """Return the limit of a user in a leaf; None: there is none.

        ``most_resources``: the highest limit (None: that of the leaf).
        """
        model = queue.model
        assert model is not None
        percent = self._percents.get(queue.path)
        most = most_resources or model.view.user_limit
        if percent is None:
            most = most_resources or model.user_limits.get(user, most)
            return None if most is None else self._rounded(most)
        least = self._larger(queue.guaranteed, self.smallest)
        held = {each: self.held(model, each) for each in sorted(self._users.get(queue.path, ()))}
        whole = self._rounded(self._consumed(held.values()))
        whole = plus(whole, self.smallest) if self._shares(whole) >= self._shares(least) else least
        limit = Resources(*(math.ceil(int(part * percent) / 100) for part in whole))
        elsewhere = self._elsewhere.get(queue.path, frozenset())
        pending = self._pending.get(queue.path, {})
        active = {each for each in held.keys() | elsewhere if each in elsewhere or pending.get(each, 0) > 0}
        if active:
            sums = self.smallest
            for each in active:
                sums = plus(sums, held.get(each, NOTHING))
            limit = self._larger(Resources(*(-(-part // len(active)) for part in sums)), limit)
        if most is not None and self._shares(limit) > self._shares(most):
            limit = most
        return self._rounded(limit)

    def _consumed(self, held: Iterable[Resources]) -> Resources:
        """Return the sum of the users' dominant shares, as a part of the partition."""
        total = self.total
        if len(total) == 2:
            sizes = list(held)
            return Resources(*(sum(size[kind] for size in sizes) for kind in (0, 1)))
        ratio = sum(
            max(part / whole for part, whole in zip(size, total, strict=False) if whole) for size in held
        )
        return Resources(*(math.ceil(round(part * ratio, 6)) for part in total))

    def is_over(self, held_resources: Resources, limit_resources: Resources | None) -> bool:
        """Return whether what is held exceeds a limit."""
        total = self._cluster_total
        return limit_resources is not None and shares(held_resources, total) > shares(limit_resources, total)

    def _shares(self, size: Resources) -> tuple[int, ...]:
        """Return the shares of the partition, the largest first."""
        return shares(size, self.total)

    def _larger(self, left: Resources, right: Resources) -> Resources:
        return left if self._shares(left) >= self._shares(right) else right

    def _rounded(self, size: Resources) -> Resources:
        steps = zip_longest(size, self.smallest, fillvalue=0)
        return Resources(*(-(-part // step) * step if step else part for part, step in steps))


def parent_path(queue: str) -> str:
    """Return the path of a queue's parent; "" for root."""
    return queue.rpartition(".")[0]


class QueueTreeModel:
    """The queues of a snapshot with parents; ``queues`` are its leaves, with the expected capacity free.

    ``reserved``: application -> reserved for it. ``held``: node -> application that is foreseen to reserve
    it. ``shares_idle``: the requests are those without a label, of a shared partition. ``rejecting``:
    node -> the request that was found there last, of those that no limit above it allows.
    """

    def __init__(
        self, snapshot: Snapshot, queues: Mapping[str, QueueModel], *, shares_idle: bool = False
    ) -> None:
        self.shares_idle = shares_idle
        self.reserved: dict[str, Resources] = dict(snapshot.reserved)
        self._unlabelled = None if snapshot.unlabelled is None else UnlabelledUse(snapshot.unlabelled)
        self._applications = snapshot.applications
        self._on_node = dict(sorted(snapshot.reserved_by_node.items()))
        self._priority_on = dict(snapshot.reserved_priority)
        # The observer leaves out nodes with certain reservations; what is freed there is not for others.
        self._kept_nodes = set(snapshot.reserved_by_node.keys() - snapshot.free_by_node.keys())
        self._rooms = dict(snapshot.reserved_free)
        self._in_vain: dict[tuple[str, int | None], int] = {}
        self._fruitless: dict[tuple[Resources, Resources], Taking | None] = {}
        self.rejecting: dict[str, Taking] = {}
        self._satisfied: dict[tuple[str, int | None], Taking] = {}
        self.held: dict[str, str] = {}
        self.largest_node = snapshot.largest_node
        self.cluster_total = at_least(snapshot.cluster_total, snapshot.total)
        self._node_totals = snapshot.node_totals
        self._user_limits = UserLimits(snapshot) if snapshot.smallest != NOTHING else None
        self.leaves: dict[str, QueueNode] = {}
        self._used_mib: dict[str, int] = {}
        self._filled_mib: dict[str, int] = {}
        parents: dict[str, QueueNode] = {}
        views = {view.queue: view for view in snapshot.parents}
        for path, view in sorted(views.items(), key=lambda each: (each[0].count("."), each[0])):
            above = parent_path(path)
            parents[path] = QueueNode(view, parents.get(above), _priority(views.get(above), path))
        self.root = next(iter(parents.values()))
        self.root.smallest = snapshot.smallest
        self._elsewhere_mib = snapshot.elsewhere_mib
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
                    (view.application, self._left_mib(view, model)) for view in model.pending
                )
                model.reorder(self._used_mib)
            if model.waiting():
                self.open(node)
        for row in snapshot.applications:
            if row.application in self.reserved and row.queue in self.leaves:
                for each in self.leaves[row.queue].chain:
                    each.reserved = plus(each.reserved, self.reserved[row.application])

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

    def add(self, view: ApplicationView) -> None:
        """Add an application with its pending requests to its leaf."""
        queue = self.leaves[view.queue]
        assert queue.model is not None
        queue.model.add(view)
        if queue.fair:
            self._used_mib[view.application] = self._left_mib(view, queue.model)
            queue.model.reorder(self._used_mib)
        self.open(queue)

    def _left_mib(self, view: ApplicationView, model: QueueModel) -> int:
        """Return what an application will use of all partitions once the expected capacity is free."""
        name = view.application
        return view.used.memory_mib + self._elsewhere_mib.get(name, 0) - model.leaving_mib.get(name, 0)

    def close_idle(self) -> None:
        """Take the leaves without pending requests out of the descent."""
        for queue in self.leaves.values():
            assert queue.model is not None
            if not queue.model.waiting() and queue in queue.chain[1].active:
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
        if with_own:
            return self.is_over_without(queue, application, NOTHING)
        return self.over_limit(queue, application) is None

    def _may_keep(self, queue: QueueNode, request: SimulatedRequest, own_resources: Resources) -> bool:
        """Return whether an application keeps its reservation when it is granted a container elsewhere."""
        if self._user_limits is None or self._is_over_limit(queue, request.application, with_own=True):
            return False
        size = self._reserved_size(request.application, own_resources)
        others = own_resources[0] // size[0] if size == request.size and size[0] else 0
        return request.containers > others and queue.binding(request.size) is None

    def _reserved_size(self, application: ApplicationView, own_resources: Resources) -> Resources:
        """Return the size of one reservation; the answer has only the sum of an application's."""
        count = sum(name == application.application for name in self._on_node.values()) or 1
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
        beside: bool = False,
    ) -> None:
        """Count one container as granted.

        It takes the place of a reservation of its application, unless that is within the limits beside it.

        ``place``: the request's place in its leaf (None: the first). ``beside``: no reservation ends
        for it, or has ended already.
        """
        assert queue.model is not None
        name, size = request.application.application, request.size
        own_resources = self.reserved.get(name)
        if beside or (own_resources is not None and self._may_keep(queue, request, own_resources)):
            own_resources = None
        queue.model.grant(request, place=place)
        if self._user_limits is not None:
            self._user_limits.count(queue, request)
        if queue.fair:
            self._used_mib[name] += size.memory_mib + self._filled_mib.pop(name, 0)
            queue.model.reorder(self._used_mib)
        if own_resources is None:
            queue.add(size)
            return
        filled = at_most(own_resources, size)
        queue.add(minus(size, filled))
        queue.model.hold(request.application.user, minus(NOTHING, filled))
        self.reserved[name] = minus(own_resources, filled)

    def place(self, free: FreeCapacity) -> dict[str, int]:
        """Serve the pending requests from the free capacity; the rest stays pending; return placed.

        The nodes have heartbeats in turn, each with one grant or reservation, until two rounds
        change nothing.
        """
        placed: dict[str, int] = {}
        quiet = 0
        self._fruitless.clear()
        for node in self._kept_nodes & self._rooms.keys():
            free.add_node(node, self._rooms.pop(node))
        while free.free and quiet < 2:
            changes = [self._beat(node, free, placed) for node in free.round_of_nodes()]
            quiet = 0 if any(changes) else quiet + 1
        for node in (self._kept_nodes | self.held.keys()) & free.free.keys():
            self._rooms[node] = free.free[node]
            free.hold(node)
        for queue in self.leaves.values():
            model = queue.model
            assert model is not None
            model.leave(model.waiting()[model.head :])
        self.close_idle()
        return placed

    def _beat(self, node: str, free: FreeCapacity, placed: dict[str, int]) -> bool:
        """Let a node have a heartbeat; return whether it changed anything."""
        name, room = self._on_node.get(node), free.free[node]
        key = name or "", self._priority_on.get(node)
        if key in self._satisfied:
            satisfied = self._satisfied[key]
            self._end(node, satisfied.queue, satisfied.request.application)
            self._count_filled(satisfied.queue, name or "")
            self._fruitless.clear()
            return True  # the heartbeat that ends a reservation grants nothing
        if name is not None:
            found = self._reserved_request(node)
            if found is not None and fits(found.request.size, room):
                free.free[node] = minus(room, found.request.size)
                self._end(node, found.queue, found.request.application)
                if found.queue.fair:
                    self._fill(found, placed)
                else:
                    self._granted(found, placed)
                return True
            if found is None and self._fill_unlabelled(node, free):
                return True
            if node in self._kept_nodes or node in self.held:
                self._in_vain[key] = self._in_vain.get(key, MANY) + 1
                return False
        size = self._node_totals.get(node, self.largest_node)
        found = None
        if (room, size) not in self._fruitless:
            descent = TreeDescent(self, room, size)
            found = descent.from_root()
            self._fruitless[room, size] = descent.rejected
        self.rejecting.pop(node, None)
        if found is None:
            rejected = self._fruitless[room, size]
            if rejected is not None:
                self.rejecting[node] = rejected
            return False
        queue, application = found.queue, found.request.application
        if found.reserves:
            self.held[node] = self._on_node[node] = application.application
            self._priority_on[node] = found.request.priority
            self._count_reserved(queue, application, found.request.size, found.request.priority)
            self._count_filled(queue, application.application)
            self._fruitless.clear()
            return True
        free.free[node] = minus(room, found.request.size)
        if found.gives_up:
            self._end(next(iter(self._nodes_of(found.request)), ""), queue, application)
        self._granted(found, placed)
        return True

    def _fill(self, taking: Taking, placed: dict[str, int]) -> None:
        """Count a container that fills a reservation in a fair leaf.

        It counts in the order from the application's next container or reservation on: YARN does not tell
        the order of it (``AbstractLeafQueue.apply``).
        """
        name, size_mib = taking.request.application.application, taking.request.size.memory_mib
        filled_mib = self._filled_mib.pop(name, 0) + size_mib
        self._used_mib[name] -= size_mib
        self._granted(taking, placed)
        self._filled_mib[name] = filled_mib

    def _fill_unlabelled(self, node: str, free: FreeCapacity) -> bool:
        """Fill a reservation for a request without a label, on a node with one; return whether it is."""
        if self._unlabelled is None or self.shares_idle:
            return False
        request = self._unlabelled.request(self._on_node[node], self._priority_on.get(node))
        if request is None or not fits(request.size, free.free[node]):
            return False
        queue, name = self.leaves[request.application.queue], request.application.application
        assert queue.model is not None
        free.free[node] = minus(free.free[node], request.size)
        self._end(node, queue, request.application)
        queue.add(request.size)
        queue.model.hold(request.application.user, request.size)
        if name in self._used_mib:
            self._filled_mib[name] = self._filled_mib.get(name, 0) + request.size.memory_mib
        filled, key = self._unlabelled.filled, (name, request.priority, request.size)
        filled[key] = filled.get(key, 0) + 1
        if request.containers == 1:
            self._satisfied[name, request.priority] = Taking(queue, 0, request)
        self._fruitless.clear()
        return True

    def filled_unlabelled(self) -> Mapping[tuple[str, int, Resources], int]:
        """Return (application, priority, size) -> containers without a label that filled reservations."""
        return {} if self._unlabelled is None else self._unlabelled.filled

    def _count_filled(self, queue: QueueNode, application: str) -> None:
        """Let a fair leaf order by an application's containers that filled reservations, too."""
        if application in self._filled_mib:
            assert queue.model is not None
            self._used_mib[application] += self._filled_mib.pop(application)
            queue.model.reorder(self._used_mib)

    def _granted(self, taking: Taking, placed: dict[str, int]) -> None:
        """Count a grant; a request of which no container is left will lose its reservations."""
        queue, application = taking.queue, taking.request.application
        name, model = application.application, taking.queue.model
        assert model is not None
        self.grant(queue, taking.request, taking.place, beside=True)
        placed[name] = placed.get(name, 0) + 1
        self._fruitless.clear()
        line = model.waiting()[model.head :]
        left = {each.priority for each in line if each.application.application == name}
        if taking.request.priority not in left:
            self._satisfied[name, taking.request.priority] = taking
        if not left:
            self._satisfied[name, None] = taking

    def holder(self, node: str) -> str:
        """Return the application that has reserved a node, or is foreseen to ("": none is known)."""
        return self._on_node.get(node, "")

    def _reserved_request(self, node: str) -> Taking | None:
        """Return the request that a reservation is for: by priority, else of its size or the largest."""
        application, priority = self._on_node[node], self._priority_on.get(node)
        reserved_resources, found = self.reserved.get(application, NOTHING), None
        for queue in self.leaves.values():
            model = queue.model
            assert model is not None
            if not any(view.application == application for view in model.pending):
                continue
            line = model.waiting()
            for place in range(model.head, len(line)):
                request = line[place]
                if request.application.application != application or priority not in (None, request.priority):
                    continue
                if priority is not None:
                    return Taking(queue, place, request)
                if not fits(request.size, reserved_resources):
                    continue
                if request.size == self._reserved_size(request.application, reserved_resources):
                    return Taking(queue, place, request)
                if found is None or request.size > found.request.size:
                    found = Taking(queue, place, request)
        return found

    def _end(self, node: str, queue: QueueNode, application: ApplicationView) -> None:
        """End one reservation of an application, on a node if that is known."""
        priority = self._priority_on.pop(node, None)
        sizes = [each.size for each in application.requests if each.priority == priority]
        own_resources = self.reserved[application.application]
        size = at_most(sizes[0], own_resources) if sizes else self._reserved_size(application, own_resources)
        self._on_node.pop(node, None)
        self.held.pop(node, None)
        self._kept_nodes.discard(node)
        self._count_reserved(queue, application, minus(NOTHING, size), priority)

    def _count_reserved(
        self, queue: QueueNode, application: ApplicationView, size: Resources, priority: int | None
    ) -> None:
        """Count a reservation (negative: it has ended) as used."""
        name = application.application
        self.reserved[name] = plus(self.reserved.get(name, NOTHING), size)
        self._in_vain[name, priority] = 0
        assert queue.model is not None
        queue.model.hold(application.user, size)
        queue.add(size)
        for each in queue.chain:
            each.reserved = plus(each.reserved, size)

    def rejected(self) -> set[str]:
        """Return the applications with a request that a node finds and no limit allows."""
        return {each.request.application.application for each in self.rejecting.values()}

    def reserving(self, snapshot: Snapshot, rooms: Mapping[str, Resources]) -> Snapshot:
        """Return a snapshot with the reservations of now, and what is free on all nodes."""
        kept = self._kept_nodes | self.held.keys()
        return msgspec.structs.replace(
            snapshot,
            free_by_node={node: room for node, room in rooms.items() if node not in kept},
            reserved_by_node=dict(self._on_node),
            reserved_priority=dict(self._priority_on),
            reserved_free={},
            reserved=dict(self.reserved),
        )

    def _nodes_of(self, request: SimulatedRequest) -> list[str]:
        """Return the nodes that a request may have reserved, by name."""
        name, priority = request.application.application, request.priority
        return sorted(
            node
            for node, each in self._on_node.items()
            if each == name and self._priority_on.get(node, priority) == priority
        )

    # --- what a descent reads -------------------------------------------------------------

    def over_limit(self, queue: QueueNode, application: ApplicationView) -> Resources | None:
        """Return how far a user is over the limit; None: also without the application's reservations."""
        model, user = queue.model, application.user
        assert model is not None
        if not model.limited:
            return NOTHING
        own_resources = self.could_end(application.application)
        if self._user_limits is None:
            if not model.is_over_limit(user):
                return NOTHING
            return None if model.is_over_limit(user, minus(NOTHING, own_resources)) else own_resources
        limit, held = self._user_limits.of(queue, user), self._user_limits.held(model, user)
        if limit is None or not self._user_limits.is_over(held, limit):
            return NOTHING
        counted = held if self._unlabelled is None else self._unlabelled.held(queue.path, user)
        return None if self._user_limits.is_over(minus(counted, own_resources), limit) else minus(held, limit)

    def is_over_without(self, queue: QueueNode, application: ApplicationView, size: Resources) -> bool:
        """Return whether a user is over the limit with ``size`` less."""
        model, user = queue.model, application.user
        assert model is not None
        if self._user_limits is None or not model.limited:
            return False
        held = minus(self._user_limits.held(model, user), size)
        return self._user_limits.is_over(held, self._user_limits.of(queue, user))

    def could_end(self, application: str) -> Resources:
        """Return what an application has reserved of the nodes without a label."""
        reserved = self.reserved if self._unlabelled is None else self._unlabelled.reserved
        return reserved.get(application, NOTHING)

    def could_end_below(self, queue: QueueNode) -> Resources:
        """Return the memory and vcores that are reserved below a parent, of the nodes without a label."""
        if self._unlabelled is None:
            return Resources(*queue.reserved[:2])
        return Resources(*self._unlabelled.below.get(queue.path, NOTHING)[:2])

    def only_reserving_before(self, queue: QueueNode, application: str) -> bool:
        """Return whether each application before one in its leaf, idle or not, has a reservation."""
        for name in self._names_in(queue):
            if name == application:
                return True
            if self.could_end(name) == NOTHING:
                return False
        return True

    def _names_in(self, queue: QueueNode) -> list[str]:
        """Return the activated applications of a leaf in serving order."""
        views = [view for view in self._applications if view.queue == queue.path and view.activated]
        model, used_mib = queue.model, self._used_mib
        if queue.fair and model is not None:
            views.sort(
                key=lambda view: (
                    used_mib.get(view.application, self._left_mib(view, model)),
                    view.submitted_at_ms,
                    view.rank,
                    view.application,
                )
            )
        else:
            views.sort(key=lambda view: (view.rank, view.application))
        return [view.application for view in views]

    def may_have_more(self, request: SimulatedRequest) -> bool:
        """Return whether a request may hold another reservation: fewer than containers, or long in vain.

        After some heartbeats of reserved nodes on which it did not fit a request may hold one more, the
        larger it is the later (``shouldAllocOrReserveNewContainer``).
        """
        name, size = request.application.application, request.size
        if name in self._on_node.values():
            held = len(self._nodes_of(request))
        else:  # no node of it is known
            held = self.reserved.get(name, NOTHING)[0] // size[0] if size[0] else 0
        if held < request.containers:
            return True
        largest = self.largest_node
        factor = max(part / whole for part, whole in zip(size, largest, strict=False) if whole)
        tries = self._in_vain.get((name, request.priority), self._in_vain.get((name, None), MANY))
        return int(tries / held * (1 - factor)) + request.containers > held

    def gives_up(self, request: SimulatedRequest, wanted_resources: Resources) -> bool:
        """Return whether an application has a reservation for a request that is large enough."""
        own_resources = self.reserved.get(request.application.application, NOTHING)
        if own_resources == NOTHING or not fits(wanted_resources, request.size):
            return False
        if any(self._priority_on.get(node) == request.priority for node in self._nodes_of(request)):
            return True
        known = [node for node, each in self._on_node.items() if each == request.application.application]
        if known and all(node in self._priority_on for node in known):
            return False
        return self._reserved_size(request.application, own_resources) == request.size


def _priority(parent: ParentView | None, queue: str) -> int | None:
    if parent is None or parent.order == "utilization":
        return None
    return parent.priorities.get(queue, 0)


def _below(node: QueueNode) -> Iterator[QueueNode]:
    node.blocked = NOTHING
    for child in node.in_order():
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
