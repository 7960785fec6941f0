"""Answers about decisions: in full, refused, and explained.

An explanation holds the stories of :mod:`yarnctl.journal.explaining.story` unchanged; ``yarnctl explain
-o json`` prints the same fields under the same names.
"""

from __future__ import annotations

import msgspec

from yarnctl.api.paged import Count, ReasonOut, Size
from yarnctl.deciding.lifecycle import State
from yarnctl.journal.explaining.story import (
    AdmissionStory,
    OrderStory,
    PriorityStory,
    Ran,
    RefusalStory,
    Tally,
)


class ContainerRequestOut(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` containers of one size, requested at one priority."""

    priority: int
    size: Size
    count: int


class TriggerOut(msgspec.Struct, frozen=True, kw_only=True):
    """What caused a decision; counts are containers.

    ``placed``: fit into free capacity; ``promised``: met by open orders; ``shortfall``: the rest.
    """

    application: str
    queue: str
    requests: list[ContainerRequestOut]
    pending: int
    placed: int
    promised: int
    shortfall: int
    why: str
    as_of_ms: int | None
    reason: ReasonOut | None = None


class PickOut(msgspec.Struct, frozen=True, kw_only=True):
    """One chosen task, with the keys that ranked it first (``order`` null: handed back)."""

    order: str | None
    victim: str
    attempt: str
    container: str
    node: str
    size: Size
    job_key: list[int]
    task_key: list[int]
    remaining_ms: int
    serves: Count
    state: State | None


class RefusedOut(msgspec.Struct, frozen=True, kw_only=True):
    """A job (``attempt`` null) or task that was not chosen; ``meaning``: the reason's sentence."""

    application: str
    attempt: str | None
    key: list[int]
    why: str
    meaning: str
    reason: ReasonOut | None = None


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """All that the daemon remembers of one id, as text (``text``, one line each) and as data.

    ``rendered``: sentences about it as a whole.
    """

    id: str
    roles: list[str]
    text: list[str]
    rendered: list[str]
    ran: Ran | None
    tallies: list[Tally]
    orders: list[OrderStory]
    refused: list[RefusalStory]
    priorities: list[PriorityStory]
    admissions: list[AdmissionStory]


class DecisionDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One decision with its candidates; ``explanation`` holds the stories of its orders."""

    id: Count
    at_ms: int
    trigger: TriggerOut
    job_policy: str
    task_policy: str
    chosen: list[PickOut]
    handed_back: list[PickOut]
    unmet: int
    refused_jobs: list[RefusedOut]
    refused_tasks: list[RefusedOut]
    explanation: Explained


class RefusalOut(msgspec.Struct, frozen=True, kw_only=True):
    """A trigger without a decision."""

    at_ms: int
    why: str
    trigger: TriggerOut
    refused_jobs: list[RefusedOut]
    refused_tasks: list[RefusedOut]
    reason: ReasonOut | None = None
