"""Translating: what a record of format 4 or 5 says, as records of today's format.

Law: a translation loses nothing that a restart or an explanation reads, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from yarnctl.deciding.admission.entries import (
    AdmissionAsked,
    AdmissionClosed,
    AdmissionRound,
    GateLearned,
    GateSet,
)
from yarnctl.deciding.admission.records import Choices, Plan, Request, Reservation
from yarnctl.deciding.model import Outcome, Refused, Unknown, Withheld
from yarnctl.deciding.records import (
    Decision,
    Header,
    HoldEnded,
    Holding,
    Performed,
    Record,
    Refusal,
    Restoring,
    Resumed,
    Stance,
    Transfer,
    Transition,
    Trigger,
)
from yarnctl.journal.older import records_5 as old

Today = TypeVar("Today", bound=msgspec.Struct)


def _as(kind: type[Today], record: msgspec.Struct, **changed: Any) -> Today:
    """Return a record of today's kind with the fields of an old one, but for those that are given."""
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    return kind(**fields | changed)


class Translator:
    """Takes an old journal's records in their order, over restarts."""

    def take(self, record: old.Record5) -> tuple[Record, ...]:
        """Return what the next record says, in today's records."""
        translate = _TRANSLATED.get(type(record))
        return (record if translate is None else translate(record),)  # type: ignore[return-value]


def _with_trigger(kind: type[Today]) -> Callable[[Any], Today]:
    return lambda record: _as(kind, record, trigger=_as(Trigger, record.trigger))


def _performed(record: old.Performed5) -> Performed:
    return _as(Performed, record, outcome=_outcome(record.outcome))


def _outcome(outcome: old.Outcome5) -> Outcome:
    match outcome:
        case old.Refused5(why=why):
            return Refused(why)
        case old.Unknown5(why=why):
            return Unknown(why)
        case old.Withheld5(why=why):
            return Withheld(why)
    return outcome


def _round(record: old.AdmissionRound5) -> AdmissionRound:
    plans = tuple(_as(Plan, plan) for plan in record.plans)
    granted = tuple(_as(Reservation, one, request=_as(Request, one.request)) for one in record.granted)
    return _as(AdmissionRound, record, plans=plans, granted=granted)


def _alike(kind: type[Today]) -> Callable[[Any], Today]:
    return lambda record: _as(kind, record)


_TRANSLATED: dict[type, Callable[[Any], Record]] = {
    old.Header5: _alike(Header),
    old.Decision5: _with_trigger(Decision),
    old.Refusal5: _with_trigger(Refusal),
    old.Transition5: _alike(Transition),
    old.Transfer5: _alike(Transfer),
    old.Performed5: _performed,
    old.Resumed5: _alike(Resumed),
    old.Stance5: _alike(Stance),
    old.Holding5: _alike(Holding),
    old.HoldEnded5: _alike(HoldEnded),
    old.Restoring5: _alike(Restoring),
    old.GateSet5: lambda record: _as(GateSet, record, choices=_as(Choices, record.choices)),
    old.AdmissionAsked5: lambda record: _as(AdmissionAsked, record, request=_as(Request, record.request)),
    old.AdmissionRound5: _round,
    old.AdmissionClosed5: _alike(AdmissionClosed),
    old.GateLearned5: _alike(GateLearned),
}
"""By kind; a kind that is not named is the same in all formats."""
