"""Believing: what a journal leaves behind, by its word alone.

Law: nothing is decided or derived again, so that a journal of an older program can be gone on from, however
this one would decide. Orders, moves and outcomes are taken as they are told; what today's life cycle has no
move for counts as lost, which leaves its task alone.
"""

from __future__ import annotations

from typing import NamedTuple

from yarnctl.deciding.leaving import in_leaving_order
from yarnctl.deciding.ledger import Order, new_order, order_number
from yarnctl.deciding.lifecycle import OPEN, RECALLABLE
from yarnctl.deciding.model import (
    Action,
    Kill,
    OrderAction,
    Outcome,
    Refused,
    Release,
    SetPriority,
    SetQueueMaximum,
    Suspend,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.records import (
    Decision,
    Forgotten,
    Header,
    KilledEnded,
    Performed,
    Progressed,
    Ranking,
    Record,
    Refusal,
    Resumed,
    Return,
    SavedLost,
    Transfer,
    Transition,
)
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.settlement import Sent
from yarnctl.journal.implied import Implied

OUR_CLOCK = ("give-up", "kill", "unclaimed", "not-needed")
"""Events that happen at an instant of the controller's own clock."""


class Believed(NamedTuple):
    """What a controller has left at the end of its records, if they are believed."""

    work: Implied
    numbered: int
    due: tuple[Action, ...]
    now_ms: int


class Believing:
    """The state that a journal tells, record by record."""

    def __init__(self) -> None:
        self._before: Believed | None = None
        self._begin(Settings(), ())

    def _begin(self, settings: Settings, capabilities: tuple[str, ...]) -> None:
        self.lines = 0
        self.settings = settings
        self.releases_itself = "releases-itself" in capabilities
        self.work = Implied(settings, self.releases_itself)
        self.numbered = self.now_ms = 0
        self.due: list[Action] = []

    def left(self) -> Believed:
        """Return what the controller whose records were read last has left."""
        if not self.lines and self._before is not None:
            return self._before
        due = in_leaving_order(self.due, self.work.ledger, self.settings)
        return Believed(self.work, self.numbered, due, self.now_ms)

    def take(self, record: Record) -> None:
        """Take the next record; none is refused."""
        if isinstance(record, Header):
            if self.lines or self._before is None:
                self._before = self.left()
            self._begin(record.settings, record.capabilities)
            return
        self.lines += 1
        if isinstance(record, Decision | Refusal):
            self.work.retire(record.at_ms)
        if isinstance(record, Resumed):
            self._resumed(record)
        elif isinstance(record, Decision):
            self._decided(record)
        elif isinstance(record, Transition):
            self._moved(record)
        elif isinstance(record, Transfer):
            self._passed_on(record)
        elif isinstance(record, Performed):
            self._performed(record)
        elif isinstance(record, Return | SavedLost):
            self.work.ledger.away.pop(record.order, None)
        elif isinstance(record, Progressed):
            self.work.ledger.happen(record.order, "progress", record.at_ms)
        elif isinstance(record, Forgotten):
            self.work.ledger.forget(record.application)
        elif isinstance(record, KilledEnded):
            self.work.killed_ended(record.container, record.ending, record.at_ms)
        if isinstance(record, Resumed | Decision | Refusal | Ranking | Transfer | Performed) or (
            (isinstance(record, Transition) and record.event in OUR_CLOCK)
            or (isinstance(record, Forgotten) and record.why == "absent")
        ):
            self.now_ms = max(self.now_ms, record.at_ms)

    def _resumed(self, record: Resumed) -> None:
        left = self._before
        if left is None:
            return
        self.work.go_on(left.work)
        self.numbered, self.now_ms = left.numbered, left.now_ms
        if record.at_ms < self.now_ms:
            self.work.set_back(self.now_ms - record.at_ms)
            self.now_ms = record.at_ms
        self.due = list(record.again)
        for order in [one for one in self.work.ledger.open.values() if one.order not in record.orders]:
            self.work.ledger.happen(order.order, "epoch-changed", record.at_ms)

    def _decided(self, record: Decision) -> None:
        self.numbered = record.number
        ledger = self.work.ledger
        for name, pick, group in zip(record.orders, record.picks, record.groups, strict=True):
            standing = ledger.by_container.get(pick.task.container)
            if standing is not None:
                ledger.happen(standing, "epoch-changed", record.at_ms)
            asker = record.trigger.application
            order = new_order(pick, name, group, asker, record.number, record.at_ms, self.settings)
            ledger.issued = order_number(name) - 1
            ledger.add(order)
            self.due.append(requested(order, self.settings))

    def _moved(self, record: Transition) -> None:
        ledger = self.work.ledger
        order = ledger.open.get(record.order)
        if order is None:
            return
        self.work.move(order.order, record.event, record.at_ms, why=record.why)
        now = ledger.open.get(order.order)
        if now is not None and record.target not in OPEN:
            ledger.happen(order.order, "epoch-changed", record.at_ms)
        if record.why.endswith(" has ended"):
            ledger.forget(order.asker if record.event == "asker-ended" else order.victim)
        self.due += self._called_for(order, record)

    def _called_for(self, order: Order, record: Transition) -> list[Action]:
        """Return the action that a move calls for, if it does."""
        names = (order.order, order.victim, order.attempt, order.container)
        if order.observed or order.verb == "kill":
            return [Kill(*names)] if record.event == "kill" else []
        match record.event:
            case "manifest" if not self.releases_itself:
                return [Release(*names, order.generation)]
            case "kill":
                return [Kill(*names)]
            case "give-up":
                return [Withdraw(*names)]
            case "not-needed" | "asker-ended" | "epoch-changed" if order.state in RECALLABLE:
                return [Withdraw(*names)]
        return []

    def _passed_on(self, record: Transfer) -> None:
        order = self.work.ledger.open.get(record.order)
        if order is not None:
            self.work.ledger.transfer(order, record.target)

    def _performed(self, record: Performed) -> None:
        action = record.action
        if isinstance(action, SetPriority | SetQueueMaximum):
            return
        for place, due in enumerate(self.due):
            if type(due) is type(action) and getattr(due, "order", "") == action.order:
                del self.due[place]
                break
        self._remember(action, record.outcome, record.at_ms)

    def _remember(self, action: OrderAction, outcome: Outcome, at_ms: int) -> None:
        """Remember what must perhaps be sent again, as :class:`Settlement` does."""
        if isinstance(action, Suspend | Kill) or isinstance(outcome, Withheld):
            return
        before = self.work.sent.get(action.order)
        if not isinstance(outcome, Refused):
            first_ms = at_ms if before is None else before.first_ms
            self.work.sent[action.order] = Sent(action, first_ms, at_ms, isinstance(outcome, Unknown))
        elif before is not None:
            self.work.sent[action.order] = before._replace(last_ms=at_ms, unsure=False)


def requested(order: Order, settings: Settings) -> Action:
    """Return the action by which an order is asked for."""
    names = (order.order, order.victim, order.attempt, order.container)
    if order.verb == "kill":
        return Kill(*names)
    return Suspend(*names, order.generation, order.asked_at_ms + settings.kill_timeout_ms)
