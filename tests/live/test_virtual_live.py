"""Virtual against live in small: the real daemon over HTTP chooses live whom it chooses in virtual time.

The whole comparison, at speed 1 and with its bound of 2 %, is ``python -m tests.soak.virtual_live``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.virtual_live import CASES, Compared, JobRow, failures, job, other_victims
from tests.soak.virtual_live_sides import Case, Ran, Victim, phasing_of, run_live, run_virtual

SPEED = 20.0
SMALL = Case(
    "small",
    nodes=3,
    slots=3,
    jobs=(job("research", 0, [2], [40, 46, 52, 58, 64, 70, 76, 82]), job("production", 20, [4], [5])),
)


def first_victims(ran: Ran) -> list[str]:
    """Those of the first decision: later ones hang on when something came, which here is no matter."""
    return [one.attempt for one in ran.victims if one.decision == 1]


def test_live_ends_as_virtual_time_does_with_the_same_victims(tmp_path: Path) -> None:
    live = run_live(SMALL, SPEED, tmp_path / "live")
    virtual = run_virtual(SMALL, live.phasing)
    assert first_victims(live) == first_victims(virtual) == ["research r0 attempt 0"]
    assert set(live.completion_ms) == set(virtual.completion_ms) == {"research", "production"}
    assert live.completion_ms["production"] < live.completion_ms["research"]
    for name, completion_ms in virtual.completion_ms.items():
        assert live.completion_ms[name] > 0.8 * completion_ms  # a slow machine only makes it longer


def victim(attempt: str, remaining_ms: int, **seen: int) -> Victim:
    return Victim(1, attempt, remaining_ms, seen)


def test_another_victim_is_wrong_unless_the_keys_were_close() -> None:
    right = [victim("a", 10_000), victim("b", 20_000)]
    assert other_victims(right, right) == []
    assert other_victims(right, list(reversed(right))) == []
    assert other_victims(right, [victim("a", 10_000), victim("c", 21_900)]) == []
    wrong = other_victims(right, [victim("a", 10_000), victim("c", 22_100)])
    assert len(wrong) == 2
    assert "live c (22100 ms left)" in wrong[0]
    assert "virtual b (20000 ms left)" in wrong[1]
    assert len(other_victims(right, right[:1])) == 1
    assert len(other_victims(right[:1], right)) == 1


@pytest.mark.parametrize(
    ("live_s", "count"), [(100.0, 0), (101.9, 0), (98.1, 0), (102.1, 1), (97.9, 1), (-0.001, 1)]
)
def test_two_per_cent_are_the_bound(live_s: float, count: int) -> None:
    row = JobRow("x", "research", 100.0, live_s, live_s / 100 - 1)
    assert len(failures([Compared("x", [row], [], [], [], 0)], 0.02)) == count


def test_scenarios_suspend_in_virtual_time() -> None:
    for case in CASES:
        assert len(run_virtual(case, phasing_of(case.nodes)).victims) >= 3
