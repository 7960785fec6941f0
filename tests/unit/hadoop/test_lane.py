"""The lane: kept connections, long lists decoded while they come, and the same bounds as a session."""

from __future__ import annotations

import contextlib
import gzip
import random
import socket
import threading

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from tests.unit.hadoop.measure_decode import make_apps
from tests.unit.hadoop.replaying import Replay, Reply
from yarnctl.errors import Unreachable, YarnctlError
from yarnctl.hadoop import lane, wire
from yarnctl.hadoop.auth import Identity
from yarnctl.hadoop.problems import BadAnswer
from yarnctl.hadoop.session import Limits
from yarnctl.hadoop.shapes import Arriving
from yarnctl.hadoop.transport import Transport

ONCE = Limits(connect_ms=2_000, silence_ms=2_000, answer_ms=4_000, answer_bytes=4 << 20, retries=0)
APPS = "/ws/v1/cluster/apps"
LONG = make_apps(900_000)


def read(url: str, limits: Limits = ONCE) -> list[wire.Application]:
    with Transport([url], Identity("ann"), limits) as to:
        return to.read(APPS, wire.APPLICATIONS)


def arrive(body: bytes, cuts: list[int]) -> list[wire.Application] | None:
    """Let a body arrive in pieces that end at ``cuts``, in a buffer with rubbish behind."""
    buffer, rows = bytearray(body + b'},{"id":"x"}]}}'), Arriving(wire.APPLICATIONS)
    for cut in sorted({*cuts, len(body)}):
        rows.take(buffer, cut)
    found = rows.end(buffer, len(body))
    assert buffer.startswith(body), "the buffer is as it was"
    return found


def body_of(*rows: str) -> bytes:
    return ('{"apps":{"app":[' + ",".join(rows) + "]}}").encode()


NAMES = st.text(max_size=12) | st.just('},{"id":"') | st.just('\\"},{"id":"')
PLAIN = st.builds(
    lambda number, name: msgspec.json.encode(
        {"id": f"application_1_{number:04d}", "user": name, "state": "RUNNING", "x": [{"id": 1}, {"id": 2}]}
    ).decode(),
    st.integers(0, 9999),
    NAMES,
)
ODD = st.sampled_from(
    [
        '{"id":"application_1_1","priority":"7"}',
        "null",
        '{"user":"u"}',
        '{"id":"a","progress":1e999}',
        "{",
        '""',
    ]
)


@settings(max_examples=examples(150))
@given(
    rows=st.lists(PLAIN | PLAIN | PLAIN | ODD, max_size=12),
    cuts=st.lists(st.integers(0, 2_000), max_size=8),
    end=st.sampled_from([b"", b"\n", b" \r\n", b"}", b",", b"]"]),
)
def test_what_arrives_in_pieces_is_what_is_read_at_once(rows, cuts, end):
    body = body_of(*rows) + end
    found = arrive(body, [cut for cut in cuts if cut < len(body)])
    try:
        whole = wire.APPLICATIONS.read(body)
    except YarnctlError:
        assert found is None
    else:
        assert found in (None, whole)


def test_a_long_list_is_decoded_on_its_way():
    cuts = list(range(0, len(LONG), 70_001))
    assert arrive(LONG, cuts) == wire.APPLICATIONS.read(LONG)
    assert arrive(LONG[:-1], cuts) is None
    assert arrive(b" " + LONG, cuts) is None, "another form is for the tolerant reader"


def test_a_long_answer_and_many_short_ones_go_over_one_connection():
    chance = random.Random(1)
    with Replay(lambda _: Reply(chance.choice([LONG, body_of()]))) as rm:
        found = set()
        with Transport([rm.url], Identity("ann"), ONCE) as to:
            for _ in range(12):
                found.add(len(to.read(APPS, wire.APPLICATIONS)))
        assert found == {0, len(wire.APPLICATIONS.read(LONG))}
    assert {heard.headers["Accept-Encoding"] for heard in rm.heard} == {"identity"}
    assert rm.heard[0].query == {"user.name": "ann"}


def test_an_odd_row_in_a_long_answer_is_mended():
    body = LONG.replace(b'"priority":0', b'"priority":"3"', 1)
    with Replay(Reply(body)) as rm:
        rows = read(rm.url)
    assert [row.priority for row in rows[:2]] == [3, 0]


def test_chunks_and_a_shorter_answer_into_the_same_buffer():
    def chunked(body: bytes, size: int) -> bytes:
        parts = [body[at : at + size] for at in range(0, len(body), size)]
        text = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
        return (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            + text
            + b"0\r\n\r\n"
        )

    short = make_apps(500_000)
    replies = iter([Reply(raw=chunked(LONG, 7_777)), Reply(raw=chunked(short, 100_000))])
    with Replay(lambda _: next(replies)) as rm, Transport([rm.url], Identity("ann"), ONCE) as to:
        assert to.read(APPS, wire.APPLICATIONS) == wire.APPLICATIONS.read(LONG)
        assert to.read(APPS, wire.APPLICATIONS) == wire.APPLICATIONS.read(short)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(LONG, cut=400_000), Unreachable, "ends in its middle"),
        (Reply(LONG * 6), BadAnswer, "too long"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Type: a/json\r\n\r\n" + LONG * 6), BadAnswer, "too long"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n"), Unreachable, "no HTTP"),
        (Reply(raw=b"SSH-2.0-OpenSSH_9\r\n"), Unreachable, "no HTTP"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000), Unreachable, "no HTTP"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_one_clear_error(reply, kind, words):
    with Replay(reply) as rm, pytest.raises(kind, match=words):
        read(rm.url)


def test_an_answer_that_is_compressed_all_the_same_is_read():
    answer = Reply(gzip.compress(LONG), headers=(("Content-Encoding", "gzip"),))
    with Replay(answer) as rm:
        assert read(rm.url) == wire.APPLICATIONS.read(LONG)
    assert len(rm.heard) == 2, "the lane's question and the session's"


ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"apps":{}}'


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
    thread.join(10)


def test_a_connection_that_was_closed_meanwhile_is_replaced():
    with closing(1, 1, before=True) as (url, asked, closed), Transport([url], Identity("ann"), ONCE) as to:
        assert to.read(APPS, wire.APPLICATIONS) == []
        assert closed.wait(10)
        assert to.read(APPS, wire.APPLICATIONS) == []
    assert asked == [1, 1]


def test_a_connection_that_closes_as_it_is_asked_again_is_replaced():
    with closing(1, 2, before=False) as (url, asked, _), Transport([url], Identity("ann"), ONCE) as to:
        assert to.read(APPS, wire.APPLICATIONS) == []
        assert to.read(APPS, wire.APPLICATIONS) == []
    assert asked[:2] == [2, 1]


def test_a_new_connection_that_closes_without_an_answer_is_not_asked_again():
    with closing(0, 1, before=False) as (url, asked, _):
        with pytest.raises(Unreachable, match="connection broke"):
            read(url)
        assert asked == [1]
        assert read(url) == []  # so that the daemon ends


def test_who_carries_cookies_or_repeats_goes_by_a_session():
    with Replay(Reply(body_of())) as rm:
        with Transport([rm.url], Identity("ann"), ONCE) as to:
            to.carry_cookie("a", "b", "/")
            to.read(APPS, wire.APPLICATIONS)
        read(rm.url, msgspec.structs.replace(ONCE, retries=1))
    assert [heard.headers["Accept-Encoding"] for heard in rm.heard] == ["gzip", "gzip"]
    assert rm.heard[0].headers["Cookie"] == "a=b"


def test_a_buffer_is_kept_within_bounds(monkeypatch):
    monkeypatch.setattr(lane, "KEPT_BYTES", 1_000)
    with Replay(Reply(LONG)) as rm:
        line = lane.Lane(rm.url, ONCE)
        assert line.get(APPS, "application/json", wire.APPLICATIONS).value
        assert line._buffers == []
        line.close()
