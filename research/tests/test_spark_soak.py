"""The soak of Spark: what an event log tells, which runs are planned, and when a claim holds."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.hadoop.spark_draining import expected_digest
from yarn_research.campaigns.spark_events import read
from yarn_research.campaigns.spark_soak_judging import judged, table
from yarn_research.campaigns.spark_soak_set import EXECUTORS, planned, settings_of

LEFT, BAD = "Executor decommission: yarnctl", "Container from a bad node: c. Exit status: 143."


def task(executor: str, began_ms: int, ended_ms: int, reason: str = "Success", stage: int = 1) -> str:
    info = {"Index": 0, "Partition ID": 7, "Executor ID": executor}
    info |= {"Launch Time": began_ms, "Finish Time": ended_ms}
    return json.dumps({
        "Event": "SparkListenerTaskEnd", "Stage ID": stage, "Stage Attempt ID": 0,
        "Task Info": info, "Task End Reason": {"Reason": reason},
    })  # fmt: skip


def removed(executor: str, reason: str) -> str:
    return json.dumps(
        {"Event": "SparkListenerExecutorRemoved", "Executor ID": executor, "Removed Reason": reason}
    )


# --- an event log ---------------------------------------------------------------------------------------

FAILING = [
    ([task("1", 0, 9, "FetchFailed"), task("1", 0, 9, "Resubmitted")], 0, 0),  # moved blocks were looked for
    ([task("1", 0, 9, "ExceptionFailure")], 1, 0),
    ([task("1", 0, 9, "ExecutorLostFailure"), removed("1", LEFT)], 0, 0),  # it left by itself
    ([task("1", 0, 9, "ExecutorLostFailure"), removed("1", BAD)], 1, 1),
    ([removed("2", LEFT)], 0, 0),
]


@pytest.mark.parametrize(("lines", "tasks", "executors"), FAILING)
def test_what_counts_as_a_failure(lines, tasks, executors):
    told = read(lines)
    assert (len(told.task_failures()), len(told.executor_failures())) == (tasks, executors)


def test_attempts_at_stages_and_exclusions_are_counted_and_half_a_line_is_left_out():
    again = task("1", 5, 9).replace('"Stage Attempt ID": 0', '"Stage Attempt ID": 1')
    lines = [task("1", 0, 9), again, again, '{"Event": "SparkListenerExecutorExcluded"}', '{"Event": "Spark']
    told = read(lines)
    assert (told.stage_attempts, told.excluded) == (1, 1)


def test_a_task_is_told_by_its_partition_as_its_index_is_another_one_in_each_attempt():
    assert [each.partition for each in read([task("1", 0, 9)]).tasks] == [7]


def test_the_rest_of_the_longest_task_is_of_those_that_ran_at_the_order():
    told = read([task("1", 0, 900), task("1", 100, 1500), task("1", 1001, 4000), task("2", 0, 9000)])
    assert told.rest_ms("1", 1000) == 500
    assert told.last_end_ms("1", 1000) == 3000, "a task that began later is not of them"
    assert told.rest_ms("3", 1000) == told.last_end_ms("3", 1000) == 0


# --- the plan -------------------------------------------------------------------------------------------


def test_every_combination_is_played_once_and_four_runs_are_undisturbed():
    runs = planned()
    assert [run.number for run in runs] == list(range(1, 69))
    kinds = Counter(run[1:6] for run in runs if run.leaving)
    assert len(kinds) == 4 * 2 * 2 * 2 * 2
    assert set(kinds.values()) == {1}
    assert sum(run.leaving == 0 for run in runs) == 4
    assert runs == planned()


def test_only_the_plugin_lets_all_leave():
    assert not any(run.is_whole for run in planned() if run.route == "signal")
    assert {run.when for run in planned() if run.is_whole} == {"between", "within"}


def test_dynamic_allocation_is_bounded_by_the_executors_that_fit():
    dynamic = next(run for run in planned() if run.allocation == "dynamic")
    assert f"spark.dynamicAllocation.maxExecutors={EXECUTORS}" in settings_of(dynamic, "/x")


def test_two_programs_compute_the_same_sums_in_two_ways_and_the_others_something_else():
    assert expected_digest("reduced") == expected_digest("sql")
    assert len({expected_digest(name) for name in ("groups", "sql", "join")}) == 3


# --- judging --------------------------------------------------------------------------------------------


def run(number: int = 1, **more: Any) -> dict[str, Any]:
    """Return an ordinary run: two of four left within a stage, one reduce task was done twice."""
    return {
        "number": number, "route": "signal", "when": "within", "leaving": 2, "executors": 4,
        "identical": True, "stage_attempts": 1, "fetch_failed": 1,
        "twice": {"maps": 0, "keys": 2, "tasks": 1},
        "predicted": {"tasks_again": 2, "maps_again": 0},
        "failures": {"tasks": 0, "executors": 0, "excluded": 0, "why": []},
        "executors_asked": [{"executor": "1", "gone_s": 3.0, "rest_s": 1.5, "room_in_s": 2.4}],
        "allocation": "static", "wanted": [3, 2, 4], "grown_ms": 5_000, "ended_ms": 8_000,
        **more,
    }  # fmt: skip


WHOLE: dict[str, Any] = {"leaving": 4, "predicted": {"tasks_again": 0, "maps_again": 12}}
NOTHING_TWICE = {"maps": 0, "keys": 0, "tasks": 0}
BROKEN = [
    (0, {"identical": False}),
    (0, {"failed": "failed: AssertionError"}),
    (1, {"twice": {"maps": 0, "keys": 6, "tasks": 3}}),  # three, and two cores stayed
    (1, {"when": "between"}),  # one task twice, where none may be
    (1, WHOLE),
    (3, {"failures": {"tasks": 0, "executors": 1, "excluded": 0, "why": [BAD]}}),
    (4, {"stage_attempts": 2}),
    (4, {"when": "between", "twice": NOTHING_TWICE}),
    (5, {"executors_asked": [{"executor": "1", "gone_s": None, "rest_s": 0.0, "room_in_s": 2.4}]}),
    (7, {"wanted": [3, 2, 3]}),
    (7, {"wanted": [3, 2]}),
]


@pytest.mark.parametrize(("claim", "change"), BROKEN)
def test_one_run_breaks_the_claim_that_it_breaks(claim, change):
    kept = [run(number) for number in range(61)]
    assert all(each.holds for each in judged(kept))
    assert not judged([*kept, run(61, **change)])[claim].holds


def test_predictions_are_right_in_nine_of_ten():
    """Of the cache just as many partitions as predicted are computed again; of reduce tasks at most."""
    right = run(twice={"maps": 12, "keys": 0, "tasks": 0}, **WHOLE)
    wrong = run(twice={"maps": 11, "keys": 0, "tasks": 0}, **WHOLE)
    assert judged([right] * 63 + [wrong] * 7)[2].holds
    assert not judged([right] * 62 + [wrong] * 8)[2].holds


def test_too_few_runs_show_nothing():
    assert not any(each.holds for each in judged([run(number) for number in range(59)]))
    assert not any(each.holds for each in judged([]))


def test_the_median_is_of_all_executors_that_left():
    slow = run(executors_asked=[{"executor": "1", "gone_s": 9.0, "rest_s": 1.0, "room_in_s": 9.0}] * 2)
    claim = judged([run()] * 30 + [slow] * 31)[6]
    assert (claim.found, claim.holds) == (8.0, False)


@pytest.mark.parametrize("change", [{"allocation": "dynamic"}, {"ended_ms": 7_999}, {"wanted": []}])
def test_small_is_judged_where_a_fixed_number_was_asked_and_the_driver_had_time_to_read(change):
    """With dynamic allocation Spark wants fewer by its own rules; by the signal it tells nothing new."""
    small = {"wanted": [3, 2], **change}
    assert judged([*(run(number) for number in range(61)), run(61, **small)])[7].holds


def test_room_comes_in_time_for_nine_of_ten_executors():
    late = run(executors_asked=[{"executor": "1", "gone_s": 3.1, "rest_s": 1.5, "room_in_s": 2.4}])
    assert judged([run()] * 63 + [late] * 7)[8].holds
    assert not judged([run()] * 62 + [late] * 8)[8].holds


def test_a_soak_that_did_not_look_shows_nothing_of_what_came_back():
    old = [{key: value for key, value in run(number).items() if key != "wanted"} for number in range(61)]
    assert (judged(old)[7].found, judged(old)[7].holds) == (None, False)


def test_kinds_of_runs_are_counted_apart():
    rows = table([run(), run(), run(when="between"), run(leaving=0)])
    assert [(row["when"], row["runs"], row.get("tasks_twice")) for row in rows] == [
        ("between", 1, 1),
        ("within", 2, 2),
    ]
