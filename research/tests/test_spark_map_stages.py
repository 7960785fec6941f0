"""The campaign of drains in map stages: its plan, and its rule."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from yarn_research.campaigns.spark_events import TaskRun, Told
from yarn_research.campaigns.spark_map_stages import LEAST, counted, is_enough, judged, planned


def rows(**changes: Any) -> list[dict[str, Any]]:
    """Sixty drains, of which every other one has a neighbour and loses a map of 4 s."""
    found = []
    for number in range(LEAST):
        maps = number % 2
        row = {"number": number, "identical": True, "failures": [], "excluded": 0, "map_ms": 4000.0}
        row |= {"maps_again": maps, "lost_ms": maps * 4000.0}
        row |= {"charged_ms": maps * 4000, "bound_ms": maps * 8000}
        found.append({**row, **changes})
    return found


def broken(found: list[dict[str, Any]]) -> list[str]:
    return [each.claim for each in judged(found) if not each.holds]


def test_each_combination_is_planned_equally_often():
    times = Counter(each[1:] for each in planned()[:48])
    assert (len(times), set(times.values())) == (16, {3})
    assert [each.number for each in planned()] == list(range(1, 121))


def test_rows_within_the_rule_hold():
    assert broken(rows()) == []


@pytest.mark.parametrize(
    ("changes", "claims"),
    [
        ({"identical": False}, ["results"]),
        ({"failures": ["ExceptionFailure"]}, ["failures"]),
        ({"excluded": 1}, ["failures"]),
        ({"charged_ms": 3200}, ["charge"]),  # 192 s for 120 s lost
        (
            {"charged_ms": 1200},
            ["charge", "width"],
        ),  # 72 s: less than 80.4 s and a task; bounds beside are wide
        ({"bound_ms": 3999, "lost_ms": 4000.0, "charged_ms": 4000}, ["held"]),
        ({"maps_again": 0}, ["maps"]),
    ],
)
def test_rows_outside_of_the_rule_are_named(changes, claims):
    assert broken(rows(**changes)) == claims


def test_a_drain_that_failed_is_no_right_result_and_no_held_bound():
    found = [{"number": 0, "failed": "x"}] * 7 + rows()[7:]
    assert broken(found) == ["results", "held"]


def test_a_campaign_without_enough_maps_goes_on():
    assert is_enough(rows())
    assert not is_enough(rows()[1:])
    assert not is_enough(rows(maps_again=0))
    assert is_enough(rows(maps_again=0) * 2)


def test_maps_that_completed_twice_are_counted_and_moved_blocks_are_no_failure():
    runs = [(0, 7, "Success"), (0, 7, "Success"), (0, 8, "Success"), (0, 8, "Resubmitted"), (1, 7, "Success")]
    tasks = tuple(TaskRun(stage, 0, part, "1", 0, 4000, why) for stage, part, why in runs)
    row = counted(Told(tasks, {"1": "Executor decommission: yarnctl"}, 0))
    assert (row["maps_again"], row["lost_ms"], row["failures"]) == (1, 4000, [])
