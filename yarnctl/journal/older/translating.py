"""Translating: a record of format 4 or 5 as records of today's format.

Law: a translation loses nothing that a restart or an explanation reads, and decides nothing. Orders, moves
and outcomes are translated as they are; what today's life cycle has no move for counts as lost, which leaves
its task alone. What those journals did not write (the instants of steps, what was requested) is derived from
what they did; only here is a sentence of theirs parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import msgspec

from yarnctl.deciding.admission.capacity import Pool
from yarnctl.deciding.admission.entries import (
    AdmissionAsked,
    AdmissionClosed,
    AdmissionRound,
    GateLearned,
    GateSet,
)
from yarnctl.deciding.admission.mechanisms import MECHANISMS, choices_of
from yarnctl.deciding.admission.records import Choices, Plan, Rectangle, Request, Reservation
from yarnctl.deciding.case import RefusedTask
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.ledger import remembered_of
from yarnctl.deciding.lifecycle import OPEN, RECALLABLE
from yarnctl.deciding.model import (
    Action,
    Kill,
    Outcome,
    Refused,
    Release,
    TaskView,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.order import Order, requested
from yarnctl.deciding.planning import in_suspend_order
from yarnctl.deciding.reasons.orders import ContainerHasEnded, MoveReason, QueueServing, Unclaimed
from yarnctl.deciding.reasons.rooting import Said
from yarnctl.deciding.reasons.verdicts import PlanReason, Undecided
from yarnctl.deciding.records import (
    Decision,
    Header,
    HoldEnded,
    Holding,
    Ranking,
    Record,
    Refusal,
    Requests,
    Restoring,
    Resumed,
    Stance,
    Transfer,
    Transition,
    Trigger,
    UnknownApplication,
    is_of,
    performed,
)
from yarnctl.deciding.releaser import Reason
from yarnctl.journal.fold import Fold
from yarnctl.journal.older import records_5 as old

UNDECIDED = "the next round decides"
"""A plan's reason in formats 4 and 5 before any round."""

Today = TypeVar("Today", bound=msgspec.Struct)


def _as(kind: type[Today], record: msgspec.Struct, **changed: Any) -> Today:
    """Return a record of today's kind with the fields of an old one, but for those that are given."""
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    return kind(**fields | changed)


LOST, SERVING = "container lost", "asks are being served"
STILL_WAITS = re.compile("nobody was seen to get it in ([0-9]+) ms, and its asker still waits")
"""The sentences of those programs where a restart depends on the reason."""
OUR_CLOCK = ("give-up", "kill", "unclaimed", "not-needed")
"""Events that happen at an instant of the controller's own clock."""


class Translator:
    """Translates record by record; its fold is the state after the records so far."""

    def __init__(self) -> None:
        self._fold = Fold()
        self._complete = False
        self._releases_itself = False
        self._begun = False
        self._withheld = ""
        self._made: list[Record] = []

    def take(self, record: old.Record5) -> tuple[Record, ...]:
        """Return today's records with the same meaning."""
        self._made = []
        if isinstance(record, old.Header5):
            self._header(record)
        elif isinstance(record, old.Resumed5):
            self._resumed(record)
        elif isinstance(record, old.Decision5):
            self._decision(record)
        elif isinstance(record, old.Performed5):
            self._performed(record)
        elif isinstance(record, old.Transition5):
            self._transition(_as(Transition, record, why=_moved(record.why)), record.why)
        else:
            if isinstance(record, old.Refusal5):
                self._step(record.at_ms, ended_ms=record.at_ms)
            elif isinstance(record, Ranking | old.Transfer5) or (
                isinstance(record, UnknownApplication) and record.why == "absent"
            ):
                self._step(record.at_ms)
            self._add(_translated(record))
        return tuple(self._made)

    def _add(self, record: Record) -> None:
        self._fold.apply(record)
        self._made.append(record)

    def _step(self, at_ms: int, *, ended_ms: int = 0) -> None:
        """Begin a step if this is the first at that instant; what is due stays due."""
        if at_ms > self._fold.now_ms or ended_ms or not self._begun:
            self._now_due(self._fold.ledger.due, at_ms, ended_ms)

    def _now_due(self, actions: Iterable[Action], at_ms: int, ended_ms: int = 0) -> None:
        """Set what is due from now on, in the order of the requests."""
        due = tuple(actions)
        at_ms = max(at_ms, self._fold.now_ms)
        self._add(Observed(at_ms=at_ms, cluster="not-asked", since_ms=ended_ms))
        self._begun = True
        if due:
            ledger = self._fold.ledger
            self._add(Requests(at_ms, in_suspend_order(due, ledger, ledger.settings)))

    def _header(self, record: old.Header5) -> None:
        self._complete = record.complete
        self._releases_itself = "releases-itself" in record.capabilities
        self._begun = False
        self._add(Header(record.format, record.settings, record.capabilities))

    def _resumed(self, record: old.Resumed5) -> None:
        self._begun = True
        self._add(Resumed(record.at_ms))
        for name in [name for name in self._fold.ledger.open if name not in record.orders]:
            self._lose(name, record.at_ms)
        if record.again:
            self._now_due(record.again, record.at_ms)

    def _lose(self, name: str, at_ms: int) -> None:
        lost = self._fold.ledger.make(name, "epoch-changed", at_ms)
        if lost is not None:
            self._add(lost)

    def _decision(self, record: old.Decision5) -> None:
        self._step(record.at_ms, ended_ms=record.at_ms)
        ledger = self._fold.ledger
        seen = {task.attempt: task for tasks in record.case.tasks.values() for task in tasks}
        told = {name: getattr(record, name) for name in record.__struct_fields__ if name != "case"}
        told["refused_tasks"] = tuple(_refused(one, seen.get(one.attempt)) for one in record.refused_tasks)
        told["trigger"] = _trigger(record.trigger)
        self._add(Decision(**told, total=record.case.total))
        asked = [requested(ledger.open[name], ledger.settings) for name in record.orders]
        self._now_due([*ledger.due, *asked], record.at_ms)

    def _transition(self, record: Transition, sentence: str) -> None:
        if record.event in OUR_CLOCK:
            self._step(record.at_ms)
        ledger = self._fold.ledger
        before = ledger.open.get(record.order)
        if before is None:
            return
        made = ledger.make(record.order, record.event, record.at_ms)
        if isinstance(made, Transition) and made.target == record.target:
            self._add(record)
        elif record.target not in OPEN:
            self._lose(record.order, record.at_ms)
        if sentence.endswith(" has ended") and not self._complete:
            gone = before.asker if record.event == "asker-ended" else before.victim
            if gone in remembered_of(ledger):
                self._add(UnknownApplication(application=gone, at_ms=record.at_ms, why="ended"))
        called = None if record.order == self._withheld else self._called_for(before, record)
        if called is not None:
            self._now_due([*ledger.due, called], record.at_ms if record.event in OUR_CLOCK else 0)

    def _called_for(self, order: Order, record: Transition) -> Action | None:
        """Return the action of a move, if it has one."""
        names = (order.order, order.victim, order.attempt, order.container)
        if order.observed or order.verb == "kill":
            return Kill(*names) if record.event == "kill" else None
        match record.event:
            case "manifest" if not self._releases_itself:
                return Release(*names, order.generation)
            case "kill":
                return Kill(*names)
            case "give-up":
                return Withdraw(*names)
            case "not-needed" | "asker-ended" | "epoch-changed" if order.state in RECALLABLE:
                return Withdraw(*names)
        return None

    def _performed(self, record: old.Performed5) -> None:
        self._step(record.at_ms)
        told = performed(record.at_ms, record.action, _outcome(record.outcome))
        action = record.action
        is_due = any(is_of(told, due) for due in self._fold.ledger.due)
        if told.order and not is_due:  # it was sent again
            self._add(Requests(record.at_ms, (action,)))
        self._withheld = told.order if isinstance(record.outcome, old.Withheld5) else ""
        self._add(told)


def _translated(record: old.Record5) -> Record:
    """Return a record with the same meaning."""
    translate = _TRANSLATED.get(type(record))
    return record if translate is None else translate(record)  # type: ignore[return-value]


def _trigger(trigger: old.Trigger5) -> Trigger:
    return _as(Trigger, trigger, why=Said(trigger.why))


def _moved(sentence: str) -> MoveReason | None:
    """Return the reason of a sentence, as far as a fold depends on it."""
    if sentence == LOST:
        return ContainerHasEnded("lost")
    waits = STILL_WAITS.fullmatch(sentence)
    if waits is not None:
        return Unclaimed(int(waits[1]), asker_waits=True)
    return Said(sentence) if sentence else None


def _holding(record: old.Holding5) -> Holding:
    if record.why == SERVING:
        return _as(Holding, record, why=QueueServing(), lowers=True)
    return _as(Holding, record, why=Said(record.why))


def _refused(one: old.RefusedTask5, task: TaskView | None) -> RefusedTask:
    refused = RefusedTask(one.application, one.attempt, one.key, cast(Reason, one.why))
    return refused if task is None else refused._replace(container=task.container, node=task.node)


def _outcome(outcome: old.Outcome5) -> Outcome:
    match outcome:
        case old.Refused5(why=why):
            return Refused(Said(why))
        case old.Unknown5(why=why):
            return Unknown(Said(why) if why else None)
        case old.Withheld5(why=why):
            return Withheld(Said(why))
    return outcome


def _round(record: old.AdmissionRound5) -> AdmissionRound:
    return AdmissionRound(
        record.at_ms,
        record.loads,
        tuple(_as(Plan, plan, reason=_plan_reason(plan.reason)) for plan in record.plans),
        tuple(_reservation(one) for one in record.granted),
    )


def _plan_reason(said: str) -> PlanReason:
    return Undecided() if said == UNDECIDED else Said(said)


def _reservation(one: old.Reservation5) -> Reservation:
    claim = Rectangle(one.containers, one.from_ms, one.until_ms)
    return Reservation(_as(Request, one.request), claim, one.ratio, one.expires_at_ms, one.application)


def _gate_set(record: old.GateSet5) -> GateSet:
    pools = (Pool("", record.capacity, record.container_mib, record.queues),)
    known = record.allocator in MECHANISMS  # else the admission store leaves it out
    choices = choices_of(record.allocator if known else "no_drop_fs", _as(Choices, record.choices))
    return GateSet(record.at_ms, record.allocator, pools, choices)


def _alike(kind: type[Today]) -> Callable[[Any], Today]:
    return lambda record: _as(kind, record)


_TRANSLATED: dict[type, Callable[[Any], Record]] = {
    old.Refusal5: lambda record: _as(
        Refusal,
        record,
        trigger=_trigger(record.trigger),
        why=Said(record.why),
        refused_tasks=tuple(_refused(one, None) for one in record.refused_tasks),
    ),
    old.Transfer5: lambda record: _as(Transfer, record, why=Said(record.why)),
    old.Stance5: lambda record: _as(Stance, record, why=Said(record.why)),
    old.Holding5: _holding,
    old.HoldEnded5: lambda record: _as(HoldEnded, record, why=Said(record.why)),
    old.Restoring5: lambda record: _as(Restoring, record, why=Said(record.why)),
    old.GateSet5: _gate_set,
    old.AdmissionAsked5: lambda record: _as(AdmissionAsked, record, request=_as(Request, record.request)),
    old.AdmissionRound5: _round,
    old.AdmissionClosed5: lambda record: _as(AdmissionClosed, record, why=Said(record.why)),
    old.GateLearned5: lambda record: _as(GateLearned, record, why=Said(record.why) if record.why else None),
}
"""By kind; a kind that is not named is the same in all formats."""
