"""Production beside Spark research: rounds count whole, ratios are paired, each claim can be broken."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tests.unit.deciding.freed_containers import decided, order
from yarn_research.campaigns import spark_ahead
from yarn_research.campaigns.spark_beside import (
    LOADS,
    ROUNDS,
    SCHEMES,
    again_s,
    charged_s,
    held_s,
    order_of,
)
from yarn_research.campaigns.spark_beside_judging import OURS, counted, judged, table, told
from yarn_research.campaigns.spark_events import TaskRun, Told
from yarnctl.deciding.levers import Lever, LeverPull
from yarnctl.deciding.lifecycle import State as OrderState
from yarnctl.deciding.records import Transition

TIMES = {  # scheme: production, research, work done twice, s
    "production-alone": (30.0, None, None),
    "research-alone": (None, 90.0, 0.0),
    "soft-cap": (70.0, 95.0, 0.0),
    "yarn-tuned": (32.0, 130.0, 40.0),
    "signal": (31.0, 110.0, 6.0),
    "plugin": (30.5, 108.0, 5.0),
}


def run(load: str, number: int, scheme: str, **changed: Any) -> dict[str, Any]:
    production, research, again = TIMES[scheme]
    found: dict[str, Any] = {"load": load, "round": number, "scheme": scheme}
    if production is not None:
        found["production"] = {"took_s": changed.get("production", production)}
    if research is not None:
        took_s, twice_s = changed.get("research", research), changed.get("again", again)
        same = changed.get("identical", True)
        found["research"] = {"took_s": took_s, "again_s": twice_s, "identical": same}
    if scheme in OURS:
        found["held_s"] = changed.get("held_s", [0.25, 0.5, 0.75])
    return found


def rounds(**changed: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all rounds of both loads; of the first one, what is changed by scheme."""
    return [
        run(load, number, scheme, **(changed.get(scheme, {}) if (load, number) == ("2s", 1) else {}))
        for load in LOADS
        for number in range(1, ROUNDS + 1)
        for scheme in SCHEMES
    ]


def broken(runs: list[dict[str, Any]]) -> list[str]:
    return [f"{each.load} {each.claim}" for each in judged(runs) if not each.holds]


def test_with_ordinary_times_every_claim_holds():
    assert broken(rounds()) == []
    assert len(judged(rounds())) == 2 * (2 * 5 + 1)


@pytest.mark.parametrize(
    ("changed", "claims"),
    [
        ({"signal": {"research": 131.0}}, ["2s research under signal over yarn-tuned, every round"]),
        (
            {"plugin": {"again": 41.0}},
            ["2s work done twice under plugin less that under yarn-tuned, s, every round"],
        ),
        (
            {"signal": {"held_s": [1.25] * 13}},
            ["2s from an executor's end under signal to production holding its room, s, median"],
        ),
        ({"soft-cap": {"identical": False}}, ["2s results that differ"]),
    ],
)
def test_one_round_breaks_what_must_hold_in_every_round_or_of_all_orders(changed, claims):
    assert broken(rounds(**changed)) == claims


def test_one_slow_round_does_not_break_a_median_and_three_do():
    assert broken(rounds(signal={"production": 99.0})) == []
    slow = [
        {**each, "production": {"took_s": 34.0}}
        if each["scheme"] == "signal" and each["round"] <= 3
        else each
        for each in rounds()
    ]
    assert set(broken(slow)) == {
        f"{load} production under signal over {base}, median"
        for load in LOADS
        for base in ("production-alone", "yarn-tuned")
    }


def test_a_round_counts_whole_or_not_at_all():
    runs = rounds()
    runs[0]["left_out"] = "failed"
    assert list(counted(runs, "2s")) == [2, 3, 4, 5]
    assert all(each.startswith("2s") for each in broken(runs))
    assert len(broken(runs)) == 11, "too few rounds show nothing"


def test_medians_are_told_by_scheme():
    found = {(row["load"], row["scheme"]): row for row in table(rounds())}
    assert found["10s", "plugin"]["production_s"] == 30.5
    assert found["2s", "production-alone"]["research_s"] is None
    assert table([]) == []


def test_the_order_is_drawn_by_load_and_round_alone():
    assert order_of("2s", 1) == order_of("2s", 1)
    assert len({tuple(order_of(load, number)) for load in LOADS for number in range(1, 6)}) > 5
    assert sorted(order_of("10s", 3)) == sorted(SCHEMES)


def test_work_done_twice_is_all_but_the_first_that_succeeded():
    def task(place: int, began_ms: int, ended_ms: int, reason: str = "Success") -> TaskRun:
        return TaskRun(1, 0, place, "1", began_ms, ended_ms, reason)

    tasks = (task(0, 0, 1000), task(0, 500, 3000), task(1, 0, 400, "FetchFailed"), task(1, 400, 900))
    assert again_s(Told(tasks, {}, 0)) == 2.5 + 0.4
    lost = task(2, 0, 700), task(2, 0, 700, "Resubmitted"), task(2, 900, 1500)
    assert again_s(Told(lost, {}, 0)) == 0.6, "a lost output is told once more, and ran once more"


def test_room_is_held_from_the_executors_end_on():
    def move(order: str, target: OrderState, at_ms: int) -> Transition:
        return Transition(order=order, source="ordered", event="granted", target=target, at_ms=at_ms)

    freed = [move("o-1", "freed", 8000), move("o-2", "freed", 8000)]
    granted = [move("o-1", "granted", 8250), move("o-3", "granted", 9000)]
    assert held_s(freed, granted) == [0.25], "what was not given, or ended unseen, has no such time"


def test_what_was_predicted_to_be_lost_is_that_of_the_orders_that_were_sent():
    pulls = tuple(
        LeverPull(Lever(f"e{number}", "drain", 9000, 1000 * number, 0, "come-back"), "research", "alice")
        for number in (1, 2, 3)
    )
    decision = structs.replace(decided("production", [1, 2, 3]), levers=pulls)
    assert charged_s([decision], {order(1), order(3)}) == 4.0
    assert charged_s([], {order(1)}) == 0


# --- with predicted demand --------------------------------------------------------------------------------


def ahead(kind: str = spark_ahead.KIND, **changed: Any) -> dict[str, Any]:
    """Return what a file of the second bench holds; each run under the plugin has what is changed."""
    runs = [
        run(spark_ahead.LOAD, number, scheme, **(changed if scheme == "plugin" else {}))
        for number in range(1, ROUNDS + 1)
        for scheme in spark_ahead.SET
    ]
    return {"head": {"kind": kind}, "runs": runs}


def test_with_predicted_demand_the_claims_are_the_same_and_can_be_broken():
    assert [each.claim for each in told(ahead())["claims"].values()] == [
        each.claim for each in judged(rounds(), ("2s",))
    ]
    assert all(each.holds for each in told(ahead())["claims"].values())
    broken_ones = [name for name, each in told(ahead(production=40.0))["claims"].items() if not each.holds]
    assert broken_ones == [
        f"ahead: production under plugin over {base}, median" for base in ("production-alone", "yarn-tuned")
    ]
    assert not any(each.rounds for each in told(ahead("spark-production"))["claims"].values()), (
        "not its loads"
    )


def test_only_options_differ_from_what_is_shipped():
    shipped, there = SCHEMES["signal"], spark_ahead.SET["signal"]
    assert there == shipped._replace(options=(*shipped.options, *spark_ahead.AHEAD))
    assert spark_ahead.order_of(1) == spark_ahead.order_of(1)
    assert len({tuple(spark_ahead.order_of(number)) for number in range(1, 6)}) > 2
