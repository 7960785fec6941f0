"""Judging a campaign and checking predictions: which campaign counts, and what is told beside it."""

from __future__ import annotations

import json

import msgspec
import pytest

from yarn_research.campaigns import predicting
from yarn_research.campaigns.campaign import KIND, Campaign, all_of
from yarn_research.campaigns.judging import NOT_RUN, figures, judged
from yarn_research.campaigns.predicting import check, make, newest
from yarn_research.campaigns.schemes import ALL
from yarnctl.errors import BadInput

TIMES = {
    "production-alone": (50.0, None),
    "research-alone": (None, 100.0),
    "yarn-tuned": (60.0, 150.0),
    "yarnctl": (55.0, 110.0),
    "yarnctl-as-shipped": (58.0, 120.0),
}


def campaign(name, commit="c", schemes=TIMES, runs=2, **changed):
    """Return a campaign in which every run of a scheme took the same time."""
    told = {scheme: ALL[scheme]._asdict() | changed.get(scheme, {}) for scheme in schemes}
    made = Campaign(
        name=name,
        kind=KIND,
        began=f"{name[7:17]}T20:00:00Z",
        commit=commit,
        uncommitted=[],
        machine={},
        versions={},
        configuration=msgspec.json.decode(msgspec.json.encode({"schemes": told})),
        order="",
        rounds=runs,
    )
    for _ in range(runs):
        for scheme in schemes:
            times = zip(("production_s", "research_s"), TIMES[scheme], strict=True)
            made.runs.append(
                {"scheme": scheme, "research_killed": 0, "research_twice": 0, "suspensions": 0}
                | {name: value for name, value in times if value}
            )
    return made


def test_the_newest_campaign_of_a_known_commit_is_judged():
    old, new, later = (campaign(f"hadoop-2026-11-2{day}") for day in (2, 3, 4))
    later.commit = None
    assert judged([old, new, later]).name == new.name
    assert judged([later]).name == later.name


def test_a_campaign_without_the_schemes_is_not_judged():
    few = campaign("hadoop-2026-11-25", schemes=["production-alone", "yarnctl"])
    assert judged([campaign("hadoop-2026-11-22"), few]).name == "hadoop-2026-11-22"
    with pytest.raises(BadInput, match="no campaign has runs of"):
        judged([few])


def test_what_was_not_run_is_named_and_judged_as_not_run():
    without = [name for name in TIMES if name != "yarnctl-as-shipped"]
    found = figures(campaign("hadoop-2026-11-22", schemes=without))
    assert found["not_compared"] == "soft-cap, yarn-defaults"
    assert found["as_shipped"] == {"runs": 0, "production_ratio": NOT_RUN, "research_ratio": NOT_RUN}
    assert found["research_defaults_ratio"] == NOT_RUN


def test_others_are_told_beside_and_never_mixed_in():
    one, other = campaign("hadoop-2026-11-22"), campaign("hadoop-2026-11-23")
    for run in other.runs:
        run |= {"production_s": 70.0} if run["scheme"] == "yarnctl" else {}
    found = figures(one, [one, other])
    assert found["production_ratio"] == 1.1
    assert found["as_shipped"] == {"runs": 2, "production_ratio": 1.16, "research_ratio": 1.2}
    assert list(found["earlier"]) == [other.name]
    assert found["earlier"][other.name]["production_ratio_of"]["yarnctl"] == 1.4
    assert found["campaigns_below_tuned"] == "1 of 2"


@pytest.fixture(scope="module")
def prediction():
    """Return a prediction of two schemes, made on 22 November."""
    found = make(["yarnctl", "yarnctl-as-shipped"])
    found["made"] = "2026-11-22T12:00:00Z"
    found["new"] = ["yarnctl-as-shipped"]
    for jobs in found["predicted"].values():
        jobs["production_s"]["median"], jobs["research_s"]["median"] = 55.0, 121.0
    return found


def test_a_prediction_is_held_against_what_was_run_later(prediction):
    found = check(prediction, [campaign("hadoop-2026-11-21"), campaign("hadoop-2026-11-23")])
    assert found["campaign"] == "hadoop-2026-11-23"
    assert [row["deviation_ratio"] for row in found["rows"]] == [0.0, 0.1, -0.0517, 0.0083]
    assert found["new"]["mean_deviation_ratio"] == 0.03
    assert found["attached"]["predicted"] == 4
    assert found["not_run"] == []


def test_a_scheme_that_was_told_something_else_is_not_compared(prediction):
    other = campaign("hadoop-2026-11-23", yarnctl={"options": ["--hold-queue"]})
    found = check(prediction, [other])
    assert found["not_run"] == ["yarnctl"]
    assert {row["scenario"] for row in found["rows"]} == {"yarnctl-as-shipped"}


def test_what_was_not_run_yet_is_no_figure(prediction):
    found = check(prediction, [campaign("hadoop-2026-11-21")])
    assert found["new"]["mean_deviation_ratio"] == NOT_RUN
    assert found["not_run"] == ["yarnctl", "yarnctl-as-shipped"]


def test_a_prediction_names_every_parameter(prediction):
    fitted = prediction["parameters"]["fitted"]
    assert len(fitted) == 8
    assert not fitted.keys() & prediction["parameters"]["constants"].keys()
    assert {"am_linger_ms", "asks_after_beat", "beats_at_exit", "skip_ratio"} <= prediction["parameters"][
        "constants"
    ].keys()


def test_a_prediction_is_never_written_over(tmp_path, capsys):
    path = tmp_path / "predictions.json"
    path.write_text("{}")
    assert predicting.main(["make", str(path), "yarnctl"]) == 2
    assert path.read_text() == "{}"
    assert "is there already" in capsys.readouterr().err


def test_the_committed_prediction_was_made_before_every_campaign_it_is_held_against():
    document = json.loads(newest().read_bytes())
    assert document["uncommitted"] == []
    for one in all_of():
        if one.name in check(document, all_of())["campaign"]:
            assert one.began is not None
            assert one.began > document["made"]
