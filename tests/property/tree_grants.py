"""Random trees of queues: who gets a freed container, by yarnctl's forecast and by the emulator's scheduler.

Law: the two share no code; both stand on docs/facts/hadoop.md, section 5. A state is one that the emulator's
scheduler has come to by itself. Then one container is freed, or an application asks. The forecast is made
from the snapshot of that instant; then the nodes have heartbeats until nothing changes any more.

``python -m tests.property.tree_grants STATES`` prints the counts, and each difference.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

from emulator.cluster.entities import (
    Application,
    Ask,
    Container,
    Node,
    NodeReservation,
    ParentConfig,
    TreeLeafConfig,
)
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.resource_manager import ResourceManager, application_id
from emulator.virtual.tree_views import parent_views, reserved_by_application
from tests.unit.scheduler_files import pair
from yarnctl.deciding.forecast import FreeCapacity, model_queues
from yarnctl.deciding.model import ApplicationView, ContainerRequest, QueueView, Snapshot
from yarnctl.deciding.tree_model import QueueTreeModel
from yarnctl.units import NOTHING, Resources, fits, plus, times

FINE, WHOLE = Resources(10_240_000, 10_000), Resources(1024, 1)
"""A slot in ten thousandths, so that guarantees are hardly cut off, and one with a whole vcore."""
NODE_SLOTS = 8
STEPS = 12
QUIET_ROUNDS = 100
"""Of nodes without a grant or reservation. A request may begin its turns for idle nodes anew for ever."""
ORDERS = ("utilization", "priority-utilization")


class RandomCluster:
    """A ResourceManager without masters over a random tree. ``sizes``: slots of one container."""

    def __init__(self, seed: int, sizes: tuple[int, ...], slot: Resources = FINE) -> None:
        self.chance = random.Random(seed)
        self.sizes = sizes
        self.slot = slot
        self.leaves: list[TreeLeafConfig] = []
        self.parents: list[ParentConfig] = []
        self._grow("", 1.0, 1.0, 0)
        self.rm = ResourceManager(tuple(self.leaves), self, tuple(self.parents))
        scheduler = self.rm.scheduler
        assert isinstance(scheduler, TreeScheduler)
        self.scheduler: TreeScheduler = scheduler
        for index in range(self.chance.randint(2, 6)):
            self.add_node(Node(index, *pair(times(self.slot, NODE_SLOTS)), phase_ms=index))
        for _ in range(self.chance.randint(3, 12)):
            self.submit()
        self.serve()

    def add_node(self, node: Node) -> None:
        """Add a node to the cluster."""
        self.rm.register_node(node)

    def wake(self, app: Application) -> None:
        """Nobody reads the mail."""

    def launch_master(self, container: Container) -> None:
        """A master is a container like any other."""

    def _grow(self, name: str, least: float, most: float, depth: int) -> None:
        """Add a queue and all below it; children are named in the order of their paths."""
        chance = self.chance
        priority = chance.choice((0, 0, 1, 3))
        if depth == 3 or (depth and chance.random() < 0.5):
            factor = chance.choice((None, None, 1.0, 2.0))
            self.leaves.append(
                TreeLeafConfig(
                    name=name, capacity_ratio=least, maximum_ratio=most, priority=priority,
                    fair=chance.random() < 0.2, user_limit_factor=factor,
                )
            )  # fmt: skip
            return
        self.parents.append(
            ParentConfig(
                name=name, capacity_ratio=least, maximum_ratio=most, priority=priority,
                order=chance.choice(ORDERS),  # type: ignore[arg-type]
            )
        )  # fmt: skip
        parts = [chance.randint(1, 6) for _ in range(chance.randint(2, 4))]
        for letter, part in zip("abcd", parts, strict=False):
            share = least * part / sum(parts)
            limit = most if chance.random() < 0.6 else share + (most - share) * chance.random()
            self._grow(f"{name}.{letter}" if name else letter, share, limit, depth + 1)

    def submit(self) -> None:
        """Submit an application with one or two requests."""
        queue = self.scheduler.queues[self.chance.choice(self.leaves).name]
        number = len(self.rm.applications) + 1
        app = Application(number, queue, self.chance.choice(("ann", "ben")), 0, 0)
        self.rm.applications[number] = app
        self.scheduler.add_application(app)
        for priority in self.chance.sample((5, 10, 20), self.chance.randint(1, 2)):
            size = times(self.slot, self.chance.choice(self.sizes))
            self.rm.allocate(app, [(Ask(priority, *pair(size), off_switch=True), self.chance.randint(1, 12))])

    def serve(self) -> Counter[str]:
        """Let all nodes have heartbeats until nothing changes; return what each application was granted."""
        return Counter(application_id(container.app) for container in self.beat())

    def beat(self) -> list[Container]:
        """Let all nodes have heartbeats until nothing changes; return the new containers."""
        granted: list[Container] = []
        version, quiet = -1, 0
        before: object = None
        while version != self.scheduler.version and quiet < QUIET_ROUNDS:
            version = self.scheduler.version
            for node in self.rm.nodes:
                granted += self.rm.node_heartbeat(node, [], 0)
            after = len(granted), [node.reserved for node in self.rm.nodes]
            before, quiet = after, quiet + 1 if after == before else 0
        return granted

    def change(self) -> None:
        """Free one container, or (one time in four) let an application ask."""
        live = list(self.scheduler.live.values())
        if not live or self.chance.random() < 0.25:
            self.submit()
        else:
            self.scheduler.free(self.chance.choice(live), 0)

    def fills_a_reservation(self) -> bool:
        """Return whether a reserved node has room for what it is reserved for."""
        return any(
            isinstance(node.reserved, NodeReservation) and _is_filled(node, node.reserved)
            for node in self.rm.nodes
        )

    def check_sums(self) -> None:
        """What each queue uses is what its containers and reservations hold, and within its maximum."""
        held: dict[str, Resources] = {}
        for container in self.scheduler.live.values():
            size = Resources(container.memory_mib, container.vcores)
            for queue in self.scheduler.nodes[container.app.queue.name].chain:
                held[queue.name] = plus(held.get(queue.name, NOTHING), size)
        for app in self.scheduler.kept:
            for queue in self.scheduler.nodes[app.queue.name].chain:
                held[queue.name] = plus(held.get(queue.name, NOTHING), self.scheduler.kept_for(app))
        for queue in self.scheduler.nodes.values():
            used = Resources(queue.used_mib, queue.used_vcores)
            assert used == held.get(queue.name, NOTHING), queue.path
            assert fits(used, queue.maximum), queue.path

    def snapshot(self) -> Snapshot:
        return Snapshot(
            total=self.rm.total,
            largest_node=times(self.slot, NODE_SLOTS),
            queues=tuple(self._queue(leaf.name) for leaf in self.leaves),
            applications=tuple(self._application(app) for app in self.rm.applications.values()),
            free_by_node={
                node.name: Resources(node.free_mib, node.free_vcores)
                for node in self.rm.nodes
                if not isinstance(node.reserved, NodeReservation) or _is_filled(node, node.reserved)
            },
            reserved_by_node={
                node.name: application_id(node.reserved.app)
                for node in self.rm.nodes
                if isinstance(node.reserved, NodeReservation)
            },
            reserved_free={
                node.name: Resources(node.free_mib, node.free_vcores)
                for node in self.rm.nodes
                if isinstance(node.reserved, NodeReservation) and not _is_filled(node, node.reserved)
            },
            parents=parent_views(self.scheduler),
            reserved=reserved_by_application(self.scheduler),
        )

    def _queue(self, name: str) -> QueueView:
        node = self.scheduler.nodes[name]
        assert node.leaf is not None
        limit = node.leaf.user_mib
        return QueueView(
            queue=name,
            guaranteed=node.guaranteed,
            maximum=node.maximum,
            used=Resources(node.used_mib, node.used_vcores),
            user_limit=None if limit is None else Resources(limit, self.rm.total.vcores),
        )

    def _application(self, app: Application) -> ApplicationView:
        return ApplicationView(
            application=application_id(app), queue=app.queue.name, user=app.user, submitted_at_ms=0,
            rank=app.number, containers=app.containers, used=Resources(app.used_mib, app.used_vcores),
            am_size=self.slot, task_size=self.slot,
            requests=tuple(
                ContainerRequest(ask.priority, Resources(ask.memory_mib, ask.vcores), ask.count)
                for ask in app.asks
            ),
        )  # fmt: skip

    def forecast(self) -> dict[str, int]:
        """Return what yarnctl foresees that each application is granted from the free capacity."""
        seen = self.snapshot()
        model = QueueTreeModel(seen, model_queues(seen, ()))
        return model.place(FreeCapacity(seen.free_by_node))


def _is_filled(node: Node, reservation: NodeReservation) -> bool:
    """Return whether a reserved node has room for what it is reserved for."""
    ask = reservation.ask
    return ask.memory_mib <= node.free_mib and ask.vcores <= node.free_vcores


def compare(seed: int, sizes: tuple[int, ...], counts: Counter[str], slot: Resources = FINE) -> list[str]:
    """Count changes and grants of one random cluster; return the differences in words."""
    cluster, told = RandomCluster(seed, sizes, slot), []
    for step in range(STEPS):
        cluster.change()
        kept = bool(cluster.scheduler.kept)
        filled = cluster.fills_a_reservation()
        expected = Counter(cluster.forecast())
        found = cluster.serve()
        cluster.check_sums()
        kept = kept or bool(cluster.scheduler.kept)
        counts["changes"] += 1
        counts["grants"] += sum(found.values())
        counts["grants foreseen"] += sum((found & expected).values())
        counts["reserving"] += kept
        if expected != found:
            counts["different"] += 1
            kind = "fills a reservation" if filled else "reserving" if kept else "plain"
            counts[f"different, {kind}"] += 1
            told.append(f"{kind}: seed {seed}, step {step}: foreseen {dict(expected)}, granted {dict(found)}")
    return told


def main(states: int) -> None:
    for name, sizes, slot in (
        ("one slot each", (1,), FINE),
        ("one to three slots", (1, 2, 3), FINE),
        ("one slot each, guarantees cut off", (1,), WHOLE),
    ):
        counts = Counter[str]()
        told = [line for seed in range(states) for line in compare(seed, sizes, counts, slot)]
        print(f"{name}: {states} trees, {dict(counts)}")
        print("\n".join(line for line in told if not line.startswith("fills")))


if __name__ == "__main__":
    main(int(sys.argv[1]))
