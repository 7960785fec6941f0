"""What the API answers, as pydantic models: the OpenAPI document is made of these.

Law: our words with units, as everywhere; an instant is ``..._at_ms`` on the clock of the loop, null says
that it has not happened or is not known. Fields are added, never renamed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from yarnctl.daemon.occupancy import Class
from yarnctl.daemon.view import State as LoopState
from yarnctl.deciding.lifecycle import State

Count = Annotated[int, Field(ge=0)]


class Model(BaseModel):
    """The root of all answers: nothing in them that is not described."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Size(Model):
    """A vector of memory (MiB) and virtual cores."""

    memory_mib: int
    vcores: int


# --- errors ---------------------------------------------------------------------------------------


class Problem(Model):
    """What went wrong: a fixed ``code``, a sentence, and what to do next."""

    code: str
    message: str
    next: str


class ErrorBody(Model):
    """The body of every answer of 4xx and 5xx."""

    error: Problem


# --- the loop ---------------------------------------------------------------------------------------


class Loop(Model):
    """How the loop is; ``why`` says why it does not run, or is empty."""

    mode: Literal["observe", "enforce"]
    state: LoopState
    why: str
    reachable: bool
    ticks: Count
    tick_ms: float | None
    tick_errors: Count
    last_error: str
    started_at_ms: int


class Health(Model):
    """The process lives and its loop is not stuck; ``age_ms`` is that of the view."""

    status: Literal["ok"]
    state: LoopState
    age_ms: int


class Readiness(Model):
    """The first tick is done and the ResourceManager answers."""

    status: Literal["ready"]
    state: LoopState
    ticks: Count


class PauseRequest(Model):
    """Why the loop is to pause; it is shown with the loop's state."""

    why: Annotated[str, Field(max_length=200)] = "paused by request"


class Commanded(Model):
    """The request was taken; the loop obeys after the tick that runs now."""

    accepted: Literal["pause", "continue"]
    loop: Loop


# --- the cluster ------------------------------------------------------------------------------------


class ClusterOut(Model):
    """Who answers. ``epoch`` changes with every new ResourceManager."""

    epoch: str
    node_count: Count
    capabilities: list[str]


class Queue(Model):
    """One leaf queue as it stands; ``class`` is what its applications are to the controller."""

    queue: str
    application_class: Annotated[Class, Field(alias="class")]
    guaranteed: Size
    maximum: Size
    used: Size
    applications: Count
    containers: Count
    pending: Count


class Application(Model):
    """One unfinished application. ``pending`` are containers it waits for, ``foreseen`` of which it has not
    asked for yet (its master starts).

    ``on_their_way`` are asks that its open orders will meet, ``giving`` orders against it. ``why_not`` says
    why its reduces cannot be suspended (then ``runner`` is false). ``name`` is the job's; ``rank`` its place
    in its queue, the lowest is served first.
    """

    application: str
    application_class: Annotated[Class, Field(alias="class")]
    queue: str
    user: str
    name: str
    rank: int
    submitted_at_ms: int
    containers: int
    pending: Count
    foreseen: Count
    used: Size
    priority: int
    progress_ratio: float
    deadline_at_ms: int | None
    activated: bool
    runner: bool
    why_not: str
    on_their_way: Count
    giving: Count


class Occupied(Model):
    """What one class holds and waits for."""

    used: Size
    containers: int
    pending: Count


class OccupancySample(Model):
    """The cluster by class at one instant."""

    at_ms: int
    total: Size
    hurried: Occupied
    victim: Occupied
    other: Occupied
    open_orders: Count


class SnapshotOut(Model):
    """Everything at a glance. ``snapshot_at_ms`` is the instant of the look at the cluster.

    ``snapshot_age_ms`` is how long that was before ``now_ms``. While nobody hurried waits (``quiet``) the
    loop looks every few seconds only.
    """

    now_ms: int
    version: Count
    loop: Loop
    cluster: ClusterOut | None
    snapshot_at_ms: int | None
    snapshot_age_ms: Annotated[int, Field(ge=0)] | None
    quiet: bool
    total: Size | None
    free: Size | None
    hurried: Occupied
    victim: Occupied
    other: Occupied
    queues: list[Queue]
    applications: Count
    open_orders: Count
    unreachable: list[str]
    decisions: Count


# --- reclaim lists ------------------------------------------------------------------------------------


class EntryOut(Model):
    """One order of a reclaim list. ``remaining_ms`` is what the task had left when it was chosen.

    ``keys_done`` is what its checkpoint holds. ``predicted_cost_ms`` is what leaving and coming back was
    expected to cost, ``cost_ms`` what it did (null: it is not back). ``retired``: it has left the list.
    """

    order: str
    decision: Count
    asker: str
    victim: str
    attempt: str
    container: str
    node: str
    size: Size
    serves: Count
    group: str
    verb: Literal["suspend", "kill"]
    generation: Count
    state: State
    retired: bool
    why: str
    asked_at_ms: int
    progress_at_ms: int
    checkpointed_at_ms: int | None
    freed_at_ms: int | None
    settled_at_ms: int | None
    keys_done: int | None
    remaining_ms: int | None
    predicted_cost_ms: int | None
    cost_ms: int | None
    room_to_application: str
    room_to_container: str


class ReclaimList(Model):
    """The orders made on behalf of one hurried application, oldest first.

    ``queue``, ``class`` and ``pending`` are null if the snapshot does not show it any more. ``states``
    counts the entries shown; ``on_their_way`` are asks that all its open orders will meet.
    """

    application: str
    queue: str | None
    application_class: Annotated[Class | None, Field(alias="class")]
    pending: int | None
    on_their_way: Count
    states: dict[State, int]
    entries: list[EntryOut]


class CheckpointOut(Model):
    """A manifest that was seen in answer to an order."""

    order: str
    application: str
    attempt: str
    generation: Count
    keys_done: int | None
    at_ms: int
    asker: str


# --- pages --------------------------------------------------------------------------------------------


class Paged(Model):
    """One page of a list.

    ``total`` counts what matches the filters now; ``next`` is the cursor of the page after, null at the
    end. ``now_ms`` and ``version`` are those of the view that was read.
    """

    now_ms: int
    version: Count
    total: Count
    next: str | None


class ReclaimPage(Paged):
    """Reclaim lists, by application id."""

    items: list[ReclaimList]


class ApplicationPage(Paged):
    """Applications, by id."""

    items: list[Application]


class CheckpointPage(Paged):
    """Checkpoints, newest first."""

    items: list[CheckpointOut]


class OccupancyPage(Paged):
    """Samples, oldest first."""

    items: list[OccupancySample]
