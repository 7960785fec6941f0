"""How the runner learns that the child has taken its slice: it is woken; it looks only where it cannot be."""

from __future__ import annotations

import os
import select
from types import SimpleNamespace
from typing import Any

import pytest

from yarnctl.task_runner.runner.attempt import Sender, TaskInput
from yarnctl.task_runner.runner.child import PIPE_ATOMIC_BYTES, narrow_pipe, pipe_capacity, unread_bytes
from yarnctl.task_runner.runner.feeding import Feeder
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    yield reading, writing
    os.close(reading)
    os.close(writing)


def is_writable(handle: int) -> bool:
    waiting = select.poll()
    waiting.register(handle, select.POLLOUT)
    return bool(waiting.poll(0))


def test_a_narrow_pipe_is_writable_exactly_when_nothing_lies_in_it(pipe):
    reading, writing = pipe
    assert narrow_pipe(writing)
    assert is_writable(writing)
    os.write(writing, b"key\tvalue\n")
    assert not is_writable(writing)
    os.read(reading, 4)
    assert not is_writable(writing)
    os.read(reading, 100)
    assert is_writable(writing)


def test_what_is_no_pipe_or_too_full_is_not_narrowed(pipe, tmp_path):
    _, writing = pipe
    os.write(writing, bytes(5 * PIPE_ATOMIC_BYTES))
    assert not narrow_pipe(writing)
    with (tmp_path / "file").open("wb") as file:
        assert not narrow_pipe(file.fileno())


class Fed:
    """Feeding and nothing else; the child takes what there is whenever it is waited for.

    ``waits`` are the kinds of waiting. ``lies``: it is told that the child took it when it did not, so often.
    """

    def __init__(self, pipe: tuple[int, int], data: bytes, lies: int = 0) -> None:
        self.reading = pipe[0]
        self.child: Any = SimpleNamespace(input=pipe[1], fed_bytes=0)
        wakeup: Any = SimpleNamespace(wait=self.wait)
        self.input = TaskInput(Sender(KeyRule(), -1), wakeup)
        self.input.buffer, self.input.ended = data, True
        attempt: Any = SimpleNamespace(child=self.child, input=self.input, wakeup=wakeup)
        attempt.account = lambda data: None
        unused: Any = None  # the child does not leave
        self.feeder = Feeder(attempt, life=unused)
        self.lies, self.taken = lies, b""
        self.waits: list[str] = []

    def wait(self, handle: int, events: int, timeout_s: float | None) -> bool:
        if not timeout_s:
            return False
        self.waits.append("woken" if events == select.POLLOUT else "nap")
        if events == select.POLLOUT and self.lies:
            self.lies -= 1
            return True
        self.taken += os.read(self.reading, 1 << 16)
        return events == select.POLLOUT

    def feed(self) -> Fed:
        while not self.input.is_taken:
            self.feeder.feed_some()
        self.taken += os.read(self.reading, 1 << 16)
        return self


DATA = b"".join(b"k%03d\tvalue\n" % number for number in range(200))


def test_a_slow_child_is_waited_for_once_a_slice(pipe):
    found = Fed(pipe, DATA).feed()
    assert found.taken == DATA
    assert set(found.waits) == {"woken"}
    assert found.feeder._one_slot
    assert pipe_capacity(pipe[1]) == PIPE_ATOMIC_BYTES


def test_where_the_pipe_tells_nothing_we_look(pipe):
    found = Fed(pipe, DATA, lies=1).feed()
    assert found.taken == DATA
    assert found.waits[0] == "woken"
    assert set(found.waits[1:]) == {"nap"}


def test_long_lines_have_a_wide_pipe(pipe):
    long = b"k\t" + b"x" * 2 * PIPE_ATOMIC_BYTES + b"\n"
    found = Fed(pipe, DATA[:130] + long + DATA[130:]).feed()
    assert found.taken == DATA[:130] + long + DATA[130:]
    assert {"woken", "nap"} == set(found.waits)
    assert unread_bytes(found.child.input) == 0
    assert found.feeder._one_slot
