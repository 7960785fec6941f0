"""Answers about orders: reclaim lists, checkpoints, summaries of decisions, loss budgets."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from yarnctl.api.cluster_answers import Role
from yarnctl.api.paged import Count, ReasonOut, Size
from yarnctl.deciding.lifecycle import State
from yarnctl.deciding.order import OrderVerb
from yarnctl.deciding.records import ApplicationName
from yarnctl.deciding.time_lost import TimeCause
from yarnctl.journal.explaining.story import Sent


class EntryOut(msgspec.Struct, frozen=True, kw_only=True):
    """One order of a reclaim list. ``remaining_ms``: the task's remaining time when it was chosen.

    ``names``: [name, user, queue] of its applications by id, also after these have ended.

    ``keys_done``: keys in its checkpoint. ``predicted_cost_ms``: predicted resume cost; ``cost_ms``: measured
    resume cost (null: not resumed). ``retired``: the order has left the list. ``observed``: yarnctl only
    observed and sent no order; it would order this container. ``receiver_application``,
    ``receiver_container``: which application received the freed container ("": none yet).
    """

    order: str
    decision: Count
    requester: str
    victim: str
    attempt: str
    container: str
    node: str
    size: Size
    serves: Count
    group: str
    verb: OrderVerb
    generation: Count
    state: State
    retired: bool
    why: str
    ordered_at_ms: int
    progress_at_ms: int
    checkpointed_at_ms: int | None
    freed_at_ms: int | None
    settled_at_ms: int | None
    keys_done: int | None
    remaining_ms: int | None
    predicted_cost_ms: int | None
    cost_ms: int | None
    receiver_application: str
    receiver_container: str
    sent: Sent = ""
    lost_work_ms: int | None = None
    names: Mapping[str, ApplicationName] = {}
    reason: ReasonOut | None = None
    observed: bool = False


class ReclaimList(msgspec.Struct, frozen=True, kw_only=True):
    """The orders for one preempting application, oldest first.

    ``role`` and ``pending`` are null if the snapshot no longer has the application; ``name``, ``user`` and
    ``queue`` then come from the decisions (null: not known). ``states`` counts the entries shown.
    ``expected``: requests that its open orders will serve; ``would_order``: those that an observing daemon
    would order containers for. Its orders are ``simulated`` after their predicted time, until the
    application receives a container or no longer waits.
    """

    application: str
    queue: str | None
    role: Role | None
    pending: int | None
    expected: Count
    states: dict[State, int]
    entries: list[EntryOut]
    would_order: Count = 0
    name: str | None = None
    user: str | None = None


class CheckpointOut(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint manifest that was found after an order."""

    order: str
    application: str
    attempt: str
    generation: Count
    keys_done: int | None
    at_ms: int
    requester: str


class DecisionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A decision in short; ``states`` counts its orders by state.

    ``names``: [name, user, queue] by application id, of ``application`` and ``victims``.

    ``withheld`` counts the orders that were not sent: yarnctl only observed, or sending failed.
    """

    id: Count
    at_ms: int
    application: str
    queue: str
    why: str
    shortfall: int
    chosen: Count
    unmet: int
    victims: list[str]
    states: dict[State, int]
    withheld: Count = 0
    names: Mapping[str, ApplicationName] = {}
    reason: ReasonOut | None = None


class Bought(msgspec.Struct, frozen=True, kw_only=True):
    """What lost work has gained: containers, and the waiting time saved, in sum."""

    containers: Count
    waiting_saved_ms: Count


class TimeLostOut(msgspec.Struct, frozen=True, kw_only=True):
    """How long containers of production waited for one cause since the daemon's start, in container time.

    ``saves``: what would have saved the time (null: nothing that a person can set).
    """

    cause: TimeCause
    waited_ms: Count
    saves: str | None


class BudgetOut(msgspec.Struct, frozen=True, kw_only=True):
    """A loss budget now: of a ``queue``, of a ``user``, or of an ``application`` by its own tag.

    ``may_lose_ratio``: the part of the container time held during the last ``window_ms`` that may be lost.
    ``lost_ms``: container time; ``left_ms``: container time of containers of ``container_mib``.
    """

    queue: str | None
    user: str | None
    application: str | None
    may_lose_ratio: float
    window_ms: Count
    lost_ms: Count
    left_ms: Count
    container_mib: Count
    bought: Bought
