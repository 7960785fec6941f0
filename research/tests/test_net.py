"""The rounds of the net and their rule, without a cluster."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from yarn_research.campaigns.net import KEY, MUTABLE, RESTARTS, Net, judged, passes, plan, shape

ALIVE = {
    "how": "alive", "number": 0, "key": "true", "key_after": "", "restore_status": 0,
    "production": "SUCCEEDED", "production_s": 20.0, "preempted": 0,
}  # fmt: skip
DEAD = {
    **ALIVE,
    "how": "dead",
    "number": 1,
    "records": 0,
    "preempted": 3,
    "production_s": 34.9,
    "back_s": 1.0,
}


def test_plan_has_ten_kills_and_four_restarts_and_each_round_once() -> None:
    rounds = plan()
    assert Counter(how for how, _ in rounds) == {"alive": 10, "dead": 10, "yarn": 4}
    assert len(set(rounds)) == len(rounds)
    restarted = Counter(how for how, number in rounds if how != "yarn" and number in RESTARTS)
    assert restarted == {"alive": 2, "dead": 2}


def test_shape_runs_the_policy_with_a_scheduler_that_can_be_changed_and_no_key() -> None:
    site, scheduler = (shape().overrides[name] for name in ("yarn-site", "capacity-scheduler"))
    assert site["yarn.resourcemanager.scheduler.monitor.enable"] == "true"
    assert site.items() >= MUTABLE.items()
    assert KEY not in scheduler


@pytest.mark.parametrize(
    ("row", "passed"),
    [
        (ALIVE, True),
        ({**ALIVE, "preempted": 1}, False),
        ({**ALIVE, "set_again": False}, False),
        ({**ALIVE, "production": "FAILED"}, False),
        ({**ALIVE, "key": ""}, False),
        (DEAD, True),
        ({**DEAD, "production_s": 35.1}, False),
        ({**DEAD, "records": 1}, False),
        ({**DEAD, "key_after": "true"}, False),
        ({**DEAD, "restore_status": 1}, False),
        ({"how": "dead", "number": 1, "failed": "no cluster"}, False),
    ],
)
def test_rule(row: dict[str, Any], passed: bool) -> None:
    assert passes(row, 30.0) is passed


def test_judged_takes_the_median_of_yarn_alone() -> None:
    alone = [
        {"how": "yarn", "number": number, "production": "SUCCEEDED", "production_s": took_s, "preempted": 3}
        for number, took_s in enumerate((28.0, 30.0, 30.0, 60.0))
    ]
    found = judged(Net({}, rounds=[*alone, ALIVE, DEAD]))
    assert (found["yarn_s"], found["alive"]["passed"], found["dead"]["passed"]) == (30.0, 1, 1)
