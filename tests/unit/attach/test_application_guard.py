"""The guard around applications: who is waited for, what a late one costs the others, and what becomes of it.

No clock but a number: a look ends when a test says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, wait
from typing import Any

import pytest

from tests.unit.hadoop.replaying import NEVER_S
from yarnctl.attach.connection.application_guard import (
    CHANGES_EACH,
    LATE,
    PROMPT_AGAIN,
    THREADS_MAX,
    ApplicationGuard,
    ApplicationLook,
    GuardBounds,
    LateAnswer,
    ReadAnswer,
    values,
)
from yarnctl.attach.connection.calls import Problem, fault_text
from yarnctl.hadoop.http.answers import Uncertain
from yarnctl.hadoop.proxied import Absent

BOUNDS = GuardBounds(
    look_ms=60_000, look_bytes=1 << 20, wait_ms=500, order_wait_ms=400, answer_age_ms=5000, at_once=4
)


class Stage:
    """Applications that answer their names; one of ``hanging`` answers when it is let go."""

    def __init__(self, bounds: GuardBounds = BOUNDS) -> None:
        self.now_ms = 1000
        self.guard = ApplicationGuard(bounds, lambda: self.now_ms, self.wait)
        self.hanging: dict[str, threading.Event] = {}
        self.asked: list[str] = []
        self.waited_ms: list[int] = []

    def wait(self, futures: Collection[Future[Any]], span_ms: int) -> None:
        """Wait for those that answer; if one does not, the whole span has passed."""
        with self.guard._lock:
            hung = [
                read.done
                for one in self.guard._applications.values()
                for read in one.reads.values()
                if one.name in self.hanging
            ]
        self.waited_ms.append(span_ms)
        self.now_ms += span_ms if any(each in hung for each in futures) else 0
        wait([each for each in futures if each not in hung])

    def hang(self, *names: str) -> None:
        self.hanging |= {name: threading.Event() for name in names}

    def let_go(self, *names: str) -> None:
        with self.guard._lock:
            known = [self.guard._applications[name] for name in names if name in self.guard._applications]
            futures = [read.done for one in known for read in one.reads.values()]
            futures += [each.sent for one in known for each in one.changes.values()]
        for name in names:
            self.hanging.pop(name).set()
        wait(futures)

    def answer(self, name: str, _reading: ApplicationLook) -> str:
        self.asked.append(name)
        if name in self.hanging:
            self.hanging[name].wait(NEVER_S)
        return name.upper()

    def look(self, *names: str, purpose: str = "tasks") -> dict[str, Any]:
        self.guard.begin_look()
        return values(self.guard.read_each(purpose, self.answer, names))


@pytest.fixture
def stage() -> Iterator[Stage]:
    found = Stage()
    yield found
    for name in list(found.hanging):
        found.hanging.pop(name).set()
    found.guard.close()


def test_read_each_answers_stand_in_the_order_asked_for(stage):
    names = [f"a{number}" for number in range(30, 0, -1)]
    assert list(stage.look(*names).items()) == [(name, name.upper()) for name in names]


def test_read_each_what_a_read_raises_is_a_problem_of_that_application(stage):
    def read(name: str, _: ApplicationLook) -> int:
        return int(float("inf")) if name == "bad" else 7

    found = values(stage.guard.read_each("tasks", read, ("bad", "good")))
    assert isinstance(found["bad"], Problem)
    assert not isinstance(found["bad"], LateAnswer)
    assert found["good"] == 7


def test_fault_text_logs_an_unexpected_fault_once(caplog):
    told = [fault_text(LookupError("no such attempt, said only here")) for _ in range(2)]
    assert told == ["the answer cannot be parsed (LookupError)"] * 2
    assert len(caplog.records) == 1


def test_each_requests_the_keys_of_an_application_that_answers_in_time_together(stage):
    together = threading.Barrier(4)

    def read(_name: str, reading: ApplicationLook) -> dict[int, int | Problem]:
        return reading.each(lambda _: together.wait(10), range(4))

    found = values(stage.guard.read_each("tasks", read, ("good",)))["good"]
    assert isinstance(found, dict)
    assert set(found.values()) == {0, 1, 2, 3}, "the place of each at the barrier"


def test_read_each_late_application_is_read_once_and_its_answer_is_in_the_next_look(stage):
    stage.hang("slow")
    assert stage.look("slow", "good") == {"slow": LATE, "good": "GOOD"}
    assert stage.look("slow", "good") == {"slow": LATE, "good": "GOOD"}
    assert stage.asked.count("slow") == 1
    stage.let_go("slow")
    assert stage.look("slow", "good") == {"slow": "SLOW", "good": "GOOD"}


def test_read_each_a_late_answer_that_is_too_old_is_read_again(stage):
    stage.hang("slow")
    stage.look("slow")
    stage.let_go("slow")
    stage.now_ms += BOUNDS.answer_age_ms
    stage.look("slow")
    idle(stage, "slow")
    assert stage.asked.count("slow") == 2


def test_look_waits_for_all_applications_together_no_longer_than_its_bound(stage):
    stage.hang("s1", "s2")
    assert stage.look("s1", "good") == {"s1": LATE, "good": "GOOD"}
    stage.guard.read_each("attempts", stage.answer, ("s2", "good"))
    assert stage.waited_ms == [500, 20], "the first one has used up the time of this look"
    assert stage.now_ms == 1000 + 520


def test_application_that_was_late_is_waited_for_after_it_has_answered_in_time_for_a_while(stage):
    stage.hang("slow")
    stage.look("slow")
    stage.let_go("slow")
    waits = len(stage.waited_ms)
    for _ in range(PROMPT_AGAIN - 1):
        stage.look("slow")
        idle(stage, "slow")
    assert len(stage.waited_ms) == waits
    for _ in range(2):
        stage.look("slow")
        idle(stage, "slow")
    stage.look("slow")
    assert stage.look("slow") == {"slow": "SLOW"}


def idle(stage: Stage, name: str) -> None:
    with stage.guard._lock:
        futures = [read.done for read in stage.guard._applications[name].reads.values()]
    wait(futures)


def test_late_applications_leave_their_places_to_others(stage):
    """Four are read at once; more hang, and none of them takes a place once it is late."""
    hung = [f"s{number}" for number in range(10)]
    stage.hang(*hung)
    for _ in range(3):
        stage.look(*hung)
    assert stage.look("good", *hung)["good"] == "GOOD"
    stage.let_go(*hung)


def test_applications_that_were_late_take_half_of_the_threads_at_most(stage):
    hung = [f"s{number:03d}" for number in range(2 * THREADS_MAX)]
    stage.hang(*hung)
    for _ in range(THREADS_MAX):
        stage.look(*hung)
    running = len(stage.asked)
    assert running <= THREADS_MAX
    stage.let_go(*hung)
    stage.hang(*hung)
    before = len(stage.asked)
    stage.look(*hung)
    assert stage.look("good")["good"] == "GOOD"
    assert len(stage.asked) - before <= THREADS_MAX
    stage.let_go(*hung)


def test_reads_of_one_application_run_one_after_another_the_longest_unserved_first(stage):
    order: list[str] = []

    def reading(purpose: str) -> Callable[[str, ApplicationLook], str]:
        def read(name: str, _: ApplicationLook) -> str:
            order.append(purpose)
            stage.hanging[name].wait(NEVER_S)
            return purpose

        return read

    stage.hang("slow")
    for _ in range(2):
        for purpose in ("tasks", "attempts"):
            stage.guard.read_each(purpose, reading(purpose), ("slow",))
    assert order == ["tasks"]
    stage.let_go("slow")
    assert order == ["tasks", "attempts"]


def test_reading_each_answers_stand_in_the_order_of_the_keys_and_a_fault_is_a_problem(stage):
    def read(_name: str, reading: ApplicationLook) -> dict[int, float | Problem]:
        return reading.each(lambda key: 1 / key, (5, 0, 2, 4, 1))

    found = stage.guard.read("a", "tasks", read)
    assert list(found) == [5, 0, 2, 4, 1]
    assert isinstance(found.pop(0), Problem)
    assert found == {5: 0.2, 2: 0.5, 4: 0.25, 1: 1.0}


def test_reading_each_requests_no_further_key_after_its_span(stage):
    def took_10_ms(key: int) -> int:
        stage.now_ms += 10
        return key

    look = ApplicationLook(stage.guard._helpers, 0, lambda: stage.now_ms)
    assert list(look.each(took_10_ms, range(9), 25)) == [0, 1, 2]
    assert len(look.each(took_10_ms, range(9))) == 9


def test_change_begins_at_once_or_is_surely_not_sent(stage):
    """While the answer to one change has not come, another change of that application is not sent."""
    sent, over = [], threading.Event()

    def send() -> str:
        sent.append("first")
        over.wait(NEVER_S)
        return "done"

    stage.guard.wait = lambda _futures, _span_ms: None
    with pytest.raises(Uncertain):
        stage.guard.change("slow", "kill a", send)
    with pytest.raises(Uncertain):
        stage.guard.change("slow", "kill a", send)
    assert isinstance(stage.guard.change("slow", "kill b", lambda: "never"), Absent)
    future = stage.guard._applications["slow"].changes["kill a"].sent
    over.set()
    wait([future])
    assert stage.guard.change("slow", "kill a", send) == "done"
    assert sent == ["first"]


def test_change_raises_what_sending_raised(stage):
    def send() -> str:
        raise Uncertain("sent, and then: nothing")

    with pytest.raises(Uncertain, match="sent, and then"):
        stage.guard.change("a", "kill", send)


def test_begin_look_forgets_applications_of_which_nothing_is_under_way(stage):
    stage.hang("slow")
    stage.look("slow", "good")
    stage.guard.forget(["slow", "good"])
    stage.let_go("slow")
    stage.now_ms += BOUNDS.answer_age_ms + 1
    stage.guard.begin_look()
    assert stage.guard._applications == {}


def test_read_each_tells_when_its_reading_began(stage):
    stage.now_ms = 77
    assert stage.guard.read_each("tasks", stage.answer, ("a",)) == {"a": ReadAnswer("A", 77)}


def changed(stage: Stage, purposes: list[str], *, beside: bool) -> list[object]:
    """Send changes of one application from one thread each; they answer when all that are sent are there."""
    release, found = threading.Event(), dict[str, object]()
    begun = threading.Semaphore(0)

    def send() -> str:
        begun.release()
        assert release.wait(NEVER_S)
        return "done"

    def one(purpose: str) -> None:
        found[purpose] = stage.guard.change("job", purpose, send, beside=beside)

    threads = [threading.Thread(target=one, args=(purpose,)) for purpose in purposes]
    for thread in threads:
        thread.start()
    assert begun.acquire(timeout=NEVER_S)
    while len(found) < len(purposes) and begun.acquire(timeout=0.1):
        pass
    release.set()
    for thread in threads:
        thread.join(NEVER_S)
    return [found[purpose] for purpose in purposes]


def test_change_a_few_that_depend_on_nothing_are_sent_in_parallel(stage):
    purposes = [f"kill {number}" for number in range(6)]
    answers = changed(stage, purposes, beside=True)
    assert answers.count("done") == CHANGES_EACH
    assert sum(isinstance(answer, Absent) for answer in answers) == 6 - CHANGES_EACH


def test_change_any_other_is_sent_alone(stage):
    answers = changed(stage, ["bounds fewer 1", "bounds back"], beside=False)
    assert answers.count("done") == 1
    assert sum(isinstance(answer, Absent) for answer in answers) == 1


def test_wait_threads_that_wait_at_the_same_time_use_the_time_once(stage):
    stage.guard.begin_orders()
    both, futures = threading.Barrier(2), [Future[Any]() for _ in range(2)]

    def waiting(_: Collection[Future[Any]], span_ms: int) -> None:
        stage.waited_ms.append(span_ms)
        both.wait(NEVER_S)
        stage.now_ms = 1100  # both have waited for the same 100 ms
        both.wait(NEVER_S)

    stage.guard.wait = waiting
    threads = [threading.Thread(target=stage.guard._wait_for, args=([each],)) for each in futures]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(NEVER_S)
    assert stage.waited_ms == [400, 400]
    assert stage.guard._left_ms == 300
