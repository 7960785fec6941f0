"""The replay of section 6.3: small queues come out as reckoned by hand; test_market_model.py has the model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from yarn_research.cli import PROGRAM
from yarn_research.market import priced_jobs as jobs
from yarn_research.market.market_figures import cell
from yarn_research.market.market_replay import replay
from yarn_research.market.priced_jobs import MarketOrder, PricedJobs, Readings
from yarnctl.errors import BadInput

SCHEDULERS = ("mrm", "fcfs", "priority")


def three(scheduler, tolerant=1.0):
    """A tolerant job of 10 s, then at 1 s a tolerant one and at 2 s a sensitive one, all as estimated."""
    lasts = np.array([10_000, 10_000, 10_000])
    drawn = PricedJobs(np.array([0, 1000, 2000]), lasts, lasts.copy(), np.array([False, False, True]))
    return replay(MarketOrder(3, 1, 2.0, 1.0, tolerant, scheduler), drawn)


def test_first_come_first_served():
    found = three("fcfs")
    assert found.ended_ms.tolist() == found.deadline_ms.tolist() == [10_000, 20_000, 30_000]


def test_priority_does_not_preempt_and_breaks_what_was_promised():
    found = three("priority")
    assert found.ended_ms.tolist() == [10_000, 30_000, 20_000]
    assert found.deadline_ms.tolist() == [10_000, 20_000, 20_000]
    assert found.saw_tolerant.tolist() == [False, False, True]


def test_the_market_lets_the_sensitive_job_pass_and_keeps_every_promise():
    """Kappa 1, budget half of p_j: the first buys a slack of one mean job, 10 s, and is passed."""
    found = three("mrm", tolerant=0.5)
    assert found.deadline_ms[0] == 20_000
    assert found.slack_ms[0] == 10_000
    assert found.price[0] == 5000
    assert found.ended_ms[2] == 12_000  # it comes at 2 s, and who had slack gives way
    assert (found.ended_ms <= found.deadline_ms).all()


def test_exact_estimates_break_no_promise():
    drawn = jobs.jobs(MarketOrder(3000, 40, tolerant=0.5))
    exact = drawn._replace(estimate_ms=drawn.duration_ms)
    for alpha in (1.1, 2.0, 5.0):
        found = replay(MarketOrder(3000, 40, alpha, tolerant=0.5), exact)
        assert (found.ended_ms <= found.deadline_ms).all()


def test_the_calibration_is_table_8_tolerant():
    durations_s = jobs.spread(jobs.variation())
    assert durations_s.mean() == pytest.approx(43.87 - 1.64 * 4.8)
    assert jobs.premium(durations_s, 0.95) == pytest.approx(1.49, abs=1e-6)


def test_a_cell_under_the_reading_from_the_finish():
    found = cell(MarketOrder(300, 50, readings=Readings(slack_from="finish")))
    assert found.sensitive.slack_median_s >= 0


def run(*arguments):
    return CliRunner().invoke(PROGRAM, ["market", *arguments])


def test_the_command_prints_the_shape_of_the_issue():
    told = run("--jobs", "500", "--inter-arrival-s", "50", "--alpha", "1.5", "--json")
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert {"late_ratio", "sensitive", "tolerant", "earliness_s", "paid_over_used", "wall_s"} <= set(found)
    assert {"wait_s", "slack_median_s", "slack_p95_s", "jumped_ratio", "late_ratio"} <= set(
        found["sensitive"]
    )
    assert found["paid_over_used"]["median"] > 1
    fcfs = run("--jobs", "500", "--inter-arrival-s", "50", "--scheduler", "fcfs", "--json")
    assert json.loads(fcfs.stdout)["paid_over_used"]["median"] is None


@pytest.mark.parametrize(
    "wrong",
    [
        ("--alpha", "0"),
        ("--kappa", "nan"),
        ("--tolerant", "-1"),
        ("--inter-arrival-s", "inf"),
        ("--scheduler", "edf"),
        ("--choose", "queue=none"),
        ("--choose", "colour=red"),
    ],
)
def test_bad_input_is_refused_by_name(wrong):
    told = run("--jobs", "10", "--inter-arrival-s", "50", *wrong)
    assert isinstance(told.exception, BadInput)  # the program makes 2 of it
    assert wrong[0] in str(told.exception)
