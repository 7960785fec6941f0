"""The judging of the price of a second: its steps, what is played in a time, and its figures by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from yarn_research.studies import second_worth
from yarn_research.studies.hour_pairs import HourPair
from yarn_research.studies.second_worth import (
    PAIRS,
    lost_over_tuned,
    more_budget,
    plan,
    ratios,
    rows,
    summary,
    told,
    worse_than_nothing,
)
from yarn_research.studies.study_runs import Study


def side(production: float, research: float, lost: float = 0.0) -> dict[str, float]:
    return {"production_mean_s": production, "research_mean_s": research, "lost_work_s": lost}


def entry(pair: HourPair, seed: int, **schemes: dict[str, float]) -> dict[str, Any]:
    named = {name.replace("_", "-"): figures for name, figures in schemes.items()}
    return {"nodes": 6, "slots": 12, **pair._asdict(), "seed": seed, "schemes": named}


ONE, TWO = HourPair(12, 18), HourPair(13, 19)
ENTRIES = [
    entry(
        ONE, 1, soft_cap=side(20, 10), yarn_tuned=side(10, 20, 40), mix_2=side(11, 15, 4), mix_5=side(10, 15)
    ),
    entry(
        ONE, 2, soft_cap=side(20, 10), yarn_tuned=side(10, 20, 40), mix_2=side(9, 15, 6), mix_5=side(12, 15)
    ),
    entry(TWO, 1, soft_cap=side(10, 10), yarn_tuned=side(8, 20, 20), mix_2=side(10.1, 11, 5)),
    entry(TWO, 2, soft_cap=side(10, 10), yarn_tuned=side(8, 20, 20), mix_2=side(10.3, 9, 5)),
]


def test_the_pairs_are_those_of_the_plan():
    named = ",".join(f"{pair.production}/{pair.research}" for pair in PAIRS)
    assert named == "12/18,13/19,14/20,15/21,16/22,17/23,18/12,19/13,20/14,21/15,22/16,23/17"
    text = Path("research/notes/plan-second-worth.md").read_text("utf-8")
    assert named.replace(",", ", ") + "." in " ".join(text.split())


def test_the_steps_are_in_the_plan_s_order():
    steps = list(plan())
    assert [(step.cluster, step.seed, step.budgets) for step in steps[:6]] == [
        ((6, 12), 1, (0.02, 0.0)), ((12, 8), 1, (0.02, 0.0)), ((6, 12), 1, (0.05, 0.1, 0.2)),
        ((6, 12), 2, (0.02, 0.0)), ((6, 12), 3, (0.02, 0.0)), ((12, 8), 2, (0.02, 0.0)),
    ]  # fmt: skip
    assert [step.cluster for step in steps[9:]] == [(50, 8)] * 6
    assert [row.name for row in rows(steps[0])] == ["soft-cap", "yarn-tuned", "mix-2", "mix-0"]
    assert [row.name for row in rows(steps[2])] == ["mix-5", "mix-10", "mix-20"]
    assert {(row.second_worth_ratio, row.kills_max) for row in rows(steps[2])} == {(1.0, 3)}


def test_figures():
    production = ratios(ENTRIES, "mix-2", "yarn-tuned", "production_mean_s")
    assert production == {"12/18": 1.0, "13/19": 1.275}
    found = told(production)
    assert (found["pairs"], found["mean"], found["most"]) == (2, 1.1375, 1.275)
    assert (found["at_most_100"], found["at_most_102"]) == (0.5, 0.5)
    assert found["mean_bootstrap_95"] == (1.0, 1.275)
    assert lost_over_tuned(ENTRIES, "mix-2") == pytest.approx(20 / 120, abs=1e-4)
    assert worse_than_nothing(ENTRIES, "mix-2") == ["13/19 seed 1: 1.010 1.100", "13/19 seed 2: 1.030 0.900"]
    assert more_budget(ENTRIES) == [
        {"from": "mix-2", "to": "mix-5", "mean": 1.1, "most": 1.1, "by_pair": {"12/18": 1.1}}
    ]
    assert list(summary(ENTRIES)) == ["6x12"]


def test_a_run_begins_before_the_end_of_the_time_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    played: list[tuple[str, int, list[str]]] = []

    def prepared(*_: object) -> Study:
        return Study(None, (), (1,), {ONE: (), TWO: ()}, (), (), "")  # type: ignore[arg-type]

    def run(study: Study, out: Path, *_: object) -> dict[str, Any]:
        played.append((out.name, study.seeds[0], [row.name for row in study.rows]))
        return {row.name: side(len(played), 1) for row in study.rows}

    monkeypatch.setattr(second_worth, "prepare_study", prepared)
    monkeypatch.setattr(second_worth, "run_study", run)
    clock = iter(range(100))
    found = second_worth.play("x.tsv", tmp_path, 7, lambda: next(clock))
    assert [(name, len(names)) for name, _, names in played] == [("6x12", 4)] * 2 + [("12x8", 4)] * 2 + [
        ("6x12", 3)
    ] * 2 + [("6x12", 4)]
    assert list(found[0]["schemes"]) == [
        "soft-cap",
        "yarn-tuned",
        "mix-2",
        "mix-0",
        "mix-5",
        "mix-10",
        "mix-20",
    ]
    assert len(found) == 5
