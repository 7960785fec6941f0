"""Who is kept alive: a task that skips, replays, saves or holds; never one whose reducer has hung."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from yarnctl.task_runner.runner.attempt import StatusLines


def told(*moments: tuple[bool, int, int]) -> list[int]:
    """Play moments (keep alive?, bytes done, bytes printed); return at which of them something was said."""
    said: list[int] = []
    attempt: Any = SimpleNamespace(errors=SimpleNamespace(news=False))
    attempt.settings = SimpleNamespace(task_timeout_ms=0)  # a line may follow the one before at once
    lines: Any = StatusLines(attempt)
    for at, (keep_alive, done, printed) in enumerate(moments):
        attempt.done_bytes = lambda done=done: done
        attempt.output = SimpleNamespace(bytes=printed)
        lines.report_position = lambda at=at: said.append(at)
        lines.report(keep_alive)
    return said


def test_a_reducer_that_gets_on_is_heard_of_and_one_that_hangs_is_not():
    work, hang = [(False, 10, 0), (False, 20, 0), (False, 20, 5)], [(False, 20, 5)] * 20
    assert told(*work, *hang) == [0, 1, 2]
    assert told(*work, *hang, (False, 21, 5)) == [0, 1, 2, len(work) + len(hang)]


def test_a_task_that_holds_is_kept_alive_without_getting_on():
    assert told(*[(True, 20, 5)] * 4) == [0, 1, 2, 3]
