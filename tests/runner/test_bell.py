"""The datagram that wakes a task runner: what it does, what it cannot do, and where there is none."""

from __future__ import annotations

import re
import socket

import pytest

from tests.runner.namenode import Server
from tests.runner.running import Attempt, Job, write_request
from yarnctl.frameworks.mapreduce.status_line import parse
from yarnctl.task_runner.runner.orders import BELL_WRONG_MAX
from yarnctl.task_runner.runner.protocol.webhdfs_store import WebHdfsStore

REQUESTS = "/checkpoints/requests"


def started(server: Server, tmp_path, *options: str) -> Attempt:
    job = Job(tmp_path, {"HADOOP_USER_NAME": "alice"})
    return job.start(["cat"], "--store", f"webhdfs://{server.host}/checkpoints", *options)


def bell_in(line: str) -> str:
    status = parse(line.partition("status:")[2].strip())
    assert status is not None
    return status.bell


def send(bell: str, text: bytes | None = None) -> None:
    port, _, secret = bell.partition("-")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.sendto(f"yarnctl {secret}".encode() if text is None else text, ("127.0.0.1", int(port)))


def request(server: Server, attempt: Attempt, order: str) -> None:
    """Write a request as yarnctl does; no signal."""
    store = WebHdfsStore([server.host], REQUESTS, "alice")
    write_request(store, attempt.task, order, hold_ms=600_000)


def end(attempt: Attempt) -> None:
    attempt.kill()


def test_a_datagram_with_the_secret_has_requests_read(server, tmp_path):
    attempt = started(server, tmp_path)
    bell = bell_in(attempt.until("phase=run"))
    assert re.fullmatch(r"[0-9]{4,5}-[0-9a-f]{16}", bell)
    for order in ("first", "second"):
        request(server, attempt, order)
        send(bell)
        attempt.until(f"phase=hold groups=0 gen=0 order={order}")
    end(attempt)


def test_a_datagram_without_the_secret_does_nothing(server, tmp_path):
    attempt = started(server, tmp_path)
    bell = bell_in(attempt.until("phase=run"))
    for order in ("first", "second"):
        request(server, attempt, order)
        before = len(server.held.queries)
        for text in (b"", b"yarnctl ", b"yarnctl 0123456789abcdef", b"x" * 60_000):
            send(bell, text)
        assert len(server.held.queries) == before
        attempt.ring()  # the signal comes in any case
        attempt.until(f"phase=hold groups=0 gen=0 order={order}")
    end(attempt)


def test_too_many_wrong_datagrams_close_the_bell_and_the_signal_stays(server, tmp_path):
    attempt = started(server, tmp_path)
    bell = bell_in(attempt.until("phase=run"))
    for _ in range(BELL_WRONG_MAX):
        send(bell, b"wrong")
    request(server, attempt, "first")
    send(bell)
    attempt.ring()
    attempt.until("phase=hold groups=0 gen=0 order=first")
    end(attempt)


@pytest.mark.parametrize("how", ["option", "variable", "local store"])
def test_no_port_is_opened(server, tmp_path, how):
    if how == "local store":
        attempt = Job(tmp_path).start(["cat"])
    else:
        job = Job(tmp_path, {"HADOOP_USER_NAME": "alice", "YARNCTL_NO_BELL": str(int(how == "variable"))})
        options = ["--no-bell"] * (how == "option")
        attempt = job.start(["cat"], "--store", f"webhdfs://{server.host}/checkpoints", *options)
    assert bell_in(attempt.until("phase=run")) == ""
    end(attempt)
