"""YARN's own preemption: the ProportionalCapacityPreemptionPolicy, for comparison.

Law: it does what an unmodified Hadoop 3 does (facts, hadoop 6): each interval an ideal share
per queue from guarantees and demand, at most ``total_per_round_ratio`` of the cluster per round,
only ``natural_termination_ratio`` of what is over, none inside the dead zone; containers are
marked, and killed once marked for ``max_wait_before_kill_ms``. Maps before reduces, newest
first, the master never (YARN would select it last).

In a tree the shares are those of :mod:`yarnctl.deciding.ideal_shares`, in memory and vcores. Reservations of
a leaf go first. A mark stays for twice the wait also while its container is not owed, as in YARN: what is
excused and owed again in that time has no new wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from emulator.cluster.entities import AM, ENDED, RELEASED, Container, NodeReservation
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.queues.preemption_shares import share_queue
from emulator.cluster.queues.tree_queue import TreeQueue
from yarnctl.deciding.ideal_shares import PreemptionRates, ideal_shares
from yarnctl.units import NOTHING, Resources, fits, is_by_memory, minus, plus

if TYPE_CHECKING:
    from emulator.cluster.entities import Application, LeafQueue
    from emulator.cluster.kernel import Kernel
    from emulator.cluster.scheduler import CapacityScheduler


class PreemptionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``yarn.resourcemanager.monitor.capacity.preemption.*``, at the defaults of Hadoop 3."""

    monitoring_interval_ms: int = 3000
    max_wait_before_kill_ms: int = 15_000
    total_per_round_ratio: float = 0.1
    max_ignored_over_capacity_ratio: float = 0.1
    natural_termination_ratio: float = 0.2
    observe_only: bool = False


TUNED = PreemptionConfig(
    monitoring_interval_ms=1000,
    max_wait_before_kill_ms=1000,
    total_per_round_ratio=1.0,
    natural_termination_ratio=1.0,
)
"""What a careful administrator would set: 1 s interval and wait, no round limit, factor 1."""


class PreemptedResourceManager(Protocol):
    """The part of a ResourceManager that the policy reads, and its one change."""

    @property
    def total(self) -> Resources:
        """The size of the nodes that count."""
        ...

    @property
    def scheduler(self) -> CapacityScheduler:
        """The scheduler."""
        ...

    @property
    def applications(self) -> Mapping[int, Application]:
        """The applications, by number."""
        ...

    def kill_now(self, container: Container, ending: str, now_ms: int) -> None:
        """End a container at once."""
        ...


class Offering(Protocol):
    """What offers free capacity again."""

    def begin(self) -> None:
        """Begin to offer."""
        ...


class PreemptedCluster(Protocol):
    """The part of a cluster that the policy needs."""

    @property
    def kernel(self) -> Kernel:
        """The clock."""
        ...

    @property
    def rm(self) -> PreemptedResourceManager:
        """The ResourceManager."""
        ...

    @property
    def sweep(self) -> Offering:
        """What offers free capacity."""
        ...

    @property
    def unfinished(self) -> object:
        """Whether there is anything left to watch."""
        ...


class CapacityPreemption:
    """The monitor thread: ``run`` is called at the interval in ``config``.

    ``is_excused``: whether a leaf queue has ``disable_preemption``. Marks of its containers stay meanwhile,
    as in YARN: such a container may be killed in the first round after the queue is allowed again.
    ``held_ms``: how long the killed containers of each leaf queue were held.
    """

    def __init__(
        self,
        cluster: PreemptedCluster,
        config: PreemptionConfig,
        is_excused: Callable[[LeafQueue], bool] = lambda _: False,
    ) -> None:
        self.cluster = cluster
        self.config = config
        self._is_excused = is_excused
        self.marked_at_ms: dict[int, int] = {}
        self.killed_at_ms: list[int] = []
        self.held_ms: dict[str, int] = {}
        self._allowed_mib = 0

    @property
    def kills(self) -> int:
        """Return how many containers have been killed."""
        return len(self.killed_at_ms)

    def start(self) -> None:
        """Begin to monitor."""
        kernel = self.cluster.kernel
        kernel.at(kernel.now_ms + self.config.monitoring_interval_ms, self._on_interval, None)

    def _on_interval(self, _: None) -> None:
        if self.cluster.rm.scheduler.demanding or self.marked_at_ms:
            self.run(self.cluster.kernel.now_ms)
        if self.cluster.unfinished:
            self.cluster.kernel.at(
                self.cluster.kernel.now_ms + self.config.monitoring_interval_ms, self._on_interval, None
            )

    def run(self, now_ms: int) -> None:
        """One round: mark what is owed, kill what has been marked for long enough."""
        if self.config.observe_only:
            return
        scheduler = self.cluster.rm.scheduler
        chosen: dict[int, Container] = {}
        is_tree = isinstance(scheduler, TreeScheduler)
        if isinstance(scheduler, TreeScheduler):
            self._select_in_tree(scheduler, chosen)
        else:
            owed = self._owed_mib()
            self._allowed_mib = int(self.cluster.rm.total.memory_mib * self.config.total_per_round_ratio)
            for queue, mib in owed:
                self._select(queue, mib, chosen)
        kept = self._kept_marks(now_ms, every_queue=is_tree)
        self.marked_at_ms = kept | {number: self.marked_at_ms.get(number, now_ms) for number in chosen}
        for number, container in chosen.items():
            if now_ms - self.marked_at_ms[number] >= self.config.max_wait_before_kill_ms:
                del self.marked_at_ms[number]
                self.killed_at_ms.append(now_ms)
                name = container.app.queue.name
                self.held_ms[name] = self.held_ms.get(name, 0) + now_ms - container.granted_at_ms
                self.cluster.rm.kill_now(container, "killed", now_ms)
        self.cluster.sweep.begin()

    def _kept_marks(self, now_ms: int, *, every_queue: bool) -> dict[int, int]:
        """Return the marks that stay (``every_queue``, or of excused ones): YARN drops them after 2 waits."""
        live, oldest_ms = self.cluster.rm.scheduler.live, now_ms - 2 * self.config.max_wait_before_kill_ms
        return {
            number: at_ms
            for number, at_ms in self.marked_at_ms.items()
            if number in live
            and at_ms >= oldest_ms
            and (every_queue or self._is_excused(live[number].app.queue))
        }

    def _select_in_tree(self, scheduler: TreeScheduler, chosen: dict[int, Container]) -> None:
        """Choose what each leaf has to give, and drop its reservations, within what one round may take."""
        config = self.config
        whole = self.cluster.rm.total
        for size in scheduler.totals.values():
            whole = plus(whole, size)
        rates = PreemptionRates(
            config.total_per_round_ratio,
            config.max_ignored_over_capacity_ratio,
            config.natural_termination_ratio,
            memory_only=is_by_memory(whole),
        )
        allowed = Resources(*(int(each * config.total_per_round_ratio) for each in whole))
        for label, tree in scheduler.trees.items():
            shares = ideal_shares(share_queue(tree[""], scheduler, self._is_excused), rates)
            for name, leaf in scheduler.queues.items():
                left = shares[name].gives
                if left == NOTHING:
                    continue
                running = [each for each in self._running(leaf) if each.node.label == label]
                for app in self._last_served_first(tree[name]):
                    for node in scheduler.kept.get(app, ())[:]:
                        reservation = node.reserved
                        assert isinstance(reservation, NodeReservation)
                        size = Resources(reservation.ask.memory_mib, reservation.ask.vcores)
                        owed = node.label == label and (left[0] > 0 or left[1] > 0)
                        if owed and fits(size, allowed):
                            left, allowed = minus(left, size), minus(allowed, size)
                            scheduler.unreserve(node)
                    for container in running:
                        size = Resources(container.memory_mib, container.vcores)
                        owed = container.app is app and (left[0] > 0 or left[1] > 0)
                        if owed and fits(size, allowed):
                            left, allowed = minus(left, size), minus(allowed, size)
                            chosen[container.number] = container

    def _last_served_first(self, queue: TreeQueue) -> list[Application]:
        """Return a leaf's active applications, the one that is served last first."""
        apps = self.cluster.rm.applications.values()
        active = [app for app in apps if app.queue is queue.leaf and app.activated]
        return sorted(active, key=queue.serving_key, reverse=True)

    def ideal_mib(self) -> dict[str, int]:
        """Return each queue's ideal assignment: guarantees first, then what is over by guarantee.

        A queue never gets more than it uses and asks for, nor more than its maximum; what one
        leaves is shared among the others in proportion to their guarantees.
        """
        queues = list(self.cluster.rm.scheduler.queues.values())
        left_mib = self.cluster.rm.total.memory_mib
        wants = {queue.name: self._wanted_mib(queue) for queue in queues}
        ideal = {queue.name: 0 for queue in queues}
        hungry = [queue for queue in queues if wants[queue.name] > 0]
        while hungry and left_mib > 0:
            weights = {queue.name: max(1, queue.guaranteed.memory_mib) for queue in hungry}
            weight = sum(weights.values())
            given = 0
            for queue in hungry:
                share = left_mib * weights[queue.name] // weight
                take = min(share, wants[queue.name] - ideal[queue.name])
                ideal[queue.name] += take
                given += take
            if given == 0:
                break
            left_mib -= given
            hungry = [queue for queue in hungry if ideal[queue.name] < wants[queue.name]]
        return ideal

    def _wanted_mib(self, queue: LeafQueue) -> int:
        pending = sum(ask.count * ask.memory_mib for app in queue.demand for ask in app.asks)
        return min(queue.used_mib + pending, queue.maximum_mib)

    def _owed_mib(self) -> list[tuple[LeafQueue, int]]:
        config = self.config
        ideal = self.ideal_mib()
        queues = list(self.cluster.rm.scheduler.queues.values())
        total_mib = self.cluster.rm.total.memory_mib
        owed = []
        for queue in queues:
            over = queue.used_mib - max(ideal[queue.name], 0)
            dead_zone = queue.guaranteed.memory_mib * (1 + config.max_ignored_over_capacity_ratio)
            if over > 0 and queue.used_mib > dead_zone and not self._is_excused(queue):
                owed.append((queue, over))
        asked = sum(mib for _, mib in owed)
        budget = total_mib * config.total_per_round_ratio
        scale = min(1.0, budget / asked) if asked else 0.0
        return [(queue, int(mib * scale * config.natural_termination_ratio)) for queue, mib in owed]

    def _select(self, queue: LeafQueue, mib: int, chosen: dict[int, Container]) -> None:
        """Mark containers of the queue's applications, last served first, until ``mib`` is covered."""
        running = self._running(queue)
        # A marked container that is still owed keeps its mark and its waiting time: those go first. As in
        # YARN, a container is marked while anything is still owed, but none that is larger than what is left
        # of the round's total.
        running.sort(key=lambda each: each.number not in self.marked_at_ms)
        for container in running:
            if mib <= 0:
                return
            if container.memory_mib <= self._allowed_mib:
                chosen[container.number] = container
                mib -= container.memory_mib
                self._allowed_mib -= container.memory_mib

    def _running(self, queue: LeafQueue) -> list[Container]:
        containers = [
            container
            for container in self.cluster.rm.scheduler.live.values()
            if container.app.queue is queue
            and container.kind != AM
            and container.state not in (ENDED, RELEASED)
        ]
        containers.sort(key=lambda each: each.number, reverse=True)
        containers.sort(key=lambda each: each.priority, reverse=True)
        containers.sort(key=lambda each: each.app.order, reverse=True)
        return containers
