"""The live ResourceManager: numbered calls, silence, attempts, ends; time is turned by hand."""

from __future__ import annotations

import pytest

from emulator.live.manager.service import ManagerSettings, RequestRefused
from emulator.live.manager.state import AppRecord, Submission
from emulator.live.wire.messages import EXIT_ABORTED, EXIT_LOST, Allocate, Doorbell, NodeReport
from tests.live.rm_playing import EPOCH, Played
from yarnctl.units import Resources


def test_ids_are_those_of_yarn():
    played = Played()
    played.node()
    app, containers = played.running()
    assert app.id == f"application_{EPOCH}_0001"
    assert app.attempts[0].id == f"appattempt_{EPOCH}_0001_000001"
    assert app.attempts[0].container == f"container_{EPOCH}_0001_01_000001"
    assert containers == [f"container_{EPOCH}_0001_01_00000{at}" for at in (2, 3)]


def test_a_master_is_launched_by_the_heartbeat_that_gives_it_room():
    played = Played()
    played.node()
    app = played.submit()
    (launch,) = played.beat().masters
    assert (launch.application, launch.attempt, launch.user) == (app.id, 1, "ann")
    assert bytes(launch.job) == b'{"kind":"x"}'
    assert played.beat().masters == ()
    states = [app.state]
    played.up(app)
    assert [*states, app.state] == ["ACCEPTED", "RUNNING"]


def test_a_repeated_heartbeat_gets_the_same_orders_and_changes_nothing_twice():
    played = Played()
    played.node()
    played.submit()
    first = played.beat()
    assert first.masters
    assert played.again() == first
    assert played.free_mib() == 3 * 1024
    assert played.beat().masters == ()


def test_an_end_told_by_a_repeated_heartbeat_counts_once():
    played = Played()
    played.node()
    app, (one, _) = played.running()
    played.beat("n1:1", one, exit_status=7)
    played.again("n1:1", one, exit_status=7)
    assert played.free_mib() == 2 * 1024
    (ended,) = played.call(app).ended
    assert (ended.container, ended.exit_status) == (one, 7)
    assert played.call(app).ended == ()
    played.check_sums()


def test_a_repeated_allocate_asks_once_and_gives_the_same_containers():
    played = Played()
    played.node()
    app = played.submit()
    played.beat()
    played.up(app)
    message = Allocate(application=app.id, attempt=1, number=1, asks=())
    played.call(app, (20, 2))
    again = played.manager.allocate(message)
    assert app.actor.pending == 2
    assert again.number == 1
    played.beat()
    granted = played.call(app)
    assert len(granted.granted) == 2
    assert played.manager.allocate(Allocate(application=app.id, attempt=1, number=2)) == granted


def test_a_number_that_jumps_is_answered_by_resync():
    played = Played()
    played.node()
    played.beat()
    assert played.manager.node_heartbeat(NodeReport(node="n1:1", number=9)).resync
    app, _ = played.running()
    assert played.manager.allocate(Allocate(application=app.id, attempt=1, number=9)).resync


def test_an_unknown_node_and_an_unregistered_master_are_sent_to_register():
    played = Played()
    assert played.manager.node_heartbeat(NodeReport(node="who:1", number=1)).resync
    played.node()
    app = played.submit()
    played.beat()
    assert played.manager.allocate(Allocate(application=app.id, attempt=1, number=1)).resync


def test_a_signal_goes_out_once_with_the_next_heartbeat():
    played = Played()
    played.node()
    _, (one, _) = played.running()
    played.manager.signal(one, "OUTPUT_THREAD_DUMP")
    assert played.beat().signals == (Doorbell(one, "OUTPUT_THREAD_DUMP"),)
    assert played.beat().signals == ()
    with pytest.raises(RequestRefused, match="absent container"):
        played.manager.signal("container_1_1_1_1", "OUTPUT_THREAD_DUMP")


def test_a_released_container_is_free_at_once_and_stopped_by_its_node():
    played = Played()
    played.node()
    app, (one, _) = played.running()
    answer = played.call(app, release=(one,))
    assert [(each.container, each.exit_status) for each in answer.ended] == [(one, EXIT_ABORTED)]
    assert played.free_mib() == 2 * 1024
    assert played.beat(running=(one,)).stop == (one,)
    assert played.beat(running=(one,)).stop == (one,)  # it still runs: told again
    assert played.beat("n1:1", one, exit_status=143).stop == ()
    played.check_sums()


def test_nobody_releases_the_container_of_a_master_or_of_somebody_else():
    played = Played()
    played.node(slots=8)
    app, _ = played.running()
    other, (theirs, _) = played.running()
    assert played.call(app, release=(app.attempts[0].container, theirs, "container_x")).ended == ()
    assert (len(app.containers), len(other.containers)) == (3, 3)


def test_a_node_speaks_only_of_its_own_containers():
    played = Played()
    played.node()
    _, (one, _) = played.running()
    played.node("n2:1")
    played.beat("n2:1", one)
    assert one in played.manager.containers
    played.check_sums()


# --- silence ----------------------------------------------------------------------------------


def test_a_silent_node_is_lost_at_its_time_and_not_before():
    played = Played()
    played.node()
    played.node("n2:1")
    app, containers = played.running(maps=2, node="n2:1")
    for _ in range(9):
        played.pass_ms(1000)
        played.beat("n2:1")
    played.pass_ms(999)
    assert set(played.manager.nodes) == {"n1:1", "n2:1"}
    played.pass_ms(1)
    assert set(played.manager.nodes) == {"n2:1"}
    assert set(played.manager.lost) == {"n1:1"}
    assert played.manager.actor.total.memory_mib == 4096
    for _ in range(12):
        played.pass_ms(1000)
        played.call(app)
    assert played.manager.nodes == {}
    assert containers
    played.check_sums()


def test_containers_of_a_lost_node_are_told_to_their_master():
    played = Played()
    played.node("n1:1", slots=1)
    app = played.submit()
    played.beat()
    played.up(app)
    played.node("n2:1")
    played.call(app, (10, 1))
    played.beat("n2:1")
    (granted,) = played.call(app).granted
    for _ in range(10):
        played.pass_ms(1000)
        played.beat("n1:1")
    (ended,) = played.call(app).ended
    assert (ended.container, ended.exit_status) == (granted.container, EXIT_LOST)
    assert app.state == "RUNNING"
    played.check_sums()


def test_a_lost_node_that_comes_back_registers_and_stops_what_it_still_runs():
    played = Played()
    played.node()
    _, (one, two) = played.running()
    for _ in range(10):
        played.pass_ms(1000)
    assert played.beat(running=(one, two)).resync
    played.node(running=(one, two))
    assert set(played.beat(running=(one, two)).stop) == {one, two}
    assert played.manager.lost == {}
    played.check_sums()


def test_a_node_that_begins_anew_loses_what_it_does_not_hold():
    played = Played()
    played.node()
    app, (one, two) = played.running()
    played.node(running=(app.attempts[0].container, two))
    assert [each.container for each in played.call(app).ended] == [one]
    assert played.free_mib() == 2 * 1024
    assert app.state == "RUNNING"
    played.check_sums()


def test_a_node_that_begins_anew_without_its_master_loses_the_attempt():
    played = Played()
    played.node()
    app, _ = played.running()
    played.node()
    assert (app.state, app.attempts[0].state) == ("ACCEPTED", "FAILED")
    assert played.free_mib() == 4096
    played.check_sums()


def test_a_node_that_comes_back_larger_counts_with_its_new_size():
    played = Played()
    played.node()
    played.node(slots=8)
    assert played.manager.actor.total.memory_mib == 8192
    assert len(played.manager.nodes) == 1


def test_a_silent_master_is_replaced():
    played = Played(ManagerSettings(am_expiry_ms=20_000))
    played.node()
    app, _ = played.running()
    for _ in range(20):
        played.pass_ms(1000)
        played.beat()
    assert app.attempts[0].state == "FAILED"
    assert "timed out" in app.attempts[0].diagnostics
    assert played.free_mib() == 4096
    played.check_sums()


def test_nobody_is_lost_because_this_process_stood_still():
    played = Played()
    played.node("n1:1")
    played.node("n2:1")
    played.pass_ms(60_000)
    assert set(played.manager.nodes) == {"n1:1", "n2:1"}
    played.pass_ms(1000)
    played.beat("n2:1")  # it was heard within the grace, the other was not
    for _ in range(3):
        played.pass_ms(999)
        played.beat("n2:1")
    assert set(played.manager.nodes) == {"n2:1"}


def test_another_life_knows_nobody_and_stops_what_still_runs():
    before, after = Played(), Played()
    before.node()
    app, containers = before.running()
    assert after.manager.node_heartbeat(NodeReport(node="n1:1", number=7, running=tuple(containers))).resync
    after.node(running=tuple(containers))
    assert set(after.beat(running=tuple(containers)).stop) == set(containers)
    refused = after.manager.allocate(Allocate(application=app.id, attempt=1, number=8)).refused
    assert "not known here" in refused


def test_time_is_sped_up_but_no_silence_is_shorter_than_the_floor():
    played = Played(ManagerSettings(silence_floor_ms=60_000))
    assert played.manager.node_expiry_ms == 60_000


# --- attempts and ends ------------------------------------------------------------------------


def fail_master(played: Played, app: AppRecord, number: int) -> None:
    played.beat("n1:1", app.attempts[number - 1].container, exit_status=1)


def test_a_master_that_ends_without_farewell_gets_another_attempt():
    played = Played()
    played.node()
    app, containers = played.running()
    fail_master(played, app, 1)
    assert (app.state, len(app.attempts)) == ("ACCEPTED", 1)
    assert played.free_mib() == 4096
    assert set(played.beat(running=tuple(containers)).stop) == set(containers)
    played.pass_ms(2999)
    assert played.beat().masters == ()
    played.pass_ms(1)
    (launch,) = played.beat().masters
    assert (launch.attempt, launch.container) == (2, f"container_{EPOCH}_0001_02_000001")
    assert played.call(app).refused
    played.up(app, attempt=2)
    assert played.call(app, (20, 1), attempt=2).refused == ""
    assert app.state == "RUNNING"
    played.check_sums()


def test_an_attempt_that_is_over_is_given_nothing():
    played = Played()
    played.node()
    app, _ = played.running()
    played.call(app, (20, 5))
    fail_master(played, app, 1)
    played.beat()
    assert (app.containers, app.actor.asks) == ({}, [])


def test_the_last_attempt_fails_the_application():
    played = Played()
    played.node()
    app, _ = played.running()
    fail_master(played, app, 1)
    played.pass_ms(3000)
    played.beat()
    fail_master(played, app, 2)
    assert (app.state, app.final_status) == ("FAILED", "FAILED")
    assert "failed 2 times" in app.diagnostics
    assert played.manager.applications == {}
    assert played.free_mib() == 4096


def test_a_submitter_may_ask_for_fewer_attempts_but_not_for_more():
    played = Played()
    played.node()
    app = played.submit(max_attempts=1)
    played.beat()
    fail_master(played, app, 1)
    assert app.state == "FAILED"
    other = played.submit(max_attempts=9)
    played.beat()
    fail_master(played, other, 1)
    played.pass_ms(3000)
    played.beat()
    fail_master(played, other, 2)
    assert other.state == "FAILED"


def test_farewell_ends_the_application_and_stops_what_is_left():
    played = Played()
    played.node()
    app, containers = played.running()
    played.bye(app)
    assert (app.state, app.final_status, app.diagnostics) == ("FINISHED", "SUCCEEDED", "said so")
    assert set(played.beat(running=tuple(containers)).stop) == set(containers)
    assert list(app.containers) == [app.attempts[0].container]
    played.beat("n1:1", app.attempts[0].container)
    assert (app.containers, played.free_mib()) == ({}, 4096)
    assert app.state == "FINISHED"
    played.bye(app, "FAILED")
    assert app.final_status == "SUCCEEDED"
    assert played.call(app).refused
    played.check_sums()


def test_a_master_that_lingers_after_its_farewell_is_stopped():
    played = Played()
    played.node()
    app, _ = played.running(maps=0)
    played.bye(app)
    master = app.attempts[0].container
    for _ in range(9):
        played.pass_ms(1000)
        assert played.beat(running=(master,)).stop == ()
    played.pass_ms(1000)
    assert played.beat(running=(master,)).stop == (master,)
    assert played.free_mib() == 4096


def test_a_killed_application_is_over_at_once_with_all_it_held():
    played = Played()
    played.node()
    app, containers = played.running()
    played.manager.kill(app, "because")
    assert (app.state, app.final_status, app.diagnostics) == ("KILLED", "KILLED", "because")
    assert played.free_mib() == 4096
    assert set(played.beat().stop) == {*containers, app.attempts[0].container}
    played.manager.kill(app, "again")
    assert app.diagnostics == "because"
    played.check_sums()


def test_an_application_is_killed_while_it_waits_for_its_next_attempt():
    played = Played()
    played.node()
    app, _ = played.running()
    fail_master(played, app, 1)
    played.manager.kill(app, "")
    played.pass_ms(5000)
    assert played.beat().masters == ()
    assert (app.state, app.actor.asks) == ("KILLED", [])


def test_finished_applications_stay_listed_up_to_a_number():
    played = Played(ManagerSettings(finished_kept=2))
    for _ in range(3):
        played.manager.kill(played.submit(), "")
    assert [app.number for app in played.manager.finished.values()] == [2, 3]


@pytest.mark.parametrize(
    ("change", "why"),
    [({"queue": "nobody"}, "unknown queue"), ({"application": "application_1_0001"}, "not given out"),
     ({"application": f"application_{EPOCH}_9999"}, "not given out"),
     ({"application": f"application_{EPOCH}_x"}, "not given out"),
     ({"application": f"application_{EPOCH}_1"}, "not given out"),
     ({"am_size": Resources(99 * 1024, 1)}, "maximum allowed allocation")],
)  # fmt: skip
def test_what_cannot_be_accepted_is_refused(change, why):
    played = Played()
    played.node()
    right = {"application": played.manager.new_application(), "queue": "research", "user": "ann"}
    with pytest.raises(RequestRefused, match=why):
        played.manager.submit(Submission(**(right | change)))


def test_a_submission_is_accepted_once():
    played = Played()
    app = played.submit()
    assert played.manager.submit(app.submission) is app
    assert len(played.manager.applications) == 1


def test_room_times_time_is_counted():
    played = Played()
    played.node()
    app = played.submit()
    played.beat()
    played.pass_ms(3000)
    played.beat()
    played.up(app)
    played.call(app, (20, 1))
    played.beat()
    played.pass_ms(2000)
    played.beat()
    app.count(played.manager.now_ms())
    assert app.mib_ms == 1024 * 3000 + 2048 * 2000
