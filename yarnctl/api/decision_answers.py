"""Answers about decisions: in full, refused, and explained.

Law: as in :mod:`yarnctl.api`. An explanation holds the stories of :mod:`yarnctl.journal.explaining.story` as
they are: ``yarnctl explain --json`` prints the same fields under the same names.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from yarnctl.api.paged import Count, ReasonOut, Size
from yarnctl.deciding.lifecycle import Event, State
from yarnctl.journal.explaining.story import (
    AdmissionStory,
    OrderStory,
    PriorityStory,
    Ran,
    RefusalStory,
    Tally,
)


class AskOut(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` containers of one size wanted at one request priority."""

    priority: int
    size: Size
    count: int


class TriggerOut(msgspec.Struct, frozen=True, kw_only=True):
    """What called for a decision; counts are containers."""

    application: str
    queue: str
    asks: list[AskOut]
    pending: int
    placed: int
    promised: int
    shortfall: int
    why: str
    as_of_ms: int | None
    reason: ReasonOut | None = None


class PickOut(msgspec.Struct, frozen=True, kw_only=True):
    """One task that was chosen, with the keys that put it first (``order`` null: handed back)."""

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
    """A job (``attempt`` null) or task that was looked at and left alone, and what the reason means."""

    application: str
    attempt: str | None
    key: list[int]
    why: str
    meaning: str
    reason: ReasonOut | None = None


class TransitionOut(msgspec.Struct, frozen=True, kw_only=True):
    """One order moved."""

    order: str
    source: State
    event: Event
    target: State
    at_ms: int
    why: str
    application: str
    container: str
    keys_done: int | None
    reason: ReasonOut | None = None


class PerformedOut(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one request to the cluster."""

    order: str | None
    action: str
    outcome: Literal["accepted", "refused", "unknown", "withheld"]
    why: str
    at_ms: int
    reason: ReasonOut | None = None


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """All that is remembered of one id, in words (``text``, one line each) and as data.

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
    """One decision with all that was written about it."""

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
    transitions: list[TransitionOut]
    transfers: list[str]
    actions: list[PerformedOut]
    explanation: Explained


class RefusalOut(msgspec.Struct, frozen=True, kw_only=True):
    """A trigger that led to nothing."""

    at_ms: int
    why: str
    trigger: TriggerOut
    refused_jobs: list[RefusedOut]
    refused_tasks: list[RefusedOut]
    reason: ReasonOut | None = None
