"""The records of formats 4 and 5, as earlier programs wrote them.

Law: a frozen copy. It is never edited again, except to take over a part that today's records drop. What
the formats share with today's is imported. The kinds of format 4 are all of format 5, without admissions.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from yarnctl.deciding.admission.capacity import Load
from yarnctl.deciding.admission.entries import AdmissionTaken
from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.case import Case, Pick, RefusedJob
from yarnctl.deciding.lifecycle import Event, State
from yarnctl.deciding.model import Accepted, Action, ContainerAsk
from yarnctl.deciding.records import (
    Contact,
    Epoch,
    HoldFound,
    KilledEnded,
    Progressed,
    Ranking,
    Return,
    SavedLost,
    UnknownApplication,
)
from yarnctl.deciding.settings import Settings

OLDER = (4, 5)
"""The formats that this file reads."""


class Header5(msgspec.Struct, frozen=True, tag="header", omit_defaults=True):
    """First line. ``complete``: every change of the ledger has a record; older programs wrote fewer kinds."""

    format: int
    settings: Settings
    capabilities: tuple[str, ...]
    complete: bool = False


class Trigger5(msgspec.Struct, frozen=True):
    """What caused a decision; ``why`` is a sentence."""

    application: str
    queue: str
    asks: tuple[ContainerAsk, ...]
    pending: int
    placed: int
    promised: int
    need: int
    why: str
    as_of_ms: int | None = None


class RefusedTask5(NamedTuple):
    """A task of a picked job that was not picked; its node is in the case."""

    application: str
    attempt: str
    key: tuple[int, ...]
    why: str


class Decision5(msgspec.Struct, frozen=True, tag="decision", kw_only=True):
    """Victims chosen on behalf of one application, and the case that was chosen from."""

    number: int
    at_ms: int
    trigger: Trigger5
    case: Case
    orders: tuple[str, ...]
    groups: tuple[str, ...]
    picks: tuple[Pick, ...]
    handed_back: tuple[Pick, ...]
    unmet: int
    refused_jobs: tuple[RefusedJob, ...]
    refused_tasks: tuple[RefusedTask5, ...]


class Refusal5(msgspec.Struct, frozen=True, tag="refusal"):
    """A trigger without a decision."""

    at_ms: int
    trigger: Trigger5
    why: str
    refused_jobs: tuple[RefusedJob, ...] = ()
    refused_tasks: tuple[RefusedTask5, ...] = ()


class Transition5(msgspec.Struct, frozen=True, tag="transition", kw_only=True, omit_defaults=True):
    """One order moved."""

    order: str
    source: State
    event: Event
    target: State
    at_ms: int
    why: str = ""
    container: str = ""
    application: str = ""
    keys_done: int = -1


class Transfer5(msgspec.Struct, frozen=True, tag="transfer", kw_only=True):
    """An order is made over to another application."""

    order: str
    source: str
    target: str
    at_ms: int
    why: str


class Refused5(msgspec.Struct, frozen=True, tag="refused"):
    """The cluster refused the request."""

    why: str


class Unknown5(msgspec.Struct, frozen=True, tag="unknown"):
    """It is not known whether the request arrived."""

    why: str = ""


class Withheld5(msgspec.Struct, frozen=True, tag="withheld"):
    """The request was not sent."""

    why: str


Outcome5 = Accepted | Refused5 | Unknown5 | Withheld5


class Performed5(msgspec.Struct, frozen=True, tag="performed"):
    """The outcome of one action, which is repeated whole."""

    at_ms: int
    action: Action
    outcome: Outcome5


class Resumed5(msgspec.Struct, frozen=True, tag="resumed"):
    """The controller continues: with these orders, sending these requests again."""

    at_ms: int
    orders: tuple[str, ...]
    again: tuple[Action, ...]


class Stance5(msgspec.Struct, frozen=True, tag="stance"):
    """The loop's state, and why."""

    at_ms: int
    stance: str
    why: str


class Holding5(msgspec.Struct, frozen=True, tag="holding"):
    """A queue's maximum is to be changed; only ``why`` shows that it is lowered."""

    at_ms: int
    queue: str
    before_ratio: float
    ratio: float
    why: str


class HoldEnded5(msgspec.Struct, frozen=True, tag="hold-ended"):
    """A lowered queue is no longer ours to restore."""

    at_ms: int
    queue: str
    ratio: float | None
    why: str


class Restoring5(msgspec.Struct, frozen=True, tag="restoring"):
    """An application's priority is to be restored."""

    at_ms: int
    application: str
    priority: int
    why: str


# --- admission ----------------------------------------------------------------------------------


class Request5(msgspec.Struct, frozen=True):
    """One job that asks for admission; it always has a deadline."""

    sequence: int
    submitted_at_ms: int
    deadline_ms: int
    tasks: int
    estimate: Estimate | None = None
    kind: str = "mapreduce"
    application: str = ""


class Plan5(msgspec.Struct, frozen=True):
    """A verdict; ``reason`` is a sentence."""

    sequence: int
    verdict: Literal["admit", "defer", "reject"]
    containers: int
    deadline_at_ms: int
    reason: str
    start_at_ms: int | None = None
    finish_at_ms: int | None = None


class Reservation5(msgspec.Struct, frozen=True):
    """Containers kept for one request from an instant until another."""

    request: Request5
    containers: int
    ratio: float
    from_ms: int
    until_ms: int
    expires_at_ms: int
    application: str = ""


class Choices5(msgspec.Struct, frozen=True):
    """Readings of the papers' contradictions, one record for all allocators."""

    order: Literal["papers", "ratio", "tasks", "earliest"] = "papers"
    sharing: Literal["held", "rebalanced"] = "held"
    reach: Literal["reachable", "requested"] = "reachable"
    queue_time: Literal["stretched", "ignored"] = "stretched"
    errors: Literal["shortfall", "surplus"] = "shortfall"
    fraction: Literal["estimated", "observed"] = "estimated"
    weighting: Literal["equal", "exponential"] = "equal"
    smoothing_ratio: float = 0.5
    drop_above_tasks: int | None = 100


class GateSet5(msgspec.Struct, frozen=True, tag="gate-set"):
    """The settings of the gate from now on."""

    at_ms: int
    allocator: str
    capacity: int
    container_mib: int
    queues: tuple[str, ...] = ()
    choices: Choices5 = Choices5()


class AdmissionAsked5(msgspec.Struct, frozen=True, tag="admission-asked", omit_defaults=True):
    """An admission request was received."""

    at_ms: int
    admission: str
    name: str
    user: str
    queue: str
    request: Request5
    key: str = ""


class AdmissionRound5(msgspec.Struct, frozen=True, tag="admission-round"):
    """The backlog, the plans that are new, what was reserved."""

    at_ms: int
    loads: tuple[Load, ...]
    plans: tuple[Plan5, ...]
    granted: tuple[Reservation5, ...] = ()


class AdmissionClosed5(msgspec.Struct, frozen=True, tag="admission-closed"):
    """An admission has ended."""

    at_ms: int
    admission: str
    state: Literal["withdrawn", "expired", "ended"]
    why: str


class GateLearned5(msgspec.Struct, frozen=True, tag="gate-learned"):
    """Feedback from finished jobs."""

    at_ms: int
    application: str
    finished: tuple[Finished, ...]
    why: str = ""


Record5 = (
    Header5
    | Decision5
    | Refusal5
    | Transition5
    | Transfer5
    | Return
    | SavedLost
    | Progressed
    | UnknownApplication
    | KilledEnded
    | Ranking
    | Performed5
    | Epoch
    | Contact
    | Resumed5
    | Stance5
    | Holding5
    | HoldFound
    | HoldEnded5
    | Restoring5
    | GateSet5
    | AdmissionAsked5
    | AdmissionRound5
    | AdmissionTaken
    | AdmissionClosed5
    | GateLearned5
)

_DECODER = msgspec.json.Decoder(Record5)


def decode_5(line: bytes) -> Record5:
    """Read one line; raises msgspec.DecodeError (or ValidationError) for a torn or foreign line."""
    record: Record5 = _DECODER.decode(line)
    return record
