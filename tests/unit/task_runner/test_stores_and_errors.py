"""Small parts of the protocol at their borders: files without a name, tokens, answers, digits, prefixes."""

from __future__ import annotations

import os
import stat
import unicodedata

import pytest

from tests.runner.namenode import Server
from tests.unit.task_runner.test_attempt import ENV
from yarnctl.task_runner.runner import reports
from yarnctl.task_runner.runner.protocol import stores
from yarnctl.task_runner.runner.protocol.job_conf import Conf, read_settings
from yarnctl.task_runner.runner.protocol.key_rule import LONG_LINE_BYTES
from yarnctl.task_runner.runner.protocol.stores import (
    Exists,
    LocalStore,
    Lost,
    Spool,
    StoreAway,
    StoreError,
    Unusable,
    nameless_file,
)
from yarnctl.task_runner.runner.protocol.token_files import Cursor, parse_tokens
from yarnctl.task_runner.runner.protocol.webhdfs_store import WebHdfsStore
from yarnctl.task_runner.runner.reports import DIGITS, DOUBTFUL_DIGITS, Errors, java_long
from yarnctl.task_runner.runner.saving import WorkFolder

# -- the local disk -------------------------------------------------------------------------------


def without_nameless_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the file system refuse O_TMPFILE."""
    opened = os.open

    def refusing(path, flags, *more):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(95, "Operation not supported")
        return opened(path, flags, *more)

    monkeypatch.setattr(os, "open", refusing)


@pytest.mark.parametrize("refused", [False, True])
def test_kept_output_has_no_name_and_is_the_owner_s_alone(tmp_path, monkeypatch, refused):
    if refused:
        without_nameless_files(monkeypatch)
    with nameless_file(str(tmp_path)) as file:
        file.write(b"kept")
        found = os.fstat(file.fileno())
        assert os.pread(file.fileno(), 9, 0) == b"kept"
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_nlink == 0
    assert os.listdir(tmp_path) == []


def test_folders_of_a_store_are_the_owner_s_alone(tmp_path):
    LocalStore(str(tmp_path)).make_folder("job_1/task_1")
    made = [tmp_path / "job_1", tmp_path / "job_1" / "task_1"]
    assert [stat.S_IMODE(each.stat().st_mode) for each in made] == [0o700, 0o700]


def test_a_folder_that_is_not_there_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "spool_folder", lambda: str(tmp_path / "absent"))
    spool = Spool(100)
    spool.add(b"a")
    assert spool.failed == "No such file or directory"
    assert list(spool.pieces()) == []


def test_a_spool_is_bounded_and_counts_anew_when_it_is_cleared(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "spool_folder", lambda: str(tmp_path))
    spool = Spool(4)
    spool.add(b"1234")
    assert b"".join(spool.pieces()) == b"1234"
    spool.clear()
    spool.add(b"5678")
    assert b"".join(spool.pieces()) == b"5678"
    spool.add(b"9")
    assert spool.failed == "more than 4 bytes"


# -- settings -------------------------------------------------------------------------------------


def test_a_file_that_has_its_final_name_has_no_other(tmp_path):
    store = LocalStore(str(tmp_path))
    (tmp_path / "part.tmp").write_bytes(b"kept")
    store.rename("part.tmp", "part")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["part"]
    assert (tmp_path / "part").read_bytes() == b"kept"


def test_the_exit_status_of_what_cannot_be_proven_is_one_that_hadoop_does_not_use():
    assert stores.EXIT_UNPROVABLE == 70


def settings(*options: str, **env: str):
    return read_settings(["--restartable", *options], {**ENV, "YARNCTL_STORE": "file:///s", **env})


@pytest.mark.parametrize("prefix", ["a\nb", "a\rb", "ä"])
def test_a_prefix_that_java_reads_otherwise_is_refused(prefix):
    with pytest.raises(
        Unusable, match=r"stream.stderr.reporter.prefix is .*: not ASCII, or contains a line end"
    ):
        settings(stream_stderr_reporter_prefix=prefix)


def test_ids_that_hadoop_does_not_give_are_named():
    with pytest.raises(Unusable, match=r"mapreduce.job.id is ../up: not started by Hadoop"):
        settings(mapreduce_job_id="../up")
    with pytest.raises(Unusable, match=r"mapreduce.job.id is not set: not started by Hadoop"):
        settings(mapreduce_job_id="")


@pytest.mark.parametrize(
    ("env", "user"),
    [({}, "alice"), ({"HADOOP_USER_NAME": "bob"}, "bob"), ({"HADOOP_USER_NAME": "bob", "USER": ""}, "bob")],
)
def test_the_user_is_hadoop_s_before_the_system_s(env, user):
    assert settings(**env).user == user


def test_a_wait_is_a_span_of_time():
    assert settings(YARNCTL_STORE_WAIT_S="2.5").store_wait_s == 2.5
    assert settings("--store-wait-s", "0", YARNCTL_STORE_WAIT_S="2.5").store_wait_s == 0
    with pytest.raises(Unusable, match="YARNCTL_STORE_WAIT_S: could not convert"):
        settings(YARNCTL_STORE_WAIT_S="soon")
    with pytest.raises(Unusable, match="not a duration"):
        settings("--store-wait-s", "inf")


@pytest.mark.parametrize(("given", "held"), [("0", 0), ("-5", 0), ("7", 7)])
def test_a_hold_is_not_below_zero(given, held):
    assert settings("--release-wait-ms", given).hold_ms == held


# -- tokens ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "number"), [(b"\x7f", 127), (b"\x80\x01", 128), (b"\x80\x00", 0), (b"\xac\x02", 300)]
)
def test_numbers_of_protocol_buffers(data, number):
    cursor = Cursor(data)
    assert cursor.varint() == number
    assert not cursor.more()


def test_fields_of_other_kinds_are_passed_over():
    message = b"\x09" + b"\xff" * 8 + b"\x15" + b"\xff" * 4 + b"\x18\x80\x01" + b"\x22\x01a"
    assert list(Cursor(message).fields()) == [(4, b"a")]


@pytest.mark.parametrize("first", [256 - 121, 256 - 112])
def test_lengths_of_hadoop_end_at_eight_bytes(first):
    with pytest.raises(Unusable, match="negative length"):
        Cursor(bytes([first]) + bytes(16)).length()


@pytest.mark.parametrize("data", [b"HDTS", b"HDT", b"XDTS\x00\x00"])
def test_what_is_too_short_or_another_file_is_no_token_storage(data):
    with pytest.raises(Unusable, match="not a token file"):
        parse_tokens(data)


# -- WebHDFS --------------------------------------------------------------------------------------


@pytest.fixture
def server():
    running = Server()
    yield running
    running.shutdown()
    running.server_close()


def test_after_a_lost_answer_the_next_call_begins_with_another_namenode(server):
    store = WebHdfsStore([server.host, "127.0.0.1:9"], "/c", "alice")
    server.held.lose_renames = ["before"]
    with pytest.raises(Lost):
        store.rename("a", "b")
    assert store.hosts == ["127.0.0.1:9", server.host]


def test_a_change_is_not_lost_where_no_connection_was_made():
    store = WebHdfsStore(["127.0.0.1:9"], "/c", "alice")
    with pytest.raises(StoreAway):
        store.rename("a", "b")
    with pytest.raises(StoreAway, match=r"^/c/a: CREATE: "):
        store.create("a", 0, [])


def test_https_has_authorities_of_its_own_and_http_none(tmp_path):
    assert WebHdfsStore(["h"], "/c", "alice", secure=True).context is not None
    assert WebHdfsStore(["h"], "/c", "alice").context is None


# -- standard error -------------------------------------------------------------------------------


def test_after_a_write_that_failed_one_line_end_is_put_before_the_next(monkeypatch):
    written: list[bytes] = []

    def failing_once(_: int, data: bytes) -> None:
        if not written:
            written.append(b"")
            raise OSError(5, "Input/output error")
        written.append(data)

    monkeypatch.setattr(reports, "write_all", failing_once)
    errors = Errors("reporter:")
    for text in ("first", "second", "third"):
        errors.note(text)
    assert b"".join(written) == b"\nyarnctl: second\nyarnctl: third\n"
    assert not errors.lost


@pytest.mark.parametrize(
    ("data", "end"),
    [(b"", 0), (b"a", 0), (b"a\n", 2), (b"a\nb", 2), (b"a\rb", 2), (b"a\r", 0), (b"a\r\n", 3)],
)
def test_a_line_ends_as_hadoop_s_line_reader_has_it(data, end):
    assert reports.whole_lines(data) == end


@pytest.mark.parametrize(
    ("before", "after"),
    [("start", "start"), ("open", "ended"), ("broken", "start"), ("ended", "ended")],
)
def test_where_the_output_is_when_a_child_has_ended(before, after):
    errors = Errors("reporter:")
    errors._at = before
    with open(os.devnull, "rb") as nothing:
        errors.pass_on(nothing.fileno())
    assert errors._at == after


def test_a_long_line_is_passed_on_in_pieces_and_is_one_line(tmp_path, monkeypatch):
    written: list[bytes] = []
    monkeypatch.setattr(reports, "write_all", lambda _, data: written.append(data))
    (tmp_path / "log").write_bytes(b"x" * (1 << 20) + b"\r\nreporter:counter:g,n,1\n")
    errors = Errors("reporter:")
    with (tmp_path / "log").open("rb") as file:
        errors.pass_on(file.fileno())
    assert b"".join(written) == (tmp_path / "log").read_bytes()
    assert max(map(len, written)) <= LONG_LINE_BYTES + (1 << 16)
    assert errors.counters == {"g": {"n": 1}}


def test_counters_that_were_not_written_are_lost(monkeypatch):
    def failing(_: int, __: bytes) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(reports, "write_all", failing)
    errors = Errors("reporter:")
    errors.count("g", "n", 1)
    assert errors.lost == "counters were not sent: Input/output error"


def test_digits_have_the_values_that_unicode_gives_them():
    known = {char: value for char, value in DIGITS.items() if unicodedata.decimal(char, None) is not None}
    assert all(unicodedata.decimal(char) == value for char, value in known.items())
    assert len(known) == len(DIGITS) == 10 * 37


def test_digits_since_unicode_7_are_in_doubt():
    before = {char for char in DIGITS if unicodedata.ucd_3_2_0.decimal(char, None) is not None}
    assert not before & DOUBTFUL_DIGITS
    assert {chr(zero + value) for zero in (0x0DE6, 0xA9F0) for value in range(10)} == DOUBTFUL_DIGITS


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", None),
        ("00000000000000000000000001", 1),
        ("+", None),
        ("", None),
    ],
)
def test_numbers_are_java_s_longs(text, number):
    assert java_long(text) == number


# -- the work folder ------------------------------------------------------------------------------


def test_of_many_side_files_three_are_named(tmp_path):
    for name in ("part-00000", "a", "b", "c", "d"):
        (tmp_path / name).touch()
    conf = Conf({"mapreduce_task_output_dir": f"file:{tmp_path}", "mapreduce_task_partition": "0"})
    with pytest.raises(Unusable) as caught:
        WorkFolder(conf, LocalStore("/nowhere")).why_not()
    names = sorted(str(caught.value).partition(": ")[2].partition(", ... in ")[0].split(", "))
    assert len(names) == 3
    assert set(names) < {"a", "b", "c", "d"}
    assert f" in file:{tmp_path}" in str(caught.value)


@pytest.mark.parametrize("answer", [None, {}, {"boolean": False}, {"boolean": "true"}])
def test_rename_and_make_folder_believe_true_alone(monkeypatch, answer):
    store = WebHdfsStore(["h"], "/c", "alice")
    monkeypatch.setattr(store, "_json", lambda *_: answer)
    with pytest.raises(Exists, match="/c/new: RENAME answered"):
        store.rename("old", "new")
    with pytest.raises(StoreError, match="/c/new: MKDIRS answered"):
        store.make_folder("new")
