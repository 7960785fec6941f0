"""``yarn-emulator paper pythia|justice``: the shape, and claims that can fail."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from emulator.admission.generator import generate
from emulator.admission.marginals import TR1
from emulator.admission.runs import one
from emulator.cli.paper import command
from emulator.experiments import admission_lab, admission_table, paper_justice, paper_pythia
from emulator.experiments.admission_lab import Cell, Lab, between, percent_above, reaches, sdr
from tests.thoroughness import is_thorough
from yarnctl.deciding.admission.records import Choices
from yarnctl.errors import BadInput

SHAPE = ["paper", "calibrated_on", "figures", "mean_abs_relative_error", "worst_abs_relative_error"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Both traces are the first jobs of TR1: the shape does not depend on their length."""
    trace = generate(TR1, 0).head(1500 if is_thorough() else 400)
    for module in (admission_lab, admission_table, paper_justice):
        monkeypatch.setattr(module, "made", lambda name, seed: trace)


def run(*words: str) -> dict:
    result = CliRunner().invoke(command, [*words, "--engine", "python", "--json"])
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
    assert claims["tr1: more deadlines than Reactive FS at the smallest capacity"]


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
    result = CliRunner().invoke(command, ["justice", "--figure", "8", "--engine", "python"])
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
    lab, ran = Lab(1, "python"), []

    def counted(*order):
        ran.append(order)
        return one(*order)

    monkeypatch.setattr(admission_lab, "one", counted)
    for _ in range(2):
        lab.mean(Cell("tr1", 2250, "Fixed2x", "pythia"), sdr)
    assert len(ran) == 1
    lab.choices = Choices(errors="surplus")
    lab.mean(Cell("tr1", 2250, "Fixed2x", "pythia"), sdr)
    assert len(ran) == 1, "PYTHIA has no errors to weigh"
    lab.mean(Cell("tr1", 2250, "Fixed2x", "justice"), sdr)
    assert len(ran) == 2


def test_a_claim_holds_by_its_sign():
    assert reaches("more", 143, 94).holds
    assert not reaches("more", 143, -1).holds
    assert not reaches("less", -14, 5).holds
    assert between("more", (83, 207), (51, 138)).holds
    assert not between("more", (83, 207), (-2, 138)).holds
    assert percent_above(3.0, 2.0) == 50
    assert percent_above(1.0, 0.0) == float("inf")
