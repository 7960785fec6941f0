"""The journal's records: why, before what.

Law: the reason is part of the result. A record holds what was decided and what it was decided
from, pruned to what mattered; it holds no wall clock, no version of the program and no path, so
the same run gives the same bytes on any machine. Records are written before the actions they
explain are performed; what came of an action is a record of its own.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from yarnctl.deciding.admission.entries import (
    AdmissionAsked,
    AdmissionClosed,
    AdmissionRound,
    AdmissionTaken,
    GateLearned,
    GateSet,
)
from yarnctl.deciding.case import Case, Pick, RefusedJob, RefusedTask
from yarnctl.deciding.lifecycle import Event, State
from yarnctl.deciding.model import Action, ContainerAsk, Ending, Outcome, Scope
from yarnctl.deciding.settings import Settings

FORMAT = 5
"""Version of the journal's format that is written."""
READABLE = (4, FORMAT)
"""Formats that can be read and gone on from: 5 added records of admissions. A reader refuses any other."""


class Header(msgspec.Struct, frozen=True, tag="header", omit_defaults=True):
    """First line: how this controller decides.

    ``complete``: every change of the ledger has its record, :data:`SINCE_COMPLETE` among them. Older programs
    wrote journals of the same format without these kinds.
    """

    format: int
    settings: Settings
    capabilities: tuple[str, ...]
    complete: bool = False


class Trigger(msgspec.Struct, frozen=True):
    """What called for a decision: counts are containers.

    ``pending`` are asked for, of which ``placed`` fit into free room (or room of others that is on
    its way), ``promised`` are met by orders that were open at the snapshot's instant ``as_of_ms``, and
    ``need`` must be made room for.
    """

    application: str
    queue: str
    asks: tuple[ContainerAsk, ...]
    pending: int
    placed: int
    promised: int
    need: int
    why: str
    as_of_ms: int | None = None


class Decision(msgspec.Struct, frozen=True, tag="decision", kw_only=True):
    """Victims chosen on behalf of one application. ``orders[i]`` was given to ``picks[i]``."""

    number: int
    at_ms: int
    trigger: Trigger
    case: Case
    orders: tuple[str, ...]
    groups: tuple[str, ...]
    picks: tuple[Pick, ...]
    handed_back: tuple[Pick, ...]
    unmet: int
    refused_jobs: tuple[RefusedJob, ...]
    refused_tasks: tuple[RefusedTask, ...]


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """A trigger that led to nothing; written when the reason changes."""

    at_ms: int
    trigger: Trigger
    why: str
    refused_jobs: tuple[RefusedJob, ...] = ()
    refused_tasks: tuple[RefusedTask, ...] = ()


class Transition(msgspec.Struct, frozen=True, tag="transition", kw_only=True, omit_defaults=True):
    """One order moved. ``container`` and ``application`` name who got the room, if anybody did."""

    order: str
    source: State
    event: Event
    target: State
    at_ms: int
    why: str = ""
    container: str = ""
    application: str = ""
    keys_done: int = -1


class Transfer(msgspec.Struct, frozen=True, tag="transfer", kw_only=True):
    """An order works for another application from now on: rooms of one size are all alike."""

    order: str
    source: str
    target: str
    at_ms: int
    why: str


class Ranked(NamedTuple):
    """One application's place: its urgency (deadline or laxity, submission), the priority it gets and had."""

    application: str
    urgency_ms: int
    submitted_at_ms: int
    priority: int
    before: int = 0


class Ranking(msgspec.Struct, frozen=True, tag="ranking"):
    """Why priorities are sent: the order of urgency, down to the last that has or gets a level."""

    at_ms: int
    order: tuple[Ranked, ...]


class Return(msgspec.Struct, frozen=True, tag="return", kw_only=True):
    """A suspended task is at new keys again: what that has cost, beside what was predicted; spans in ms.

    ``cost_ms`` is the sum of the parts: from the order to the container's end, and those of ``CameBack``.
    """

    order: str
    attempt: str
    at_ms: int
    predicted_ms: int
    cost_ms: int
    leave_ms: int
    launch_ms: int
    shuffle_ms: int
    skip_ms: int


class SavedLost(msgspec.Struct, frozen=True, tag="saved-lost", kw_only=True):
    """A suspended task began again with less than was saved: no later attempt counts as its return.

    The fields are those of ``CameBackWithout``.
    """

    order: str
    attempt: str
    at_ms: int
    keys_lost: int
    generation_expected: int
    generation_found: int


class Progressed(msgspec.Struct, frozen=True, tag="progressed", kw_only=True):
    """An attempt that is saving was seen to go on: the time-out of its order counts from here."""

    order: str
    at_ms: int


Absence = Literal["ended", "absent"]
"""How an application is gone: its end was told, or it is missing from a snapshot."""


class Forgotten(msgspec.Struct, frozen=True, tag="forgotten", kw_only=True):
    """The tries of an application's attempts, and its suspended tasks, are not remembered any more."""

    application: str
    at_ms: int
    why: Absence


class KilledEnded(msgspec.Struct, frozen=True, tag="killed-ended", kw_only=True):
    """The container of an order that was settled as killed has ended: its room is not coming any more."""

    order: str
    container: str
    ending: Ending
    at_ms: int


SINCE_COMPLETE = (Progressed, Forgotten, KilledEnded)
"""The kinds of records that only a journal with a ``complete`` header holds."""


class Performed(msgspec.Struct, frozen=True, tag="performed"):
    """What came of one action."""

    at_ms: int
    action: Action
    outcome: Outcome


class Epoch(msgspec.Struct, frozen=True, tag="epoch"):
    """Another ResourceManager answers."""

    at_ms: int
    epoch: str


class Contact(msgspec.Struct, frozen=True, tag="contact"):
    """The ResourceManager that answers first: by it another one is known, also after a restart."""

    at_ms: int
    epoch: str


class Resumed(msgspec.Struct, frozen=True, tag="resumed"):
    """The controller goes on where the last one stopped: the orders still open, what is asked again."""

    at_ms: int
    orders: tuple[str, ...]
    again: tuple[Action, ...]


class Stance(msgspec.Struct, frozen=True, tag="stance"):
    """How free the loop is to act from now on, and why: observing, enforcing, standing aside, paused."""

    at_ms: int
    stance: str
    why: str


class Holding(msgspec.Struct, frozen=True, tag="holding"):
    """A queue's maximum is to be changed: from what, to what (parts of its parent), and why."""

    at_ms: int
    queue: str
    before_ratio: float
    ratio: float
    why: str


class HoldFound(msgspec.Struct, frozen=True, tag="hold-found"):
    """A daemon that is gone lowered a queue from ``before_ratio`` to ``ratio``; ``source`` is its record."""

    at_ms: int
    queue: str
    before_ratio: float
    ratio: float
    source: str


class HoldEnded(msgspec.Struct, frozen=True, tag="hold-ended"):
    """A lowered queue is not ours to put back any more; ``ratio`` is its maximum now (None: it is gone)."""

    at_ms: int
    queue: str
    ratio: float | None
    why: str


class Restoring(msgspec.Struct, frozen=True, tag="restoring"):
    """An application's YARN priority is to be put back to what it was before we changed it."""

    at_ms: int
    application: str
    priority: int
    why: str


Record = (
    Header
    | Decision
    | Refusal
    | Transition
    | Transfer
    | Return
    | SavedLost
    | Progressed
    | Forgotten
    | KilledEnded
    | Ranking
    | Performed
    | Epoch
    | Contact
    | Resumed
    | Stance
    | Holding
    | HoldFound
    | HoldEnded
    | Restoring
    | GateSet
    | AdmissionAsked
    | AdmissionRound
    | AdmissionTaken
    | AdmissionClosed
    | GateLearned
)


class Step(msgspec.Struct, frozen=True):
    """What one observation leads to. ``wake_at_ms`` equal to now: step again at once."""

    records: tuple[Record, ...]
    actions: tuple[Action, ...]
    scope: Scope
    wake_at_ms: int


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    """Return one line of JSON, newline included, the same bytes every time."""
    return _ENCODER.encode(record) + b"\n"


def decode(line: bytes) -> Record:
    """Read one line; raises msgspec.DecodeError (or ValidationError) for a torn or foreign line."""
    record: Record = _DECODER.decode(line)
    return record
