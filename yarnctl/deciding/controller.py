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

import msgspec

from yarnctl.deciding.case import prune
from yarnctl.deciding.deadlines import in_order, priorities
from yarnctl.deciding.invariants import History, check
from yarnctl.deciding.ledger import Ledger, Order, name_orders
from yarnctl.deciding.model import (
    Action,
    Kill,
    Observation,
    Outcome,
    Scope,
    SetPriority,
    Snapshot,
    Suspend,
    TaskView,
)
from yarnctl.deciding.planning import Plan, Planned, Seen, make_plan
from yarnctl.deciding.policies import JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.preemptor import Look, demand, pending_count
from yarnctl.deciding.records import FORMAT, Decision, Header, Performed, Record, Refusal, Trigger
from yarnctl.deciding.releaser import is_killed
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.settlement import Settlement
from yarnctl.deciding.surplus import beyond, surplus
from yarnctl.errors import BadInput

ROUNDS_MAX = 8
"""How often one look may ask for tasks of further jobs before it decides without them."""


class Step(msgspec.Struct, frozen=True):
    """What one observation leads to. ``wake_at_ms`` equal to now: step again at once."""

    records: tuple[Record, ...]
    actions: tuple[Action, ...]
    scope: Scope
    wake_at_ms: int


class _Held(msgspec.Struct):
    """A snapshot under decision, and what has been seen of its jobs so far."""

    snapshot: Snapshot
    as_of_ms: int
    since_ms: int
    rounds: int
    tasks: dict[str, tuple[TaskView, ...]]
    silent: dict[str, str]


class Controller:
    """Decides for one cluster. Raises BadInput for settings that name no policy.

    ``capabilities`` are those of :class:`yarnctl.port.ClusterIdentity`; ``seed`` replaces the
    settings' seed; ``validate`` checks the invariants after every step.
    """

    def __init__(
        self,
        settings: Settings,
        capabilities: frozenset[str] = frozenset(),
        seed: int | None = None,
        *,
        validate: bool = False,
    ) -> None:
        if settings.job_policy not in JOB_POLICIES:
            raise BadInput(
                "job_policy", f"no policy {settings.job_policy!r}", f"use one of {', '.join(JOB_POLICIES)}"
            )
        if settings.task_policy not in TASK_POLICIES:
            known = ", ".join(TASK_POLICIES)
            raise BadInput("task_policy", f"no policy {settings.task_policy!r}", f"use one of {known}")
        self.settings = settings if seed is None else msgspec.structs.replace(settings, seed=seed)
        self.capabilities = tuple(sorted(capabilities))
        self.ledger = Ledger()
        self.decisions = 0
        self.scope = self.first_scope()
        self.now_ms = 0
        self._validate = validate
        self._history = History()
        self._origin_ms: int | None = None
        self._held: _Held | None = None
        self._refused: dict[str, str] = {}
        self._urgent_first: list[str] = []
        self._priorities_sent: dict[str, int] = {}
        self._settlement = Settlement(self.ledger, self.settings, "releases-itself" in capabilities)

    def first_scope(self) -> Scope:
        """Return what the first observation should show."""
        return Scope(cluster=True, gate_queues=self._gate())

    def _gate(self) -> tuple[str, ...]:
        return self.settings.hurried_queues if self.settings.mode == "queues" else ()

    # --- one step ---------------------------------------------------------------------------------

    def step(self, seen: Observation) -> Step:
        """Take one observation; return records, actions, what to look at next, and when."""
        now_ms = self.now_ms = max(self.now_ms, seen.now_ms)
        work = self._settlement
        work.records, work.actions = [], []
        if self._origin_ms is None:
            self._origin_ms = now_ms
            work.records.append(Header(FORMAT, self.settings, self.capabilities))
        work.take(seen.facts)
        work.time_out(now_ms)
        self.ledger.retire(now_ms, self.settings.expire_ms, self.settings.kill_timeout_ms)
        missing: tuple[str, ...] = ()
        if self._hold(seen):
            missing = self._decide(now_ms)
        step = self._close(missing, now_ms)
        if self._validate:
            check(self, step, self._history)
        return step

    def _hold(self, seen: Observation) -> bool:
        """Take up a new snapshot, or go on with the one under decision; False: nothing to decide."""
        if seen.snapshot is not None:
            self._held = _Held(seen.snapshot, seen.as_of_ms, self.now_ms, 0, {}, {})
            self._settle_needless(seen.snapshot, seen.as_of_ms)
            self._prioritise(seen.snapshot)
        elif self.scope.cluster:
            self._held = None  # the gate shows that nobody hurried waits
            self._settle_needless(None, seen.as_of_ms)
        held = self._held
        if held is None:
            return False
        if self.now_ms - held.since_ms >= self.settings.tick_ms:
            self._held = None  # the look is too old to decide on
            return False
        held.tasks.update(seen.tasks)
        held.silent.update(dict.fromkeys(seen.unreachable, "unreachable"))
        return True

    def _close(self, missing: tuple[str, ...], now_ms: int) -> Step:
        """Say what to look at next, and when: at once, soon while orders are open, or at the next tick."""
        assert self._origin_ms is not None
        tick_ms = self.settings.tick_ms
        next_tick = self._origin_ms + ((now_ms - self._origin_ms) // tick_ms + 1) * tick_ms
        orders = tuple(self.ledger.open)
        if missing:
            wake = now_ms
            self.scope = Scope(cluster=False, victims=missing, orders=orders)
        else:
            self._held = None
            wake = min(next_tick, now_ms + self.settings.open_tick_ms) if orders else next_tick
            cluster = wake == next_tick
            self.scope = Scope(cluster=cluster, gate_queues=self._gate() if cluster else (), orders=orders)
        work = self._settlement
        return Step(tuple(work.records), tuple(work.actions), self.scope, wake)

    def settle(self, action: Action, outcome: Outcome) -> tuple[Record, ...]:
        """Take note of an action's outcome; return the records that this makes."""
        work = self._settlement
        work.records, work.actions = [Performed(self.now_ms, action, outcome)], []
        work.outcome(action, outcome, self.now_ms)
        if isinstance(action, SetPriority):
            self._priorities_sent[action.application] = action.priority
        return tuple(work.records)

    # --- before deciding --------------------------------------------------------------------------

    def _settle_needless(self, snapshot: Snapshot | None, as_of_ms: int) -> None:
        """Hand back what is not needed any more (no snapshot: nobody hurried waits for anything)."""
        if not self.settings.model_scheduler or not self.ledger.open:
            return
        if snapshot is None:
            pending: dict[str, int] = {}
            found = beyond({}, as_of_ms, self.ledger)
        else:
            pending = {view.application: pending_count(view) for view in snapshot.applications}
            found = surplus(Look(snapshot, as_of_ms, self.now_ms), self.ledger, self.settings)
        for order, asker in found.moves:
            self._settlement.transfer(order, asker, self.now_ms, f"{order.asker} finds room elsewhere")
        for order in found.needless:
            self._settlement.recall(order, "not-needed", self.now_ms, "the asker finds room elsewhere")
        self._settlement.forget_unwanted(pending, self.now_ms, as_of_ms)

    def _prioritise(self, snapshot: Snapshot) -> None:
        """Natjam-R: keep YARN's priorities in the order of urgency."""
        if self.settings.mode != "deadlines":
            return
        ordered = in_order(snapshot.applications, self.now_ms, self.settings, self._urgent_first)
        self._urgent_first = [view.application for view in ordered]
        alive = dict.fromkeys(self._urgent_first)
        self._priorities_sent = {
            view.application: self._priorities_sent[view.application]
            for view in snapshot.applications
            if view.application in alive and view.application in self._priorities_sent
        }
        self._settlement.actions.extend(priorities(ordered, self._priorities_sent, self.settings))

    # --- deciding ---------------------------------------------------------------------------------

    def _decide(self, now_ms: int) -> tuple[str, ...]:
        """Decide on the held snapshot, or return the jobs whose tasks must be seen first."""
        held = self._held
        assert held is not None
        by_name = {view.application: view for view in held.snapshot.applications}
        urgent = tuple(by_name[name] for name in self._urgent_first if name in by_name)
        look = Look(held.snapshot, held.as_of_ms, now_ms, urgent)
        asked = demand(look, self.ledger, self.settings)
        while True:
            seen = Seen(held.tasks, held.silent)
            plan = make_plan(asked, look, self.ledger, self.settings, seen, self.decisions + 1)
            if not plan.missing:
                break
            unanswered = [name for name in plan.missing if name in self.scope.victims]
            if held.rounds < ROUNDS_MAX and not unanswered:
                held.rounds += 1
                return plan.missing
            held.silent.update(dict.fromkeys(unanswered or plan.missing, "not-observed"))
        self._commit(plan, now_ms)
        self._note_refusals(asked.refused, now_ms)
        return ()

    def _commit(self, plan: Plan, now_ms: int) -> None:
        """Turn a plan into decisions, orders and actions."""
        for planned in plan.planned:
            trigger, choice = planned.wish.trigger, planned.choice
            if choice.picks:
                self._refused.pop(trigger.application, None)
                self._settlement.records.append(self._order(planned, now_ms))
                continue
            why = "no task may be stopped" if planned.case.jobs else "no job may give"
            if self._refused.get(trigger.application) != why:
                self._refused[trigger.application] = why
                self._settlement.records.append(
                    Refusal(now_ms, trigger, why, choice.refused_jobs, choice.refused_tasks)
                )

    def _order(self, planned: Planned, now_ms: int) -> Decision:
        """Enter one decision's picks into the ledger and ask for them; return its record."""
        wish, case, choice = planned
        self.decisions += 1
        names, groups = name_orders(choice.picks, self.ledger.issued)
        for pick, name, group in zip(choice.picks, names, groups, strict=True):
            task = pick.task
            order = Order(
                order=name,
                asker=wish.application.application,
                victim=pick.application,
                attempt=task.attempt,
                container=task.container,
                node=task.node,
                size=task.size,
                ask=pick.ask,
                serves=pick.serves,
                group=group,
                generation=task.generation + 1,
                verb="kill" if is_killed(task, self.settings) else "suspend",
                decision=self.decisions,
                asked_at_ms=now_ms,
                progress_at_ms=now_ms,
            )
            self.ledger.add(order)
            self._settlement.actions.append(self._request(order))
        return Decision(
            number=self.decisions,
            at_ms=now_ms,
            trigger=wish.trigger,
            case=prune(case, choice),
            orders=names,
            groups=groups,
            picks=choice.picks,
            handed_back=choice.handed_back,
            unmet=choice.unmet,
            refused_jobs=choice.refused_jobs,
            refused_tasks=choice.refused_tasks,
        )

    def _request(self, order: Order) -> Action:
        if order.verb == "kill":
            return Kill(order.order, order.victim, order.attempt, order.container)
        deadline_at_ms = order.asked_at_ms + self.settings.kill_timeout_ms
        return Suspend(
            order.order, order.victim, order.attempt, order.container, order.generation, deadline_at_ms
        )

    def _note_refusals(self, refused: tuple[tuple[Trigger, str], ...], now_ms: int) -> None:
        """Record triggers that led to nothing when their reason is new."""
        for trigger, why in refused:
            if self._refused.get(trigger.application) != why:
                self._refused[trigger.application] = why
                self._settlement.records.append(Refusal(now_ms, trigger, why))
