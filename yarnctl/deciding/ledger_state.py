"""Ledger state: all parts of a ledger, as one value that can be written down.

Law: lists stand in the order of the ledger's dicts, but for bars, whose order nobody asks. What follows from
other parts (indices, heaps) is left out. ``journal.fold`` makes a ledger a value, and of a value a ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from yarnctl.deciding.bars import Pause
from yarnctl.deciding.model import Action
from yarnctl.deciding.order import Late, Order, Sent
from yarnctl.deciding.releaser import Reason


class BarSet(NamedTuple):
    """Why an attempt may not be asked, and the order that set the bar."""

    attempt: str
    why: Reason
    order: str


class Retiring(NamedTuple):
    """When a settled order counts as settled for retiring: not before the one before it."""

    at_ms: int
    order: str


class LedgerState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All parts of a ledger.

    ``freed``: ids of open orders whose container has ended, in the order of their ends on each node;
    ``freed_for``: the same ids, in the order in which their room came to each asker.
    """

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
    freed_for: tuple[str, ...] = ()
    sent: tuple[Sent, ...] = ()
    due: tuple[Action, ...] = ()


class PriorityState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a ranking ``asked`` for, whose priority is ``changed`` and was which, what of it is ``fresh``."""

    changed: Mapping[str, int] = {}
    asked: Mapping[str, int] = {}
    fresh: tuple[str, ...] = ()
    observing: bool = False
