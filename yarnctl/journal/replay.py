"""Replay: decide a whole journal again, and compare.

Law: nothing in a record is believed that can be derived. Each decision is chosen again from its
case, order ids and groups are counted again, each transition must be the cell of the life cycle that
follows the order's state, each action must be about the container its order names, and each record
must encode to the bytes of its line. The first difference ends the replay with its story.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from yarnctl.deciding.ledger import name_orders
from yarnctl.deciding.lifecycle import OPEN, State, after
from yarnctl.deciding.model import SetPriority
from yarnctl.deciding.policies import JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.records import Decision, Header, Performed, Refusal, Transfer, Transition, encode
from yarnctl.deciding.selector import choose
from yarnctl.deciding.settings import Settings
from yarnctl.errors import BadInput, Different
from yarnctl.journal.file import Line

COMPARED = ("picks", "handed_back", "unmet", "refused_jobs", "refused_tasks")
"""The parts of a choice that stand in the decision's record."""


class Replayed(msgspec.Struct, frozen=True):
    """How much was decided again, without a difference."""

    records: int
    decisions: int
    picks: int
    transitions: int
    refusals: int


class _Order(NamedTuple):
    state: State
    asker: str
    attempt: str
    container: str


class Replay:
    """The state that a journal implies, rebuilt line by line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.settings = Settings()
        self.orders: dict[str, _Order] = {}
        self.records = self.decisions = self.transitions = self.refusals = 0
        self.numbered = self.issued = self.picks = 0

    def line(self, line: Line) -> None:
        """Check one line; raises Different, or BadInput for a header that names no policy."""
        record = line.record
        where = f"{self.source}:{line.number}"
        if isinstance(record, Header):
            self._header(record, where)
        elif isinstance(record, Decision):
            self._decision(record, where)
        elif isinstance(record, Transition):
            self._transition(record, where)
        elif isinstance(record, Transfer):
            self._transfer(record, where)
        elif isinstance(record, Performed):
            self._performed(record, where)
        elif isinstance(record, Refusal):
            self.refusals += 1
        if encode(record) != line.raw:
            raise Different(f"{where}: the record reads back to other bytes than the line holds")
        self.records += 1

    def _header(self, record: Header, where: str) -> None:
        """A header starts a controller: orders and numbers begin anew."""
        for field, known in (("job_policy", JOB_POLICIES), ("task_policy", TASK_POLICIES)):
            if getattr(record.settings, field) not in known:
                raise BadInput(where, f"no policy {getattr(record.settings, field)!r} in {field}")
        self.settings = record.settings
        self.orders = {}
        self.numbered = self.issued = 0

    def _decision(self, record: Decision, where: str) -> None:
        self.numbered += 1
        if not record.number == record.case.number == self.numbered:
            raise Different(f"{where}: decision {record.number} stands where number {self.numbered} is due")
        choice = choose(record.case, self.settings)
        for field in COMPARED:
            was, now = getattr(record, field), getattr(choice, field)
            if was != now:
                raise Different(f"{where}: decision {record.number}: {field}: {_difference(was, now)}")
        orders, groups = name_orders(choice.picks, self.issued)
        if (orders, groups) != (record.orders, record.groups):
            raise Different(
                f"{where}: decision {record.number}: orders {record.orders} in groups {record.groups},"
                f" now {orders} in {groups}"
            )
        need = sum(need.containers for need in record.case.needs)
        if need != record.trigger.need:
            raise Different(f"{where}: decision {record.number}: need {record.trigger.need}, its case {need}")
        for name, pick in zip(orders, choice.picks, strict=True):
            self.orders[name] = _Order(
                "asked", record.trigger.application, pick.task.attempt, pick.task.container
            )
        self.issued += len(orders)
        self.decisions += 1
        self.picks += len(orders)

    def _transition(self, record: Transition, where: str) -> None:
        order = self.orders.get(record.order)
        if order is None:
            raise Different(f"{where}: {record.order} moves, and no decision made it")
        if record.source != order.state:
            raise Different(f"{where}: {record.order} leaves {record.source}, but it is {order.state}")
        target = after(order.state, record.event)
        if target != record.target:
            now = f"{record.event} leads to {target or 'nothing'}"
            raise Different(f"{where}: {record.order}: {record.source} -> {record.target}, but {now}")
        self.orders[record.order] = order._replace(state=record.target)
        self.transitions += 1

    def _transfer(self, record: Transfer, where: str) -> None:
        order = self.orders.get(record.order)
        if order is None:
            raise Different(f"{where}: {record.order} is transferred, and no decision made it")
        if order.state not in OPEN or record.source != order.asker:
            raise Different(
                f"{where}: {record.order} is transferred from {record.source},"
                f" but it is {order.state} for {order.asker}"
            )
        self.orders[record.order] = order._replace(asker=record.target)

    def _performed(self, record: Performed, where: str) -> None:
        action = record.action
        if isinstance(action, SetPriority):
            return
        order = self.orders.get(action.order)
        if order is None:
            raise Different(f"{where}: an action for {action.order}, and no decision made it")
        if (action.attempt, action.container) != (order.attempt, order.container):
            raise Different(
                f"{where}: {action.order} is about {order.attempt} in {order.container},"
                f" the action about {action.attempt} in {action.container}"
            )


def _difference(was: object, now: object) -> str:
    """Name the first place where two parts of a choice differ."""
    if isinstance(was, tuple) and isinstance(now, tuple):
        for place, (old, new) in enumerate(zip(was, now, strict=False)):
            if old != new:
                return f"number {place + 1} was {_short(old)}, is now {_short(new)}"
        return f"there were {len(was)}, there are now {len(now)}"
    return f"was {was}, is now {now}"


def _short(value: object) -> str:
    return msgspec.json.encode(value).decode()


def replay(lines: Iterable[Line], source: str) -> Replayed:
    """Decide every record again; raises Different at the first difference, BadInput for bad lines.

    ``source`` names the journal in messages.
    """
    state = Replay(source)
    for line in lines:
        state.line(line)
    return Replayed(state.records, state.decisions, state.picks, state.transitions, state.refusals)
