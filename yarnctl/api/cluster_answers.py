"""Answers about the loop and the cluster: queues, applications, and their containers.

Law: as in :mod:`yarnctl.api`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from yarnctl.api.paged import Count, ReasonOut, Size

LoopState = Literal["starting", "waiting", "running", "paused", "standing-aside", "stopped"]
"""What the loop does: ``waiting`` for a cluster or a lock, ``standing-aside`` while a guard blocks it."""

BlockedState = Literal["starting", "waiting", "running", "paused", "blocked", "stopped"]
"""The same as it is answered: ``blocked`` is ``standing-aside``, which journals hold."""

Role = Literal["preempting", "preemptable", "other"]
"""What an application is to the controller."""

Mode = Literal["observe", "enforce"]


# --- the loop -----------------------------------------------------------------------------------------


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """How the loop is; ``why`` says why it does not run, or is empty; ``reason`` is the first of it.

    ``last_error`` is the last one there was, of ``last_error_at_ms``: it may be over.
    """

    enforce: bool
    loop_state: BlockedState
    why: str
    reachable: bool
    ticks: Count
    tick_ms: float | None
    tick_errors: Count
    last_error: str
    started_at_ms: int
    last_error_at_ms: int | None = None
    reason: ReasonOut | None = None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The process lives and its loop is not stuck; ``age_ms`` is that of the view."""

    status: Literal["ok"]
    loop_state: BlockedState
    age_ms: int


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """The first tick is done and the ResourceManager answers."""

    status: Literal["ready"]
    loop_state: BlockedState
    ticks: Count


class Commanded(msgspec.Struct, frozen=True, kw_only=True):
    """The request was taken; the loop obeys after the tick that runs now."""

    accepted: Literal["pause", "continue"]
    loop: Loop


# --- the cluster --------------------------------------------------------------------------------------


class ClusterOut(msgspec.Struct, frozen=True, kw_only=True):
    """The ResourceManager's identity. ``epoch`` changes with every new ResourceManager."""

    epoch: str
    node_count: Count
    capabilities: list[str]


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """One leaf queue as it is, by its full path; ``role`` is what its applications are to the controller."""

    queue: str
    role: Role
    guaranteed: Size
    maximum: Size
    used: Size
    applications: Count
    containers: Count
    pending: Count


class Application(msgspec.Struct, frozen=True, kw_only=True):
    """One unfinished application; ``queue`` is the full path of its leaf queue.

    ``pending`` are containers it waits for, ``predicted`` of which it has not asked for yet (its master
    starts).

    ``expected`` are requests that its open orders will serve, ``would_order`` those that the orders of an
    observing daemon would serve (it sends none); ``suspending`` are open orders against it. ``why_not``, and
    as a value ``reason``, say why its reduces cannot be suspended (then ``runner`` is false); ``left_alone``
    names single reduces that cannot be suspended now, each with its runner's message, and
    ``left_alone_reasons`` the same with codes. ``name`` is the job's; ``rank`` its place in its queue, the
    lowest is served first. ``suspended`` are its reduces that were suspended and are not back;
    ``master_only_ms`` is how long it has held nothing but its master because of that (null: it holds more).
    ``left_out``: its pending requests that are not modelled (they are not among ``pending``; null: none).
    ``used`` is what it holds on nodes without a label.
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


class Occupied(msgspec.Struct, frozen=True, kw_only=True):
    """What one class holds and waits for."""

    used: Size
    containers: int
    pending: Count


class OccupancySample(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster by class at one instant."""

    at_ms: int
    total: Size
    preempting: Occupied
    preemptable: Occupied
    other: Occupied
    open_orders: Count


class SnapshotOut(msgspec.Struct, frozen=True, kw_only=True):
    """The whole cluster in short. ``snapshot_at_ms`` is the instant of the observation.

    ``snapshot_age_ms`` is how long that was before ``now_ms``. While no preempting application waits
    (``quiet``) the loop observes every few seconds only. ``masters_only``: the applications that are
    suspended whole, each of which keeps one container.
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
