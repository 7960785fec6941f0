"""The controller: one observation in, one step out.

``step`` reads no clock and has no effect. A step has the records that explain it, the actions that the host
performs after the records are safe, the next observation request, and its time. The same observations give
the same steps, byte for byte::

    observation -> facts, time-outs        (settlement)   -> transitions, Release / Withdraw / Kill
                -> shortfalls              (preemptor)    -> refusals
                -> victims                 (planning)     -> a request for the tasks of these jobs, or
                -> decisions, orders       (here)         -> Suspend / Kill

The tasks of a job are observed only when it is a likely victim: a step that needs them requests them with
``wake_at_ms = now`` and is continued, on the same snapshot, by the next step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import NamedTuple

import msgspec

from yarnctl.deciding import records
from yarnctl.deciding.governor import LACKING
from yarnctl.deciding.inputs import Cluster, InputLog, InputReader, Observed
from yarnctl.deciding.invariants import History, check
from yarnctl.deciding.ledger import Ledger, fingerprint_of, remembered_of
from yarnctl.deciding.lifecycle import RECALLABLE
from yarnctl.deciding.looks import Looks
from yarnctl.deciding.model import (
    Action,
    ApplicationEnded,
    ApplicationView,
    ContainerEnded,
    Fact,
    Grow,
    HeldTime,
    JobConsent,
    Observation,
    ObservationRequest,
    OrderAction,
    Outcome,
    SetPriority,
    Snapshot,
    TaskView,
)
from yarnctl.deciding.order import name_orders, requested
from yarnctl.deciding.partitions import merged
from yarnctl.deciding.planning import (
    ObservedTasks,
    Plan,
    Planned,
    decision_of,
    in_suspend_order,
    make_plan,
    settle_needless,
)
from yarnctl.deciding.policies import COMPARED_JOB_POLICIES, JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.preemptor import ClusterDemand, DemandInput, demand, is_preempting
from yarnctl.deciding.reasons.orders import Stopping
from yarnctl.deciding.records import Record
from yarnctl.deciding.regrowing import GROW_AFTER_MS, GROW_UNSERVED_AFTER_MS
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.settings import validate as validate_settings
from yarnctl.deciding.settlement import Effects, Settlement, asked_again
from yarnctl.deciding.simulating import SimulatedSnapshot, end_overtaken, simulate
from yarnctl.deciding.waiting_verdicts import WaitingVerdict, verdicts_of, why_none
from yarnctl.errors import BadInput

ROUNDS_MAX = 8
"""How often one decision may request tasks of further jobs before it is made without them."""


class Remembered(NamedTuple):
    """What a journal leaves: its ledger, and the instant of its last step."""

    ledger: Ledger
    now_ms: int


class _Deferred(msgspec.Struct):
    """A snapshot under decision, and the observed tasks of its jobs so far.

    ``simulated``: the snapshot as it would be if the orders of an observing controller had been sent.
    ``demand`` is that of the snapshot, computed at one fingerprint of the ledger. Jobs that did not
    answer are kept for some time, over many snapshots: one hung master must not delay all other decisions.
    """

    snapshot: Snapshot
    simulated: SimulatedSnapshot
    as_of_ms: int
    stale: Mapping[str, int]
    since_ms: int
    rounds: int
    tasks: dict[str, tuple[TaskView, ...]]
    unanswered: dict[str, Reason]
    demand: ClusterDemand | None = None
    open_orders: tuple[object, ...] = ()
    held: tuple[HeldTime, ...] = ()
    consents: tuple[JobConsent, ...] = ()
    group_ms: dict[str, int] = {}
    bound_ms: dict[str, int] = {}


def _merged(before: tuple[TaskView, ...], now: tuple[TaskView, ...]) -> tuple[TaskView, ...]:
    """Return a job's tasks, updated by what was observed later for the same snapshot."""
    if not before:
        return now
    return tuple(({task.attempt: task for task in before} | {task.attempt: task for task in now}).values())


def _overtaken(observation: Observation) -> bool:
    """Return whether a container ended during the observation: the snapshot may show it or not.

    It counts as still used, and so perhaps twice: an early next observation corrects this.
    """
    return any(
        isinstance(fact, ContainerEnded) and fact.at_ms > observation.as_of_ms for fact in observation.facts
    )


def _seen_as(observation: Observation, request: ObservationRequest) -> Cluster:
    """Return how the cluster was observed, given this request."""
    if observation.snapshot is not None:
        return "seen"
    if observation.cluster == "unreachable":
        return "unreachable"
    return "quiet" if request.cluster else "not-requested"


def _take(
    effects: Effects, observation: Observation, settlement: Settlement, looks: Looks
) -> tuple[Fact, ...]:
    """Apply the facts; return those that changed something, or note those the snapshot does not show yet."""
    kept = []
    settlement.ended = frozenset(
        each.application for each in observation.facts if isinstance(each, ApplicationEnded)
    )
    for fact in observation.facts:
        made = settlement.take((fact,))
        effects.add(made)
        newer = isinstance(fact, ContainerEnded) and fact.at_ms > observation.as_of_ms
        forgets = isinstance(fact, ApplicationEnded) and fact.application in looks.refused
        if made or newer or forgets:
            kept.append(fact)
    for fact in observation.facts:
        if isinstance(fact, ApplicationEnded):
            looks.refused.pop(fact.application, None)
    return tuple(kept)


def regrow(ledger: Ledger, now_ms: int, waits: bool) -> list[Grow]:
    """Return the requests to applications whose executors left; ``waits``: production does, or may.

    A request that brings no order, or a cluster that is not seen, keeps nothing small for long.
    """
    if not ledger.regrowing.shrunk or (waits and ledger.open):
        return []
    after_ms = GROW_UNSERVED_AFTER_MS if waits else GROW_AFTER_MS
    return ledger.regrowing.due(now_ms, ledger.by_victim, after_ms)


def _require_policies(settings: Settings) -> None:
    if settings.job_policy not in {**JOB_POLICIES, **COMPARED_JOB_POLICIES}:
        raise BadInput(
            "job_policy", f"no policy {settings.job_policy!r}", f"use one of {', '.join(JOB_POLICIES)}"
        )
    if settings.task_policy not in TASK_POLICIES:
        known = ", ".join(TASK_POLICIES)
        raise BadInput("task_policy", f"no policy {settings.task_policy!r}", f"use one of {known}")


class Controller:
    """Decides for one cluster. Raises BadInput for settings that name no policy.

    ``capabilities`` are those of :class:`yarnctl.loop.ClusterIdentity`; ``seed`` replaces the
    settings' seed; ``validate`` checks the invariants after every step. ``remembered`` is what an
    earlier controller left in its journal: this one continues its orders. ``verdicts``: what the newest
    decision found for each application that waits (:mod:`yarnctl.deciding.waiting_verdicts`).
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
        _require_policies(settings)
        validate_settings(settings)
        self.settings = settings if seed is None else msgspec.structs.replace(settings, seed=seed)
        self.capabilities = tuple(sorted(capabilities))
        self.ledger = Ledger() if remembered is None else remembered.ledger
        if remembered is not None:
            self.ledger.retire(remembered.now_ms)  # the last step applied time-outs after its facts
        self.ledger.settings = self.settings
        self._remembered = remembered
        self._again: tuple[Action, ...] = ()
        self.to_observe = self._request(gate_queues=self._probe())
        self.now_ms = 0 if remembered is None else remembered.now_ms
        self._validate = validate
        self._history = History()
        self._origin_ms: int | None = None
        self._deferred: _Deferred | None = None
        self._observe_again = False
        self._inputs = InputLog(self.settings)
        self._orders = Settlement(self.ledger, self.settings, "releases-itself" in capabilities)
        self._looks = Looks(self.settings, self._orders)
        self.verdicts: Mapping[str, WaitingVerdict] = {}

    def copy(self) -> Controller:
        """Return a controller in the same state, which shares nothing that changes.

        It begins with a snapshot of its own, and its inputs are written whole.
        """
        left_out = {id(self._inputs): InputLog(self.settings), id(self.verdicts): {}}
        if self._deferred is not None:
            left_out[id(self._deferred)] = None
        return deepcopy(self, left_out)

    def _request(
        self, *, cluster: bool = True, gate_queues: tuple[str, ...] = (), victims: tuple[str, ...] = ()
    ) -> ObservationRequest:
        ledger = self.ledger
        return ObservationRequest(
            cluster, gate_queues, victims, tuple(ledger.open), tuple(ledger.by_requester)
        )

    def _probe(self) -> tuple[str, ...]:
        return self.settings.preempting_queues if self.settings.mode != "deadlines" else ()

    # --- one step ---------------------------------------------------------------------------------

    def step(self, observation: Observation) -> records.Step:
        """Process one observation; return records, actions, the next observation request, and its time."""
        if self._remembered is not None and observation.now_ms < self.now_ms:
            self.ledger.set_back(self.now_ms - observation.now_ms)
            self.now_ms = observation.now_ms
        since_ms, memory = self.now_ms, self._looks.left() if self._inputs.left_out else None
        cluster = _seen_as(observation, self.to_observe)
        changed = cluster == "quiet" and self._looks.remembers
        now_ms = self.now_ms = max(self.now_ms, observation.now_ms)
        observed = Observed(
            at_ms=now_ms,
            cluster=cluster,
            since_ms=since_ms,
            as_of_ms=None if observation.as_of_ms == now_ms else observation.as_of_ms,
            unreachable=observation.unreachable,
            late=observation.late,
            memory=memory,
        )
        effects = Effects()
        opening = self._open(effects, now_ms)
        facts = _take(effects, observation, self._orders, self._looks)
        missing = self._observe(effects, observation, cluster)
        of_tasks = self._deferred or observation
        shown, group_ms, bound_ms = of_tasks.tasks, of_tasks.group_ms, of_tasks.bound_ms
        step = self._close(effects, missing, now_ms)
        tasks = self._inputs.tasks(shown, observation.tasks)
        written = [task.attempt for each in tasks.values() for task in each]
        observed = msgspec.structs.replace(
            observed,
            facts=facts,
            tasks=tasks,
            group_ms={name: group_ms[name] for name in written if name in group_ms},
            bound_ms={name: bound_ms[name] for name in written if name in bound_ms},
        )
        led = bool(opening or step.records or step.actions)
        inputs = self._inputs.close(observed, observation, led=led, goes_on=bool(missing), changed=changed)
        step = self._written(step, opening, inputs)
        if self._validate:
            check(self, step, self._history)
        return step

    def _open(self, effects: Effects, now_ms: int) -> tuple[Record, ...]:
        """Begin: return the first records, and repeat the requests that may never have been sent."""
        if self._origin_ms is not None:
            return ()
        self._origin_ms = now_ms
        header = records.Header(records.FORMAT, self.settings, self.capabilities)
        if self._remembered is None:
            return (header,)
        self._remembered = None
        self._again = asked_again(self.ledger, self.settings, now_ms)
        effects.actions += self._again
        effects.add(self._orders.drop_observed(now_ms))
        return header, records.Resumed(now_ms)

    def _observe(self, effects: Effects, observation: Observation, cluster: Cluster) -> tuple[str, ...]:
        """Apply time-outs, then decide if there is a snapshot; return the jobs whose tasks are needed."""
        work, now_ms = self._orders, self.now_ms
        self._observe_again = observation.snapshot is not None and _overtaken(observation)
        effects.add(work.time_out(now_ms))
        effects.add(work.repeat(now_ms))
        self._looks.note_in_vain(effects.records)
        self.ledger.retire(now_ms)
        return self._decide(effects, now_ms) if self._defer(effects, observation, cluster) else ()

    def _written(
        self, step: records.Step, opening: tuple[Record, ...], inputs: tuple[Observed, ...]
    ) -> records.Step:
        """Put what is written before a step's own records, and its requests behind them."""
        requests = (records.Requests(self.now_ms, step.actions),) if step.actions else ()
        for record in (*inputs, *requests):
            self.ledger.apply(record)
        return msgspec.structs.replace(step, records=(*opening, *inputs, *step.records, *requests))

    def fed(self, observed: Observed, reader: InputReader) -> records.Step:
        """Repeat a step that was written down: the same input, on the same state."""
        if observed.memory is not None:
            self._looks.go_on(observed.memory)
            self._inputs.left_out = True
        self.now_ms = max(self.now_ms, observed.since_ms)
        self.ledger.retire(observed.since_ms)
        self.to_observe = msgspec.structs.replace(
            self.to_observe, cluster=observed.cluster != "not-requested"
        )
        return self.step(reader.observation(observed))

    def stop(self, now_ms: int) -> records.Step:
        """Withdraw the orders that have not led to a checkpoint: the last step before the host exits."""
        now_ms = self.now_ms = max(self.now_ms, now_ms)
        effects = Effects()
        for order in list(self.ledger.open.values()):
            if order.state in RECALLABLE:
                effects.add(self._orders.recall(order, "not-needed", now_ms, Stopping()))
        effects.actions += self.ledger.regrowing.all()
        stopped = records.Stopped(now_ms)
        self.ledger.apply(stopped)
        step = records.Step(tuple(effects.records), tuple(effects.actions), self.to_observe, now_ms)
        return self._written(step, (stopped,), ())

    def _defer(self, effects: Effects, observation: Observation, cluster: Cluster) -> bool:
        """Begin with a new snapshot, or continue with the one under decision; False: nothing to decide."""
        if observation.snapshot is not None:
            self._continue_deferred(effects, observation.snapshot, observation.as_of_ms)
            assert self._deferred is not None
            self._deferred.held, self._deferred.consents = observation.held, observation.consents
        elif cluster == "unreachable":
            self._deferred, self.verdicts = None, {}  # without a snapshot nothing may be preempted
            effects.actions += regrow(self.ledger, self.now_ms, waits=True)
        elif cluster == "quiet":
            # The demand probe shows no pending request of a preempting application.
            self._deferred, self.verdicts = None, {}
            self._looks.refused, self._looks.not_granted.rows = {}, {}
            self._looks.self_help.quiet()
            effects.add(end_overtaken(self._orders, None, {}, self.now_ms))
            effects.add(settle_needless(self._orders, None, observation.as_of_ms, self.now_ms))
            effects.actions += regrow(self.ledger, self.now_ms, waits=False)
        self._looks.note_answered(observation.tasks)
        held = self._deferred
        if held is None:
            return False
        for name, tasks in observation.tasks.items():
            held.tasks[name] = _merged(held.tasks.get(name, ()), tasks)
        held.group_ms.update(observation.group_ms)
        held.bound_ms.update(observation.bound_ms)
        self._note_unanswered(held, observation.unreachable, "unreachable")
        held.unanswered.update(dict.fromkeys(observation.late, "late"))  # read again with the next snapshot
        if self.now_ms - held.since_ms >= self.settings.look_age_max_ms:
            self._deferred = None  # the snapshot is too old to decide on
            return False
        return True

    def _continue_deferred(self, effects: Effects, snapshot: Snapshot, as_of_ms: int) -> None:
        """Begin a decision: forget what ended, withdraw excess orders, keep YARN's order."""
        requesting = merged(snapshot)
        self._looks.keep_waiting(requesting)
        self._looks.not_granted.look(requesting, as_of_ms)
        if remembered := remembered_of(self.ledger):
            alive = {view.application for view in snapshot.applications}
            for name in remembered:
                if name not in alive:
                    effects.add(self._orders.forget(name, self.now_ms, "absent"))
        silent = self._looks.silent(self.now_ms)
        preempting = [view for view in requesting.applications if is_preempting(view, self.settings)]
        effects.add(end_overtaken(self._orders, requesting, self._looks.stale_asks.echoes, self.now_ms))
        doubted = self._looks.stale_asks.update(preempting, as_of_ms)
        simulated = simulate(snapshot, self.ledger, as_of_ms)
        self._deferred = _Deferred(snapshot, simulated, as_of_ms, doubted, self.now_ms, 0, {}, silent)
        self._inputs.begin_snapshot()
        if not self._observe_again:  # used and free capacity cannot be distinguished: withdraw nothing
            not_granted = self._looks.not_granted.concluded()
            effects.add(settle_needless(self._orders, simulated.snapshot, as_of_ms, self.now_ms, not_granted))
        effects.add(self._looks.prioritise(snapshot, as_of_ms, self.now_ms))
        if self.settings.governed:
            self._govern(effects, preempting, as_of_ms)
        waits = any(view.requests for view in preempting)
        effects.actions += regrow(self.ledger, self.now_ms, waits)

    def _govern(self, effects: Effects, preempting: Iterable[ApplicationView], as_of_ms: int) -> None:
        """See how production helps itself; stop suspensions that fail."""
        self._looks.self_help.look(preempting, as_of_ms)
        if (why := self.ledger.trials.stop(self.now_ms)) is not None:
            effects.records.append(records.LeversStopped(self.now_ms, why))
            self.ledger.apply(effects.records[-1])

    def _note_unanswered(self, deferred: _Deferred, names: Iterable[str], reason: Reason) -> None:
        """Exclude jobs that did not answer, for this snapshot and for a while."""
        deferred.unanswered.update(dict.fromkeys(names, reason))
        self._looks.note_silent(names, reason, self.now_ms)

    def _close(self, effects: Effects, missing: tuple[str, ...], now_ms: int) -> records.Step:
        """Set the next observation and its time: at once, soon while tasks are leaving, or in a tick."""
        assert self._origin_ms is not None
        tick_ms = self.settings.tick_ms
        next_tick = self._origin_ms + ((now_ms - self._origin_ms) // tick_ms + 1) * tick_ms
        if missing:
            wake = now_ms
            self.to_observe = self._request(cluster=False, victims=missing)
        else:
            self._deferred = None
            # Freed containers are assigned by YARN's heartbeats; only running victims are polled often.
            soon = bool(self.ledger.count_running()) or self._observe_again
            wake = min(next_tick, now_ms + self.settings.open_tick_ms) if soon else next_tick
            cluster = wake == next_tick or self._observe_again
            self.to_observe = self._request(cluster=cluster, gate_queues=self._probe() if cluster else ())
        actions = in_suspend_order(effects.actions, self.ledger, self.settings)
        return records.Step(tuple(effects.records), actions, self.to_observe, wake)

    def settle(self, action: Action, outcome: Outcome) -> tuple[Record, ...]:
        """Apply an action's outcome; return the records that this makes."""
        effects = self._orders.outcome(action, outcome, self.now_ms)
        if isinstance(action, SetPriority):
            self._looks.prioritiser.settle(action, outcome, self.now_ms)
        return tuple(effects.records)

    def repeats(self, action: Action) -> bool:
        """Return whether a request was made before: its effect has not been observed."""
        if not isinstance(action, OrderAction):
            return False
        sent = self.ledger.sent.get(action.order)
        return (sent is not None and sent.action == action) or action in self._again

    # --- deciding ---------------------------------------------------------------------------------

    def _decide(self, effects: Effects, now_ms: int) -> tuple[str, ...]:
        """Decide on the deferred snapshot, or return the jobs whose tasks must be observed first."""
        held = self._deferred
        assert held is not None
        urgent_first = self._looks.prioritiser.urgent_first(held.snapshot)
        inputs = DemandInput(
            snapshot=held.simulated.snapshot,
            as_of_ms=held.as_of_ms,
            now_ms=now_ms,
            urgent_first=urgent_first,
            stale=held.stale,
            held=held.held,
            consents=held.consents,
            held_at_ms=held.since_ms,
            real=held.simulated.real,
            real_labelled=held.simulated.real_labelled,
            self_help=self._looks.self_help if self.settings.governed else None,
            group_ms=held.group_ms,
            not_granted=self._looks.not_granted.concluded(),
        )
        cluster_demand = self._demand(held, inputs)
        while True:
            seen = ObservedTasks(held.tasks, held.unanswered)
            plan = make_plan(
                cluster_demand, inputs, self.ledger, self.settings, seen, self.ledger.decisions + 1
            )
            self._inputs.touch(plan.touched)
            if not plan.missing:
                break
            unanswered = [name for name in plan.missing if name in self.to_observe.victims]
            if held.rounds < ROUNDS_MAX and not unanswered:
                held.rounds += 1
                return plan.missing
            self._note_unanswered(held, unanswered, "not-observed")
            if not unanswered:  # too many rounds: a job that was not read is not marked as silent
                held.unanswered.update(dict.fromkeys(plan.missing, "not-observed"))
        self._commit(effects, plan, now_ms, held)
        self._looks.not_granted.note(cluster_demand.granted, held.snapshot, held.as_of_ms)
        if self.settings.governed:
            lacking = [one.demand.trigger for one in plan.planned]
            for part in plan.demand.by_label.values():
                lacking += [trigger for trigger, why in part.refused if isinstance(why, LACKING)]
            self._looks.self_help.note([trigger.application for trigger in lacking], now_ms)
        self.verdicts = verdicts_of(held.snapshot, plan.demand, plan, self.settings)
        said = {one.demand.trigger.application for one in plan.planned}
        for part in plan.demand.by_label.values():
            for trigger, why in part.refused:
                if trigger.application in said:
                    continue  # one reason for each application, or two would replace each other
                said.add(trigger.application)
                if self._looks.is_new(trigger.application, why):
                    effects.records.append(records.Refusal(now_ms, trigger, why))
        return ()

    def _demand(self, deferred: _Deferred, inputs: DemandInput) -> ClusterDemand:
        """Return the demand of the deferred snapshot; computed once for each fingerprint of the ledger.

        Urgency changes from one instant to the next, so with deadlines it is computed each time.
        """
        standing = fingerprint_of(self.ledger)
        if deferred.demand is None or deferred.open_orders != standing or self.settings.mode == "deadlines":
            deferred.demand, deferred.open_orders = demand(inputs, self.ledger, self.settings), standing
        return deferred.demand

    def _commit(self, effects: Effects, plan: Plan, now_ms: int, deferred: _Deferred) -> None:
        """Turn a plan into decisions, orders and actions."""
        snapshot = deferred.snapshot
        views = {view.application: view for view in snapshot.applications}
        said: set[str] = set()
        for planned in plan.planned:
            trigger, choice = planned.demand.trigger, planned.choice
            effects.add(self._orders.wait_for(trigger.application, choice.awaited, now_ms))
            if choice.awaited and not choice.picks and not choice.unmet:
                continue
            if choice.picks:
                self._looks.refused.pop(trigger.application, None)
                effects.add(self._order(planned, now_ms, views, deferred.bound_ms))
                continue
            if trigger.application in said:
                continue
            said.add(trigger.application)
            why = why_none(planned, snapshot, self.settings)
            if self._looks.is_new(trigger.application, why):
                effects.records.append(
                    records.Refusal(now_ms, trigger, why, choice.refused_jobs, choice.refused_tasks)
                )

    def _order(
        self,
        planned: Planned,
        now_ms: int,
        views: Mapping[str, ApplicationView],
        bound_ms: Mapping[str, int],
    ) -> Effects:
        """Enter one decision's picks into the ledger and make their requests."""
        choice = planned.choice
        names, groups = name_orders(choice.picks, self.ledger.issued)
        number = self.ledger.decisions + 1
        decision = decision_of(planned, number, names, groups, now_ms, views, bound_ms)
        self.ledger.apply(decision)
        orders = [self.ledger.open[name] for name in names]
        return Effects((decision,), [requested(order, self.settings, orders) for order in orders])
