"""Rounds of placement: the schemes in turn; a campaign that broke off, or was left, goes on where it was."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from yarn_research.campaigns import placement_bench
from yarn_research.campaigns.admission_bench import Unfinished
from yarn_research.campaigns.placement_bench import SCHEMES, Placing, play_rounds
from yarn_research.campaigns.placement_judging import PlacedRun
from yarn_research.campaigns.placement_sittings import left_by, restore
from yarn_research.campaigns.placement_terms import PlacedArrival
from yarnctl.cli.runs import kept_runs
from yarnctl.errors import BadInput
from yarnctl.prediction.application_runs import KnownRun

COMING = [[PlacedArrival("a.toml", 0.0, 60)], [PlacedArrival("b.toml", 0.0, 90)]]
NOWHERE = Placing.__new__(Placing, None, (), Path(), Path())  # type: ignore[arg-type]  # it is not asked


@pytest.fixture
def ran(monkeypatch):
    """Let each run end at once; the list has what was run, an entry of ``breaks`` breaks off."""
    told: list[tuple[str, str]] = []
    breaks: list[tuple[str, str]] = []

    def play(on, scheme, coming, folder):
        told.append((scheme, coming[0].file))
        if told[-1] in breaks:
            breaks.remove(told[-1])
            raise Unfinished(scheme)
        return PlacedRun((), f"2026-01-0{1 + len(coming[0].file)}T00:00:00Z", (0.1,), (0.2,))

    monkeypatch.setattr(placement_bench, "play", play)
    return told, breaks


def test_each_round_has_its_own_arrivals_and_begins_with_another_scheme(tmp_path: Path, ran) -> None:
    told, _ = ran
    played = play_rounds(NOWHERE, COMING, tmp_path)
    first, second, third = SCHEMES
    assert told == [
        *((scheme, "a.toml") for scheme in (first, second, third)),
        *((scheme, "b.toml") for scheme in (second, third, first)),
    ]
    assert [(each.round, each.scheme) for each in played][3:] == [(1, second), (1, third), (1, first)]


def test_a_campaign_that_breaks_off_goes_on_and_says_what_an_unbroken_one_says(tmp_path: Path, ran) -> None:
    told, breaks = ran
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    expected = play_rounds(NOWHERE, COMING, whole)
    runs = list(told)
    told.clear()
    breaks.append(runs[4])
    with pytest.raises(Unfinished):
        play_rounds(NOWHERE, COMING, broken)
    assert play_rounds(NOWHERE, COMING, broken) == expected
    assert told == [*runs[:5], *runs[4:]]  # only the one that broke off ran twice


def test_another_sitting_goes_on_with_the_profile_and_the_runs_of_the_one_before(tmp_path: Path, ran) -> None:
    told, _ = ran
    whole, first, second = (tmp_path / name for name in ("whole", "first", "second"))
    for folder in (whole, first, second):
        folder.mkdir()
    expected = play_rounds(NOWHERE, COMING, whole)
    played = play_rounds(NOWHERE, COMING[:1], first)
    run = KnownRun("wordcount", "spark", {"input_mib": 3.0}, {}, 2, 9, "profile")
    head = {"kind": "placement-hadoop", "began": "2026-01-01T00:00:00Z", "commit": "a", "uncommitted": []}
    seen = {"machine": {}, "load_before": [0.1], "versions": {}, "terms": {}, "coming": [], "sittings": []}
    kept = tmp_path / "kept.json"
    kept.write_bytes(msgspec.json.encode({**head, **seen, "profile": [run], "played": played}))
    restore(left_by(kept), second)
    told.clear()
    assert play_rounds(NOWHERE, COMING, second) == expected
    assert [file for _, file in told] == ["b.toml"] * 3
    assert kept_runs(second / "runs.jsonl") == (run,)
    begun = msgspec.json.decode((second / "campaign.json").read_bytes())
    assert {name: begun["head"][name] for name in head} == head


def test_what_is_no_campaign_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text("{}")
    with pytest.raises(BadInput, match=r"kept\.json: is not an unfinished placement campaign"):
        left_by(tmp_path / "kept.json")
