"""The controller: one observation in, one step out.

Law: ``step`` reads no clock and does nothing: the step holds the records that explain it, the
actions that the host is to perform after the records are safe, what to look at next, and when.
The same observations give the same steps, byte for byte.

::

    observation -> facts, time-outs        (settlement)   -> transitions, Release / Withdraw / Kill
                -> who needs room          (preemptor)    -> refusals
                -> who gives it            (planning)     -> "show me the tasks of these jobs", or
                -> decisions, orders       (here)         -> Suspend / Kill

Jobs' tasks are looked at only when the job is about to be hit: a step that needs them asks for
them with ``wake_at_ms = now`` and is continued, on the same snapshot, by the next step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from yarnctl.deciding.case import prune
from yarnctl.deciding.echoes import Echoes
from yarnctl.deciding.effects import Effects
from yarnctl.deciding.invariants import History, check
from yarnctl.deciding.leaving import in_leaving_order
from yarnctl.deciding.ledger import Ledger, Order, name_orders
from yarnctl.deciding.lifecycle import RECALLABLE
from yarnctl.deciding.model import (
    Action,
    ApplicationEnded,
    ContainerEnded,
    Kill,
    Observation,
    Outcome,
    Release,
    Scope,
    SetPriority,
    Snapshot,
    Suspend,
    TaskView,
    Withdraw,
)
from yarnctl.deciding.planning import Plan, Planned, Seen, make_plan
from yarnctl.deciding.policies import COMPARED_JOB_POLICIES, JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.preemptor import Demand, Look, demand, is_hurried, pending_count
from yarnctl.deciding.prioritising import Prioritiser
from yarnctl.deciding.records import (
    FORMAT,
    Decision,
    Header,
    Performed,
    Record,
    Refusal,
    Resumed,
    Step,
    Trigger,
)
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.settings import validate as validate_settings
from yarnctl.deciding.settlement import STOPPING, Sent, Settlement
from yarnctl.deciding.surplus import beyond, surplus
from yarnctl.errors import BadInput

ROUNDS_MAX = 8
"""How often one look may ask for tasks of further jobs before it decides without them."""


class Remembered(NamedTuple):
    """What a journal implies at its end; ``due`` are the actions no outcome was written for."""

    ledger: Ledger
    sent: dict[str, Sent]
    decisions: int
    due: tuple[Action, ...]
    now_ms: int


class _Held(msgspec.Struct):
    """A snapshot under decision, and what has been seen of its jobs so far.

    ``silent`` are the jobs that cannot be looked at now; who did not answer stays among them for
    ``silent_ms``, over many looks: one hung master must not keep all others waiting. ``asked`` is what
    the snapshot calls for, found with the ledger ``standing`` so.
    """

    snapshot: Snapshot
    as_of_ms: int
    doubted: Mapping[str, int]
    since_ms: int
    rounds: int
    tasks: dict[str, tuple[TaskView, ...]]
    silent: dict[str, str]
    asked: Demand | None = None
    standing: tuple[object, ...] = ()


def _overtaken(seen: Observation) -> bool:
    """Say whether a container ended while this was looked at: the snapshot may show its room or not.

    It counts as still held, and so perhaps twice: what that hides is found by a look that comes soon.
    """
    return any(isinstance(fact, ContainerEnded) and fact.at_ms > seen.as_of_ms for fact in seen.facts)


class Controller:
    """Decides for one cluster. Raises BadInput for settings that name no policy.

    ``capabilities`` are those of :class:`yarnctl.port.ClusterIdentity`; ``seed`` replaces the
    settings' seed; ``validate`` checks the invariants after every step. ``remembered`` is what an
    earlier controller left in its journal: this one goes on with its orders.
    """

    def __init__(
        self,
        settings: Settings,
        capabilities: frozenset[str] = frozenset(),
        seed: int | None = None,
        *,
        validate: bool = False,
        remembered: Remembered | None = None,
    ) -> None:
        if settings.job_policy not in {**JOB_POLICIES, **COMPARED_JOB_POLICIES}:
            raise BadInput(
                "job_policy", f"no policy {settings.job_policy!r}", f"use one of {', '.join(JOB_POLICIES)}"
            )
        if settings.task_policy not in TASK_POLICIES:
            known = ", ".join(TASK_POLICIES)
            raise BadInput("task_policy", f"no policy {settings.task_policy!r}", f"use one of {known}")
        validate_settings(settings)
        self.settings = settings if seed is None else msgspec.structs.replace(settings, seed=seed)
        self.capabilities = tuple(sorted(capabilities))
        self.ledger = Ledger() if remembered is None else remembered.ledger
        self.ledger.settings = self.settings
        self.decisions = 0 if remembered is None else remembered.decisions
        self._remembered = remembered
        self.scope = self.first_scope()
        self.now_ms = 0 if remembered is None else remembered.now_ms
        self._validate = validate
        self._history = History()
        self._origin_ms: int | None = None
        self._held: _Held | None = None
        self._refused: dict[str, str] = {}
        self._prioritiser = Prioritiser(self.settings)
        self._echoes = Echoes()
        self._look_again = False
        self._silent: dict[str, tuple[int, str]] = {}
        self._settlement = Settlement(self.ledger, self.settings, "releases-itself" in capabilities)
        if remembered is not None:
            self._settlement.sent = remembered.sent

    def first_scope(self) -> Scope:
        """Return what the first observation should show."""
        return self._scope(gate_queues=self._gate())

    def _scope(
        self, *, cluster: bool = True, gate_queues: tuple[str, ...] = (), victims: tuple[str, ...] = ()
    ) -> Scope:
        ledger = self.ledger
        return Scope(cluster, gate_queues, victims, tuple(ledger.open), tuple(ledger.by_asker))

    def _gate(self) -> tuple[str, ...]:
        return self.settings.hurried_queues if self.settings.mode == "queues" else ()

    # --- one step ---------------------------------------------------------------------------------

    def step(self, seen: Observation) -> Step:
        """Take one observation; return records, actions, what to look at next, and when."""
        if self._remembered is not None and seen.now_ms < self.now_ms:
            self._set_back(seen.now_ms)
        now_ms = self.now_ms = max(self.now_ms, seen.now_ms)
        work, effects = self._settlement, Effects()
        if self._origin_ms is None:
            self._origin_ms = now_ms
            effects.records.append(Header(FORMAT, self.settings, self.capabilities, complete=True))
            effects.add(self._resume(now_ms))
        effects.add(work.take(seen.facts))
        for fact in seen.facts:
            if isinstance(fact, ApplicationEnded):
                self._refused.pop(fact.application, None)
        self._look_again = seen.snapshot is not None and _overtaken(seen)
        effects.add(work.time_out(now_ms))
        effects.add(work.repeat(now_ms))
        work.retire(now_ms)
        missing: tuple[str, ...] = ()
        if self._hold(effects, seen):
            missing = self._decide(effects, now_ms)
        step = self._close(effects, missing, now_ms)
        if self._validate:
            check(self, step, self._history)
        return step

    def _set_back(self, now_ms: int) -> None:
        """Go on by a clock that has been set back since the controller before stopped.

        Else no order would time out until the clock had caught up. The time in between is not known, and
        counts as none. Replay does the same by the instant of Resumed.
        """
        self._settlement.set_back(self.now_ms - now_ms)
        self.now_ms = now_ms

    def _resume(self, now_ms: int) -> Effects:
        """Ask again for what may never have been asked, as far as it is still wanted.

        What was written down and not performed may have been sent or not: an order may be delivered
        twice, its effect happens once. A Kill that is this late is not repeated.
        """
        effects = Effects()
        if self._remembered is None:
            return effects
        due, self._remembered = self._remembered.due, None
        fresh_ms = now_ms - self.settings.kill_timeout_ms
        again = tuple(
            action
            for action in due
            if isinstance(action, Withdraw)
            or (
                isinstance(action, Suspend | Release)
                and (order := self.ledger.open.get(action.order)) is not None
                and order.progress_at_ms > fresh_ms
                and (self.settings.observe_only or not order.observed)
            )
        )
        effects.records.append(Resumed(now_ms, tuple(self.ledger.open), again))
        effects.actions.extend(again)
        effects.add(self._settlement.drop_observed(now_ms))
        return effects

    def stop(self, now_ms: int) -> Step:
        """Take back what has not led to a checkpoint: the last step before the host goes away."""
        now_ms = self.now_ms = max(self.now_ms, now_ms)
        effects = Effects()
        for order in list(self.ledger.open.values()):
            if order.state in RECALLABLE:
                effects.add(self._settlement.recall(order, "not-needed", now_ms, STOPPING))
        return Step(tuple(effects.records), tuple(effects.actions), self.scope, now_ms)

    def _hold(self, effects: Effects, seen: Observation) -> bool:
        """Take up a new snapshot, or go on with the one under decision; False: nothing to decide."""
        if seen.snapshot is not None:
            self._take_up(effects, seen.snapshot, seen.as_of_ms)
        elif seen.cluster == "unreachable":
            self._held = None  # who sees nothing changes nothing
        elif self.scope.cluster:
            self._held = None  # the gate shows that nobody hurried waits
            self._refused = {}
            effects.add(self._settle_needless(None, seen.as_of_ms))
        for name in seen.tasks:
            self._silent.pop(name, None)
        held = self._held
        if held is None:
            return False
        held.tasks.update(seen.tasks)
        self._note_silent(held, seen.unreachable, "unreachable")
        if self.now_ms - held.since_ms >= self.settings.look_age_max_ms:
            self._held = None  # the look is too old to decide on
            return False
        return True

    def _take_up(self, effects: Effects, snapshot: Snapshot, as_of_ms: int) -> None:
        """Begin a look: forget what is over, hand back what is not needed, keep YARN's order."""
        settings, now_ms = self.settings, self.now_ms
        if self._refused:
            waiting = {view.application for view in snapshot.applications if view.asks}
            self._refused = {name: why for name, why in self._refused.items() if name in waiting}
        if self.ledger.tries or self.ledger.away:
            alive = {view.application for view in snapshot.applications}
            remembered = [*self.ledger.tries, *(order.victim for order in self.ledger.away.values())]
            for name in dict.fromkeys(remembered):
                if name not in alive:
                    effects.add(self._settlement.forget(name, now_ms, "absent"))
        self._silent = {
            name: kept for name, kept in self._silent.items() if now_ms - kept[0] < settings.silent_ms
        }
        silent = {name: why for name, (_, why) in self._silent.items()}
        hurried = [view for view in snapshot.applications if is_hurried(view, settings)]
        doubted = self._echoes.look(hurried, as_of_ms)
        self._held = _Held(snapshot, as_of_ms, doubted, now_ms, 0, {}, silent)
        if not self._look_again:  # who cannot tell held room from free room takes nothing back
            effects.add(self._settle_needless(snapshot, as_of_ms))
        self._prioritise(effects, snapshot, as_of_ms)

    def _note_silent(self, held: _Held, names: Iterable[str], why: str) -> None:
        """Leave jobs that did not answer alone, in this look and for a while."""
        for name in names:
            held.silent[name] = why
            self._silent[name] = (self.now_ms, why)

    def _close(self, effects: Effects, missing: tuple[str, ...], now_ms: int) -> Step:
        """Say what to look at next, and when: at once, soon while tasks are leaving, or at the next tick."""
        assert self._origin_ms is not None
        tick_ms = self.settings.tick_ms
        next_tick = self._origin_ms + ((now_ms - self._origin_ms) // tick_ms + 1) * tick_ms
        if missing:
            wake = now_ms
            self.scope = self._scope(cluster=False, victims=missing)
        else:
            self._held = None
            # Room that is free waits for YARN, not for us: only who still has to leave is looked at often.
            soon = bool(self.ledger.leaving()) or self._look_again
            wake = min(next_tick, now_ms + self.settings.open_tick_ms) if soon else next_tick
            cluster = wake == next_tick or self._look_again
            self.scope = self._scope(cluster=cluster, gate_queues=self._gate() if cluster else ())
        actions = in_leaving_order(effects.actions, self.ledger, self.settings)
        return Step(tuple(effects.records), actions, self.scope, wake)

    def settle(self, action: Action, outcome: Outcome) -> tuple[Record, ...]:
        """Take note of an action's outcome; return the records that this makes."""
        effects = self._settlement.outcome(action, outcome, self.now_ms)
        if isinstance(action, SetPriority) and not action.back:
            self._prioritiser.settle(action, outcome, self.now_ms)
        return (Performed(self.now_ms, action, outcome), *effects.records)

    def repeating(self, order_id: str) -> Action | None:
        """Return the request for an order that is sent until its effect is seen, if there is one."""
        sent = self._settlement.sent.get(order_id)
        return None if sent is None else sent.action

    # --- before deciding --------------------------------------------------------------------------

    def _settle_needless(self, snapshot: Snapshot | None, as_of_ms: int) -> Effects:
        """Hand back what is not needed any more (no snapshot: nobody hurried waits for anything)."""
        effects, work = Effects(), self._settlement
        work.pending = None
        if not self.settings.model_scheduler or not self.ledger.open:
            return effects
        why = "nobody hurried waits" if snapshot is None else "the asker finds room elsewhere"
        if snapshot is None:
            pending: dict[str, int] = {}
            found = beyond({}, as_of_ms, self.ledger)
        else:
            pending = {view.application: pending_count(view) for view in snapshot.applications}
            found = surplus(Look(snapshot, as_of_ms, self.now_ms), self.ledger, self.settings)
        for order, asker in found.moves:
            effects.add(work.transfer(order, asker, self.now_ms, f"{order.asker} finds room elsewhere"))
        for order in found.needless:
            effects.add(work.recall(order, "not-needed", self.now_ms, why))
        work.pending = pending
        effects.add(work.forget_unwanted(pending, self.now_ms, as_of_ms))
        return effects

    def _prioritise(self, effects: Effects, snapshot: Snapshot, as_of_ms: int) -> None:
        """Natjam-R: keep YARN's priorities in the order of urgency."""
        if self.settings.mode != "deadlines":
            return
        found = self._prioritiser.look(snapshot, as_of_ms, self.now_ms)
        if found is not None:
            ranking, changes = found
            effects.records.append(ranking)
            effects.actions.extend(changes)

    # --- deciding ---------------------------------------------------------------------------------

    def _decide(self, effects: Effects, now_ms: int) -> tuple[str, ...]:
        """Decide on the held snapshot, or return the jobs whose tasks must be seen first."""
        held = self._held
        assert held is not None
        urgent_first = self._prioritiser.urgent_first(held.snapshot)
        look = Look(held.snapshot, held.as_of_ms, now_ms, urgent_first, held.doubted)
        asked = self._asked(held, look)
        while True:
            seen = Seen(held.tasks, held.silent)
            plan = make_plan(asked, look, self.ledger, self.settings, seen, self.decisions + 1)
            if not plan.missing:
                break
            unanswered = [name for name in plan.missing if name in self.scope.victims]
            if held.rounds < ROUNDS_MAX and not unanswered:
                held.rounds += 1
                return plan.missing
            self._note_silent(held, unanswered, "not-observed")
            if not unanswered:  # too many rounds: what has not been asked is no fault of its own
                held.silent.update(dict.fromkeys(plan.missing, "not-observed"))
        self._commit(effects, plan, now_ms)
        self._note_refusals(effects, asked.refused, now_ms)
        return ()

    def _asked(self, held: _Held, look: Look) -> Demand:
        """Return what the held snapshot calls for; found once, as long as the ledger stands as it stood.

        Urgency changes from one instant to the next, so with deadlines it is found each time.
        """
        standing = self.ledger.standing()
        if held.asked is None or held.standing != standing or self.settings.mode != "queues":
            held.asked, held.standing = demand(look, self.ledger, self.settings), standing
        return held.asked

    def _commit(self, effects: Effects, plan: Plan, now_ms: int) -> None:
        """Turn a plan into decisions, orders and actions."""
        for planned in plan.planned:
            trigger, choice = planned.wish.trigger, planned.choice
            if choice.picks:
                self._refused.pop(trigger.application, None)
                effects.records.append(self._order(effects, planned, now_ms))
                continue
            why = "no task may be stopped" if planned.case.jobs else "no job may give"
            if self._refused.get(trigger.application) != why:
                self._refused[trigger.application] = why
                effects.records.append(
                    Refusal(now_ms, trigger, why, choice.refused_jobs, choice.refused_tasks)
                )

    def _order(self, effects: Effects, planned: Planned, now_ms: int) -> Decision:
        """Enter one decision's picks into the ledger and ask for them; return its record."""
        case, choice = planned.case, planned.choice
        self.decisions += 1
        names, groups = name_orders(choice.picks, self.ledger.issued)
        decision = Decision(
            number=self.decisions,
            at_ms=now_ms,
            trigger=planned.wish.trigger,
            case=prune(case, choice),
            orders=names,
            groups=groups,
            picks=choice.picks,
            handed_back=choice.handed_back,
            unmet=choice.unmet,
            refused_jobs=choice.refused_jobs,
            refused_tasks=choice.refused_tasks,
        )
        self.ledger.apply(decision)
        effects.actions += [self._request(self.ledger.open[name]) for name in names]
        return decision

    def _request(self, order: Order) -> Action:
        if order.verb == "kill":
            return Kill(order.order, order.victim, order.attempt, order.container)
        deadline_at_ms = order.asked_at_ms + self.settings.kill_timeout_ms
        return Suspend(
            order.order, order.victim, order.attempt, order.container, order.generation, deadline_at_ms
        )

    def _note_refusals(self, effects: Effects, refused: tuple[tuple[Trigger, str], ...], now_ms: int) -> None:
        """Record triggers that led to nothing when their reason is new."""
        for trigger, why in refused:
            if self._refused.get(trigger.application) != why:
                self._refused[trigger.application] = why
                effects.records.append(Refusal(now_ms, trigger, why))
