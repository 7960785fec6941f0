"""The paper's figures: calibrated where we say so, and reported as they come out."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from emulator.cli.paper import command
from emulator.experiments.figures import Figure, errors, quantile, row, share, stdev
from emulator.experiments.natjam_micro import FIG3_S, Lab, figure_3, figure_5
from emulator.experiments.natjam_traces import same_kind
from emulator.experiments.paper_natjam import FIGURES


def test_fig_3_is_what_the_constants_are_fitted_on():
    figure = figure_3(Lab(runs=5))
    assert len(figure.rows) == len(FIG3_S)
    for each in figure.rows:
        assert each.relative_error is None, "what calibrates may not count as a prediction"
        assert each.ours == pytest.approx(each.paper, abs=0.3)


def test_what_only_repeats_another_figure_has_no_relative_error():
    rows = {(each.label, each.metric): each.relative_error for each in figure_5(Lab(runs=1)).rows}
    assert rows["SRT production-s", "research_s"] is None
    assert rows["LRT production-s", "research_s"] is not None


@pytest.mark.parametrize(
    ("paper", "ours", "holds"),
    [(-5.0, -8.1, True), (-5.0, 8.1, False), (-5.0, -0.4, False), (30.0, 299.0, True), (30.0, 301.0, False)],
)
def test_a_magnitude_holds_with_the_same_sign_within_a_factor_of_ten(paper, ours, holds):
    assert same_kind(paper, ours) is holds


def test_statistics_by_hand():
    values = [4.0, 1.0, 3.0, 2.0]
    assert quantile(values, 0.5) == 2.0  # two of four lie at or below
    assert quantile(values, 0.0) == 1.0
    assert quantile(values, 1.0) == 4.0
    assert share(values, 3.0) == 0.75
    assert stdev([1.0, 3.0]) == pytest.approx(2**0.5)
    assert stdev([7.0]) == 0.0


def test_errors_leave_out_what_says_nothing():
    rows = (
        row("a", "s", 100.0, [110.0]),
        row("b", "s", 100.0, [200.0], counts=False),
        row("c", "s", 50.0, [49.0]),
    )
    assert errors([Figure("x", "", rows)]) == (0.06, 0.1)
    assert errors([]) == (None, None)


def test_the_report_has_the_shape_that_other_tools_read():
    result = CliRunner().invoke(command, ["natjam", "--figure", "4", "--runs", "1", "--json"])
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert list(report) == [
        "paper",
        "calibrated_on",
        "figures",
        "mean_abs_relative_error",
        "worst_abs_relative_error",
    ]
    (figure,) = report["figures"]
    assert set(figure["rows"][0]) == {"label", "metric", "paper", "ours", "stdev", "runs", "relative_error"}
    assert set(figure["claims"][0]) >= {"claim", "paper", "ours", "holds"}


def test_every_figure_of_the_evaluation_is_there():
    assert list(FIGURES) == [str(number) for number in range(3, 16)]
