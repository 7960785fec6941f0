"""Settlement: what facts, time-outs and second thoughts do to the orders.

Law: only facts and deadlines settle an order. A fact about no order, about a settled order, or
about another attempt or generation is foreign and does nothing; none can raise. Every move is
recorded; every recall is an action (not suspending is always allowed).

A Release is idempotent by its order and is sent again until its effect is seen; so is a Withdraw
whose outcome is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from yarnctl.deciding.effects import Effects
from yarnctl.deciding.ledger import Ledger, Order
from yarnctl.deciding.lifecycle import OPEN, RECALLABLE, Event
from yarnctl.deciding.model import (
    Accepted,
    Action,
    ApplicationEnded,
    CameBack,
    CameBackWithout,
    ContainerEnded,
    ContainerGranted,
    Ending,
    EpochChanged,
    Fact,
    Kill,
    ManifestSeen,
    Outcome,
    Refused,
    Release,
    Suspend,
    Unknown,
    UploadProgressed,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.records import (
    Absence,
    Epoch,
    Forgotten,
    KilledEnded,
    Record,
    Return,
    SavedLost,
    Transfer,
    Transition,
)
from yarnctl.deciding.settings import Settings
from yarnctl.units import Resources, fits

STOPPING = "yarnctl stops"
"""Why what is under way is taken back when the program ends in peace."""

STILL_WAITS = "its asker still waits"
"""What is said of room that nobody was seen to get, if its asker was seen to wait all the while."""

OBSERVED = "it was only observed, nobody was asked"
"""Why an order of a controller that only observed ends when one that acts goes on."""


class Sent(NamedTuple):
    """A request whose effect has not been seen. ``unsure``: the last outcome was Unknown."""

    action: Release | Withdraw
    first_ms: int
    last_ms: int
    unsure: bool


def unclaimed(limit_ms: int, *, waits: bool) -> str:
    """Return why an order for room that nobody was seen to get ends."""
    return f"nobody was seen to get it in {limit_ms} ms" + (f", and {STILL_WAITS}" if waits else "")


class Settlement:
    """Moves orders; every method that changes something returns the effects."""

    def __init__(self, ledger: Ledger, settings: Settings, releases_itself: bool) -> None:
        self.ledger = ledger
        self.settings = settings
        self.releases_itself = releases_itself
        self.pending: Mapping[str, int] | None = None
        self.pending_at_ms = 0
        self.sent: dict[str, Sent] = {}

    def move(self, order_id: str, event: Event, at_ms: int, **told: Any) -> Effects:
        """Apply one event to an order; ``told`` are fields of the record."""
        effects = Effects()
        self._move(effects, order_id, event, at_ms, **told)
        return effects

    def _move(self, into: Effects, order_id: str, event: Event, at_ms: int, **told: Any) -> bool:
        """Let one event happen; say whether it changed the order's state."""
        record = self.ledger.happen(order_id, event, at_ms, **told)
        if record is None:
            return False
        into.records.append(record)
        if not isinstance(record, Transition):
            return False
        if record.target not in OPEN:
            self.sent.pop(order_id, None)
        return True

    def _record(self, into: Effects, record: Record) -> None:
        """Apply a record that was made, and add it to the effects."""
        self.ledger.apply(record)
        into.records.append(record)

    def retire(self, now_ms: int) -> None:
        """Forget what is over, and over for any look that may still be decided on."""
        settings = self.settings
        self.ledger.retire(now_ms, settings.expire_ms, settings.expire_ms + settings.look_age_max_ms)

    def set_back(self, by_ms: int) -> None:
        """Move every instant back by a span: the clock by which they were told has been set back."""
        self.ledger.set_back(by_ms)
        for name, sent in self.sent.items():
            self.sent[name] = sent._replace(first_ms=sent.first_ms - by_ms, last_ms=sent.last_ms - by_ms)

    # --- facts ----------------------------------------------------------------------------------

    def take(self, facts: Iterable[Fact]) -> Effects:
        """Apply facts in the order in which they were told."""
        effects = Effects()
        for fact in facts:
            if isinstance(fact, ContainerGranted):
                self._granted(effects, fact)
            elif isinstance(fact, ContainerEnded):
                effects.add(self.killed_ended(fact.container, fact.ending, fact.at_ms))
                effects.add(self.order_ended(fact))
            elif isinstance(fact, ManifestSeen):
                self._manifest(effects, fact)
            elif isinstance(fact, UploadProgressed):
                self._move(effects, fact.order, "progress", fact.at_ms)
            elif isinstance(fact, CameBack):
                self._came_back(effects, fact)
            elif isinstance(fact, CameBackWithout):
                self._came_back_without(effects, fact)
            elif isinstance(fact, ApplicationEnded):
                self._application_ended(effects, fact)
            else:
                self._epoch_changed(effects, fact)
        return effects

    def _manifest(self, into: Effects, fact: ManifestSeen) -> None:
        """A manifest must name the order's own attempt; an older generation means "unchanged"."""
        order = self.ledger.open.get(fact.order)
        if order is None or order.attempt != fact.attempt or fact.generation > order.generation:
            return
        moved = self._move(into, order.order, "manifest", fact.at_ms, keys_done=fact.keys_done)
        if moved and not self.releases_itself:
            into.actions.append(
                Release(order.order, order.victim, order.attempt, order.container, fact.generation)
            )

    def killed_ended(self, container: str, ending: Ending, at_ms: int) -> Effects:
        """Record the end of a container whose killed order is settled: its room is not coming any more."""
        into = Effects()
        killed = self.ledger.dying.get(container)
        if killed is not None:
            ended = KilledEnded(order=killed.order, container=container, ending=ending, at_ms=at_ms)
            self._record(into, ended)
        return into

    def order_ended(self, fact: ContainerEnded) -> Effects:
        """Move the open order whose container has ended, if there is one."""
        into = Effects()
        order_id = self.ledger.by_container.get(fact.container)
        if order_id is None:
            return into
        order = self.ledger.open[order_id]
        event: Event = "ended-otherwise"
        if fact.ending == "completed":
            event = "completed"
        elif fact.ending == "suspended" or (
            fact.ending == "killed" and (order.verb == "kill" or order.state == "checkpointed")
        ):
            event = "ended-as-ordered"
        self._move(into, order_id, event, fact.at_ms, why=f"container {fact.ending}")
        return into

    def _granted(self, into: Effects, fact: ContainerGranted) -> None:
        """Settle the entry that this grant answers (section 3.2: it is removed from the job's list).

        Rooms of one size are all alike, but an order must see its task's end. So when an asker is
        given the room freed for another while an order of its own is still running, that order
        goes over to the other's list; without one, the other has lost its room and asks again
        (:meth:`_is_taken`).
        """
        asker, size = fact.application, fact.size
        here = [self.ledger.open[name] for name in self.ledger.freed_on.get(fact.node, ())]
        here = [order for order in here if order.serves and (order.freed_at_ms or 0) <= fact.at_ms]
        own = [order for order in here if order.asker == asker and order.ask == size]
        if own:
            self._answer(into, own[0], "granted", fact)
            return
        others = [order for order in here if order.asker != asker]
        others = [order for order in others if order.ask == size] or others
        elsewhere = self.ledger.oldest_freed(asker, size)
        if not others:
            if elsewhere is not None:
                self._answer(into, elsewhere, "granted", fact)
            return
        given = others[0]
        mine = elsewhere or self.ledger.oldest_running(asker, size)
        if mine is None or given.ask != size:
            if self._is_taken(given, size):
                self._answer(into, given, "taken", fact)
        else:
            self._answer(into, given, "granted", fact)
            why = f"{asker} was given the room of {given.order}"
            into.add(self.transfer(mine, given.asker, fact.at_ms, why))

    def _is_taken(self, order: Order, size: Resources) -> bool:
        """Say whether a grant of ``size`` to somebody else, on the order's node, took the order's room.

        Nobody tells which room on a node a container was given. A grant smaller than the container
        that ended leaves room, or came from other room: the order stays, until its asker is given a
        container, asks no more, or the time is out. An asker that waits for nothing has lost nothing.
        """
        if self.pending is not None and not self.pending.get(order.asker):
            return False
        return fits(order.size, size)

    def _answer(self, into: Effects, order: Order, event: Event, fact: ContainerGranted) -> None:
        """Settle an order, and those of its group that are freed, as granted or taken."""
        for mate in self.ledger.group_of(order):
            why = "" if mate.order == order.order else f"with {order.order}"
            who = {"container": fact.container, "application": fact.application}
            self._move(into, mate.order, event, fact.at_ms, why=why, **who)

    def transfer(self, order: Order, asker: str, at_ms: int, why: str) -> Effects:
        """Let an order, with its group, work for another application."""
        into = Effects()
        for mate in self.ledger.group_of(order):
            passed_on = Transfer(order=mate.order, source=mate.asker, target=asker, at_ms=at_ms, why=why)
            self._record(into, passed_on)
        return into

    def _came_back(self, into: Effects, fact: CameBack) -> None:
        """Compare what was predicted with what it has cost; told once for each order."""
        order = self.ledger.away.get(fact.order)
        if order is None or order.attempt == fact.attempt:
            return
        leave_ms = max(0, (order.freed_at_ms or 0) - order.asked_at_ms)
        self._record(
            into,
            Return(
                order=fact.order,
                attempt=fact.attempt,
                at_ms=fact.at_ms,
                predicted_ms=order.return_cost_ms,
                cost_ms=leave_ms + fact.launch_ms + fact.shuffle_ms + fact.skip_ms,
                leave_ms=leave_ms,
                launch_ms=fact.launch_ms,
                shuffle_ms=fact.shuffle_ms,
                skip_ms=fact.skip_ms,
            ),
        )

    def _came_back_without(self, into: Effects, fact: CameBackWithout) -> None:
        """Record that saved work was lost; no later attempt is credited with the return."""
        order = self.ledger.away.get(fact.order)
        if order is None or order.attempt == fact.attempt:
            return
        if not 0 <= fact.generation_found < fact.generation_expected:
            return
        self._record(
            into,
            SavedLost(
                order=fact.order,
                attempt=fact.attempt,
                at_ms=fact.at_ms,
                keys_lost=fact.keys_lost,
                generation_expected=fact.generation_expected,
                generation_found=fact.generation_found,
            ),
        )

    def _application_ended(self, into: Effects, fact: ApplicationEnded) -> None:
        for order in list(self.ledger.of_asker(fact.application)):
            into.add(self.recall(order, "asker-ended", fact.at_ms, f"{fact.application} has ended"))
        for order in list(self.ledger.of_victim(fact.application)):
            self._move(into, order.order, "completed", fact.at_ms, why=f"{fact.application} has ended")
        into.add(self.forget(fact.application, fact.at_ms, "ended"))

    def forget(self, application: str, at_ms: int, why: Absence) -> Effects:
        """Forget an application's attempts, and record it: from now on they are as good as new."""
        into = Effects()
        if self.ledger.remembers(application):
            self._record(into, Forgotten(application=application, at_ms=at_ms, why=why))
        return into

    def _epoch_changed(self, into: Effects, fact: EpochChanged) -> None:
        into.records.append(Epoch(at_ms=fact.at_ms, epoch=fact.epoch))
        for order in list(self.ledger.open.values()):
            into.add(self.recall(order, "epoch-changed", fact.at_ms, "another ResourceManager answers"))

    # --- second thoughts and time-outs ------------------------------------------------------------

    def recall(self, order: Order, event: Event, at_ms: int, why: str) -> Effects:
        """Settle an order that is not wanted any more, and tell its task to go on."""
        into = Effects()
        running = order.state in RECALLABLE and order.verb == "suspend" and not order.observed
        if self._move(into, order.order, event, at_ms, why=why) and running:
            into.actions.append(Withdraw(order.order, order.victim, order.attempt, order.container))
        return into

    def drop_observed(self, now_ms: int) -> Effects:
        """Let go of what an earlier controller only observed, if this one acts: nothing may come of it."""
        into = Effects()
        if self.settings.observe_only:
            return into
        for order in [order for order in self.ledger.open.values() if order.observed]:
            event: Event = "asker-ended" if order.state == "checkpointed" else "not-needed"
            into.add(self.recall(order, event, now_ms, OBSERVED))
        return into

    def repeat(self, now_ms: int) -> Effects:
        """Send again what may not have arrived; a Release also if its effect is long in coming."""
        into = Effects()
        for name, sent in list(self.sent.items()):
            order = self.ledger.open.get(name)
            if isinstance(sent.action, Release):
                over = order is None or order.state != "checkpointed"
                late = now_ms - sent.last_ms >= self.settings.release_repeat_ms
            else:
                over = not sent.unsure or now_ms - sent.first_ms >= self.settings.kill_timeout_ms
                late = False
            if over:
                del self.sent[name]
            elif now_ms > sent.last_ms and (sent.unsure or late):
                self.sent[name] = sent._replace(last_ms=now_ms)
                into.actions.append(sent.action)
        return into

    def time_out(self, now_ms: int) -> Effects:
        """Give up or kill what has shown no progress for too long; stop counting unclaimed room."""
        into = Effects()
        limit = self.settings.kill_timeout_ms
        if self.settings.observe_only:
            return into
        for order in list(self.ledger.open.values()):
            if order.state == "freed":
                if now_ms - (order.freed_at_ms or 0) >= limit:
                    why = unclaimed(limit, waits=self._still_waits(order, now_ms))
                    self._move(into, order.order, "unclaimed", now_ms, why=why)
            elif now_ms - order.progress_at_ms >= limit:
                self._silent(into, order, now_ms, f"no progress for {limit} ms")
        return into

    def _still_waits(self, order: Order, now_ms: int) -> bool:
        """Say whether the asker of freed room was seen to wait lately, and after the room was free."""
        if not self.pending or now_ms - self.pending_at_ms >= self.settings.look_age_max_ms:
            return False
        seen_ms = self.pending_at_ms - (order.freed_at_ms or 0)
        return seen_ms >= self.settings.expire_ms and bool(self.pending.get(order.asker))

    def _silent(self, into: Effects, order: Order, now_ms: int, why: str) -> None:
        names = (order.order, order.victim, order.attempt, order.container)
        if self.settings.on_timeout == "kill":
            if self._move(into, order.order, "kill", now_ms, why=why):
                into.actions.append(Kill(*names))
        elif self._move(into, order.order, "give-up", now_ms, why=why) and order.verb == "suspend":
            into.actions.append(Withdraw(*names))

    def forget_unwanted(self, pending: dict[str, int], now_ms: int, as_of_ms: int) -> Effects:
        """Settle freed entries whose asker has stopped asking without a grant having been seen."""
        into = Effects()
        self.pending_at_ms = as_of_ms
        for order in list(self.ledger.open.values()):
            if order.state != "freed" or pending.get(order.asker):
                continue
            if as_of_ms - (order.freed_at_ms or 0) >= self.settings.expire_ms:
                self._move(into, order.order, "not-needed", now_ms, why="the ask is gone")
        return into

    # --- outcomes ---------------------------------------------------------------------------------

    def outcome(self, action: Action, outcome: Outcome, now_ms: int) -> Effects:
        """Take note of what came of an action; an unknown outcome leaves the order open."""
        into = Effects()
        if isinstance(action, Release | Withdraw):
            self._requested(into, action, outcome, now_ms)
        if not isinstance(action, Suspend | Kill):
            return into
        if isinstance(outcome, Accepted):
            self._move(into, action.order, "accepted", now_ms)
        elif isinstance(outcome, Refused):
            self._move(into, action.order, "refused", now_ms, why=outcome.why)
        elif isinstance(outcome, Withheld) and not self.settings.observe_only:
            self._move(into, action.order, "not-needed", now_ms, why=outcome.why)  # no failure of the attempt
        return into

    def _requested(self, into: Effects, action: Release | Withdraw, outcome: Outcome, now_ms: int) -> None:
        """Remember what must perhaps be sent again.

        A refused Release settles its order at once, unless an earlier one may have arrived: then the
        refusal may only mean that the container is gone already, and a fact will tell.
        """
        before = self.sent.get(action.order)
        if isinstance(outcome, Withheld):
            return
        if not isinstance(outcome, Refused):
            first_ms = now_ms if before is None else before.first_ms
            self.sent[action.order] = Sent(action, first_ms, now_ms, isinstance(outcome, Unknown))
        elif before is not None:
            self.sent[action.order] = before._replace(last_ms=now_ms, unsure=False)
        elif isinstance(action, Release):
            self._move(into, action.order, "refused", now_ms, why=outcome.why)
