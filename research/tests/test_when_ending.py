"""The study of ends: its figures by hand, and four hours of the trace played."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from yarn_research.studies import when_ending
from yarn_research.studies.when_ending import Figures, Judged, figures


def test_figures_count_what_is_inside_and_widths_against_the_queues_range() -> None:
    judged = [Judged("a", 50, 0, 60), Judged("a", 70, 0, 60), Judged("b", 5, 0, 10), Judged("b", 5, 4, 8)]
    spans = {"a": list(range(1, 101)), "b": list(range(1, 11))}
    found = figures(judged, spans)
    assert isinstance(found, Figures)
    assert (found.jobs, found.covered_ratio) == (4, 0.75)
    assert found.by_queue["a"][:2] == (2, 0.5)
    assert found.by_queue["a"][2] == pytest.approx(60 / 90.9)
    assert found.by_queue["b"][2] == pytest.approx(7 / 9.9)


def test_four_hours_are_foretold_from_the_jobs_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(when_ending, "WARM_UP", 60)
    found = when_ending.play("packaged:fb2009-day@0-4", 2)
    assert found.jobs > 200
    assert found.covered_ratio > 0.8


def test_the_record_has_its_making_its_rule_and_both_queues(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = Figures(10, 0.95, 0.2, {"production": (4, 1.0, 0.1), "research": (6, 0.9, 0.3)})
    monkeypatch.setattr(when_ending, "play", lambda spec, seed: found)
    file = tmp_path / "when.json"
    result = CliRunner().invoke(when_ending.command, ["--seed", "3", "--output", str(file)])
    record = json.loads(file.read_text())
    assert (result.exit_code, record["holds"], record["seed"]) == (1, False, 3), "0.95 is more than 0.93"
    assert record["head"]["commit"]
    assert record["found"]["by_queue"]["research"] == [6, 0.9, 0.3]
    again = CliRunner().invoke(when_ending.command, ["--output", str(file)])
    assert "never changed" in str(again.exception)
