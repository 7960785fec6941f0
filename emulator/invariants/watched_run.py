"""A run under watch: its actors now, and what was true of them after the event before.

Law: a watch reads the actors, changes nothing, and has no invariant; what compares with the event before
finds it here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from emulator.cluster.app_master import AppMaster
from emulator.cluster.cluster import Cluster
from emulator.cluster.entities import Application, Container, Node
from emulator.cluster.faults import Fault
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.levers import LeverKind
from yarnctl.deciding.model import Action
from yarnctl.deciding.order import Order
from yarnctl.deciding.records import Record
from yarnctl.journal.fold import Fold

Stories = Iterator[str]
"""What a law yields: one story for each way in which it is broken."""


def name_of(container: Container) -> str:
    """Name a container in a story."""
    return f"container {container.number} (job {container.app.number}, task {container.task})"


class WatchedRun(Protocol):
    """What is watched: a ``virtual_host.Run``, or anything with a cluster."""

    cluster: Cluster


class ChargedLoss(NamedTuple):
    """What an order of ``at_ms`` loses, or fetches again, of a container of so much memory."""

    queue: str
    kind: LeverKind
    at_ms: int
    memory_mib: int
    lost_ms: int


class RunWatch:
    """A run under watch: its actors now, and what was true of them after the event before."""

    def __init__(self, run: WatchedRun) -> None:
        self.cluster = run.cluster
        self.kernel, self.rm, self.masters = run.cluster.kernel, run.cluster.rm, run.cluster.masters
        self.scheduler, self.nodes = self.rm.scheduler, self.rm.nodes
        self.controller: Controller | None = getattr(run, "controller", None)
        self.records: Sequence[Record] = getattr(getattr(run, "journal", None), "records", ())
        self.checks = 0
        # -- now
        self.live: list[Container] = []
        self.on: dict[Node, list[Container]] = {}
        self.usage: dict[Application, list[int]] = {}
        # -- after the event before
        self.now_ms = self.kernel.now_ms
        self.limits: dict[str, tuple[int, int, int, int]] = {}
        self.users: dict[tuple[str, str], int] = {}
        self.user_limits: dict[str, int] = {}
        self.running: dict[AppMaster, tuple[Container, ...]] = {}
        self.spent: dict[AppMaster, tuple[int, int, int, int]] = {}
        self.saved: dict[tuple[AppMaster, int], tuple[int, int]] = {}
        self.may_lose = bool(_faults(run)) or getattr(run, "preemption", None) is not None
        self.read = 0
        self.written_at_ms = 0
        self.decisions = 0
        self.stepped = (-1, 0)
        self.settled: dict[str, Order] = {}
        self.decided: set[str] = set()
        self.ended: set[str] = set()
        self.asked: list[Action] = []
        self.losses: dict[str, ChargedLoss] = {}
        self.held_marks: list[tuple[int, dict[str, int]]] = []
        self.fold = Fold()
        self.observe()
        self.remember()

    def live_now(self) -> list[Container]:
        """Return the containers that hold room, node by node."""
        self.on = {node: [] for node in self.nodes}
        for container in self.scheduler.live.values():
            self.on[container.node].append(container)
        return [container for held in self.on.values() for container in held]

    def observe(self) -> None:
        """Read the actors as they are now."""
        live = self.live_now()
        held: dict[Application, list[int]] = {}
        for container in live:
            sums = held.get(container.app)
            if sums is None:
                held[container.app] = [container.memory_mib, container.vcores, 1]
            else:
                sums[0] += container.memory_mib
                sums[1] += container.vcores
                sums[2] += 1
        self.live, self.usage = live, held

    def remember(self) -> None:
        """Keep what the next event is compared with."""
        self.now_ms = self.kernel.now_ms
        self.read = len(self.records)
        for name, queue in self.scheduler.queues.items():
            self.limits[name] = (queue.used_mib, queue.used_vcores, queue.am_used_mib, queue.maximum_mib)
            if queue.user_mib is not None:
                self.user_limits[name] = queue.user_mib
                for user, mib in queue.users.items():
                    self.users[name, user] = mib
        for master in self.masters:
            if master.app.finished_at_ms is None or master in self.running:
                self.running[master] = tuple(master.running.values())
                counters = (master.lost_ms, master.overhead_ms, master.suspensions, master.maps_left)
                self.spent[master] = counters
                for task, manifest in master.store.items():
                    self.saved[master, task] = manifest


def _faults(run: WatchedRun) -> tuple[Fault, ...]:
    faults: tuple[Fault, ...] = getattr(getattr(run, "setup", run), "faults", ())
    return faults
