"""WebHDFS and the lock: nothing is believed that the NameNode did not say, and one holder at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from tests.unit.hadoop.little_hdfs import LittleHdfs, remote
from tests.unit.hadoop.replaying import NEVER_S, PATIENT, Replay, Reply, closed_port, page
from yarnctl.errors import BadInput, Unreachable, YarnctlError
from yarnctl.hadoop.http.answers import (
    BadAnswer,
    ExistsAlready,
    Missing,
    Rejected,
    SafeMode,
    Standby,
    Uncertain,
)
from yarnctl.hadoop.http.auth import Identity
from yarnctl.hadoop.http.session import CallLimits, passed_ns
from yarnctl.hadoop.lock import LockFile
from yarnctl.hadoop.webhdfs import WebHdfs

PLAIN = msgspec.structs.replace(PATIENT, answer_bytes=1 << 20)


def store(*replays: Replay, user: str = "ann", limits: CallLimits = PLAIN) -> WebHdfs:
    return WebHdfs([one.url for one in replays], Identity(user), limits, bulk_limits=limits)


@pytest.fixture
def little():
    fs = LittleHdfs()
    with fs.serve():
        yield fs


def test_the_constructor_sends_nothing(little):
    store(little.replay)
    assert little.replay.heard == []


def test_create_is_exclusive_and_private(little):
    fs = store(little.replay)
    fs.create("/c/part 1", b"abc")
    with pytest.raises(ExistsAlready):
        fs.create("/c/part 1", b"other")
    assert fs.read("/c/part 1") == b"abc"
    fs.create("/c/part 1", b"new", overwrite=True)
    assert fs.read("/c/part 1") == b"new"
    status = fs.status("/c/part 1")
    assert (status.kind, status.owner, status.mode, status.length) == ("FILE", "ann", 0o600, 3)
    first, second = [one for one in little.replay.heard if one.method == "PUT"][:2]
    assert (first.query["op"], first.query["overwrite"], first.query["permission"]) == (
        "CREATE",
        "False",
        "600",
    )
    assert first.body == b""
    assert second.body == b"abc"
    assert second.headers["content-type"] == "application/octet-stream"


def test_bytes_may_be_streamed_both_ways(little):
    fs = store(little.replay)
    fs.create("/big", iter([b"ab", b"cd", b"ef"]))
    with fs.open("/big", offset=1, length=4) as chunks:
        assert b"".join(chunks) == b"bcde"
    with pytest.raises(BadAnswer, match="longer than 3 bytes"):
        fs.read("/big", limit_bytes=3)


def test_what_is_not_there_is_missing(little):
    fs = store(little.replay)
    assert fs.find("/no") is None
    for ask in (fs.status, fs.listing, fs.read):
        with pytest.raises(Missing):
            ask("/no")
    assert fs.delete("/no") is False


def test_folders(little):
    fs = store(little.replay)
    fs.make_directories("/ckpt/job", 0o700)
    fs.create("/ckpt/job/b", b"1")
    fs.create("/ckpt/job/a", b"22")
    rows = fs.listing("/ckpt/job")
    assert [(row.name, row.kind, row.length) for row in rows] == [("a", "FILE", 2), ("b", "FILE", 1)]
    assert fs.status("/ckpt/job").mode == 0o700
    with pytest.raises(Rejected, match="is a file"):
        fs.listing("/ckpt/job/a")
    with pytest.raises(ExistsAlready):
        fs.make_directories("/ckpt/job/a")
    fs.set_mode("/ckpt/job/a", 0o640)
    assert fs.status("/ckpt/job/a").mode == 0o640
    assert fs.home() == "/user/ann"


def test_a_rename_that_says_no_is_no_rename_and_says_why(little):
    fs = store(little.replay)
    fs.create("/a", b"1")
    fs.create("/b", b"2")
    with pytest.raises(ExistsAlready):
        fs.rename("/a", "/b")
    with pytest.raises(Missing, match="does not exist and cannot be renamed"):
        fs.rename("/no", "/c")
    with pytest.raises(Missing, match="was not renamed into"):
        fs.rename("/a", "/no/c")
    assert little.files == {"/a": b"1", "/b": b"2"}
    fs.rename("/a", "/b", overwrite=True)
    fs.rename("/b", "/c")
    assert little.files == {"/c": b"1"}
    with pytest.raises(Missing):
        fs.rename("/a", "/c", overwrite=True)


def test_a_standby_name_node_passes_on_for_every_kind_of_call(little):
    with Replay(remote("StandbyException", 403, "READ is not supported in state standby")) as standby:
        fs = store(standby, little.replay)
        fs.create("/a", b"1")
        fs.make_directories("/d")
        fs.rename("/a", "/d/a")
        assert fs.read("/d/a") == b"1"
        assert fs.status("/d/a").length == 1
    with Replay(remote("StandbyException")) as one, Replay(remote("StandbyException")) as two:
        fs = store(one, two)
        with pytest.raises(Standby):
            fs.status("/a")
        with pytest.raises(Standby):
            fs.create("/a", b"1")


@pytest.mark.parametrize(
    ("reply", "read", "write", "claim"),
    [
        (page(), Unreachable, YarnctlError, "a page of something else"),
        (page("x", 401), YarnctlError, Rejected, "not authenticated"),
        (Reply("[]", 404), YarnctlError, YarnctlError, "JSON of something else"),
        (Reply("{}", 500), Unreachable, YarnctlError, "an error without a name"),
        (Reply('{"FileStatus":{}}'), BadAnswer, YarnctlError, "nothing in it"),
        (Reply("", 307, headers=(("Location", "http://[::1/"),)), Unreachable, YarnctlError,
         "redirect to nowhere"),
        (Reply("", 307), Unreachable, YarnctlError, "a redirect without a place"),
        (Reply("{}", delay_s=NEVER_S), Unreachable, Uncertain, "silence"),
        (Reply("x" * 50, cut=3), Unreachable, Uncertain, "torn"),
        (Reply(raw=b"\0\1"), Unreachable, Uncertain, "no HTTP"),
        (remote("AccessControlException"), Rejected, Rejected, "not allowed"),
    ],
)  # fmt: skip
def test_faults_end_in_our_errors(reply, read, write, claim):
    with Replay(reply) as nn:
        fs = store(nn, limits=reply.limits)
        with pytest.raises(read):
            fs.status("/a")
        assert claim
        for ask in (
            lambda: fs.rename("/a", "/b"),
            lambda: fs.create("/a", b"x"),
            lambda: fs.make_directories("/d"),
        ):
            with pytest.raises(write) as caught:
                ask()
            assert "\n" not in str(caught.value)
            assert "user.name" not in str(caught.value)
        if reply.status != 200 or reply.cut >= 0 or reply.raw or reply.delay_s:  # else: bytes like any other
            with pytest.raises(YarnctlError):
                fs.read("/a")


@pytest.mark.parametrize("path", ["", "a/b", "/a/../b", "/a#LATEST", "/a\nb", "/a;b"])
def test_only_plain_absolute_paths_are_used(path, little):
    fs = store(little.replay)
    for ask in (
        fs.status,
        fs.read,
        fs.delete,
        lambda one: fs.rename("/x", one),
        lambda one: fs.create(one, b""),
    ):
        with pytest.raises(BadInput):
            ask(path)
    assert little.replay.heard == []


@pytest.mark.parametrize("exception", ["SafeModeException", "RetriableException"])
def test_safe_mode_is_told_as_what_it_is(little, exception):
    """Not as a matter of owners: nothing can be written, by anybody, until it ends."""
    no = remote(exception, message="Cannot create /a. Name node is in safe mode.")
    for op in ("create", "mkdirs", "rename", "delete", "setpermission"):
        setattr(little, f"_{op}", lambda path, heard: no)
    fs = store(little.replay)
    for change in (
        lambda: fs.create("/a", b"x"), lambda: fs.make_directories("/a"), lambda: fs.rename("/a", "/b"),
        lambda: fs.rename("/a", "/b", overwrite=True), lambda: fs.delete("/a"),
        lambda: fs.set_mode("/a", 0o700),
    ):  # fmt: skip
        with pytest.raises(SafeMode, match="hdfs dfsadmin -safemode get") as told:
            change()
        assert "owner" not in str(told.value)


@pytest.mark.parametrize(
    ("host", "words"),
    [("1566bb80c4dc.invalid:50075", "cannot resolve the host name"), ("", "connection refused")],
)
def test_create_names_the_data_node_that_did_not_answer(host: str, words: str) -> None:
    at = host or f"127.0.0.1:{closed_port()}"
    where = f"http://{at}/webhdfs/v1/a?op=CREATE&delegation=SECRET"
    with (
        Replay(Reply(b"", 307, headers=(("Location", where),))) as node,
        pytest.raises(Unreachable) as caught,
    ):
        store(node).create("/a", b"x")
    said = str(caught.value)
    assert not isinstance(caught.value, Uncertain)
    assert (said.startswith(f"http://{at}/webhdfs/v1/a"), words in said, "DataNode" in said) == (True,) * 3
    assert "SECRET" not in said


def test_a_refused_connection_is_told_as_what_it_is():
    fs = WebHdfs([f"http://127.0.0.1:{closed_port()}"], Identity("ann"), PLAIN, bulk_limits=PLAIN)
    for ask in (lambda: fs.create("/a", b"x"), lambda: fs.read("/a"), lambda: fs.status("/a")):
        with pytest.raises(Unreachable, match="connection refused") as told:
            ask()
        assert not isinstance(told.value, Uncertain), "nothing was sent"


# --- the lock ---------------------------------------------------------------------------------


class Clock:
    """Time that stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_one_holds_and_the_other_waits_until_it_stands_still(little):
    clock = Clock()
    ann, bob = (LockFile(store(little.replay), "/lock", name, 10_000, clock) for name in ("ann", "bob"))
    assert ann.current() is None
    assert ann.acquire()
    assert not bob.acquire()
    for _ in range(6):
        clock.now += 2
        assert ann.renew()
        assert not bob.acquire()
    clock.now += 5
    assert not ann.held, "half of the time without a renewal: it no longer trusts itself"
    assert not ann.renew()
    assert not bob.acquire(), "but nobody else may start yet"
    clock.now += 5
    assert bob.acquire()
    assert not ann.acquire()
    current = ann.current()
    assert current is not None
    assert (current.holder, current.term) == ("bob", 2)


def test_a_process_with_a_lock_of_another_kind_begins_no_term_until_the_kind_is_forgotten(
    little, monkeypatch
):
    clock = Clock()
    ann, bob = (LockFile(store(little.replay), "/lock", name, 10_000, clock) for name in ("ann", "bob"))
    assert ann.acquire()
    ann.release()
    monkeypatch.setattr("yarnctl.hadoop.lock.KIND", "zookeeper")
    for step in (bob.require_kind, bob.acquire):
        with pytest.raises(BadInput, match=r"is 'hdfs', this lock is 'zookeeper'.*restore --all"):
            step()
    ann.forget_kind()
    assert bob.acquire()


def test_a_released_lock_is_free_at_once(little):
    clock = Clock()
    ann, bob = (LockFile(store(little.replay), "/lock", name, 10_000, clock) for name in ("ann", "bob"))
    assert ann.acquire()
    ann.release()
    assert not ann.held
    assert bob.acquire()


@pytest.mark.parametrize(
    ("before", "after", "at_once"),
    [("boot-1:7", "boot-1:7", True), ("boot-1:7", "boot-1:8", False), ("boot-1:7", "boot-2:7", False),
     ("", "", False)],
    ids=["the same place", "a copy of the state directory", "another host or boot", "nobody can tell"],
)  # fmt: skip
def test_a_restart_goes_on_at_once_only_where_the_old_one_is_proven_dead(little, before, after, at_once):
    """Two processes may have one name: of a state directory that was copied, or lies on a share."""
    clock = Clock()
    old = LockFile(store(little.replay), "/lock", "ann-1", 10_000, clock, before)
    assert old.acquire()
    new = LockFile(store(little.replay), "/lock", "ann-2", 10_000, clock, after)
    assert new.acquire() is at_once
    assert new.held is at_once
    assert old.renew() is not at_once
    if not at_once:
        clock.now += 5
        old.renew()
        assert not new.acquire()
        clock.now += 10
        assert new.acquire()


def test_who_let_its_own_lock_lapse_takes_it_again_at_once(little):
    clock = Clock()
    ann = LockFile(store(little.replay), "/lock", "ann-1", 10_000, clock)
    assert ann.acquire()
    clock.now += 6
    assert not ann.renew()
    before = len(little.replay.heard)
    assert ann.acquire()
    assert not ann.has_rival
    asked = [(heard.method, heard.query["op"]) for heard in little.replay.heard[before:]]
    assert [op for _, op in asked].count("DELETE") == 1, "only the term that is there"
    assert [op for _, op in asked].count("CREATE") <= 2, "of the new term alone; its kind is read"


def test_a_lock_that_lapses_while_it_is_acquired_has_no_rival(little):
    """On a machine that answers slowly; who is told of a rival looks for a daemon that is not there."""
    clock = Clock()
    ann, bob = (LockFile(store(little.replay), "/lock", name, 10_000, clock) for name in ("ann", "bob"))
    create = ann._store.create

    def slowly(*given, **named):
        clock.now += 6
        create(*given, **named)

    ann._store.create = slowly  # type: ignore[method-assign]
    assert not ann.acquire()
    assert not ann.has_rival
    assert not bob.acquire()
    assert bob.has_rival


def test_a_renewal_is_one_listing_and_one_transaction(little):
    """Each of a holder's 43,200 renewals a day is in the NameNode's edit log."""
    clock = Clock()
    ann, bob = (LockFile(store(little.replay), "/lock", name, 10_000, clock) for name in ("ann", "bob"))
    assert ann.acquire()
    assert not bob.acquire()
    before, beats = len(little.replay.heard), [little.modified["/lock/term-1"]]
    for _ in range(3):
        assert ann.renew(), "also if no time has passed"
        beats.append(little.modified["/lock/term-1"])
    asked = [heard.query["op"] for heard in little.replay.heard[before:]]
    assert asked == ["LISTSTATUS", "SETTIMES"] * 3
    assert beats == sorted(set(beats))


def test_a_holder_whose_term_is_removed_within_its_renewal_holds_no_more(little):
    clock = Clock()
    ann = LockFile(store(little.replay), "/lock", "ann", 10_000, clock)
    assert ann.acquire()
    ann._store.set_modified = partial(_removed, little, ann._store.set_modified)  # type: ignore[method-assign]
    assert not ann.renew()
    assert not ann.held


def _removed(little: LittleHdfs, then: Callable[..., None], *given: object) -> None:
    del little.files["/lock/term-1"]
    then(*given)


def test_the_next_term_is_not_held_before_older_ones_are_fenced(little):
    clock, fenced = Clock(), []

    def fence(term: int) -> None:
        fenced.append((term, ann.held))
        if len(fenced) == 1:
            raise Unreachable("HDFS is away")

    ann = LockFile(store(little.replay), "/lock", "ann", 10_000, clock, fence=fence)
    with pytest.raises(Unreachable):
        ann.acquire()
    assert not ann.held
    assert ann.acquire()
    assert fenced == [(1, False), (2, False)]


def test_a_late_renewal_of_the_dead_harms_nobody(little):
    clock = Clock()
    ann, bob = (LockFile(store(little.replay), "/lock", name, 10_000, clock) for name in ("ann", "bob"))
    assert ann.acquire()
    assert not bob.acquire()
    clock.now += 10
    assert bob.acquire()
    with pytest.raises(Missing):  # what a request stuck on its way would do
        ann._store.set_modified("/lock/term-1", 7)
    assert bob.renew()
    assert not ann.renew()


def test_an_unfinished_write_waits_its_time(little):
    clock = Clock()
    little.folders.add("/lock")
    little.files["/lock/term-4"] = b'{"holder":'
    little.files["/lock/notes"] = b""
    bob = LockFile(store(little.replay), "/lock", "bob", 10_000, clock)
    assert not bob.acquire()
    clock.now += 10
    assert bob.acquire()
    assert "/lock/term-5" in little.files


def test_who_slept_knows_when_it_wakes_that_its_lease_is_over(little, monkeypatch):
    """A suspended machine: CLOCK_MONOTONIC stands still, and others have seen the lease run out."""
    slept_s = 0.0
    began_ns = passed_ns()
    monkeypatch.setattr(time, "monotonic", lambda: 50.0)
    monkeypatch.setattr(time, "monotonic_ns", lambda: 50_000_000_000)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: began_ns + int(slept_s * 1e9))
    ann = LockFile(store(little.replay), "/lock", "ann", 10_000)
    assert ann.acquire()
    bob_clock = Clock()
    bob = LockFile(store(little.replay), "/lock", "bob", 10_000, bob_clock)
    assert not bob.acquire()
    bob_clock.now += 10
    slept_s = 10.0
    assert bob.acquire()
    assert not ann.held, "it must notice before it acts, not at its next renewal"
    assert not ann.renew()


def test_of_many_candidates_one_gets_it(little):
    clock = Clock()
    won: list[bool] = []
    rivals = [LockFile(store(little.replay), "/lock", f"r{at}", 10_000, clock) for at in range(6)]
    threads = [threading.Thread(target=lambda one=one: won.append(one.acquire())) for one in rivals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 5 + [True]
