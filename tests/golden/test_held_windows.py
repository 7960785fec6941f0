"""What counts as held in a window: tables of samples, in seconds; one container's worth a second."""

from __future__ import annotations

import pytest

from yarnctl.deciding.held_windows import MARKS_MAX, HeldWindow, HeldWindows, spacing_ms, user_owner
from yarnctl.deciding.model import HeldTime
from yarnctl.deciding.settings import LossRule

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.mark.parametrize(
    ("window_ms", "expected_ms"),
    [
        (1, 1),
        (MINUTE_MS, 1000),  # a sixtieth
        (HOUR_MS, MINUTE_MS),
        (12 * HOUR_MS, MINUTE_MS),
        (7 * DAY_MS, 14 * MINUTE_MS),  # 720 of them
    ],
)
def test_spacing_is_a_minute_where_a_window_has_60_to_720(window_ms, expected_ms):
    assert spacing_ms(window_ms) == expected_ms


SAMPLES = [
    # (at, total) of each sample, in s            now   held in the hour that ends then
    ([], 10, 0),
    ([(0, 500)], 10, 0),  # what was held before the first sample counts as 0
    ([(0, 500), (10, 510)], 10, 10),  # from it on the difference counts, in the first hour, too
    ([(0, 500), (10, 510)], 20, 10),  # what was not sampled yet does not
    ([(0, 0), (1800, 1800)], 3600, 1800),  # a span counts that is wholly inside the window,
    ([(0, 0), (1800, 1800)], 3601, 0),  # and not if it began before
    ([(0, 0), (59, 59), (3600, 3600)], 3600, 3600),
    ([(0, 0), (59, 59), (3600, 3600)], 3601, 0),  # of one minute one sample is kept
    ([(0, 0), (60, 60), (3600, 3600)], 3601, 3540),
    ([(0, 0), (60, 60), (3600, 3600)], 3660, 3540),
    ([(0, 0), (60, 60), (3600, 3600)], 3661, 0),
    ([(0, 0), (9000, 9000)], 9000, 0),  # the daemon was away for longer than the window: a new base
    ([(0, 0), (9000, 9000), (9001, 9001)], 9001, 1),
    ([(0, 0), (100, 100), (200, 40)], 200, 0),  # a counter that fell is a new base,
    ([(0, 0), (100, 100), (200, 40), (300, 140)], 300, 100),  # from which on differences count
]


@pytest.mark.parametrize(("samples", "now_s", "expected_s"), SAMPLES)
def test_held_is_the_newest_total_less_the_oldest_mark_inside_the_window(samples, now_s, expected_s):
    window = HeldWindow(HOUR_MS)
    for at_s, total_s in samples:
        window.sample(1000 * at_s, {"research": total_s})
    assert window.held(1000 * now_s).get("research", 0) == expected_s


def test_marks_are_few_however_long_the_window_is():
    window = HeldWindow(7 * DAY_MS)
    for minute in range(8 * 1440):
        window.sample(minute * MINUTE_MS, {"research": minute})
    assert len(window._marks) <= MARKS_MAX + 1
    assert window.held(8 * 1440 * MINUTE_MS - MINUTE_MS) == {"research": pytest.approx(7 * 1440, abs=14)}


RULES = (LossRule("queue", "research", 0.1, DAY_MS), LossRule("user", "ann", 0.1, 2 * HOUR_MS))


def test_each_payer_has_the_windows_of_its_budgets():
    """A queue's own and that of refetching; a user's own; a job has the usual one."""
    windows = HeldWindows(HOUR_MS, RULES)
    assert windows.shortest_ms == HOUR_MS
    assert [windows.has_own(user_owner(name)) for name in ("ann", "bob")] == [True, False]
    windows.sample(0, {"research": 0, "batch": 0, "application_1_1": 0, user_owner("ann"): 0})
    windows.sample(1000, {"research": 5, "batch": 6, "application_1_1": 7, user_owner("ann"): 8})
    assert windows.held(1000) == (
        HeldTime("application_1_1", HOUR_MS, 7),
        HeldTime("batch", HOUR_MS, 6),
        HeldTime("research", HOUR_MS, 5),
        HeldTime("research", DAY_MS, 5),
        HeldTime(user_owner("ann"), 2 * HOUR_MS, 8),
    )


def test_a_payer_that_comes_later_had_nothing_before():
    windows = HeldWindows(HOUR_MS, ())
    windows.sample(0, {"research": 100})
    windows.sample(1000, {"research": 101, "batch": 3})
    assert [each.mib_ms for each in windows.held(1000)] == [3, 1]
    windows.sample(2000, {"research": 102})
    assert [each.payer for each in windows.held(2000)] == ["research"]
    windows.sample(3000, {"research": 103, "batch": 1})
    assert [each.mib_ms for each in windows.held(3000)] == [1, 3], "it is another one of that name"


def test_after_a_restart_the_next_sample_is_the_first():
    windows = HeldWindows(HOUR_MS, ())
    windows.sample(0, {"research": 0})
    windows.sample(1000, {"research": 10})
    windows.restart()
    assert windows.held(1000) == ()
    windows.sample(2000, {"research": 20, "batch": 5})
    windows.sample(3000, {"research": 21, "batch": 7})
    assert [each.mib_ms for each in windows.held(3000)] == [2, 1]
