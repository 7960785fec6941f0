"""Rescales of a Flink job: what a journal tells of them, what is wrong with an output, when a claim holds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.mix_tables import NOW_MS
from tests.golden.tables import size
from tests.hadoop.flink_rescaling import faults_of
from tests.unit.deciding.test_drain import Play
from tests.unit.deciding.test_rescale import gone, worker
from yarn_research.campaigns.flink_judging import judged, orders_of, rescales_in
from yarnctl.deciding.model import Accepted, ContainerGranted, Grow, Refused
from yarnctl.deciding.reasons.outcomes import ExecutorBusy
from yarnctl.deciding.records import performed

# --- an output ------------------------------------------------------------------------------------------

EXACT = [(number % 10, number // 10 + 1, number) for number in range(40)]
WRONG = [
    ([*EXACT, EXACT[0]], ["1 numbers twice", "key 0: its counts are not 1 to 5"]),
    (EXACT[:-1], ["1 numbers missing"]),
    ([*EXACT[:-1], (9, 5, 39)], ["key 9: its counts are not 1 to 4"]),
]


def test_each_number_once_and_counts_without_a_gap_are_exact():
    assert faults_of(EXACT[::-1], 40) == []


@pytest.mark.parametrize(("written", "faults"), WRONG)
def test_what_is_wrong_is_named(written, faults):
    assert faults_of(written, 40) == faults


# --- a journal ------------------------------------------------------------------------------------------


def test_a_journal_tells_when_room_came_and_which_container_answered():
    play = Play(worker("w1"), asks=1)
    records = [*play.step(NOW_MS).records]
    (drain,) = play.controller.ledger.open.values()
    told = play.step(NOW_MS + 6000, gone("c-other", "n7", drain.order))
    records += told.records
    granted = ContainerGranted("c9", "p", "n7", size(1), NOW_MS + 3500)
    records += play.step(NOW_MS + 6200, granted, asks=0).records
    assert orders_of(records) == [
        {
            "order": drain.order,
            "at_ms": NOW_MS,
            "predicted_s": 3.0,
            "charged_s": 2.0,
            "state": "granted",
            "freed_s": 3.0,
            "other": True,
            "held_s": 0.5,
        }
    ]


def test_one_change_is_counted_for_a_decision_however_many_orders_it_has():
    play = Play(worker("w1"), worker("w2"))
    step = play.step(NOW_MS)
    grow = Grow("r", (1,))
    done = [performed(NOW_MS, action, Accepted()) for action in step.actions]
    assert rescales_in([*step.records, *done, performed(NOW_MS, grow, Accepted())]) == 2
    refused = [performed(NOW_MS, action, Refused(ExecutorBusy("x"))) for action in step.actions]
    assert rescales_in([*step.records, *refused]) == 0


# --- judging --------------------------------------------------------------------------------------------


def order(**more: Any) -> dict[str, Any]:
    return {"order": "o-1", "predicted_s": 7.5, "state": "granted", "freed_s": 8.0, "held_s": 0.3, **more}


def burst(**more: Any) -> dict[str, Any]:
    return {"dies": "never", "bounds": [8], "rescales": 3, "orders": [order(), order()], **more}


def job(*bursts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"bursts": list(bursts or (burst(), burst())), "ended": "SUCCEEDED", "faults": [], **more}


BROKEN = [
    (1, job(faults=["1 numbers twice"])),
    (1, job(ended="FAILED")),
    (1, job(failed="failed: AssertionError")),
    (2, job(failed="failed: AssertionError")),
    (2, job(burst(bounds=[5]))),
]


@pytest.mark.parametrize(("claim", "broken"), BROKEN)
def test_one_job_breaks_the_claim_that_it_breaks(claim, broken):
    assert all(each.holds for each in judged([job()] * 5))
    assert not judged([*[job()] * 5, broken])[claim].holds


def test_nine_of_ten_orders_come_in_time_and_nine_of_ten_are_granted():
    late, lost = burst(orders=[order(freed_s=11.3)]), burst(orders=[order(state="misdirected")])
    right = burst(orders=[order()] * 9)
    for claim, wrong in ((3, late), (4, lost)):
        assert judged([job(right, wrong)] * 4)[claim].holds
        assert not judged([job(right, wrong, wrong)] * 4)[claim].holds


def test_an_order_that_nothing_answered_is_reported():
    unanswered = burst(orders=[{"order": "o-2", "predicted_s": 7.5, "state": "given_up"}])
    assert judged([*[job()] * 5, job(unanswered)])[5].found == 1


def test_too_few_rescales_show_nothing():
    assert not any(each.holds for each in judged([job()] * 3))
