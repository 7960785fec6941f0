"""The campaign of production beside Spark as shipped: its plan, and its rule."""

from __future__ import annotations

from typing import Any

import pytest

from yarn_research.campaigns.spark_beside import ROUNDS, Ended, ended_by
from yarn_research.campaigns.spark_shipped import LOADS, SET, judged, order_of, schemes_of
from yarnctl.deciding.model import Drain
from yarnctl.deciding.records import Transition

RESEARCH = {"took_s": 100.0, "again_s": 20.0, "identical": True, "failures": 0}


def rounds(**plugin: Any) -> list[dict[str, Any]]:
    """Return all rounds; of the first load the plugin's runs have what is changed."""
    found = []
    for load in LOADS:
        for number in range(1, ROUNDS + 1):
            for scheme in sorted(schemes_of(load)):
                run: dict[str, Any] = {"load": load, "round": number, "scheme": scheme}
                run |= {"production": {"took_s": 40.0}, "research": dict(RESEARCH)}
                if scheme == "plugin":
                    run["research"] |= {"took_s": 99.0, "again_s": 10.0}
                    for name, value in plugin.items() if load == "map-2s" else ():
                        job, field = name.split("__")
                        run[job] |= {field: value}
                found.append(run)
    return found


def broken(runs: list[dict[str, Any]]) -> list[str]:
    return [f"{each.load} {each.claim}" for each in judged(runs) if not each.holds]


@pytest.mark.parametrize(
    ("changed", "claims"),
    [
        ({}, []),
        ({"production__took_s": 40.1}, ["map-2s production"]),
        ({"research__took_s": 100.0}, ["map-2s research"]),
        ({"research__again_s": 10.1}, ["map-2s again"]),
        ({"research__identical": False}, ["map-2s results"]),
        ({"research__failures": 1}, ["map-2s results"]),
    ],
)
def test_each_claim_can_be_broken(changed, claims):
    assert broken(rounds(**changed)) == claims


def test_a_round_that_is_not_whole_does_not_count():
    runs = rounds()
    runs[0]["left_out"] = "failed"
    assert broken(runs) == [f"map-2s {claim}" for claim in ("production", "research", "again", "results")]


def test_executors_are_killed_after_the_run_that_chose_them():
    orders = [order_of(load, number) for load in LOADS for number in range(1, ROUNDS + 1)]
    assert all(each.index("killed") == each.index("plugin") + 1 for each in orders)
    assert all(set(each) == set(SET) for each in orders[:ROUNDS])
    assert all(set(each) == set(SET) - {"production-alone"} for each in orders[ROUNDS:])
    assert len(set(map(tuple, orders))) > 10


def test_an_order_that_was_never_sent_ended_nothing():
    name = "executor_1_0001_00000"
    drains = [Drain(f"o-{n}", "application_1_0001", f"{name}{n}", f"c{n}", 1, ()) for n in (3, 4)]
    sent = [Transition(order="o-3", source="ordered", event="accepted", target="suspending", at_ms=7500)]
    assert ended_by(drains, sent, 5000) == [Ended("3", 2.5)]
