"""What an interruption of a real reduce cost, by the history's attempts and the job's own log of groups."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from yarn_research.campaigns import overhead

TASK = "task_1_0001_r_000000"


def attempt(number: int) -> str:
    return f"attempt_1_0001_r_000000_{number}"


def row(number: int, start_s: float, finish_s: float) -> dict[str, Any]:
    return {"id": attempt(number), "startTime": start_s * 1000, "finishTime": finish_s * 1000}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A job of one reduce with these attempts and these logs -> its interruptions."""

    def ask(
        attempts: list[dict[str, Any]], logs: dict[int, list[tuple[str, float]]]
    ) -> list[tuple[float, ...]]:
        def history(_job: object, _url: str, path: str) -> dict[str, Any]:
            if path.endswith("/attempts"):
                return {"taskAttempts": {"taskAttempt": attempts}}
            return {"tasks": {"task": [{"id": TASK}]}}

        monkeypatch.setattr(overhead, "_history", history)
        for number, groups in logs.items():
            text = "".join(f"{key} {at_s}\n" for key, at_s in groups)
            (tmp_path / attempt(number)).write_text(text, encoding="ascii")
        job: Any = SimpleNamespace(groups=tmp_path, plan=SimpleNamespace(key_s=0.5))
        found = overhead.interruptions(job, "http://nobody")
        return [(one.stopping_s, one.starting_s, one.again_s) for one in found]

    return ask


def test_stopping_starting_and_the_work_done_again_are_the_cost(told: Any) -> None:
    attempts = [row(0, 10, 14), row(1, 20, 30)]
    logs = {0: [("a", 12.0), ("b", 12.5)], 1: [("b", 23.0), ("c", 23.5)]}
    assert told(attempts, logs) == [(1.0, 3.0, 0.5)]


def test_an_attempt_stopped_before_its_first_group_interrupted_nothing(told: Any) -> None:
    attempts = [row(0, 10, 14), row(1, 15, 16), row(2, 20, 30)]
    logs: dict[int, list[tuple[str, float]]] = {0: [("a", 12.0)], 1: [], 2: [("b", 23.0)]}
    assert told(attempts, logs) == [(1.5, 3.0, 0.0)]


def test_an_attempt_that_died_with_its_master_is_found_by_its_log_unless_that_is_empty(told: Any) -> None:
    attempts = [row(2, 20, 30)]
    logs: dict[int, list[tuple[str, float]]] = {0: [("a", 12.0)], 1: [], 2: [("a", 23.0)]}
    assert told(attempts, logs) == [(0.0, 3.0, 0.5)]
