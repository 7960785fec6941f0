"""Random states of a real ResourceManager in which production waits, and what its own answers show of them.

A state is a function of its seed: a tree of queues (``tree_order_states``) is filled by research, then the
applications of production request containers, and the nodes have heartbeats until two rounds change nothing.
Masters are those of the rig. They tell the kind of each task, as a job's own master does; where containers
run, and all the rest, is read by yarnctl's own readers over REST.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from yarn_research.campaigns.scheduler_rig import SchedulerRig
from yarn_research.campaigns.tree_order_draws import SLOT, USERS, TreeDraw
from yarn_research.campaigns.tree_order_states import EmulatedTree, LiveApplication, RealTree
from yarnctl.attach.connection.connection import Attachment, Connection
from yarnctl.attach.observing.activity_reader import ActivityReader
from yarnctl.attach.observing.cluster_state import ClusterObserver, LiveContainers
from yarnctl.config import ClusterAddress
from yarnctl.deciding.forecast import over_guarantee
from yarnctl.deciding.model import QueueView, Snapshot, TaskKind, TaskView
from yarnctl.deciding.settings import DEFAULT
from yarnctl.units import Resources, minus, times

EXECUTOR, RETURNED, REDUCE, MAP = 1, 5, 10, 20
"""Priorities of requests: Spark's, and those of MapReduce for ended maps, reduces and maps."""
KINDS: dict[int, TaskKind] = {EXECUTOR: "executor", RETURNED: "map", REDUCE: "reduce", MAP: "map"}
FILLS_MAX = 6
TOLERANCE_PPM = round(DEFAULT.utilisation_tolerance_ratio * 1_000_000)


class WaitingTree(RealTree):
    """A tree in which production waits.

    ``guarantees``: ``--mode guarantees`` decides, without lists of queues. ``preempting``, ``preemptable``:
    paths of leaves, empty with ``guarantees``.
    """

    def __init__(self, rig: SchedulerRig, seed: int) -> None:
        self._own_chance = random.Random(f"in vain {seed}")
        paths = [leaf.path for leaf in TreeDraw(seed).leaves]
        self._own_chance.shuffle(paths)
        count = max(1, len(paths) // 3)
        self._production, self._research = paths[:count], paths[count : 3 * count + 1]
        self._production_requests = False
        self.guarantees = self._own_chance.random() < 0.25
        self.preempting = () if self.guarantees else tuple(self._production)
        self.preemptable = () if self.guarantees else tuple(self._research)
        super().__init__(rig, seed)
        for _ in range(FILLS_MAX):
            self._observed()
            if not any(min(room) > 0 for room in self.rooms.values()):
                break
            self.submit()
            self.settle(self.nodes[0])
        self._production_requests = True
        for _ in range(self._own_chance.randint(1, 3)):
            self.submit()
        self.settle(self.nodes[0])
        self._attach()

    def _attach(self) -> None:
        """Read the cluster anew, as a daemon with these queues does."""
        self.close()
        manager = ClusterAddress(resource_managers=(self.rig.url,)).resource_manager()
        attachment = Attachment(
            preempting_queues=self.preempting,
            preemptable_queues=self.preemptable,
            mode="guarantees" if self.guarantees else "queues",
            levers=True,
        )
        self._connection = Connection(manager, None, attachment, self._clock)
        self._connection.read_configuration()
        self._reader = ActivityReader(manager.activities, self._clock)
        self._observer = ClusterObserver(self._connection, self._reader)

    def submit(self) -> None:
        """Submit an application: of production once the cluster is full, else mostly of research."""
        chance = self._own_chance
        places = self._production
        if not self._production_requests and self._research and chance.random() < 0.75:
            places = self._research
        elif not self._production_requests:
            places = [leaf.path for leaf in self.draw.leaves]
        app = LiveApplication("", chance.choice(places), chance.choice(USERS), chance.choice((0, 0, 0, 2)))
        app.name = self.rig.submit(app.queue, app.user, app.priority, f"app-{len(self.applications)}")
        self.applications[app.name] = app
        most = 8 if self._production_requests else 16
        priorities = (
            [EXECUTOR] if chance.random() < 0.2 else chance.sample((REDUCE, MAP), chance.randint(1, 2))
        )
        sizes = [times(SLOT, chance.choice((1, 1, 2, 3))) for _ in priorities]
        counts = [chance.randint(1, most) for _ in priorities]
        if not self.rig.is_active(app.name):
            return  # a managed master would not run yet
        for priority, size, number in zip(priorities, sizes, counts, strict=True):
            app.pending[priority] = size, number
            self.rig.request(app.name, priority, size, number)

    def _count(self, rows: list[dict[str, Any]], granted: Counter[str]) -> None:
        """Count grants; of one round of heartbeats they are in the order of the nodes."""
        super()._count(sorted(rows, key=lambda row: self.nodes.index(row["node"])), granted)

    def tasks(self) -> dict[str, tuple[TaskView, ...]]:
        """Return the running tasks of each application: containers and nodes as REST shows them."""
        held = LiveContainers(self._connection)
        found: dict[str, tuple[TaskView, ...]] = {}
        place = 0
        for name in self.applications:
            rows = []
            for row in sorted(held.of(name).containers.values(), key=lambda row: row.container):
                kind = KINDS[self.held[row.container]["priority"]]
                place += 1
                # An attempt's name ends in its number: each task has one attempt
                rows.append(
                    TaskView(
                        f"{row.container}_0", row.container, self.held[row.container]["node"], row.size, kind,
                        4_000 if kind == "executor" else 100_000 + place, 3_000, self._now_ms - 10_000 - place,
                        0, kind != "map", False,
                    )
                )  # fmt: skip
            found[name] = tuple(rows)
        return found

    def end(self, containers: list[str], leaving: frozenset[str] = frozenset()) -> Counter[str]:
        """Give containers back; their tasks, but those of ``leaving``, request again at once.

        An ended map requests first (MapReduce's priority of failed maps). Returns the grants.
        """
        rows = [self.held.pop(container) for container in containers]
        for row in rows:
            self.rig.free(row["application"], row["container"])
        for row in rows:
            if row["container"] not in leaving:
                self._request_again(row)
        return self.settle(rows[0]["node"])

    def _request_again(self, row: dict[str, Any]) -> None:
        app = self.applications[row["application"]]
        priority, size = returned(row)
        count = app.pending[priority][1] + 1 if priority in app.pending else 1
        app.pending[priority] = size, count
        self.rig.request(app.name, priority, size, count)

    def numbered(self) -> dict[str, Any]:
        """Return the state with applications and containers by number: equal in every play of the seed."""
        names = {name: number for number, name in enumerate(self.applications)}
        return {
            "pending": [sorted(app.pending.items()) for app in self.applications.values()],
            "held": sorted(
                (names[row["application"]], number_of(row["container"]), row["node"], row["priority"])
                for row in self.held.values()
            ),
            "reserved": sorted(
                (row["node"], names[row["application"]], row["priority"]) for row in self.rig.reserved()
            ),
        }

    def container(self, numbers: tuple[int, int]) -> str:
        """Return a container by the numbers of its application and its own."""
        name = list(self.applications)[numbers[0]]
        return next(
            each
            for each, row in self.held.items()
            if row["application"] == name and number_of(each) == numbers[1]
        )

    @property
    def now_ms(self) -> int:
        """The time of the present look."""
        return self._now_ms

    # --- what may be done ---------------------------------------------------------------------

    def waiting(self, snapshot: Snapshot) -> list[str]:
        """Return the applications for which yarnctl may free a container, and that wait for one."""
        queues = {view.queue: view for view in snapshot.queues}
        return [
            name
            for name, app in self.applications.items()
            if app.pending
            and (below_guarantee(queues[app.queue]) if self.guarantees else app.queue in self.preempting)
        ]

    def victims(self, snapshot: Snapshot, levers: bool) -> list[str]:
        """Return one container of each kind that yarnctl may end: the queue is over its guarantee and stays."""
        queues = {view.queue: view for view in snapshot.queues}
        kinds: dict[tuple[str, str, int, int], str] = {}
        for container, row in self.held.items():
            queue = self.applications[row["application"]].queue
            if row["priority"] == EXECUTOR and not levers:
                continue
            if (self.guarantees or queue in self.preemptable) and may_give(queues[queue], row):
                kinds[row["application"], row["node"], row["memory_mib"], row["priority"]] = container
        return list(kinds.values())

    def likely(self, container: str) -> Counter[str]:
        """Return what the emulator's ResourceManager grants if a container ends and its task returns."""
        state = self.state()
        row = self.held[container]
        for app in state["applications"]:
            if app["name"] == row["application"]:
                priority, size = returned(row)
                waiting = {each[0]: each for each in app["pending"]}
                waiting.setdefault(priority, [priority, *size, 0])[3] += 1
                app["pending"] = list(waiting.values())
        return EmulatedTree(self.draw, state).free(container)


def returned(row: dict[str, Any]) -> tuple[int, Resources]:
    """Return the priority and size of an ended task's new request."""
    priority = RETURNED if row["priority"] == MAP else row["priority"]
    return priority, Resources(row["memory_mib"], row["vcores"])


def number_of(container: str) -> int:
    """Return a container's number within its attempt."""
    return int(container.rpartition("_")[2])


def below_guarantee(view: QueueView) -> bool:
    """Return whether a queue uses less than its guarantee of every resource."""
    return all(used < least for used, least in zip(view.used, view.guaranteed, strict=True))


def may_give(view: QueueView, row: dict[str, Any]) -> bool:
    """Return whether a queue is over its guarantee, and not below it without a container."""
    left = minus(view.used, Resources(row["memory_mib"], row["vcores"]))
    stays = any(kept >= least for kept, least in zip(left, view.guaranteed, strict=True))
    return stays and over_guarantee(view, view.used, TOLERANCE_PPM)
