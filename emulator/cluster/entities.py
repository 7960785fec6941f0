"""The entities that the scheduler, the ResourceManager, the nodes and the masters share: container, node,
application, ask, queue, reservation.

Law: state and arithmetic on it. An entity sends nothing and calls no actor; the capacity scheduler alone
changes the sums (free room, what queues, users and applications hold).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec

from yarnctl.units import NOTHING, Resources, by_memory

AM, MAP, REDUCE, EXECUTOR = 0, 1, 2, 3

GRANTED, RUNNING, ENDED, RELEASED = 0, 1, 2, 3
"""Granted: the AM has not launched it. Ended: the process is gone. Released: the RM has been told."""

NOT_REQUESTED, REQUESTED, DRAINING, RELEASE_WAIT = 0, 1, 2, 3
"""How far a suspend has come in this container."""

NEVER = 1 << 62
"""An instant that does not come: the phase has no end yet."""


def with_others(memory_mib: int, vcores: int, other_resources: Resources) -> Resources:
    """Return a vector of all resource types; ``other_resources`` has them without memory and vcores."""
    if other_resources is NOTHING:
        return Resources(memory_mib, vcores)
    return Resources(memory_mib, vcores, *other_resources[2:])


class QueueConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One leaf, as ``capacity-scheduler.xml`` has it; ratios in 0..1 of the cluster.

    ``user_limit_factor`` None: one user may take all of ``maximum_ratio``.
    """

    name: str
    capacity_ratio: float
    maximum_ratio: float = 1.0
    am_ratio: float = 1.0
    user_limit_factor: float | None = None
    preempting: bool = False


class TreeLeafConfig(QueueConfig, frozen=True, kw_only=True):
    """A leaf anywhere in a tree; ``name`` is its path below root, ratios are still of the cluster.

    * ``fair``: the application that uses the least memory is served first. ``stopped``: it takes no new ones.
    * ``weight``: its capacity is this part of the sum of its siblings' weights (None: a percentage).
    * ``absolute``, ``absolute_maximum``: resources in the place of the ratios (None: the ratio counts).
    * ``user_percent``: minimum-user-limit-percent. ``on_demand``: created for an application.
    * ``preemption_disabled``: YARN's own preemption takes nothing from it.
    * ``labels``: its capacity and maximum as ratios of each partition, by node label; ``accessible``: the
      labels that its applications may request (None: all); ``default_label``: what they request by default.
    """

    priority: int = 0
    fair: bool = False
    stopped: bool = False
    weight: float | None = None
    absolute: Resources | None = None
    absolute_maximum: Resources | None = None
    user_percent: int = 100
    on_demand: bool = False
    preemption_disabled: bool = False
    labels: dict[str, tuple[float, float]] = {}
    accessible: tuple[str, ...] | None = None
    default_label: str = ""


class ParentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A parent queue; ``name`` is its path below root, "" for root. ``order`` is that of its children.

    ``depth_on_demand``: so many levels below it are created for applications (0: none). The others are as in
    a leaf.
    """

    name: str = ""
    capacity_ratio: float = 1.0
    maximum_ratio: float = 1.0
    order: Literal["utilization", "priority-utilization"] = "utilization"
    priority: int = 0
    stopped: bool = False
    weight: float | None = None
    absolute: Resources | None = None
    absolute_maximum: Resources | None = None
    depth_on_demand: int = 0
    on_demand: bool = False
    preemption_disabled: bool = False
    labels: dict[str, tuple[float, float]] = {}
    accessible: tuple[str, ...] | None = None
    default_label: str = ""


class NodeLabel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node label, and on how many nodes it is; a partition that is not ``exclusive`` shares idle room."""

    name: str
    nodes: int
    exclusive: bool = True


@dataclass(slots=True, eq=False, repr=False)
class Ask:
    """``count`` containers of one size at one request priority.

    ``off_switch`` is False for asks that name racks (maps, resuming reduces). ``missed``: how often a shared
    partition has refused it since its last container. ``others``: what it wants of the scheduler's other
    resource types, as a vector without memory and vcores; so for nodes and containers. ``label``: of the
    nodes that it wants ("": nodes without one; None: the application's, until the scheduler has it).
    """

    priority: int
    memory_mib: int
    vcores: int
    off_switch: bool
    count: int = 0
    missed: int = 0
    others: Resources = NOTHING
    label: str | None = None

    @property
    def size(self) -> Resources:
        """One container, of all resource types."""
        return with_others(self.memory_mib, self.vcores, self.others)


@dataclass(slots=True, eq=False, repr=False)
class LeafQueue:
    """A leaf queue: its limits as vectors, its usage, and the applications that want more."""

    config: QueueConfig
    name: str = field(init=False)
    preempting: bool = field(init=False)
    guaranteed: Resources = field(init=False)
    maximum_mib: int = field(init=False)
    maximum_vcores: int = field(init=False)
    am_mib: int = field(init=False)
    user_mib: int | None = field(init=False)
    per_mib: float = field(init=False)
    per_vcore: float = field(init=False)
    used_mib: int = 0
    used_vcores: int = 0
    am_used_mib: int = 0
    usage_mib_ms: dict[str, int] = field(default_factory=dict)
    demand: list[Application] = field(default_factory=list)
    waiting: list[Application] = field(default_factory=list)
    active: list[Application] = field(default_factory=list)
    users: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name, self.preempting = self.config.name, self.config.preempting
        self.resize(0, 0)

    def resize(self, total_mib: int, total_vcores: int) -> None:
        """Set the limits for a cluster of this size. Shares round down, as YARN normalises them."""
        least, most = self.config.capacity_ratio, self.config.maximum_ratio
        guaranteed = Resources(int(total_mib * least), int(total_vcores * least))
        self.set_limits(guaranteed, round(total_mib * most), round(total_vcores * most))

    def set_limits(self, guaranteed_resources: Resources, maximum_mib: int, maximum_vcores: int) -> None:
        """Set the guarantee and the maximum, and what follows from them."""
        config = self.config
        self.guaranteed = guaranteed_resources
        self.maximum_mib, self.maximum_vcores = maximum_mib, maximum_vcores
        # Queue AM limit = AM share x max(guarantee, what the queue may grow to) (facts, hadoop 5).
        self.am_mib = int(self.maximum_mib * config.am_ratio)
        factor = config.user_limit_factor
        self.user_mib = None if factor is None else int(self.guaranteed.memory_mib * factor)
        self.per_mib = 1.0 / self.guaranteed.memory_mib if self.guaranteed.memory_mib else 1e9
        self.per_vcore = 1.0 / self.guaranteed.vcores if self.guaranteed.vcores else 1e9

    @property
    def default_label(self) -> str:
        """The node label of applications that name none ("": nodes without one)."""
        return self.config.default_label if isinstance(self.config, TreeLeafConfig) else ""

    def ratio(self) -> float:
        """Return used / guaranteed of the dominant resource: the lowest is served first."""
        by_memory, by_vcores = self.used_mib * self.per_mib, self.used_vcores * self.per_vcore
        return by_memory if by_memory > by_vcores else by_vcores


@dataclass(slots=True, eq=False, repr=False)
class Application:
    """The ResourceManager's record of one application; the AM's side is ``master``.

    ``label``: the node label of requests that name none ("": nodes without one). ``ranked_mib``: the memory
    by which a fair leaf of a tree orders it. ``blacklist``: names of the nodes from which it takes nothing.
    """

    number: int
    queue: LeafQueue
    user: str
    submitted_at_ms: int
    am_mib: int
    deadline_at_ms: int | None = None
    finished_at_ms: int | None = None
    asks: list[Ask] = field(default_factory=list)
    pending: int = 0
    used_mib: int = 0
    used_vcores: int = 0
    ranked_mib: int = 0
    containers: int = 0
    activated: bool = False
    attempt: int = 0
    version: int = 0
    reserved: dict[int, int] = field(default_factory=dict)
    mail_granted: list[Container] = field(default_factory=list)
    mail_ended: list[Container] = field(default_factory=list)
    master: Any = None
    am_container: Container | None = None
    label: str = ""
    blacklist: frozenset[str] = frozenset()
    priority: int = field(init=False)
    order: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.set_priority(0)

    def set_priority(self, priority: int) -> None:
        """Set the priority (higher is served first) and with it the place in the queue."""
        self.priority = priority
        self.order = (-priority, self.number)

    def first_ask(self, label: str) -> Ask | None:
        """Return what it requests first of the nodes with a label ("": without one)."""
        return next((ask for ask in self.asks if ask.label == label), None)


class NodeReservation(NamedTuple):
    """A node kept for one application's ask that did not fit."""

    app: Application
    ask: Ask


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """One node; ``free_mib`` and ``free_vcores`` are the scheduler's view of its room.

    It reports to the ResourceManager what ended only on its heartbeat, at ``phase + k x interval``. Those
    that would report nothing and offer nothing are not simulated; the host asks ``next_beat_ms`` for others.

    ``true_vcores``: those of the machine, also where the scheduler counts memory alone. ``dead``: it has
    failed; once the node expires in the ResourceManager it is ``lost``. ``live`` are the scheduler's
    containers, those of all nodes, once the node is registered.
    """

    index: int
    total_mib: int
    total_vcores: int
    phase_ms: int
    name: str = field(init=False)
    free_mib: int = field(init=False)
    free_vcores: int = field(init=False)
    true_vcores: int = field(init=False)
    beat_at_ms: int = -1
    open: bool = False
    dead: bool = False
    lost: bool = False
    silent_until_ms: int = 0
    slow_ratio: float = 1.0
    watched: bool = False
    reserved: object | None = None
    exited: tuple[Container, ...] = ()
    label: str = ""
    others: Resources = NOTHING
    free_others: Resources = NOTHING
    live: dict[int, Container] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = f"node{self.index:05d}:8041"
        self.free_mib, self.free_vcores = self.total_mib, self.total_vcores
        self.true_vcores = self.total_vcores

    def count_memory_alone(self) -> None:
        """Let the vcores limit nothing; before it has a container."""
        self.free_vcores = self.total_vcores = by_memory(self.total).vcores

    @property
    def true_free_vcores(self) -> int:
        """The vcores of the machine that no container holds; below 0 if they hold more."""
        return self.true_vcores - self.total_vcores + self.free_vcores

    @property
    def total(self) -> Resources:
        """What it has of all resource types."""
        return with_others(self.total_mib, self.total_vcores, self.others)

    @property
    def free(self) -> Resources:
        """What is free of all resource types."""
        return with_others(self.free_mib, self.free_vcores, self.free_others)

    @property
    def containers(self) -> dict[int, Container]:
        """The containers that hold room here, by number and in the order of their grants.

        Looked up when asked for: a table for each node would cost every task what few ever need.
        """
        return {number: container for number, container in self.live.items() if container.node is self}

    def next_beat_ms(self, from_ms: int, interval_ms: int) -> int:
        """Return the first heartbeat at or after ``from_ms``; a slow node skips some."""
        from_ms = max(from_ms, self.silent_until_ms)
        return from_ms + (self.phase_ms - from_ms) % interval_ms

    def take_exited(self, now_ms: int) -> tuple[Container, ...]:
        """Hand over the containers whose processes are gone by ``now_ms``, in order of ending."""
        exited = self.exited
        self.exited = tuple([container for container in exited if container.exit_at_ms > now_ms])
        return tuple([container for container in exited if container.exit_at_ms <= now_ms])


class Container(msgspec.Struct, eq=False):
    """A granted container, and the attempt that runs in it.

    ``work_at_ms`` is when the attempt begins with new keys (after launch, shuffle, skip and replay),
    ``finish_at_ms`` when it is done, commit included; NEVER while that is unknown. ``from_key`` is the key
    the timetable starts at, ``log_from_key`` the first key this attempt has not saved yet, ``to_key`` where a
    suspend stops it; ``length_ms`` the time all keys of its task take on this node (longer on a slow one).
    """

    number: int
    app: Application
    node: Node
    memory_mib: int
    vcores: int
    priority: int
    granted_at_ms: int
    kind: int = MAP
    state: int = GRANTED
    task: int = -1
    attempt: int = 0
    length_ms: int = 0
    from_key: int = 0
    log_from_key: int = 0
    to_key: int = 0
    launched_at_ms: int = NEVER
    work_at_ms: int = NEVER
    finish_at_ms: int = NEVER
    exit_at_ms: int = NEVER
    released_at_ms: int = NEVER
    resumed: bool = False
    order: str = ""
    terminal_state: str = ""
    stage: int = NOT_REQUESTED
    release_wait_token: int = 0
    others: Resources = NOTHING


# A struct is made in half the time of a class. Its own way of setting a field looks each time for the first
# value that garbage collection must track; a container has one from the start (its application), so that
# plain setting, three times as fast, does the same. All of it runs once for every task.
Container.__setattr__ = object.__setattr__  # type: ignore[method-assign]
Container.__delattr__ = object.__delattr__  # type: ignore[method-assign]
