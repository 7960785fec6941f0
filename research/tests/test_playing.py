"""The bench's rounds: schemes take turns, each run is written down as it ends, a failed one too."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest

from yarn_research.campaigns import bench
from yarn_research.campaigns.campaign import KIND, Campaign, named
from yarn_research.campaigns.schemes import ALL

SCHEMES = {name: ALL[name] for name in ("production-alone", "yarnctl", "yarnctl-as-shipped")}


@pytest.fixture
def campaign():
    """Return a campaign of two rounds that has just begun."""
    return Campaign(
        name="hadoop-2026-11-22-2000",
        kind=KIND,
        began="2026-11-22T20:00:00Z",
        commit="c",
        uncommitted=[],
        machine={},
        versions={},
        configuration={},
        order="",
        rounds=2,
    )


CLUSTER: Any = None
"""Nothing is asked of it: ``run_once`` is replaced."""


@pytest.fixture
def played(monkeypatch):
    """Play runs without a cluster, of which the numbers in ``failing`` fail."""
    failing: set[int] = set()
    numbers: list[str] = []

    def run_once(cluster, scheme, folder, number):
        numbers.append(number)
        if len(numbers) in failing:
            raise AssertionError("production-7 FAILED: see /tmp/bench/production-7.log\nmore")
        return {"production_s": 50.0}

    monkeypatch.setattr(bench, "run_once", run_once)
    return numbers, failing


def test_schemes_take_turns_and_a_failed_run_is_kept_and_made_again(campaign, played, tmp_path):
    numbers, failing = played
    failing.add(2)
    bench.play(CLUSTER, campaign, SCHEMES, tmp_path, tmp_path, math.inf)
    found = named(campaign.name, tmp_path)
    alone, ours, shipped = SCHEMES
    assert [run["scheme"] for run in found.runs] == [alone, ours, shipped, ours, alone, ours, shipped]
    assert found.runs[1]["left_out"] == "failed: AssertionError: production-7 FAILED: see PATH"
    assert {name: len(found.of(name)) for name in SCHEMES} == dict.fromkeys(SCHEMES, 2)
    assert len(set(numbers)) == len(numbers) == 7
    assert all(len(run[name]) == 3 for run in found.runs for name in ("load_before", "load_after"))


def test_a_bench_in_which_much_fails_ends(campaign, played, tmp_path):
    played[1].update(range(100))
    with pytest.raises(SystemExit, match="3 runs failed"):
        bench.play(CLUSTER, campaign, SCHEMES, tmp_path, tmp_path, math.inf)
    assert len(named(campaign.name, tmp_path).runs) == 3


def test_it_goes_on_where_it_stopped(campaign, played, tmp_path):
    campaign.runs += [{"scheme": name, "production_s": 50.0} for name in list(SCHEMES)[:2]]
    bench.play(CLUSTER, campaign, SCHEMES, tmp_path, tmp_path, math.inf)
    assert [run["scheme"] for run in campaign.runs] == [*SCHEMES, *SCHEMES]


def test_no_run_begins_when_the_time_is_over(campaign, played, tmp_path):
    bench.play(CLUSTER, campaign, SCHEMES, tmp_path, tmp_path, time.monotonic() - 1)
    assert (campaign.runs, played[0]) == ([], [])


def test_what_was_tried_has_its_plan_and_how_it_ended() -> None:
    def broken() -> dict[str, int]:
        raise ValueError("no order in /tmp/folder/file")

    played, failed = (
        bench.tried({"number": 1}, 2, lambda: {"freed": 3}),
        bench.tried({"number": 4}, 2, broken),
    )
    assert (played["number"], played["sitting"], played["freed"]) == (1, 2, 3)
    assert list(failed) == ["number", "sitting", "began", "load_before", "failed"]
    assert failed["failed"] == "failed: ValueError: no order in PATH"
