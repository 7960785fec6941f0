"""MRM (Moshref et al.): a request that agrees to a deadline's price, and can pay it, is promised it at once.

Law: pure. A promise is kept by serving the earliest deadline first (``pricing.timeline``); a job is promised
nothing by which an earlier promise would be broken. What a running job has still to do is not observed; it
is what the plan of the last round leaves of it by now, and all of it until the job is submitted. A job that
ends sooner makes no other later, so the plan is the least that was done while estimates hold. YARN takes no
container from a running task that cannot be suspended: a job of such tasks is fixed load for its longest
task, and for all its remaining work where its tasks are not known.

Work is laid as if it could be divided at will; tasks are whole. Whoever serves tasks in any order ends within
the work divided by the containers, and the longest task of each phase (Graham 1969, his bound for list
scheduling): so where phases are known, the work is due earlier than the job by that, and by what its
master takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import msgspec

from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Profile, profile
from yarnctl.deciding.admission.pricing.accounts import price_mtokens
from yarnctl.deciding.admission.pricing.prices import (
    ITSELF,
    Curve,
    curve,
    earliest_finish,
    standing,
    within,
)
from yarnctl.deciding.admission.pricing.timeline import Due, broken, earliest_due, left_at, served
from yarnctl.deciding.admission.pricing.timeline import blocking as held_by
from yarnctl.deciding.admission.records import (
    Budget,
    DueClaim,
    Estimate,
    Finished,
    Phases,
    Plan,
    Rectangle,
    Request,
    Reservation,
)
from yarnctl.deciding.admission.rounds import Promised, Round, Seen
from yarnctl.deciding.admission.shared_round import RESERVED_MS
from yarnctl.deciding.reasons.verdicts import (
    CannotPay,
    CostsMore,
    DeadlineUnreachable,
    NoAccount,
    PaidFor,
    PlanReason,
    TooEarly,
    WorkUnknown,
)

LATE_FOR_MIN_MS = 60_000
"""A job that is late is expected to run as long again as it is late, and at least so long."""
HORIZON_MS = 366 * 86_400_000
"""Nothing is promised that is further away."""
UNIT_MIN_MS = 60_000
WIDEST = 128
"""The points of a curve reach so many units behind the earliest deadline."""


class MrmChoices(msgspec.Struct, frozen=True, tag_field="mechanism", tag="mrm"):
    """``kappa`` of Eq 13; ``late_ratio``: the chance that a job computes more than it has room for.

    ``job_ms`` stands for the mean work of a job (m of Eq 13) until a job has finished.
    """

    kappa: float = 1.0
    late_ratio: float = 0.05
    job_ms: int = 600_000


class MrmMemory(msgspec.Struct, frozen=True, tag_field="mechanism", tag="mrm"):
    """How many jobs have finished, and what they computed in all."""

    completed: int = 0
    work_ms: int = 0


def learn(memory: MrmMemory, finished: Finished, choices: MrmChoices) -> MrmMemory:
    """Count a job's work."""
    return MrmMemory(memory.completed + 1, memory.work_ms + max(0, finished.used_ms))


class Market(NamedTuple):
    """What is promised at one instant: ``free`` beside fixed load, the ``dues``, which of them run already.

    ``mean_ms`` is the mean work of a job, ``capacity`` that of the cluster.
    """

    now_ms: int
    capacity: int
    free: Profile
    dues: tuple[Due, ...]
    running: frozenset[str]
    mean_ms: float


def market(memory: MrmMemory, choices: MrmChoices, seen: Seen) -> Market:
    """Return what is promised, with what each job has still to do at most."""
    now_ms, capacity = seen.now_ms, seen.pools[0].capacity
    fixed, dues = _divided(seen)
    blocked, kept = _blocked(seen, dues)
    fixed += blocked
    running = frozenset(str(each.request.sequence) for each in seen.reserved if each.application)
    mean_ms = memory.work_ms / memory.completed if memory.work_ms else float(choices.job_ms)
    return Market(now_ms, capacity, profile(capacity, fixed, now_ms), kept, running, mean_ms)


def _blocked(seen: Seen, dues: Sequence[Due]) -> tuple[list[Load], tuple[Due, ...]]:
    """Return the load of tasks that cannot be suspended, and what is due beside it.

    Their jobs' other tasks are served by deadline.
    """
    blocking = set(seen.blocking)
    claims = {
        str(each.request.sequence): each.claim for each in seen.reserved if each.request.sequence in blocking
    }
    loads, kept = list[Load](), list[Due]()
    for due in dues:
        claim = claims.get(due.who)
        if not isinstance(claim, DueClaim):
            kept.append(due)
            continue
        rest_ms = -(-due.work_ms // due.most)
        held_ms = min(rest_ms, claim.task_ms or rest_ms)
        loads.append(held_by(due.who, due.most, seen.now_ms, held_ms))
        if due.work_ms > due.most * held_ms:
            kept.append(due._replace(work_ms=due.work_ms - due.most * held_ms))
    return loads, tuple(kept)


def _divided(seen: Seen) -> tuple[list[Load], list[Due]]:
    """Return fixed load, and the promises with work left; a job that is late is fixed load."""
    now_ms, capacity = seen.now_ms, seen.pools[0].capacity
    fixed, dues = list(seen.loads), list[Due]()
    for each in seen.reserved:
        who, claim = str(each.request.sequence), each.claim
        if isinstance(claim, Rectangle):
            fixed.append(Load(who, claim.containers, claim.from_ms, max(claim.until_ms, now_ms + 1)))
        elif claim.until_ms > now_ms:
            dues.append(Due(who, claim.work_ms, min(claim.most, max(1, capacity)), claim.until_ms))
        elif claim.until_ms + claim.latency_ms <= now_ms:
            late_ms = max(LATE_FOR_MIN_MS, now_ms - claim.until_ms - claim.latency_ms)
            fixed.append(Load(who, claim.most, now_ms, now_ms + late_ms))
    left_ms = _left(seen)
    left = [due._replace(work_ms=left_ms.get(due.who, due.work_ms)) for due in dues]
    return fixed, [due for due in left if due.work_ms]


def _left(seen: Seen) -> dict[str, int]:
    """Return what the plan of the last round leaves by now of each job that has been submitted."""
    plan = seen.promised
    if not isinstance(plan, Promised):
        return {}
    free = profile(plan.capacity, plan.loads, plan.at_ms)
    left_ms = left_at(free, plan.dues, plan.at_ms, max(plan.at_ms, seen.now_ms))
    submitted = {str(each.request.sequence) for each in seen.reserved if each.application}
    return {who: left for who, left in left_ms.items() if who in submitted}


def carry(seen: Seen, granted: Sequence[Reservation]) -> Promised:
    """Return what is promised after a round."""
    _, dues = _divided(seen._replace(reserved=(*seen.reserved, *granted)))
    return Promised(seen.now_ms, seen.pools[0].capacity, seen.loads, tuple(dues))


class Needed(NamedTuple):
    """The room that a job needs: ``work_ms`` of containers, done ``latency_ms`` before its deadline.

    ``task_ms`` is its longest task, 0 where that is not known.
    """

    work_ms: int
    latency_ms: int = 0
    task_ms: int = 0


def needed(estimate: Estimate, tasks: int, capacity: int, choices: MrmChoices) -> Needed:
    """Return what to keep room for: the job computes more with the chance ``late_ratio``.

    Of phases: each task is as long as that chance says, and the master's container is held as long as the
    job would take alone. ``tasks``: the most containers that it can use, of ``capacity``.
    """
    above = NormalDist().inv_cdf(1 - choices.late_ratio)
    phases = estimate.phases
    if not isinstance(phases, Phases) or not phases.kinds:
        return Needed(max(1, math.ceil(estimate.mean_ms + above * estimate.stdev_ms)))
    each_ms = [max(1, math.ceil(each.mean_ms + above * each.stdev_ms)) for each in phases.kinds]
    task_work_ms = sum(each.tasks * long_ms for each, long_ms in zip(phases.kinds, each_ms, strict=True))
    latency_ms = phases.submit_ms + phases.master_ms + sum(each_ms)
    beside = max(1, min(tasks, capacity) - 1)
    return Needed(task_work_ms + latency_ms + -(-task_work_ms // beside), latency_ms, max(each_ms))


class Priced(NamedTuple):
    """One job's deadlines: from ``earliest_ms`` on each has a price. ``job`` carries no deadline yet.

    ``needs`` is the room that it needs; its work is due ``needs.latency_ms`` before each of these deadlines.
    """

    market: Market
    job: Due
    curve: Curve
    earliest_ms: int
    needs: Needed

    def price_mtokens(self, deadline_at_ms: int) -> int:
        """Return what a deadline costs."""
        return price_mtokens(self.curve.price(self.work_due_ms(deadline_at_ms)))

    def work_due_ms(self, deadline_at_ms: int) -> int:
        """Return by when the job's work is done if it ends by a deadline."""
        return deadline_at_ms - self.needs.latency_ms

    def slack_ms(self, deadline_at_ms: int) -> int:
        """Return the container-ms that are free until a deadline beside all work."""
        return max(0, self.curve.state.slack_ms(self.job.work_ms, self.work_due_ms(deadline_at_ms)))

    def because(self, deadline_at_ms: int) -> tuple[tuple[str, int], ...]:
        """Return whole terms that add up to the price; what rounding leaves is the job's own."""
        terms = self.curve.because(self.work_due_ms(deadline_at_ms))
        others = [(who, math.floor(amount)) for who, amount in terms if who != ITSELF and amount >= 1]
        rest = self.price_mtokens(deadline_at_ms) - sum(amount for _, amount in others)
        return ((ITSELF, rest), *others)

    def within(self, most_mtokens: int) -> int | None:
        """Return the earliest deadline that costs at most so much; None: none before the horizon."""
        for budget in (float(most_mtokens), most_mtokens * (1 - 1e-9), most_mtokens * (1 - 1e-6)):
            if budget <= 0:
                return None
            found_ms = within(self.curve, budget).deadline_at_ms + self.needs.latency_ms
            found_ms = max(found_ms, self.earliest_ms)
            if found_ms > self.market.now_ms + HORIZON_MS:
                return None
            if self.price_mtokens(found_ms) <= most_mtokens:
                return found_ms
        return None

    def serve_by_ms(self, deadline_at_ms: int) -> int:
        """Return when to have done the work of a job that is promised a deadline: no promise is broken by it.

        With narrow jobs the later place may break a promise where the earliest does not.
        """
        due_at_ms = self.work_due_ms(deadline_at_ms)
        job = self.job._replace(due_at_ms=due_at_ms)
        wrong = broken(self.market.free, (*self.market.dues, job), self.market.now_ms)
        return self.work_due_ms(self.earliest_ms) if wrong else due_at_ms


def priced(seen: Market, who: str, estimate: Estimate, tasks: int, choices: MrmChoices) -> Priced | None:
    """Return what each deadline of a job costs; None if there is room for it at no time."""
    if seen.capacity <= 0:
        return None
    needs = needed(estimate, tasks, seen.capacity, choices)
    work_ms = needs.work_ms
    job = Due(who, work_ms, min(tasks, seen.capacity), FOREVER_MS)
    state = standing(seen.free, seen.dues, seen.now_ms, seen.mean_ms, seen.running)
    found_ms = earliest_due(seen.free, seen.dues, job, seen.now_ms)
    earliest_ms = max(found_ms, earliest_finish(state, work_ms)) + needs.latency_ms
    if earliest_ms > seen.now_ms + HORIZON_MS:
        return None
    return Priced(seen, job, curve(state, work_ms, choices.kappa), earliest_ms, needs)


def deadlines(offered: Priced, count: int) -> list[int]:
    """Return so many deadlines to show, from the earliest on, ever further apart."""
    earliest_ms = offered.earliest_ms
    unit_ms = max(UNIT_MIN_MS, (earliest_ms - offered.market.now_ms) // 4)
    last_ms = offered.market.now_ms + HORIZON_MS
    spread = [WIDEST ** (place / max(1, count - 2)) for place in range(count - 1)]
    return [earliest_ms, *(min(last_ms, earliest_ms + math.ceil(unit_ms * far)) for far in spread)]


def hold_market(memory: MrmMemory, choices: MrmChoices, seen: Seen) -> Round:
    """Promise or refuse to each in order of submission; each promise is paid before the next request."""
    plans, granted = list[Plan](), list[Reservation]()
    balances = dict(seen.balances)
    for request in seen.waiting:
        now = market(memory, choices, seen._replace(reserved=(*seen.reserved, *granted)))
        plan, held = _decided(now, request, balances, choices)
        plans.append(plan)
        if held is not None and plan.price_mtokens is not None and isinstance(request.budget, Budget):
            balances[request.budget.account] -= plan.price_mtokens
            granted.append(held)
    return Round(tuple(plans), tuple(granted))


def _decided(
    now: Market, request: Request, balances: dict[str, int], choices: MrmChoices
) -> tuple[Plan, Reservation | None]:
    """Return the plan for one request, and what it is promised."""
    budget, who = request.budget, str(request.sequence)
    if not isinstance(budget, Budget) or budget.account not in balances:
        account = budget.account if isinstance(budget, Budget) else ""
        return _refused(request, NoAccount(account)), None
    if request.estimate is None:
        return _refused(request, WorkUnknown()), None
    offered = priced(now, who, request.estimate, request.tasks, choices)
    if offered is None:
        return _refused(request, DeadlineUnreachable()), None
    found = _agreed(offered, request, budget, balances[budget.account])
    if not isinstance(found, int):
        return _refused(request, found), None
    return _promise(offered, request, found, choices)


def _agreed(offered: Priced, request: Request, budget: Budget, balance: int) -> int | PlanReason:
    """Return the deadline that is agreed and can be paid, or why there is none."""
    most = min(budget.most_mtokens, max(0, balance))
    deadline_at_ms = request.deadline_at_ms
    if deadline_at_ms is None:
        found_ms = offered.within(most)
        if found_ms is not None:
            return found_ms
        deadline_at_ms = offered.earliest_ms
    elif deadline_at_ms < offered.earliest_ms:
        return TooEarly(offered.earliest_ms)
    price = offered.price_mtokens(deadline_at_ms)
    if price > budget.most_mtokens:
        return CostsMore(price, deadline_at_ms, budget.most_mtokens, offered.within(most))
    return deadline_at_ms if price <= balance else CannotPay(price, deadline_at_ms, balance)


def _promise(
    offered: Priced, request: Request, deadline_at_ms: int, choices: MrmChoices
) -> tuple[Plan, Reservation]:
    now, job = offered.market, offered.job
    serve_by_ms = offered.serve_by_ms(deadline_at_ms)
    dues: Sequence[Due] = (*now.dues, job._replace(due_at_ms=serve_by_ms))
    price = offered.price_mtokens(deadline_at_ms)
    plan = Plan(
        sequence=request.sequence,
        verdict="admit",
        containers=job.most,
        deadline_at_ms=deadline_at_ms,
        reason=PaidFor(price),
        start_at_ms=now.now_ms,
        finish_at_ms=served(now.free, dues, now.now_ms)[job.who] + offered.needs.latency_ms,
        price_mtokens=price,
        late_ratio=choices.late_ratio,
        because=offered.because(deadline_at_ms),
    )
    latency_ms, task_ms = offered.needs.latency_ms, offered.needs.task_ms
    claim = DueClaim(job.work_ms, job.most, now.now_ms, serve_by_ms, latency_ms, task_ms)
    ratio = job.most / min(request.tasks, now.capacity)
    return plan, Reservation(request, claim, ratio, now.now_ms + RESERVED_MS)


def _refused(request: Request, why: PlanReason) -> Plan:
    return Plan(request.sequence, "reject", 0, request.due_ms, why)
