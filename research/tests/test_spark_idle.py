"""The campaign of idle sessions beside production: its watch, and its rule."""

from __future__ import annotations

from typing import Any

import pytest

from yarn_research.campaigns.spark_idle import SESSIONS, Watch, judged
from yarn_research.campaigns.spark_sessions import expected


def rows(**changes: Any) -> list[dict[str, Any]]:
    cell, burst = {"cell": 1, "right": True}, {"given_s": [3.0] * 9 + [6.0]}
    row = {"cells": [cell], "bursts": [burst], "failures": [], "excluded": 0}
    return [{**row, **changes} for _ in SESSIONS]


def broken(found: list[dict[str, Any]]) -> list[str]:
    return [each.claim for each in judged(found) if not each.holds]


def test_sessions_within_the_rule_hold():
    assert broken(rows()) == []


@pytest.mark.parametrize(
    ("changes", "claims"),
    [
        ({"bursts": [{"given_s": [3.0] * 8 + [5.1, None]}]}, ["given"]),
        ({"bursts": []}, ["given"]),
        ({"cells": [{"cell": 1, "right": False}]}, ["cells"]),
        ({"failures": ["bad node"]}, ["failures"]),
        ({"excluded": 1}, ["failures"]),
        ({"failed": "x"}, ["given", "cells", "failures"]),
    ],
)
def test_sessions_outside_of_the_rule_are_named(changes, claims):
    assert broken(rows(**changes)) == claims


def test_a_campaign_that_was_stopped_claims_nothing():
    assert broken(rows()[1:]) == ["given", "cells", "failures"]


def test_a_request_counts_from_its_first_look_and_takes_the_earliest_executor():
    watch = Watch()
    five = {"1", "2", "3", "4", "5"}
    looks = [(1.0, 0, five), (2.0, 1, five), (2.5, 1, five), (4.0, 1, five - {"1"})]
    looks += [(5.0, 3, five - {"1"}), (5.5, 3, five - {"1"}), (9.0, 1, {"5"})]
    for look in looks:
        watch.look(*look)
    assert watch.requests == [(2.0, 1), (5.0, 3)]
    assert watch.given_s() == [2.0, 4.0, 4.0, 4.0]


def test_a_need_of_one_look_is_no_request_and_no_more_is_wanted_than_is_there():
    watch = Watch()
    for look in [(1.0, 1, {"1"}), (2.0, 0, {"1"}), (3.0, 4, {"1"}), (4.0, 4, {"1"}), (5.0, 4, {"1"})]:
        watch.look(*look)
    assert watch.requests == [(3.0, 1)]
    assert watch.given_s() == [None]


def test_the_result_of_a_cell_has_each_key():
    assert expected("thrift-server", 1).split(",")[0] == "0:2842"
    assert expected("pyspark", 2).count(":") == 40 + 7
