"""The study of ends: its figures by hand, and four hours of the trace played."""

from __future__ import annotations

import pytest

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
