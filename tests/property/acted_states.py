"""Random states of a cluster in which yarnctl decides, and what becomes of each container that it frees.

Law: a state is a function of its seed. The emulator's scheduler has come to it by itself. The whole
controller decides on the snapshot, the chosen containers end, their tasks request again at once, and the
nodes have heartbeats until nothing changes. What the orders brought is the difference to the same state
without orders.

In part of the states, if so wanted, half of the nodes have a label.

* An order is *in vain* if its requester received fewer containers than its orders were to serve.
* A state is *missed* if yarnctl orders nothing, and the end of one container that it may take would have
  served production. Victims are tried in copies of the state, at most ``TRIED_MAX``.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from typing import NamedTuple

import msgspec

from emulator.cluster.entities import AM, Application, Ask, Container, Node, NodeReservation, ParentConfig
from emulator.cluster.entities import TreeLeafConfig as Leaf
from emulator.cluster.queues.tree_queue import SharedLeaf
from emulator.cluster.resource_manager import application_id, attempt_id, container_id
from emulator.virtual.tree_views import highest_user_limit, parent_views, user_percents
from tests.property.tree_grants import FINE, NODE_SLOTS, ORDERS, WHOLE, RandomCluster
from tests.unit.scheduler_files import pair
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.forecast import over_guarantee
from yarnctl.deciding.model import ApplicationView, Observation, QueueView, Snapshot, Suspend, TaskView
from yarnctl.deciding.records import Refusal
from yarnctl.deciding.settings import DEFAULT, Settings
from yarnctl.units import NOTHING, Resources, at_least, fits, minus, plus, times

RANKS_PER_PRIORITY = 1 << 32
NOW_MS = 1000
TRIED_MAX = 12
TOLERANCE_PPM = round(DEFAULT.utilisation_tolerance_ratio * 1_000_000)
RETURNING = {5: 1, 10: 2, 20: 3}
"""Request priority -> that of a task that returns, where these are served first."""
LABEL = "x"
CAPACITIES = ("percentage", "weight", "absolute")


class ActedCluster(RandomCluster):
    """A cluster whose leaves are production, research or neither; masters are containers of one slot."""

    def __init__(self, seed: int, *, labelled: bool = False) -> None:
        draw = random.Random(f"features of {seed}")
        self.guarantees = draw.random() < 0.25
        self.capacities = draw.choice(CAPACITIES)
        self.size_max = draw.choice((1, 1, 2, 3))
        self.skewed = draw.random() < 0.2
        self.limits_users = draw.random() < 0.4
        self.prioritised = draw.random() < 0.2
        self.am_ratio = draw.choice((1.0, 1.0, 0.3))
        self.settled = draw.random() < 0.75
        self.nodes_expected = draw.randint(2, 6)
        self.labelled, self.is_shared = labelled and draw.random() < 0.7, draw.random() < 0.5
        self.wanted: dict[int, list[tuple[Ask, int]]] = {}
        self.starting: list[Application] = []
        self.preempting: tuple[str, ...] = ()
        self.preemptable: tuple[str, ...] = ()
        self.serves_production = False
        self.returns_first = draw.random() < 0.5
        super().__init__(seed, tuple(range(1, self.size_max + 1)), draw.choice((FINE, WHOLE)))
        self.chance.shuffle(self.rm.nodes)  # heartbeats have an order that yarnctl does not know
        self.fill()
        for _ in range(self.chance.randint(0, 6)):
            self.change()
        self.fill()
        self._request_for_production()
        if self.settled:
            self.fill()

    def _request_for_production(self) -> None:
        """Let the applications of production request tasks, and submit some more of them."""
        chance = self.chance
        self.serves_production = True
        for app in list(self.rm.applications.values()):
            if app.queue.name in self.preempting and app.containers and chance.random() < 0.8:
                self.rm.allocate(app, self._requests())
        for _ in range(chance.choice((0, 0, 1, 2))):
            self.submit()

    def _grow(self, name: str, least: float, most: float, depth: int) -> None:
        self._add_queue(name, least, most, depth)
        if name:
            return
        leaves = [leaf.name for leaf in self.leaves]
        self.chance.shuffle(leaves)
        count = max(1, len(leaves) // 3)
        self.preempting, self.preemptable = tuple(leaves[:count]), tuple(leaves[count : 3 * count + 1])

    def _add_queue(self, name: str, least: float, most: float, depth: int) -> None:
        chance = self.chance
        priority = chance.choice((0, 0, 1, 3))
        absolute = most_resources = None
        if self.capacities == "absolute" and name:
            node_slots = self.nodes_expected * NODE_SLOTS
            absolute = times(self.slot, round(node_slots * least))
            most_resources = times(self.slot, round(node_slots * most)) if most < 1 else None
        if depth == 3 or (depth and chance.random() < 0.5):
            factor = chance.choice((None, 1.0, 2.0)) if self.limits_users else None
            self.leaves.append(
                Leaf(
                    name=name, capacity_ratio=least, maximum_ratio=most, priority=priority,
                    fair=chance.random() < 0.2, user_limit_factor=factor, am_ratio=self.am_ratio,
                    user_percent=chance.choice((100, 50, 25)) if self.limits_users else 100,
                    absolute=absolute, absolute_maximum=most_resources, labels={LABEL: (least, most)},
                )
            )  # fmt: skip
            return
        self.parents.append(
            ParentConfig(
                name=name, capacity_ratio=least, maximum_ratio=most, priority=priority,
                order=chance.choice(ORDERS),  # type: ignore[arg-type]
                absolute=absolute, absolute_maximum=most_resources, labels={LABEL: (least, most)},
            )
        )  # fmt: skip
        parts = [chance.randint(1, 6) for _ in range(chance.randint(2, 4))]
        for letter, part in zip("abcd", parts, strict=False):
            share = least * part / sum(parts)
            unlimited = self.capacities == "weight" or chance.random() < 0.6
            limit = most if unlimited else share + (most - share) * chance.random()
            self._add_queue(f"{name}.{letter}" if name else letter, share, limit, depth + 1)

    def add_node(self, node: Node) -> None:
        """Add a node; those with an odd number have the label, if the cluster has one."""
        if self.labelled and not self.rm.nodes:
            self.scheduler.set_labels({LABEL: not self.is_shared})
        node.label = LABEL if self.labelled and node.index % 2 else ""
        super().add_node(node)

    def submit(self) -> None:
        """Submit an application: of production once the cluster has been filled."""
        chance = self.chance
        names = [leaf.name for leaf in self.leaves]
        if self.serves_production:
            names = list(self.preempting)
        elif chance.random() < 0.6:
            names = list(self.preemptable) or names
        number = len(self.rm.applications) + 1
        queue = self.scheduler.queues[chance.choice(names)]
        app = Application(number, queue, chance.choice(("ann", "ben")), 0, self.slot.memory_mib)
        self.wanted[number] = self._requests()
        if queue.name in self.preempting and not self.serves_production and chance.random() < 0.7:
            self.wanted[number] = []  # a master alone, for now
        if self.labelled and chance.random() < 0.3:
            app.label = LABEL
        if self.prioritised:
            app.set_priority(chance.randint(0, 2))
        self.rm.submit(app, self.slot)

    def _requests(self) -> list[tuple[Ask, int]]:
        return [
            (Ask(priority, *pair(self._size()), off_switch=True), self.chance.randint(1, 12))
            for priority in self.chance.sample((5, 10, 20), self.chance.randint(1, 2))
        ]

    def _size(self) -> Resources:
        slots = self.chance.choice(self.sizes)
        memory_mib, vcores = times(self.slot, slots)
        return (
            Resources(memory_mib, vcores * self.chance.randint(1, 2))
            if self.skewed
            else Resources(memory_mib, vcores)
        )

    def launch_master(self, container: Container) -> None:
        """Note a new master: it takes seconds to start, and a decision's containers are granted before."""
        container.app.am_container = None
        self.starting.append(container.app)

    def fill(self) -> None:
        """Let nodes have heartbeats, and new masters request their tasks, until nothing changes."""
        self.serve()
        while self.starting:
            for app in self.starting:
                self.rm.allocate(app, self.wanted[app.number])
            self.starting.clear()
            self.serve()

    def change(self) -> None:
        """End one task, or (one time in four) submit an application."""
        tasks = self.tasks()
        if not tasks or self.chance.random() < 0.25:
            self.submit()
        else:
            self.scheduler.free(self.chance.choice(tasks), 0)

    def tasks(self) -> list[Container]:
        """Return the running containers that are no masters, in the order of their grants."""
        return [container for container in self.scheduler.live.values() if container.kind != AM]

    def end(self, container: Container) -> None:
        """End a task, which requests a container again at once."""
        self.rm.kill_now(container, "killed", 0)
        app = container.app
        app.mail_ended.clear()
        priority = RETURNING.get(container.priority, container.priority)
        if not self.returns_first:
            priority = container.priority
        ask = Ask(priority, container.memory_mib, container.vcores, off_switch=True)
        self.rm.allocate(app, [(ask, 1)])

    def beat(self) -> list[Container]:
        """Let all nodes have heartbeats until nothing changes; return the new containers."""
        granted = super().beat()
        for container in granted:
            container.app.mail_granted.clear()
        return granted

    def copied(self) -> ActedCluster:
        """Return a copy of this state. Nodes first: every container is reached through one."""
        copied = copy.deepcopy((self.rm.nodes, self))[1]
        for name, queue in copied.scheduler.queues.items():  # a copy would have the limit of now for ever
            queue.user_mib = self.scheduler.queues[name]._fixed_mib  # type: ignore[attr-defined]
        return copied

    # --- what yarnctl sees --------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the snapshot as it is read from a ResourceManager: a flat tree has no parents."""
        if self.labelled:
            parts = {label: self._part(label) for label in ("", LABEL)}
            return self._with_users(msgspec.structs.replace(parts[""], labelled={LABEL: parts[LABEL]}))
        seen = super().snapshot()
        root = seen.parents[0]
        sizes: dict[str, set[Resources]] = {}
        for view in seen.applications:
            sizes.setdefault(view.queue, set()).update(request.size for request in view.requests)
        uneven = any(len(each) > 1 for each in sizes.values())
        is_flat = (
            len(seen.parents) == 1 and root.order == "utilization" and not root.fair and not seen.reserved
        )
        found = msgspec.structs.replace(
            seen,
            free_by_node={node: size for node, size in seen.free_by_node.items() if size != NOTHING},
            parents=() if is_flat and not uneven else seen.parents,
            user_limits=self._user_limits(seen),
        )
        return self._with_users(found) if found.parents else found

    def _with_users(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with what limits the users of a leaf in common."""
        smallest, percents = self.scheduler.root.smallest, user_percents(self.scheduler)
        return msgspec.structs.replace(snapshot, smallest=smallest, user_percents=percents)

    def _part(self, label: str) -> Snapshot:
        """Return the partition of a label, as ``attach.observing`` reads it."""
        scheduler, seen = self.scheduler, super().snapshot()
        nodes = [node for node in self.rm.nodes if node.label == label]
        names = {node.name for node in nodes}
        held: dict[str, Resources] = {}
        for each in scheduler.live.values():
            if each.node.label == label:
                name = application_id(each.app)
                held[name] = plus(held.get(name, NOTHING), Resources(each.memory_mib, each.vcores))
        labels = {application_id(app): app.label for app in self.rm.applications.values()}
        views = []
        for view in seen.applications:
            used = held.get(view.application, NOTHING)
            requests = view.requests if labels[view.application] == label else ()
            if not label or requests or used != NOTHING:
                changed = msgspec.structs.replace(view, used=used, requests=requests)
                views.append(changed if used != NOTHING else msgspec.structs.replace(changed, containers=0))
        return msgspec.structs.replace(
            seen,
            total=scheduler.totals[label] if label else self.rm.total,
            queues=tuple(self._queue(leaf.name, label) for leaf in self.leaves),
            applications=tuple(views),
            free_by_node={
                node: size for node, size in seen.free_by_node.items() if node in names and size != NOTHING
            },
            reserved_by_node={node: app for node, app in seen.reserved_by_node.items() if node in names},
            reserved_free={node: size for node, size in seen.reserved_free.items() if node in names},
            reserved={app: size for app, size in seen.reserved.items() if labels[app] == label},
            parents=parent_views(scheduler, label),
            user_limits={} if label else self._user_limits(seen),
            nodes=tuple(sorted(names)) if label else (),
            is_shared=bool(label) and self.is_shared,
        )

    def _queue(self, name: str, label: str = "") -> QueueView:
        queue = self.scheduler.trees[label][name]
        return msgspec.structs.replace(
            super()._queue(name),
            guaranteed=queue.guaranteed,
            maximum=queue.maximum,
            used=Resources(queue.used_mib, queue.used_vcores),
            user_limit=highest_user_limit(queue),
        )

    def _user_limits(self, seen: Snapshot) -> dict[str, dict[str, Resources]]:
        """Return the limits that the ResourceManager shows, by the rule of ``wire.views.user_limits``."""
        found: dict[str, dict[str, Resources]] = {}
        for view in seen.queues:
            leaf = self.scheduler.queues[view.queue]
            assert isinstance(leaf, SharedLeaf)
            limit = leaf.user_limit()
            if limit is None or limit == view.user_limit or fits(view.maximum, limit):
                continue
            is_highest = view.user_limit is not None and fits(view.user_limit, limit)
            active = {app.user for app in leaf.demand}
            for user in active | leaf.shared.held.keys():
                is_other = len(active) > 1 or not fits(leaf.shared.held.get(user, NOTHING), limit)
                if is_highest or (is_other and leaf.user_percent < 100):
                    found.setdefault(view.queue, {})[user] = limit
        return found

    def _application(self, app: Application) -> ApplicationView:
        largest = self.slot
        for container in self.tasks():
            if container.app is app:
                largest = at_least(largest, Resources(container.memory_mib, container.vcores))
        return msgspec.structs.replace(
            super()._application(app), rank=app.number - app.priority * RANKS_PER_PRIORITY,
            task_size=largest, activated=app.activated,
        )  # fmt: skip

    def settings(self) -> Settings:
        """Return the settings of a daemon for this cluster: every running task may be suspended."""
        named = DEFAULT if not self.guarantees else msgspec.structs.replace(DEFAULT, mode="guarantees")
        return msgspec.structs.replace(
            named, cost_guard=False, settle_ms=0,
            preempting_queues=() if self.guarantees else self.preempting,
            preemptable_queues=() if self.guarantees else self.preemptable,
        )  # fmt: skip


# --- decisions and their ends -------------------------------------------------------------------


class Ordered(NamedTuple):
    """One order: the container that ends, and how many requests of the requester it serves."""

    container: str
    node: str
    requester: str
    serves: int


class Vain(NamedTuple):
    """An order whose requester did not get a container. ``receiver``: "" if no application got it."""

    order: Ordered
    fate: str
    receiver: str


class Acted(msgspec.Struct, kw_only=True):
    """What came of one state.

    ``below``: orders that leave a queue below its guarantee. ``refused``: application -> why yarnctl frees
    nothing for it. ``waits``: production has pending requests. ``missed``: what would have served it.
    """

    seed: int
    features: tuple[str, ...]
    orders: list[Ordered]
    vain: list[Vain]
    below: int
    refused: dict[str, str]
    waits: bool
    missed: str = ""


def decide(cluster: ActedCluster) -> tuple[list[Ordered], dict[str, str]]:
    """Let a new controller decide on the state; return its orders and refusals."""
    seen = cluster.snapshot()
    rows: dict[str, list[TaskView]] = {view.application: [] for view in seen.applications}
    for place, each in enumerate(cluster.tasks()):
        size = Resources(each.memory_mib, each.vcores)
        rows[application_id(each.app)].append(
            TaskView(
                attempt_id(each), container_id(each), each.node.name, size, "reduce", 100_000 + place, 0, 0,
                0, True, False,
            )
        )  # fmt: skip
    # Attempts are named by their container: no task has a number here.
    tasks = {name: tuple(row._replace(attempt=row.container) for row in each) for name, each in rows.items()}
    controller = Controller(cluster.settings(), validate=True)
    step = controller.step(Observation(now_ms=NOW_MS, as_of_ms=NOW_MS, snapshot=seen, tasks=tasks))
    orders = []
    for action in step.actions:
        assert isinstance(action, Suspend)
        order = controller.ledger.open[action.order]
        orders.append(Ordered(order.container, order.node, order.requester, order.serves))
    refused = {
        record.trigger.application: type(record.why).__name__
        for record in step.records
        if isinstance(record, Refusal)
    }
    return orders, refused


def act(seed: int, *, labelled: bool = False) -> Acted:
    """Build the state of a seed, let yarnctl decide, carry the decision out and judge it."""
    cluster = ActedCluster(seed, labelled=labelled)
    orders, refused = decide(cluster)
    features = _features(cluster)
    waiting = [app for app in cluster.rm.applications.values() if app.asks and _may_get(cluster, app)]
    found = Acted(
        seed=seed, features=features, orders=orders, vain=[], below=0, refused=refused, waits=bool(waiting)
    )  # fmt: skip
    if orders:
        found.below = _below(cluster, orders)
        found.vain = _carried_out(cluster, orders)
    elif waiting:
        found.missed = _missed(cluster)
    return found


def _features(cluster: ActedCluster) -> tuple[str, ...]:
    parts = {
        "guarantees": cluster.guarantees,
        "unsettled": not cluster.settled,
        "reserved": bool(cluster.scheduler.kept),
        "users": cluster.limits_users,
        "sizes": cluster.size_max > 1,
        "skewed": cluster.skewed,
        "labels": cluster.labelled,
        "flat": not cluster.snapshot().parents,
    }
    return (cluster.capacities, *(name for name, holds in parts.items() if holds))


def _may_get(cluster: ActedCluster, app: Application) -> bool:
    """Return whether yarnctl may free a container for an application."""
    if not app.activated:
        return False
    if not cluster.guarantees:
        return app.queue.name in cluster.preempting
    queue = cluster.scheduler.trees[app.label][app.queue.name]
    return queue.ratio() < 1


def _may_give(cluster: ActedCluster, container: Container) -> bool:
    """Return whether yarnctl may end a task: its queue is over its guarantee, and not below it after."""
    name = container.app.queue.name
    if not cluster.guarantees and name not in cluster.preemptable:
        return False
    view = cluster._queue(name, container.node.label)
    left = minus(view.used, Resources(container.memory_mib, container.vcores))
    stays = left[0] >= view.guaranteed[0] or left[1] >= view.guaranteed[1]
    return stays and over_guarantee(view, view.used, TOLERANCE_PPM)


def _below(cluster: ActedCluster, orders: list[Ordered]) -> int:
    """Count the orders that leave a queue with less than its guarantee."""
    running = {container_id(each): each for each in cluster.scheduler.live.values()}
    used: dict[tuple[str, str], Resources] = {}
    found = 0
    for order in orders:
        container = running[order.container]
        key = container.app.queue.name, container.node.label
        view = cluster._queue(*key)
        used[key] = minus(used.get(key, view.used), Resources(container.memory_mib, container.vcores))
        found += used[key][0] < view.guaranteed[0] and used[key][1] < view.guaranteed[1]
    return found


def _carried_out(cluster: ActedCluster, orders: list[Ordered]) -> list[Vain]:
    """End the ordered containers and let YARN grant; return the orders that were in vain."""
    without = cluster.copied().serve()
    running = {container_id(each): each for each in cluster.scheduler.live.values()}
    victims = Counter(application_id(running[order.container].app) for order in orders)
    for order in orders:
        cluster.end(running[order.container])
    granted = cluster.beat()
    if not cluster.labelled:
        cluster.check_sums()
    gained = Counter(application_id(each.app) for each in granted)
    gained.subtract(without)
    short = {
        name: sum(order.serves for order in orders if order.requester == name) - gained[name]
        for name in dict.fromkeys(order.requester for order in orders)
    }
    found = []
    on_node = Counter((each.node.name, application_id(each.app)) for each in granted)
    unserved = [order for order in orders if not on_node[order.node, order.requester]]
    for order in unserved + [each for each in reversed(orders) if each not in unserved]:
        if short[order.requester] <= 0:
            continue
        short[order.requester] -= max(order.serves, 1)
        here = [name for (node, name), _ in on_node.items() if node == order.node and name != order.requester]
        others = here or [name for name, count in gained.items() if count > 0 and name != order.requester]
        receiver = others[0] if others else ""
        found.append(Vain(order, _fate(cluster, order, receiver, victims), receiver))
    return found


def _fate(cluster: ActedCluster, order: Ordered, receiver: str, victims: Counter[str]) -> str:
    """Return in words who has the container of an order that was in vain."""
    node = next(each for each in cluster.rm.nodes if each.name == order.node)
    if isinstance(node.reserved, NodeReservation):
        return "reserved"
    if not receiver:
        return "granted to none"
    app = next(each for each in cluster.rm.applications.values() if application_id(each) == receiver)
    if receiver in victims:
        return "taken back"
    return "production" if app.queue.name in cluster.preempting else "another"


def _missed(cluster: ActedCluster) -> str:
    """Return which victim's end would have served production ("" none); a sample of them is tried."""
    kinds: dict[tuple[int, str, int, int], Container] = {}
    for each in cluster.tasks():
        if _may_give(cluster, each):
            kinds[each.app.number, each.node.name, each.memory_mib, each.vcores] = each
    numbers = [each.number for each in kinds.values()]
    if len(numbers) > TRIED_MAX:
        numbers = cluster.chance.sample(numbers, TRIED_MAX)
    without = cluster.copied().serve() if numbers else Counter[str]()
    may_get = {
        application_id(app) for app in cluster.rm.applications.values() if app.asks and _may_get(cluster, app)
    }
    for number in numbers:
        tried = cluster.copied()
        victim = tried.scheduler.live[number]
        tried.end(victim)
        gained = tried.serve()
        gained.subtract(without)
        for name in sorted(may_get):
            if gained[name] > 0 and name != application_id(victim.app):
                return f"{container_id(victim)} on {victim.node.name} would serve {name}"
    return ""
