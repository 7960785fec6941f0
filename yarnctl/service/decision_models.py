"""What the API answers about decisions: in a line, in full, and explained.

Law: as in :mod:`yarnctl.service.models`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict

from yarnctl.deciding.lifecycle import Event, State
from yarnctl.service.models import Count, Model, Paged, Size


class AskOut(Model):
    """``count`` containers of one size wanted at one request priority."""

    priority: int
    size: Size
    count: int


class TriggerOut(Model):
    """What called for a decision; counts are containers."""

    application: str
    queue: str
    asks: list[AskOut]
    pending: int
    placed: int
    promised: int
    need: int
    why: str
    as_of_ms: int | None


class PickOut(Model):
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


class RefusedOut(Model):
    """A job (``attempt`` null) or task that was looked at and left alone, and what the reason means."""

    application: str
    attempt: str | None
    key: list[int]
    why: str
    meaning: str


class TransitionOut(Model):
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


class PerformedOut(Model):
    """What came of one request to the cluster."""

    order: str | None
    action: str
    outcome: Literal["accepted", "refused", "unknown", "withheld"]
    why: str
    at_ms: int


class DecisionSummary(Model):
    """One decision in a line; ``states`` counts its orders by state.

    ``withheld`` counts those that were never asked: only observed, or the request was surely not sent.
    """

    id: Count
    at_ms: int
    application: str
    queue: str
    why: str
    need: int
    chosen: Count
    unmet: int
    victims: list[str]
    states: dict[State, int]
    withheld: Count


class FromJournal(Model):
    """A part of an explanation: the fields that ``yarnctl explain --json`` prints, under the same names."""

    model_config = ConfigDict(extra="ignore")  # a new field of the journal's is no fault of a request


class RanOut(FromJournal):
    """Which attempt of which application ran in which container, and where."""

    application: str
    attempt: str
    container: str
    node: str


class TallyOut(FromJournal):
    """An application's orders in sum, as the one that asks or as the one that gives."""

    role: Literal["asker", "victim"]
    orders: Count
    others: dict[str, int]
    states: dict[str, int]
    verbs: dict[str, int]
    lost_work_ms: int


class CameBackTold(FromJournal):
    """What coming back has cost a suspended task: the sum and its parts, in ms."""

    attempt: str
    at_ms: int
    cost_ms: int
    leave_ms: int
    launch_ms: int
    shuffle_ms: int
    skip_ms: int


class SavedLostTold(FromJournal):
    """A checkpoint that a later attempt did not use; ``generation_found``: what it began from, 0: nothing."""

    attempt: str
    at_ms: int
    keys_lost: int | None
    generation_expected: int
    generation_found: int


class OrderTold(FromJournal):
    """One order from decision to end. Keys: the smaller one is taken first; null: not known.

    ``total``: what the cluster had (MiB, vcores), by which a key that is a share can be read.
    ``next_jobs`` and ``next_tasks`` are those not taken: (application, [attempt,] key, why).
    """

    order: str
    decision: Count
    asker: str
    first_asker: str
    trigger: str
    need: int
    victim: str
    attempt: str
    container: str
    node: str
    asked_to: Literal["suspend", "kill"]
    asked_at_ms: int
    generation: Count
    job_policy: str
    job_key: list[int]
    task_policy: str
    task_key: list[int]
    remaining_ms: int
    predicted_cost_ms: int
    total: tuple[int, int] | None
    came_back: CameBackTold | None
    saved_lost: SavedLostTold | None
    working_since_ms: int | None
    next_jobs: list[tuple[str, list[int], str]]
    next_tasks: list[tuple[str, str, list[int], str]]
    transfers: list[str]
    state: str
    verb: str
    lost_work_ms: int | None
    keys_done: int | None
    checkpointed_at_ms: int | None
    freed_at_ms: int | None
    settled_at_ms: int | None
    settled_why: str
    room_to_container: str
    room_to_application: str
    exchanged_for: str
    withheld: bool


class LeftAlone(FromJournal):
    """One occasion on which the id was looked at and left alone, or asked in vain (then it is the asker)."""

    at_ms: int
    decision: int | None
    asker: str
    why: str
    key: list[int]
    policy: str
    total: tuple[int, int] | None


class PriorityOut(FromJournal):
    """A priority that an application was to have, being the ``place``-th most urgent (from 1)."""

    at_ms: int
    place: int
    urgency_ms: int
    priority: int


class AdmissionTold(FromJournal):
    """One thing that became of an admission at the gate."""

    at_ms: int
    admission: str
    told: str


class Explained(FromJournal):
    """All that is remembered of one id, in words (``text``, one line each) and as data.

    ``said``: sentences about it as a whole.
    """

    id: str
    roles: list[str]
    text: list[str]
    said: list[str]
    ran: RanOut | None
    tallies: list[TallyOut]
    orders: list[OrderTold]
    refused: list[LeftAlone]
    priorities: list[PriorityOut]
    admissions: list[AdmissionTold]


class DecisionDetail(Model):
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


class RefusalOut(Model):
    """A trigger that led to nothing."""

    at_ms: int
    why: str
    trigger: TriggerOut
    refused_jobs: list[RefusedOut]
    refused_tasks: list[RefusedOut]


class DecisionPage(Paged):
    """Decisions, newest first."""

    items: list[DecisionSummary]


class RefusalPage(Paged):
    """Refusals, newest first."""

    items: list[RefusalOut]
