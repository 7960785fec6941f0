"""The daemon's clock never goes back, and a clock that does stops no loop."""

from __future__ import annotations

import logging
from itertools import count

import pytest

from tests.unit.daemon.test_loop import Lock, busy, daemon
from yarnctl.daemon.loop import NEWS_MS
from yarnctl.daemon.running import SteadyClock

HOUR_MS = 3_600_000
SECOND_NS = 1_000_000_000


class Clocks:
    """A wall clock that people set, and time as it passes."""

    def __init__(self) -> None:
        self.set_ns = 1_000_000 * SECOND_NS
        self.passed_ns = 50 * SECOND_NS

    def wall(self) -> int:
        return self.set_ns + self.passed_ns

    def passed(self) -> int:
        return self.passed_ns


@pytest.mark.parametrize("moved_s", [-3600, 3600])
def test_a_wall_clock_that_is_set_changes_nothing_and_is_told_once(
    moved_s: int, caplog: pytest.LogCaptureFixture
) -> None:
    clocks = Clocks()
    clock = SteadyClock(clocks.wall, clocks.passed)
    began = clock()
    assert began == 1_000_050_000
    clocks.passed_ns += 7 * SECOND_NS
    clocks.set_ns += moved_s * SECOND_NS
    assert [clock() - began for _ in range(3)] == [7000] * 3
    told = [line.getMessage() for line in caplog.records if line.levelno >= logging.WARNING]
    assert len(told) == 1
    assert f"set 3600 s {'forward' if moved_s > 0 else 'back'}" in told[0]


def test_small_corrections_are_not_worth_a_word(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    clock = SteadyClock(clocks.wall, clocks.passed)
    for step in range(100):
        clocks.set_ns = 1_000_000 * SECOND_NS + (step % 5) * SECOND_NS
        clock()
    assert caplog.records == []


class Waits:
    """A condition that notes how long it was waited for, and never wakes early."""

    def __init__(self) -> None:
        self.waited_s: list[float] = []

    def __enter__(self) -> Waits:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def wait(self, seconds: float) -> bool:
        self.waited_s.append(seconds)
        return False


def test_a_loop_whose_clock_lies_an_hour_back_waits_a_tick_at_most() -> None:
    """After a restart its times are those of the journal, and its clock may be behind them."""
    loop, _ = daemon(busy(), lock=Lock())
    loop._wake = Waits()  # type: ignore[assignment]
    behind = count(0, 1000)
    loop._clock_ms = lambda: next(behind)
    loop._wait_until(HOUR_MS)
    waited_s = loop._wake.waited_s  # type: ignore[attr-defined]
    assert waited_s == [NEWS_MS / 1000, loop.controller.settings.tick_ms / 1000]
