"""MRM (Moshref et al.): a request that agrees to a deadline's price, and can pay it, is promised it at once.

A promise is kept by serving the earliest deadline first (``pricing.timeline``); no job is promised a deadline
that would break an earlier promise (``promises`` has what is promised).

Work is laid as if it could be divided at will; tasks are whole. Tasks served in any order end within the work
divided by the containers, and the longest task of each phase (Graham 1969, his bound for list scheduling): so
where phases are known, the work is due earlier than the job by that, and by what its master takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from yarnctl.deciding.admission.capacity import FOREVER_MS, Profile
from yarnctl.deciding.admission.mechanisms.promises import (
    Market,
    MrmChoices,
    MrmMemory,
    early_masters,
    market,
    widest,
)
from yarnctl.deciding.admission.mechanisms.turns import planned, turns
from yarnctl.deciding.admission.pricing.accounts import price_mtokens
from yarnctl.deciding.admission.pricing.prices import (
    ITSELF,
    Curve,
    curve,
    earliest_finish,
    standing,
    within,
)
from yarnctl.deciding.admission.pricing.timeline import Due, earliest_due, schedule
from yarnctl.deciding.admission.records import (
    Budget,
    DueClaim,
    Estimate,
    Finished,
    Plan,
    Request,
    Reservation,
)
from yarnctl.deciding.admission.rounds import Round, Seen, rejected
from yarnctl.deciding.reasons import verdicts

HORIZON_MS = 366 * 86_400_000
"""Nothing is promised that is further away."""
UNIT_MIN_MS = 60_000
WIDEST = 128
"""The points of a curve reach so many units behind the earliest deadline."""


def learn(memory: MrmMemory, finished: Finished, choices: MrmChoices) -> MrmMemory:
    """Count a job's work."""
    return MrmMemory(memory.completed + 1, memory.work_ms + max(0, finished.used_ms))


class Needed(NamedTuple):
    """The capacity that a job needs: ``work_ms`` of containers, done ``latency_ms`` before its deadline.

    ``task_ms`` is its longest task, ``master_ms`` what of the work is its master's container; 0 where that is
    not known.
    """

    work_ms: int
    latency_ms: int = 0
    task_ms: int = 0
    master_ms: int = 0


def needed(estimate: Estimate, tasks: int, capacity: int, choices: MrmChoices) -> Needed:
    """Return what to keep free: the job computes more with the chance ``late_ratio``.

    Of phases: each task is as long as that chance says, and the master's container is held as long as the
    job would take alone. ``tasks``: the most containers that it can use, of ``capacity``.
    """
    above = NormalDist().inv_cdf(1 - choices.late_ratio)
    phases = estimate.phases
    if phases is None or not phases.kinds:
        return Needed(max(1, math.ceil(estimate.mean_ms + above * estimate.stdev_ms)))
    each_ms = [max(1, math.ceil(each.mean_ms + above * each.stdev_ms)) for each in phases.kinds]
    task_work_ms = sum(each.tasks * long_ms for each, long_ms in zip(phases.kinds, each_ms, strict=True))
    latency_ms = phases.submit_ms + phases.master_ms + sum(each_ms)
    if capacity < 2:  # a master and a task do not fit: they are one
        return Needed(task_work_ms + latency_ms + task_work_ms, latency_ms, max(each_ms))
    beside = max(1, min(tasks, capacity) - 1)
    master_ms = latency_ms - (-task_work_ms // beside)
    return Needed(task_work_ms + master_ms, latency_ms, max(each_ms), master_ms)


class Priced(NamedTuple):
    """One job's deadlines: from ``earliest_ms`` on each has a price. ``job`` carries no deadline yet.

    ``needs`` is what it needs; its work is due ``needs.latency_ms`` before each of these deadlines.
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
        return self.work_due_ms(self.earliest_ms) if self.market.breaks(job) else due_at_ms


def priced(market: Market, who: str, estimate: Estimate, tasks: int, choices: MrmChoices) -> Priced | None:
    """Return what each deadline of a job costs; None if it fits at no time."""
    if market.capacity <= 0:
        return None
    needs = needed(estimate, tasks, market.capacity, choices)
    work_ms = needs.work_ms
    most = widest(tasks, needs.master_ms, market.capacity)
    tail_ms = needs.latency_ms if needs.master_ms else 0
    job = Due(who, work_ms, most, FOREVER_MS, needs.master_ms, tail_ms)
    prices = _prices(
        market.free, market.dues, market.now_ms, market.mean_ms, market.running, work_ms, choices.kappa
    )
    found_ms = earliest_due(market.free, market.dues, job, market.now_ms, market.tried)
    earliest_ms = max(found_ms, earliest_finish(prices.state, work_ms)) + needs.latency_ms
    if earliest_ms > market.now_ms + HORIZON_MS:
        return None
    return Priced(market, job, prices, earliest_ms, needs)


@lru_cache(maxsize=2)
def _prices(
    free_profile: Profile,
    dues: tuple[Due, ...],
    now_ms: int,
    mean_ms: float,
    running: frozenset[str],
    work_ms: int,
    kappa: float,
) -> Curve:
    """Return the prices of a job's deadlines; the last results are kept, for the round after a request."""
    return curve(standing(free_profile, dues, now_ms, mean_ms, running), work_ms, kappa)


def deadlines(priced: Priced, count: int) -> list[int]:
    """Return so many deadlines to show, from the earliest on, ever further apart."""
    earliest_ms = priced.earliest_ms
    unit_ms = max(UNIT_MIN_MS, (earliest_ms - priced.market.now_ms) // 4)
    last_ms = priced.market.now_ms + HORIZON_MS
    spread = [WIDEST ** (place / max(1, count - 2)) for place in range(count - 1)]
    return [earliest_ms, *(min(last_ms, earliest_ms + math.ceil(unit_ms * far)) for far in spread)]


def hold_market(memory: MrmMemory, choices: MrmChoices, seen: Seen) -> Round:
    """Promise or refuse to each in order of submission; each promise is paid before the next request.

    What is promised is submitted when its turn comes; until then its request waits.
    """
    plans, reserved = dict[int, Plan](), {each.request.sequence: each for each in seen.reserved}
    standing = _Standings(memory, choices, seen)
    balances = dict(seen.balances)
    for request in seen.waiting:
        if request.sequence in reserved:
            continue
        now = standing(reserved)
        plan, held = _decided(now, request, balances, choices)
        plans[request.sequence] = plan
        if held is not None and plan.price_mtokens is not None and request.budget is not None:
            balances[request.budget.account] -= plan.price_mtokens
            reserved[request.sequence] = held
    sold = {number: each.sold for number, each in reserved.items() if each.sold is not None}
    if sold:
        reserved = turns(reserved, standing, early_masters(seen.pools[0].capacity), seen.now_ms)
        plans |= planned(standing(reserved), reserved, sold)
    before = {each.request.sequence: each for each in seen.reserved}
    granted = tuple(each for number, each in reserved.items() if before.get(number) != each)
    return Round(tuple(plans[each.sequence] for each in seen.waiting), granted)


class _Standings:
    """Returns what is promised by reservations; of one round the last two are kept."""

    def __init__(self, memory: MrmMemory, choices: MrmChoices, seen: Seen) -> None:
        self._given = memory, choices, seen
        self._known = list[tuple[tuple[Reservation, ...], Market]]()

    def __call__(self, reserved: Mapping[int, Reservation]) -> Market:
        held = tuple(reserved.values())
        found = next((now for known, now in self._known if known == held), None)
        if found is None:
            memory, choices, seen = self._given
            found = market(memory, choices, seen._replace(reserved=held))
            self._known = [*self._known[-1:], (held, found)]
        return found


def _decided(
    market: Market, request: Request, balances: dict[str, int], choices: MrmChoices
) -> tuple[Plan, Reservation | None]:
    """Return the plan for one request, and what it is promised."""
    budget, who = request.budget, str(request.sequence)
    if budget is None or budget.account not in balances:
        account = "" if budget is None else budget.account
        return rejected(request, verdicts.NoAccount(account)), None
    if request.estimate is None:
        return rejected(request, verdicts.WorkUnknown()), None
    offered = priced(market, who, request.estimate, request.tasks, choices)
    if offered is None:
        return rejected(request, verdicts.DeadlineUnreachable()), None
    found = _agreed(offered, request, budget, balances[budget.account])
    if not isinstance(found, int):
        return rejected(request, found), None
    return _promise(offered, request, found, choices)


def _agreed(priced: Priced, request: Request, budget: Budget, balance: int) -> int | verdicts.PlanReason:
    """Return the deadline that is agreed and can be paid, or why there is none."""
    most = min(budget.most_mtokens, max(0, balance))
    deadline_at_ms = request.deadline_at_ms
    if deadline_at_ms is None:
        found_ms = priced.within(most)
        if found_ms is not None:
            return found_ms
        deadline_at_ms = priced.earliest_ms
    elif deadline_at_ms < priced.earliest_ms:
        return verdicts.TooEarly(priced.earliest_ms)
    price = priced.price_mtokens(deadline_at_ms)
    if price > budget.most_mtokens:
        return verdicts.CostsMore(price, deadline_at_ms, budget.most_mtokens, priced.within(most))
    return deadline_at_ms if price <= balance else verdicts.CannotPay(price, deadline_at_ms, balance)


def _promise(
    priced: Priced, request: Request, deadline_at_ms: int, choices: MrmChoices
) -> tuple[Plan, Reservation]:
    now, job = priced.market, priced.job
    serve_by_ms = priced.serve_by_ms(deadline_at_ms)
    dues: Sequence[Due] = (*now.dues, job._replace(due_at_ms=serve_by_ms))
    price = priced.price_mtokens(deadline_at_ms)
    plan = Plan(
        sequence=request.sequence,
        verdict="admit",
        containers=job.most,
        deadline_at_ms=deadline_at_ms,
        reason=verdicts.PaidFor(price),
        start_at_ms=now.now_ms,
        finish_at_ms=schedule(now.free, dues, now.now_ms).end_ms[job.who] + priced.needs.latency_ms,
        price_mtokens=price,
        late_ratio=choices.late_ratio,
        because=priced.because(deadline_at_ms),
    )
    needs = priced.needs
    claim = DueClaim(
        job.work_ms, job.most, now.now_ms, serve_by_ms, needs.latency_ms, needs.task_ms, needs.master_ms
    )
    ratio = job.most / min(request.tasks, now.capacity)
    return plan, Reservation(request, claim, ratio, FOREVER_MS, sold=plan)
