"""How a child is paced and waited for, without processes."""

from __future__ import annotations

import math
import os
from types import SimpleNamespace
from typing import Any

import pytest

from yarnctl.task_runner.runner.attempt import Sender, TaskInput
from yarnctl.task_runner.runner.child import unread_bytes
from yarnctl.task_runner.runner.feeding import ChildLife, Feeder, Pacer
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule, Scanner


@pytest.fixture
def pipes():
    ends = [os.pipe() for _ in range(2)]
    for _, writing in ends:
        os.set_blocking(writing, False)
    yield ends
    for end in (end for pair in ends for end in pair):
        os.close(end)


# -- the pace -------------------------------------------------------------------------------------


def test_slices_grow_while_they_are_read_at_once_and_are_large_enough():
    grown, stays = Pacer(), Pacer()
    grown.taken(32, 0.0)
    stays.taken(31, 0.0)
    assert (grown.slice_bytes, stays.slice_bytes) == (81, 64)


def test_a_slice_that_waited_long_makes_the_next_what_is_read_in_a_tenth_of_a_second():
    pacer = Pacer()
    pacer.late_bytes, pacer.late_s = 1e6, 0.1  # it was fast: its mean speed does not bound the slice
    pacer.taken(1000, 1.0)
    assert pacer.slice_bytes == 100


def test_the_mean_speed_forgets_within_seconds():
    pacer = Pacer()
    pacer.late_bytes, pacer.late_s = 1e6, 1.0
    pacer.taken(0, 4.0)
    assert pacer.late_bytes == pytest.approx(1e6 / math.e)
    assert pacer.late_s == pytest.approx(1 / math.e + 4)


def test_naps_double_up_to_a_bound_and_halve_down_to_one():
    pacer = Pacer()
    for _ in range(30):
        pacer.napped(1000, 1000)
    assert pacer.nap_s == 0.02
    pacer.napped(500, 1000)
    assert pacer.nap_s == 0.02
    for _ in range(30):
        pacer.napped(0, 1000)
    assert pacer.nap_s == 0.0001


def test_a_new_child_has_a_pace_of_its_own(pipes):
    """What the one before was given and did not read in time is no measure of it."""
    source = TaskInput(Sender(KeyRule(), -1), SimpleNamespace())  # type: ignore[arg-type]
    source.buffer = b"a\t1\n" * 100
    first, second = (SimpleNamespace(input=writing, fed_bytes=0) for _, writing in pipes)
    attempt: Any = SimpleNamespace(child=first, input=source, account=lambda data: None)
    feeder = Feeder(attempt, life=None)  # type: ignore[arg-type]
    feeder.feed_some()
    assert first.fed_bytes == 64
    attempt.child = second
    feeder.feed_some()
    assert second.fed_bytes == 64
    assert (feeder._pacer.late_bytes, feeder._pacer.late_s) == (0.0, 0.0)


# -- its end --------------------------------------------------------------------------------------


class Waiting:
    """A child's life whose child reads ten bytes whenever it is waited for."""

    def __init__(self, pipe: tuple[int, int]) -> None:
        self.reports: list[bool] = []
        self.child: Any = SimpleNamespace(input=pipe[1], reading=True)
        self._reading = pipe[0]
        attempt: Any = SimpleNamespace(settings=SimpleNamespace(save=""), child=self.child)
        attempt.wakeup = SimpleNamespace(wait=self.wait)
        attempt.lines = SimpleNamespace(report=lambda keep_alive: self.reports.append(keep_alive))
        answers: Any = SimpleNamespace(completing=self.answer)
        self.late: list[str] = []
        self.life = ChildLife(attempt, ["cat"], {}, answers)

    def wait(self, handle: int, events: int, timeout_s: float) -> bool:
        if timeout_s:
            os.read(self._reading, 10)
        return False

    def answer(self, why: str) -> None:
        self.late.append(why)


def test_while_a_child_reads_its_rest_the_position_is_reported_and_orders_are_answered(pipes):
    waiting = Waiting(pipes[0])
    os.write(pipes[0][1], bytes(100))
    waiting.life.let_read(waiting.child, "too late")
    assert unread_bytes(waiting.child.input) == 0
    assert waiting.reports == [False] * 10
    assert waiting.late == ["too late"] * 10


def test_orders_are_not_answered_unless_they_come_too_late(pipes):
    waiting = Waiting(pipes[0])
    os.write(pipes[0][1], bytes(100))
    waiting.life.let_read(waiting.child)
    assert not waiting.late


def test_a_child_that_ends_without_reading_its_rest_has_left(pipes, monkeypatch):
    waiting = Waiting(pipes[0])
    os.write(pipes[0][1], bytes(100))
    waiting.child.reading = False

    def left() -> None:
        raise LookupError

    monkeypatch.setattr(waiting.life, "child_left", left)
    with pytest.raises(LookupError):
        waiting.life.let_read(waiting.child)


def test_before_its_last_flush_java_has_sent_nothing_of_a_small_input():
    sender = Sender(KeyRule(), 0)
    sender.take(b"a\t1\n" * 100)
    assert (sender.sent_bytes, sender.seen_bytes) == (0, 400)
    assert sender.within(0)


def finishing(pipe: tuple[int, int], given: bytes, rest: bytes) -> tuple[Feeder, Any]:
    """Return a feeder whose child was given something, with the rest of the input, that ends with it."""
    source = TaskInput(Sender(KeyRule(), -1), SimpleNamespace())  # type: ignore[arg-type]
    source.buffer, source.ended = rest, True
    scanner = Scanner(KeyRule())
    scanner.take(given)
    attempt: Any = SimpleNamespace(child=SimpleNamespace(input=pipe[1], fed_bytes=0), input=source)
    attempt.scanner, attempt.why_not = scanner, ""
    attempt.account, attempt.check_order = scanner.take, lambda: None
    return Feeder(attempt, life=None), attempt  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "rest", "is_border", "fed"),
    [
        (b"a\t1\n", b"a\t2\nb\t1\n", True, b"a\t2\n"),
        (b"a\t1\n", b"b\t1\n", True, b""),
        (b"a\t1\na", b"\t2\nb\t1\n", True, b"\t2\n"),  # from the middle of a line
        (b"a\t1\n", b"a\t2\na\t3\n", False, b"a\t2\na\t3\n"),  # the input ends with the group
        (b"a\t1\n", b"", False, b""),
        (b"a\t1\na", b"", False, b""),  # ... and in the middle of a line
    ],
)
def test_a_group_is_finished_at_a_border_or_at_the_end_of_the_input(pipes, given, rest, is_border, fed):
    feeder, attempt = finishing(pipes[0], given, rest)
    assert feeder.finish_group() is is_border
    assert attempt.input.buffer[: attempt.input.at] == fed
    assert attempt.child.fed_bytes == len(fed)
    if fed:
        assert os.read(pipes[0][0], 100) == fed


def test_a_group_is_not_finished_where_nothing_can_rest_on_it(pipes):
    feeder, attempt = finishing(pipes[0], b"a\t1\n", b"b\t2\n")
    attempt.why_not = "keys are not sorted by bytes"
    assert not feeder.finish_group()
    assert not feeder.feed_groups(1)
