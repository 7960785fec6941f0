"""Settlement: what facts, time-outs and second thoughts do to the orders.

Law: only facts and deadlines settle an order. A fact about no order, about a settled order, or
about another attempt or generation is foreign and does nothing; none can raise. Every move is
recorded; every recall is an action (not suspending is always allowed).
"""

from __future__ import annotations

from collections.abc import Iterable

from yarnctl.deciding.ledger import Ledger, Order
from yarnctl.deciding.lifecycle import RECALLABLE, Event
from yarnctl.deciding.model import (
    Accepted,
    Action,
    ApplicationEnded,
    ContainerEnded,
    ContainerGranted,
    EpochChanged,
    Fact,
    Kill,
    ManifestSeen,
    Outcome,
    Refused,
    Release,
    Suspend,
    UploadProgressed,
    Withdraw,
)
from yarnctl.deciding.records import Epoch, Record, Transfer, transition
from yarnctl.deciding.settings import Settings


class Settlement:
    """Moves orders and collects the records and actions that this makes, in order."""

    def __init__(self, ledger: Ledger, settings: Settings, releases_itself: bool) -> None:
        self.ledger = ledger
        self.settings = settings
        self.releases_itself = releases_itself
        self.records: list[Record] = []
        self.actions: list[Action] = []

    def move(
        self,
        order_id: str,
        event: Event,
        at_ms: int,
        *,
        why: str = "",
        container: str = "",
        application: str = "",
        keys_done: int = -1,
    ) -> bool:
        """Apply one event; record it if it changed the state; say whether it did."""
        moved = self.ledger.apply(order_id, event, at_ms)
        if moved is None or moved.before.state == moved.after.state:
            return False
        self.records.append(transition(moved, why, container, application, keys_done))
        return True

    # --- facts ----------------------------------------------------------------------------------

    def take(self, facts: Iterable[Fact]) -> None:
        """Apply facts in the order in which they were told."""
        for fact in facts:
            if isinstance(fact, ContainerGranted):
                self._granted(fact)
            elif isinstance(fact, ContainerEnded):
                self._ended(fact)
            elif isinstance(fact, ManifestSeen):
                self._manifest(fact)
            elif isinstance(fact, UploadProgressed):
                self.move(fact.order, "progress", fact.at_ms)
            elif isinstance(fact, ApplicationEnded):
                self._application_ended(fact)
            else:
                self._epoch_changed(fact)

    def _manifest(self, fact: ManifestSeen) -> None:
        """A manifest must name the order's own attempt; an older generation means "unchanged"."""
        order = self.ledger.open.get(fact.order)
        if order is None or order.attempt != fact.attempt or fact.generation > order.generation:
            return
        moved = self.move(order.order, "manifest", fact.at_ms, keys_done=fact.keys_done)
        if moved and not self.releases_itself:
            self.actions.append(
                Release(order.order, order.victim, order.attempt, order.container, fact.generation)
            )

    def _ended(self, fact: ContainerEnded) -> None:
        self.ledger.dying.pop(fact.container, None)
        order_id = self.ledger.by_container.get(fact.container)
        if order_id is None:
            return
        order = self.ledger.open[order_id]
        event: Event = "ended-otherwise"
        if fact.ending == "completed":
            event = "completed"
        elif fact.ending == "suspended" or (
            fact.ending == "killed" and (order.verb == "kill" or order.state == "checkpointed")
        ):
            event = "ended-as-ordered"
        self.move(order_id, event, fact.at_ms, why=f"container {fact.ending}")

    def _granted(self, fact: ContainerGranted) -> None:
        """Settle the entry that this grant answers (section 3.2: it is removed from the job's list).

        Rooms of one size are all alike, but an order must see its task's end. So when an asker is
        given the room freed for another while an order of its own is still running, that order
        goes over to the other's list; without one, the other has lost its room and asks again.
        """
        asker, size = fact.application, fact.size
        here = [self.ledger.open[name] for name in self.ledger.freed_on.get(fact.node, ())]
        here = [order for order in here if order.serves and (order.freed_at_ms or 0) <= fact.at_ms]
        own = [order for order in here if order.asker == asker and order.ask == size]
        if own:
            self._answer(own[0], "granted", fact)
            return
        others = [order for order in here if order.asker != asker]
        others = [order for order in others if order.ask == size] or others
        elsewhere = self.ledger.oldest_freed(asker, size)
        if not others:
            if elsewhere is not None:
                self._answer(elsewhere, "granted", fact)
            return
        given = others[0]
        mine = elsewhere or self.ledger.oldest_running(asker, size)
        if mine is None or given.ask != size:
            self._answer(given, "taken", fact)
        else:
            self._answer(given, "granted", fact)
            self.transfer(mine, given.asker, fact.at_ms, f"{asker} was given the room of {given.order}")

    def _answer(self, order: Order, event: Event, fact: ContainerGranted) -> None:
        """Settle an order, and those of its group that are freed, as granted or taken."""
        for mate in self.ledger.group_of(order):
            why = "" if mate.order == order.order else f"with {order.order}"
            self.move(
                mate.order, event, fact.at_ms, why=why, container=fact.container, application=fact.application
            )

    def transfer(self, order: Order, asker: str, at_ms: int, why: str) -> None:
        """Let an order, with its group, work for another application."""
        for mate in self.ledger.group_of(order):
            self.ledger.transfer(mate, asker)
            self.records.append(
                Transfer(order=mate.order, source=mate.asker, target=asker, at_ms=at_ms, why=why)
            )

    def _application_ended(self, fact: ApplicationEnded) -> None:
        for order in list(self.ledger.of_asker(fact.application)):
            self.recall(order, "asker-ended", fact.at_ms, f"{fact.application} has ended")
        for order in list(self.ledger.of_victim(fact.application)):
            self.move(order.order, "completed", fact.at_ms, why=f"{fact.application} has ended")

    def _epoch_changed(self, fact: EpochChanged) -> None:
        self.records.append(Epoch(at_ms=fact.at_ms, epoch=fact.epoch))
        for order in list(self.ledger.open.values()):
            self.recall(order, "epoch-changed", fact.at_ms, "another ResourceManager answers")

    # --- second thoughts and time-outs ------------------------------------------------------------

    def recall(self, order: Order, event: Event, at_ms: int, why: str) -> None:
        """Settle an order that is not wanted any more, and tell its task to go on."""
        running = order.state in RECALLABLE and order.verb == "suspend"
        if self.move(order.order, event, at_ms, why=why) and running:
            self.actions.append(Withdraw(order.order, order.victim, order.attempt, order.container))

    def time_out(self, now_ms: int) -> None:
        """Give up or kill what has shown no progress for too long; stop counting unclaimed room."""
        limit = self.settings.kill_timeout_ms
        for order in list(self.ledger.open.values()):
            if order.state == "freed":
                if now_ms - (order.freed_at_ms or 0) >= limit:
                    why = f"nobody was seen to get it in {limit} ms"
                    self.move(order.order, "unclaimed", now_ms, why=why)
            elif now_ms - order.progress_at_ms >= limit:
                self._silent(order, now_ms, f"no progress for {limit} ms")

    def _silent(self, order: Order, now_ms: int, why: str) -> None:
        names = (order.order, order.victim, order.attempt, order.container)
        if self.settings.on_timeout == "kill":
            if self.move(order.order, "kill", now_ms, why=why):
                self.actions.append(Kill(*names))
        elif self.move(order.order, "give-up", now_ms, why=why) and order.verb == "suspend":
            self.actions.append(Withdraw(*names))

    def forget_unwanted(self, pending: dict[str, int], now_ms: int, as_of_ms: int) -> None:
        """Settle freed entries whose asker has stopped asking without a grant having been seen."""
        for order in list(self.ledger.open.values()):
            if order.state != "freed" or pending.get(order.asker):
                continue
            if as_of_ms - (order.freed_at_ms or 0) >= self.settings.expire_ms:
                self.move(order.order, "not-needed", now_ms, why="the ask is gone")

    # --- outcomes ---------------------------------------------------------------------------------

    def outcome(self, action: Action, outcome: Outcome, now_ms: int) -> None:
        """Take note of what came of an action; an unknown outcome leaves the order open."""
        if not isinstance(action, Suspend | Kill):
            return
        if isinstance(outcome, Accepted):
            self.move(action.order, "accepted", now_ms)
        elif isinstance(outcome, Refused):
            self.move(action.order, "refused", now_ms, why=outcome.why)
