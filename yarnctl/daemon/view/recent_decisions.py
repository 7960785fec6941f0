"""What the daemon remembers of its decisions: the newest ones, each with all that was written about it.

Law: bounded by number and by records, oldest out first. What is handed out is frozen; whoever reads it
sees a decision as it stood when the view was published, never half of a change.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec

from yarnctl.deciding.lifecycle import State
from yarnctl.deciding.records import (
    Decision,
    Header,
    Performed,
    Ranking,
    Record,
    Refusal,
    Return,
    SavedLost,
    Transfer,
    Transition,
)

DECISIONS_MAX = 500
LOGGED_MAX = 50_000
REFUSALS_MAX = 500
RANKINGS_MAX = 100


class RankedRecord(NamedTuple):
    """A record and its place among all records of this process (from 1)."""

    rank: int
    record: Record


class Decided(msgspec.Struct, frozen=True):
    """One decision, its records so far (itself first), and the state of each of its orders."""

    record: Decision
    header: Header | None
    log: tuple[RankedRecord, ...]
    states: tuple[State, ...]


class _Kept:
    """A decision that is still being written about."""

    def __init__(self, logged: RankedRecord, record: Decision, header: Header | None) -> None:
        self.record = record
        self.header = header
        self.log = [logged]
        self.states: dict[str, State] = dict.fromkeys(record.orders, "asked")

    def frozen(self) -> Decided:
        """Return it as it stands now."""
        return Decided(self.record, self.header, tuple(self.log), tuple(self.states.values()))


class RecentDecisions:
    """The newest decisions, refusals and rankings."""

    def __init__(self, decisions_max: int = DECISIONS_MAX, logged_max: int = LOGGED_MAX) -> None:
        self.decisions_max = decisions_max
        self.logged_max = logged_max
        self.header: Header | None = None
        self.refusals: deque[RankedRecord] = deque(maxlen=REFUSALS_MAX)
        self.rankings: deque[RankedRecord] = deque(maxlen=RANKINGS_MAX)
        self._kept: dict[int, _Kept] = {}
        self._frozen: dict[int, Decided] = {}
        self._decision_of: dict[str, int] = {}
        self._dirty: dict[int, None] = {}
        self._logged = 0
        self._rank = 0
        self._newest_first: tuple[Decided, ...] = ()

    def apply(self, record: Record) -> None:
        """Take one record, in the order of the journal."""
        self._rank += 1
        logged = RankedRecord(self._rank, record)
        if isinstance(record, Decision):
            self._decided(logged, record)
        elif isinstance(record, Header):
            self.header = record
        elif isinstance(record, Refusal):
            self.refusals.append(logged)
        elif isinstance(record, Ranking):
            self.rankings.append(logged)
        elif isinstance(record, Transition | Transfer | Return | SavedLost) or (
            isinstance(record, Performed) and record.order
        ):
            self._about(record.order, logged)

    def _decided(self, logged: RankedRecord, record: Decision) -> None:
        if record.number <= next(reversed(self._kept), 0):
            self._drop_all()  # another controller, which numbers from the first on again
        kept = self._kept[record.number] = _Kept(logged, record, self.header)
        self._decision_of.update(dict.fromkeys(record.orders, record.number))
        self._dirty[record.number] = None
        self._logged += len(kept.states) + 1
        while len(self._kept) > 1 and (
            len(self._kept) > self.decisions_max or self._logged > self.logged_max
        ):
            self._drop(next(iter(self._kept)))

    def _about(self, order: str, logged: RankedRecord) -> None:
        number = self._decision_of.get(order)
        if number is None:
            return
        kept = self._kept[number]
        if isinstance(logged.record, Transition):
            kept.states[order] = logged.record.target
        kept.log.append(logged)
        self._logged += 1
        self._dirty[number] = None

    def _drop(self, number: int) -> None:
        kept = self._kept.pop(number)
        self._frozen.pop(number, None)
        self._dirty.pop(number, None)
        self._logged -= len(kept.states) + len(kept.log)
        for order in kept.record.orders:
            del self._decision_of[order]

    def _drop_all(self) -> None:
        for number in list(self._kept):
            self._drop(number)

    def newest_first(self) -> tuple[Decided, ...]:
        """Return the decisions as they stand now, the newest first."""
        if self._dirty:
            for number in self._dirty:
                self._frozen[number] = self._kept[number].frozen()
            self._dirty.clear()
            self._newest_first = tuple(self._frozen[number] for number in reversed(self._kept))
        return self._newest_first
