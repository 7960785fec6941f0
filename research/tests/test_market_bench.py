"""A campaign that broke off goes on from its first run without a file, on the same commit and terms only."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from yarn_research.campaigns import market_bench
from yarn_research.campaigns.admission_bench import Unfinished
from yarn_research.campaigns.admission_hosts import Live
from yarn_research.campaigns.admission_set import Kind
from yarn_research.campaigns.market_bench import Alone, Played, Terms, begun, kept, play
from yarn_research.campaigns.market_set import SCHEMES, Outcome

HEAD = {"kind": "market-live", "commit": "a" * 40, "uncommitted": [], "load_before": [0.0]}
KINDS = (Kind("short", 4, 1.0, 2, 3.0), Kind("long", 8, 2.0, 4, 6.0))
TERMS = Terms(jobs=4, rounds=2)


@pytest.fixture
def ran(monkeypatch):
    """Let each run end at once; the list has what was run, an entry of ``breaks`` breaks off."""
    told: list[str] = []
    breaks: list[str] = []

    def run(on, jobs, scheme, terms, folder):
        told.append(folder.name)
        if folder.name in breaks:
            breaks.remove(folder.name)
            raise Unfinished(folder.name)
        deadline_ms = 90_000 if scheme == "mrm" else None
        return [
            Outcome(job.name, job.kind.name, job.sensitive, 0, 60_000, "SUCCEEDED", deadline_ms)
            for job in jobs
        ]

    monkeypatch.setattr(market_bench, "run", run)
    return told, breaks


def played(folder: Path):
    alone = {kind.name: Alone(10_000.0, 20.0) for kind in KINDS}
    return play(Played(Live.__new__(Live), KINDS, alone, folder), 12, TERMS, lambda text: None)


def test_a_campaign_that_breaks_off_goes_on_and_says_what_an_unbroken_one_says(tmp_path, ran) -> None:
    told, breaks = ran
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    expected = played(whole)
    assert len(told) == TERMS.rounds * len(SCHEMES)
    runs = list(told)
    told.clear()
    breaks.append(runs[4])
    with pytest.raises(Unfinished):
        played(broken)
    assert played(broken) == expected
    assert told == [*runs[:5], *runs[4:]]  # only the one that broke off ran twice


def test_what_cannot_be_written_whole_is_not_kept(tmp_path) -> None:
    with pytest.raises(TypeError):
        kept(tmp_path / "a.json", dict, lambda: {"a": object()})
    assert not (tmp_path / "a.json").exists()


def test_a_campaign_begins_once(tmp_path) -> None:
    assert begun(tmp_path, HEAD, TERMS) == HEAD
    assert begun(tmp_path, {**HEAD, "load_before": [9.0]}, TERMS) == HEAD


@pytest.mark.parametrize(
    ("head", "terms", "says"),
    [
        ({**HEAD, "commit": "b" * 40}, TERMS, "commit"),
        ({**HEAD, "uncommitted": ["yarnctl/a.py"]}, TERMS, "uncommitted"),
        ({**HEAD, "kind": "market-hadoop"}, TERMS, "kind"),
        (HEAD, TERMS._replace(load=1.0), "terms"),
    ],
)
def test_a_campaign_of_another_commit_or_other_terms_is_refused(tmp_path, head, terms, says) -> None:
    begun(tmp_path, HEAD, TERMS)
    with pytest.raises(click.UsageError, match=says):
        begun(tmp_path, head, terms)
