"""Random trees of queues on a real ResourceManager: their configuration, their states, and one step.

A *tree* is a configuration of queues with nodes, users and applications, all drawn from one seed. Its state
is what the ResourceManager has come to by itself after containers were requested and given back. A *step*
frees one container and sends heartbeats until two whole rounds of the nodes change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from emulator.cluster.entities import (
    Application,
    Ask,
    Container,
    Node,
    NodeReservation,
)
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.queues.user_shares import single
from emulator.cluster.resource_manager import ResourceManager as EmulatedManager
from emulator.scenario.scheduler_file import queues_of_keys
from tests import http_client
from tests.unit.scheduler_files import pair
from yarn_research.campaigns.scheduler_rig import SchedulerRig
from yarn_research.campaigns.tree_order_draws import GPUS_MAX, PREFIX, SLOT, USERS, TreeDraw
from yarnctl.attach.connection.connection import Attachment, Connection
from yarnctl.attach.observing.activity_reader import HEARTBEAT_MS, ActivityReader
from yarnctl.attach.observing.cluster_state import ClusterObserver
from yarnctl.config import ClusterAddress
from yarnctl.deciding.model import Snapshot
from yarnctl.hadoop.wire.views import cluster_room
from yarnctl.units import NOTHING, Resources, minus, times

ROUNDS_MAX = 60
READS = 4
"""Rounds of heartbeats in which all suspects are read: a reader reads four nodes at once, each twice."""


@dataclass
class LiveApplication:
    """An application as submitted; ``pending``: request priority -> size and count still requested.

    ``labels``: request priority -> the label of the nodes that it wants, where it names one.
    """

    name: str
    queue: str
    user: str
    priority: int
    pending: dict[int, tuple[Resources, int]] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)


class RealTree:
    """One tree on the rig. ``held``: container -> its grant, as the master was told of it.

    ``events``: what happened in the last :meth:`settle`, in order: grants, and new sets of reservations.
    ``rooms``: what is free on each node, as last observed.
    """

    def __init__(self, rig: SchedulerRig, seed: int, *, flat: bool = False, wide: bool = False) -> None:
        self.rig = rig
        self.draw = draw = TreeDraw(seed, flat=flat, wide=wide)
        self.chance = draw.chance
        self._wide = wide
        rig.start(draw.properties)
        hosts = [f"127.0.0.{number + 2}" for number in range(draw.nodes)]
        if draw.labels:
            marked = {host: label for host, label in zip(hosts, draw.node_labels, strict=True) if label}
            rig.label(draw.labels, marked)
        self.nodes = [rig.register(host, size) for host, size in zip(hosts, draw.node_sizes, strict=True)]
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
        most = max(gpus for _, _, *gpus in self.draw.node_sizes)  # a request for more is rejected
        if most and self.chance.random() < 0.5:
            size = Resources(*size, min(*most, self.chance.choice((1, 1, 2, GPUS_MAX))))
        app.labels.pop(priority, None)
        if self.draw.labels and self.chance.random() < 0.5:
            app.labels[priority] = self.chance.choice(list(self.draw.labels))
        app.pending[priority] = size, count
        self.rig.request(app.name, priority, size, count, app.labels.get(priority, ""))

    def change(self) -> None:
        """Let one application that requests nothing at a priority request something, or submit one.

        In a wide tree the priority of an application may change instead.
        """
        self._observed()  # a daemon looks every second; one look later grants and requests may sum up to the same
        if self._wide and self.chance.random() < 0.25:
            app = self.chance.choice(list(self.applications.values()))
            app.priority = self.chance.choice((0, 1, 2, 5))
            self.rig.prioritise(app.name, app.priority)
            self.settle(self.nodes[0])
            return
        idle = [app for app in self.applications.values() if len(app.pending) < 2]
        if len(self.applications) < 12 and (not idle or self.chance.random() < 0.3):
            self.submit()
        elif idle:
            app = self.chance.choice(idle)
            self._request(app, self.chance.choice([each for each in (5, 10, 20) if each not in app.pending]))
        self.settle(self.nodes[0])

    def settle(self, first_node: str) -> Counter[str]:
        """Send heartbeats, the first of ``first_node``, until nothing changes any more; return the grants."""
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
            if quiet == quiet_rounds(self.draw):
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
                    "labels": {str(priority): app.labels.get(priority, "") for priority in app.pending},
                }
                for app in self.applications.values()
            ],
            "held": list(self.held.values()),
            "reserved": self.rig.reserved(),
            "history": self.rig.history(),
        }  # fmt: skip


def quiet_rounds(draw: TreeDraw) -> int:
    """Return after how many rounds of heartbeats without a change there will be none.

    A shared partition refuses a request without a label once for each node of the cluster.
    """
    return 2 if all(draw.labels.values()) else draw.nodes + 2


class EmulatedTree:
    """The emulator's ResourceManager in a state of a real one."""

    def __init__(self, draw: TreeDraw, state: dict[str, Any]) -> None:
        self._quiet_rounds = quiet_rounds(draw)
        keys = {key: value for key, value in draw.properties.items() if key.startswith(PREFIX)}
        source = queues_of_keys(f"seed {draw.seed}", keys)
        self.rm = EmulatedManager(source.leaves, self, source.parents)
        scheduler = self.rm.scheduler
        assert isinstance(scheduler, TreeScheduler)
        self.scheduler: TreeScheduler = scheduler
        scheduler.types = draw.types
        if draw.labels:
            scheduler.set_labels(draw.labels)
        for tree in scheduler.trees.values():
            for queue in tree.values():
                queue.smallest = queue.users.smallest = SLOT
        for index, (size, label) in enumerate(zip(draw.node_sizes, draw.node_labels, strict=True)):
            others = beside(size)
            self.rm.register_node(
                Node(index, *pair(size), phase_ms=index, label=label, others=others, free_others=others)
            )
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
            labels = row.get("labels", {})
            for priority, memory_mib, vcores, *others, count in row["pending"]:
                ask = Ask(
                    priority, memory_mib, vcores, off_switch=True, others=beside(Resources(0, 0, *others)),
                    label=labels.get(str(priority), ""),
                )  # fmt: skip
                self.rm.allocate(app, [(ask, count)])
        for row in state["reserved"]:
            self._reserve(row)
        history = state.get("history", {})
        for row in state["reserved"]:
            tries = history["in_vain"][row["node"]] if history else 2
            self.scheduler.in_vain[self._apps[row["application"]], row["priority"]] = tries
        for name, ranked_mib in history.get("ranked_mib", {}).items():
            self._apps[name].ranked_mib = ranked_mib
        for name, refused in history.get("refused", {}).items():
            for ask in self._apps[name].asks:
                ask.missed = refused.get(str(ask.priority), 0)
        ratios = {"": history.get("users_ratios", {}), **history.get("labelled_ratios", {})}
        for label, leaves in ratios.items():
            for path, ratio in leaves.items():
                scheduler.trees[label][path.partition(".")[2]].users.ratio = single(ratio)
        self.names = {app: name for name, app in self._apps.items()}

    def wake(self, app: Application) -> None:
        """No master reads the mail."""

    def launch_master(self, container: Container) -> None:
        """A master is a container like any other."""

    def _hold(self, number: int, row: dict[str, Any]) -> None:
        """Count a container that exists, as the scheduler counts one that it grants."""
        app, node = self._apps[row["application"]], self._nodes[row["node"]]
        memory_mib, vcores, others = row["memory_mib"], row["vcores"], others_of(row)
        container = Container(number, app, node, memory_mib, vcores, row["priority"], 0, others=others)
        self._held[row["container"]] = self.scheduler.live[number] = container
        self.rm.containers_granted = number
        node.free_mib -= memory_mib
        node.free_vcores -= vcores
        if others is not NOTHING:
            node.free_others = minus(node.free_others, others)
        app.used_mib += memory_mib
        app.ranked_mib = app.used_mib
        app.used_vcores += vcores
        app.containers += 1
        queue = app.queue
        queue.used_mib += memory_mib
        queue.used_vcores += vcores
        if queue.user_mib is not None:
            queue.users[app.user] = queue.users.get(app.user, 0) + memory_mib
        self.scheduler.count_held(
            self.scheduler.trees[node.label][queue.name], app, memory_mib, vcores, others
        )

    def _reserve(self, row: dict[str, Any]) -> None:
        app, node = self._apps[row["application"]], self._nodes[row["node"]]
        ask = next((each for each in app.asks if each.priority == row["priority"]), None)
        if ask is None:
            return
        app.reserved[ask.priority] = app.reserved.get(ask.priority, 0) + 1
        node.reserved = NodeReservation(app, ask)
        self.scheduler.keep(app, ask, node)

    def free(self, container: str, *, by_partition: bool = False, alone: bool = False) -> Counter[str]:
        """Free a container, let the nodes have heartbeats until nothing changes; return the grants.

        ``by_partition``: first the nodes of that node's partition alone, then all; ``alone``: only those.
        """
        held = self._held[container]
        self.scheduler.free(held, 0)
        granted: Counter[str] = Counter()
        if by_partition or alone:
            own = [node for node in self.rm.nodes if node.label == held.node.label]
            self._beat([held.node, *own], own, granted)
        if not alone:
            self._beat([held.node, *self.rm.nodes], self.rm.nodes, granted)
        return granted

    def _beat(self, nodes: list[Node], all_nodes: list[Node], granted: Counter[str]) -> None:
        """Let nodes have a heartbeat each, then ``all_nodes`` in turn until nothing changes; count grants."""
        quiet = 0
        while quiet < self._quiet_rounds:
            before = granted.total(), [node.reserved for node in self.rm.nodes]
            for node in nodes:
                for each in self.rm.node_heartbeat(node, [], 0):
                    granted[self.names[each.app]] += 1
            quiet = quiet + 1 if before == (granted.total(), [node.reserved for node in self.rm.nodes]) else 0
            nodes = all_nodes


def others_of(row: Mapping[str, Any]) -> Resources:
    """Return what a container or a reservation has beside memory and vcores."""
    return beside(Resources(0, 0, *row.get("others", {}).values()))


def beside(size: Resources) -> Resources:
    """Return the part of a size beside memory and vcores, as the emulator's records have it."""
    return Resources(0, 0, *size[2:]) if len(size) > 2 else NOTHING
