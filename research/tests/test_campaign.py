"""A campaign's file: written a run at a time, gone on with, never written over; ratios are its own."""

from __future__ import annotations

import msgspec
import pytest

from yarn_research.campaigns import campaign as campaigns
from yarn_research.campaigns import index
from yarn_research.campaigns.beginning import goes_on
from yarn_research.campaigns.campaign import KIND, Campaign, all_of, named, read, write
from yarn_research.campaigns.summary import beside, figures, of_scheme, told
from yarnctl.errors import BadInput

SCHEMES = ("production-alone", "research-alone", "yarnctl")


def begun(name="hadoop-2026-11-22-2000", commit="c1", **changes):
    """Return a campaign without runs."""
    told_of = {
        "name": name,
        "kind": KIND,
        "began": "2026-11-22T20:00:00Z",
        "commit": commit,
        "uncommitted": [],
        "machine": {"cores": 2},
        "versions": {"hadoop": "3.4.2"},
        "configuration": {"schemes": {"yarnctl": {"options": ["--hold-queue"]}}},
        "order": "round by round",
        "rounds": 2,
    }
    return Campaign(**{**told_of, **changes})


def run(scheme, production_s=None, research_s=None, **more):
    """Return a run as the bench records it."""
    times = {"production_s": production_s, "research_s": research_s}
    return {"scheme": scheme, **{key: value for key, value in times.items() if value}, **more}


@pytest.fixture
def half(tmp_path):
    """Return the folder of a campaign that lacks its second round."""
    campaign = begun()
    campaign.runs += [
        run("production-alone", 50.0),
        run("research-alone", None, 100.0),
        run("yarnctl", 55.0, 110.0),
    ]
    write(campaign, tmp_path)
    return tmp_path


def test_what_is_written_is_read_and_each_run_is_a_line(half):
    found = named("hadoop-2026-11-22-2000", half)
    assert [each["scheme"] for each in found.runs] == list(SCHEMES)
    lines = found_lines(half)
    assert sum(line.startswith('  {"scheme"') for line in lines) == 3


def found_lines(folder):
    """Return the lines of the only campaign in a folder."""
    (path,) = folder.glob("*.json")
    return path.read_text().splitlines()


def test_the_bench_goes_on_with_an_unfinished_campaign(half):
    found = goes_on(begun("hadoop-2026-11-22-2100"), SCHEMES, 2, half)
    assert (found.name, len(found.runs)) == ("hadoop-2026-11-22-2000", 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"commit": "c2"},
        {"commit": None},
        {"uncommitted": ["yarnctl/loop.py"]},
        {"configuration": {"schemes": {"yarnctl": {"options": []}}}},
        {"versions": {"hadoop": "3.5.0"}},
        {"machine": {"cores": 4}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_whatever_differs_begins_a_campaign_of_its_own(half, changes):
    found = goes_on(begun("hadoop-2026-11-22-2100", **changes), SCHEMES, 2, half)
    assert (found.name, found.runs) == ("hadoop-2026-11-22-2100", [])


def test_a_campaign_that_is_in_the_index_is_closed(half):
    index.add(half)
    assert goes_on(begun("hadoop-2026-11-22-2100"), SCHEMES, 2, half).runs == []


def test_more_rounds_may_be_asked_for(half):
    assert goes_on(begun("hadoop-2026-11-22-2100"), SCHEMES, 4, half).rounds == 4


def test_a_finished_campaign_is_not_gone_on_with(half):
    assert goes_on(begun("hadoop-2026-11-22-2100"), SCHEMES, 1, half).runs == []


def test_a_campaign_is_never_written_over(half):
    with pytest.raises(BadInput, match="is there already"):
        goes_on(begun(commit="c2"), SCHEMES, 2, half)


def test_a_ratio_is_taken_against_the_campaigns_own_jobs_alone(half):
    other = begun("hadoop-2026-11-23-2000", commit="c2")
    other.runs += [run("production-alone", 25.0), run("yarnctl", 50.0, 110.0)]
    write(other, half)
    ratios = [figures(each)["schemes"]["yarnctl"]["production_ratio"] for each in all_of(folder=half)]
    assert ratios == [1.1, 2.0]
    assert figures(other)["schemes"]["yarnctl"]["research_ratio"] is None


def test_a_run_that_is_left_out_stays_and_does_not_count():
    campaign = begun()
    campaign.runs += [run("yarnctl", 90.0, 200.0, left_out="the disk was full"), run("yarnctl", 50.0, 100.0)]
    assert of_scheme(campaign, "yarnctl")["production_s"] == 50.0
    assert of_scheme(campaign, "yarnctl")["left_out"] == 1


def test_outputs_are_held_against_those_of_the_job_alone():
    campaign = begun()
    campaign.runs += [run("research-alone", None, 100.0, research_digests={"part-00000": "a"})]
    assert of_scheme(campaign, "yarnctl")["identical"] is None
    campaign.runs += [run("yarnctl", 50.0, 100.0, research_digests={"part-00000": "b"})]
    assert of_scheme(campaign, "yarnctl")["identical"] is False
    assert "OUTPUT DIFFERS" in told(campaign)


def test_a_sum_of_which_a_part_is_not_known_is_not_known():
    campaign = begun()
    campaign.runs += [run("yarnctl", 50.0, 100.0, research_twice=3), run("yarnctl", 50.0, 100.0)]
    assert of_scheme(campaign, "yarnctl")["groups_twice_sum"] is None


def test_a_campaign_that_is_absent_or_of_another_form_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="campaign file not found"):
        named("hadoop-1999-12-31-2359", tmp_path)
    (tmp_path / "a.json").write_bytes(msgspec.json.encode({"kind": KIND, "runs": []}))
    with pytest.raises(BadInput, match="name"):
        read(tmp_path / "a.json")


RESTORED = {
    "hadoop-2026-11-21-2002": {
        "hard-cap": (1.32, 1.46),
        "soft-cap": (1.86, 1.00),
        "yarn-defaults": (1.73, 1.45),
        "yarn-tuned": (1.05, 1.46),
        "yarnctl": (1.08, 1.03),
    },
    "hadoop-2026-11-22-0841": {"yarn-tuned": (1.11, 1.47), "yarnctl": (1.04, 1.04)},
}
"""What these campaigns showed when they were published."""


@pytest.mark.parametrize("name", RESTORED)
def test_campaigns_that_came_back_show_what_was_published(name):
    campaign = campaigns.named(name)
    for scheme, ratios in RESTORED[name].items():
        found = of_scheme(campaign, scheme)
        assert (round(found["production_ratio"], 2), round(found["research_ratio"], 2)) == ratios


def test_runs_that_were_left_out_are_back_with_their_times():
    times = [
        (run["scheme"], run["production_s"], run["research_s"])
        for campaign in all_of()
        for run in campaign.runs
        if run.get("left_out")
    ]
    assert times == [
        ("yarnctl-no-hold", 65.439, 179.167),
        ("yarnctl", 48.788, 171.428),
        ("yarnctl", 50.4, 160.0),
        ("yarnctl", 48.8, 153.5),
    ]
    assert named("hadoop-2026-11-22-told-ahead").ranges["yarnctl"] == {
        "runs": 5,
        "production_s": [51.0, 54.0],
        "research_s": [155, 178],
    }


def test_a_median_is_named_by_its_place_in_an_earlier_range():
    earlier, later = begun(), begun("hadoop-2026-11-23-2000")
    earlier.runs += [run("yarnctl", 50.0, 100.0), run("yarnctl", 54.0, 110.0), run("hard-cap", 9.0)]
    later.runs += [run("yarnctl", 54.0, 99.9), run("yarnctl-alone", 1.0)]
    assert [line.split()[:5] for line in beside(later, earlier).splitlines()] == [
        ["yarnctl", "production", "54.0", "s", "inside"],
        ["yarnctl", "research", "99.9", "s", "faster"],
    ]
    later.runs += [run("yarnctl", 54.2, 120.0), run("yarnctl", 54.1, 121.0)]
    assert [line.split()[4] for line in beside(later, earlier).splitlines()] == ["slower", "slower"]
