"""Ledger state: the ledger as a value, and a ledger made of the value again.

Law: ``ledger_of(state_of(ledger), settings)`` is the ledger in every part that anybody asks. Lists stand in
the order of the ledger's dicts, but for bars, whose order nobody asks. Heaps and indices are made again: ties
in a heap end in the order's id, so that their order is total.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify
from typing import NamedTuple

import msgspec

from yarnctl.deciding.bars import Pause
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import Action
from yarnctl.deciding.order import Late, Order, Sent
from yarnctl.deciding.settings import Settings


class BarSet(NamedTuple):
    """Why an attempt may not be asked, and the order that set the bar."""

    attempt: str
    why: str
    order: str


class Retiring(NamedTuple):
    """When a settled order counts as settled for retiring: not before the one before it."""

    at_ms: int
    order: str


class LedgerState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All parts of a ledger. ``freed``: ids of open orders, in the order of their ends on each node."""

    issued: int = 0
    decisions: int = 0
    open: tuple[Order, ...] = ()
    settled: tuple[Order, ...] = ()
    retiring: tuple[Retiring, ...] = ()
    dying: tuple[str, ...] = ()
    away: tuple[Order, ...] = ()
    late: tuple[Late, ...] = ()
    bars: tuple[BarSet, ...] = ()
    pauses: tuple[Pause, ...] = ()
    tries: Mapping[str, Mapping[str, int]] = {}
    freed: tuple[str, ...] = ()
    sent: tuple[Sent, ...] = ()
    due: tuple[Action, ...] = ()


def state_of(ledger: Ledger) -> LedgerState:
    """Return a ledger as a value."""
    return LedgerState(
        issued=ledger.issued,
        decisions=ledger.decisions,
        open=tuple(ledger.open.values()),
        settled=tuple(ledger.settled.values()),
        retiring=tuple(Retiring(*each) for each in ledger.retiring),
        dying=tuple(order.order for order in ledger.dying.values()),
        away=tuple(ledger.away.values()),
        late=tuple(late for ends in ledger.late.values() for late in ends.values()),
        bars=tuple(sorted(BarSet(name, why, ledger.bars.by[name]) for name, why in ledger.barred.items())),
        pauses=tuple(sorted(ledger.bars.pauses)),
        tries={name: dict(tries) for name, tries in ledger.tries.items()},
        freed=tuple(name for names in ledger.freed_on.values() for name in names),
        sent=tuple(ledger.sent.values()),
        due=tuple(ledger.due),
    )


def ledger_of(state: LedgerState, settings: Settings) -> Ledger:
    """Return a ledger that stands as the state says."""
    ledger = Ledger(settings)
    ledger.issued, ledger.decisions = state.issued, state.decisions
    for order in state.open:
        ledger.open[order.order] = order
        ledger.indices.enter(order)
    for name in state.freed:
        ledger.indices.free(ledger.open[name])
    ledger.settled.update((order.order, order) for order in state.settled)
    ledger.retiring.extend((each.at_ms, each.order) for each in state.retiring)
    ledger.dying.update((ledger.settled[name].container, ledger.settled[name]) for name in state.dying)
    ledger.away.update((order.order, order) for order in state.away)
    for late in state.late:
        ledger.late.setdefault(late.order.asker, {})[late.order.order] = late
        ledger.late_until.append((max(late.room_ms, late.until_ms), late.order.asker, late.order.order))
    heapify(ledger.late_until)
    for bar in state.bars:
        ledger.bars.barred[bar.attempt], ledger.bars.by[bar.attempt] = bar.why, bar.order
    ledger.bars.pauses = list(state.pauses)
    ledger.bars.tries.update((name, dict(tries)) for name, tries in state.tries.items())
    ledger.sent.update((sent.action.order, sent) for sent in state.sent)
    ledger.due = list(state.due)
    return ledger
