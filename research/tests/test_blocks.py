"""``yarn-research paper natjam --blocks N``: claims judged by interval, over blocks that share no seed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from scipy.stats import t

from yarn_research.cli.paper import command
from yarn_research.papers.figures import T_975, Verdict, above_zero, interval, t_975, worst
from yarn_research.papers.natjam_blocks import (
    BLOCKS,
    Judged,
    block_4,
    judged_6,
    natjam_blocks,
    ordered,
    over_blocks,
    within,
)
from yarn_research.papers.natjam_micro import Lab, runs_6
from yarn_research.studies.cells import CellRuns, carry_out
from yarnctl.command_line import ProgressBar
from yarnctl.errors import BadInput


def here() -> CellRuns:
    return CellRuns(None, 1, ProgressBar("runs"))


def natjam(*words: str) -> dict[str, Any]:
    result = CliRunner().invoke(command, ["natjam", "--json", "--workers", "1", *words])
    assert result.exit_code == 0, result.exception
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("degrees", [*range(1, len(T_975) + 1), 31, 39, 60, 199, 100_000])
def test_quantiles_are_student_s(degrees: int) -> None:
    assert t_975(degrees) == pytest.approx(t.ppf(0.975, degrees), rel=1e-4)


def test_an_interval_by_hand() -> None:
    found = interval([1.0, 2.0, 3.0])  # s.d. 1, t(2) = 4.30265
    assert found.centre == 2.0
    assert found.high - 2.0 == pytest.approx(4.30265 / 3**0.5)
    assert interval([5.0]) == (5.0, 5.0, 5.0)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1.0, 1.1, 0.9, 1.0], "holds"),
        ([-1.0, -1.1, -0.9, -1.0], "fails"),
        ([1.0, -1.0, 2.0, -1.5], "tie"),  # its interval contains 0
        ([0.02, 0.02, 0.02, 0.03], "tie"),  # no chance, and less than the paper prints
        ([0.0, 0.0, 0.0, 0.0], "tie"),
    ],
)
def test_an_ordering_is_right_wrong_or_a_tie(values: list[float], verdict: Verdict) -> None:
    assert above_zero(values, 0.1) == verdict
    series = {"a": [10.0] * 4, "b": [10.0 + value for value in values]}
    assert ordered(series, [("a", "b")]).verdict == verdict
    backwards: dict[Verdict, Verdict] = {"holds": "fails", "fails": "holds", "tie": "tie"}
    assert ordered(series, [("b", "a")]).verdict == backwards[verdict]


def test_a_chain_holds_if_every_pair_is_right() -> None:
    assert worst(["holds", "tie", "fails"]) == "fails"
    assert worst(["holds", "tie"]) == "tie"
    assert worst(["holds", "holds"]) == "holds"
    assert within("ratio", 1.11, 1.07, 0.05).verdict == "holds"
    assert within("ratio", 1.13, 1.07, 0.05).verdict == "fails"


@pytest.mark.parametrize(
    ("holds", "ties", "fails", "verdict"),
    [
        (10, 0, 0, "holds"),
        (9, 1, 0, "tie"),
        (9, 0, 1, "fails"),
        (38, 2, 0, "holds"),
        (37, 3, 0, "tie"),
        (38, 0, 2, "holds"),
        (0, 38, 2, "tie"),
        (0, 37, 3, "fails"),
    ],
)
def test_a_claim_holds_in_95_percent_of_the_blocks(holds, ties, fails, verdict) -> None:
    judged = [Judged("holds", {"x": 1.0})] * holds + [Judged("tie", {"x": 2.0})] * ties
    judged += [Judged("fails", {"x": 3.0})] * fails
    found = over_blocks("4", "a < b", "holds", judged)
    assert (found.blocks_hold, found.blocks_tie, found.blocks_fail) == (holds, ties, fails)
    assert found.verdict == verdict
    assert found.holds == (verdict == "holds")
    (spread,) = found.measured
    assert spread.min <= spread.median <= spread.max


def test_the_report_is_that_of_the_first_block_and_says_more() -> None:
    plain, more = (
        natjam("--figure", "4", "--runs", "2"),
        natjam("--figure", "4", "--runs", "2", "--blocks", "2"),
    )
    blocks = more.pop("blocks")
    assert more == plain
    assert (blocks["count"], blocks["runs"], blocks["seeds"]) == (2, 2, [0, 3])
    assert [claim["claim"] for claim in blocks["claims"]] == [
        claim["claim"] for claim in plain["figures"][0]["claims"]
    ]
    second = carry_out([block_4(Lab(runs=2, first_seed=2))], here())[0]
    assert blocks["each"][0]["mean_abs_relative_error"] == plain["mean_abs_relative_error"]
    assert [each["first_seed"] for each in blocks["each"]] == [0, 2]
    for place, claim in enumerate(blocks["claims"]):
        for told in claim["measured"]:
            assert told["min"] <= second.judged[place].measured[told["what"]] <= told["max"]


def test_every_claim_of_figs_4_to_6_is_judged_and_the_errors_with_them() -> None:
    found = natjam_blocks(list(BLOCKS), 2, 2, here())
    claims = [(each.figure, each.claim) for each in found["blocks"]["claims"]]
    figures = found["figures"]
    assert claims[:-2] == [(each.figure, claim.claim) for each in figures for claim in each.claims]
    assert [claim for _, claim in claims[-2:]] == [
        "mean absolute relative error at most 2%",
        "worst absolute relative error at most 7%",
    ]
    pooled = found["blocks"]["all_seeds"]["mean_abs_relative_error"]
    assert 0 < pooled < 0.1


def test_a_claim_that_is_wrong_fails() -> None:
    """LR for MR: then the small job loses tasks, and both orderings are lost."""
    lab = Lab(runs=5)
    found = carry_out([runs_6(lab)], here())[0]
    honest = [each.verdict for each in judged_6(lab, found)]
    planted = {**found, ("MR", "m"): found["LR", "m"], ("MR", "s"): found["LR", "s"]}
    verdicts = [each.verdict for each in judged_6(lab, planted)]
    assert (honest[0], honest[1], honest[3]) == ("holds", "holds", "holds")
    assert (verdicts[0], verdicts[1], verdicts[3]) == ("tie", "fails", "fails")
    assert verdicts[2] == "fails"


def test_what_cannot_be_judged_is_refused() -> None:
    for words, said in (
        (
            ["--figure", "10", "--blocks", "2"],
            "--blocks: Fig 10 is not judged over blocks; one of 4, 5, 6, all",
        ),
        (["--runs", "1", "--blocks", "2"], "--blocks: one run a bar has no interval; use --runs 2 or more"),
        (
            ["--alternatives", "--blocks", "2"],
            "--blocks: alternatives are compared on one block; leave one of",
        ),
    ):
        error = CliRunner().invoke(command, ["natjam", *words]).exception
        assert isinstance(error, BadInput)
        assert str(error).startswith(said)


def test_the_tables_say_what_holds_over_all() -> None:
    shown = CliRunner().invoke(command, ["natjam", "--figure", "6", "--runs", "2", "--blocks", "2"]).stdout
    assert "2 blocks of 2 seeds (above: the first)" in shown
    assert "over the blocks" in shown
