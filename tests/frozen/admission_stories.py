"""Stories at a gate, for golden journals: one that is over, one with waiting, admitted and taken requests."""

from __future__ import annotations

from tests.unit.daemon.at_the_desk import START_MS, AtTheDesk, Past
from yarnctl.daemon.admission.request_queue import AccountCommand
from yarnctl.deciding.admission.records import Budget, Estimate, Finished
from yarnctl.deciding.records import Record

LESSON = Finished(90_000, 10, 30_000, 5, 10, 0.5, True)
FIRST = "application_1_0001"


def begun(allocator: str = "pythia") -> AtTheDesk:
    """Return a gate that has learned from the past and from one job."""
    past = Past()
    past.before = (LESSON,)
    past.jobs[FIRST] = LESSON
    there = AtTheDesk(allocator, past=past)
    there.submit(there.ask(9, key="k"))
    there.go(2_000)
    there.yarn.end(FIRST)
    there.go(10_000)
    return there


def ended() -> list[Record]:
    """Return a story in which everything is over: ended, withdrawn, expired."""
    there = begun()
    there.withdraw(there.ask(4, minutes=30).admission)
    there.ask(3, minutes=30)
    there.go(200_000)
    return there.records


def with_reservations() -> list[Record]:
    """Return a story that stops with a job that runs, one that is admitted, and two that wait."""
    there = begun()
    taken = there.ask(3, estimate=Estimate(180_000, 9_000, "history:3 runs of job"))
    there.submit(taken, "application_1_0002")
    there.go(2_000)
    there.ask(2, minutes=40, name="another", user="cyd")
    there.yarn.run("application_9_0001", 6, user="bob")
    there.go(2_000)
    there.ask(9, minutes=60, name="large")
    there.ask(8, minutes=30, name="larger", user="bob", key="again")
    return there.records


def clock_set_back() -> list[Record]:
    """Return a story in which the wall clock is set back by a day between two lives of a gate."""
    first = AtTheDesk(past=Past(), now_ms=START_MS + 86_400_000)
    first.submit(first.ask(5))
    first.go(3_000)
    second = AtTheDesk(yarn=first.yarn, past=first.past, records=first.records, now_ms=START_MS)
    second.go(2_000)
    second.yarn.end(FIRST)
    second.go(5_000)
    return second.records


def at_a_price() -> list[Record]:
    """Return a story of a market: paid and ended, refused, refilled, one that runs, one admitted."""
    there = AtTheDesk("mrm", past=Past())
    there.go(4_000)
    for wanted in (
        AccountCommand(account="analytics", daily_mtokens=1_000, cap_mtokens=9_000_000),
        AccountCommand(account="analytics", credit_mtokens=5_000_000),
    ):
        there.hand(wanted)
        there.tick()
    estimate, most = Estimate(600_000, 10_000, "history:3 runs of job"), Budget("analytics", 10**9)
    there.past.jobs[FIRST] = LESSON
    there.submit(there.ask(9, minutes=3, key="k", estimate=estimate, budget=most))
    there.go(2_000)
    there.ask(9, minutes=3, name="dear", estimate=estimate, budget=Budget("analytics", 1_000))
    there.yarn.end(FIRST)
    there.go(10_000)
    there.tick(90_000_000)
    taken = there.ask(6, minutes=30, name="another", estimate=estimate, budget=most)
    there.submit(taken, "application_1_0002")
    there.go(2_000)
    there.ask(9, minutes=9, name="sooner", estimate=estimate, budget=most)
    return there.records
