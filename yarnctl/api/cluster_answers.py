"""Answers about the loop and the cluster: queues, applications, and their containers."""

from __future__ import annotations

from typing import Literal

import msgspec

from yarnctl.api.paged import Count, ReasonOut, Size
from yarnctl.deciding.model import ChangeKind

LoopState = Literal["starting", "waiting", "running", "paused", "blocked", "stopped"]
"""What the loop does: ``waiting`` for a cluster or a lock, ``blocked`` while a guard forbids it to act."""

Role = Literal["preempting", "preemptable", "other"]  # How the controller treats an application

Mode = Literal["observe", "enforce"]


class QueueAside(msgspec.Struct, frozen=True, kw_only=True):
    """A queue for which no container is freed until ``until_ms``: others received those freed before."""

    queue: str
    until_ms: int
    reason: ReasonOut


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """The loop's state. ``why``: all reasons why it does not run, or ""; ``reason``: the first of them.

    ``last_error`` happened at ``last_error_at_ms`` and need not persist. ``aside``: the queues for which no
    container is freed now, while all others are served. ``resource_manager``: the address of its web pages.
    """

    enforce: bool
    loop_state: LoopState
    why: str
    reachable: bool
    ticks: Count
    tick_ms: float | None
    tick_errors: Count
    last_error: str
    started_at_ms: int
    last_error_at_ms: int | None = None
    reason: ReasonOut | None = None
    aside: list[QueueAside] = []
    resource_manager: str = ""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The process runs and its loop is not stuck; ``age_ms``: the age of the view."""

    status: Literal["ok"]
    loop_state: LoopState
    age_ms: int


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """The first tick is done and the ResourceManager answers."""

    status: Literal["ready"]
    loop_state: LoopState
    ticks: Count


class Commanded(msgspec.Struct, frozen=True, kw_only=True):
    """The command was accepted; it takes effect after the current tick. ``loop``: its state before.

    ``queue``: the path of the queue that is resumed (null: the command is for the whole loop).
    """

    accepted: Literal["pause", "continue", "resume"]
    loop: Loop
    queue: str | None = None


class ClusterOut(msgspec.Struct, frozen=True, kw_only=True):
    """The ResourceManager's identity. ``epoch`` changes with every new ResourceManager."""

    epoch: str
    node_count: Count
    capabilities: list[str]


class ChangeOut(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that yarnctl lowered and has not restored. ``text``: the change from the old value.

    ``by_hand``: the command that restores it without yarnctl, or "".
    """

    kind: ChangeKind
    target: str
    text: str
    by_hand: str


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """One leaf queue, by its full path; ``role``: how the controller treats its applications."""

    queue: str
    role: Role
    guaranteed: Size
    maximum: Size
    used: Size
    applications: Count
    containers: Count
    pending: Count


WaitingKind = Literal["ordered", "limit", "not-acting", "would-order", "awaited", "rejected", "fits", "next"]


class NotChosen(msgspec.Struct, frozen=True, kw_only=True):
    """``tasks`` running tasks of one application that were not chosen, and why.

    ``kind``: map, reduce, executor or worker; "task" if they were not observed. ``next``: what to do, or "".
    """

    application: str
    name: str
    kind: str
    tasks: Count
    reason: ReasonOut
    next: str


class WaitingOut(msgspec.Struct, frozen=True, kw_only=True):
    """Why a preempting application with pending requests waits, in one sentence (``text``).

    ``reason``: the reason behind it. ``not_chosen``: why no task frees a container, by application.
    """

    kind: WaitingKind
    text: str
    reason: ReasonOut
    not_chosen: list[NotChosen]


class ForetoldOut(msgspec.Struct, frozen=True, kw_only=True):
    """An instant with its 90 % interval, from what ``runs`` earlier applications took."""

    least_at_ms: int
    middle_at_ms: int
    most_at_ms: int
    runs: Count


class WhenOut(msgspec.Struct, frozen=True, kw_only=True):
    """When an application starts (null: it has, or not known) and ends (null: not known). ``because``: why.

    ``sooner``: what would make it sooner; "": nothing that yarnctl knows.
    """

    starts: ForetoldOut | None
    ends: ForetoldOut | None
    because: str
    sooner: str


class Application(msgspec.Struct, frozen=True, kw_only=True):
    """One unfinished application; ``queue`` is the full path of its leaf queue.

    * ``pending``: requested containers; ``predicted`` of them are expected and not requested yet, because the
      application master still starts. ``left_out``: why more requests are not counted (null: all are).
    * ``expected``: requests that its open orders will serve; ``would_order``: those that an observing daemon
      would order containers for (it sends no order). ``suspending``: open orders against it.
    * ``why_not`` and ``reason``: why its tasks cannot be suspended now (then ``runner`` is false).
      ``left_alone`` names single reduces that cannot be suspended now, with the task runner's message;
      ``left_alone_reasons`` has the codes.
    * ``name``: the job's name. ``rank``: its position in its queue; the lowest is served first.
    * ``suspended``: reduces that are suspended and have not resumed. ``master_only_ms``: for how long it has
      held only its application master because of that (null: it holds more).
    * ``used``: what it holds on nodes without a label.
    * ``waiting``: why it waits; null unless it is preempting and has pending requests.
    * ``when``: when it starts and ends, with 90 % intervals.
    """

    application: str
    role: Role
    queue: str
    user: str
    name: str
    rank: int
    submitted_at_ms: int
    containers: int
    pending: Count
    predicted: Count
    used: Size
    priority: int
    progress_ratio: float
    deadline_at_ms: int | None
    activated: bool
    runner: bool
    why_not: str
    expected: Count
    suspending: Count
    left_alone: dict[str, str] = {}
    left_alone_reasons: dict[str, ReasonOut] = {}
    reason: ReasonOut | None = None
    suspended: Count = 0
    master_only_ms: Count | None = None
    would_order: Count = 0
    left_out: ReasonOut | None = None
    waiting: WaitingOut | None = None
    when: WhenOut | None = None


class Occupied(msgspec.Struct, frozen=True, kw_only=True):
    """What the applications of one role use and request."""

    used: Size
    containers: int
    pending: Count


class OccupancySample(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster by role at one instant."""

    at_ms: int
    total: Size
    preempting: Occupied
    preemptable: Occupied
    other: Occupied
    open_orders: Count


class SnapshotOut(msgspec.Struct, frozen=True, kw_only=True):
    """A summary of the cluster. ``snapshot_at_ms``: the instant of the observation.

    ``snapshot_age_ms``: its age at ``now_ms``. ``quiet``: no preempting application has pending requests, and
    the loop observes every few seconds only. ``masters_only``: applications with all tasks suspended; each
    keeps one container.
    """

    now_ms: int
    version: Count
    loop: Loop
    cluster: ClusterOut | None
    snapshot_at_ms: int | None
    snapshot_age_ms: Count | None
    quiet: bool
    total: Size | None
    free: Size | None
    preempting: Occupied
    preemptable: Occupied
    other: Occupied
    queues: list[Queue]
    applications: Count
    open_orders: Count
    unreachable: list[str]
    decisions: Count
    masters_only: Count = 0
