"""The jobs of the market's benchmark, and how it is judged: small tables by hand."""

from __future__ import annotations

import pytest

from yarn_research.campaigns.admission_set import Kind
from yarn_research.campaigns.market_set import (
    SCHEMES,
    Figures,
    MarketMix,
    Outcome,
    arrivals,
    claims,
    figures,
    order_of,
    work_s,
)

KINDS = (Kind("short", 4, 1.0, 2, 3.0), Kind("long", 8, 2.0, 4, 6.0))


def test_half_of_each_kinds_users_cannot_wait_and_a_round_follows_from_its_seed() -> None:
    mix = MarketMix(KINDS, 12, 24, 0.8, 1)
    jobs = arrivals(mix)
    assert jobs == arrivals(mix)
    assert jobs != arrivals(mix._replace(seed=2))
    counted = {
        (kind.name, sensitive): sum((each.kind, each.sensitive) == (kind, sensitive) for each in jobs)
        for kind in KINDS
        for sensitive in (True, False)
    }
    assert set(counted.values()) == {6}
    assert jobs[0].at_s == 0.0
    assert [each.at_s for each in jobs] == sorted(each.at_s for each in jobs)
    assert len({each.name for each in jobs}) == 24


def test_gaps_offer_the_load_on_average() -> None:
    """10 and 40 container-s a job: 25 on average; 12 containers at .8 compute that in 2.604 s."""
    assert [work_s(kind) for kind in KINDS] == [10.0, 40.0]
    jobs = arrivals(MarketMix(KINDS, 12, 4000, 0.8, 1))
    assert jobs[-1].at_s / 3999 == pytest.approx(25 / 9.6, rel=0.05)


def test_the_load_counts_what_a_job_held_alone() -> None:
    """Master and starting included: 15 and 45 container-s where the tasks have 10 and 40."""
    held_s = {kind.name: work_s(kind) + 5.0 for kind in KINDS}
    jobs = arrivals(MarketMix(KINDS, 12, 4000, 0.8, 1, held_s))
    assert jobs[-1].at_s / 3999 == pytest.approx(30 / 9.6, rel=0.05)


def test_each_scheme_comes_first_once_in_three_rounds() -> None:
    assert [order_of(number)[0] for number in range(3)] == list(SCHEMES)
    assert all(sorted(order_of(number)) == sorted(SCHEMES) for number in range(3))


def outcome(name: str, sensitive: bool, ended_s: float | None, deadline_s: float | None = None) -> Outcome:
    return Outcome(
        name,
        "short",
        sensitive,
        1_000,
        None if ended_s is None else 1_000 + round(ended_s * 1000),
        "SUCCEEDED" if ended_s is not None else "KILLED",
        None if deadline_s is None else 1_000 + round(deadline_s * 1000),
    )


def test_both_runs_are_judged_by_the_deadlines_that_were_sold() -> None:
    sold = [
        outcome("short-1", True, 12, 15),
        outcome("short-2", True, 14, 13),
        outcome("short-3", False, 40, 60),
        outcome("short-4", False, None, 60),
        outcome("short-5", False, 20),
    ]
    plain = [
        outcome("short-1", True, 16),
        outcome("short-2", True, 13),
        outcome("short-3", False, 61),
        outcome("short-4", False, 10),
        outcome("short-5", False, 20),
    ]
    assert figures(sold, sold, {"short": 10_000}) == Figures(3.0, 20.0, 1, 1, 4, 2, 1, 1)
    assert figures(plain, sold, {"short": 10_000}) == Figures(4.5, 10.0, 1, 1, 4, 2, 1, 0)


GOOD = {
    "fifo": Figures(20.0, 20.0, 4, 2, 20, 14, 0, 0),
    "priority": Figures(4.0, 30.0, 1, 6, 20, 13, 0, 0),
    "mrm": Figures(5.0, 24.0, 1, 0, 20, 19, 0, 0),
}
JUDGED = [
    ({}, "", "all holds"),
    ({"mrm": Figures(5.0, 24.0, 2, 0, 20, 18, 0, 0)}, "promises_kept", "90 % of promises"),
    ({"fifo": Figures(5.0, 20.0, 4, 2, 20, 14, 0, 0)}, "sensitive_sooner_than_fifo", "as long as under FIFO"),
    (
        {"priority": Figures(4.0, 30.0, 1, 0, 20, 19, 0, 0)},
        "tolerant_less_late_than_priority",
        "as many late",
    ),
    ({"priority": Figures(4.0, 30.0, 1, 6, 20, 13, 0, 1)}, "none_killed", "one did not succeed"),
]


@pytest.mark.parametrize(("worse", "broken", "claim"), JUDGED, ids=[row[2] for row in JUDGED])
def test_each_claim_is_judged_by_its_rule(worse: dict[str, Figures], broken: str, claim: str) -> None:
    found = claims([{**GOOD, **worse}])  # type: ignore[dict-item]
    assert found.holds is (not broken)
    parts = {
        name: getattr(found, name)
        for name in (
            "promises_kept",
            "sensitive_sooner_than_fifo",
            "tolerant_less_late_than_priority",
            "none_killed",
        )
    }
    assert [name for name, holds in parts.items() if not holds] == ([broken] if broken else [])


def test_nothing_played_is_nothing_claimed() -> None:
    assert not claims([]).holds
