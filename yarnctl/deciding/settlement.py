"""The order state machine: how facts, time-outs and withdrawals move the orders.

Only facts and deadlines settle an order. A fact about no order, about a settled order, or about another
attempt or generation has no effect; none can raise. Every move is recorded; every withdrawal is an action
(not suspending is always allowed). A Release is sent again until its effect is observed; so is a Withdraw
with an unknown outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from yarnctl.deciding import model, records
from yarnctl.deciding.ledger import (
    NO_DETAILS,
    Ledger,
    MoveDetails,
    oldest_freed,
    oldest_running,
    remembered_of,
)
from yarnctl.deciding.levers import AwaitedTask
from yarnctl.deciding.lifecycle import RECALLABLE, Event
from yarnctl.deciding.model import Outcome
from yarnctl.deciding.order import Order
from yarnctl.deciding.reasons import orders
from yarnctl.deciding.settings import Settings
from yarnctl.units import Resources, fits


class Effects:
    """Records and actions, in the order in which they were made."""

    __slots__ = ("actions", "records")

    def __init__(self, made: Iterable[records.Record] = (), actions: Iterable[model.Action] = ()) -> None:
        self.records: list[records.Record] = list(made)
        self.actions: list[model.Action] = list(actions)

    def add(self, effects: Effects) -> None:
        """Append later effects."""
        self.records += effects.records
        self.actions += effects.actions

    def __bool__(self) -> bool:
        return bool(self.records or self.actions)


class Settlement:
    """Moves orders; every method that changes something returns the effects.

    ``ended``: the applications that the look whose facts are taken shows ended.
    """

    def __init__(self, ledger: Ledger, settings: Settings, releases_itself: bool) -> None:
        self.ledger = ledger
        self.settings = settings
        self.releases_itself = releases_itself
        self.pending: Mapping[str, int] | None = None
        self.ended: frozenset[str] = frozenset()
        self.pending_at_ms = 0

    def _move(
        self, effects: Effects, order_id: str, event: Event, at_ms: int, details: MoveDetails = NO_DETAILS
    ) -> bool:
        """Apply one event; return whether it changed the order's state."""
        record = self.ledger.happen(order_id, event, at_ms, details)
        if record is not None:
            effects.records.append(record)
        return isinstance(record, records.Transition)

    def _record(self, effects: Effects, record: records.Record) -> None:
        """Apply a record that was made, and add it to the effects."""
        self.ledger.apply(record)
        effects.records.append(record)

    # --- facts ----------------------------------------------------------------------------------

    def take(self, facts: Iterable[model.Fact]) -> Effects:
        """Apply facts in the order in which they were reported."""
        effects = Effects()
        for fact in facts:
            if isinstance(fact, model.ContainerGranted):
                self._granted(effects, fact)
            elif isinstance(fact, model.ContainerEnded):
                effects.add(self._killed_ended(fact.container, fact.ending, fact.at_ms))
                effects.add(self._order_ended(fact))
            elif isinstance(fact, model.ManifestSeen):
                self._manifest(effects, fact)
            elif isinstance(fact, model.UploadProgressed):
                self._move(effects, fact.order, "progress", fact.at_ms)
            elif isinstance(fact, model.CameBack | model.CameBackWithout):
                self._came_back(effects, fact)
            elif isinstance(fact, model.ApplicationEnded):
                self._application_ended(effects, fact)
            else:  # its tasks may live on: only what happens to each of them settles an order
                effects.records.append(records.Epoch(at_ms=fact.at_ms, epoch=fact.epoch))
        return effects

    def _manifest(self, effects: Effects, fact: model.ManifestSeen) -> None:
        """A manifest must name the order's own attempt; an older generation means "unchanged"."""
        order = self.ledger.open.get(fact.order)
        if order is None or order.attempt != fact.attempt or fact.generation > order.generation:
            return
        details = MoveDetails(keys_done=fact.keys_done)
        if self._move(effects, order.order, "manifest", fact.at_ms, details) and not self.releases_itself:
            effects.actions.append(
                model.Release(order.order, order.victim, order.attempt, order.container, fact.generation)
            )

    def _killed_ended(self, container: str, ending: model.Ending, at_ms: int) -> Effects:
        """Record the end of the container of a killed order: it is not expected any more."""
        effects = Effects()
        killed = self.ledger.terminating.get(container)
        if killed is not None:
            ended = records.KilledEnded(order=killed.order, container=container, ending=ending, at_ms=at_ms)
            self._record(effects, ended)
        return effects

    def _order_ended(self, fact: model.ContainerEnded) -> Effects:
        """Move the open order whose container has ended, if there is one."""
        effects = Effects()
        order_id = self.ledger.by_container.get(fact.container)
        details = MoveDetails(orders.ContainerHasEnded(fact.ending))
        if order_id is None:
            bound = self.ledger.open.get(fact.order)
            if bound is None or (bound.verb, bound.victim) != ("drain", fact.application):
                return effects
            order_id, details = fact.order, details._replace(left=fact.container, left_node=fact.node)
        order = self.ledger.open[order_id]
        event: Event = "ended-otherwise"
        if fact.ending == "completed":
            event = "completed"
        elif fact.ending == "suspended" or (
            fact.ending == "killed"
            and ((order.verb == "kill" and not order.observed) or order.state == "checkpointed")
        ):
            event = "ended-as-ordered"
        self._move(effects, order_id, event, fact.at_ms, details)
        return effects

    def _granted(self, effects: Effects, fact: model.ContainerGranted) -> None:
        """Settle the entry that this grant answers (section 3.2: it is removed from the job's list).

        Rooms of one size are interchangeable, but an order must last until its task's end. When a requester
        is given the container freed for another while an order of its own is still running, that order is
        transferred to the other's list; without one, the other has lost its container and requests it again
        (:meth:`_is_taken`).
        """
        requester, size = fact.application, fact.size
        here = [self.ledger.open[name] for name in self.ledger.freed_on.get(fact.node, ())]
        here = [order for order in here if order.serves and (order.freed_at_ms or 0) <= fact.at_ms]
        own = [order for order in here if order.requester == requester and order.request_size == size]
        if own:
            self._answer(effects, own[0], "granted", fact)
            return
        others = [order for order in here if order.requester != requester]
        others = [order for order in others if order.request_size == size] or others
        elsewhere = oldest_freed(self.ledger, requester, size)
        if not others:
            if elsewhere is not None:
                self._answer(effects, elsewhere, "granted", fact)
            return
        given = others[0]
        mine = elsewhere or oldest_running(self.ledger, requester, size)
        if mine is None or given.request_size != size:
            if self._is_taken(given, size):
                self._answer(effects, given, "misdirected", fact)
        else:
            self._answer(effects, given, "granted", fact)
            effects.add(
                self.transfer(mine, given.requester, fact.at_ms, orders.GivenRoomOf(requester, given.order))
            )

    def _is_taken(self, order: Order, size: Resources) -> bool:
        """Return whether a grant of ``size`` to another application, on the order's node, used its container.

        YARN does not report where on a node a container was placed. A grant smaller than the container
        that ended leaves a container, or had another one: the order stays, until its requester is given a
        container, has no pending request, or the time is out. Without pending requests nothing is lost, nor
        if the requester has ended by this look: others receive what it no longer holds.
        """
        if order.requester in self.ended:
            return False
        if self.pending is not None and not self.pending.get(order.requester):
            return False
        return fits(order.size, size)

    def _answer(self, effects: Effects, order: Order, event: Event, fact: model.ContainerGranted) -> None:
        """Settle an order, and those of its group that are freed, as granted or misdirected."""
        for mate in self.ledger.group_of(order):
            why = None if mate.order == order.order else orders.WithOrder(order.order)
            details = MoveDetails(why, fact.container, fact.application)
            self._move(effects, mate.order, event, fact.at_ms, details)

    def transfer(self, order: Order, requester: str, at_ms: int, why: orders.MoveReason) -> Effects:
        """Make an order, with its group, over to another application."""
        effects = Effects()
        for mate in self.ledger.group_of(order):
            passed_on = records.Transfer(
                order=mate.order, source=mate.requester, target=requester, at_ms=at_ms, why=why
            )
            self._record(effects, passed_on)
        return effects

    def _came_back(self, effects: Effects, fact: model.CameBack | model.CameBackWithout) -> None:
        """Record that a suspended task runs again, with its saved work or without; once for each order."""
        order = self.ledger.suspended.get(fact.order)
        if order is None or order.attempt == fact.attempt:
            return
        if isinstance(fact, model.CameBack):
            leave_ms = max(0, (order.freed_at_ms or 0) - order.ordered_at_ms)
            self._record(
                effects,
                records.Return(
                    order=fact.order,
                    attempt=fact.attempt,
                    at_ms=fact.at_ms,
                    predicted_ms=order.resume_cost_ms,
                    cost_ms=leave_ms + fact.launch_ms + fact.shuffle_ms + fact.skip_ms,
                    leave_ms=leave_ms,
                    launch_ms=fact.launch_ms,
                    shuffle_ms=fact.shuffle_ms,
                    skip_ms=fact.skip_ms,
                ),
            )
        elif 0 <= fact.generation_found < fact.generation_expected:  # no later attempt is the resumption
            self._record(effects, msgspec.convert(fact, records.SavedLost, from_attributes=True))

    def _application_ended(self, effects: Effects, fact: model.ApplicationEnded) -> None:
        why = orders.ApplicationHasEnded(fact.application)
        for order in list(self.ledger.of_requester(fact.application)):
            effects.add(self.recall(order, "requester-ended", fact.at_ms, why))
        for order in list(self.ledger.of_victim(fact.application)):
            self._move(effects, order.order, "completed", fact.at_ms, MoveDetails(why))
        effects.add(self.forget(fact.application, fact.at_ms, "ended"))

    def forget(self, application: str, at_ms: int, why: records.Absence) -> Effects:
        """Drop an application's attempts, and record it: from now on they count as new."""
        effects = Effects()
        if application in remembered_of(self.ledger):
            self._record(effects, records.UnknownApplication(application=application, at_ms=at_ms, why=why))
        return effects

    # --- withdrawals and time-outs ----------------------------------------------------------------

    def recall(self, order: Order, event: Event, at_ms: int, why: orders.MoveReason) -> Effects:
        """Settle an order that is not needed any more, and withdraw its suspend request."""
        effects = Effects()
        running = order.state in RECALLABLE and order.verb == "suspend" and not order.observed
        if self._move(effects, order.order, event, at_ms, MoveDetails(why)) and running:
            effects.actions.append(model.Withdraw(order.order, order.victim, order.attempt, order.container))
        return effects

    def wait_for(self, requester: str, tasks: Iterable[AwaitedTask], now_ms: int) -> Effects:
        """Record the tasks whose ends are awaited on behalf of ``requester``, each once."""
        effects, known = Effects(), self.ledger.awaited.until_ms
        fresh = tuple(task for task in tasks if task.lever.unit not in known)
        if fresh:
            self._record(effects, records.Awaited(now_ms, requester, fresh))
        return effects

    def drop_observed(self, now_ms: int) -> Effects:
        """Drop the orders of an earlier controller that only observed, if this one acts."""
        effects = Effects()
        if self.settings.observe_only:
            return effects
        for order in [order for order in self.ledger.open.values() if order.observed]:
            event: Event = "requester-ended" if order.state == "checkpointed" else "not-needed"
            effects.add(self.recall(order, event, now_ms, orders.OnlyObserved()))
        return effects

    def repeat(self, now_ms: int) -> Effects:
        """Send again what may not have arrived; a Release also if its effect is long overdue."""
        effects = Effects()
        for sent in self.ledger.sent.values():
            late = isinstance(sent.action, model.Release) and (
                now_ms - sent.last_ms >= self.settings.release_repeat_ms
            )
            if now_ms > sent.last_ms and (sent.unsure or late) and not self.ledger.is_over(sent, now_ms):
                effects.actions.append(sent.action)
        return effects

    def time_out(self, now_ms: int) -> Effects:
        """Give up or kill orders without progress for too long; stop counting unclaimed containers."""
        if self.settings.observe_only:
            return self._simulate(now_ms)
        effects = Effects()
        limit = self.settings.kill_timeout_ms
        for order in list(self.ledger.open.values()):
            if order.state == "freed":
                if now_ms - (order.freed_at_ms or 0) >= limit:
                    why = orders.Unclaimed(limit, self._still_waits(order, now_ms))
                    self._move(effects, order.order, "unclaimed", now_ms, MoveDetails(why))
            elif now_ms - order.progress_at_ms >= order.limit_ms(self.settings):
                self._silent(effects, order, now_ms, orders.NoProgress(order.limit_ms(self.settings)))
        return effects

    def _simulate(self, now_ms: int) -> Effects:
        """Assume that the orders whose predicted time has passed were carried out; groups end together."""
        effects, ledger = Effects(), self.ledger
        for order in list(ledger.open.values()):
            if order.state != "ordered" or not order.observed:
                continue
            # None is left if this one has become simulated with an earlier one of its group.
            running = [mate for mate in ledger.group_of(order) if mate.state == "ordered"]
            if all(mate.ordered_at_ms + mate.predicted_ms(self.settings) <= now_ms for mate in running):
                for mate in running:
                    why = orders.WouldBeFree(now_ms - mate.ordered_at_ms)
                    self._move(effects, mate.order, "simulated", now_ms, MoveDetails(why))
        return effects

    def _still_waits(self, order: Order, now_ms: int) -> bool:
        """Return whether the requester had pending requests lately, and after the containers were free."""
        if not self.pending or now_ms - self.pending_at_ms >= self.settings.look_age_max_ms:
            return False
        seen_ms = self.pending_at_ms - (order.freed_at_ms or 0)
        return seen_ms >= self.settings.expire_ms and bool(self.pending.get(order.requester))

    def _silent(self, effects: Effects, order: Order, now_ms: int, why: orders.MoveReason) -> None:
        details = MoveDetails(why)
        if self.settings.on_timeout == "kill" and order.verb != "drain":
            if self._move(effects, order.order, "kill", now_ms, details):
                effects.actions.append(model.Kill(order.order, order.victim, order.attempt, order.container))
        elif self._move(effects, order.order, "give-up", now_ms, details) and order.verb == "suspend":
            effects.actions.append(model.Withdraw(order.order, order.victim, order.attempt, order.container))

    def forget_unwanted(self, pending: dict[str, int], now_ms: int, as_of_ms: int) -> Effects:
        """Settle freed entries whose requester has no pending requests, without an observed grant."""
        effects = Effects()
        self.pending_at_ms = as_of_ms
        for order in list(self.ledger.open.values()):
            if order.state != "freed" or pending.get(order.requester):
                continue
            if as_of_ms - (order.freed_at_ms or 0) >= self.settings.expire_ms:
                self._move(effects, order.order, "not-needed", now_ms, MoveDetails(orders.RequestGone()))
        return effects

    # --- outcomes ---------------------------------------------------------------------------------

    def outcome(self, action: model.Action, outcome: Outcome, now_ms: int) -> Effects:
        """Apply an action's outcome; an unknown outcome leaves the order open.

        A refused Release settles its order at once, unless an earlier one may have arrived: then the
        refusal may only mean that the container is gone already, and a fact will settle the order.
        """
        effects = Effects()
        self._record(effects, records.performed(now_ms, action, outcome))
        if isinstance(action, model.Release) and isinstance(outcome, model.Refused):
            if action.order not in self.ledger.sent:
                self._move(effects, action.order, "refused", now_ms, MoveDetails(outcome.why))
        elif isinstance(action, model.Suspend | model.Kill | model.Drain):
            if isinstance(outcome, model.Accepted):
                self._move(effects, action.order, "accepted", now_ms)
            elif isinstance(outcome, model.Refused):
                self._move(effects, action.order, "refused", now_ms, MoveDetails(outcome.why))
            elif isinstance(outcome, model.Withheld) and not self.settings.observe_only:
                # no failure of the attempt
                self._move(effects, action.order, "not-needed", now_ms, MoveDetails(outcome.why))
        return effects


def asked_again(ledger: Ledger, settings: Settings, now_ms: int) -> tuple[model.Action, ...]:
    """Return the requests that may never have been sent, as far as they are still wanted.

    What was written down and not performed may have been sent or not: an order may be delivered
    twice, its effect happens once. A Kill that is this late is not repeated.
    """
    fresh_ms = now_ms - settings.kill_timeout_ms
    return tuple(
        action
        for action in ledger.due
        if isinstance(action, model.Withdraw)
        or (
            isinstance(action, model.Suspend | model.Release)
            and (order := ledger.open.get(action.order)) is not None
            and order.progress_at_ms > fresh_ms
            and (settings.observe_only or not order.observed)
        )
    )
