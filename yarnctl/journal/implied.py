"""Implied: the ledger and the settlement that a journal's records imply.

Law: these are the very objects that decide for a cluster, moved by the events that the records
tell; what they write is what the journal must hold.
"""

from __future__ import annotations

from yarnctl.deciding.effects import Effects
from yarnctl.deciding.ledger import Ledger, Order
from yarnctl.deciding.model import (
    Action,
    ContainerEnded,
    Kill,
    Release,
    SetPriority,
    SetQueueMaximum,
    Withdraw,
)
from yarnctl.deciding.records import SINCE_COMPLETE, Record, Transition
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.settlement import STILL_WAITS, Settlement, unclaimed


class Implied(Settlement):
    """A settlement that is told what happened by the records of what it did.

    What that leads to is kept until it is asked for (``made``, ``asked``).
    ``complete``: the journal holds every change of the ledger, see :class:`yarnctl.deciding.records.Header`.
    """

    def __init__(self, settings: Settings, releases_itself: bool, complete: bool = True) -> None:
        super().__init__(Ledger(settings), settings, releases_itself)
        self.complete = complete
        self.killed: dict[str, None] = {}
        self.effects = Effects()

    def go_on(self, left: Implied) -> None:
        """Take over the orders of the controller before, and what it was sending again."""
        self.ledger, self.sent, self.killed = left.ledger, left.sent, left.killed
        self.ledger.settings = self.settings

    def made(self) -> list[Record]:
        """Return the records made since the last call."""
        made, self.effects.records = self.effects.records, []
        if self.complete:
            return made
        return [record for record in made if not isinstance(record, SINCE_COMPLETE)]

    def asked(self) -> list[Action]:
        """Return the actions that were called for since the last call."""
        asked, self.effects.actions = self.effects.actions, []
        return asked

    def note(self, effects: Effects) -> None:
        """Keep what a change has led to."""
        self.effects.add(effects)

    def container_ended(self, fact: ContainerEnded) -> None:
        """Take the end that the record of an order's move tells.

        That a killed order waited for the same container's end is a record of its own, if the journal has
        these: whether it still waited depends on when the last step was, and no record says that.
        """
        self.note(self.order_ended(fact) if self.complete else self.take((fact,)))

    def sent_again(self, action: Action, now_ms: int) -> bool:
        """Say whether an action is one that is sent until its effect is seen, and note that it was."""
        sent = None if isinstance(action, SetPriority | SetQueueMaximum) else self.sent.get(action.order)
        if sent is None or sent.action != action or now_ms <= sent.last_ms:
            return False
        if isinstance(action, Release):
            order = self.ledger.open.get(action.order)
            late = now_ms - sent.last_ms >= self.settings.release_repeat_ms
            again = order is not None and order.state == "checkpointed" and (sent.unsure or late)
        else:
            again = sent.unsure and now_ms - sent.first_ms < self.settings.kill_timeout_ms
        if again:
            self.sent[sent.action.order] = sent._replace(last_ms=now_ms)
        return again

    def overdue(self, now_ms: int) -> str:
        """Return an order whose room has waited for its grant for too long, or "".

        Who only observes lets no time run out.
        """
        if self.settings.observe_only:
            return ""
        limit = self.settings.kill_timeout_ms
        for order in self.ledger.open.values():
            if order.state == "freed" and now_ms - (order.freed_at_ms or 0) >= limit:
                return order.order
        return ""

    def time_one_out(self, order: Order, now_ms: int, told: str) -> str:
        """Let one order's time run out; say why not, if it has some left.

        ``told`` is why: whether the asker of freed room still waited was observed, and is believed.
        """
        limit = self.settings.kill_timeout_ms
        if order.state == "freed":
            if now_ms - (order.freed_at_ms or 0) < limit:
                return f"freed at {order.freed_at_ms} ms, unclaimed {limit} ms later at the earliest"
            why = unclaimed(limit, waits=told.endswith(STILL_WAITS))
            self.note(self.move(order.order, "unclaimed", now_ms, why=why))
            return ""
        if now_ms - order.progress_at_ms < limit:
            return f"alive at {order.progress_at_ms} ms, timed out {limit} ms later at the earliest"
        names = (order.order, order.victim, order.attempt, order.container)
        why = f"no progress for {limit} ms"
        if self.settings.on_timeout == "kill":
            self.note(self.move(order.order, "kill", now_ms, why=why))
            self.effects.actions.append(Kill(*names))
            self.killed[order.attempt] = None
        else:
            self.note(self.move(order.order, "give-up", now_ms, why=why))
            if order.verb == "suspend":
                self.effects.actions.append(Withdraw(*names))
        return ""

    def answer(self, order: Order, record: Transition) -> str:
        """Let a grant settle a freed order's group as a record says; say why not, if it cannot."""
        given = order
        if record.why.startswith("with "):
            given = self.ledger.open.get(record.why.removeprefix("with "), order)
        asker, at_ms = record.application, record.at_ms
        problem = self._not_answered(given, asker, at_ms, record.event == "granted")
        if problem or given.group != order.group:
            return problem or f"granted {record.why}, which is of another group"
        mine = None
        if record.event == "granted" and given.asker != asker:
            mine = self.ledger.oldest_freed(asker, given.ask) or self.ledger.oldest_running(asker, given.ask)
            if mine is None:
                return f"granted to {asker}, which has no order of that size"
        for mate in self.ledger.group_of(given):
            why = "" if mate.order == given.order else f"with {given.order}"
            who = {"container": record.container, "application": asker}
            self.note(self.move(mate.order, record.event, at_ms, why=why, **who))
        if mine is not None:
            self.note(self.transfer(mine, given.asker, at_ms, f"{asker} was given the room of {given.order}"))
        return ""

    def _not_answered(self, given: Order, asker: str, at_ms: int, granted: bool) -> str:
        """Say why a grant to ``asker`` would not settle this order first, or ""."""
        if not given.serves or given.state != "freed":
            return f"{given.order} is not the one that completes the room"
        here = [self.ledger.open[name] for name in self.ledger.freed_on.get(given.node, ())]
        here = [order for order in here if order.serves and (order.freed_at_ms or 0) <= at_ms]
        if given.asker != asker:
            others = [order for order in here if order.asker != asker]
            alike = [order for order in others if order.ask == given.ask]
            first = given in (others[:1] + alike[:1])
            return "" if first else f"{given.order} is not the first whose room {asker} could have got"
        own = [order for order in here if order.asker == asker and order.ask == given.ask]
        if not granted or not (own[:1] == [given] or self.ledger.oldest_freed(asker, given.ask) == given):
            return f"{given.order} is not the first that a grant to {asker} settles"
        return ""
