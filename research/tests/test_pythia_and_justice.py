"""``yarn-research paper pythia|justice``: the shape, and claims that can fail."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from tests.thoroughness import is_thorough
from yarn_research.admission.choices import Choices
from yarn_research.admission.replays import one
from yarn_research.admission.traces.generator import TR1, generate
from yarn_research.cli.paper import command
from yarn_research.papers import admission_cells, paper_justice, paper_pythia
from yarn_research.papers.admission_cells import (
    ReplayCell,
    ReplayLab,
    all_bars,
    bound,
    by_interval,
    direction,
    percent_above,
    reaches,
    sdr,
)
from yarnctl.errors import BadInput

SHAPE = ["paper", "calibrated_on", "figures", "mean_abs_relative_error", "worst_abs_relative_error"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Both traces are the first jobs of TR1: the shape does not depend on their length."""
    trace = generate(TR1, 0).head(1500 if is_thorough() else 400)
    for module in (admission_cells, paper_justice):
        monkeypatch.setattr(module, "made", lambda name, seed: trace)


def run(*words: str) -> dict:
    result = CliRunner().invoke(command, [*words, "--workers", "1", "--json"])
    assert result.exit_code == 0, result.exception
    found: dict = json.loads(result.stdout)
    return found


def test_pythia_has_the_shape_that_other_tools_read():
    report = run("pythia")
    assert list(report) == SHAPE
    assert [each["figure"] for each in report["figures"]] == list(paper_pythia.FIGURES)
    for figure in report["figures"][1:]:
        assert {"label", "metric", "paper", "ours"} <= set(figure["rows"][0])
        for claim in figure["claims"]:
            assert {"claim", "paper", "ours", "holds"} <= set(claim)
    claims = {each["claim"]: each["holds"] for each in report["figures"][1]["claims"]}
    assert claims["tr1: more deadlines than Reactive FS at the smallest capacity (sign)"]


def test_justice_has_all_of_its_figures():
    report = run("justice")
    assert list(report) == SHAPE
    figures = {each["figure"]: each for each in report["figures"]}
    assert list(figures) == list(paper_justice.FIGURES)
    for number in "234567":
        bars = 2 if number in "23" else 1
        assert len(figures[number]["rows"]) == bars * 2 * 2 * 7 * 4, (
            "traces, capacities, deadlines, allocators"
        )
        assert figures[number]["claims"]
    assert [each["paper"] for each in figures["8"]["rows"]][:2] == [0.81, 0.68]


def test_only_one_figure_and_a_table():
    result = CliRunner().invoke(command, ["justice", "--figure", "8"])
    assert "groups of 100" in result.stdout
    assert [each["figure"] for each in run("pythia", "--figure", "1")["figures"]] == ["1"]
    result = CliRunner().invoke(command, ["pythia", "--figure", "9"])
    assert isinstance(result.exception, BadInput)
    assert str(result.exception) == "--figure: '9' is not reproduced; one of 1, 2, 3, 4, 5, all"


def test_every_reading_of_the_paper_can_be_run_and_ours_comes_first():
    found = run("justice", "--alternatives")["alternatives"]
    assert [each["choice"] for each in found] == list(paper_justice.READINGS)
    assert found[0]["ours"]
    assert all(each["claims_failed"] == len(each["failed"]) for each in found)


def test_a_cell_is_run_once_and_knows_its_readings(monkeypatch):
    lab, ran = ReplayLab(1, 400), []

    def counted(*order):
        ran.append(order)
        return one(*order)

    monkeypatch.setattr(admission_cells, "one", counted)
    for _ in range(2):
        lab.mean(ReplayCell("tr1", 2250, "Fixed2x", "pythia"), sdr)
    assert len(ran) == 1
    lab.choices = Choices(errors="surplus")
    lab.mean(ReplayCell("tr1", 2250, "Fixed2x", "pythia"), sdr)
    assert len(ran) == 1, "PYTHIA has no errors to weigh"
    lab.mean(ReplayCell("tr1", 2250, "Fixed2x", "justice"), sdr)
    assert len(ran) == 2


def test_a_sign_holds_by_its_interval_over_the_traces():
    assert reaches("more", 143, [94.0, 90.0, 97.0]).verdict == "holds"
    assert reaches("more", 143, [94.0, -90.0, 9.0]).verdict == "tie"
    assert reaches("more", 143, [-1.0, -1.1, -0.9]).verdict == "fails"
    assert reaches("less", -14, [-5.0, -6.0, -5.5]).verdict == "holds"
    assert reaches("less", -14, [5.0, 6.0, 5.5]).verdict == "fails"
    assert (reaches("more", 143, [94.0]).paper, reaches("more", 93, [9.0], most=True).paper) == (
        "+143 %",
        "up to +93 %",
    )


def test_one_trace_has_no_interval_and_nothing_is_a_tie():
    assert direction([0.4]) == "holds"
    assert direction([-0.4]) == "fails"
    assert direction([0.0]) == "tie"
    assert direction([float("inf"), 3.0]) == "holds"
    assert direction([float("inf"), -3.0]) == "fails"
    assert direction([float("inf")], -1) == "fails"


def test_a_tie_does_not_hold():
    claim = by_interval("fairer", "ordering", "fairer", [1.0, -1.0])
    assert (claim.holds, claim.verdict, claim.claim) == (False, "tie", "fairer (ordering)")
    bars = all_bars("outperforms", [[2.0, 2.1], [0.0, 0.0]])
    assert (bars.holds, bars.verdict, bars.ours) == (False, "tie", "1 of 2 bars, 1 ties")
    assert all_bars("outperforms", [[2.0, 2.1], [-2.0, -2.1]]).verdict == "fails"
    assert all_bars("less", [[-2.0, -2.1]], sign=-1).holds
    assert not bound("at least 88 % more", "+88 %", "+87 %", False).holds


@pytest.mark.parametrize("paper", ["pythia", "justice"])
def test_every_claim_says_by_what_it_is_judged(paper):
    claims = [claim for figure in run(paper)["figures"] for claim in figure["claims"]]
    assert {claim["judged"] for claim in claims} >= {"ordering", "sign", "bound"}
    for claim in claims:
        words = claim["claim"]
        assert claim["holds"] == (claim["verdict"] == "holds")
        if claim["judged"] == "bound":
            assert re.search(r"(at most|at least|within|below|above) \d", words), words
        else:
            assert words.endswith(f"({claim['judged']})")


def test_percent_above_nothing_is_endless():
    assert percent_above(3.0, 2.0) == 50
    assert percent_above(1.0, 0.0) == float("inf")
