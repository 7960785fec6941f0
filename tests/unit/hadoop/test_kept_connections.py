"""Requests of a loop: a connection that the daemon closed is replaced, an odd answer is one clear error."""

from __future__ import annotations

import contextlib
import gc
import gzip
import socket
import threading

import pytest

from tests.unit.hadoop.replaying import Replay, Reply
from yarnctl.errors import Unreachable
from yarnctl.hadoop.http.answers import BadAnswer
from yarnctl.hadoop.http.auth import Identity
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.wire import yarn

ONCE = CallLimits(connect_ms=2_000, read_timeout_ms=2_000, answer_ms=4_000, answer_bytes=4 << 20, retries=0)
APPS = "/ws/v1/cluster/apps"
ROW = b'{"id":"application_1_%04d","state":"RUNNING","priority":0,"diagnostics":"' + b"x" * 1600 + b'"}'
LONG = b'{"apps":{"app":[' + b",".join(ROW % number for number in range(550)) + b"]}}"
ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"apps":{}}'


def read(url: str, limits: CallLimits = ONCE) -> list[yarn.AppInfo]:
    with Transport([url], Identity("ann"), limits) as to:
        return to.read(APPS, yarn.APPLICATIONS)


def test_a_loop_asks_for_no_compression():
    with Replay(Reply('{"apps":{}}')) as rm:
        assert read(rm.url) == []
    assert rm.heard[0].headers["Accept-Encoding"] == "identity"


def test_an_odd_row_in_a_long_answer_is_mended():
    body = LONG.replace(b'"priority":0', b'"priority":"3"', 1)
    with Replay(Reply(body)) as rm:
        rows = read(rm.url)
    assert [row.priority for row in rows[:2]] == [3, 0]


def test_chunks_are_put_together():
    parts = [LONG[at : at + 7_777] for at in range(0, len(LONG), 7_777)]
    text = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with Replay(Reply(raw=head + text + b"0\r\n\r\n")) as rm:
        assert read(rm.url) == yarn.APPLICATIONS.read(LONG)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(LONG, cut=400_000), Unreachable, "the answer is incomplete"),
        (Reply(LONG * 6), BadAnswer, "too long"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Type: a/json\r\n\r\n" + LONG * 6), BadAnswer, "too long"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n"), Unreachable, "HTTP"),
        (Reply(raw=b"SSH-2.0-OpenSSH_9\r\n"), Unreachable, "HTTP"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000), Unreachable, "HTTP"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_one_clear_error(reply, kind, words):
    with Replay(reply) as rm, pytest.raises(kind, match=words):
        read(rm.url)


def test_an_answer_that_is_compressed_all_the_same_is_read():
    answer = Reply(gzip.compress(LONG), headers=(("Content-Encoding", "gzip"),))
    with Replay(answer) as rm:
        assert read(rm.url) == yarn.APPLICATIONS.read(LONG)
    assert len(rm.heard) == 1


@contextlib.contextmanager
def closing(*answers: int, before: bool):
    """A daemon that answers so many questions on each connection and closes it without having said so.

    ``before``: at once; otherwise only when it hears the next question. Yields its address, the questions
    of each connection, and what is set once a connection is closed.
    """
    asked: list[int] = []
    closed = threading.Event()

    def serve() -> None:
        for count in answers:
            peer, _ = listener.accept()
            asked.append(0)
            with peer:
                while (asked[-1] < count or not before) and peer.recv(65536):
                    asked[-1] += 1
                    if asked[-1] > count:
                        break
                    peer.sendall(ANSWER)
            closed.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked, closed
    gc.collect()  # an error that was caught keeps its connections in a cycle
    thread.join(10)


def test_a_connection_that_was_closed_meanwhile_is_replaced():
    with closing(1, 1, before=True) as (url, asked, closed), Transport([url], Identity("ann"), ONCE) as to:
        assert to.read(APPS, yarn.APPLICATIONS) == []
        assert closed.wait(10)
        assert to.read(APPS, yarn.APPLICATIONS) == []
    assert asked == [1, 1]


def test_a_connection_that_closes_as_it_is_asked_again_is_replaced():
    with closing(1, 2, before=False) as (url, asked, _), Transport([url], Identity("ann"), ONCE) as to:
        assert to.read(APPS, yarn.APPLICATIONS) == []
        assert to.read(APPS, yarn.APPLICATIONS) == []
    assert asked[:2] == [2, 1]


def test_who_never_answers_is_asked_twice_at_most():
    with closing(0, 0, before=False) as (url, asked, _):
        with pytest.raises(Unreachable, match="connection broke"):
            read(url)
        assert asked == [1, 1]
