"""The summary of a study, checked by hand, and the rows of the scheme ``mix``."""

from __future__ import annotations

import msgspec
import pytest

from emulator.cluster.timing import HADOOP3
from emulator.virtual.lever_tally import LeverFigures
from emulator.virtual.run import Result, Setup
from emulator.virtual.schemes import SCHEMES
from yarn_research.cli.study import hours_named, mix_options
from yarn_research.studies.study_figures import scheme_entry, summary, table_rows
from yarn_research.studies.study_rows import SchemeRow, rows_of, with_options
from yarnctl.deciding.settings import Settings
from yarnctl.errors import BadInput
from yarnctl.units import Resources


def figures(production: float, research: float, lost: float, refetch: float | None = None) -> dict:
    return {
        "production_mean_s": production,
        "research_mean_s": research,
        "lost_work_s": lost,
        "refetch_s": refetch,
    }


def entry(hours: tuple[int, int], seed: int, **schemes: dict) -> dict:
    named = {name.replace("_", "-"): told for name, told in schemes.items()}
    return {"production_hour": hours[0], "research_hour": hours[1], "seed": seed, "schemes": named}


ENTRIES = [
    entry(
        (0, 13),
        1,
        soft_cap=figures(200, 500, 0),
        yarn_tuned=figures(90, 800, 3600),
        natjam=figures(101, 700, 0),
    ),
    entry(
        (0, 13),
        2,
        soft_cap=figures(220, 500, 0),
        yarn_tuned=figures(110, 800, 1800),
        natjam=figures(103, 700, 0),
    ),
    entry(
        (1, 14),
        1,
        soft_cap=figures(300, 900, 0),
        yarn_tuned=figures(200, 1000, 0),
        natjam=figures(311, 1050, 0),
    ),
    entry(
        (1, 14),
        2,
        soft_cap=figures(300, 900, 0),
        yarn_tuned=figures(200, 1000, 900),
        natjam=figures(311, 1050, 0),
    ),
]
"""Means of the pairs: soft cap 210, 300 / 500, 900; tuned 100, 200 / 800, 1000;
natjam 102, 311 / 700, 1050."""


def test_a_summary_by_hand():
    found = summary(ENTRIES)
    assert list(found) == ["soft-cap", "yarn-tuned", "natjam"]
    natjam = found["natjam"]
    assert natjam["pairs"] == 2
    assert natjam["production_mean_s"] == 206.5
    assert natjam["research_mean_s"] == 875
    assert found["yarn-tuned"]["lost_work_s"] == (2700 + 450) / 2
    assert natjam["production_over_tuned"] == round(206.5 / 150, 4)
    assert natjam["research_over_tuned"] == round(875 / 900, 4)
    assert natjam["lost_over_tuned"] == 0
    assert natjam["production_over_soft_cap"] == round(206.5 / 255, 4)
    assert natjam["production_over_tuned_by_pair"] == round((1.02 + 1.555) / 2, 4)
    assert natjam["research_over_tuned_by_pair"] == round((0.875 + 1.05) / 2, 4)
    assert natjam["production_at_most_102_ratio"] == 0.5  # 1.02 itself is at most 1.02
    assert natjam["production_at_most_102_soft_cap_ratio"] == 0.5  # 311 > 306
    assert natjam["research_at_most_tuned_ratio"] == 0.5
    assert natjam["research_at_most_worse_ratio"] == 1.0
    assert natjam["research_at_most_102_better_ratio"] == 0.5  # 1050 > 1020
    assert found["soft-cap"]["research_over_natjam"] == 0.8
    assert found["soft-cap"]["research_at_most_tuned_ratio"] == 1.0
    assert found["yarn-tuned"]["lost_over_soft_cap"] is None  # nothing was lost there
    assert found["yarn-tuned"]["production_over_tuned"] == 1


def test_what_was_not_played_is_null():
    alone = [{**one, "schemes": {"natjam": one["schemes"]["natjam"]}} for one in ENTRIES]
    (natjam,) = summary(alone).values()
    assert natjam["production_over_natjam"] == 1
    nothing = {name for name, value in natjam.items() if value is None}
    assert {"production_over_tuned", "production_at_most_102_ratio", "refetch_s"} <= nothing
    assert {"research_at_most_tuned_ratio", "research_at_most_worse_ratio"} <= nothing
    assert len(nothing) == 6 + 2 + 5 + 2


def test_fetched_data_is_averaged_where_it_is_counted():
    counted = [entry((0, 13), seed, natjam=figures(1, 1, 0, refetch)) for seed, refetch in ((1, 5), (2, 8))]
    assert summary(counted)["natjam"]["refetch_s"] == 6.5
    partly = [*counted, entry((1, 14), 1, natjam=figures(1, 1, 0, None))]
    assert summary(partly)["natjam"]["refetch_s"] is None


def test_the_table_has_a_row_for_each_scheme():
    rows = table_rows(summary(ENTRIES))
    assert rows[2] == ("natjam", 206.5, 875.0, 0.0, None, 1.377, 0.972, 0.0, "50%", "50%", "50%")
    assert rows[1][3] == round(1575 / 3600, 2)


RESULT = Result(
    scheme="mix",
    jobs=(),
    lost_work_ms=1500,
    overhead_ms=0,
    suspensions=1,
    kills=2,
    utilisation_ratio=0.5,
    makespan_ms=1,
    events=1,
)


def test_levers_are_told_where_they_are_counted():
    assert scheme_entry(RESULT)["refetch_s"] == 0
    assert "levers" not in scheme_entry(RESULT)
    counted = LeverFigures(pulled={"kill": 2}, in_time={"kill": 1}, predicted_lost_ms=1400, refetch_ms=2500)
    told = scheme_entry(msgspec.structs.replace(RESULT, levers=counted))
    assert (told["refetch_s"], told["levers"], told["lost_work_s"]) == (2.5, {"kill": 2}, 1.5)
    assert (told["levers_in_time"], told["predicted_lost_s"]) == ({"kill": 1}, 1.4)


# --- rows ----------------------------------------------------------------------------------------

SETUP = Setup(nodes=1, node_size=Resources(1024, 1), timing=HADOOP3, settings=Settings())
MIX = SCHEMES["mix"]


def test_mix_has_a_row_for_each_budget():
    rows = rows_of(("natjam", "mix"), (0.0, 0.02, 0.005, 0.07), 3000)
    assert [row.name for row in rows] == ["natjam", "mix-0", "mix-2", "mix-0.5", "mix-7"]
    assert rows[0] == SchemeRow("natjam", SCHEMES["natjam"])
    assert rows[2] == SchemeRow("mix-2", MIX, 0.02, 3000)


def test_options_go_into_the_setup():
    made = with_options(SETUP, SchemeRow("mix-2", MIX, 0.02, 500))
    assert made == msgspec.structs.replace(SETUP, may_lose_ratio=0.02, room_within_ms=500)
    assert with_options(SETUP, SchemeRow("natjam", SCHEMES["natjam"])) is SETUP


@pytest.mark.parametrize(
    ("text", "ratios"),
    [("0%,2%", (0.0, 0.02)), ("0.5%", (0.005,)), ("0.02, 1", (0.02, 1.0))],
)
def test_budgets(text, ratios):
    assert mix_options(("mix",), text, None) == (ratios, None)


@pytest.mark.parametrize("text", ["nan", "nan%", "-1%", "101%", "1.01", "inf", "2 percent", "", "0%,,2%"])
def test_budgets_that_are_none(text):
    with pytest.raises(BadInput, match=r"--may-lose: .* is not a share from 0% to 100%"):
        mix_options(("mix",), text, None)


def test_a_budget_stands_once():
    with pytest.raises(BadInput, match="--may-lose: a budget stands twice"):
        mix_options(("mix",), "2%,0.02", None)


@pytest.mark.parametrize(("text", "span_ms"), [("3s", 3000), ("500ms", 500), ("1.5s", 1500), ("2m", 120_000)])
def test_spans_in_which_room_is_made(text, span_ms):
    assert mix_options(("mix",), None, text) == ((0.0, 0.02), span_ms)


@pytest.mark.parametrize("text", ["3", "0s", "-3s", "nan", "61m", "3 s"])
def test_spans_that_are_none(text):
    with pytest.raises(BadInput, match=r"--room-within: .* is not a duration from 1ms to 60m"):
        mix_options(("mix",), None, text)


def test_hours():
    assert hours_named("all") is None
    assert hours_named("3, 0") == (3, 0)
