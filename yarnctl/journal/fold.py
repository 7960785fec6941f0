"""Fold: the state after a journal's records, for a restart, for replay and for the checks of a run.

The changes are applied and nothing is decided again. ``Fold().apply(fold.state())`` makes a fold equal to
``fold`` in every part that is read; ties in a heap end in an order's id, so that heaps can be made again.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify

from yarnctl.deciding import records
from yarnctl.deciding.admission.book import AdmissionStore
from yarnctl.deciding.admission.payments import payment_problem
from yarnctl.deciding.controller import Remembered
from yarnctl.deciding.governor import Trials
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.ledger_state import AwaitedEnds, BarSet, LedgerState, Retiring
from yarnctl.deciding.lever_times import LeverTimes
from yarnctl.deciding.loss_budget import LossBudget
from yarnctl.deciding.model import Change, ChangeKind
from yarnctl.deciding.order import order_number
from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.deciding.reasons.modes import Paused
from yarnctl.deciding.records import Record
from yarnctl.deciding.regrowing import Regrowing
from yarnctl.deciding.settings import DEFAULT, Settings


class OpenChanges:
    """The settings of other owners that yarnctl has lowered and not restored: setting -> the change of it.

    A change that was written counts as made until its end was observed. What is restored is what the records
    in HDFS name (:mod:`yarnctl.restoring`); this fold serves display, and the check of a journal.
    """

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self.open: dict[tuple[ChangeKind, str], Change] = {change.key: change for change in changes}

    def apply(self, record: object) -> None:
        """Note changes that are about to be made, and ends of changes."""
        if isinstance(record, records.Lowering):
            self.open.update((change.key, change) for change in record.changes)
        elif isinstance(record, records.Restored):
            self.open.pop((record.kind, record.target), None)

    def problem(self, record: object) -> str:
        """Return why this record cannot come next, "" if it can. Before :meth:`apply`."""
        if isinstance(record, records.Restoring) and self.open.get(record.change.key) != record.change:
            one = record.change
            return f"the {one.kind} of {one.target} is restored, and no record says that it was so changed"
        if isinstance(record, records.Restored) and (record.kind, record.target) not in self.open:
            return f"the change of {record.kind} of {record.target} has ended, and no record says it was made"
        if isinstance(record, records.Performed) and record.queue and not record.back:
            is_maximum = record.action == "set-queue-maximum"
            known = ("queue" if is_maximum else "preemption", record.queue) in self.open
            setting = "maximum" if is_maximum else "disable_preemption"
            return "" if known else f"the {setting} of {record.queue} was set, and no record says so"
        return ""


class Fold:
    """``ledger`` and ``now_ms`` after the last step; the changes of the daemon's own parts."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.now_ms = 0
        self.changes = OpenChanges()
        self.misdirection = Misdirection()
        self.book = AdmissionStore()
        self.epoch = ""
        self.paused: Paused | None = None
        self._header: records.Header | None = None
        self._fresh: records.Header | None = None

    def apply(self, record: Record) -> None:
        """Apply the next record. None is refused: replay reports what a ledger cannot apply here."""
        if isinstance(record, records.State):
            self._go_on(record)
            return
        if isinstance(record, records.Header):
            self._fresh = record
        elif isinstance(record, records.Resumed):
            self._resumed(record)
        elif isinstance(record, Observed | records.Stopped):
            if self._fresh is not None:
                self.ledger, self.now_ms = Ledger(self._fresh.settings), 0
                self._header, self._fresh = self._fresh, None
            self.now_ms = max(self.now_ms, record.at_ms)
        elif isinstance(record, records.Contact | records.Epoch):
            self.epoch = record.epoch
        elif isinstance(record, records.Stance):
            self.paused = record.why if isinstance(record.why, Paused) else None
        elif isinstance(record, records.Decision):
            self._make_way(record)
        self.ledger.apply(record)
        self.changes.apply(record)
        self.misdirection.apply((record,))
        self.book.take(record)

    def _resumed(self, record: records.Resumed) -> None:
        """A controller continues: by its own settings, and by a clock that may have been set back."""
        self.ledger.retire(self.now_ms)  # the last step applied time-outs after its facts
        if self._fresh is not None:
            self.ledger.settings = self._fresh.settings
            self._header, self._fresh = self._fresh, None
        if record.at_ms < self.now_ms:
            self.ledger.set_back(self.now_ms - record.at_ms)
            self.paused = None if self.paused is None else self.paused.set_back(self.now_ms - record.at_ms)
        self.now_ms, self.ledger.due = record.at_ms, []

    def _make_way(self, record: records.Decision) -> None:
        """Count an order as lost whose container is under order anew: its end was not reported."""
        for pick in record.picks:
            standing = self.ledger.by_container.get(pick.task.container)
            if standing is not None:
                self.ledger.happen(standing, "epoch-changed", record.at_ms)
        if record.orders:
            self.ledger.issued = order_number(record.orders[0]) - 1

    def state(self) -> records.State:
        """Return all of it as a value."""
        return records.State(
            format=records.FORMAT,
            now_ms=self.now_ms,
            header=self._header,
            fresh=self._fresh,
            ledger=state_of(self.ledger),
            changes=tuple(self.changes.open.values()),
            epoch=self.epoch,
            releases=tuple(self.misdirection.queues.values()),
            requesters=dict(self.misdirection.requesters),
            book=self.book.left(),
            paused=self.paused,
        )

    def _go_on(self, state: records.State) -> None:
        """Become the state that was left, and nothing besides."""
        self.ledger = ledger_of(state.ledger, DEFAULT if state.header is None else state.header.settings)
        self.now_ms, self.epoch, self.paused = state.now_ms, state.epoch, state.paused
        self.changes = OpenChanges(state.changes)
        self.misdirection = Misdirection(state.releases, state.requesters)
        self.book = AdmissionStore(state.book)
        self._header, self._fresh = state.header, state.fresh

    def copy(self) -> Fold:
        """Return another fold that is the same."""
        copy = Fold()
        copy.apply(self.state())
        return copy

    def remembered(self) -> Remembered:
        """Return the state for the next controller; the fold itself does not change with it."""
        return Remembered(ledger_of(state_of(self.ledger), self.ledger.settings), self.now_ms)

    def problem(self, record: Record) -> str:
        """Return why a record that no step makes cannot come next, "" if it can. Before :meth:`apply`."""
        own = self.changes.problem(record) or self.misdirection.problem(record)
        return own or self.book.problem(record) or payment_problem(self.book, record)


def state_of(ledger: Ledger) -> LedgerState:
    """Return a ledger as a value."""
    return LedgerState(
        issued=ledger.issued,
        decisions=ledger.decisions,
        open=tuple(ledger.open.values()),
        settled=tuple(ledger.settled.values()),
        retiring=tuple(Retiring(*each) for each in ledger.retiring),
        dying=tuple(order.order for order in ledger.terminating.values()),
        suspended=tuple(ledger.suspended.values()),
        late=tuple(late for ends in ledger.recently_settled.values() for late in ends.values()),
        bars=tuple(sorted(BarSet(name, why, ledger.bars.by[name]) for name, why in ledger.excluded.items())),
        pauses=tuple(sorted(ledger.bars.pauses)),
        tries={name: dict(tries) for name, tries in ledger.tries.items()},
        freed=tuple(name for names in ledger.freed_on.values() for name in names),
        freed_for=tuple(name for names in ledger.freed_for.values() for name in names),
        sent=tuple(ledger.sent.values()),
        due=tuple(ledger.due),
        losses=ledger.losses.state() if ledger.losses.charges else None,
        awaited_until_ms=dict(ledger.awaited.until_ms),
        shrunk=tuple(ledger.regrowing.shrunk.values()),
        lever_times=tuple(ledger.times.by_kind.values()),
        trials=None if ledger.trials == Trials() else ledger.trials,
    )


def ledger_of(state: LedgerState, settings: Settings) -> Ledger:
    """Return the ledger of a state."""
    ledger = Ledger(settings)
    ledger.issued, ledger.decisions = state.issued, state.decisions
    for order in state.open:
        ledger.open[order.order] = order
        ledger.indices.enter(order)
    for name in state.freed:
        ledger.indices.free(ledger.open[name])
    ledger.freed_for.clear()
    for name in state.freed_for:
        ledger.freed_for.setdefault(ledger.open[name].requester, {})[name] = None
    ledger.settled.update((order.order, order) for order in state.settled)
    ledger.retiring.extend((each.at_ms, each.order) for each in state.retiring)
    ledger.terminating.update((ledger.settled[name].container, ledger.settled[name]) for name in state.dying)
    ledger.suspended.update((order.order, order) for order in state.suspended)
    for late in state.late:
        ledger.recently_settled.setdefault(late.order.requester, {})[late.order.order] = late
        ledger.late_until.append((max(late.room_ms, late.until_ms), late.order.requester, late.order.order))
    heapify(ledger.late_until)
    for bar in state.bars:
        ledger.bars.barred[bar.attempt], ledger.bars.by[bar.attempt] = bar.why, bar.order
    ledger.bars.pauses = list(state.pauses)
    ledger.bars.tries.update((name, dict(tries)) for name, tries in state.tries.items())
    ledger.sent.update((sent.action.order, sent) for sent in state.sent)
    ledger.due = list(state.due)
    ledger.losses = LossBudget(state.losses)
    ledger.awaited = AwaitedEnds(state.awaited_until_ms)
    ledger.regrowing = Regrowing(state.shrunk)
    ledger.times = LeverTimes(state.lever_times)
    ledger.trials = state.trials or Trials()
    return ledger
