"""The gate and a wall clock that is set: polling, expiry and deciding go on; deadlines stay instants."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.daemon.at_the_desk import MINUTE, START_MS, AtTheDesk
from yarnctl.daemon.admission.reconciler import REST_EVERY_MS
from yarnctl.deciding.admission.records import Estimate
from yarnctl.deciding.admission.shared_round import RESERVED_MS

DAY_MS = 86_400_000
ALLOCATORS = ("justice", "oracle", "mrm", "orion")


def again(before: AtTheDesk, now_ms: int, **fields: Any) -> AtTheDesk:
    """Return the next life of a desk, by what its journal has."""
    return AtTheDesk(yarn=before.yarn, past=before.past, records=before.records, now_ms=now_ms, **fields)


def test_clock_set_back_between_lives_ended_job_is_noticed_in_one_poll() -> None:
    first = AtTheDesk(now_ms=START_MS + DAY_MS)
    taken = first.ask(5)
    first.submit(taken)
    first.go(3_000)
    second = again(first, START_MS)
    second.go(2_000)
    second.yarn.end("application_1_0001")
    second.yarn.asked.clear()
    second.go(REST_EVERY_MS)
    assert second.state(taken) == "ended"
    assert second.yarn.asked.count("applications") == 1
    assert second.gate.reserved == ()


@pytest.mark.parametrize("within", [False, True], ids=["between two lives", "within a life"])
def test_clock_set_back_admission_expires_by_elapsed_time(within: bool) -> None:
    there = AtTheDesk(now_ms=START_MS + DAY_MS)
    admitted = there.ask(5)
    there.go(20_000)
    if within:
        there.now_ms -= DAY_MS
    else:
        there = again(there, there.now_ms - DAY_MS)
    there.go(RESERVED_MS - 30_000)
    assert there.state(admitted) == "admitted"
    there.go(35_000)
    assert there.state(admitted) == "expired"
    assert there.gate.reserved == ()


@pytest.mark.parametrize("within", [False, True], ids=["between two lives", "within a life"])
def test_clock_set_back_new_request_is_decided_on_by_a_new_poll(within: bool) -> None:
    there = AtTheDesk(now_ms=START_MS + DAY_MS)
    held = there.ask(6)
    there.submit(held)
    there.go(2_000)
    if within:
        there.now_ms -= DAY_MS
    else:
        there = again(there, START_MS)
    there.go(1_000)
    there.yarn.run("application_1_0002", 4, user="bob")
    there.go(REST_EVERY_MS)
    asked = there.ask(5)
    assert asked.state == "waiting", "what is reserved and what runs is not free"
    there.yarn.end("application_1_0001")
    there.yarn.end("application_1_0002")
    there.go(3_000)
    assert there.state(asked) == "admitted"


@pytest.mark.parametrize("within", [False, True], ids=["between two lives", "within a life"])
def test_clock_set_back_application_of_an_admission_is_accepted(within: bool) -> None:
    there = AtTheDesk(now_ms=START_MS + DAY_MS)
    admitted = there.ask(5)
    there.go(5_000)
    if within:
        there.now_ms -= DAY_MS
    else:
        there = again(there, there.now_ms - DAY_MS)
    there.go(1_000)
    there.submit(admitted, elapsed_ms=500)
    there.go(2_000)
    assert there.state(admitted) == "running"


def test_clock_set_back_within_a_life_lease_of_a_client_that_has_gone_ends() -> None:
    there = AtTheDesk(now_ms=START_MS + DAY_MS, lease_ms=30_000)
    there.yarn.run("application_9_0001", 10, user="bob")
    waiting = there.ask(5)
    there.go(2_000)
    there.now_ms -= DAY_MS
    there.go(35_000)
    assert there.state(waiting) == "withdrawn"


def test_clock_set_forward_and_corrected_goes_on_at_once() -> None:
    first = AtTheDesk()
    running = first.ask(5, 60)
    first.submit(running)
    first.go(2_000)
    ahead = again(first, first.now_ms + DAY_MS)
    ahead.go(10_000)
    assert ahead.state(running) == "running"
    late = ahead.ask(4, 20)
    ahead.go(5_000)
    right = again(ahead, START_MS + 30_000)
    right.go(2_000)
    assert right.book.admissions[running.admission].plan.deadline_at_ms == running.plan.deadline_at_ms
    right.yarn.end("application_1_0001")
    right.go(REST_EVERY_MS)
    assert right.state(running) == "ended"
    right.go(RESERVED_MS)
    assert right.state(late) == "expired"


def test_clock_set_back_deadlines_are_judged_by_the_wall_clock_as_it_is_now() -> None:
    there = AtTheDesk(now_ms=START_MS + DAY_MS)
    there.yarn.run("application_9_0001", 10, user="bob")
    waiting = there.ask(5, 20, estimate=Estimate(5 * 60_000, 0, "me"))
    due_ms = START_MS + DAY_MS + 20 * MINUTE
    assert waiting.plan.deadline_at_ms - due_ms in range(-1_000, 10_000)
    there = again(there, START_MS, lease_ms=DAY_MS * 3)
    there.go(30 * MINUTE)
    seen = there.book.admissions[waiting.admission]
    assert (seen.state, seen.plan.deadline_at_ms) == ("waiting", waiting.plan.deadline_at_ms)
    new = there.ask(5, 20)
    assert new.plan.deadline_at_ms - there.now_ms in range(19 * MINUTE, 20 * MINUTE + 1)


def test_clock_set_back_daily_tokens_are_paid_after_a_day() -> None:
    from tests.unit.daemon.test_market_desk import balance, market
    from yarnctl.daemon.admission.request_queue import AccountCommand

    there = market(now_ms=START_MS + 3 * DAY_MS)
    there.hand(AccountCommand(account="daily", daily_mtokens=1_000, cap_mtokens=5_000))
    there.go(2_000)
    there = again(there, START_MS, allocator="mrm")
    assert balance(there) == 5_000_000
    there.tick()
    there.tick(DAY_MS)
    there.tick()
    assert there.book.balances()["daily"] == 1_000


@pytest.mark.parametrize("set_ms", [-DAY_MS, DAY_MS])
def test_deadline_in_a_tag_is_judged_by_the_wall_clock_that_was_set_within_a_life(set_ms: int) -> None:
    """The daemon's own clock goes on; who writes a deadline into a tag reads the wall clock."""
    there = AtTheDesk(history=False)
    reconciler = there.desk._reconciler
    reconciler._wall_ahead_ms = lambda: set_ms
    there.yarn.run("application_9_0001", 10, user="bob", tags=f"deadline:{START_MS + set_ms + 20 * MINUTE}")
    waiting = there.ask(5, 60, estimate=Estimate(5 * 60_000, 0, "me"))
    assert waiting.plan.start_at_ms == START_MS + 20 * MINUTE


def test_daemon_clock_tells_how_far_the_wall_clock_is_ahead() -> None:
    from tests.unit.daemon.test_clock import SECOND_NS, Clocks
    from yarnctl.daemon.running import SteadyClock

    clocks = Clocks()
    clock = SteadyClock(clocks.wall, clocks.passed)
    clocks.passed_ns += 7 * SECOND_NS
    assert clock.ahead_ms() == 0
    clocks.set_ns -= 86_400 * SECOND_NS
    assert clock.ahead_ms() == -DAY_MS


def test_last_instant_of_the_life_before_counts_where_no_record_of_the_gate_has_it() -> None:
    first = AtTheDesk(now_ms=START_MS + DAY_MS)
    admitted = first.ask(5)
    first.go(50_000)
    second = again(first, START_MS)
    second.desk._last_ms = first.now_ms
    second.go(1_000)
    assert second.state(admitted) == "admitted"
    second.go(12_000)
    assert second.state(admitted) == "expired"


def test_explain_tells_that_the_clock_was_set_back() -> None:
    from yarnctl.journal.explaining.admission_story import AdmissionStories

    first = AtTheDesk(now_ms=START_MS + DAY_MS)
    admitted = first.ask(5)
    second = again(first, first.now_ms - DAY_MS)
    second.go(1_000)
    stories = AdmissionStories(admitted.admission)
    for record in second.records:
        stories.apply(record)
    assert "the clock was set back by 24 h" in stories.stories[-1].text
