"""What a deadline costs: MRM's prices as pure functions, and the earliest deadline within a budget.

A :class:`Standing` has the promises at one instant; prices are in milli-tokens (1 milli-token buys 1
container-ms) before they are rounded up. Eq 13 is read as the difference of one potential. With F(t) the
container-ms that are free until t beside all work, laid late, and m the mean estimated work of a job,

    Phi(S) = sum over i in S of p_i / (F(d_i) / m + 1),    price = kappa * (Phi(S with j) - Phi(S)).

It is the paper's formula: what is free between the earliest finish of j and its deadline before j is laid is
what is free until its deadline after. F counts all containers, whichever jobs could use them (how many one
job can use decides feasibility, in :mod:`yarnctl.deciding.admission.pricing.timeline`); therefore F(d_i) is
the least of supply(d_k) - work due until d_k over all k >= i, and laying j with deadline d subtracts p_j from
F(d_i) where d_i >= d, and sets it to min(F(d_i), F(d) - p_j) elsewhere.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable
from itertools import accumulate
from typing import NamedTuple

from yarnctl.deciding.admission.capacity import FOREVER_MS, Profile
from yarnctl.deciding.admission.pricing.timeline import Due, Supply, by_deadline, supply

ITSELF = "itself"
"""The name in ``because`` of the job that pays for its own slack."""


class Standing(NamedTuple):
    """The promises at ``now_ms``, in the order of deadlines, with what follows for prices.

    ``behind_ms[k]`` is the work due before rank k; ``free_ms[k]`` is F(d_k), and ``ahead_ms[k]`` the most
    that F can be for a deadline in front of rank k. ``weights_ms`` are the p_i of Eq 13, 0 for jobs that are
    not in Q. ``mean_ms`` is m.
    """

    now_ms: int
    mean_ms: float
    supply: Supply
    who: tuple[str, ...]
    due_at_ms: tuple[int, ...]
    weights_ms: tuple[int, ...]
    behind_ms: tuple[int, ...]
    free_ms: tuple[int, ...]
    ahead_ms: tuple[int, ...]

    def place(self, deadline_at_ms: int) -> int:
        """Return how many are served before a new job with that deadline."""
        return bisect_right(self.due_at_ms, deadline_at_ms)

    def slack_ms(self, work_ms: int, deadline_at_ms: int) -> int:
        """Return what is free until the deadline of a new job once it is laid; below 0: it does not fit."""
        place = self.place(deadline_at_ms)
        own_ms = self.supply.until(deadline_at_ms) - self.behind_ms[place]
        return min(own_ms, self.ahead_ms[place]) - work_ms


def standing(
    profile: Profile, dues: Iterable[Due], now_ms: int, mean_ms: float, without: Collection[str] = ()
) -> Standing:
    """Return the promises; ``without`` names the jobs that are not in Q (those that run, in our reading)."""
    ordered = by_deadline(dues)
    given = supply(profile, now_ms)
    behind_ms = tuple(accumulate((due.work_ms for due in ordered), initial=0))
    ahead_ms = [FOREVER_MS]
    for place in range(len(ordered) - 1, -1, -1):
        own_ms = given.until(ordered[place].due_at_ms) - behind_ms[place + 1]
        ahead_ms.append(min(ahead_ms[-1], own_ms))
    ahead_ms.reverse()
    return Standing(
        now_ms,
        mean_ms,
        given,
        tuple(due.who for due in ordered),
        tuple(due.due_at_ms for due in ordered),
        tuple(0 if due.who in without else due.work_ms for due in ordered),
        behind_ms,
        tuple(max(0, each) for each in ahead_ms[:-1]),
        tuple(ahead_ms),
    )


class Curve(NamedTuple):
    """Eq 13 for one job at any deadline, without going through all promises for each.

    ``weight[k]`` and ``owed[k]`` are sums of p_i and of p_i / (F(d_i) / m + 1) before rank k;
    ``lost[k]`` is what those from rank k on lose if the job is served before them; ``losses``: which job
    loses how much, those of rank k and behind from ``first_loss[k]`` on.
    """

    state: Standing
    work_ms: int
    kappa: float
    weight: tuple[int, ...]
    owed: tuple[float, ...]
    lost: tuple[float, ...]
    losses: tuple[tuple[str, float], ...]
    first_loss: tuple[int, ...]

    def because(self, deadline_at_ms: int) -> tuple[tuple[str, float], ...]:
        """Return the terms of a deadline's price, the job itself, then the jobs whose slack becomes less."""
        state, mean = self.state, self.state.mean_ms
        slack_ms = max(0, state.slack_ms(self.work_ms, deadline_at_ms))
        place = state.place(deadline_at_ms)
        terms = [(ITSELF, self.kappa * (self.work_ms / (slack_ms / mean + 1)))]
        for each in range(min(place, bisect_right(state.free_ms, slack_ms)), place):
            weight = state.weights_ms[each]
            if weight:
                change = weight / (slack_ms / mean + 1) - weight / (state.free_ms[each] / mean + 1)
                terms.append((state.who[each], self.kappa * change))
        return (*terms, *self.losses[self.first_loss[place] :])

    def price(self, deadline_at_ms: int) -> float:
        """Return the price of a deadline."""
        slack_ms = max(0, self.state.slack_ms(self.work_ms, deadline_at_ms))
        return self.priced(self.state.place(deadline_at_ms), slack_ms)

    def priced(self, place: int, slack_ms: float) -> float:
        """Return the price at a rank with a slack: Eq 13 with the terms of others summed up."""
        first = min(place, bisect_right(self.state.free_ms, slack_ms))
        weight = self.work_ms + (self.weight[place] - self.weight[first])
        owed = self.owed[place] - self.owed[first]
        return self.kappa * (weight / (slack_ms / self.state.mean_ms + 1) - owed + self.lost[place])


def curve(standing: Standing, work_ms: int, kappa: float = 1.0) -> Curve:
    """Return the price curve of a job."""
    mean = standing.mean_ms
    lost, losses, first_loss = [0.0], list[tuple[str, float]](), [0]
    shares = [
        weight / (free / mean + 1) for weight, free in zip(standing.weights_ms, standing.free_ms, strict=True)
    ]
    owed = list(accumulate(shares, initial=0.0))
    for place in range(len(standing.who) - 1, -1, -1):
        weight, free = standing.weights_ms[place], standing.free_ms[place]
        after = free - work_ms if free > work_ms else 0
        change = weight / (after / mean + 1) - shares[place]
        lost.append(lost[-1] + change)
        if weight and after < free:
            losses.append((standing.who[place], kappa * change))
        first_loss.append(len(losses))
    weights = tuple(accumulate(standing.weights_ms, initial=0))
    return Curve(
        standing,
        work_ms,
        kappa,
        weights,
        tuple(owed),
        tuple(reversed(lost)),
        tuple(reversed(losses)),
        tuple(len(losses) - each for each in reversed(first_loss)),
    )


class Point(NamedTuple):
    """One deadline: its instant, its price, and the slack that it leaves (container-ms)."""

    deadline_at_ms: int
    price: float
    slack_ms: int


def first_place(standing: Standing, work_ms: int) -> int:
    """Return the rank of a job with its earliest deadline: behind the last that cannot spare its work."""
    place = len(standing.due_at_ms)
    while place and standing.ahead_ms[place - 1] >= work_ms:
        place -= 1
    # ahead_ms rises with the rank: the last that is less than the work is the one before.
    return place


def earliest_finish(standing: Standing, work_ms: int) -> int:
    """Return the earliest deadline that breaks no promise (all containers usable)."""
    return standing.supply.when(standing.behind_ms[first_place(standing, work_ms)] + work_ms)


def within(curve: Curve, budget: float) -> Point:
    """Return the earliest deadline that costs at most ``budget`` (above 0).

    Between two promises the price falls with the slack and nothing else, so it is solved for the slack;
    the ranks are tried in the order of deadlines. Behind all promises enough slack makes any price above 0;
    FOREVER_MS is used for instants beyond any clock.
    """
    state, last = curve.state, len(curve.state.due_at_ms)
    for place in range(first_place(state, curve.work_ms), last + 1):
        done_ms = state.behind_ms[place] + curve.work_ms
        most_ms = state.ahead_ms[place] - curve.work_ms
        least_ms = 0
        if place:
            least_ms = max(0, state.supply.until(state.due_at_ms[place - 1]) - done_ms)
        slack_ms = _slack_for(curve, place, min(least_ms, most_ms), budget / curve.kappa)
        if slack_ms <= most_ms:
            deadline_at_ms = state.supply.when(done_ms + slack_ms)
            return Point(deadline_at_ms, curve.priced(place, slack_ms), slack_ms)
    return Point(FOREVER_MS, 0.0, FOREVER_MS)


def _slack_for(curve: Curve, place: int, least_ms: int, budget: float) -> int:
    """Return the least slack from ``least_ms`` on with which this rank costs at most ``budget``."""
    state, slack_ms = curve.state, least_ms
    first = min(place, bisect_right(state.free_ms, slack_ms))
    while True:
        weight = curve.work_ms + (curve.weight[place] - curve.weight[first])
        rest = budget + (curve.owed[place] - curve.owed[first]) - curve.lost[place]
        if rest > 0:
            needed = (weight / rest - 1) * state.mean_ms
            found = max(slack_ms, math.ceil(needed))
            if first == place or found <= state.free_ms[first]:
                return found
        elif first == place:
            return FOREVER_MS
        slack_ms = state.free_ms[first]
        first += 1
