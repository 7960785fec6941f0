"""A slice of the campaign of what-if questions: a few of each kind."""

from __future__ import annotations

import msgspec
import pytest

from tests.soak.what_if import answered_late, campaign, shares
from tests.soak.what_if_virtual import play
from tests.unit.deciding.freed_containers import decided, order
from yarnctl.deciding.case import RefusedJob
from yarnctl.deciding.model import Accepted, Outcome, Refused
from yarnctl.deciding.reasons.eligibility import AnswerLate
from yarnctl.deciding.records import Performed, Record
from yarnctl.deciding.releaser import Reason


@pytest.mark.thorough
@pytest.mark.parametrize("mix", [False, True])
@pytest.mark.xdist_group("what-if-live")
def test_answers_hold_when_it_is_done(mix: bool) -> None:
    found = campaign(2, 10.0, 7, mix=mix)
    assert [(each.is_same, each.starts_inside) for each in found] == [(True, True)] * 2


@pytest.mark.parametrize("scheme", ["natjam", "mix"])
def test_answers_hold_in_virtual_time(scheme: str) -> None:
    assert play(10, 7, scheme).count(True) >= (10 if scheme == "natjam" else 6)


@pytest.mark.parametrize(("outcome", "late"), [(Accepted(), False), (Refused(AnswerLate()), True)])
def test_an_order_that_an_application_answers_late_sets_its_own_question_aside(
    outcome: Outcome, late: bool
) -> None:
    records: list[Record] = [
        decided("root.production", [1], "p-1"),
        decided("root.production", [2], "p-2"),
        Performed(at_ms=1, action="kill", outcome=outcome, order=order(1)),
    ]
    assert answered_late(records, "p-1") == late
    assert not answered_late(records, "p-2")


@pytest.mark.parametrize(("why", "late"), [("next", False), ("late", True)])
def test_a_job_that_answers_late_sets_a_question_aside(why: Reason, late: bool) -> None:
    refused = msgspec.structs.replace(
        decided("root.production", [1], "p-1"), refused_jobs=(RefusedJob("r-1", (0,), why),)
    )
    assert answered_late([refused], "p-1") == late


def test_shares_of_daemons_add_up() -> None:
    assert shares(200, 6) == [33, 33, 33, 33, 34, 34]
