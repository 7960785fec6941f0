"""The published orders: the reclaim lists, and the newest decisions with all their records.

An entry that has retired from the ledger is kept for a while. Decisions are bounded by number and by records,
the oldest dropped first. Published values are frozen: a reader sees the state of one time.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec

from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.lifecycle import OPEN, State
from yarnctl.deciding.order import Order, order_number
from yarnctl.deciding.reasons.orders import MoveReason
from yarnctl.deciding.reasons.outcomes import OutcomeReason
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
from yarnctl.journal.rendering import said

ENDED_MAX = 1000
CHECKPOINTS_MAX = 1000
NOTES_MAX = 20_000


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a reclaim list: an order, with the recorded data about its work.

    ``remaining_ms``: the task's remaining work when it was chosen (-1: unknown, None: not recorded);
    ``predicted_cost_ms``: the predicted resume cost, ``cost_ms`` the measured one; ``keys_done``: the keys in
    its checkpoint; ``receiver_...``: which application got the container. ``retired``: the entry has left
    the list. ``event``: the last event of the order; ``reason``: its reason, ``why`` the same as text.
    """

    order: Order
    remaining_ms: int | None = None
    predicted_cost_ms: int | None = None
    cost_ms: int | None = None
    keys_done: int | None = None
    checkpointed_at_ms: int | None = None
    why: str = ""
    event: str = ""
    reason: MoveReason | OutcomeReason | None = None
    receiver_application: str = ""
    receiver_container: str = ""
    retired: bool = False


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest that was found: work up to ``keys_done`` (None: unknown). ``rank``: its position, from 1."""

    rank: int
    order: Order
    keys_done: int | None
    at_ms: int


class _Note(msgspec.Struct):
    """The recorded data about one order."""

    remaining_ms: int | None = None
    predicted_cost_ms: int | None = None
    keys_done: int | None = None
    checkpointed_at_ms: int | None = None
    last: Transition | None = None


class ReclaimLists:
    """The reclaim lists, updated from the ledger at each tick."""

    def __init__(self) -> None:
        self._notes: dict[str, _Note] = {}
        self._entries: dict[str, Entry] = {}
        self._saved: dict[str, Transition] = {}
        self._returned: dict[str, int] = {}
        self._ended: deque[Entry] = deque(maxlen=ENDED_MAX)
        self._checkpoints: deque[Checkpoint] = deque(maxlen=CHECKPOINTS_MAX)
        self._checkpoint_number = 0
        self.entries: tuple[Entry, ...] = ()
        self.ended: tuple[Entry, ...] = ()
        self.checkpoints: tuple[Checkpoint, ...] = ()

    def apply(self, record: Record) -> None:
        """Apply a record to its orders' entries."""
        if isinstance(record, Decision):
            for name, pick in zip(record.orders, record.picks, strict=True):
                task = pick.task
                self._notes[name] = _Note(task.remaining_ms, predicted_cost_ms=task.resume_cost_ms)
            while len(self._notes) > NOTES_MAX:
                del self._notes[next(iter(self._notes))]
        elif isinstance(record, Transition):
            note = self._notes.setdefault(record.order, _Note())
            note.last = record
            if record.target == "checkpointed" and record.source != record.target:
                note.checkpointed_at_ms = record.at_ms
                note.keys_done = record.keys_done if record.keys_done >= 0 else None
                self._saved[record.order] = record
        elif isinstance(record, Return):
            self._returned[record.order] = record.cost_ms

    def update(self, ledger: Ledger) -> None:
        """Apply the ledger's current state. Call it after the records of the tick were applied."""
        changed = False
        for orders in (ledger.open, ledger.settled):
            for name, order in orders.items():
                known = self._entries.get(name)
                if known is None or known.order is not order:
                    self._entries[name] = self._entry(order)
                    changed = True
        if len(self._entries) > len(ledger.open) + len(ledger.settled):
            self._retire(ledger)
            changed = True
        if changed:
            self.entries = tuple(
                sorted(self._entries.values(), key=lambda each: order_number(each.order.order))
            )
        self._save()
        self._resume()

    def _entry(self, order: Order, retired: bool = False) -> Entry:
        note = self._notes.get(order.order) or _Note()
        last = note.last
        return Entry(
            order=order,
            remaining_ms=note.remaining_ms,
            predicted_cost_ms=note.predicted_cost_ms,
            keys_done=note.keys_done,
            checkpointed_at_ms=note.checkpointed_at_ms,
            why=(said(last.why) or last.event) if last is not None else "",
            event=last.event if last is not None else "",
            reason=last.why if last is not None else None,
            receiver_application=last.application if last is not None else "",
            receiver_container=last.container if last is not None else "",
            retired=retired,
        )

    def _retire(self, ledger: Ledger) -> None:
        gone = [name for name in self._entries if name not in ledger.open and name not in ledger.settled]
        for name in gone:
            order = self._entries.pop(name).order
            note = self._notes.get(name)
            last = None if note is None else note.last
            if last is not None and last.target != order.state:  # settled and retired in one tick
                order = msgspec.structs.replace(
                    order, state=last.target, settled_at_ms=None if last.target in OPEN else last.at_ms
                )
            self._ended.appendleft(self._entry(order, retired=True))
            self._notes.pop(name, None)
        self.ended = tuple(self._ended)

    def _resume(self) -> None:
        if not self._returned:
            return
        for place, each in enumerate(self._ended):
            cost_ms = self._returned.get(each.order.order)
            if cost_ms is not None and each.cost_ms is None:
                self._ended[place] = msgspec.structs.replace(each, cost_ms=cost_ms)
        open_still = {name: cost_ms for name, cost_ms in self._returned.items() if name in self._entries}
        self._returned = open_still
        self.ended = tuple(self._ended)

    def _save(self) -> None:
        if not self._saved:
            return
        for name, record in self._saved.items():
            known = self._entries.get(name)
            if known is None:
                continue  # of an order that is in no ledger
            self._checkpoint_number += 1
            self._checkpoints.appendleft(
                Checkpoint(
                    rank=self._checkpoint_number,
                    order=known.order,
                    keys_done=record.keys_done if record.keys_done >= 0 else None,
                    at_ms=record.at_ms,
                )
            )
        self._saved.clear()
        self.checkpoints = tuple(self._checkpoints)


DECISIONS_MAX = 500
LOGGED_MAX = 50_000
REFUSALS_MAX = 500
RANKINGS_MAX = 100


class RankedRecord(NamedTuple):
    """A record and its position among all records of this process (from 1)."""

    rank: int
    record: Record


class Decided(msgspec.Struct, frozen=True):
    """One decision, its records so far (itself first), and the state of each of its orders."""

    record: Decision
    header: Header | None
    log: tuple[RankedRecord, ...]
    states: tuple[State, ...]


class _Kept:
    """A decision that still gets records."""

    def __init__(self, ranked: RankedRecord, decision: Decision, header: Header | None) -> None:
        self.decision = decision
        self.header = header
        self.log = [ranked]
        self.states: dict[str, State] = dict.fromkeys(decision.orders, "ordered")

    def frozen(self) -> Decided:
        """Return it as a value."""
        return Decided(self.decision, self.header, tuple(self.log), tuple(self.states.values()))


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
        """Apply one record, in the order of the journal."""
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

    def _decided(self, ranked: RankedRecord, decision: Decision) -> None:
        if decision.number <= next(reversed(self._kept), 0):
            for number in list(self._kept):
                self._drop(number)
        kept = self._kept[decision.number] = _Kept(ranked, decision, self.header)
        self._decision_of.update(dict.fromkeys(decision.orders, decision.number))
        self._dirty[decision.number] = None
        self._logged += len(kept.states) + 1
        while len(self._kept) > 1 and (
            len(self._kept) > self.decisions_max or self._logged > self.logged_max
        ):
            self._drop(next(iter(self._kept)))

    def _about(self, order: str, ranked: RankedRecord) -> None:
        number = self._decision_of.get(order)
        if number is None:
            return
        kept = self._kept[number]
        if isinstance(ranked.record, Transition):
            kept.states[order] = ranked.record.target
        kept.log.append(ranked)
        self._logged += 1
        self._dirty[number] = None

    def _drop(self, number: int) -> None:
        kept = self._kept.pop(number)
        self._frozen.pop(number, None)
        self._dirty.pop(number, None)
        self._logged -= len(kept.states) + len(kept.log)
        for order in kept.decision.orders:
            del self._decision_of[order]

    def newest_first(self) -> tuple[Decided, ...]:
        """Return the decisions as a value, the newest first."""
        if self._dirty:
            for number in self._dirty:
                self._frozen[number] = self._kept[number].frozen()
            self._dirty.clear()
            self._newest_first = tuple(self._frozen[number] for number in reversed(self._kept))
        return self._newest_first
