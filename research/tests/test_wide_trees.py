"""yarnctl's forecast against the emulator's scheduler on random trees with labels and resource types.

A tree comes to its state in the emulator by itself, and yarnctl's snapshot of it is as a ResourceManager would
show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec
import pytest

from emulator.cluster.entities import Application, Ask, Node, NodeReservation, ParentConfig
from emulator.cluster.queues.tree_queue import TreeQueue
from emulator.cluster.resource_manager import application_id
from tests.unit.scheduler_files import pair
from yarn_research.campaigns.tree_order import forecast
from yarn_research.campaigns.tree_order_draws import GPUS_MAX, SLOT, USERS, QueueDraw, TreeDraw
from yarn_research.campaigns.tree_order_states import EmulatedTree, beside, quiet_rounds
from yarnctl.deciding.forecast import QueueModel
from yarnctl.deciding.model import ApplicationView, ContainerRequest, ParentView, QueueView, Snapshot
from yarnctl.deciding.tree_descent import TreeDescent
from yarnctl.deciding.tree_model import QueueTreeModel
from yarnctl.units import NOTHING, Resources, at_least, fits, plus, times

STEPS = 12


class WideTree(EmulatedTree):
    """A tree with labels or resource types that has come to its state by itself."""

    def __init__(self, draw: TreeDraw) -> None:
        super().__init__(draw, {"applications": [], "held": [], "reserved": []})
        self.draw, self.chance = draw, draw.chance
        for _ in range(self.chance.randint(5, 11)):
            self.submit()
        self.settle()

    def submit(self) -> None:
        """Submit an application with one or two requests."""
        leaf, number = self.chance.choice(self.draw.leaves), len(self.rm.applications) + 1
        queue = self.scheduler.queues[leaf.path.partition(".")[2]]
        app = Application(number, queue, self.chance.choice(USERS), 0, 0)
        app.set_priority(self.chance.choice((0, 0, 0, 2)))
        self.rm.applications[number] = app
        self.scheduler.add_application(app)
        self.names[app] = application_id(app)
        for priority in self.chance.sample((5, 10, 20), self.chance.randint(1, 2)):
            size = times(SLOT, self.chance.choice((1, 1, 2, 3)))
            most = max(gpus for _, _, *gpus in self.draw.node_sizes)
            if most and self.chance.random() < 0.5:
                size = Resources(*size, min(*most, self.chance.choice((1, 1, 2, GPUS_MAX))))
            label = ""
            if self.draw.labels and self.chance.random() < 0.5:
                label = self.chance.choice(list(self.draw.labels))
            ask = Ask(priority, *pair(size), off_switch=True, others=beside(size), label=label)
            self.rm.allocate(app, [(ask, self.chance.randint(2, 14))])

    def settle(self, *first_nodes: Node) -> Counter[str]:
        """Let the nodes have heartbeats until nothing changes; return the grants."""
        granted, quiet, nodes = Counter[str](), 0, [*first_nodes, *self.rm.nodes]
        while quiet < quiet_rounds(self.draw):
            before = granted.total(), [node.reserved for node in self.rm.nodes]
            for node in nodes:
                for each in self.rm.node_heartbeat(node, [], 0):
                    granted[self.names[each.app]] += 1
            quiet = quiet + 1 if before == (granted.total(), [node.reserved for node in self.rm.nodes]) else 0
            nodes = self.rm.nodes
        return granted

    def snapshot(self) -> Snapshot:
        """Return the state as a daemon reads it, which knows where each reservation is."""
        percents = {leaf.path: float(leaf.users_percent) for leaf in self.draw.leaves}
        return msgspec.structs.replace(
            self._part(""),
            node_count=len(self.rm.nodes),
            smallest=SLOT,
            user_percents={path: percent for path, percent in percents.items() if percent < 100},
            labelled={label: self._part(label) for label in self.draw.labels},
            resource_names=self.draw.types,
        )

    def _part(self, label: str) -> Snapshot:
        nodes = [node for node in self.rm.nodes if node.label == label]
        total = largest = NOTHING
        for node in nodes:
            total, largest = plus(total, node.total), at_least(largest, node.total)
        tree = self.scheduler.trees[label]
        held: dict[Application, Resources] = {}
        for container in self.scheduler.live.values():
            if container.node.label == label:
                size = plus(Resources(container.memory_mib, container.vcores), container.others)
                held[container.app] = plus(held.get(container.app, NOTHING), size)
        reserved = {node.name: node.reserved for node in nodes if isinstance(node.reserved, NodeReservation)}
        sure = {node.name for node in nodes if node.name in reserved and not _is_filled(node)}
        kept = {self.names[app]: self.scheduler.kept_for(app, label) for app in self.scheduler.kept}
        queues = tuple(_queue(tree[leaf.path.partition(".")[2]], leaf) for leaf in self.draw.leaves)
        return Snapshot(
            total=total,
            largest_node=largest,
            queues=queues,
            applications=tuple(self._applications(label, held)),
            free_by_node={node.name: node.free for node in nodes if node.name not in sure and any(node.free)},
            reserved_by_node={node: self.names[each.app] for node, each in reserved.items()},
            reserved_free={node.name: node.free for node in nodes if node.name in sure},
            reserved_priority={node: each.ask.priority for node, each in reserved.items()},
            parents=tuple(sorted((_parent(each) for each in tree.values() if each.below), key=_path)),
            reserved={name: size for name, size in kept.items() if size != NOTHING},
            node_totals={node.name: node.total for node in nodes if node.total != largest},
            nodes=tuple(node.name for node in nodes) if label else (),
        )

    def _applications(self, label: str, held: dict[Application, Resources]) -> list[ApplicationView]:
        views = []
        for rank, app in enumerate(sorted(self.rm.applications.values(), key=lambda each: each.order)):
            asks = [ask for ask in app.asks if ask.label == label]
            if not label or asks or app in held:
                views.append(
                    ApplicationView(
                        application=self.names[app], queue=f"root.{app.queue.name}", user=app.user,
                        submitted_at_ms=app.number, rank=rank, containers=app.containers,
                        used=held.get(app, NOTHING), am_size=SLOT, task_size=SLOT, priority=app.priority,
                        requests=tuple(ContainerRequest(ask.priority, ask.size, ask.count) for ask in asks),
                    )
                )  # fmt: skip
        return views


def _is_filled(node: Node) -> bool:
    assert isinstance(node.reserved, NodeReservation)
    return fits(node.reserved.ask.size, node.free)


def _queue(queue: TreeQueue, leaf: QueueDraw) -> QueueView:
    limit, least = None, queue.all_guaranteed
    if leaf.factor is not None and any(least):
        limit = Resources(*(int(part * leaf.factor) for part in queue.users.larger(least, SLOT)))
    return QueueView(
        queue=leaf.path, guaranteed=least, maximum=queue.all_maximum, used=queue.used, user_limit=limit
    )


def _parent(queue: TreeQueue) -> ParentView:
    assert isinstance(queue.config, ParentConfig)
    priorities = {each.path: each.priority for each in queue.below if each.priority}
    return ParentView(
        queue=queue.path,
        guaranteed=queue.all_guaranteed,
        maximum=queue.all_maximum,
        used=queue.used,
        reserved=queue.reserved,
        order=queue.config.order,
        priorities=priorities if queue.config.order == "priority-utilization" else {},
        fair=tuple(sorted(each.path for each in queue.below if each.fair)),
    )


def _path(view: ParentView) -> str:
    return view.queue


def compare(draw: TreeDraw, counts: Counter[str]) -> list[str]:
    """Free containers of one tree; return in words where the forecast and the emulator differ."""
    tree, told = WideTree(draw), []
    for step in range(STEPS):
        if tree.chance.random() < 0.25 or not tree.scheduler.live:
            tree.submit()
            tree.settle()
        if not tree.scheduler.live:
            continue
        container = tree.chance.choice(list(tree.scheduler.live.values()))
        freed = {
            "container": "", "application": tree.names[container.app], "node": container.node.name,
            "memory_mib": container.memory_mib, "vcores": container.vcores,
            "others": dict(zip(draw.types, container.others[2:], strict=False)),
        }  # fmt: skip
        foreseen = forecast(tree.snapshot(), freed)
        tree.scheduler.free(container, 0)
        granted = tree.settle(container.node)
        counts["grants"] += granted.total()
        if foreseen != granted:
            told.append(f"seed {draw.seed}, step {step}: foreseen {foreseen}, granted {granted}")
    return told


def draws(seeds: Iterable[int]) -> list[TreeDraw]:
    """Return draws with labels or types; how often a shared partition has refused a request is not known."""
    found = [TreeDraw(seed, wide=True) for seed in seeds]
    return [each for each in found if (each.labels or each.types) and all(each.labels.values())]


SEEDS = [seed for seed in range(40) if seed != 5]
"""In that one the last request of a user raises the limits of others in another partition."""


def differences(seeds: Iterable[int], counts: Counter[str]) -> list[str]:
    return [line for draw in draws(seeds) for line in compare(draw, counts)]


def test_containers_go_to_the_application_that_is_foreseen() -> None:
    counts = Counter[str]()
    told = differences(SEEDS, counts)
    assert counts["grants"] > 100
    assert not told


# --- planted faults: each must be found --------------------------------------------------------


def every_reservation_is_accepted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TreeDescent, "_is_accepted", lambda *_: True)


def nodes_are_all_alike(patch: pytest.MonkeyPatch) -> None:
    begin = QueueTreeModel.__init__

    def alike(self: QueueTreeModel, snapshot: Snapshot, queues: dict[str, QueueModel]) -> None:
        begin(self, msgspec.structs.replace(snapshot, node_totals={}), queues)

    patch.setattr(QueueTreeModel, "__init__", alike)


def no_user_has_a_limit_in_a_partition(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QueueTreeModel, "over_limit", lambda *_: NOTHING)


@pytest.mark.parametrize(
    "plant",
    [every_reservation_is_accepted, nodes_are_all_alike, no_user_has_a_limit_in_a_partition],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert differences(SEEDS, Counter())
