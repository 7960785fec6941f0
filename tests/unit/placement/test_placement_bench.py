"""Rounds of placement: the schemes in turn; a campaign that broke off goes on where it has no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import placement_bench
from tests.cluster.admission_bench import Unfinished
from tests.cluster.placement_bench import SCHEMES, Placing, play_rounds
from tests.cluster.placement_judging import PlacedRun
from tests.cluster.placement_terms import PlacedArrival

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
