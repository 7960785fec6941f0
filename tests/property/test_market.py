"""What must hold of a market in every state; each law is seen red with a planted bug.

The laws are functions of a seed; a planted bug replaces one function of the product, and the law
that should notice must fail on the same seeds.
"""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from yarn_research.market import price_functions
from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Profile, profile
from yarnctl.deciding.admission.pricing import prices, timeline
from yarnctl.deciding.admission.pricing.timeline import Due

SEEDS = range(150)
CLOSE = 1e-9


def drawn(seed: int, capacity: int | None = None):
    """Draw fixed load and promises, each made as the gate makes one: at a feasible deadline."""
    chance = random.Random(seed)
    capacity = capacity or chance.choice((1, 1, 2, 5))
    loads = [
        Load(f"x{each}", chance.randint(0, capacity), begin := chance.randint(0, 400), begin + 90)
        for each in range(chance.choice((0, 0, 2)))
    ]
    free = profile(capacity, loads) if capacity > 1 else Profile((0,), (1,))
    dues: list[Due] = []
    for each in range(chance.randint(0, 9)):
        job = Due(f"j{each}", chance.randint(1, 120), chance.randint(1, capacity), 0)
        due_ms = timeline.earliest_due(free, dues, job, 0) + chance.choice((0, 0, 7, 60, 300))
        if not timeline.broken(free, [*dues, job._replace(due_at_ms=due_ms)], 0):
            dues.append(job._replace(due_at_ms=due_ms))
    return chance, free, dues


def state_of(free, dues, chance):
    return prices.standing(free, dues, 0, chance.randint(20, 90), [dues[0].who] if dues else ())


def never_rises(seed: int) -> None:
    chance, free, dues = drawn(seed)
    state = state_of(free, dues, chance)
    work_ms = chance.randint(1, 150)
    from_ms = prices.earliest_finish(state, work_ms)
    told = prices.curve(state, work_ms, 2.0)
    paid = [told.price(at) for at in range(from_ms, from_ms + 800)]
    assert all(later <= sooner * (1 + CLOSE) for sooner, later in pairwise(paid))
    assert min(paid) >= 0


def terms_are_the_potential(seed: int) -> None:
    """Eq 13 as a sum, as a curve and as Phi(S with j) - Phi(S) are one number; no term is below 0."""
    chance, free, dues = drawn(seed)
    state = prices.standing(free, dues, 0, 50)
    work_ms = chance.randint(1, 150)
    at_ms = prices.earliest_finish(state, work_ms) + chance.choice((0, 1, 40, 300))
    after = prices.standing(free, [*dues, Due("new", work_ms, 1, at_ms)], 0, 50)
    terms = price_functions.because(state, price_functions.Offered(work_ms, at_ms))
    assert prices.curve(state, work_ms).because(at_ms) == terms
    change = price_functions.potential(after) - price_functions.potential(state)
    assert math.fsum(each for _, each in terms) == pytest.approx(change, rel=CLOSE, abs=CLOSE)
    assert prices.curve(state, work_ms).price(at_ms) == pytest.approx(change, rel=CLOSE, abs=CLOSE)
    assert all(each >= 0 for _, each in terms)


def splitting_pays_the_same(seed: int) -> None:
    chance, free, dues = drawn(seed)
    state = prices.standing(free, dues, 0, 50)
    first_ms, second_ms = chance.randint(1, 90), chance.randint(1, 90)
    at_ms = prices.earliest_finish(state, first_ms + second_ms) + chance.choice((0, 1, 40, 300))
    whole = price_functions.slack(state, price_functions.Offered(first_ms + second_ms, at_ms))
    half = price_functions.slack(state, price_functions.Offered(first_ms, at_ms))
    then = prices.standing(free, [*dues, Due("half", first_ms, 1, at_ms)], 0, 50)
    rest = price_functions.slack(then, price_functions.Offered(second_ms, at_ms))
    assert half + rest == pytest.approx(whole, rel=CLOSE)


def promises_stay_feasible(seed: int) -> None:
    """After each admission nobody is late, and on one server no sooner deadline would do."""
    chance, free, dues = drawn(seed)
    assert timeline.broken(free, dues, 0) == ()
    job = Due("new", chance.randint(1, 150), chance.randint(1, 3), 0)
    due_ms = timeline.earliest_due(free, dues, job, 0)
    assert timeline.broken(free, [*dues, job._replace(due_at_ms=due_ms)], 0) == ()
    if max(free.free) == 1:
        assert timeline.broken(free, [*dues, job._replace(due_at_ms=due_ms - 1)], 0) != ()
        assert due_ms == prices.earliest_finish(prices.standing(free, dues, 0, 50), job.work_ms)


def less_work_makes_nobody_later(seed: int) -> None:
    """No anomaly of parallel machines: over-estimated work delays no one, and keeps no promise broken."""
    chance, free, dues = drawn(seed)
    lighter = [due._replace(work_ms=chance.randint(0, due.work_ms)) for due in dues]
    before, after = timeline.served(free, dues, 0), timeline.served(free, lighter, 0)
    assert all(after[who] <= before[who] for who in before)


def laying_fills_what_is_left_of_the_supply(seed: int) -> None:
    """On one server the free time until each deadline is what the price reckons with."""
    _, free, dues = drawn(seed, capacity=1)
    laid = timeline.laid_late(free, dues)
    assert laid.short == ()
    state = prices.standing(free, dues, 0, 50)
    left = timeline.supply(laid.free, 0)
    assert [left.until(at) for at in state.due_at_ms] == list(state.free_ms)


def budget_buys_the_earliest(seed: int) -> None:
    """What ``within`` returns costs no more than the budget, and a millisecond sooner costs more."""
    chance, free, dues = drawn(seed)
    state = state_of(free, dues, chance)
    work_ms = chance.randint(1, 150)
    told = prices.curve(state, work_ms, 2.0)
    budget = work_ms * chance.choice((0.3, 1.0, 1.5, 2.0, 9.0))
    found = prices.within(told, budget)
    from_ms = prices.earliest_finish(state, work_ms)
    assert from_ms <= found.deadline_at_ms < FOREVER_MS
    assert told.price(found.deadline_at_ms) <= budget * (1 + CLOSE)
    if found.deadline_at_ms > from_ms:
        assert told.price(found.deadline_at_ms - 1) > budget * (1 - CLOSE)


def steps_are_milliseconds(seed: int) -> None:
    """Laying and serving in steps is what it is millisecond by millisecond."""
    chance = random.Random(seed)
    capacity, horizon_ms = chance.choice((1, 2, 4)), 90
    loads = [
        Load("x", chance.randint(0, capacity), begin := chance.randint(0, 20), begin + chance.randint(1, 15))
        for _ in range(chance.randint(0, 3))
    ]
    steps = timeline._Steps(profile(capacity, loads))
    dense = [profile(capacity, loads).free_at(at) for at in range(horizon_ms)]
    for _ in range(chance.randint(1, 5)):
        due = Due("a", chance.randint(0, 40), chance.randint(1, 5), chance.randint(0, 45))
        late = chance.random() < 0.5
        left = due.work_ms
        for at in range(due.due_at_ms - 1, -1, -1) if late else range(horizon_ms):
            taken = max(0, min(due.most, dense[at], left))
            dense[at] -= taken
            left -= taken
        found = steps.lay(due) if late else steps.serve(due)
        assert found == left or not late
        assert [
            Profile(tuple(steps.at_ms), tuple(steps.free)).free_at(at) for at in range(horizon_ms)
        ] == dense
        assert all(left < right for left, right in pairwise(steps.at_ms))


LAWS = {
    each.__name__: each
    for each in (never_rises, terms_are_the_potential, splitting_pays_the_same, promises_stay_feasible,
        less_work_makes_nobody_later, steps_are_milliseconds, laying_fills_what_is_left_of_the_supply,
        budget_buys_the_earliest)
}  # fmt: skip


def _all_seeds(law: str) -> None:
    for seed in SEEDS:
        LAWS[law](seed)


@pytest.mark.parametrize("law", LAWS)
def test_laws_hold(law):
    _all_seeds(law)


def _plant(monkeypatch, bug: str) -> None:
    standing, because, lay = prices.standing, price_functions.because, timeline._Steps.lay
    priced, first_place, slack_for = prices.Curve.priced, prices.first_place, prices._slack_for

    def own_only(*given, **named):
        found = standing(*given, **named)
        behind = zip(found.due_at_ms, found.behind_ms[1:], strict=True)
        own = [found.supply.until(at) - work for at, work in behind]
        return found._replace(free_ms=tuple(max(0, each) for each in own))

    def all_pay_the_work(state, offered):
        return [
            (who, each) if who == prices.ITSELF else (who, -each) for who, each in because(state, offered)
        ]

    bugs = {
        "free time looks at its own deadline only": (prices, "standing", own_only),
        "who is behind is paid instead of paying": (price_functions, "because", all_pay_the_work),
        "the price rises with slack": (prices.Curve, "priced",
            lambda self, place, slack: priced(self, place, 1000 / (slack + 1))),
        "a job pays by the square of its work": (price_functions, "because",
            lambda state, offered: [(who, each * offered.work_ms) for who, each in because(state, offered)]),
        "the earliest place is one too far in front": (prices, "first_place",
            lambda state, work: max(0, first_place(state, work) - 1)),
        "the slack for a budget is one millisecond short": (prices, "_slack_for",
            lambda *given: max(0, slack_for(*given) - 1)),
        "work is laid past its deadline": (timeline._Steps, "lay",
            lambda self, due: lay(self, due._replace(due_at_ms=due.due_at_ms + 5))),
        "the rest of a division is dropped": (timeline._Steps, "lay",
            lambda self, due: lay(self, due._replace(work_ms=due.work_ms // due.most * due.most))),
        "the promises of others are not asked for": (timeline, "judged", lambda *_: (0, False)),
    }  # fmt: skip
    monkeypatch.setattr(*bugs[bug])


@pytest.mark.parametrize(
    ("bug", "law"),
    [
        ("free time looks at its own deadline only", "laying_fills_what_is_left_of_the_supply"),
        ("who is behind is paid instead of paying", "terms_are_the_potential"),
        ("the price rises with slack", "never_rises"),
        ("a job pays by the square of its work", "splitting_pays_the_same"),
        ("the earliest place is one too far in front", "promises_stay_feasible"),
        ("the slack for a budget is one millisecond short", "budget_buys_the_earliest"),
        ("the rest of a division is dropped", "steps_are_milliseconds"),
        ("work is laid past its deadline", "laying_fills_what_is_left_of_the_supply"),
    ],
)
def test_planted_bugs_are_seen(monkeypatch, bug, law):
    _plant(monkeypatch, bug)
    with pytest.raises(AssertionError):
        _all_seeds(law)


def test_a_gate_that_does_not_ask_about_others_is_seen(monkeypatch):
    """The planted bug is in the gate alone; the law asks with the function as it is."""
    asked = timeline.broken
    _plant(monkeypatch, "the promises of others are not asked for")
    monkeypatch.setattr(timeline, "broken", lambda *_: ())  # what is drawn is not looked at again
    found = [drawn(seed, capacity=5) for seed in SEEDS]
    assert any(asked(free, dues, 0) for _, free, dues in found)


def test_prices_of_the_slack_formula_do_not_depend_on_who_could_use_the_containers():
    wide, narrow = Due("a", 100, 5, 90), Due("a", 100, 1, 90)
    free = Profile((0,), (5,))
    offered = price_functions.Offered(40, 60)
    told = [price_functions.slack(prices.standing(free, [each], 0, 50), offered) for each in (wide, narrow)]
    assert told[0] == told[1]
