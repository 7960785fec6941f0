"""Answers about orders: the reclaim lists, the checkpoints that they led to, decisions in a line.

Law: as in :mod:`yarnctl.api`.
"""

from __future__ import annotations

import msgspec

from yarnctl.api.cluster_answers import Role
from yarnctl.api.paged import Count, ReasonOut, Size
from yarnctl.deciding.lifecycle import State
from yarnctl.deciding.order import OrderVerb


class EntryOut(msgspec.Struct, frozen=True, kw_only=True):
    """One order of a reclaim list. ``remaining_ms`` is what the task had left when it was chosen.

    ``keys_done`` is what its checkpoint holds. ``predicted_cost_ms`` is what leaving and coming back was
    expected to cost, ``cost_ms`` what it did (null: it is not back). ``retired``: it has left the list.
    ``observed``: yarnctl only observed, so no request was sent: it *would order* this container.
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
    verb: OrderVerb
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
    reason: ReasonOut | None = None
    observed: bool = False


class ReclaimList(msgspec.Struct, frozen=True, kw_only=True):
    """The orders made on behalf of one preempting application, oldest first.

    ``queue``, ``role`` and ``pending`` are null if the snapshot does not show it any more. ``states``
    counts the entries shown; ``expected`` are requests that all its open orders will serve, ``would_order``
    those that an observing daemon would serve: it sends no request and expects no container.
    """

    application: str
    queue: str | None
    role: Role | None
    pending: int | None
    expected: Count
    states: dict[State, int]
    entries: list[EntryOut]
    would_order: Count = 0


class CheckpointOut(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest that was seen in answer to an order."""

    order: str
    application: str
    attempt: str
    generation: Count
    keys_done: int | None
    at_ms: int
    asker: str


class DecisionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One decision in a line; ``states`` counts its orders by state.

    ``withheld`` counts the orders that were not sent: yarnctl observed, or the request failed before it left.
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
    reason: ReasonOut | None = None


class Bought(msgspec.Struct, frozen=True, kw_only=True):
    """What lost work has bought: containers, and how much sooner, in sum, than by waiting for their tasks."""

    containers: Count
    waiting_saved_ms: Count


class BudgetOut(msgspec.Struct, frozen=True, kw_only=True):
    """A loss budget as it stands: of a ``queue``, of a ``user``, or of an ``application`` by its own tag.

    ``may_lose_ratio`` is of the container time that its owner held over the last ``window_ms``. ``lost_ms``
    is container time; ``left_ms`` is that of containers of ``container_mib``.
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
