"""Random trees of queues on a real ResourceManager: their configuration, their states, and one step.

A *tree* is a configuration of queues with nodes, users and applications, all drawn from one seed. Its state
is what the ResourceManager has come to by itself after containers were requested and given back. A *step*
frees one container and sends heartbeats until two whole rounds of the nodes change nothing.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from emulator.cluster.entities import (
    Application,
    Ask,
    Container,
    Node,
    NodeReservation,
)
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.queues.tree_queue import SharedLeaf
from emulator.cluster.resource_manager import ResourceManager as EmulatedManager
from emulator.scenario.scheduler_file import queues_of_keys
from tests import http_client
from tests.unit.scheduler_files import pair
from yarn_research.campaigns.scheduler_rig import SchedulerRig
from yarnctl.attach.connection.connection import Attachment, Connection
from yarnctl.attach.observing.activity_reader import HEARTBEAT_MS, ActivityReader
from yarnctl.attach.observing.cluster_state import ClusterObserver
from yarnctl.config import ClusterAddress
from yarnctl.deciding.model import Snapshot
from yarnctl.hadoop.wire.views import cluster_room
from yarnctl.units import Resources, times

SLOT = Resources(512, 1)
NODE_SLOTS = 8
USERS = ("ann", "ben", "cid")
ORDERS = ("utilization", "priority-utilization")
PREFIX = "yarn.scheduler.capacity."
ROUNDS_MAX = 60
READS = 4
"""Rounds of heartbeats in which all suspects are read: a reader reads four nodes at once, each twice."""
Mode = Literal["percentage", "weight", "absolute"]
MODES: tuple[Mode, ...] = ("percentage", "weight", "absolute")


@dataclass
class QueueDraw:
    """One queue as drawn; ``least`` and ``most`` are shares of the cluster."""

    path: str
    least: float
    most: float
    priority: int
    order: str = "utilization"
    fair: bool = False
    factor: float | None = None
    users_percent: int = 100
    children: list[QueueDraw] = field(default_factory=list)


class TreeDraw:
    """A configuration drawn from a seed. ``flat``: root has leaves only, in percent, without any limit."""

    def __init__(self, seed: int, *, flat: bool = False) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.flat = flat
        self.mode: Mode = "percentage" if flat else self.chance.choice(MODES)
        self.nodes = self.chance.randint(3, 5)
        self.total = times(SLOT, NODE_SLOTS * self.nodes)
        self.properties: dict[str, str] = {
            "yarn.scheduler.minimum-allocation-mb": str(SLOT.memory_mib),
            "yarn.scheduler.maximum-allocation-mb": str(SLOT.memory_mib * NODE_SLOTS),
            "yarn.scheduler.maximum-allocation-vcores": str(NODE_SLOTS),
        }
        self.leaves: list[QueueDraw] = []
        self.root = self._grow("root", 1.0, 1.0, 0)

    def _set(self, path: str, key: str, value: object) -> None:
        self.properties[f"{PREFIX}{path}.{key}"] = str(value)

    def _absolute(self, share: float) -> str:
        return f"[memory={int(self.total.memory_mib * share)},vcores={int(self.total.vcores * share)}]"

    def _grow(self, path: str, least: float, most: float, depth: int) -> QueueDraw:
        chance, limits = self.chance, not self.flat
        queue = QueueDraw(path, least, most, chance.choice((0, 0, 1, 3)) if limits else 0)
        if depth and queue.priority:
            self._set(path, "priority", queue.priority)
        deepest = 1 if self.flat else 3
        if depth == deepest or (depth and chance.random() < 0.5):
            self.leaves.append(queue)
            if limits:
                queue.fair = chance.random() < 0.25
                queue.factor = chance.choice((None, None, 1.0, 2.0))
                queue.users_percent = chance.choice((100, 50, 25))
            self._set(path, "ordering-policy", "fair" if queue.fair else "fifo")
            self._set(path, "user-limit-factor", 100 if queue.factor is None else queue.factor)
            self._set(path, "minimum-user-limit-percent", queue.users_percent)
            return queue
        queue.order = chance.choice(ORDERS) if limits else "utilization"
        self._set(path, "ordering-policy", queue.order)
        names = [f"{path}.{letter}" for letter in "abcd"[: chance.randint(2, 4)]]
        self._set(path, "queues", ",".join(name.rpartition(".")[2] for name in names))
        weights = [chance.randint(1, 6) for _ in names]
        percents = [round(100 * weight / sum(weights)) for weight in weights]
        percents[-1] += 100 - sum(percents)
        for name, weight, percent in zip(names, weights, percents, strict=True):
            part = weight / sum(weights) if self.mode == "weight" else percent / 100
            share = least * part
            limit = most if self.flat or chance.random() < 0.6 else share + (most - share) * chance.random()
            self._set_share(name, weight, percent, share)
            queue.children.append(self._grow(name, share, self._limited(name, limit, most), depth + 1))
        return queue

    def _set_share(self, path: str, weight: int, percent: int, share: float) -> None:
        share_text = {"weight": f"{weight}w", "percentage": str(percent), "absolute": self._absolute(share)}
        self._set(path, "capacity", share_text[self.mode])

    def _limited(self, path: str, limit: float, most: float) -> float:
        """Set a queue's maximum; return its share of the cluster."""
        if self.mode == "absolute":
            if limit < most:
                self._set(path, "maximum-capacity", self._absolute(limit))
            return limit
        percent = min(100, math.ceil(100 * limit / most - 1e-9))
        self._set(path, "maximum-capacity", percent)
        return most * percent / 100


@dataclass
class LiveApplication:
    """An application as submitted; ``pending``: request priority -> size and count still requested."""

    name: str
    queue: str
    user: str
    priority: int
    pending: dict[int, tuple[Resources, int]] = field(default_factory=dict)


class RealTree:
    """One tree on the rig. ``held``: container -> its grant, as the master was told of it.

    ``events``: what happened in the last :meth:`settle`, in order: grants, and new sets of reservations.
    ``rooms``: what is free on each node, as last observed.
    """

    def __init__(self, rig: SchedulerRig, seed: int, *, flat: bool = False) -> None:
        self.rig = rig
        self.draw = draw = TreeDraw(seed, flat=flat)
        self.chance = draw.chance
        rig.start(draw.properties)
        size = times(SLOT, NODE_SLOTS)
        self.nodes = [rig.register(f"127.0.0.{number + 2}", size) for number in range(draw.nodes)]
        self.applications: dict[str, LiveApplication] = {}
        self.held: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        manager = ClusterAddress(resource_managers=(rig.url,)).resource_manager()
        self.rooms: Mapping[str, Resources] = {}
        self._now_ms = 1_000_000
        self._connection = Connection(manager, None, Attachment(), self._clock)
        self._connection.read_configuration()
        self._reader = ActivityReader(manager.activities, self._clock)
        self._observer = ClusterObserver(self._connection, self._reader)
        for _ in range(self.chance.randint(3, 6)):
            self.submit()
        self.settle(self.nodes[0])
        for _ in range(self.chance.randint(2, 5)):
            self.submit()
        self.settle(self.nodes[0])

    def _clock(self) -> int:
        """Return a time that passes from heartbeat to heartbeat, not with this machine's speed."""
        return self._now_ms

    def close(self) -> None:
        self._connection.close()

    def submit(self) -> None:
        """Submit an application with one or two requests."""
        queue = self.chance.choice(self.draw.leaves)
        app = LiveApplication("", queue.path, self.chance.choice(USERS), self.chance.choice((0, 0, 0, 2)))
        app.name = self.rig.submit(app.queue, app.user, app.priority, f"app-{len(self.applications)}")
        self.applications[app.name] = app
        for priority in self.chance.sample((5, 10, 20), self.chance.randint(1, 2)):
            self._request(app, priority)

    def _request(self, app: LiveApplication, priority: int) -> None:
        size = times(SLOT, 1 if self.draw.flat else self.chance.choice((1, 1, 2, 3)))
        count = self.chance.randint(2, 14)
        if not self.rig.is_active(app.name):
            return  # a managed master would not run yet: no cluster has such an application with requests
        app.pending[priority] = size, count
        self.rig.request(app.name, priority, size, count)

    def change(self) -> None:
        """Let one application that requests nothing at a priority request something, or submit one."""
        self._observed()  # a daemon looks every second; one look later grants and requests may sum up to the same
        idle = [app for app in self.applications.values() if len(app.pending) < 2]
        if len(self.applications) < 12 and (not idle or self.chance.random() < 0.3):
            self.submit()
        elif idle:
            app = self.chance.choice(idle)
            self._request(app, self.chance.choice([each for each in (5, 10, 20) if each not in app.pending]))
        self.settle(self.nodes[0])

    def settle(self, first_node: str) -> Counter[str]:
        """Send heartbeats, the first of ``first_node``, until two rounds change nothing; return the grants."""
        granted: Counter[str] = Counter()
        self.events = []
        self._count(self.rig.beat([first_node]), granted)
        quiet, reserved = 0, self.rig.reserved()
        for _ in range(ROUNDS_MAX):
            rows = self._beat()
            before, reserved = reserved, self.rig.reserved()
            self._count(rows, granted)
            if reserved != before:
                self.events.append({"reserved": reserved})
            quiet = 0 if rows or reserved != before else quiet + 1
            if quiet == 2:
                return granted
        raise RuntimeError(f"still changing after {ROUNDS_MAX} rounds of heartbeats")

    def _count(self, rows: list[dict[str, Any]], granted: Counter[str]) -> None:
        for row in rows:
            self.events.append(row)
            self.held[row["container"]] = row
            app = self.applications[row["application"]]
            granted[app.name] += 1
            size, count = app.pending.pop(row["priority"])
            if count > 1:
                app.pending[row["priority"]] = size, count - 1

    def free(self, container: str) -> Counter[str]:
        """Let a container be given back, and return what was granted after it."""
        row = self.held.pop(container)
        self.rig.free(row["application"], container)
        return self.settle(row["node"])

    def snapshot(self) -> Snapshot:
        """Return the state as yarnctl's observing code reads it.

        Where it does not know on which nodes the reservations are, it reads the nodes' activities first.
        """
        found = self._observed()
        for _ in range(2):  # a second time if a reservation is not where it was
            suspects = set(self._reader.suspects)
            if not suspects:
                break
            for _ in range(READS):
                self._reader.renew(())
                self._count(self._beat(), Counter())
            found = self._observed()
            if suspects.issuperset(self._reader.suspects):
                break
        return found

    def _beat(self) -> list[dict[str, Any]]:
        """Send one heartbeat of each node, as they come in one interval; return the grants."""
        self._now_ms += HEARTBEAT_MS
        return self.rig.beat(self.nodes)

    def _observed(self) -> Snapshot:
        self._observer.refresh()
        nodes = self._connection.manager.nodes()
        self.rooms = cluster_room(nodes)[2]
        return self._observer.snapshot(self._observer.tree(), nodes, {})

    def activities(self) -> dict[str, Any]:
        """Return the ResourceManager's own words about each node, as of one more heartbeat of each."""
        found: dict[str, Any] = {}
        for node in self.nodes:
            url = f"{self.rig.url}/ws/v1/cluster/scheduler/activities?nodeId={node}"
            http_client.get(url, timeout=20)
            self._count(self.rig.beat([node]), Counter())
            found[node] = http_client.get(url, timeout=20).json()["activities"].get("allocations", [])
        return found

    def state(self) -> dict[str, Any]:
        """Return the state as the rig knows it, for the record and for the emulator."""
        return {
            "applications": [
                {
                    "name": app.name, "queue": app.queue, "user": app.user, "priority": app.priority,
                    "pending": [[priority, *size, count] for priority, (size, count) in app.pending.items()],
                }
                for app in self.applications.values()
            ],
            "held": list(self.held.values()),
            "reserved": self.rig.reserved(),
            "history": self.rig.history(),
        }  # fmt: skip


class EmulatedTree:
    """The emulator's ResourceManager in a state of a real one."""

    def __init__(self, draw: TreeDraw, state: dict[str, Any]) -> None:
        keys = {key: value for key, value in draw.properties.items() if key.startswith(PREFIX)}
        source = queues_of_keys(f"seed {draw.seed}", keys)
        self.rm = EmulatedManager(source.leaves, self, source.parents)
        scheduler = self.rm.scheduler
        assert isinstance(scheduler, TreeScheduler)
        self.scheduler: TreeScheduler = scheduler
        for leaf in scheduler.queues.values():
            assert isinstance(leaf, SharedLeaf)
            leaf.smallest = SLOT
        for queue in scheduler.nodes.values():
            queue.smallest = SLOT
        for index in range(draw.nodes):
            self.rm.register_node(Node(index, *pair(times(SLOT, NODE_SLOTS)), phase_ms=index))
        self._nodes = {f"127.0.0.{node.index + 2}:8041": node for node in self.rm.nodes}
        self._apps: dict[str, Application] = {}
        self._held: dict[str, Container] = {}
        for number, row in enumerate(state["applications"], 1):
            leaf_queue = self.scheduler.queues[row["queue"].partition(".")[2]]
            app = self._apps[row["name"]] = Application(number, leaf_queue, row["user"], 0, 0)
            app.set_priority(row["priority"])
            self.rm.applications[number] = app
            self.scheduler.add_application(app)
        for number, row in enumerate(state["held"], 1):
            self._hold(number, row)
        for row in state["applications"]:
            app = self._apps[row["name"]]
            for priority, memory_mib, vcores, count in row["pending"]:
                self.rm.allocate(app, [(Ask(priority, memory_mib, vcores, off_switch=True), count)])
        for row in state["reserved"]:
            self._reserve(row)
        history = state.get("history", {})
        for row in state["reserved"]:
            tries = history["in_vain"][row["node"]] if history else 2
            self.scheduler.in_vain[self._apps[row["application"]], row["priority"]] = tries
        for name, ranked_mib in history.get("ranked_mib", {}).items():
            self._apps[name].ranked_mib = ranked_mib
        for path, ratio in history.get("users_ratios", {}).items():
            shared = self.scheduler.queues[path.partition(".")[2]]
            assert isinstance(shared, SharedLeaf)
            shared.users_ratio = ratio
        self.names = {app: name for name, app in self._apps.items()}

    def wake(self, app: Application) -> None:
        """No master reads the mail."""

    def launch_master(self, container: Container) -> None:
        """A master is a container like any other."""

    def _hold(self, number: int, row: dict[str, Any]) -> None:
        """Count a container that exists, as the scheduler counts one that it grants."""
        app, node = self._apps[row["application"]], self._nodes[row["node"]]
        memory_mib, vcores = row["memory_mib"], row["vcores"]
        container = Container(number, app, node, memory_mib, vcores, row["priority"], 0)
        self._held[row["container"]] = self.scheduler.live[number] = container
        self.rm.containers_granted = number
        node.free_mib -= memory_mib
        node.free_vcores -= vcores
        app.used_mib += memory_mib
        app.ranked_mib = app.used_mib
        app.used_vcores += vcores
        app.containers += 1
        queue = app.queue
        queue.used_mib += memory_mib
        queue.used_vcores += vcores
        if queue.user_mib is not None:
            queue.users[app.user] = queue.users.get(app.user, 0) + memory_mib
        self.scheduler.nodes[queue.name].count(memory_mib, vcores)
        assert isinstance(queue, SharedLeaf)
        queue.hold(app.user, Resources(memory_mib, vcores))

    def _reserve(self, row: dict[str, Any]) -> None:
        app, node = self._apps[row["application"]], self._nodes[row["node"]]
        ask = next((each for each in app.asks if each.priority == row["priority"]), None)
        if ask is None:
            return
        app.reserved[ask.priority] = app.reserved.get(ask.priority, 0) + 1
        node.reserved = NodeReservation(app, ask)
        self.scheduler.keep(app, ask, node)

    def free(self, container: str) -> Counter[str]:
        """Free a container, let the nodes have heartbeats until nothing changes; return the grants."""
        held = self._held[container]
        self.scheduler.free(held, 0)
        granted: Counter[str] = Counter()
        nodes, quiet = [held.node, *self.rm.nodes], 0
        while quiet < 2:
            before = granted.total(), [node.reserved for node in self.rm.nodes]
            for node in nodes:
                for each in self.rm.node_heartbeat(node, [], 0):
                    granted[self.names[each.app]] += 1
            quiet = quiet + 1 if before == (granted.total(), [node.reserved for node in self.rm.nodes]) else 0
            nodes = self.rm.nodes
        return granted
