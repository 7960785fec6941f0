"""The runner's parts at the borders of what they check, wait for and read, without processes."""

from __future__ import annotations

import json
import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from tests.runner.test_webhdfs import FIELDS, TASK
from yarnctl.task_runner.runner import main
from yarnctl.task_runner.runner.attempt import JAVA_BUFFER_BYTES, Sender, TaskInput
from yarnctl.task_runner.runner.child import PIPE_USUAL_BYTES, Child, Wakeup, pipe_capacity, quit_blocked
from yarnctl.task_runner.runner.feeding import ChildLife, Feeder
from yarnctl.task_runner.runner.orders import OrderAnswers, Watcher
from yarnctl.task_runner.runner.protocol.generations import write_checkpoint
from yarnctl.task_runner.runner.protocol.job_conf import TASK_TIMEOUT_MS, Conf
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule
from yarnctl.task_runner.runner.protocol.manifests import Request, generation_of, read_manifest, sealed
from yarnctl.task_runner.runner.protocol.stores import (
    SMALL_FILE_BYTES,
    Entry,
    LocalStore,
    Lost,
    StoreError,
    Unusable,
)
from yarnctl.task_runner.runner.protocol.token_files import Cursor, parse_tokens
from yarnctl.task_runner.runner.protocol.webhdfs_store import WebHdfsStore
from yarnctl.task_runner.runner.saving import WorkFolder

# -- waiting, and the child -----------------------------------------------------------------------


@pytest.mark.parametrize(("timeout_s", "asked_ms"), [(None, None), (2.5, 2500.0), (0.0, 0.0), (-1.0, 0.0)])
def test_a_wait_is_as_long_as_it_was_asked_for(monkeypatch, timeout_s, asked_ms):
    asked: list[float | None] = []

    def poll(timeout_ms: float | None) -> list[tuple[int, int]]:
        asked.append(timeout_ms)
        return []

    waiting = SimpleNamespace(register=lambda *_: None, poll=poll)
    monkeypatch.setattr("select.poll", lambda: waiting)
    assert not Wakeup().wait(-1, 0, timeout_s)
    assert asked == [asked_ms]


def test_what_a_pipe_holds_is_told_and_guessed_where_that_is_unknown(tmp_path):
    reading, writing = os.pipe()
    try:
        assert pipe_capacity(writing) == pipe_capacity(reading) > 0
    finally:
        os.close(reading)
        os.close(writing)
    assert pipe_capacity(writing) == PIPE_USUAL_BYTES  # it is closed
    with (tmp_path / "file").open("w") as file:
        assert pipe_capacity(file.fileno()) == -1


@pytest.mark.parametrize(("code", "status"), [(0, 0), (1, 1), (-1, 129), (-15, 143)])
def test_a_child_that_a_signal_has_ended_has_the_status_of_a_shell(code, status):
    ended = object.__new__(Child)
    ended.process = SimpleNamespace(wait=lambda: code, stdout=None, stderr=None)  # type: ignore[assignment]
    ended.kill = lambda number: None  # type: ignore[method-assign]
    ended.lifeline, other = os.pipe()
    os.close(other)
    ended.broken, ended.errors = "", SimpleNamespace(lost="")  # type: ignore[assignment]
    assert ended.status() == status


def test_sigquit_is_blocked_only_while_programs_are_started():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        with quit_blocked():
            assert signal.SIGQUIT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Fed:
    """A feeder with a child of one pipe; ``waits`` are those for the child."""

    def __init__(self) -> None:
        self.reading, writing = os.pipe()
        os.set_blocking(writing, False)
        self.waits: list[tuple[int, int]] = []
        source = TaskInput(Sender(KeyRule(), -1), SimpleNamespace())  # type: ignore[arg-type]
        source.buffer = b"a\t1\n" * 100
        child: Any = SimpleNamespace(input=writing, fed_bytes=0)
        attempt: Any = SimpleNamespace(child=child, input=source, account=lambda data: None)
        attempt.wakeup = SimpleNamespace(
            wait=lambda handle, events, timeout_s: self.waits.append((handle, events))
        )
        self.feeder = Feeder(attempt, life=None)  # type: ignore[arg-type]
        self.feeder._paced_child()
        self.writing = writing

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)


def test_small_slices_have_a_narrow_pipe_and_full_speed_a_wide_one():
    for is_fast in (False, True):
        fed = Fed()
        fed.feeder._pacer.fast = is_fast
        fed.feeder.feed_some()
        assert fed.feeder._one_slot is not is_fast
        assert fed.feeder._last_slice_bytes == (0 if is_fast else 64)  # what the next look is a measure of
        fed.close()


def test_a_child_that_takes_nothing_at_full_speed_is_waited_for():
    fed = Fed()
    fed.feeder._pacer.fast = True
    os.write(fed.writing, bytes(pipe_capacity(fed.writing)))
    fed.feeder.feed_some()
    assert [handle for handle, _ in fed.waits] == [fed.writing]
    fed.close()


def test_orders_are_answered_while_the_rest_of_the_input_is_dropped():
    sender = Sender(KeyRule(), 0)
    source: Any = SimpleNamespace(sender=sender, ended=False, drop=lambda: None)

    def fill(timeout_s: float) -> None:
        source.ended = True

    source.fill = fill
    said: list[str] = []
    attempt: Any = SimpleNamespace(input=source, settings=SimpleNamespace(save=""))
    answers: Any = SimpleNamespace(completing=said.append)
    assert ChildLife(attempt, ["cat"], {}, answers)._could_leave(0)
    assert said == ["the reducer closed its input"]


def test_java_s_buffer_is_flushed_only_by_what_it_does_not_hold():
    line = b"a\t" + b"1" * 125 + b"\n"
    full = line * (JAVA_BUFFER_BYTES // len(line))
    sender = Sender(KeyRule(), 0)
    sender.take(full)
    assert (sender.seen_bytes, sender.sent_bytes) == (JAVA_BUFFER_BYTES, 0)
    sender.take(line)
    assert sender.sent_bytes > 0


def sent(rule: KeyRule, *pieces: bytes) -> int:
    """Return how far Java has got when these pieces were read."""
    sender = Sender(rule, 0)
    for piece in pieces:
        sender.take(piece)
    return sender.sent_bytes


@pytest.mark.parametrize("before", range(2, 40))
def test_where_the_input_is_parted_does_not_matter_for_java_s_buffer(before: int) -> None:
    """A line of the key k, parted before its end, and one of the key kk that the buffer does not hold."""
    first = b"k\t" + b"1" * before
    rest = b"\n" + b"kk\t" + b"2" * JAVA_BUFFER_BYTES
    assert sent(KeyRule(), first, rest) == sent(KeyRule(), first + rest) == len(first) + len(b"\nkk\t")


def test_java_writes_the_key_that_hadoop_sorts_by() -> None:
    """Grouped by one field and sorted by two: the key goes out whole, the value does not fit any more."""
    line = b"aa\tbb\t" + b"1" * JAVA_BUFFER_BYTES
    assert sent(KeyRule(1, key_fields=2), line) == len(b"aa\tbb\t")
    assert sent(KeyRule(1), line) == len(line)  # its value is larger than the buffer, and goes out alone
    assert (KeyRule(2).key_fields, KeyRule(2, key_fields=3).key_fields) == (2, 3)


@pytest.mark.parametrize("words", [["cat"], ["--restartable", "--"], []])
def test_without_a_reducer_it_is_used_wrongly(words):
    assert main.main(words) == 2


def test_what_runs_untouched_has_its_signals_as_without_a_runner(monkeypatch):
    before = {number: signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGQUIT)}
    seen = []

    def run(*_: object) -> None:
        seen.append((signal.getsignal(signal.SIGPIPE), signal.getsignal(signal.SIGQUIT)))
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("os.execvp", run)
    try:
        with pytest.raises(SystemExit, match="127"):
            main.untouched(["no-such-program"], "a test")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert seen == [(signal.SIG_DFL, signal.SIG_IGN)]


# -- orders -----------------------------------------------------------------------------------------


class Requests:
    """Where requests lie: one file, in a folder; ``fails`` counts the reads that go wrong."""

    def __init__(self, name: str, folder_owner: str = "ann", fails: int = 0) -> None:
        self.name, self.folder_owner, self.fails = name, folder_owner, fails

    def list(self, path: str) -> list[Entry]:
        return [Entry(self.name, 9, "ann", 0o600, False)]

    def entry(self, path: str) -> Entry:
        return Entry("", 0, self.folder_owner, 0o700, True)

    def read_small(self, path: str) -> bytes:
        if self.fails:
            self.fails -= 1
            raise StoreError("away")
        fields = {"schema": 1, "order": "o-1", "attempt": TASK.attempt}
        return json.dumps(fields).encode()


def watching(requests: Requests) -> tuple[Watcher, Any, list[str]]:
    """Return a watcher of these requests, its attempt, and how often that was woken or told something."""
    told: list[str] = []
    attempt: Any = SimpleNamespace(task=TASK, withdrawn=set(), requests=[])
    attempt.settings = SimpleNamespace(request_owners=("ann",), poll_ms=0)
    attempt.wakeup = SimpleNamespace(wake=lambda: told.append("woken"))
    attempt.errors = SimpleNamespace(note=told.append)
    return Watcher(requests, attempt), attempt, told  # type: ignore[arg-type]


def test_a_request_that_could_not_be_read_is_read_with_the_next_poll():
    watcher, attempt, _ = watching(Requests("o-1.request.json", fails=1))
    assert not watcher.poll()
    assert attempt.requests == []
    assert watcher.poll()
    assert watcher.poll()
    assert attempt.requests == [Request("o-1", None)]


def test_requests_in_a_folder_of_somebody_else_are_refused():
    watcher, attempt, told = watching(Requests("o-1.request.json", folder_owner="eve"))
    assert watcher.poll()
    assert attempt.requests == []
    assert "owner is eve, not ann" in told[0]


def test_a_withdrawn_order_wakes_once():
    watcher, attempt, told = watching(Requests("o-1.withdrawn"))
    watcher.poll()
    watcher.poll()
    assert attempt.withdrawn == {"o-1"}
    assert told == ["woken"]


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGCHLD])
def test_only_a_ring_of_the_doorbell_counts_as_one(monkeypatch, number):
    """From then on the store is polled when it rings, and not by the clock."""
    watcher, _, _ = watching(Requests("o-1.withdrawn"))
    polls: list[bool] = []

    def poll() -> bool:
        polls.append(watcher.rang)
        if len(polls) == 2:
            raise LookupError
        return True

    monkeypatch.setattr(watcher, "poll", poll)
    os.write(watcher.doorbell_w, bytes((number,)))
    with pytest.raises(LookupError):
        watcher.run()
    assert polls == [False, number == signal.SIGQUIT]


def test_a_hold_is_over_when_its_time_is(monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    attempt: Any = SimpleNamespace(holders={}, settings=SimpleNamespace(hold_ms=5_000))
    attempt.lines = SimpleNamespace(enter=lambda *_: None, for_order=lambda: "")
    answers = OrderAnswers(attempt)
    answers._begin_hold(Request("o-1", None))
    answers._begin_hold(Request("o-2", 90_000))
    assert attempt.holders == {"o-1": 105.0, "o-2": 190.0}


# -- what is read -----------------------------------------------------------------------------------


def test_a_key_that_goes_on_is_another_one():
    assert not KeyRule().all_of(b"a", b"ab\t1\nab\t2\n")
    assert KeyRule().all_of(b"a", b"a\t1\na\t2\n")
    assert not KeyRule(2, b".").all_of(b"a", b"a.b\t1\na.c\t2\n")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"job": "job_1_0002"}, "belongs to another task: job_1_0002/task_1_0001_r_000000"),
        ({"task": "task_1_0001_r_000001"}, "belongs to another task: job_1_0001/task_1_0001_r_000001"),
        ({"previous_generation": 1}, "generation 1 out of order after 1"),
        ({"previous_generation": -1}, "generation 1 out of order after -1"),
    ],
)
def test_a_manifest_of_another_task_or_out_of_order_is_refused(tmp_path, changed, why):
    store = LocalStore(str(tmp_path))
    name = f"gen-000001-{TASK.attempt}.manifest.json"
    write_checkpoint(store, TASK, FIELDS)
    path = tmp_path / TASK.folder / name
    read_manifest(store, TASK, name)
    fields = json.loads(path.read_bytes())
    del fields["check"]
    path.write_bytes(sealed(fields | changed))
    with pytest.raises(Unusable) as refused:
        read_manifest(store, TASK, name)
    assert why in str(refused.value)


def test_a_name_without_a_generation_has_none():
    assert generation_of("gen-000007-attempt_1") == 7
    assert generation_of("answer-o-1") == 0


def test_a_small_file_that_is_large_is_not_read_whole(tmp_path):
    store = LocalStore(str(tmp_path))
    (tmp_path / "file").write_bytes(bytes(SMALL_FILE_BYTES))
    assert len(store.read_small("file")) == SMALL_FILE_BYTES
    (tmp_path / "file").write_bytes(bytes(SMALL_FILE_BYTES + 1))
    with pytest.raises(Unusable, match=f"file: larger than {SMALL_FILE_BYTES} bytes"):
        store.read_small("file")


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_a_folder_is_one_whoever_may_enter_it(tmp_path, mode):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder").chmod(mode)
    found = LocalStore(str(tmp_path)).entry("folder")
    assert found is not None
    assert (found.is_folder, found.mode) == (True, mode)


def test_an_empty_field_of_a_token_is_one():
    assert Cursor(b"").take(0) == b""
    with pytest.raises(Unusable, match="is truncated"):
        Cursor(b"").take(1)


def test_tokens_of_an_unknown_version_name_it():
    with pytest.raises(Unusable, match="its version 7 is not supported"):
        parse_tokens(b"HDTS\x07")


@pytest.mark.parametrize(("status", "kind"), [(499, StoreError), (500, Lost), (503, Lost)])
def test_of_a_request_that_a_server_failed_nobody_knows_whether_it_was_done(status, kind):
    store = object.__new__(WebHdfsStore)
    store.root, store.delegation = "/store", ""
    assert type(store._refused("file", "CREATE", status, b"why")) is kind


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, ", ...")])
def test_three_side_files_are_all_of_three(tmp_path, count, more):
    for name in ("part-00000", *"abcd"[:count]):
        (tmp_path / name).touch()
    conf = Conf({"mapreduce_task_output_dir": f"file:{tmp_path}", "mapreduce_task_partition": "0"})
    with pytest.raises(Unusable) as caught:
        WorkFolder(conf, LocalStore("/nowhere")).why_not()
    named, _, rest = str(caught.value).partition(": ")[2].partition(f"{more} in file:{tmp_path}")
    assert len({*named.split(", ")} & {*"abcd"}) == 3
    assert rest == ""


def test_a_task_that_names_no_time_out_has_hadoop_s() -> None:
    """``mapreduce.task.timeout`` in mapred-default.xml; by it the runner keeps its attempt alive."""
    assert TASK_TIMEOUT_MS == 600_000
