"""MRM's models: prices of slots against every pattern of arrivals, bounds and fits by other ways."""

from __future__ import annotations

import math

import numpy as np
import pytest

from yarn_research.market import bounds, slot_runs, slots
from yarn_research.market import queueing_theory as queues
from yarn_research.market.price_functions import PRICES, Offered
from yarn_research.market.priced_jobs import ONE_SIDED_95
from yarnctl.deciding.admission.capacity import Profile
from yarnctl.deciding.admission.pricing.prices import standing
from yarnctl.deciding.admission.pricing.timeline import Due


@pytest.mark.parametrize("p", [0.1, 0.3, 0.8])
def test_eq_11_is_brute_force(p):
    assert slots.worst_difference(7, p) < 1e-12


def test_a_wrong_end_of_eq_11_is_seen(monkeypatch):
    """The planted bug: who waits is counted strictly in both sums."""
    price = slots._price
    monkeypatch.setattr(slots, "_price", lambda capacity, overflow, p: price(capacity, overflow, p) * (1 - p))
    assert slots.worst_difference(4, 0.3) > 1e-3


def test_a_taken_slot_costs_what_the_empty_one_before_it_costs():
    told = slots.prices([False, True, True, False, True], 0.3)
    assert told[1] == told[2] == told[0]
    assert told[4] == told[3] < told[0]
    assert slots.prices([True, False], 0.3)[0] == math.inf


def test_the_search_for_a_cheap_slot_by_brute_force():
    for p, c in ((0.2, 0.05), (0.3, 0.1), (0.5, 0.4)):
        played = slots.brute_force(7, p)
        for taken in range(1 << 5):
            cheap = [slot for slot in range(7) if not taken >> slot & 1 and played[taken][slot] <= c]
            found = slot_runs.cheap_enough(taken, p, c)
            assert found == cheap[0] if cheap else found >= 7


def test_a_run_of_slots_is_played_as_lists():
    rate, p, c, count = 0.4, 0.4, 0.2, 300
    chance = np.random.default_rng([3, 5])
    tolerant, sensitive = chance.poisson(rate, count), chance.random(count) < p
    taken, rejected, slack = [False] * 90, 0, []
    for arrived, comes in zip(tolerant, sensitive, strict=True):
        for _ in range(arrived):
            told = slots.prices(taken[:60], p)
            found = next(slot for slot, price in enumerate(told) if price <= c and not taken[slot])
            slack.append(found - taken.index(False))
            taken[found] = True
        if comes:
            rejected += taken[0]
        elif True in taken:
            taken[taken.index(True)] = False
        taken = [*taken[1:], False]
    found = slot_runs.run(rate, p, c, count, 3)
    assert rejected > 0
    assert found == (rejected / sensitive.sum(), sum(slack) / len(slack))


def test_who_can_pay_for_the_first_slot_gives_no_slack():
    assert slot_runs.run(0.4, 0.3, 0.3, 2000, 0).slack_slots == 0


@pytest.mark.parametrize("stages", [1, 2, 7])
def test_erlang_by_drawing(stages):
    drawn = np.random.default_rng(1).exponential(1, (200_000, stages)).sum(axis=1)
    x = queues.erlang_bound(stages, 0.05)
    assert (drawn > x).mean() == pytest.approx(0.05, abs=0.002)
    assert queues.erlang_earliness(stages, 0.05) == pytest.approx((x - drawn[drawn <= x]).mean(), rel=0.01)


def test_tandem_by_drawing():
    chance = np.random.default_rng(2)
    first, second = 1 - 0.8, 1 - 0.23 * 0.8
    drawn = chance.exponential(1 / first, 400_000) + chance.exponential(1 / second, 400_000)
    x = np.quantile(drawn, 0.95)
    assert queues.fixed_tandem(0.8, 0.05, 0.23) == pytest.approx((x - drawn[drawn <= x]).mean(), rel=0.02)


def by_the_hour(arrived, durations, means, stdevs):
    """Return who is late and how early, by going through the jobs one after the other."""
    ends: list[float] = []
    late = []
    for job, at in enumerate(arrived):
        ahead = [other for other in range(job) if ends[other] > at]
        began = ends[ahead[0]] - durations[ahead[0]] if ahead else at
        left = [means[each] + ONE_SIDED_95 * stdevs[each] for each in ahead]
        if left:
            left[0] = max(0.0, left[0] - (at - began))
        deadline = at + sum(left) + means[job] + ONE_SIDED_95 * stdevs[job]
        ends.append(max(at, ends[-1] if ends else 0.0) + durations[job])
        late.append(ends[-1] > deadline + 1e-9)
    return sum(late) / len(late)


def test_bounds_in_arrays_are_bounds_job_by_job():
    chance = np.random.default_rng(3)
    arrived = np.cumsum(chance.exponential(1.3, 400))
    durations = np.maximum(0.0, chance.normal(1, 0.4, 400))
    means, stdevs = chance.uniform(0.8, 1.2, 400), chance.uniform(0.1, 0.5, 400)
    found = bounds.kept(arrived, durations, means, stdevs)
    assert found.pi.late_ratio == by_the_hour(arrived, durations, means, stdevs)


def test_prices_of_equations_14_to_16_by_hand():
    one = Profile((0,), (1,))
    fig_7 = standing(one, (Due("A", 10_000, 1, 70_000), Due("B", 20_000, 1, 110_000)), 0, 30_000)
    offered = Offered(20_000, 140_000, kappa=2)  # slack 140 - 30 - 20 = 90 s
    assert PRICES["exponential"](fig_7, offered) == 20_000  # 2 e^-4.5 is less than the least
    near = Offered(20_000, 20_000, kappa=2)
    empty = standing(one, (), 0, 30_000)
    assert PRICES["exponential"](empty, near) == PRICES["quadratic"](empty, near) == 40_000
    assert PRICES["load"](empty, near) == pytest.approx(20_000 * 2.718281828 ** (2 / 3))
    assert PRICES["load"](empty, Offered(20_000, 40_000)) == 20_000
