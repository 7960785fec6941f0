"""The journal's records: why, before what.

A record has what was decided and the inputs of the decision, pruned to what mattered. It has no wall clock,
no version of the program and no path, so the same run gives the same bytes on any machine. Records are
written before the actions they explain are performed; the outcome of an action is a record of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

import msgspec

from yarnctl.deciding.admission import entries
from yarnctl.deciding.admission.book import BookState
from yarnctl.deciding.admission.pricing.accounts import AccountRecord
from yarnctl.deciding.case import Pick, RefusedJob, RefusedTask
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.ledger_state import LedgerState
from yarnctl.deciding.levers import AwaitedTask, LeverPull
from yarnctl.deciding.lifecycle import Event
from yarnctl.deciding.lifecycle import State as OrderState
from yarnctl.deciding.model import (
    Action,
    Change,
    ChangeKind,
    ContainerRequest,
    DisablePreemption,
    Ending,
    Grow,
    ObservationRequest,
    OrderAction,
    Outcome,
    Restore,
    SetPriority,
    SetQueueMaximum,
)
from yarnctl.deciding.reasons.demand import StandingAside, SuspensionsFail, TriggerReason
from yarnctl.deciding.reasons.modes import ModeReason, Paused
from yarnctl.deciding.reasons.orders import ChangeReason, MoveReason
from yarnctl.deciding.reasons.outcomes import OutcomeReason
from yarnctl.deciding.settings import Settings
from yarnctl.units import Resources, decode_vector

FORMAT = 1
"""Version of the journal's format, since 0.1.0; no other one is read."""


class Header(msgspec.Struct, frozen=True, tag="header"):
    """First line: how this controller decides."""

    format: int
    settings: Settings
    capabilities: tuple[str, ...]


class Trigger(msgspec.Struct, frozen=True, omit_defaults=True):
    """What caused a decision: counts are containers. ``label``: of the nodes that are requested.

    ``pending`` are requested, of which ``placed`` fit into free capacity (or that of other orders that is
    expected), ``promised`` are met by orders that were open at the snapshot's instant ``as_of_ms``, and
    ``shortfall`` is what remains.
    """

    application: str
    queue: str
    requests: tuple[ContainerRequest, ...]
    pending: int
    placed: int
    promised: int
    shortfall: int
    why: TriggerReason
    as_of_ms: int | None = None
    label: str = ""


class ApplicationName(NamedTuple):
    """An application's name, user and queue; the first two are cut."""

    name: str
    user: str
    queue: str


class Decision(msgspec.Struct, frozen=True, tag="decision", kw_only=True, omit_defaults=True):
    """Victims chosen on behalf of one application. ``orders[i]`` was given to ``picks[i]``.

    ``total`` is the cluster's size: with it a reader computes what part of the cluster a key stands for.
    Of a mix, ``levers[i]`` is what ``orders[i]`` pulls, with its predicted time and cost. ``names``: of the
    requesting application and of those picked from, which people still want to know after these have ended.
    ``bound_ms``: order -> the lost work that is not exceeded with a chance of 95 %, where it is known.
    """

    number: int
    at_ms: int
    trigger: Trigger
    total: Resources
    orders: tuple[str, ...]
    groups: tuple[str, ...]
    picks: tuple[Pick, ...]
    handed_back: tuple[Pick, ...]
    unmet: int
    refused_jobs: tuple[RefusedJob, ...]
    refused_tasks: tuple[RefusedTask, ...]
    levers: tuple[LeverPull, ...] = ()
    names: Mapping[str, ApplicationName] = {}
    bound_ms: Mapping[str, int] = {}

    @property
    def pulls(self) -> tuple[LeverPull | None, ...]:
        """Return the lever of each order; None: it was chosen by the two policies alone."""
        return self.levers or (None,) * len(self.orders)


class Awaited(msgspec.Struct, frozen=True, tag="awaited"):
    """The running tasks that one application waits for. They have no order, and they are counted."""

    at_ms: int
    application: str
    tasks: tuple[AwaitedTask, ...]


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """A trigger without a decision; written when the reason changes."""

    at_ms: int
    trigger: Trigger
    why: TriggerReason
    refused_jobs: tuple[RefusedJob, ...] = ()
    refused_tasks: tuple[RefusedTask, ...] = ()


class LeversStopped(msgspec.Struct, frozen=True, tag="levers-stopped"):
    """From now on no task is suspended, until the instant in the reason (the governor)."""

    at_ms: int
    why: SuspensionsFail


class Transition(msgspec.Struct, frozen=True, tag="transition", kw_only=True, omit_defaults=True):
    """One order moved. ``container`` and ``application`` name the receiver of the container, if there is one.

    ``left`` and ``left_node``: the container that answers the order, where its application chose another than
    was named; from now on the order is of that one.
    """

    order: str
    source: OrderState
    event: Event
    target: OrderState
    at_ms: int
    why: MoveReason | OutcomeReason | None = None
    container: str = ""
    application: str = ""
    keys_done: int = -1
    left: str = ""
    left_node: str = ""


class Transfer(msgspec.Struct, frozen=True, tag="transfer", kw_only=True):
    """An order is transferred to another application: containers of one size are interchangeable."""

    order: str
    source: str
    target: str
    at_ms: int
    why: MoveReason


class Ranked(NamedTuple):
    """One application's rank: its urgency (deadline or laxity, submission), its new priority and the old."""

    application: str
    urgency_ms: int
    submitted_at_ms: int
    priority: int
    before: int = 0


class Ranking(msgspec.Struct, frozen=True, tag="ranking"):
    """Why priorities are sent: the order of urgency, down to the last that has or is given a level."""

    at_ms: int
    order: tuple[Ranked, ...]


class Return(msgspec.Struct, frozen=True, tag="return", kw_only=True):
    """A suspended task processes new keys again: its measured and its predicted resume cost, in ms.

    ``cost_ms`` is the sum of the parts: from the order to the container's end, and the three others.
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
    """A suspended task began again with less than was saved: no later attempt counts as its resumption.

    The fields are those of :class:`yarnctl.deciding.model.CameBackWithout`.
    """

    order: str
    attempt: str
    at_ms: int
    keys_lost: int
    generation_expected: int
    generation_found: int


class Progressed(msgspec.Struct, frozen=True, tag="progressed", kw_only=True):
    """An attempt that is saving was observed to progress: the time-out of its order counts from here."""

    order: str
    at_ms: int


Absence = Literal["ended", "absent"]
"""How an application's end is known: it was reported, or the application is missing from a snapshot."""


class UnknownApplication(msgspec.Struct, frozen=True, tag="forgotten", kw_only=True):
    """The tries of an application's attempts, and its suspended tasks, are forgotten."""

    application: str
    at_ms: int
    why: Absence


class KilledEnded(msgspec.Struct, frozen=True, tag="killed-ended", kw_only=True):
    """The container of a killed order has ended: it is not expected any more."""

    order: str
    container: str
    ending: Ending
    at_ms: int


class Requests(msgspec.Struct, frozen=True, tag="requests"):
    """The actions of a step; written before the first is performed."""

    at_ms: int
    actions: tuple[Action, ...]


class Stopped(msgspec.Struct, frozen=True, tag="stopped"):
    """The controller was ordered to withdraw what is under way."""

    at_ms: int


ActionKind = Literal[
    "suspend",
    "withdraw",
    "release",
    "kill",
    "drain",
    "grow",
    "set-priority",
    "set-queue-maximum",
    "disable-preemption",
    "restore",
]
"""The tags of :data:`yarnctl.deciding.model.Action`."""


class Performed(msgspec.Struct, frozen=True, tag="performed", kw_only=True, omit_defaults=True):
    """The outcome of one action; the action itself is in ``requests``, ``lowering`` or ``restoring``.

    ``order``, or the ``application`` of a priority, or the ``queue`` of a maximum; ``back``: it was restored.
    """

    at_ms: int
    action: ActionKind
    outcome: Outcome
    order: str = ""
    application: str = ""
    queue: str = ""
    back: bool = False

    def is_of(self, action: Action) -> bool:
        """Return whether it is the outcome of this action."""
        return self == performed(self.at_ms, action, self.outcome)


def performed(at_ms: int, action: Action, outcome: Outcome) -> Performed:
    """Return the record of an action's outcome."""
    application = queue = ""
    if isinstance(action, SetPriority | Grow):
        application = action.application
    elif isinstance(action, SetQueueMaximum | DisablePreemption):
        queue = action.queue
    elif isinstance(action, Restore):
        is_queue = action.change.kind in ("queue", "preemption")
        application, queue = ("", action.change.target) if is_queue else (action.change.target, "")
    return Performed(
        at_ms=at_ms,
        action=cast(ActionKind, action.__struct_config__.tag),
        outcome=outcome,
        order=action.order if isinstance(action, OrderAction) else "",
        application=application,
        queue=queue,
        back=isinstance(action, Restore),
    )


class Epoch(msgspec.Struct, frozen=True, tag="epoch"):
    """Another ResourceManager answers."""

    at_ms: int
    epoch: str


class Contact(msgspec.Struct, frozen=True, tag="contact"):
    """The first ResourceManager that answers: another one is recognised by it, also after a restart."""

    at_ms: int
    epoch: str


class Resumed(msgspec.Struct, frozen=True, tag="resumed"):
    """The controller continues where the last one stopped, with the state that the lines before leave."""

    at_ms: int


class Stance(msgspec.Struct, frozen=True, tag="stance"):
    """The loop's state from now on, and its reason: observing, enforcing, blocked, paused."""

    at_ms: int
    stance: str
    why: ModeReason


class StoodAside(msgspec.Struct, frozen=True, tag="stood-aside"):
    """From now on no container is freed for one queue, until the instant in the reason."""

    at_ms: int
    why: StandingAside


class QueueResumed(msgspec.Struct, frozen=True, tag="queue-resumed"):
    """An operator ended the pause of one queue."""

    at_ms: int
    queue: str


class Lowering(msgspec.Struct, frozen=True, tag="lowering"):
    """One decision lowers settings, or an earlier daemon's record reports that it lowered them."""

    at_ms: int
    changes: tuple[Change, ...]
    why: ChangeReason


class Restoring(msgspec.Struct, frozen=True, tag="restoring"):
    """yarnctl restores the earlier value of a setting. The outcome is a ``performed`` record."""

    at_ms: int
    change: Change
    why: ChangeReason


class Restored(msgspec.Struct, frozen=True, tag="restored"):
    """A change has ended, as observed. ``found``: the value that was read ("": it no longer exists)."""

    at_ms: int
    kind: ChangeKind
    target: str
    found: str
    why: ChangeReason


class Requester(NamedTuple):
    """The application that an open order is for, and its queue."""

    application: str
    queue: str


class FreedContainer(NamedTuple):
    """One container that an order freed. ``application`` received it ("": not known)."""

    order: str
    application: str
    misdirected: bool


class QueueReleases(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The containers freed for one queue, counted since its last pause; ``last``: the newest.

    ``pauses``: how many pauses were not followed by enough ``granted`` containers in a row; ``why``: the
    last pause, which began at ``began_ms``.
    """

    queue: str
    last: tuple[FreedContainer, ...] = ()
    granted: int = 0
    pauses: int = 0
    began_ms: int = 0
    why: StandingAside | None = None


class State(msgspec.Struct, frozen=True, tag="state", kw_only=True, omit_defaults=True):
    """The state that the lines before it leave: the first line of a file in which a journal continues.

    ``header``: the last controller's settings; ``fresh``: the header of one that has made no step yet.
    ``changes``: the settings that are lowered; ``releases``: the containers freed last, by requesting queue;
    ``requesters``: of the open orders; ``paused``: the operator's pause.
    """

    format: int
    now_ms: int
    header: Header | None = None
    fresh: Header | None = None
    ledger: LedgerState
    changes: tuple[Change, ...] = ()
    epoch: str = ""
    releases: tuple[QueueReleases, ...] = ()
    requesters: Mapping[str, Requester] = {}
    book: BookState
    paused: Paused | None = None


_StepRecord = Header | State | Resumed | Observed | Stopped | Requests | Performed | Epoch | Ranking
_DecisionRecord = Decision | Awaited | Refusal | LeversStopped
_OrderRecord = Transition | Transfer | Return | SavedLost | Progressed | UnknownApplication | KilledEnded
DaemonRecord = Contact | Stance | StoodAside | QueueResumed | Lowering | Restoring | Restored
GateRecord = entries.GateSet | entries.GateLearned | entries.ClockSetBack | AccountRecord
AdmissionRecord = (
    entries.AdmissionAsked | entries.AdmissionRound | entries.AdmissionStarted | entries.AdmissionClosed
)
Record = _StepRecord | _DecisionRecord | _OrderRecord | DaemonRecord | GateRecord | AdmissionRecord


class Step(msgspec.Struct, frozen=True):
    """The result of one observation. ``wake_at_ms`` equal to now: step again at once."""

    records: tuple[Record, ...]
    actions: tuple[Action, ...]
    to_observe: ObservationRequest
    wake_at_ms: int


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Record, dec_hook=decode_vector)


def encode(record: Record) -> bytes:
    """Return one line of JSON, newline included, the same bytes every time."""
    return _ENCODER.encode(record) + b"\n"


def decode(line: bytes) -> Record:
    """Read one line; raises msgspec.DecodeError (or ValidationError) for a torn or foreign line."""
    record: Record = _DECODER.decode(line)
    return record
