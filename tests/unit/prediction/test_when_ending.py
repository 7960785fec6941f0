"""Intervals of starts and ends: which rows count, their ranks, what time leaves of them, and the aim."""

from __future__ import annotations

import random

import pytest

from tests.thoroughness import more
from yarnctl.prediction.when_ending import (
    LEFT_LEAST,
    MISS_RATIO,
    NEAREST,
    RECURRING_LEAST,
    Aim,
    Foreteller,
    Interval,
    Known,
)

QUEUE = "root.q"


def known(number: float = 0.0, job: str = "u/any") -> Known:
    return Known(QUEUE, job, (number,))


def learned(spans: dict[float, list[int]], job: str = "u/any") -> Foreteller:
    foreteller = Foreteller()
    for number, found in spans.items():
        for span_ms in found:
            foreteller.learn(known(number, job), "requested", "end", span_ms)
    return foreteller


def interval(foreteller: Foreteller, of: Known, passed_ms: int = 0) -> Interval | None:
    spans = foreteller.nearest(of, "requested", "end")
    return foreteller.interval(of, "end", spans, passed_ms)


def test_interval_has_the_conformal_ranks_of_the_nearest_rows() -> None:
    near, far = list(range(1, NEAREST + 1)), [10_000] * 50
    found = interval(learned({0.0: near, 9.0: far}), known(0.1))
    assert found == Interval(3, 31, 58, NEAREST)  # ranks 61 x 0.05 down and 61 x 0.95 up


def test_too_few_rows_foretell_nothing() -> None:
    assert interval(learned({0.0: [5] * (LEFT_LEAST - 1)}), known()) is None
    assert interval(learned({0.0: [5] * LEFT_LEAST}), known()) is not None


def test_runs_of_the_same_name_count_alone_once_there_are_enough() -> None:
    foreteller = learned({0.0: [1_000] * 50})
    for _ in range(RECURRING_LEAST):
        foreteller.learn(known(5.0, "ann/daily-"), "requested", "end", 7)
    found = interval(foreteller, known(0.0, "ann/daily-"))
    assert found is not None
    assert (found.middle_ms, found.rows) == (7, RECURRING_LEAST)


def test_time_that_has_passed_leaves_the_longer_rows() -> None:
    foreteller = learned({0.0: [10] * 30 + [100] * 30})
    first, later = interval(foreteller, known()), interval(foreteller, known(), passed_ms=10)
    assert first is not None
    assert later is not None
    assert first.least_ms == 10
    assert (later.least_ms, later.most_ms, later.rows) == (100, 100, 30) or later.rows == 30
    assert later.least_ms >= 10
    assert interval(foreteller, known(), passed_ms=100) is None


def test_aim_follows_what_was_missed() -> None:
    aim = Aim()
    for _ in range(20):
        aim.judge(missed=True)
    assert aim.miss_ratio < MISS_RATIO
    for _ in range(400):
        aim.judge(missed=False)
    assert aim.miss_ratio > MISS_RATIO


@pytest.mark.parametrize("drift", [4.0, *more((0.0,))])
def test_nine_of_ten_ends_are_inside_also_where_the_cluster_drifts(drift: float) -> None:
    chance, foreteller = random.Random(1), Foreteller()
    inside = judged = 0
    for number in range(3_000):
        of = known(chance.uniform(0, 5))
        span_ms = round(
            1_000 * (1 + of.numbers[0]) * chance.lognormvariate(0, 0.5) * (1 + drift * number / 3_000)
        )
        found = interval(foreteller, of)
        if found is not None and number > 300:
            judged += 1
            inside += found.least_ms <= span_ms <= found.most_ms
        if found is not None:
            foreteller.judge(of, "end", found, span_ms)
        foreteller.learn(of, "requested", "end", span_ms)
    assert 0.87 <= inside / judged <= 0.93
