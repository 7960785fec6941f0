"""The scheduler simulation: which application would the capacity scheduler serve next?

A container is evicted only if a preempting application's request is served by it. This model places all
pending requests of *all* queues into the free and expected capacity, in the scheduler's own order, and
computes which requests the next free containers would go to: evicting is allowed only while these are a
preempting application's. (facts/hadoop, section 5: leaf queues by used/guaranteed, a queue without guarantee
last; inside a queue by rank; an application's requests by priority; a request only within the queue's maximum
and the user's limit, and only of activated applications: the limit on masters decides activation, so their
masters are counted already.) A queue gives only what it has beyond its guarantee.

This is the model of a flat tree, ordered by ``utilization``; :mod:`yarnctl.deciding.tree_model` is that of
a tree of queues. Equal ratios: the larger guarantee first, then the name.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple

from yarnctl.deciding.model import ApplicationView, QueueView, Snapshot
from yarnctl.deciding.order import Order
from yarnctl.deciding.reasons import demand
from yarnctl.units import NOTHING, Resources, at_least, fits, minus, plus, shares, times

SCALE = 1_000_000_000
_NO_LIMITS: Mapping[str, Resources] = MappingProxyType({})

Key = tuple[int, int, int, str]
"""(0, or 1 without a guarantee; used/guaranteed; -guaranteed memory; name)."""


class SimulatedRequest(NamedTuple):
    """Pending ``containers`` of one application, one size and one request ``priority``."""

    application: ApplicationView
    size: Resources
    containers: int
    priority: int = 0


class EndingContainer(NamedTuple):
    """A container that is to be freed, beside those of orders."""

    victim: str
    node: str
    size: Resources


class FreeCapacity:
    """Free capacity per node. Nodes are tried in the order of their names, each size from its own mark.

    ``held``: what is free on nodes that :meth:`hold` has taken out.

    A node without enough free capacity for a size will not have it later (it only shrinks), so a mark never
    goes back: placing n containers costs n + nodes x sizes.
    """

    def __init__(self, free: Mapping[str, Resources], coming: Iterable[Order | EndingContainer] = ()) -> None:
        self.free: dict[str, Resources] = dict(free)
        for order in coming:
            self.free[order.node] = plus(self.free.get(order.node, NOTHING), order.size)
        self.held: dict[str, Resources] = {}
        self._nodes = sorted(self.free)
        self._marks: dict[Resources, int] = {}

    def add_node(self, node: str, room_resources: Resources) -> None:
        """Add what is free on a node, before anything is placed."""
        if node not in self.free:
            insort(self._nodes, node)
        self.free[node] = plus(self.free.get(node, NOTHING), room_resources)

    def round_of_nodes(self) -> list[str]:
        """Return the nodes in the order of their next heartbeats."""
        return self._nodes

    def fits(self, size: Resources) -> bool:
        """Return whether placing ``size`` has not failed yet."""
        return self._marks.get(size, 0) < len(self._nodes)

    def place(self, size: Resources) -> bool:
        """Place one container on the first node with enough free capacity; False if there is none."""
        nodes, free = self._nodes, self.free
        mark = self._marks.get(size, 0)
        while mark < len(nodes):
            if fits(size, free[nodes[mark]]):
                free[nodes[mark]] = minus(free[nodes[mark]], size)
                self._marks[size] = mark
                return True
            mark += 1
        self._marks[size] = mark
        return False

    def has_node(self, size: Resources) -> bool:
        """Return whether a node has enough free capacity for ``size``."""
        mark = self._marks.get(size, 0)
        while mark < len(self._nodes) and not fits(size, self.free[self._nodes[mark]]):
            mark += 1
        self._marks[size] = mark
        return mark < len(self._nodes)

    def hold(self, node: str) -> None:
        """Take a node out of the free capacity."""
        self.held[node], self.free[node] = self.free[node], NOTHING


class QueueModel:
    """One queue during the simulation.

    ``leaving_mib``: application -> memory of its containers that will be free, of all partitions, less
    what it has been granted in others.
    ``granted_mib``: application -> memory that it has been granted here.
    ``shared``: the limit of each user follows what all of them hold (``Snapshot.user_percents``).
    ``total``: of the cluster.

    ``applications`` are those of all queues, ``pending`` its own activated ones with requests; they are put
    in serving order only when :meth:`waiting` is called, for most queues never.
    """

    __slots__ = (
        "_applications",
        "_largest",
        "_waiting",
        "granted_mib",
        "head",
        "leaving_mib",
        "limited",
        "pending",
        "total",
        "used",
        "user_limits",
        "user_used",
        "view",
    )

    def __init__(
        self,
        view: QueueView,
        applications: Sequence[ApplicationView] = (),
        user_limits: Mapping[str, Resources] = _NO_LIMITS,
        *,
        shared: bool = False,
        total: Resources = NOTHING,
    ) -> None:
        self.view = view
        self.total = total
        self.used = view.used
        self.user_limits = user_limits
        self.limited = shared or view.user_limit is not None or bool(user_limits)
        self._applications = applications
        self._largest: Resources | None = None
        self.user_used: dict[str, Resources] = {}
        self.leaving_mib: dict[str, int] = {}
        self.granted_mib: dict[str, int] = {}
        self.pending: list[ApplicationView] = []
        self.head = 0
        self._waiting: list[SimulatedRequest] | None = None

    @property
    def largest_task(self) -> Resources:
        """The smallest size that is enough for any task that runs here; computed on first use."""
        if self._largest is None:
            name = self.view.queue
            mine = [view for view in self._applications if view.queue == name and view.containers > 1]
            largest = NOTHING
            for view in mine:
                largest = at_least(largest, view.task_size)
            self._largest = largest
        return self._largest

    def waiting(self) -> list[SimulatedRequest]:
        """Return the pending requests, in serving order: applications by rank, their requests by priority."""
        if self._waiting is None:
            self.pending.sort(key=_serving_order)
            self._waiting = [
                SimulatedRequest(view, request.size, request.count, request.priority)
                for view in self.pending
                for request in (sorted(view.requests) if len(view.requests) > 1 else view.requests)
                if request.count > 0
            ]
        return self._waiting

    def add(self, view: ApplicationView) -> None:
        """Add an application with its pending requests, at its place in the line."""
        line = self.waiting()[self.head :]
        line += [
            SimulatedRequest(view, request.size, request.count, request.priority)
            for request in sorted(view.requests)
        ]
        line.sort(key=lambda each: _serving_order(each.application))
        self.pending.append(view)
        self.leave(line)

    def copy(self) -> QueueModel:
        """Return a model that can be served without a change of this one."""
        found = QueueModel(self.view, self._applications, self.user_limits, total=self.total)
        found.used, found.limited, found._largest = self.used, self.limited, self._largest
        found.user_used, found.leaving_mib = dict(self.user_used), self.leaving_mib
        found.granted_mib = dict(self.granted_mib)
        found.pending, found.head = self.pending, self.head
        found._waiting = None if self._waiting is None else self._waiting.copy()
        return found

    def reorder(self, used_mib: Mapping[str, int]) -> None:
        """Put the application first that uses the least memory; each keeps the order of its requests.

        Of equal use the older is first, whatever the priorities (``FairOrderingPolicy``).
        """
        line = self.waiting()
        line[self.head :] = sorted(
            line[self.head :],
            key=lambda each: (
                used_mib[each.application.application],
                each.application.submitted_at_ms,
                *_serving_order(each.application),
            ),
        )

    def leave(self, stuck: list[SimulatedRequest]) -> None:
        """Replace the pending requests by those that could not be placed."""
        self._waiting, self.head = stuck, 0

    def key(self, more: Resources = NOTHING) -> Key:
        """Serving order: queues without guarantee last, lowest used/guaranteed, largest, name."""
        return serving_key(plus(self.used, more), self.view.guaranteed, self.view.queue)

    def forbids(
        self, request: SimulatedRequest, more: Resources = NOTHING, relieved: Mapping[str, None] | None = None
    ) -> demand.TriggerReason | None:
        """Return which limit keeps the queue, ``more`` served, from serving this request; None: none does.

        ``relieved``: the containers come from this same queue, and from these users, so that neither
        its usage nor (perhaps) theirs grows.
        """
        view, application = self.view, request.application
        size = plus(request.size, more)
        if relieved is None and not fits(plus(self.used, size), view.maximum):
            return demand.QueueAtMaximum()
        user = application.user
        if self.limited and user not in (relieved or {}) and self.is_over_limit(user, more):
            return demand.UserAtLimit()
        return None

    def is_over_limit(self, user: str, more: Resources = NOTHING) -> bool:
        """Return whether a user, ``more`` served, is over the user limit: the one that crosses it is given.

        The ResourceManager's own figure wins over the limit by configuration. With other resource types the
        shares of the cluster are compared, the larger one first: a guarantee is cut off to whole GPUs.
        """
        limit = self.user_limits.get(user, self.view.user_limit)
        if limit is None:
            return False
        held = plus(self.user_used.get(user, NOTHING), more)
        if len(self.total) > 2:
            return shares(held, self.total) > shares(limit, self.total)
        return not fits(held, limit)

    def hold(self, user: str, size: Resources) -> None:
        """Count ``size`` as used or reserved by a user, where users are limited."""
        if self.limited:
            self.user_used[user] = plus(self.user_used.get(user, NOTHING), size)

    def grant(self, request: SimulatedRequest, count: int = 1, place: int | None = None) -> None:
        """Count ``count`` containers of the pending request at ``place`` (None: the first) as granted."""
        size = times(request.size, count)
        name = request.application.application
        self.granted_mib[name] = self.granted_mib.get(name, 0) + size.memory_mib
        self.used = plus(self.used, size)
        self.hold(request.application.user, size)
        line, place = self.waiting(), self.head if place is None else place
        if request.containers > count:
            line[place] = request._replace(containers=request.containers - count)
        elif place == self.head:
            self.head += 1
        else:
            del line[place]


def serving_key(used: Resources, guaranteed_resources: Resources, queue: str) -> Key:
    """Return the place of a queue among its siblings under the policy ``utilization``."""
    if guaranteed_resources[0] <= 0 and guaranteed_resources[1] <= 0:
        return (1, used[0], 0, queue)
    by_memory = used[0] * SCALE // guaranteed_resources[0] if guaranteed_resources[0] > 0 else 0
    by_vcores = used[1] * SCALE // guaranteed_resources[1] if guaranteed_resources[1] > 0 else 0
    ratio = max(by_memory, by_vcores)
    if len(guaranteed_resources) > 2:
        others = zip(used[2:], guaranteed_resources[2:], strict=False)
        ratio = max([ratio, *(part * SCALE // whole for part, whole in others if whole > 0)])
    return (0, ratio, -guaranteed_resources[0], queue)


def below_guarantee(key: Key) -> bool:
    """Return whether a queue with this key uses less than its guarantee."""
    return key[0] == 0 and key[1] < SCALE


def _serving_order(view: ApplicationView) -> tuple[int, str]:
    return (view.rank, view.application)


def model_queues(
    snapshot: Snapshot,
    coming: Iterable[Order | EndingContainer],
    elsewhere: Iterable[Order | EndingContainer] = (),
) -> dict[str, QueueModel]:
    """Make the queues as they will be once the expected capacity is free, with their pending requests.

    Those of a queue that is stood aside for are not served: YARN has given its containers to others.
    ``elsewhere``: what ends in other partitions, for a fair leaf orders by what is used of all.
    """
    limits = snapshot.user_limits
    queues = {
        view.queue: QueueModel(
            view,
            snapshot.applications,
            limits.get(view.queue, _NO_LIMITS),
            shared=view.queue in snapshot.user_percents,
            total=at_least(snapshot.cluster_total, snapshot.total),
        )
        for view in snapshot.queues
    }
    limited = {path: queue.user_used for path, queue in queues.items() if queue.limited}
    reserved = snapshot.reserved
    leaving: dict[str, Resources] = {}
    leaving_mib: Counter[str] = Counter()
    for order in coming:
        leaving[order.victim] = plus(leaving.get(order.victim, NOTHING), order.size)
        leaving_mib[order.victim] += order.size.memory_mib
    for order in elsewhere:
        leaving_mib[order.victim] += order.size.memory_mib
    for view in [view for view in snapshot.applications if view.requests]:
        queue = queues.get(view.queue)
        if queue is not None and view.activated and view.queue not in snapshot.aside:
            queue.pending.append(view)
    for view in snapshot.applications if limited else ():
        user_used = limited.get(view.queue)
        if user_used is not None:
            held = plus(view.used, reserved[view.application]) if view.application in reserved else view.used
            user_used[view.user] = plus(user_used[view.user], held) if view.user in user_used else held
    for view in snapshot.applications if leaving_mib else ():
        queue = queues.get(view.queue)
        if queue is None or view.application not in leaving_mib:
            continue
        queue.leaving_mib[view.application] = leaving_mib[view.application]
        if view.application in leaving:
            size = leaving[view.application]
            queue.used = minus(queue.used, size)
            if queue.limited:
                queue.user_used[view.user] = minus(queue.user_used.get(view.user, NOTHING), size)
    return queues


def count_grants(queues: Mapping[str, QueueModel], elsewhere: Mapping[str, QueueModel]) -> None:
    """Let fair leaves order by what their applications have been granted in another partition, too."""
    for path, queue in queues.items():
        for name, granted_mib in elsewhere[path].granted_mib.items():
            queue.leaving_mib[name] = queue.leaving_mib.get(name, 0) - granted_mib


def place_pending(queues: Mapping[str, QueueModel], free: FreeCapacity) -> dict[str, int]:
    """Serve the queues from the free capacity; the rest stays pending; return placed per application."""
    placed: dict[str, int] = {}
    if not free.free:
        return placed
    active = [queue for queue in queues.values() if queue.waiting()]
    stuck: dict[str, list[SimulatedRequest]] = {queue.view.queue: [] for queue in active}
    while active:
        queue = active[0] if len(active) == 1 else min(active, key=QueueModel.key)
        wanted = queue.waiting()[queue.head]
        if free.fits(wanted.size) and not queue.forbids(wanted) and free.place(wanted.size):
            queue.grant(wanted)
            name = wanted.application.application
            placed[name] = placed.get(name, 0) + 1
        else:
            stuck[queue.view.queue].append(wanted)
            queue.head += 1
        if queue.head == len(queue.waiting()):
            active.remove(queue)
    for name, left in stuck.items():
        queues[name].leave(left)
    return placed


def own_limits(
    queues: Mapping[str, QueueModel], largest_node: Resources
) -> dict[str, demand.TriggerReason | None]:
    """Return the limit that keeps the first pending request of each application pending (None: none does)."""
    found: dict[str, demand.TriggerReason | None] = {}
    for queue in queues.values():
        for wanted in queue.waiting():
            name, is_large = wanted.application.application, not fits(wanted.size, largest_node)
            if name not in found:
                found[name] = demand.NoNodeLargeEnough() if is_large else queue.forbids(wanted)
    return found


class Servable(NamedTuple):
    """Containers that the capacity of evicted tasks would go to; by size, in serving order."""

    application: ApplicationView
    shortfalls: dict[Resources, int]


class SchedulerSimulation:
    """Continue as if containers became free: which requests are served before one that must not be served?

    ``victims`` are the preemptable queues; their evicted tasks request containers again at once, so a
    preemptable queue that is served first takes them back and ends the sequence. ``allowance`` limits the
    containers per application (pending - promised). ``relieved`` (deadline mode): the queue gives to itself,
    and these are the users of the preemptable applications. ``admitted`` has the admissions in serving order,
    ``refused`` the reasons of requesters that got less than their demand.
    """

    def __init__(
        self,
        queues: Mapping[str, QueueModel],
        victims: tuple[str, ...],
        is_requester: Callable[[ApplicationView], bool],
        allowance: Mapping[str, int],
        largest_node: Resources,
        relieved: Mapping[str, None] | None = None,
        resource_names: Sequence[str] = (),
    ) -> None:
        self.is_requester = is_requester
        self.resource_names = resource_names
        self.relieved = relieved
        self.left = dict(allowance)
        self.largest_node = largest_node
        self.admitted: dict[str, Servable] = {}
        self.refused: dict[str, demand.TriggerReason] = {}
        self.active = [queue for queue in queues.values() if queue.pending]
        self.preemptable = [queues[name] for name in victims if name in queues]
        while self.active and self._grant_next():
            pass

    def _grant_next(self) -> bool:
        """Serve the next request; False if it is not a requester's."""
        queue = min(self.active, key=QueueModel.key)
        wanted = self._servable(queue)
        if wanted is None:
            self.active.remove(queue)
            return True
        name = wanted.application.application
        if not self.is_requester(wanted.application):
            return self._stop(demand.RoomGoesTo(name, queue.view.queue))
        preempted = (
            queue if self.relieved is not None else max(self.preemptable, key=QueueModel.key, default=None)
        )
        evicted = self._evicted(wanted, queue, preempted)
        if preempted is not None and preempted is not queue:
            # Free only once the preemptable queue has lost them: which queue would be first then?
            after = preempted.key(times(evicted, -1))
            if after < queue.key():
                return self._stop(demand.QueueTakesBack(preempted.view.queue))
            if below_guarantee(after):
                return self._stop(demand.QueueBelowGuarantee(preempted.view.queue))
        count = self._run(queue, wanted, preempted, min(wanted.containers, self.left.get(name, 0)))
        needs = self.admitted.setdefault(name, Servable(wanted.application, {})).shortfalls
        needs[wanted.size] = needs.get(wanted.size, 0) + count
        queue.grant(wanted, count)
        if preempted is not None:
            preempted.used = minus(preempted.used, times(evicted, count))
        self.left[name] = self.left.get(name, 0) - count
        return True

    @staticmethod
    def _evicted(request: SimulatedRequest, queue: QueueModel, preempted: QueueModel | None) -> Resources:
        """Return what the preemptable queue loses for one container: at most one of its largest tasks.

        Inside one queue (deadlines) nothing changes: the victim's loss is its own queue's gain.
        """
        if preempted is None or preempted is queue:
            return request.size
        return at_least(request.size, preempted.largest_task)

    def _servable(self, queue: QueueModel) -> SimulatedRequest | None:
        """Move the queue's head past requests that the scheduler would not serve; None: no more."""
        line = queue.waiting()
        while queue.head < len(line):
            wanted = line[queue.head]
            name = wanted.application.application
            why: demand.TriggerReason | None = demand.NoNodeLargeEnough()
            if fits(wanted.size, self.largest_node):
                why = queue.forbids(wanted, relieved=self.relieved)
            if why is None and self.is_requester(wanted.application) and self.left.get(name, 0) <= 0:
                why = demand.OnItsWay()
            if why is None and len(wanted.size) > 2:
                givers = [queue] if self.relieved is not None else self.preemptable
                why = held_by_none(wanted.size, [giver.used for giver in givers], self.resource_names)
            if why is None:
                return wanted
            self.refused.setdefault(name, why)
            queue.head += 1
        return None

    def _run(
        self, queue: QueueModel, request: SimulatedRequest, preempted: QueueModel | None, most: int
    ) -> int:
        """Return how many containers in a row the queue would be served, at most ``most``.

        Every condition can only turn from true to false along the run (the queue's ratio grows,
        its preempted's falls), so the end is found by bisection. Several preemptable: one by one.
        """
        if len(self.preemptable) > 1:
            return 1
        others = [other for other in self.active if other is not queue]
        evicted = self._evicted(request, queue, preempted)

        def still(served: int) -> bool:
            more, less = times(request.size, served), times(evicted, -served)
            next_less = times(evicted, -served - 1)
            key = queue.key(NOTHING if preempted is queue else more)
            if queue.forbids(request, more, self.relieved):
                return False
            if preempted is not None and preempted is not queue:
                after = preempted.key(next_less)
                if after < key or below_guarantee(after):
                    return False
            return all(key < other.key(less if other is preempted else NOTHING) for other in others)

        low, high = 1, most
        while low < high:
            middle = (low + high + 1) // 2 if high - low < most - 1 else high
            if still(middle - 1):
                low = middle
            else:
                high = middle - 1
        return low

    def _stop(self, why: demand.TriggerReason) -> bool:
        """Give every requester with pending requests the reason why the sequence ended."""
        for queue in self.active:
            for view in queue.pending:
                if self.is_requester(view):
                    self.refused.setdefault(view.application, why)
        return False


def held_by_none(
    size: Resources, held: Iterable[Resources], names: Sequence[str]
) -> demand.NoQueueHolds | None:
    """Return the types of a size of which none of ``held`` has enough to give; None: one has.

    ``names``: those of the vectors' components after memory and vcores.
    """
    lacking = tuple(
        name
        for place, name in enumerate(names[: len(size) - 2], 2)
        if not any(size[place] <= (used[place] if place < len(used) else 0) for used in held)
    )
    return demand.NoQueueHolds(lacking) if lacking else None


def over_guarantee(queue: QueueView, used: Resources, tolerance_ppm: int) -> bool:
    """Return whether a queue uses more than its guarantee x (1 + tolerance) in some component."""
    limit = 1_000_000 + tolerance_ppm
    parts = zip_longest(used, queue.guaranteed, fillvalue=0)
    return any(part * 1_000_000 > whole * limit for part, whole in parts)


def total_free(free: Mapping[str, Resources]) -> Resources:
    """Return the sum of the free capacity, wherever it is (the paper's "cluster is full")."""
    total = NOTHING
    for size in free.values():
        total = plus(total, size)
    return total


def slots(free: Resources, size: Resources) -> int:
    """Return how many containers of ``size`` fit into the sum of free capacity."""
    counts = [part // unit for part, unit in zip_longest(free, size, fillvalue=0) if unit > 0]
    return max(0, min(counts)) if counts else 0
