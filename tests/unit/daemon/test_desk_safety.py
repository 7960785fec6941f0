"""The desk where something is late, slow, wrong or hostile: nobody else pays for it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from tests.unit.daemon.at_the_desk import MINUTE, AtTheDesk, Past, Yarn, asking, told
from tests.unit.daemon.test_desk import APPLICATION, HALF, past_of, taught
from yarnctl.daemon.admission.admission_controller import COMMANDS_MAX, ESTIMATE_MS
from yarnctl.daemon.admission.feedback import FRESH_MS, ClusterCapacity, Estimates, Feedback, WantedJob
from yarnctl.daemon.admission.history_worker import Answer, HistoryWorker
from yarnctl.daemon.admission.reconciler import ASKED_ABOUT_MAX, ASKED_FOR_MS
from yarnctl.daemon.admission.request_queue import (
    WAITING_THREADS_MAX,
    PendingCommand,
    Refusal,
    RequestQueue,
    WithdrawRequest,
)
from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.admission.shared_round import RESERVED_MS
from yarnctl.deciding.reasons.verdicts import HistoryFault
from yarnctl.deciding.records import Record
from yarnctl.errors import BadInput
from yarnctl.hadoop.http.answers import BadAnswer
from yarnctl.hadoop.wire import yarn
from yarnctl.journal.rendering import text


class Silent(HistoryWorker):
    """A clerk whose answers come when they are told."""

    def __init__(self) -> None:
        super().__init__(Past, lambda: None)
        self.asked: list[Answer] = []

    def ask(self, question: object, *, of_a_request: bool = False) -> Answer:
        self.asked.append(Answer())
        return self.asked[-1]


# --- what has expired -----------------------------------------------------------------------------------


@pytest.mark.parametrize("came", [True, False])
def test_what_expires_between_two_looks_is_not_given_away_before_the_next(came):
    there = AtTheDesk()
    first = there.ask(10)
    assert first.reservation is not None
    there.tick(first.reservation.expires_at_ms - 400 - there.now_ms)  # a look, and nobody has come yet
    if came:
        there.submit(first)
    errand = there.hand(asking(10))
    there.tick(500)
    assert isinstance(errand.answer, str)
    assert there.state(errand.answer) == "waiting"
    assert sum(each.containers for each in there.gate.reserved) == 10
    there.tick(1_000)
    then = ("running", "waiting") if came else ("expired", "admitted")
    assert (there.state(first), there.state(errand.answer)) == then


def test_one_admission_that_cannot_be_asked_after_stops_nobody_for_long():
    class Odd(Yarn):
        def tagged(self, tag: str) -> Sequence[yarn.AppInfo]:
            if tag.endswith("-1"):
                raise BadAnswer("http://rm: no JSON")
            return super().tagged(tag)

    there = AtTheDesk(yarn=Odd())
    odd, other, waits = there.ask(5), there.ask(5), there.ask(10, minutes=60)
    there.go(RESERVED_MS + 2_000)
    assert [there.state(each) for each in (odd, other, waits)] == ["admitted", "expired", "waiting"]
    for _ in range(3):
        there.go(ASKED_FOR_MS // 3)
        there.window.renew(waits.admission)
    there.go(3_000)
    assert [there.state(each) for each in (odd, waits)] == ["expired", "admitted"]


def test_more_than_are_asked_after_at_once_expire_one_look_later():
    there = AtTheDesk()
    there.yarn.run("application_9_0001", 10 - ASKED_ABOUT_MAX - 1, user="bob")
    many = [there.ask(1) for _ in range(ASKED_ABOUT_MAX + 1)]
    waits = there.ask(10, minutes=60)
    assert waits.state == "waiting"
    there.tick(RESERVED_MS + 10_000)
    assert [there.state(each) for each in many].count("expired") == ASKED_ABOUT_MAX
    there.go(3_000)
    assert there.state(waits) == "admitted"


def test_a_resource_manager_whose_clock_is_an_hour_behind_is_believed_how_long_a_job_has_run():
    there = AtTheDesk()
    admission = there.ask(5)
    there.submit(admission, submitted_at_ms=there.now_ms - 60 * MINUTE, elapsed_ms=300)
    there.go(1_000)
    assert there.state(admission) == "running"


def test_what_ran_before_the_request_does_not_take_it_whatever_the_clocks_say():
    there = AtTheDesk()
    admission = there.ask(5)
    there.submit(admission, submitted_at_ms=there.now_ms + 60 * MINUTE, elapsed_ms=10 * MINUTE)
    there.go(5_000)
    assert there.state(admission) == "admitted"


def test_a_deadline_counts_from_the_question():
    there = AtTheDesk()
    there.go(3_000)
    errand = PendingCommand(asking(minutes=20, key="k"), there.now_ms)
    there.window._pending.append(errand)
    came_at_ms = there.now_ms
    there.tick(7_000)
    assert isinstance(errand.answer, str)
    admission = there.book.admissions[errand.answer]
    assert admission.plan.deadline_at_ms == came_at_ms + 20 * MINUTE
    assert there.ask(minutes=20, key="k").admission == errand.answer, "the same question, later"


# --- what teaches ---------------------------------------------------------------------------------------

HOPELESS = Finished(10_001, 10, 1_000, 10, 100, 1.0, False)
"""Ten containers in one second can do 10 container-seconds, and it needed more."""


def test_a_deadline_that_nothing_could_have_met_teaches_nothing():
    there = AtTheDesk(past=past_of(HOPELESS, HALF))
    assert there.ask(10).state == "admitted"
    assert taught(there)[0].finished == (HALF,)


def test_who_asks_for_one_millisecond_spoils_the_gate_for_nobody():
    there = AtTheDesk()
    admission = there.ask(2, minutes=1 / MINUTE)
    assert (admission.request.deadline_ms, admission.state) == (1, "admitted")
    there.submit(admission)
    there.past.jobs[APPLICATION] = HALF
    there.go(1_000)
    there.yarn.end(APPLICATION)
    there.go(10_000)
    assert taught(there)[-1].application == APPLICATION
    assert taught(there)[-1].finished == ()
    assert "no number of containers would have met the deadline" in told(taught(there)[-1].why)
    assert there.ask(10).state == "admitted"


def test_an_allocator_that_learns_nothing_does_not_read_the_past():
    there = AtTheDesk("oracle", past=past_of(HALF))
    there.past.estimates["job"] = Estimate(MINUTE, 0, "history")
    assert there.ask(5).state == "admitted"
    assert there.past.asked == ["job"]
    assert there.past.capacity == 10, "estimates are for a cluster of this size"


def test_what_the_book_has_let_go_is_taught_no_more():
    there = AtTheDesk()
    there.go(3_000)
    clerk = Silent()
    notes: list[Record] = []
    lessons = Feedback(clerk, there.book)
    there.book.unlearned[APPLICATION] = "adm-a1b2-1"
    lessons.reconcile(notes.append, there.now_ms)
    del there.book.unlearned[APPLICATION]
    clerk.asked[0].value, clerk.asked[0].done = (HALF, ""), True
    lessons.reconcile(notes.append, there.now_ms)
    assert (len(clerk.asked), notes) == (1, [])


# --- a slow history -------------------------------------------------------------------------------------


def test_who_waits_for_an_estimate_waits_for_no_lesson():
    woken, held = threading.Event(), threading.Event()

    class Long(Past):
        def recent(self, since_ms: int) -> Sequence[Finished]:
            held.wait(60)
            return ()

    clerk = HistoryWorker(Long, woken.set)
    clerk.ask(lambda history: history.recent(0))
    answer = clerk.ask(lambda history: history.estimate("job", "ann"), of_a_request=True)
    assert woken.wait(30)
    held.set()
    clerk.close()
    assert answer.done


def test_a_slow_history_defers_who_needs_it_and_rejects_nobody():
    there = AtTheDesk("oracle")
    clerk = Silent()
    there.desk._estimates = Estimates(clerk)
    errand = there.hand(asking(5, key="k"))
    there.go(ESTIMATE_MS + 3_000)
    assert isinstance(errand.answer, Refusal)
    assert errand.answer.code == "no-estimate-yet"
    again = there.hand(asking(5, key="k"))
    there.tick()
    assert (again.answer, len(clerk.asked)) == (None, 1), "it is not asked twice"
    clerk.asked[0].value, clerk.asked[0].done = Estimate(MINUTE, 0, "history"), True
    there.tick()
    assert isinstance(again.answer, str)
    assert there.state(again.answer) == "admitted"


def test_a_history_that_is_away_defers_and_one_that_nobody_keeps_rejects():
    there = AtTheDesk("oracle")
    there.past.away = True
    assert there.refused(asking(5)) == "no-estimate-yet"
    there.past.away = False
    there.past.estimates["job"] = Estimate(MINUTE, 0, "history")
    assert there.ask(5).state == "admitted"

    def nowhere() -> Past:
        raise BadInput("--history", "nobody is named")

    there.desk._estimates = Estimates(HistoryWorker(nowhere, lambda: None, in_thread=False))
    assert text(there.ask(5).plan.reason).startswith("no estimate of the job's work")


def test_many_that_wait_for_estimates_do_not_drive_the_loop():
    there = AtTheDesk()
    there.go(3_000)
    there.desk._estimates = Estimates(Silent())
    woken: list[int] = []
    there.window.on_wake = lambda: woken.append(1)
    for _ in range(COMMANDS_MAX + 3):
        there.hand(asking(1))
    there.tick()
    assert woken == []


def test_estimates_are_let_go():
    clerk = Silent()
    estimates = Estimates(clerk)
    size = ClusterCapacity(10, 1024)
    jobs = [WantedJob(f"job-{number}", "ann", "mapreduce", 5) for number in range(40)]
    for job in jobs:
        estimates.of(job, size, 0)
        clerk.asked[-1].done = True
    clerk.asked[-1].problem = HistoryFault("away")
    assert estimates.of(jobs[39], size, 1) is not clerk.asked[39], "what went wrong is asked again"
    assert estimates.of(jobs[38], size, 1) is clerk.asked[38]
    estimates.of(jobs[0]._replace(name="job-x"), size, FRESH_MS)
    assert len(estimates) == 2, "one is on its way, one new"


# --- who leaves -----------------------------------------------------------------------------------------


def test_who_is_not_come_to_in_time_takes_his_request_back_and_a_withdrawal_stays():
    there = AtTheDesk()
    there.desk.request_queue.problem = "how large the cluster is cannot be seen"
    refusal = there.window.submit(asking(), 0)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "not-written"
    assert "cannot be seen); the request was withdrawn" in refusal.problem
    assert there.window.handed() == []
    there.go(5_000)
    assert there.book.admissions == {}
    there.window.submit(WithdrawRequest("adm-a1b2-1"), 0)
    assert [each.command for each in there.window.handed()] == [WithdrawRequest("adm-a1b2-1")]


def test_who_has_left_while_it_was_estimated_is_not_written_down():
    there = AtTheDesk()
    there.go(3_000)
    clerk = Silent()
    there.desk._estimates = Estimates(clerk)
    there.window.on_wake = there.tick
    assert isinstance(there.window.submit(asking(), 0), Refusal)
    assert len(clerk.asked) == 1, "the loop had seen it"
    clerk.asked[0].done = True
    there.go(5_000)
    assert there.book.admissions == {}


def test_who_comes_again_has_asked_since_he_came_first():
    there = AtTheDesk()
    there.go(3_000)
    wanted, came_at_ms = asking(minutes=20, key="k"), there.now_ms
    assert isinstance(there.window.submit(wanted, 0), Refusal)
    there.now_ms += 90_000
    assert isinstance(there.window.submit(wanted, 0), Refusal)
    there.now_ms += 90_000
    there.window.on_wake = there.tick
    name = there.window.submit(wanted, 0)
    assert isinstance(name, str)
    assert there.book.admissions[name].request.deadline_at_ms == came_at_ms + 20 * MINUTE


def test_what_is_being_written_down_cannot_be_taken_back():
    window = RequestQueue(lambda: 0, 1000)
    seen: list[bool] = []
    window.on_wake = lambda: seen.append(window.start(window.handed()[0]))
    window.submit(asking(), 0)
    assert seen == [True]
    assert len(window.handed()) == 1
    assert not window.start(PendingCommand(asking()))


def test_few_wait_for_the_loop_at_once():
    window = RequestQueue(lambda: 0, 1000)
    window._waiting_threads.taken = WAITING_THREADS_MAX
    refusal = window.submit(asking(), 60_000)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "queue-full"
    assert window.handed() == []
