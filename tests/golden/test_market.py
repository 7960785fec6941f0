"""MRM's own example (Fig 7) and small states that are worked out by hand.

Claim under the table of Fig 7: its text says that A and B need 16 and 32 s and start by 10 and 30; its
picture, with gaps [0, 60], [70, 90] and from 110 on, is that of 10 and 20 s that start by 60 and 90.
"""

from __future__ import annotations

import pytest

from yarn_research.market.price_functions import Offered, because
from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Profile, profile
from yarnctl.deciding.admission.pricing.prices import ITSELF, curve, earliest_finish, standing, within
from yarnctl.deciding.admission.pricing.timeline import (
    Due,
    Laid,
    broken,
    earliest,
    earliest_due,
    laid_late,
    served,
    supply,
)

ONE = Profile((0,), (1,))
FIG_7 = (Due("A", 10_000, 1, 70_000), Due("B", 20_000, 1, 110_000))


def test_fig_7_a_laid_late():
    laid = laid_late(ONE, FIG_7)
    assert laid == Laid(Profile((0, 60_000, 70_000, 90_000, 110_000), (1, 0, 1, 0, 1)), ())


@pytest.mark.parametrize(("work_s", "finish_s"), [(80, 90), (100, 130), (60, 60), (61, 71), (81, 111)])
def test_fig_7_b_and_c_earliest_finish(work_s, finish_s):
    assert earliest(laid_late(ONE, FIG_7).free, work_s * 1000, 1, 0) == finish_s * 1000
    assert earliest_finish(standing(ONE, FIG_7, 0, 30_000), work_s * 1000) == finish_s * 1000
    assert earliest_due(ONE, FIG_7, Due("C", work_s * 1000, 1, 0), 0) == finish_s * 1000


def test_what_the_text_of_fig_7_says_would_be_another_picture():
    told = (Due("A", 16_000, 1, 70_000), Due("B", 32_000, 1, 110_000))
    assert laid_late(ONE, told).free.at_ms == (0, 54_000, 70_000, 78_000, 110_000)
    assert earliest(laid_late(ONE, told).free, 80_000, 1, 0) == 128_000


def test_earliest_deadline_first_keeps_c_at_its_earliest_finish_and_no_sooner():
    assert served(ONE, (*FIG_7, Due("C", 80_000, 1, 90_000)), 0) == {"A": 10_000, "C": 90_000, "B": 110_000}
    assert broken(ONE, (*FIG_7, Due("C", 80_000, 1, 89_999)), 0) == ("C",)


def test_containers_and_a_division_with_a_rest():
    free = profile(3, [Load("fixed", 1, 0, 10)])
    # 7 container-ms on at most 2: three whole milliseconds and one container for one more.
    assert laid_late(free, [Due("a", 7, 2, 20)]).free == Profile((0, 10, 16, 17, 20), (2, 3, 2, 1, 3))
    assert earliest(free, 7, 2, 0) == 4
    assert laid_late(free, [Due("a", 70, 3, 20)]).short == (("a", 20),)


def test_a_task_that_cannot_be_suspended_blocks():
    free = profile(1, [Load("running", 1, 0, 25_000)])
    assert earliest(free, 10_000, 1, 0) == 35_000


def test_narrow_jobs_where_earliest_deadline_first_is_not_the_plan():
    """A may use both containers, B one: a plan keeps both, serving A first does not."""
    free = Profile((0,), (2,))
    narrow = Due("B", 10, 1, 10)
    assert broken(free, (narrow,), 0) == ()
    assert earliest(laid_late(free, (narrow,)).free, 4, 2, 0) == 4
    # At 4 the wide job would be served first and push B out; behind B it ends at 4, too.
    assert broken(free, (narrow, Due("A", 4, 2, 4)), 0) == ("B",)
    assert earliest_due(free, (narrow,), Due("A", 4, 2, 0), 0) == 10


def test_supply_is_what_the_steps_hold():
    given = supply(profile(2, [Load("x", 2, 5, 8), Load("y", 1, 8)]), 3)
    assert [given.until(at) for at in (0, 3, 5, 8, 10)] == [0, 0, 4, 4, 6]
    assert [given.when(work) for work in (0, 1, 4, 5, 6)] == [3, 4, 5, 9, 10]


# m = 30 s, one server. With A and B: F(70) = min(70 - 10, 110 - 30) = 60, F(110) = 80.
FIG_7_STATE = standing(ONE, FIG_7, 0, 30_000)


def test_eq_13_term_by_term():
    """C of 20 s due at 100 s: slack min(100 - 10 - 20, 80 - 20) = 60; A keeps its 60, B has 60 of 80."""
    terms = because(FIG_7_STATE, Offered(20_000, 100_000))
    assert [who for who, _ in terms] == [ITSELF, "B"]
    assert terms[0][1] == pytest.approx(20_000 / 3)
    assert terms[1][1] == pytest.approx(20_000 / 3 - 20_000 / (80 / 30 + 1))
    assert curve(FIG_7_STATE, 20_000).price(100_000) == pytest.approx(sum(each for _, each in terms))


def test_who_offers_no_slack_on_an_empty_queue_pays_kappa_times_its_work():
    empty = standing(ONE, (), 0, 30_000)
    assert curve(empty, 20_000, 2).price(20_000) == 40_000
    assert within(curve(empty, 20_000, 2), 40_000) == (20_000, 40_000, 0)
    # half of that: a slack of one mean job (section 6.3, "at least equal to the average job duration")
    assert within(curve(empty, 20_000, 2), 20_000) == (50_000, 20_000, 30_000)


def test_a_budget_that_buys_no_instant():
    empty = standing(ONE, (), 0, 30_000_000)
    assert within(curve(empty, 10**12), 1).deadline_at_ms == FOREVER_MS
