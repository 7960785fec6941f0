"""Shares of the request queue and of what may wait: no user fills either, operators have places."""

from __future__ import annotations

import pytest

from tests.unit.daemon.at_the_desk import AtTheDesk, asking
from tests.unit.daemon.test_market_desk import market, priced
from yarnctl.daemon.admission import admission_controller
from yarnctl.daemon.admission.request_queue import Refusal
from yarnctl.deciding.admission.pricing import timeline
from yarnctl.deciding.admission.records import Estimate


def test_waiting_requests_of_one_user_leave_places_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_controller, "WAITING_MAX", 16)
    there = AtTheDesk(history=False)
    there.yarn.run("application_9_0001", 10, user="bob")
    refusals = []
    for _ in range(20):
        errand = there.hand(asking(2))
        there.tick()
        if isinstance(errand.answer, Refusal):
            refusals.append(errand.answer)
    assert there.book.counted("waiting") < 16
    assert {each.code for each in refusals} == {"queue-full"}
    assert "ann" in refusals[0].problem
    other = there.hand(asking(2, user="carl"))
    there.tick()
    assert isinstance(other.answer, str)


class Work:
    """Counts what is laid or served on a timeline."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("lay", "serve", "given"):
            if hasattr(timeline._Steps, name):
                monkeypatch.setattr(timeline._Steps, name, self._counted(getattr(timeline._Steps, name)))

    def _counted(self, plain):
        def counted(*given, **named):
            self.count += 1
            return plain(*given, **named)

        return counted


def promised(promises: int) -> AtTheDesk:
    """Return a market with so many promises that wait for their turn."""
    there = market(tokens_m=10**12, history=False)
    for number in range(promises):
        estimate = Estimate((5 + number % 7) * 60_000, 0, "me")
        there.hand(priced(3 + number % 5, 600 + 7 * (number * 37 % promises), estimate=estimate))
        there.tick(10)
    while there.window.handed():
        there.tick(10)
    return there


def test_an_ask_serves_each_promise_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    there = promised(60)
    assert there.book.counted("waiting") > 40
    work = Work(monkeypatch)
    errand = there.hand(priced(4, 900))
    there.tick(10)
    assert isinstance(errand.answer, str)
    assert work.count <= 6 * there.book.counted("waiting")


def test_the_more_promises_wait_the_fewer_asks_are_executed_in_a_tick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission_controller, "PROMISES_A_TICK", 100, raising=False)
    there = promised(40)
    errands = [there.hand(priced(2, 1_200)) for _ in range(12)]
    there.tick(10)
    answered = sum(errand.answer is not None for errand in errands)
    assert 1 <= answered <= 3
    for _ in range(12):
        there.tick(10)
    assert all(isinstance(errand.answer, str) for errand in errands)
