"""Other versions of Spark and Hadoop: which runs a pair has, and when it holds."""

from __future__ import annotations

from typing import Any

import pytest

from research.tests.test_spark_soak import BAD, run
from tests.hadoop.artifacts import PY4J, SPARK
from yarn_research.campaigns.spark_versions import planned
from yarn_research.campaigns.spark_versions_judging import pair_of

HEAD = {"versions": {"spark": "3.5.9", "hadoop": "3.4.2"}, "commit": "c"}


def pair(*runs: dict[str, Any]) -> dict[str, Any]:
    return pair_of({"head": HEAD, "runs": list(runs)})


def test_a_pair_has_both_routes_and_both_moments():
    assert {(each.route, each.when) for each in planned()} == {
        (route, when) for route in ("signal", "plugin") for when in ("between", "within")
    }
    assert len(planned()) == 8
    assert SPARK["py4j"] == PY4J[SPARK["pyspark"]]


WRONG = [
    {"identical": False},
    {"failed": "failed: AssertionError"},
    {"executors_asked": [{"executor": "1", "gone_s": None, "rest_s": 0.0, "room_in_s": 2.4}]},
    {"twice": {"maps": 0, "keys": 9, "tasks": 3}},
    {"failures": {"tasks": 1, "executors": 0, "excluded": 0, "why": [BAD]}},
    {"wanted": [3, 2]},
]


@pytest.mark.parametrize("change", WRONG)
def test_one_run_breaks_its_pair(change):
    assert pair(*[run(number) for number in range(8)])["holds"]
    assert not pair(*[run(number) for number in range(7)], run(8, **change))["holds"]


def test_too_few_runs_show_nothing():
    assert not pair(*[run(number) for number in range(7)])["holds"]
