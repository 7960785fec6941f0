"""Slow callers and too many connections: who loses theirs, and who is answered all the same."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse, IncompleteRead

import pytest
from fastapi import FastAPI, Response

from tests import http_client
from tests.unit.service.conftest import TOKEN, Told
from tests.unit.service.played import busy
from yarnctl.listening.connections import BoundedConnection, Bounds
from yarnctl.service.app import make_app
from yarnctl.service.serving import BOUNDS, Handle, serve_in_thread

PATIENCE_S = 60.0
SOON_S = 0.05
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /v1/loop/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n"
NEVER = Bounds(0, 0)


@contextmanager
def serving(bounds: Bounds) -> Iterator[Handle]:
    app = make_app(busy, token=TOKEN, control=Told(), clock=lambda: busy().now_ms)
    handle = serve_in_thread(app, token=TOKEN, bounds=bounds)
    try:
        yield handle
    finally:
        handle.stop()


def connected(handle: Handle) -> socket.socket:
    return socket.create_connection((handle.host, handle.port), PATIENCE_S)


def is_cut(caller: socket.socket) -> bool:
    """Wait for the other side: say whether it closed without an answer."""
    try:
        return caller.recv(65_536) == b""
    except ConnectionResetError:
        return True


def answered(caller: socket.socket) -> int:
    """Ask, and read the answer to its end."""
    caller.sendall(WHOLE)
    answer = HTTPResponse(caller)
    answer.begin()
    answer.read()
    return answer.status


SLOW = {
    "nothing at all": b"",
    "one byte": b"G",
    "no end of the headers": WHOLE[:-2],
    "no body": POST,
    "half a body": POST + b'{"why": ',
}


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW)
def test_who_does_not_send_the_rest_is_cut_off(sent: bytes) -> None:
    with serving(Bounds(SOON_S, SOON_S)) as handle, connected(handle) as slow:
        slow.sendall(sent)
        assert is_cut(slow)


def test_the_rest_of_a_second_request_is_owed_as_the_first() -> None:
    with serving(Bounds(SOON_S, SOON_S)) as handle, connected(handle) as slow:
        assert answered(slow) == 200
        slow.sendall(WHOLE[:9])
        assert is_cut(slow)


def test_who_sends_in_time_is_answered_however_long_the_connection_lasts() -> None:
    """Idle between two requests it owes nothing: that is bounded by keep-alive."""
    with serving(Bounds(SOON_S, SOON_S)) as handle, connected(handle) as kept, connected(handle) as slow:
        assert answered(kept) == 200
        assert is_cut(slow)  # a whole bound has passed
        assert answered(kept) == 200


def test_who_does_not_read_is_cut_off() -> None:
    app = FastAPI()
    app.add_api_route("/large", lambda: Response(bytes(64 << 20)))
    handle = serve_in_thread(app, bounds=Bounds(SOON_S, 0, answer_read_s=SOON_S))
    try:
        with connected(handle) as greedy:
            greedy.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = HTTPResponse(greedy)
            answer.begin()
            for _ in range(5):  # the server's own clock: what came later is cut off now
                with connected(handle) as slow:
                    assert is_cut(slow)
            with pytest.raises((IncompleteRead, ConnectionResetError)):
                answer.read()  # what the system had taken over already, and no more
    finally:
        handle.stop()


class Flow:
    """A connection whose answer lies there."""

    read_paused, write_paused = False, True


class Transport:
    """So much of it."""

    def __init__(self) -> None:
        self.left_bytes = 0

    def get_write_buffer_size(self) -> int:
        return self.left_bytes


def test_who_reads_a_little_has_as_long_for_the_next() -> None:
    one = BoundedConnection.__new__(BoundedConnection)
    transport = Transport()
    one.flow, one.transport, one.has_unanswered_request = Flow(), transport, True  # type: ignore[assignment]
    one._taking_s, one._left_bytes, one.until_s, transport.left_bytes = 10.0, 500, 10.0, 500
    assert not one.is_late(9.0)
    transport.left_bytes = 499
    assert not one.is_late(11.0)
    assert not one.is_late(20.0)
    assert one.is_late(22.0)
    Flow.read_paused = True  # we do not read: the caller cannot send the rest
    assert not one.is_late(22.0)
    Flow.read_paused = False
    transport.left_bytes = 498
    assert not one.is_late(22.0), "it has read on"


FLOODS: dict[str, Callable[[socket.socket], object]] = {
    "say nothing": lambda caller: None,
    "begin and do not end": lambda caller: caller.sendall(WHOLE[:-2]),
    "owe a body": lambda caller: caller.sendall(POST),
    "are idle": answered,
}


@pytest.mark.parametrize("behave", FLOODS.values(), ids=FLOODS)
def test_a_flood_shuts_nobody_out(behave: Callable[[socket.socket], object]) -> None:
    """No time-out helps here: there is none."""
    with serving(NEVER._replace(connections_max=8)) as handle, ExitStack() as flood:
        callers = []
        for _ in range(50):
            callers.append(flood.enter_context(connected(handle)))
            behave(callers[-1])
        answer = http_client.get(f"{handle.url}/healthz", timeout=PATIENCE_S)
        assert answer.status_code == 200
        assert is_cut(callers[0])
        with connected(handle) as late:
            assert answered(late) == 200


def test_who_owes_a_request_goes_before_who_is_idle() -> None:
    with serving(NEVER._replace(connections_max=3)) as handle, ExitStack() as stack:
        idle = stack.enter_context(connected(handle))
        assert answered(idle) == 200
        owing = [stack.enter_context(connected(handle)) for _ in range(2)]
        more = [stack.enter_context(connected(handle)) for _ in range(2)]
        assert all(is_cut(each) for each in owing)
        assert answered(idle) == 200
        assert all(answered(each) == 200 for each in more)


def test_the_service_s_own_bounds_are_there() -> None:
    assert all(BOUNDS._asdict()[name] for name in ("head_s", "body_s", "answer_read_s", "connections_max"))
    assert not BOUNDS.each_piece
