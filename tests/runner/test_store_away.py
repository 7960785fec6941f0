"""A store that is away at the start of an attempt is waited for, within a bound; outputs stay right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.runner.namenode import Server
from tests.runner.running import SUM, Job, grouped, python
from yarnctl.task_runner.runner.protocol.stores import StoreAway, StoreError
from yarnctl.task_runner.runner.protocol.webhdfs_store import WebHdfsStore
from yarnctl.task_runner.runner.resuming import retried

DATA = grouped(60, 4)


class Clock:
    """Time that passes only in pauses."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses_s: list[float] = []

    def pause(self, span_s: float) -> None:
        self.pauses_s.append(span_s)
        self.now_s += span_s


def patiently(asked: Callable[[], object], wait_s: float, clock: Clock, said: list[str]) -> object:
    return retried(asked, wait_s, said.append, lambda: clock.now_s, clock.pause)


@pytest.mark.parametrize("away", range(8))
def test_a_store_that_is_away_for_some_requests_is_asked_again(away):
    clock, said, left = Clock(), list[str](), [StoreAway("safe mode")] * away

    def asked() -> str:
        if left:
            raise left.pop()
        return "served"

    assert patiently(asked, 120, clock, said) == "served"
    assert clock.pauses_s == [0.5, 1, 2, 4, 8, 10, 10][:away]
    assert said == ["safe mode"] * away


def test_the_wait_ends():
    clock, said = Clock(), list[str]()

    def asked() -> None:
        raise StoreAway("no connection")

    with pytest.raises(StoreAway):
        patiently(asked, 20, clock, said)
    assert sum(clock.pauses_s) == 20


def test_what_is_refused_is_not_asked_again():
    clock, said = Clock(), list[str]()

    def asked() -> None:
        raise StoreError("HTTP 403: AccessControlException")

    with pytest.raises(StoreError):
        patiently(asked, 20, clock, said)
    assert not said


def test_no_connection_and_a_standby_are_away():
    server = Server()
    store = WebHdfsStore([server.host], "/checkpoints", "alice")
    server.held.standby = True
    with pytest.raises(StoreAway):
        store.entry("")
    server.held.says_standby = (403, "SafeModeException")
    with pytest.raises(StoreAway):
        store.make_folder("job")
    server.shutdown()
    server.server_close()
    with pytest.raises(StoreAway):
        store.entry("")


def test_an_attempt_goes_on_behind_its_checkpoint_when_the_store_is_back(tmp_path):
    server, job = Server(), Job(tmp_path, {"HADOOP_USER_NAME": "alice"})
    where = ("--store", f"webhdfs://{server.host}/checkpoints")
    wanted = Job(tmp_path).run(DATA, python(SUM), promise=False)
    job.run(DATA, python(SUM), *where, "--suspend-at", "30", "--exit-when-saved")
    server.held.standby = True
    attempt = job.start(python(SUM), *where)
    attempt.until("waits for its store")
    server.held.standby = False
    attempt.feed(DATA)
    attempt.until("phase=replay groups=30 gen=1")
    assert attempt.finish() == wanted
    server.shutdown()
    server.server_close()
