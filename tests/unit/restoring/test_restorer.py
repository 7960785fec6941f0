"""A change ends only by what is observed, whoever restores it."""

from __future__ import annotations

import logging
from itertools import pairwise

import pytest

from tests.unit.restoring.world import CHANGES, FOLDER, KINDS, Folder, Host, Values, lowered_value
from yarnctl.deciding.model import Accepted, Change, ChangeKind, Outcome, Refused, Unknown, Withheld
from yarnctl.deciding.reasons.orders import (
    ChangedByOthers,
    ChangeReason,
    DemandOver,
    LeftByEarlierRun,
    MayNotAct,
    NotChanged,
    QueueServing,
    ReadBack,
    Stopping,
    TakenOver,
    TargetGone,
)
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import Lowering, Performed, Record, Restored, Restoring
from yarnctl.journal.fold import OpenChanges
from yarnctl.restoring.change_file import ChangeFiles, command_for, described, stored_records
from yarnctl.restoring.restorer import PAUSE_MAX_MS, RETRY_MS, WATCH_MS, Reading, merged

QUEUE = CHANGES["queue"]


def lowered(kind: ChangeKind = "queue", holder: str = "one") -> tuple[Folder, Values, Host]:
    """A process has recorded and made a change."""
    hdfs = Folder()
    values = Values(hdfs)
    host = Host(hdfs, values, holder)
    change = CHANGES[kind]
    assert host.restorer.record((change,), QueueServing()) == ""
    values.values[change.target] = lowered_value(change)
    return hdfs, values, host


def ends(host: Host) -> list[ChangeReason]:
    return [record.why for record in host.records if isinstance(record, Restored)]


def believed(records: list[Record]) -> None:
    """Every record can come after those before it, and at the end nothing is open."""
    fold = OpenChanges()
    for record in records:
        if isinstance(record, Lowering | Restoring | Restored):
            assert fold.problem(record) == "", record
        fold.apply(record)
    assert fold.open == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_recorded_before_it_is_made_and_ends_when_it_is_read_back(kind: ChangeKind) -> None:
    hdfs, values, host = lowered(kind)
    change = CHANGES[kind]
    (stored,) = stored_records(hdfs, FOLDER)  # type: ignore[arg-type]
    assert (stored.term, stored.holder) == (1, "one")
    assert stored.record is not None
    assert stored.record.changes == (change,)
    host.restorer.make_due(DemandOver())
    host.restorer.reconcile()
    assert values.values[change.target] == change.before
    assert ends(host) == [], "a request that was accepted ends nothing"
    host.pass_ms(1_000)
    assert ends(host) == [ReadBack()]
    assert (hdfs.files, host.restorer.open) == ({}, {})
    assert [type(record) for record in host.records] == [Lowering, Restoring, Performed, Restored]
    believed(host.records)


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_is_gone_ends_its_change(kind: ChangeKind) -> None:
    hdfs, values, host = lowered(kind)
    values.values[CHANGES[kind].target] = None
    host.restorer.make_due(DemandOver())
    host.restorer.reconcile()
    assert (ends(host), values.requests, hdfs.files) == ([TargetGone()], [], {})


@pytest.mark.parametrize(("kind", "set_by_owner"), [("queue", "0.5"), ("priority", "3"), ("bounds", "{}")])
def test_a_value_of_the_owner_stays(
    kind: ChangeKind, set_by_owner: str, caplog: pytest.LogCaptureFixture
) -> None:
    hdfs, values, host = lowered(kind)
    values.values[CHANGES[kind].target] = set_by_owner
    host.restorer.make_due(DemandOver())
    host.restorer.reconcile()
    assert (ends(host), values.requests, hdfs.files) == ([ChangedByOthers()], [], {})
    assert "by its owner; it stays" in caplog.text


FAILURES: list[Outcome] = [
    Refused(ClientFault("HTTP 503")),
    Unknown(ClientFault("no answer")),
    Withheld(ClientFault("not now")),
]


@pytest.mark.parametrize("answer", FAILURES)
def test_a_request_that_fails_is_repeated_with_a_growing_pause(
    answer: Outcome, caplog: pytest.LogCaptureFixture
) -> None:
    _, values, host = lowered()
    values.answers = [answer] * 4
    values.values[QUEUE.target] = QUEUE.now
    host.restorer.make_due(DemandOver())
    tries = []
    for at_ms in range(0, 100_000, 250):
        before = len(values.requests)
        host.pass_ms(250)
        if isinstance(answer, Unknown) and values.answers:
            values.values[QUEUE.target] = QUEUE.now  # the request had no effect
        tries += [at_ms] * (len(values.requests) - before)
    pauses = [RETRY_MS, 2 * RETRY_MS, 4 * RETRY_MS, PAUSE_MAX_MS]
    made = isinstance(answer, Unknown)  # the fourth request had its effect, and no answer
    gaps = [late - early for early, late in pairwise(tries)]
    assert gaps == pauses[: 3 if made else 4]
    assert values.values[QUEUE.target] == QUEUE.before
    assert ends(host) == [ReadBack()]
    assert "yarn schedulerconf -update root.research:maximum-capacity=90" in caplog.text


def test_a_cluster_that_does_not_answer_is_read_again() -> None:
    _, values, host = lowered()
    values.unread = "http://rm: no answer"
    host.restorer.make_due(DemandOver())
    host.pass_ms(60_000)
    assert (values.requests, list(host.restorer.open)) == ([], [QUEUE.key])
    values.unread = ""
    host.pass_ms(PAUSE_MAX_MS + 2_000)
    assert values.values[QUEUE.target] == QUEUE.before
    assert ends(host) == [ReadBack()]


def test_a_late_answer_is_read_again_each_second_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A guard waits for an application again after five answers in time, and keeps each answer for 5 s."""
    _, values, host = lowered("executors")
    values.late = 8
    host.restorer.make_due(DemandOver())
    host.pass_ms(8_500)
    assert values.requests == [(CHANGES["executors"].target, "4")]
    assert [
        each.getMessage().partition(",")[0] for each in caplog.records if each.levelname == "WARNING"
    ] == [f"cannot restore the executors of {CHANGES['executors'].target}"]


@pytest.mark.parametrize("leads", [True, False])
def test_a_process_that_was_stopped_while_it_checked_its_record_checks_again(
    monkeypatch: pytest.MonkeyPatch, leads: bool
) -> None:
    """Meanwhile the next leader has taken the record over, and may have lowered the setting again."""
    hdfs, values, host = lowered()
    taken = Host(hdfs, values, "two", term=2)
    find = hdfs.find

    def stopped(path: str) -> object:
        found = find(path)
        host.now_ms, host.leads = host.now_ms + 20_000, leads
        if not leads:
            taken.restorer.adopt()
        monkeypatch.undo()
        return found

    taken.restorer.lost()
    monkeypatch.setattr(hdfs, "find", stopped)
    host.restorer.make_due(DemandOver())
    host.restorer.reconcile()
    assert len(values.requests) == leads
    host.pass_ms(60_000)
    assert ends(host) == [ReadBack() if leads else TakenOver()]
    assert len(values.requests) == leads


def test_a_request_of_a_process_that_was_frozen_for_an_hour_is_corrected_within_five_seconds() -> None:
    """Its record was taken over and removed long ago: it leaves another one."""
    hdfs, values, host = lowered()
    taken = Host(hdfs, values, "two", term=2)
    taken.restorer.lost()
    taken.pass_ms(3_600_000, every_ms=2_000)
    change = CHANGES["queue"]
    assert (values.values[change.target], hdfs.files) == (change.before, {})
    host.leads = False
    values.values[change.target] = change.now  # its request lands
    host.restorer.sent_late(change.key)
    assert len(hdfs.files) == 1
    taken.pass_ms(5_000)
    assert values.values[change.target] == change.before
    taken.pass_ms(5_000)
    assert hdfs.files == {}
    host.leads, host.now_ms = True, taken.now_ms
    host.restorer.lost()
    host.pass_ms(20_000)
    assert values.values[change.target] == change.before


def test_a_request_that_lands_after_the_other_process_has_ended_is_corrected_by_its_sender() -> None:
    """``yarnctl restore`` reads the value before, removes the record and ends; then the old request lands."""
    hdfs = Folder()
    values = Values(hdfs)
    values.values[QUEUE.target] = QUEUE.before
    host, command = Host(hdfs, values, "one"), Host(hdfs, values, "command", term=2)
    assert host.restorer.record((QUEUE,), QueueServing()) == ""
    host.leads = False
    command.restorer.lost()
    command.pass_ms(2_000)
    assert (ends(command), hdfs.files) == ([ReadBack()], {})
    values.set(QUEUE.target, QUEUE.now)
    host.leads = True
    host.restorer.lost()
    host.restorer.make_due(DemandOver())
    host.pass_ms(5_000)
    assert (values.values[QUEUE.target], hdfs.files) == (QUEUE.before, {})
    assert ends(host) == [TakenOver(), ReadBack()]
    believed(host.records)


def test_a_process_that_took_a_record_over_watches_for_late_requests_and_says_so() -> None:
    """``yarnctl restore`` goes on as long as it watches, unless the lock was released."""
    hdfs, values, _ = lowered()
    command = Host(hdfs, values, "command", term=2)
    command.restorer.lost()
    command.pass_ms(2_000)
    assert ends(command) == [ReadBack()]
    assert command.restorer.is_watching
    values.values[QUEUE.target] = QUEUE.now  # the frozen process wakes
    command.pass_ms(5_000)
    assert values.values[QUEUE.target] == QUEUE.before
    assert command.restorer.is_watching
    command.pass_ms(WATCH_MS)
    assert not command.restorer.is_watching


def test_lock_that_runs_out_while_late_requests_are_looked_for_ends_the_correction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next leader may have restored the value: to lower it again would leave it without a record."""
    _, values, _ = lowered()
    host = Host(values.hdfs, values, "two", term=2)
    host.restorer.lost()
    host.restorer.adopt()
    host.restorer.open[QUEUE.key].why = None
    values.values[QUEUE.target] = QUEUE.before
    read = values.read

    def slow(change: Change) -> Reading:
        host.leads = False
        return read(change)

    monkeypatch.setattr(values, "read", slow)
    host.pass_ms(3_000)
    assert values.requests == []


def test_nothing_is_restored_before_it_is_due_or_while_its_application_has_orders() -> None:
    _, values, host = lowered("executors")
    host.pass_ms(10_000)
    assert values.requests == []
    host.restorer.make_due(DemandOver())
    host.restorer.reconcile(busy=(CHANGES["executors"].target,))
    assert values.requests == []
    host.restorer.reconcile()
    assert values.requests == [(CHANGES["executors"].target, "4")]


def test_only_the_kinds_named_become_due() -> None:
    hdfs = Folder()
    values = Values(hdfs)
    host = Host(hdfs, values, "one")
    host.restorer.record(tuple(CHANGES.values()), QueueServing())
    assert len(hdfs.files) == 1, "all changes of a decision in one write"
    values.values = {change.target: lowered_value(change) for change in CHANGES.values()}
    host.restorer.make_due(DemandOver(), ("queue",))
    host.restorer.reconcile()
    assert [target for target, _ in values.requests] == [QUEUE.target]
    host.pass_ms(2_000)
    (stored,) = stored_records(hdfs, FOLDER)  # type: ignore[arg-type]
    assert stored.record is not None
    assert [change.kind for change in stored.record.changes] == list(KINDS[1:])


def test_what_cannot_be_recorded_is_not_changed(caplog: pytest.LogCaptureFixture) -> None:
    hdfs = Folder()
    host = Host(hdfs, Values(hdfs), "one")
    host.restorer.lost()
    host.restorer.adopt()
    hdfs.away = True
    for _ in range(100):
        assert "cannot record the change" in host.restorer.record((QUEUE,), QueueServing())
        host.now_ms += 250
    assert (host.restorer.open, host.records) == ({}, [])
    assert len([line for line in caplog.records if line.levelno == logging.WARNING]) == 1


def test_nothing_is_changed_before_the_records_of_others_are_read() -> None:
    hdfs = Folder()
    host = Host(hdfs, Values(hdfs), "one")
    host.restorer.lost()
    hdfs.away = True
    assert host.restorer.record((QUEUE,), QueueServing())
    hdfs.away = False
    assert host.restorer.record((QUEUE,), QueueServing()), "it is read again after a pause only"
    host.now_ms += RETRY_MS
    assert host.restorer.record((QUEUE,), QueueServing()) == ""


def test_a_request_that_was_rejected_leaves_no_change() -> None:
    hdfs, values, host = lowered()
    values.values[QUEUE.target] = QUEUE.before
    host.restorer.not_made(QUEUE.key)
    host.restorer.reconcile()
    assert (ends(host), hdfs.files, values.requests) == ([NotChanged()], {}, [])
    believed(host.records)


def test_a_second_request_that_was_rejected_leaves_the_first_change() -> None:
    hdfs, values, host = lowered("bounds")
    first = CHANGES["bounds"]
    host.restorer.record((Change("bounds", first.target, first.now, '{"upper":1}'),), QueueServing())
    host.restorer.not_made(first.key)
    host.restorer.reconcile()
    (stored,) = stored_records(hdfs, FOLDER)  # type: ignore[arg-type]
    assert stored.record is not None
    assert stored.record.changes == (first,)
    host.restorer.make_due(DemandOver())
    host.pass_ms(2_000)
    assert values.values[first.target] == first.before
    assert hdfs.files == {}


MERGES = [
    (Change("queue", "q", "0.9", "0.2"), Change("queue", "q", "0.20000000001", "0.1"), "0.9", "0.1"),
    (Change("queue", "q", "0.9", "0.2"), Change("queue", "q", "0.5", "0.1"), "0.5", "0.1"),
    (Change("bounds", "a", "6", "4"), Change("bounds", "a", "4", "2"), "6", "2"),
    (Change("bounds", "a", "6", "4"), Change("bounds", "a", "3", "2"), "3", "2"),
    (Change("priority", "a", "0", "10"), Change("priority", "a", "1", "10"), "0", "10"),  # half restored
    (Change("priority", "a", "0", "10"), Change("priority", "a", "3", "9"), "3", "9"),
    (Change("executors", "a", "4", "d1"), Change("executors", "a", "3", "d2"), "4", "d1 d2"),
    (Change("executors", "a", "4", "d1 d2"), Change("executors", "a", "5", "d2"), "5", "d1 d2"),
]


@pytest.mark.parametrize(("older", "newer", "before", "now"), MERGES)
def test_merged_goes_back_to_the_first_value_unless_the_owner_set_another(
    older: Change, newer: Change, before: str, now: str
) -> None:
    assert merged(older, newer) == Change(newer.kind, newer.target, before, now)


# --- several processes ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_leader_takes_the_record_over_and_restores(kind: ChangeKind) -> None:
    hdfs, values, _ = lowered(kind)
    change = CHANGES[kind]
    new = Host(hdfs, values, "two", term=2)
    new.restorer.lost()
    new.leads = False
    new.pass_ms(10_000)
    assert values.requests == [], "only the holder of the lock takes records over"
    new.leads = True
    new.restorer.reconcile()
    (stored,) = stored_records(hdfs, FOLDER)  # type: ignore[arg-type]
    assert (stored.term, stored.holder) == (2, "two")
    new.pass_ms(2_000)
    assert values.values[change.target] == change.before
    assert (ends(new), hdfs.files) == ([ReadBack()], {})
    assert isinstance(new.records[0], Lowering)
    assert new.records[0].why == LeftByEarlierRun()
    believed(new.records)


@pytest.mark.parametrize("kind", KINDS)
def test_a_frozen_process_whose_record_was_taken_over_changes_nothing(kind: ChangeKind) -> None:
    hdfs, values, old = lowered(kind)
    new = Host(hdfs, values, "two", term=2)
    new.restorer.lost()
    new.pass_ms(2_000)
    change = CHANGES[kind]
    assert new.restorer.record((change,), QueueServing()) == ""
    values.values[change.target] = lowered_value(change)  # by the new leader
    values.requests.clear()
    old.leads = False
    old.restorer.make_due(MayNotAct())
    old.pass_ms(60_000)
    assert (values.requests, ends(old)) == ([], [TakenOver()])
    assert len(hdfs.files) == 1, "the record of the new leader stays"


def test_without_the_lock_and_without_hdfs_a_value_is_left_alone() -> None:
    hdfs, values, old = lowered()
    old.leads, hdfs.away = False, True
    old.restorer.make_due(MayNotAct())
    old.pass_ms(60_000)
    assert values.requests == [], "another process may have taken over"
    hdfs.away = False
    old.pass_ms(PAUSE_MAX_MS + 2_000)
    assert values.values[QUEUE.target] == QUEUE.before, "the holder of the record may always restore"


def test_the_leader_restores_while_hdfs_is_away_and_removes_the_record_later() -> None:
    hdfs, values, host = lowered()
    hdfs.away = True
    host.restorer.make_due(DemandOver())
    host.pass_ms(2_000)
    assert (values.values[QUEUE.target], len(hdfs.files)) == (QUEUE.before, 1)
    hdfs.away = False
    host.pass_ms(RETRY_MS + 250)
    assert hdfs.files == {}


@pytest.mark.parametrize("kind", ["queue", "priority", "bounds"])
def test_a_late_request_of_an_earlier_process_is_corrected(kind: ChangeKind) -> None:
    hdfs, values, _ = lowered(kind)
    change = CHANGES[kind]
    new = Host(hdfs, values, "two", term=2)
    new.restorer.lost()
    new.pass_ms(3_000)
    assert ends(new) == [ReadBack()]
    values.values[change.target] = lowered_value(change)  # the frozen daemon's request arrives
    new.pass_ms(5_000)
    assert values.values[change.target] == change.before
    new.pass_ms(WATCH_MS)
    values.values[change.target] = lowered_value(change)
    new.pass_ms(60_000)
    assert values.values[change.target] == lowered_value(change), "later it is its owner's"


def test_records_of_two_processes_about_one_setting_are_one_change() -> None:
    hdfs, values, _ = lowered("bounds")
    first = CHANGES["bounds"]
    second = Host(hdfs, values, "two", term=2)
    second.restorer.record((Change("bounds", first.target, first.now, '{"upper":1}'),), QueueServing())
    values.values[first.target] = '{"upper":1}'
    third = Host(hdfs, values, "three", term=3)
    third.restorer.lost()
    third.pass_ms(3_000)
    assert values.values[first.target] == first.before
    assert hdfs.files == {}


def test_a_record_that_cannot_be_parsed_stays_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    hdfs, values, _ = lowered()
    (name,) = hdfs.files
    hdfs.files[name] = b'{"changes":[{"ki'
    new = Host(hdfs, values, "two", term=2)
    new.restorer.lost()
    new.pass_ms(60_000)
    assert (new.records, list(hdfs.files)) == ([], [name])
    assert len([line for line in caplog.records if line.levelno == logging.WARNING]) == 1


WRONG = [
    Change("queue", "root.q", "high", "0.1"), Change("queue", "root.q", "0.1", "0.9"),
    Change("queue", "root.q", "nan", "0.1"), Change("queue", "root.q", "7", "0.1"),
    Change("priority", "application_1_1", "1.5", "2"), Change("executors", "application_1_1", "0", "d1"),
    Change("executors", "application_1_1", "4", " "), Change("preemption", "root.q", "true", "true"),
    Change("preemption", "root.q", "", "false"),
]  # fmt: skip


@pytest.mark.parametrize("change", WRONG)
def test_a_record_with_values_of_another_kind_changes_nothing(change: Change) -> None:
    hdfs = Folder()
    values = Values(hdfs)
    ChangeFiles(hdfs, FOLDER, "gone").create((change,))  # type: ignore[arg-type]
    new = Host(hdfs, values, "two", term=2)
    new.restorer.lost()
    new.pass_ms(5_000)
    assert (new.restorer.open, values.requests, len(hdfs.files)) == ({}, [], 1)


def test_half_a_record_is_removed_by_the_next_leader() -> None:
    hdfs, values, _ = lowered()
    hdfs.files[f"{FOLDER}/.changes-000000000001-one-000002.json.tmp"] = b'{"cha'
    new = Host(hdfs, values, "two", term=2)
    new.restorer.lost()
    new.pass_ms(3_000)
    assert hdfs.files == {}


def test_terms_of_zookeeper_are_longer_and_ordered_by_number_and_of_another_kind_unread() -> None:
    hdfs = Folder()
    for term, kind in ((0x200000002, "zookeeper"), (0x20000000000, "zookeeper"), (5, "hdfs")):
        ChangeFiles(hdfs, FOLDER, "one", lambda term=term: term, kind).create((QUEUE,))  # type: ignore[arg-type, misc]
    found = stored_records(hdfs, FOLDER)  # type: ignore[arg-type]
    assert [one.term for one in found] == [5, 0x200000002, 0x20000000000]
    seen = ChangeFiles(hdfs, FOLDER, "two", lambda: 0x20000000001, "zookeeper").others()  # type: ignore[arg-type]
    assert [one.record is not None for one in seen] == [False, True, True]


def test_records_are_read_once_per_leadership_and_their_names_listed_every_three_seconds() -> None:
    hdfs, _, host = lowered()
    host.restorer.lost()
    before = hdfs.listings
    host.pass_ms(10_000)
    assert hdfs.listings - before == 2 + 4  # half records and records, then names


# --- the end of a process ---------------------------------------------------------------------


def test_stop_restores_and_reads_back_at_once() -> None:
    hdfs, values, host = lowered()
    host.restorer.stop(Stopping())
    assert (values.values[QUEUE.target], ends(host), hdfs.files) == (QUEUE.before, [ReadBack()], {})


def test_stop_leaves_the_record_of_what_it_could_not_restore() -> None:
    hdfs, values, host = lowered()
    values.answers = [Refused(ClientFault("HTTP 503"))]
    host.restorer.stop(Stopping())
    assert (values.values[QUEUE.target], len(hdfs.files)) == (QUEUE.now, 1)


def test_restore_reports_what_could_not_be_requested() -> None:
    _, values, host = lowered("executors")
    target = CHANGES["executors"].target
    values.answers = [Unknown(ClientFault("no answer"))]
    assert isinstance(host.restorer.restore(target, DemandOver(), ("bounds", "executors")), Unknown)
    assert host.restorer.restore(target, DemandOver(), ("bounds", "executors")) == Accepted()
    assert host.restorer.restore("application_1_0099", DemandOver(), ("executors",)) == Accepted()
    host.restorer.lost()
    host.leads = False
    answer = host.restorer.restore(target, DemandOver(), ("executors",))
    assert isinstance(answer, Unknown), "the records are not known"


# --- words ------------------------------------------------------------------------------------

WORDS = {
    "queue": (
        "the maximum of root.research from 90 % to 5 %",
        "yarn schedulerconf -update root.research:maximum-capacity=90",
    ),
    "priority": (
        "the priority of application_1_0001 from 0 to 7",
        "yarn application -appId application_1_0001 -updatePriority 1 && "
        "yarn application -appId application_1_0001 -updatePriority 0",
    ),
    "bounds": ("the bounds of the Flink job of application_1_0002", ""),
    "executors": ("the executors of application_1_0003, of which it had 4", ""),
    "preemption": (
        "disable_preemption of root.lab from absent to true",
        "yarn schedulerconf -update root.lab:disable_preemption=",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_change_has_words_and_a_command(kind: ChangeKind) -> None:
    assert (described(CHANGES[kind]), command_for(CHANGES[kind])) == WORDS[kind]


def test_the_command_has_ten_digits() -> None:
    third = Change("queue", "root.q", repr(1 / 3), "0.1")
    assert command_for(third).endswith("=33.33333333")
