"""One queue of a tree: its limits and use in one partition, and its place among its siblings."""

from __future__ import annotations

from collections.abc import Collection
from itertools import zip_longest
from typing import Protocol, Self

from emulator.cluster.entities import (
    Application,
    LeafQueue,
    ParentConfig,
    QueueConfig,
    TreeLeafConfig,
    with_others,
)
from emulator.cluster.queues.user_shares import SMALLEST, UserShares
from yarnctl.units import NOTHING, Resources, at_most, by_memory, is_by_memory, minus, plus


class QueueSource(Protocol):
    """The queues of a configuration, which may let more be created on demand."""

    @property
    def leaves(self) -> tuple[TreeLeafConfig, ...]:
        """The leaves."""

    @property
    def parents(self) -> tuple[ParentConfig, ...]:
        """The parents, root first, each before its children."""

    @property
    def expiry_ms(self) -> int | None:
        """How long a leaf on demand stays after its last submission, once it is empty (None: for ever)."""

    def created(self, path: str) -> Self | None:
        """Return the queues with one leaf more, by its path below root; None: no parent creates it."""

    def without(self, paths: Collection[str]) -> Self:
        """Return the queues without some leaves that were created on demand."""

    def stays(self, path: str) -> bool:
        """Return whether a leaf on demand is never deleted."""

    def placed(self, user: str, queue: str) -> str:
        """Return the queue of an application of a user that names ``queue``."""


class SharedLeaf(LeafQueue):
    """A leaf of a tree, which its users share; ``shared``: what each holds of the nodes without a label.

    ``guaranteed_others``, ``maximum_others``: of the other resource types.
    """

    __slots__ = ("_fixed_mib", "guaranteed_others", "maximum_others", "shared")

    def __post_init__(self) -> None:
        self.shared = UserShares()
        self.guaranteed_others = self.maximum_others = NOTHING
        super().__post_init__()

    @property
    def user_mib(self) -> int | None:
        """The memory beyond which no user is given more; None: no limit."""
        limit = self.user_limit()
        return None if limit is None else limit[0]

    @user_mib.setter
    def user_mib(self, fixed_mib: int | None) -> None:
        self._fixed_mib = fixed_mib

    def user_limit(self) -> Resources | None:
        """Return what no user is given more beyond; None: no limit."""
        fixed_mib, factor, total = self._fixed_mib, self.config.user_limit_factor, self.shared.total
        if factor is None and fixed_mib is not None:
            most = Resources(fixed_mib, -(-fixed_mib * total[1] // total[0]))
            return self.shared.limit(self, self.all_guaranteed, most)
        return self.limit_of(self.shared, self.all_guaranteed, self.all_maximum)

    def limit_of(
        self, shared: UserShares, guaranteed_resources: Resources, maximum_resources: Resources
    ) -> Resources | None:
        """Return what no user is given more beyond of a partition; None: no limit."""
        if self.config.user_limit_factor is None and self.user_percent == 100:
            return None
        most = self.highest_limit(shared, guaranteed_resources, maximum_resources)
        return shared.limit(self, guaranteed_resources, most)

    def highest_limit(
        self, shared: UserShares, guaranteed_resources: Resources, maximum_resources: Resources
    ) -> Resources:
        """Return guarantee x user-limit-factor of a partition; without one of them the maximum."""
        factor = self.config.user_limit_factor
        if factor is None or not any(guaranteed_resources):
            return maximum_resources
        least = shared.larger(guaranteed_resources, shared.smallest)
        return Resources(*(int(part * factor) for part in least))

    @property
    def user_percent(self) -> int:
        """minimum-user-limit-percent."""
        return self.config.user_percent if isinstance(self.config, TreeLeafConfig) else 100

    @property
    def all_guaranteed(self) -> Resources:
        """The guarantee of all resource types."""
        return with_others(self.guaranteed[0], self.guaranteed[1], self.guaranteed_others)

    @property
    def all_maximum(self) -> Resources:
        """The maximum of all resource types."""
        return with_others(self.maximum_mib, self.maximum_vcores, self.maximum_others)


class TreeQueue:
    """A parent, or a leaf with its ``leaf``, and what is used at and below it, reserved included.

    ``chain``: the queue and its ancestors, root last. ``below``: its children. ``demanding``: those with
    demand at or below them. ``label``: of the nodes that it is about; ``users``: what the users of a leaf
    hold of them. ``reserved``: what is reserved at and below it. ``smallest``: the smallest container.
    ``unlabelled``: the same queue of the nodes without a label.
    ``used_others``, ``guaranteed_others``, ``maximum_others``: the same of the scheduler's other resource
    types, as vectors without memory and vcores.
    """

    def __init__(
        self,
        config: ParentConfig | QueueConfig,
        parent_queue: TreeQueue | None,
        leaf: LeafQueue | None,
        label: str = "",
        unlabelled_queue: TreeQueue | None = None,
    ) -> None:
        self.config = config
        self.unlabelled = self if unlabelled_queue is None else unlabelled_queue
        self.above = parent_queue
        self.leaf = leaf
        self.label = label
        self.users = leaf.shared if isinstance(leaf, SharedLeaf) and not label else UserShares()
        self.name = config.name
        self.chain: tuple[TreeQueue, ...] = (self,) if parent_queue is None else (self, *parent_queue.chain)
        self.demanding: list[TreeQueue] = []
        self.used_mib = self.used_vcores = 0
        self.guaranteed = self.maximum = self.reserved = NOTHING
        self.below: list[TreeQueue] = []
        if parent_queue is not None:
            parent_queue.below.append(self)
        self._total = Resources(0, 0)
        self._total_others = self.used_others = self.guaranteed_others = self.maximum_others = NOTHING
        self._guaranteed_share = 0.0
        self.smallest = SMALLEST

    @property
    def path(self) -> str:
        """The path from root, as YARN writes it."""
        return f"root.{self.name}" if self.name else "root"

    @property
    def priority(self) -> int:
        """The queue's priority: read by a parent that orders by ``priority-utilization``."""
        return self.config.priority if isinstance(self.config, ParentConfig | TreeLeafConfig) else 0

    @property
    def fair(self) -> bool:
        """Whether a leaf serves the application first that uses the least memory."""
        return isinstance(self.config, TreeLeafConfig) and self.config.fair

    @property
    def untouchable(self) -> bool:
        """Whether YARN's own preemption takes nothing from this leaf."""
        return isinstance(self.config, TreeLeafConfig) and self.config.preemption_disabled

    def serving_key(self, app: Application) -> tuple[int, ...]:
        """Return the place of an application in the line of this leaf: the lowest is served first.

        Under ``fair``, of equal use the older one, whatever the priorities. A container that fills a
        reservation counts only from the application's next grant, reservation or release on
        (``FairOrderingPolicy``).
        """
        return (app.ranked_mib, app.number) if self.fair else app.order

    @property
    def stopped(self) -> bool:
        """Whether this queue or one above it takes no new application."""
        return any(
            isinstance(each.config, ParentConfig | TreeLeafConfig) and each.config.stopped
            for each in self.chain
        )

    def resize(self, total_mib: int, total_vcores: int, other_resources: Resources = NOTHING) -> None:
        """Set the limits for a cluster of this size; shares are cut off, as YARN normalises them."""
        if self.leaf is not None:
            self.config = self.leaf.config
        config = self.config
        least, most = self.shares()
        self.guaranteed = Resources(int(total_mib * least + 1e-6), int(total_vcores * least + 1e-6))
        self.maximum = Resources(int(total_mib * most + 1e-6), int(total_vcores * most + 1e-6))
        self._total_others = other_resources
        self.guaranteed_others = Resources(*(int(part * least + 1e-6) for part in other_resources))
        self.maximum_others = Resources(*(int(part * most + 1e-6) for part in other_resources))
        if (
            isinstance(config, ParentConfig | TreeLeafConfig)
            and config.absolute is not None
            and not self.label
        ):
            self._set_absolute(config.absolute, config.absolute_maximum)
        self._total = Resources(total_mib, total_vcores)
        self.users.resize(with_others(total_mib, total_vcores, other_resources))
        self._guaranteed_share = self._dominant_share(
            self.guaranteed[0], self.guaranteed[1], self.guaranteed_others
        )
        if self.leaf is not None and not self.label:
            self.leaf.guaranteed = self.guaranteed
            self.leaf.maximum_mib, self.leaf.maximum_vcores = self.maximum
            if isinstance(self.leaf, SharedLeaf):
                self.leaf.guaranteed_others = self.guaranteed_others
                self.leaf.maximum_others = self.maximum_others

    def _set_absolute(self, least_resources: Resources, most_resources: Resources | None) -> None:
        """Set limits that are given as resources. Siblings that want more than their parent has share it."""
        above = self.above
        assert above is not None
        wanted = [_absolute(each) for each in above.below]
        if is_by_memory(above.guaranteed):
            least_resources = by_memory(least_resources)
            most_resources = None if most_resources is None else by_memory(most_resources)
            wanted = [by_memory(each) for each in wanted]
        self.guaranteed = Resources(
            *(
                own
                if (whole := sum(each[kind] for each in wanted)) <= above.guaranteed[kind]
                else own * above.guaranteed[kind] // whole
                for kind, own in enumerate(least_resources)
            )
        )
        self.maximum = above.maximum
        if most_resources is not None:
            self.maximum = Resources(*map(min, most_resources, above.maximum))
        if self.leaf is not None:
            self.leaf.set_limits(self.guaranteed, *self.maximum)

    def shares(self) -> tuple[float, float]:
        """Return the shares of the cluster that are guaranteed and that are the most, as ratios."""
        config = self.config
        if self.label:
            known = isinstance(config, ParentConfig | TreeLeafConfig)
            return config.labels.get(self.label, (0.0, 0.0)) if known else (0.0, 0.0)  # type: ignore[union-attr]
        if isinstance(config, ParentConfig | TreeLeafConfig) and config.absolute is not None:
            return self._guaranteed_share, self._dominant_share(*self.maximum)
        return config.capacity_ratio, config.maximum_ratio

    def may_request(self, label: str) -> bool:
        """Return whether applications of this queue, or below it, may request a label."""
        known = isinstance(self.config, ParentConfig | TreeLeafConfig)
        accessible = self.config.accessible if known else None  # type: ignore[union-attr]
        return not label or accessible is None or label in accessible

    @property
    def used(self) -> Resources:
        """What is used at and below it of all resource types, reserved included."""
        return with_others(self.used_mib, self.used_vcores, self.used_others)

    @property
    def all_guaranteed(self) -> Resources:
        """The guarantee of all resource types."""
        return with_others(self.guaranteed[0], self.guaranteed[1], self.guaranteed_others)

    @property
    def all_maximum(self) -> Resources:
        """The maximum of all resource types."""
        return with_others(self.maximum[0], self.maximum[1], self.maximum_others)

    def user_limit(self, *, shares_idle: bool = False) -> Resources | None:
        """Return what no user of this leaf is given more beyond; ``shares_idle``: of a shared partition."""
        leaf = self.leaf
        assert isinstance(leaf, SharedLeaf)
        if shares_idle:
            return self.users.limit(leaf, self.all_guaranteed, self.chain[-1].all_maximum)
        if not self.label:
            return leaf.user_limit()
        return leaf.limit_of(self.users, self.all_guaranteed, self.all_maximum)

    def held_by(self, user: str) -> Resources:
        """Return what a user of this leaf holds, with its reservations."""
        return self.users.held.get(user, NOTHING)

    def count(self, memory_mib: int, vcores: int, other_resources: Resources = NOTHING) -> None:
        """Count room as used (negative: freed) here and in all ancestors."""
        for node in self.chain:
            node.used_mib += memory_mib
            node.used_vcores += vcores
            if other_resources is not NOTHING:
                node.used_others = plus(node.used_others, other_resources)

    def has_room(self, memory_mib: int, vcores: int, other_resources: Resources = NOTHING) -> bool:
        """Return whether this much more is within the maximum here and in all ancestors."""
        left = self.headroom()
        wanted = zip_longest(other_resources[2:], left[2:], fillvalue=0)
        if other_resources is not NOTHING and not all(part <= whole for part, whole in wanted if part > 0):
            return False
        return memory_mib <= left[0] and vcores <= left[1]

    def headroom(self) -> Resources:
        """Return what is left below every maximum; may be negative."""
        least_mib, least_vcores = self.maximum
        for node in self.chain:
            least_mib = min(least_mib, node.maximum[0] - node.used_mib)
            least_vcores = min(least_vcores, node.maximum[1] - node.used_vcores)
        if self._total_others is NOTHING:
            return Resources(least_mib, least_vcores)
        others = self.maximum_others
        for node in self.chain:
            others = at_most(others, minus(node.maximum_others, node.used_others))
        return Resources(least_mib, least_vcores, *others[2:])

    def _dominant_share(self, memory_mib: int, vcores: int, other_resources: Resources = NOTHING) -> float:
        total_mib, total_vcores = self._total
        share = max(
            memory_mib / total_mib if total_mib else 0.0, vcores / total_vcores if total_vcores else 0.0
        )
        parts = zip(other_resources[2:], self._total_others[2:], strict=False)
        return max([share, *(part / whole for part, whole in parts if whole)])

    def used_share(self) -> float:
        """Return the dominant share of the cluster that is used, of all resource types."""
        return self._dominant_share(self.used_mib, self.used_vcores, self.used_others)

    def ratio(self) -> float:
        """Return used / guaranteed, as ``usedCapacity`` shows it; a queue without a guarantee is served last.

        It is the dominant share of the cluster that is used over the dominant share that is guaranteed. So a
        guarantee whose vcores are cut off counts by its memory: 7 slots of 5.76 are 122 %, not 7 / 5. One
        below the ``smallest`` container counts as one.
        """
        used_share = self.used_share()
        least_share = self._dominant_share(*self.smallest)
        # YARN compares numbers of 32 bits: shares that differ by less are equal.
        share = max(self._guaranteed_share, least_share) if self._guaranteed_share else 0.0
        return round(used_share / share, 6) if share else 1e9 + used_share

    def place(self) -> tuple[float | str, ...]:
        """Return the place among its siblings: of equal ratios the larger guarantee, then the name is first.

        Under ``priority-utilization`` a queue below its guarantee comes first, then the higher priority. One
        without a guarantee is last, whatever its priority.
        """
        ratio = self.ratio()
        place = (ratio, -self.guaranteed[0], self.name)
        above = self.above
        if above is None or not isinstance(above.config, ParentConfig) or above.config.order == "utilization":
            return place
        return (not self._guaranteed_share, ratio >= 1.0, -self.priority, *place)


def _absolute(queue: TreeQueue) -> Resources:
    config = queue.leaf.config if queue.leaf is not None else queue.config
    assert isinstance(config, ParentConfig | TreeLeafConfig)
    return config.absolute or NOTHING
