"""The modelled scheduler: who would the capacity scheduler serve next?

Law: nothing is evicted that admits nobody. Before any victim is chosen, this model places all
pending asks of *all* queues into the room that is free or coming, in the scheduler's own order, and
then asks who would take the next room: victims are worth their while only as long as the answer is
a hurried asker. (facts/hadoop, section 5: leaf queues by used/guaranteed, a queue without guarantee
last; inside a queue by rank; an application's asks by request priority; an ask only within the
queue's maximum, the user's limit and the masters' limit, and only of activated applications.)

The order is the plain ``utilization`` policy; under ``priority-utilization`` a queue above its
guarantee may win earlier, so this model is on the careful side. Equal ratios: the larger guarantee
first, then the name. The scheduler lets a user step over the limit by one container; this
model does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from yarnctl.deciding.ledger import Order
from yarnctl.deciding.model import ApplicationView, QueueView, Snapshot
from yarnctl.units import NOTHING, Resources, fits, minus, plus

_SCALE = 1_000_000_000


class Wanted(NamedTuple):
    """Pending containers of one application and size; ``count`` of them."""

    application: ApplicationView
    size: Resources
    count: int


class Room:
    """Free room per node. Nodes are tried in the order of their names, each size from its own mark.

    A node that has no room for a size will not have any later (room only shrinks), so a mark never
    goes back: placing n containers costs n + nodes x sizes.
    """

    def __init__(self, free: Mapping[str, Resources], coming: Iterable[Order] = ()) -> None:
        self.free: dict[str, Resources] = dict(free)
        for order in coming:
            self.free[order.node] = plus(self.free.get(order.node, NOTHING), order.size)
        self._nodes: list[str] | None = None
        self._marks: dict[Resources, int] = {}

    def place(self, size: Resources) -> bool:
        """Place one container on the first node with room for it; False if there is none."""
        if self._nodes is None:
            self._nodes = sorted(self.free)
        nodes, free = self._nodes, self.free
        mark = self._marks.get(size, 0)
        while mark < len(nodes):
            room = free[nodes[mark]]
            if fits(size, room):
                free[nodes[mark]] = minus(room, size)
                self._marks[size] = mark
                return True
            mark += 1
        self._marks[size] = mark
        return False


class QueueModel:
    """One queue while the scheduler is played through; ``line`` holds what still waits."""

    __slots__ = ("am_used", "head", "line", "stuck", "used", "user_used", "view")

    def __init__(self, view: QueueView) -> None:
        self.view = view
        self.used = view.used
        self.am_used = view.am_used
        self.user_used: dict[str, Resources] = {}
        self.line: list[Wanted] = []
        self.stuck: list[Wanted] = []
        self.head = 0

    def key(self) -> tuple[int, int, int, str]:
        """Serving order: queues without guarantee last, lowest used/guaranteed, largest, name."""
        guaranteed = self.view.guaranteed
        if guaranteed[0] <= 0 and guaranteed[1] <= 0:
            return (1, self.used[0], 0, self.view.queue)
        ratio = max(
            used * _SCALE // part for used, part in zip(self.used, guaranteed, strict=True) if part > 0
        )
        return (0, ratio, -guaranteed[0], self.view.queue)

    def forbids(self, wanted: Wanted) -> str:
        """Return which limit keeps the queue from serving this ask now, or ""."""
        view, size, application = self.view, wanted.size, wanted.application
        if not fits(plus(self.used, size), view.maximum):
            return "the queue is at its maximum"
        if view.user_limit is not None:
            held = self.user_used.get(application.user, NOTHING)
            if not fits(plus(held, size), view.user_limit):
                return "the user is at the limit"
        if application.containers == 0 and view.am_limit is not None:
            if not fits(plus(self.am_used, size), view.am_limit):
                return "the queue's masters are at their limit"
        return ""

    def grant(self, wanted: Wanted) -> None:
        """Book one container."""
        self.used = plus(self.used, wanted.size)
        if self.view.user_limit is not None:
            user = wanted.application.user
            self.user_used[user] = plus(self.user_used.get(user, NOTHING), wanted.size)
        if wanted.application.containers == 0:
            self.am_used = plus(self.am_used, wanted.size)

    def take_back(self, user: str, size: Resources) -> None:
        """Book the end of one container."""
        self.used = minus(self.used, size)
        if self.view.user_limit is not None:
            self.user_used[user] = minus(self.user_used.get(user, NOTHING), size)


def model_queues(snapshot: Snapshot, coming: Iterable[Order]) -> dict[str, QueueModel]:
    """Set up the queues as they will stand once the coming room is free, with their pending lines."""
    queues = {view.queue: QueueModel(view) for view in snapshot.queues}
    limited = any(view.user_limit is not None for view in snapshot.queues)
    leaving = list(coming)
    owners = {order.victim for order in leaving}
    views: dict[str, ApplicationView] = {}
    pending: list[ApplicationView] = []
    for view in snapshot.applications:
        if view.asks:
            pending.append(view)
        if view.application in owners:
            views[view.application] = view
        if limited and view.queue in queues:
            held = queues[view.queue].user_used
            held[view.user] = plus(held.get(view.user, NOTHING), view.used)
    for order in leaving:
        if order.victim in views and views[order.victim].queue in queues:
            queues[views[order.victim].queue].take_back(views[order.victim].user, order.size)
    pending.sort(key=_serving_order)
    for view in pending:
        queue = queues.get(view.queue)
        if queue is not None and view.activated:
            queue.line.extend(
                Wanted(view, ask.size, ask.count) for ask in sorted(view.asks) if ask.count > 0
            )
    return queues


def _serving_order(view: ApplicationView) -> tuple[int, str]:
    return (view.rank, view.application)


def place_pending(queues: Mapping[str, QueueModel], room: Room) -> dict[str, int]:
    """Serve the queues from ``room``; leave what fits nowhere in ``stuck``; return placed per application."""
    placed: dict[str, int] = {}
    active = [queue for queue in queues.values() if queue.line]
    while active:
        queue = active[0] if len(active) == 1 else min(active, key=QueueModel.key)
        wanted = queue.line[queue.head]
        if not queue.forbids(wanted) and room.place(wanted.size):
            queue.grant(wanted)
            name = wanted.application.application
            placed[name] = placed.get(name, 0) + 1
            if wanted.count > 1:
                queue.line[queue.head] = wanted._replace(count=wanted.count - 1)
                continue
        else:
            queue.stuck.append(wanted)
        queue.head += 1
        if queue.head == len(queue.line):
            active.remove(queue)
    return placed


class Admission(NamedTuple):
    """Containers of one application that evicted room would be given to; by size, in serving order."""

    application: ApplicationView
    needs: dict[Resources, int]


def next_takers(
    queues: Mapping[str, QueueModel],
    victims: tuple[str, ...],
    is_asker: Callable[[ApplicationView], bool],
    allowance: Mapping[str, int],
    largest_node: Resources,
) -> tuple[dict[str, Admission], dict[str, str]]:
    """Play on as if room appeared: who is admitted before anybody who must not be served?

    ``victims`` are the queues that give; their evicted tasks ask again at once, so a victim queue
    that comes first takes its room back and ends the sequence. ``allowance`` caps the containers
    per application (pending - promised). Returns the admissions in serving order, and for
    askers that got less than they want the reason why.
    """
    admitted: dict[str, Admission] = {}
    refused: dict[str, str] = {}
    left = dict(allowance)
    heads = {name: 0 for name, queue in queues.items() if queue.stuck}
    givers = [queues[name] for name in victims if name in queues]
    while heads:
        _skip_unservable(queues, heads, left, largest_node, refused)
        waiting = [queues[name] for name in heads]
        if not waiting:
            break
        queue = min(waiting, key=QueueModel.key)
        wanted = queue.stuck[heads[queue.view.queue]]
        name = wanted.application.application
        if not is_asker(wanted.application):
            _stop(queues, heads, is_asker, f"room would be given to {name} in {queue.view.queue}", refused)
            break
        giver = max(givers, key=QueueModel.key, default=None)
        if giver is not None and giver is not queue and giver.key() < queue.key():
            _stop(queues, heads, is_asker, f"{giver.view.queue} would take its room back", refused)
            break
        admission = admitted.setdefault(name, Admission(wanted.application, {}))
        admission.needs[wanted.size] = admission.needs.get(wanted.size, 0) + 1
        queue.grant(wanted)
        if giver is not None:
            giver.used = minus(giver.used, wanted.size)
        left[name] = left.get(name, 0) - 1
        if wanted.count > 1:
            queue.stuck[heads[queue.view.queue]] = wanted._replace(count=wanted.count - 1)
        else:
            heads[queue.view.queue] += 1
    return admitted, refused


def _skip_unservable(
    queues: Mapping[str, QueueModel],
    heads: dict[str, int],
    left: Mapping[str, int],
    largest_node: Resources,
    refused: dict[str, str],
) -> None:
    """Move every queue's head past asks that the scheduler would not serve; drop empty queues."""
    for name in list(heads):
        queue = queues[name]
        place = heads[name]
        while place < len(queue.stuck):
            wanted = queue.stuck[place]
            application = wanted.application.application
            why = "" if fits(wanted.size, largest_node) else "no node is large enough"
            why = why or queue.forbids(wanted)
            if not why and left.get(application, 1) <= 0:
                why = "what is missing is on its way"
            if not why:
                break
            refused.setdefault(application, why)
            place += 1
        heads[name] = place
        if place == len(queue.stuck):
            del heads[name]


def _stop(
    queues: Mapping[str, QueueModel],
    heads: Mapping[str, int],
    is_asker: Callable[[ApplicationView], bool],
    why: str,
    refused: dict[str, str],
) -> None:
    """Give every asker that still waits the reason why the sequence ended."""
    for name, place in heads.items():
        for wanted in queues[name].stuck[place:]:
            if is_asker(wanted.application):
                refused.setdefault(wanted.application.application, why)


def over_guarantee(queue: QueueView, used: Resources, tolerance_ppm: int) -> bool:
    """Say whether a queue uses more than its guarantee x (1 + tolerance) in some component."""
    limit = 1_000_000 + tolerance_ppm
    return any(
        part * 1_000_000 > whole * limit for part, whole in zip(used, queue.guaranteed, strict=True)
    )


def total_free(free: Mapping[str, Resources]) -> Resources:
    """Return the sum of the free room, wherever it is (the paper's "cluster is full")."""
    total = NOTHING
    for room in free.values():
        total = plus(total, room)
    return total


def slots(room: Resources, size: Resources) -> int:
    """Return how many containers of ``size`` the sum of free room would hold."""
    counts = [part // unit for part, unit in zip(room, size, strict=True) if unit > 0]
    return max(0, min(counts)) if counts else 0


__all__ = [
    "Admission",
    "QueueModel",
    "Room",
    "Wanted",
    "model_queues",
    "next_takers",
    "over_guarantee",
    "place_pending",
    "slots",
    "total_free",
]
