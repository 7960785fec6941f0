"""The desk: who is let in, who has taken what, what others hold, and what is not judged unseen."""

from __future__ import annotations

import threading

import msgspec
import pytest

from tests.unit.daemon.at_the_desk import HERE, MINUTE, START_MS, AtTheDesk, Past, Yarn, asking, told
from yarnctl.daemon.admission.admission_controller import COMMANDS_MAX
from yarnctl.daemon.admission.backlog import MANY, NAMED_MAX, SHRINK_AFTER_MS, STEPS_MAX, Size, compact
from yarnctl.daemon.admission.feedback import LEARN_FOR_MS
from yarnctl.daemon.admission.late_desk import SeenProgress
from yarnctl.daemon.admission.reconciler import ENDED_AFTER_MS, REST_EVERY_MS
from yarnctl.daemon.admission.request_queue import (
    PENDING_MAX,
    WAITERS_MAX,
    PendingCommand,
    RequestQueue,
    WithdrawRequest,
)
from yarnctl.deciding.admission.capacity import FOREVER_MS, Load
from yarnctl.deciding.admission.entries import AdmissionRound, ClockSetBack, GateLearned, GateSet
from yarnctl.deciding.admission.mechanisms.pythia import PythiaMemory
from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.admission.shared_round import RESERVED_MS
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.deciding.reasons.verdicts import NumbersImpossible
from yarnctl.journal.rendering import said, text

HALF = Finished(50, 10, 10, 10, 100, 1.0, True)
"""A job that needed half of what it could use."""
APPLICATION = "application_1_0001"


def rounds(there: AtTheDesk) -> list[AdmissionRound]:
    return [record for record in there.records if isinstance(record, AdmissionRound)]


def taught(there: AtTheDesk) -> list[GateLearned]:
    return [record for record in there.records if isinstance(record, GateLearned)]


def test_from_the_question_to_the_end():
    there = AtTheDesk()
    admission = there.ask(6)
    assert admission.admission == f"adm-{HERE}-1"
    assert (admission.state, admission.plan.verdict, admission.plan.containers) == ("admitted", "admit", 6)
    there.submit(admission)
    there.go(1_000)
    assert there.book.admissions[admission.admission].application == APPLICATION
    assert there.state(admission) == "running"
    there.go(2 * RESERVED_MS)
    assert there.state(admission) == "running", "a reservation that was taken does not expire"
    there.yarn.end(APPLICATION)
    there.go(REST_EVERY_MS)
    assert there.state(admission) == "ended"
    assert there.gate.reserved == ()


def test_a_desk_at_which_nobody_waits_asks_the_cluster_nothing():
    there = AtTheDesk()
    there.go(5_000)
    assert set(there.yarn.asked) == {"size"}, "once, how large it is"
    there.yarn.asked.clear()
    there.go(20 * MINUTE)
    assert there.yarn.asked == []
    admission = there.ask()
    assert "applications" in there.yarn.asked
    there.withdraw(admission.admission)
    there.yarn.asked.clear()
    there.go(MINUTE)
    assert there.yarn.asked == []


def test_it_looks_once_a_second_at_most_and_rests_while_all_run():
    there = AtTheDesk()
    admission = there.ask(10)
    there.yarn.asked.clear()
    there.go(10_000)
    assert 9 <= there.yarn.asked.count("applications") <= 10
    there.submit(admission)
    there.go(1_000)
    there.yarn.asked.clear()
    there.go(30_000)
    assert 5 <= there.yarn.asked.count("applications") <= 6


def test_who_does_not_fit_waits_and_the_next_end_lets_him_in():
    there = AtTheDesk()
    first = there.ask(8)
    there.submit(first)
    there.go(1_000)
    second = there.ask(10, estimate=Estimate(20 * 10 * 1000, 0, "me"))
    assert second.plan.containers == 2, "while nothing is known, whatever there is"
    third = there.ask(4)
    assert (third.state, third.plan.verdict) == ("waiting", "defer")
    assert "0 free now" in text(third.plan.reason)
    there.yarn.end(APPLICATION)
    there.go(6_000)
    assert there.state(third) == "admitted"


def test_fixed_load_is_not_there_and_a_deadline_says_until_when():
    there = AtTheDesk(past=past_of(HALF))
    until_ms = START_MS + 5 * MINUTE
    there.yarn.run("application_1_0007", 8, tags=f"deadline:{until_ms}")
    admission = there.ask(10)
    assert (admission.state, admission.plan.start_at_ms) == ("waiting", until_ms)
    there.yarn.run("application_1_0008", 6, user="bob")
    there.go(11_000)
    newest = there.book.admissions[admission.admission]
    assert (newest.state, newest.plan.start_at_ms) == ("waiting", None), "nobody knows when bob's ends"
    assert "start time unknown" in text(newest.plan.reason)
    assert {load.who for load in rounds(there)[-1].loads} == {"application_1_0007", "application_1_0008"}


TREE = QueueTree(("root.production", "root.research", "root.a.etl", "root.b.etl"))


def test_only_queues_behind_the_gate_count():
    there = AtTheDesk(queues=("root.production",), tree=TREE)
    there.yarn.run("application_1_0007", 9, queue="root.research")
    assert there.ask(10).plan.containers == 10
    assert rounds(there)[0].loads == ()
    assert there.refused(asking(queue="root.research")) == "queue-not-gated"
    assert there.refused(asking(queue="research")) == "queue-not-gated"


@pytest.mark.parametrize("name", ["etl", "sales"])
def test_a_request_for_no_one_leaf_queue_is_refused(name: str):
    assert AtTheDesk(tree=TREE).refused(asking(queue=name)) == "no-such-queue"


@pytest.mark.parametrize("shown", ["production", "root.production"], ids=["before 3.4", "from 3.4 on"])
def test_a_short_name_is_the_queue_with_that_path(shown: str):
    """The application's row has the path from Hadoop 3.4 on, the leaf's name before."""
    there = AtTheDesk(queues=("root.production",), tree=TREE)
    there.yarn.run("application_1_0007", 9, queue=shown)
    admission = there.ask(10, queue="production")
    assert admission.queue == "root.production"
    assert [load.who for load in rounds(there)[0].loads] == ["application_1_0007"]
    there.submit(admission, queue=shown)
    there.go(6_000)
    assert there.book.admissions[admission.admission].state == "running"


def test_large_containers_count_as_several_and_what_a_job_holds_beyond_its_grant_counts_too():
    there = AtTheDesk()
    there.yarn.run("application_1_0007", 1, user="bob")
    there.yarn.rows["application_1_0007"] = msgspec.structs.replace(
        there.yarn.rows["application_1_0007"], allocated_mib=3_000
    )
    admission = there.ask(4)
    there.submit(admission)
    there.yarn.rows[APPLICATION] = msgspec.structs.replace(
        there.yarn.rows[APPLICATION], containers=5, allocated_mib=5 * 1024
    )
    there.go(6_000)
    there.ask(10)
    assert {load.who: load.containers for load in rounds(there)[-1].loads} == {
        "application_1_0007": 3,
        APPLICATION: 1,
    }


# --- who may take what ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "word"),
    [({"user": "eve"}, "belongs to user ann"), ({"queue": "root.research"}, "root.production"),
     ({"submitted_at_ms": START_MS - 10 * MINUTE}, "older")],
)  # fmt: skip
def test_a_foreign_application_that_claims_a_tag_is_fixed_load_and_said_once(fields, word, caplog):
    there = AtTheDesk()
    admission = there.ask(5)
    there.submit(admission, **fields)
    there.go(5_000)
    assert there.state(admission) == "admitted"
    said = [record.message for record in caplog.records if APPLICATION in record.message]
    assert len(said) == 1
    assert word in said[0]
    there.ask(10)
    assert APPLICATION in {load.who for load in rounds(there)[-1].loads}


def test_a_tag_of_another_desk_is_not_ours():
    there = AtTheDesk()
    admission = there.ask(5)
    there.submit(admission, tags=f"yarnctl-admission-adm-ffff-{admission.sequence}")
    there.go(5_000)
    assert there.state(admission) == "admitted"


def test_yarn_keeps_tags_in_small_letters():
    there = AtTheDesk(instance="A1B2")
    admission = there.ask(5)
    there.submit(admission)
    there.go(1_000)
    assert there.state(admission) == "running"


def test_a_tag_is_taken_once():
    there = AtTheDesk()
    admission = there.ask(5)
    there.submit(admission, "application_1_0009")
    there.submit(admission, "application_1_0010")
    there.go(1_000)
    assert there.book.admissions[admission.admission].application == "application_1_0009"


def test_what_still_waits_cannot_be_taken():
    there = AtTheDesk(past=past_of(HALF))
    there.yarn.run("application_1_0007", 10, user="bob")
    admission = there.ask(10)
    there.submit(admission)
    there.go(3_000)
    assert there.state(admission) == "waiting"


# --- what comes too late, or never ---------------------------------------------------------------------


def test_what_nobody_submits_expires_and_makes_room():
    there = AtTheDesk()
    admission = there.ask(10)
    second = there.ask(10, minutes=30)
    there.go(RESERVED_MS - 2_000)
    assert (there.state(admission), there.state(second)) == ("admitted", "waiting")
    there.go(3_000)
    assert (there.state(admission), there.state(second)) == ("expired", "admitted")
    assert "60 s" in told(there.book.admissions[admission.admission].why)


def test_what_ran_and_ended_while_nobody_looked_was_taken():
    there = AtTheDesk()
    admission, never = there.ask(4), there.ask(4)
    there.submit(admission)
    there.yarn.end(APPLICATION)
    there.past.jobs[APPLICATION] = HALF
    again = AtTheDesk(
        yarn=there.yarn, past=there.past, records=there.records, now_ms=there.now_ms + 10 * MINUTE
    )
    again.go(2 * REST_EVERY_MS)
    assert (again.state(admission), again.state(never)) == ("ended", "expired")
    assert taught(again)[-1].application == APPLICATION


def test_who_comes_late_is_known_all_the_same():
    there = AtTheDesk()
    admission = there.ask(6)
    there.go(RESERVED_MS + 1_000)
    second = there.ask(8)
    there.submit(admission)
    there.go(2_000)
    assert there.state(admission) == "running"
    assert sum(each.containers for each in there.gate.reserved) == 14, "more than there is: it is there"
    third = there.ask(5)
    assert third.state == "waiting"
    assert there.state(second) == "admitted"


def test_nothing_is_judged_while_the_resource_manager_does_not_answer():
    there = AtTheDesk()
    taken = there.ask(4)
    there.submit(taken)
    there.go(1_000)
    admitted = there.ask(3)
    there.yarn.away = True
    there.yarn.asked.clear()
    there.go(3 * RESERVED_MS)
    assert len(there.yarn.asked) <= 80, "it is not pressed: it may be starting"
    asked = there.ask(2)
    assert [there.state(each) for each in (taken, admitted, asked)] == ["running", "admitted", "waiting"]
    assert "nobody answers" in said(there.desk.shown().problem)
    there.submit(admitted, "application_1_0002")
    there.yarn.away = False
    there.go(REST_EVERY_MS + 1_000)
    assert [there.state(each) for each in (taken, admitted, asked)] == ["running", "running", "admitted"]
    assert there.desk.shown().problem is None


def test_a_resource_manager_that_was_restarted_brings_its_applications_back():
    there = AtTheDesk()
    admission = there.ask(4)
    there.submit(admission)
    there.go(1_000)
    row = there.yarn.rows[APPLICATION]
    there.yarn.forget(APPLICATION)
    there.go(ENDED_AFTER_MS - 1_000)
    assert there.state(admission) == "running"
    there.yarn.rows[APPLICATION] = msgspec.structs.replace(row, state="NEW_SAVING")
    there.go(2 * ENDED_AFTER_MS)
    assert there.state(admission) == "running", "not listed, and not ended"
    there.yarn.forget(APPLICATION)
    there.go(ENDED_AFTER_MS + 2 * REST_EVERY_MS)
    assert there.state(admission) == "ended"
    assert "no longer lists" in told(there.book.admissions[admission.admission].why)


def test_who_does_not_renew_is_withdrawn_and_a_start_begins_leases_anew():
    there = AtTheDesk(lease_ms=30_000)
    there.yarn.run("application_1_0007", 10, user="bob")
    left, stays = there.ask(3), there.ask(3)
    for _ in range(4):
        there.go(10_000)
        there.window.renew(stays.admission)
    assert (there.state(left), there.state(stays)) == ("withdrawn", "waiting")
    assert "30 s" in told(there.book.admissions[left.admission].why)
    again = AtTheDesk(lease_ms=30_000, yarn=there.yarn, records=there.records, now_ms=there.now_ms + MINUTE)
    again.go(29_000)
    assert again.state(stays) == "waiting"
    again.go(3_000)
    assert again.state(stays) == "withdrawn"


def test_withdrawing():
    there = AtTheDesk()
    waits_not = there.ask(10)
    waits = there.ask(10)
    there.withdraw(waits.admission)
    there.withdraw(waits_not.admission)
    there.withdraw(waits.admission)
    assert there.state(waits) == there.state(waits_not) == "withdrawn"
    taken = there.ask(5)
    there.submit(taken)
    there.go(1_000)
    assert there.refused(WithdrawRequest(taken.admission)) == "already-running"
    assert there.refused(WithdrawRequest("adm-x-1")) == "not-found"


def test_the_same_key_is_the_same_request_also_after_a_restart():
    there = AtTheDesk()
    first = there.ask(5, key="mine")
    assert there.ask(5, key="mine").admission == first.admission
    again = AtTheDesk(yarn=there.yarn, records=there.records, now_ms=there.now_ms)
    assert again.ask(5, key="mine").admission == first.admission
    assert again.refused(asking(6, key="mine")) == "request-key-used"
    assert again.ask(5).admission == f"adm-{HERE}-2"


def test_a_pause_decides_nothing():
    there = AtTheDesk()
    there.paused = True
    admission = there.ask(5)
    there.go(5_000)
    assert there.state(admission) == "waiting"
    there.paused = False
    there.tick()
    assert there.state(admission) == "admitted"


def test_a_clock_that_was_set_back_loses_and_repeats_nothing():
    there = AtTheDesk()
    first = there.ask(5)
    back = AtTheDesk(yarn=there.yarn, records=there.records, now_ms=START_MS - 60 * MINUTE)
    back.submit(first, submitted_at_ms=0)
    back.go(2_000)
    second = back.ask(3)
    assert (back.state(first), second.state) == ("running", "admitted")
    moved = back.book.admissions[first.admission].request
    assert second.request.submitted_at_ms >= moved.submitted_at_ms
    assert moved.deadline_at_ms == first.request.deadline_at_ms
    place = next(place for place, each in enumerate(back.records) if isinstance(each, ClockSetBack))
    for part in (back.records[1:place], back.records[place:]):
        instants: list[int] = [record.at_ms for record in part]  # type: ignore[union-attr]
        assert instants == sorted(instants)


# --- how large the cluster is ------------------------------------------------------------------------------


def sizes(there: AtTheDesk) -> list[int]:
    return [record.pools[0].capacity for record in there.records if isinstance(record, GateSet)]


def test_the_first_size_must_be_seen_twice():
    there = AtTheDesk()
    there.yarn.size = Size(1, 1024)
    there.tick()
    there.yarn.size = Size(10, 1024)
    there.go(3_000)
    assert sizes(there) == [10]


def test_a_cluster_grows_at_once_and_shrinks_when_that_lasts():
    there = AtTheDesk()
    there.ask(1, minutes=100, estimate=Estimate(MINUTE, 0, "me"))
    there.submit(there.book.open()[0])
    there.yarn.size = Size(20, 1024)
    there.go(12_000)
    assert sizes(there) == [10, 20]
    there.yarn.size = Size(2, 1024)
    there.go(30_000)
    there.yarn.size = Size(0, 1024)
    there.go(10_000)
    there.yarn.size = Size(20, 1024)
    there.go(20_000)
    assert sizes(there) == [10, 20], "it was a ResourceManager that began anew"
    there.yarn.size = Size(12, 1024)
    there.go(SHRINK_AFTER_MS + 30_000)
    assert sizes(there) == [10, 20, 12]


def test_a_cluster_that_cannot_be_seen_lets_nobody_in_and_says_so():
    there = AtTheDesk()
    there.yarn.away = True
    errand = there.hand(asking())
    there.go(5_000)
    assert errand.answer is None
    assert "does not report the cluster's size" in said(there.desk.shown().problem)
    assert there.yarn.asked.count("size") <= 2, "it is not pressed"
    there.yarn.away = False
    there.go(2 * REST_EVERY_MS)
    assert errand.answer == f"adm-{HERE}-1"


def test_another_allocator_begins_with_an_empty_memory_and_learns_from_the_past_again():
    there = AtTheDesk(past=past_of(HALF))
    there.ask(1)
    assert there.gate.memory.completed == 1
    again = AtTheDesk("justice", yarn=there.yarn, past=past_of(HALF, HALF), records=there.records)
    again.go(3_000)
    assert (again.gate.mechanism, again.gate.memory.completed) == ("justice", 2)
    assert len(again.gate.reserved) == 1


# --- learning -----------------------------------------------------------------------------------------------


def past_of(*before: Finished) -> Past:
    past = Past()
    past.before = before
    return past


def test_what_ended_teaches_once_and_the_gate_knows_what_it_gave():
    there = AtTheDesk(past=past_of(HALF))
    there.go(3_000)
    admission = there.ask(10)
    assert admission.plan.containers == 5
    there.submit(admission)
    there.go(1_000)
    there.yarn.end(APPLICATION)
    there.go(10_000)
    assert there.state(admission) == "ended"
    assert there.book.unlearned == {APPLICATION: admission.admission}
    told = Finished(9 * 20 * MINUTE, 99, 99, 99, 99, 0.1, True)
    there.past.jobs[APPLICATION] = told
    there.go(10_000)
    lesson = taught(there)[-1].finished[0]
    assert (lesson.tasks, lesson.deadline_ms, lesson.containers) == (10, 20 * MINUTE, 5)
    assert (lesson.ratio, lesson.capacity, lesson.work_ms) == (0.5, 10, told.work_ms)
    assert isinstance(there.gate.memory, PythiaMemory)
    assert there.gate.memory.most == pytest.approx(0.9)
    there.past.asked.clear()
    there.go(MINUTE)
    assert there.past.asked == []


def test_a_history_server_that_is_away_stops_nobody_and_is_said_once(caplog):
    there = AtTheDesk()
    there.past.away = True
    admission = there.ask(5)
    assert admission.state == "admitted"
    there.submit(admission)
    there.go(1_000)
    there.yarn.end(APPLICATION)
    there.go(3 * MINUTE)
    assert there.state(admission) == "ended"
    said = [record for record in caplog.records if "history server unavailable" in record.message]
    assert len(said) == 1
    there.past.away = False
    there.past.jobs[APPLICATION] = HALF
    there.go(3 * MINUTE)
    assert [len(each.finished) for each in taught(there)] == [0, 1]


@pytest.mark.parametrize(("after_ms", "lessons"), [(15 * MINUTE - 1, 0), (15 * MINUTE, 1)])
def test_history_is_asked_for_a_quarter_of_an_hour(after_ms, lessons):
    there = AtTheDesk()
    admission = there.ask(5)
    there.submit(admission)
    there.go(1_000)
    there.yarn.end(APPLICATION)
    while APPLICATION not in there.past.asked:
        there.tick()
    before, ended_at_ms = len(taught(there)), there.book.admissions[admission.admission].changed_at_ms
    there.tick(ended_at_ms + after_ms - there.now_ms)  # with the answer that the history has nothing
    assert len(taught(there)) - before == lessons


def test_what_the_history_never_tells_is_let_go():
    there = AtTheDesk()
    admission = there.ask(5)
    there.submit(admission)
    there.go(1_000)
    there.yarn.end(APPLICATION)
    there.go(LEARN_FOR_MS + MINUTE)
    assert there.book.unlearned == {}
    assert "does not list" in told(taught(there)[-1].why)


@pytest.mark.parametrize(
    "odd", [msgspec.structs.replace(HALF, work_ms=0), msgspec.structs.replace(HALF, ratio=float("nan"))]
)
def test_numbers_that_cannot_be_teach_nothing(odd):
    there = AtTheDesk(past=past_of(odd, HALF))
    there.ask(5)
    assert taught(there)[0].finished == (HALF,)


def test_an_admitted_jobs_numbers_that_cannot_be_teach_nothing():
    there = AtTheDesk()
    admission = there.ask(5)
    there.submit(admission)
    there.past.jobs[APPLICATION] = msgspec.structs.replace(HALF, work_ms=-1)
    there.go(1_000)
    there.yarn.end(APPLICATION)
    there.go(10_000)
    assert (taught(there)[-1].finished, taught(there)[-1].why) == ((), NumbersImpossible())


def test_estimates_come_from_the_history_unless_who_asks_has_one():
    there = AtTheDesk()
    there.go(3_000)
    there.past.estimates["job"] = Estimate(100 * MINUTE, 0, "history")
    assert text(there.ask(2, minutes=5).plan.reason) == (
        "needs 20 containers to end by its deadline and can use 2 at once"
    )
    own = Estimate(MINUTE, 0, "me")
    assert there.ask(2, minutes=5, estimate=own).request.estimate == own
    assert there.ask(2, minutes=55).plan.finish_at_ms == there.now_ms + 50 * MINUTE


def test_a_desk_without_a_history_works():
    there = AtTheDesk(history=False)
    assert there.ask(5).state == "admitted"
    assert there.past.asked == []


def test_few_names_and_few_ends_and_no_container_lost():
    loads = [Load(f"a{number}", 1 + number % 7, 0, 1_000 + number) for number in range(500)]
    short = compact([*loads, Load("x", 3, 0, FOREVER_MS)])
    assert len(short) <= NAMED_MAX + STEPS_MAX + 1
    assert sum(load.containers for load in short) == sum(load.containers for load in loads) + 3
    assert {load.who for load in short if load.who not in {each.who for each in loads}} == {MANY}


def test_a_round_that_changes_nothing_is_not_written():
    there = AtTheDesk(past=past_of(HALF))
    there.yarn.run("application_1_0007", 10, user="bob")
    there.ask(10, minutes=60)
    there.go(5_000)
    before = len(there.records)
    there.go(5 * MINUTE)
    assert len(there.records) - before <= 32


def test_a_round_writes_down_only_what_is_new():
    there = AtTheDesk("no_drop_fs")
    there.yarn.run("application_1_0007", 10, user="bob")
    for _ in range(30):
        there.ask(5, minutes=600)
    assert [len(each.plans) for each in rounds(there)] == [1] * 30
    assert all("0 free now" in text(each.plan.reason) for each in there.book.open())


def test_many_requests_at_once_are_done_a_few_at_a_time():
    there = AtTheDesk("no_drop_fs")
    there.go(3_000)
    woken: list[int] = []
    there.window.on_wake = lambda: woken.append(1)
    errands = [there.hand(asking(1)) for _ in range(COMMANDS_MAX + 3)]
    there.tick()
    assert sum(each.answer is not None for each in errands) == COMMANDS_MAX
    assert woken
    there.tick()
    assert all(each.answer is not None for each in errands)


# --- the window -------------------------------------------------------------------------------------------


def test_the_window_is_bounded_and_closes():
    window = RequestQueue(lambda: 0, 1000)
    window._pending = [PendingCommand(asking()) for _ in range(PENDING_MAX)]
    refusal = window.submit(asking(), 0)
    assert not isinstance(refusal, str)
    assert refusal.code == "queue-full"
    window.close()
    refusal = window.submit(asking(), 60_000)
    assert not isinstance(refusal, str)
    assert refusal.code == "not-written"


def test_who_finds_no_place_to_wait_does_not_wait():
    window = RequestQueue(lambda: 0, 1000)
    asked: list[int] = []

    def done() -> bool:
        asked.append(1)
        return True

    window.wait(done, 1_000)
    assert asked == [1]
    window._waiters.taken = WAITERS_MAX
    window.wait(done, 1_000)
    assert asked == [1], "not even looked: at once"


def test_closing_lets_go_of_those_that_wait():
    window = RequestQueue(lambda: 0, 1000)
    waits = threading.Event()

    def done() -> bool:
        waits.set()
        return False

    waiter = threading.Thread(target=window.wait, args=(done, 3_600_000), daemon=True)
    waiter.start()
    assert waits.wait(60)
    window.close()
    waiter.join(60)
    assert not waiter.is_alive()


def test_a_loop_that_does_not_come_is_not_waited_for_long():
    refusal = RequestQueue(lambda: 0, 1000).submit(asking(), 10)
    assert not isinstance(refusal, str)
    assert refusal.code == "not-written"


def test_a_yarn_without_a_name_is_no_reason_to_stop():
    there = AtTheDesk(yarn=Yarn())
    there.yarn.run("", 1, tags="yarnctl-admission-adm-a1b2-x,yarnctl-admission-")
    assert there.ask(5).state == "admitted"


def test_promise_that_will_be_missed_is_shown_before_its_deadline():
    there = AtTheDesk()
    admission = there.ask(6, minutes=10)
    there.submit(admission)
    there.go(1_000)
    begun_ms = there.now_ms
    for second in range(1, 301):
        there.now_ms += 1_000
        seen = SeenProgress(there.now_ms, {APPLICATION: second / 1_200})  # it needs 20 minutes
        there.desk.after_tick(there.write, there.now_ms, progress=seen)
    late = there.desk.shown().late[admission.admission]
    assert begun_ms < late.known_at_ms < late.deadline_at_ms == admission.plan.deadline_at_ms
    assert late.projected_at_ms > late.deadline_at_ms
    there.yarn.end(APPLICATION)
    there.go(REST_EVERY_MS)
    there.desk.after_tick(there.write, there.now_ms, progress=SeenProgress(there.now_ms, {}))
    assert there.desk.shown().late == {}
