"""Planning: from demands to decisions, as values.

A plan changes nothing. All demands of one snapshot are decided one after the other on overlays ("less what
was picked already"); if tasks of a picked job have not been observed, the plan only names them (``missing``)
and is dropped. Orders that their requesters will not need are withdrawn (excess orders), but not while
another requester is due the same containers: that would stop two tasks where one is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from yarnctl.deciding.carried_out import shortages
from yarnctl.deciding.case import Candidate, Case, Choice
from yarnctl.deciding.forecast import FreeCapacity, model_queues
from yarnctl.deciding.guarantees import GivenLimits
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.lever_times import corrected, late_by_kind
from yarnctl.deciding.lifecycle import RUNNING
from yarnctl.deciding.mix import choose_mix
from yarnctl.deciding.model import NAME_MAX, Action, ApplicationView, Release, Snapshot, Suspend, TaskView
from yarnctl.deciding.offers import NO_GROUPS, MixInput
from yarnctl.deciding.order import Order, order_number
from yarnctl.deciding.partitions import HasNode, merged
from yarnctl.deciding.preemptor import (
    ApplicationDemand,
    ClusterDemand,
    DemandInput,
    after_picks,
    candidates,
    closed_jobs,
    is_preemptable,
    is_preempting,
    pending_count,
    preemptable,
    refusing,
)
from yarnctl.deciding.reasons.demand import OthersFirst, TriggerReason
from yarnctl.deciding.reasons.orders import NoPendingRequests, RequesterHasRoom, RoomElsewhere
from yarnctl.deciding.records import ApplicationName, Decision, Trigger
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.selector import choose
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.settlement import Effects, Settlement
from yarnctl.deciding.tree_model import placed_in
from yarnctl.deciding.waiting_worth import price_for
from yarnctl.units import NOTHING, Resources

NO_NAMES: Mapping[str, bool] = MappingProxyType({})
REVISIONS_MAX = 4
"""How often a plan is made again with fewer containers, before requesters are left out whole."""


def in_suspend_order(actions: Sequence[Action], ledger: Ledger, settings: Settings) -> tuple[Action, ...]:
    """Return a step's actions, its suspensions and releases sorted: the task that would end last is first."""
    if not settings.model_scheduler:
        return tuple(actions)
    found = list(actions)
    for kind in (Suspend, Release):
        places = [place for place, action in enumerate(found) if isinstance(action, kind)]
        if len(places) > 1:
            ordered = sorted((found[place] for place in places), key=lambda one: -_ends_at_ms(one, ledger))
            for place, action in zip(places, ordered, strict=True):
                found[place] = action
    return tuple(found)


def _ends_at_ms(action: Action, ledger: Ledger) -> int:
    """Return when an action's task would have ended, as observed when it was chosen; 0: unknown."""
    order = ledger.open.get(action.order) if isinstance(action, Suspend | Release) else None
    return order.ordered_at_ms + order.remaining_ms if order is not None and order.remaining_ms >= 0 else 0


class Planned(NamedTuple):
    """One demand, its case, the choice (perhaps empty), and what a mix had beside the case."""

    demand: ApplicationDemand
    case: Case
    choice: Choice
    mix: MixInput | None = None


def decision_of(
    planned: Planned,
    number: int,
    orders: tuple[str, ...],
    groups: tuple[str, ...],
    now_ms: int,
    views: Mapping[str, ApplicationView],
    bound_ms: Mapping[str, int],
) -> Decision:
    """Return the record of a choice; its picks have these order ids and groups.

    ``bound_ms``: as in the observation with the tasks.
    """
    choice = planned.choice
    named = dict.fromkeys((planned.demand.trigger.application, *(pick.application for pick in choice.picks)))
    attempts = {order: pick.task.attempt for order, pick in zip(orders, choice.picks, strict=True)}
    return Decision(
        number=number,
        at_ms=now_ms,
        trigger=planned.demand.trigger,
        total=planned.case.total,
        orders=orders,
        groups=groups,
        picks=choice.picks,
        handed_back=choice.handed_back,
        unmet=choice.unmet,
        refused_jobs=choice.refused_jobs,
        refused_tasks=choice.refused_tasks,
        levers=choice.pulls,
        names={each: name_of(views[each]) for each in named},
        bound_ms={order: bound_ms[name] for order, name in attempts.items() if name in bound_ms},
    )


def name_of(view: ApplicationView) -> ApplicationName:
    """Return an application's name, user and queue for the journal. Its owner can write anything: cut it."""
    return ApplicationName(view.name[:NAME_MAX], view.user[:NAME_MAX], view.queue)


NO_DEMAND = ClusterDemand((), (), {}, ())


class Plan(NamedTuple):
    """Decisions in serving order; ``missing`` jobs must be observed before they are valid.

    ``touched`` are the attempts without which the plan would be another: those that any choice has picked,
    also a dropped one (it exceeded the limit of orders in flight); of a committed plan also those shown.
    ``demand``: what was planned for, less the containers that others would receive. ``declined``: the
    label and application of triggers for which no lever is pulled now.
    """

    planned: tuple[Planned, ...]
    missing: tuple[str, ...]
    touched: frozenset[str] = frozenset()
    demand: ClusterDemand = NO_DEMAND
    declined: Mapping[tuple[str, str], TriggerReason] = MappingProxyType({})

    def why_declined(self, trigger: Trigger) -> TriggerReason | None:
        """Return why no lever is pulled for a trigger; None: one may be."""
        return self.declined.get((trigger.label, trigger.application))


class ObservedTasks(NamedTuple):
    """The observed tasks of this snapshot's jobs, and the jobs that cannot be observed, with the reason."""

    tasks: Mapping[str, tuple[TaskView, ...]]
    unanswered: Mapping[str, Reason]

    def on(self, is_here: HasNode | None) -> Mapping[str, tuple[TaskView, ...]]:
        """Return the tasks on these nodes (None: on every node)."""
        if is_here is None:
            return self.tasks
        return {
            name: tuple(task for task in tasks if is_here(task.node)) for name, tasks in self.tasks.items()
        }


def make_plan(
    demand: ClusterDemand,
    inputs: DemandInput,
    ledger: Ledger,
    settings: Settings,
    tasks: ObservedTasks,
    first_number: int,
) -> Plan:
    """Decide every demand of ``demand``, and again without the containers that others would receive."""
    touched: frozenset[str] = frozenset()
    revisions = 0
    while True:
        plan = _plan(demand, inputs, ledger, settings, tasks, first_number)
        touched |= plan.touched
        if plan.declined:
            demand = refusing(demand, plan.why_declined)
        plan = plan._replace(touched=touched, demand=demand)
        is_modelled = settings.model_scheduler and settings.mode != "deadlines"
        if plan.missing or not is_modelled or not inputs.snapshot.parents:
            return plan  # in a flat tree the forecast alone decides
        revised = _revised(plan, inputs, ledger, whole=revisions >= REVISIONS_MAX)
        if revised is None:
            return plan
        demand, revisions = revised, revisions + 1


def _revised(plan: Plan, inputs: DemandInput, ledger: Ledger, *, whole: bool) -> ClusterDemand | None:
    """Return the demand less the containers that requesters would lack (``whole``: less such requesters).

    None: no requester would lack one.
    """
    parts: dict[str, ClusterDemand] = {}
    for label, part in plan.demand.by_label.items():
        served: dict[str, int] = {}
        choices = []
        for one in plan.planned:
            if one.demand.trigger.label == label:
                name = one.demand.application.application
                choices.append((name, one.choice))
                served[name] = sum(pick.serves for pick in one.choice.picks)
        lacks = shortages(choices, inputs.of_label(label), ledger, part.placed)
        if lacks:
            keeps = {name: 0 if whole else served[name] - lack for name, lack in lacks.items()}
            parts[label] = _keeping(part, keeps)
    if not parts:
        return None
    return parts.pop("", plan.demand)._replace(labelled={**plan.demand.labelled, **parts})


def _keeping(part_demand: ClusterDemand, keeps: Mapping[str, int]) -> ClusterDemand:
    """Return a partition's demand with so many containers of these requesters."""
    wishes, refused = [], list(part_demand.refused)
    for wish in part_demand.applications:
        name = wish.application.application
        if name in keeps:
            wish = _with_containers(wish, max(keeps[name], 0))
        if wish.shortfalls:
            wishes.append(wish)
        else:
            refused.append((wish.trigger, OthersFirst()))
    return part_demand._replace(applications=tuple(wishes), refused=tuple(refused))


def _plan(
    demand: ClusterDemand,
    inputs: DemandInput,
    ledger: Ledger,
    settings: Settings,
    tasks: ObservedTasks,
    first_number: int,
) -> Plan:
    """Decide every demand of ``demand``; numbers are given to choices with picks only."""
    parts = {label: part for label, part in demand.by_label.items() if part.applications}
    if not parts:
        return Plan((), ())
    barred = dict(ledger.excluded)
    planned: list[Planned] = []
    missing: dict[str, None] = {}
    declined: dict[tuple[str, str], TriggerReason] = {}
    number = first_number
    queues = tuple(dict.fromkeys(name for part in parts.values() for name in part.preemptable_queues))
    flight = InFlight(inputs, ledger, settings, queues)
    mix = mix_input(inputs, ledger, settings)
    last = list(parts.values())[-1].applications[-1]
    for label, part in parts.items():
        here = inputs.of_label(label)
        views = preemptable(here, settings, part.preemptable_queues)
        jobs, free = candidates(here, ledger, settings, views), dict(part.free)
        closed = closed_jobs(views, settings, tasks.unanswered, inputs.now_ms)
        gives = part.gives
        reserved = here.snapshot.reserved_by_node.items()
        for wanted in part.applications:
            case = Case(
                number=number,
                now_ms=inputs.now_ms,
                total=here.snapshot.total,
                needs=wanted.shortfalls,
                free=wanted.usable(free),
                jobs=is_preemptable(jobs, here, settings, wanted.application, wanted.queues),
                tasks=tasks.on(wanted.nodes.__contains__ if wanted.nodes else here.is_here),
                barred=barred,
                closed=closed,
                reserved={node: name for node, name in reserved if name != wanted.application.application},
                second=price_for(wanted.application, here.snapshot, settings.levers),
            )
            wish, case, choice, _ = flight.limit(wanted, case, settings, mix)
            while gives is not None and (fewer := within_limits(case, choice, gives)) is not None:
                wish, case, choice, _ = flight.limit(wish, fewer, settings, mix)
            if gives is not None:
                gives = after_choice(choice, gives)
            lacking = sum(need.containers for need in wanted.shortfalls)
            (wish, case, choice, _), why = flight.limit_by_self_help(
                Planned(wish, case, choice), lacking, settings, mix
            )
            if why is not None and not wish.shortfalls:
                declined[label, wish.application.application] = why
            if not wish.shortfalls:
                continue  # the limit in flight is reached: the next decision requests it again
            planned.append(Planned(wish, case, choice, mix))
            missing.update(dict.fromkeys(choice.missing))
            if choice.picks:
                number += 1
                flight.begun += len(choice.picks)
            if (choice.picks or choice.awaited) and wanted is not last:
                jobs, barred, free = _overlay(jobs, barred, free, choice, here.snapshot.total)
                if mix is not None:
                    mix = mix.after(choice)
    touched = flight.touched
    if not missing:
        touched.update(each.attempt for one in planned for each in one.choice.refused_tasks)
    return Plan(tuple(planned), tuple(sorted(missing)), frozenset(touched), declined=declined)


def within_limits(case: Case, choice: Choice, limits: GivenLimits) -> Case | None:
    """Return the case with smaller budgets if a choice takes more from a queue than it gives, else None.

    A job keeps the picks that its queue gives, in their order.
    """
    left, kept = limits.copy(), dict.fromkeys((pick.application for pick in choice.picks), 0)
    over: dict[str, None] = {}
    for pick in choice.picks:
        queue = left.queue_of[pick.application]
        if left.may_take(queue, pick.task.size):
            left.take(queue, pick.task.size)
            kept[pick.application] += 1
        else:
            over[queue] = None
    if not over:
        return None
    jobs = tuple(
        job._replace(
            budget=min(job.budget, kept.get(job.usage.application, 0)),
            given=min(job.giving, kept.get(job.usage.application, 0)),
        )
        if left.queue_of[job.usage.application] in over
        else job
        for job in case.jobs
    )
    return msgspec.structs.replace(case, jobs=jobs)


def after_choice(choice: Choice, limits: GivenLimits) -> GivenLimits:
    """Return what the queues still give after a choice."""
    left = limits.copy()
    for pick in choice.picks:
        left.take(left.queue_of[pick.application], pick.task.size)
    return left


class InFlight:
    """How many suspensions may begin in one decision: a bound on the harm that a wrong decision can do.

    ``begun`` counts the orders whose container has not ended, those of this plan included. One request is
    always served while nothing is in flight, however many containers it takes.
    """

    def __init__(
        self, inputs: DemandInput, ledger: Ledger, settings: Settings, preemptable_queues: tuple[str, ...]
    ) -> None:
        self.begun = ledger.count_running()
        self.touched: set[str] = set()
        self.self_help, self.ahead, self.now_ms = inputs.self_help, Counter[str](), inputs.now_ms
        self.using = {view.queue for view in inputs.snapshot.queues if view.used != NOTHING}
        self.most: int | None = None
        if settings.in_flight_ratio_max < 1:
            queues = preemptable_queues or None
            held = sum(
                view.containers
                for view in inputs.snapshot.applications
                if queues is None or view.queue in queues
            )
            self.most = max(settings.in_flight_least, int(held * settings.in_flight_ratio_max))

    def limit(
        self, demand: ApplicationDemand, case: Case, settings: Settings, mix: MixInput | None = None
    ) -> Planned:
        """Choose for as many of the demand's containers as may be in flight (none: no shortfalls)."""
        left = None if self.most is None else max(self.most - self.begun, 0)
        containers = sum(need.containers for need in demand.shortfalls)
        if left is not None and containers > left:
            containers = left if self.begun else max(left, 1)
            demand, case = _fewer(demand, case, containers)
        choice = self._chosen(case, settings, mix)
        while left is not None and len(choice.picks) > left and containers > (0 if self.begun else 1):
            containers -= 1
            demand, case = _fewer(demand, case, containers)
            choice = self._chosen(case, settings, mix)
        return Planned(demand, case, choice)

    def limit_by_self_help(
        self, planned: Planned, lacking: int, settings: Settings, mix: MixInput | None
    ) -> tuple[Planned, TriggerReason | None]:
        """Return a plan without the containers that its requester gets as soon without an order, and why.

        A queue that uses nothing has no container that could end: it cannot serve itself.
        """
        last: TriggerReason | None = None
        if self.self_help is None or planned.demand.application.queue not in self.using:
            return planned, last
        while planned.demand.shortfalls:
            view = planned.demand.application
            ahead = self.ahead[view.queue]  # YARN serves these before
            drops, why = self.self_help.keeps(view, lacking, ahead, planned.choice, self.now_ms)
            if why is None:
                break
            last = why
            left = sum(need.containers for need in planned.demand.shortfalls) - drops
            planned = self.limit(*_fewer(planned.demand, planned.case, max(left, 0)), settings, mix)
        self.ahead[planned.demand.application.queue] += lacking
        return planned, last

    def _chosen(self, case: Case, settings: Settings, mix: MixInput | None) -> Choice:
        choice = choose(case, settings) if mix is None else choose_mix(case, settings, mix)
        self.touched.update(pick.task.attempt for pick in (*choice.picks, *choice.handed_back))
        self.touched.update(task.lever.unit for task in choice.awaited)
        self.touched.update(choice.compared)
        return choice


def mix_input(inputs: DemandInput, ledger: Ledger, settings: Settings) -> MixInput | None:
    """Return what a mix needs beside its case; None: the settings have no levers."""
    if settings.levers is None:
        return None
    consents = {each.application: each.may_lose_ratio for each in inputs.consents}
    queues = {rule.name: rule.may_lose_ratio for rule in settings.levers.budgets if rule.kind == "queue"}
    return MixInput(
        ledger.losses.left(inputs.held_at_ms, inputs.held, settings.levers, consents),
        ledger.awaited.until_ms,
        {
            view.application: (view.application if view.application in consents else view.queue, view.user)
            for view in inputs.snapshot.applications
        },
        {**queues, **consents},
        corrected(settings.levers, ledger.times, inputs.now_ms),
        late_by_kind(settings.levers, ledger.times, inputs.now_ms),
        inputs.group_ms if settings.levers.second_worth_ratio else NO_GROUPS,
        ledger.trials.left(ledger.open.values(), inputs.now_ms) if settings.governed else None,
        ledger.trials.why,
    )


def _fewer(demand: ApplicationDemand, case: Case, containers: int) -> tuple[ApplicationDemand, Case]:
    demand = _with_containers(demand, containers)
    return demand, msgspec.structs.replace(case, needs=demand.shortfalls)


def _with_containers(demand: ApplicationDemand, containers: int) -> ApplicationDemand:
    needs = []
    left = containers
    for need in demand.shortfalls:
        if left > 0:
            needs.append(need._replace(containers=min(left, need.containers)))
            left -= need.containers
    trigger = msgspec.structs.replace(demand.trigger, shortfall=containers)
    return demand._replace(shortfalls=tuple(needs), trigger=trigger)


def _overlay(
    jobs: list[Candidate],
    barred: dict[str, Reason],
    free: dict[str, Resources],
    choice: Choice,
    total: Resources,
) -> tuple[list[Candidate], dict[str, Reason], dict[str, Resources]]:
    """Return jobs, excluded attempts and free capacity after a choice."""
    picked: dict[str, list[Resources]] = {}
    for pick in choice.picks:
        picked.setdefault(pick.application, []).append(pick.task.size)
    ordered: dict[str, Reason] = {pick.task.attempt: "already-ordered" for pick in choice.picks}
    ordered.update((task.lever.unit, "already-ordered") for task in choice.awaited)
    return after_picks(jobs, picked, total), {**barred, **ordered}, {**free, **choice.free}


class ExcessOrders(NamedTuple):
    """Orders that their requester will not need: ``moves`` to other requesters, the rest to withdraw."""

    moves: tuple[tuple[Order, str], ...]
    excess: tuple[Order, ...]


def excess_orders(inputs: DemandInput, ledger: Ledger, settings: Settings) -> ExcessOrders:
    """Compare the expected capacity of each requester with what it would be given of it.

    The scheduler simulation serves all applications from the free capacity, then from the free and the
    expected; the difference is what each requester is *due*. Expected capacity beyond that is transferred to
    requesters that are due more, and the orders left over are withdrawn, the youngest first. With the
    scheduler simulation only (Natjam never withdraws a request).
    """
    moves: list[tuple[Order, str]] = []
    excess: list[Order] = []
    for label in ("", *inputs.snapshot.labelled):
        found = _excess_orders(inputs.of_label(label), ledger, settings)
        moves += found.moves
        excess += found.excess
    return ExcessOrders(tuple(moves), tuple(excess))


def _excess_orders(inputs: DemandInput, ledger: Ledger, settings: Settings) -> ExcessOrders:
    """Return those of one partition."""
    expected, snapshot = list(ledger.expected_room(inputs.as_of_ms)), inputs.granting
    coming, elsewhere = inputs.here(expected), inputs.elsewhere(expected)
    without = model_queues(snapshot, (), elsewhere)
    placed, _ = placed_in(snapshot, without, FreeCapacity(snapshot.free_by_node))
    with_coming = model_queues(snapshot, coming, elsewhere)
    free = FreeCapacity(snapshot.free_by_node, coming)
    placed_later, _ = placed_in(snapshot, with_coming, free)
    due = {
        view.application: placed_later.get(view.application, 0) - placed.get(view.application, 0)
        for view in snapshot.applications
        if view.requests and is_preempting(view, settings)
    }
    for order in inputs.here(ledger.recently_settled_room(inputs.as_of_ms)):  # met since: not due again
        if order.requester in due:
            due[order.requester] -= order.serves
    kept = set(inputs.not_granted)
    if snapshot.aside:
        kept |= {view.application for view in snapshot.applications if view.queue in snapshot.aside}
    return beyond(due, inputs.as_of_ms, ledger, kept, inputs.is_here)


def beyond(
    due: Mapping[str, int],
    as_of_ms: int,
    ledger: Ledger,
    kept: Collection[str] = (),
    is_here: HasNode | None = None,
) -> ExcessOrders:
    """Return what to do with the orders beyond what each requester is due; ``due`` in serving order.

    The applications ``kept`` keep their orders, and get no other. ``is_here``: whether orders on a node are
    looked at (None: on every node).
    """
    lacking = {name: count for name, count in due.items() if name not in kept}
    excess: list[Order] = []
    for requester in [name for name in ledger.by_requester if name not in kept]:
        mine = [
            order
            for order in ledger.of_requester(requester)
            if (order.freed_at_ms is None or order.freed_at_ms > as_of_ms)
            and (is_here is None or is_here(order.node))
        ]
        over = sum(order.serves for order in mine) - max(0, due.get(requester, 0))
        lacking[requester] = -over
        for order in reversed(mine):
            if 0 < order.serves <= over and order.state in RUNNING:
                over -= order.serves
                excess.append(order)
    moves: list[tuple[Order, str]] = []
    needless: list[Order] = []
    for order in sorted(excess, key=lambda order: order_number(order.order)):
        taker = next((name for name, count in lacking.items() if count >= order.serves), None)
        if taker is not None:
            lacking[taker] -= order.serves
            moves.append((order, taker))
        elif order.is_recallable:
            needless += [mate for mate in ledger.group_of(order) if mate.is_recallable]
    return ExcessOrders(tuple(moves), tuple(reversed(needless)))


def settle_needless(
    settlement: Settlement,
    snapshot: Snapshot | None,
    as_of_ms: int,
    now_ms: int,
    not_granted: Mapping[str, bool] = NO_NAMES,
) -> Effects:
    """Withdraw excess orders (no snapshot: no preempting application has pending requests).

    ``not_granted``: as in :class:`yarnctl.deciding.preemptor.DemandInput`.
    """
    effects, ledger, settings = Effects(), settlement.ledger, settlement.settings
    settlement.pending = None
    if not settings.model_scheduler or not ledger.open:
        return effects
    why = NoPendingRequests() if snapshot is None else RoomElsewhere()
    if snapshot is None:
        pending: dict[str, int] = {}
        found = beyond({}, as_of_ms, ledger)
    else:
        pending = {view.application: pending_count(view) for view in merged(snapshot).applications}
        inputs = DemandInput(snapshot, as_of_ms, now_ms, not_granted=not_granted)
        found = excess_orders(inputs, ledger, settings)
    for order, requester in found.moves:
        effects.add(settlement.transfer(order, requester, now_ms, RequesterHasRoom(order.requester)))
    for order in found.excess:
        effects.add(settlement.recall(order, "not-needed", now_ms, why))
    settlement.pending = pending
    effects.add(settlement.forget_unwanted(pending, now_ms, as_of_ms))
    return effects
