"""What three frameworks together show: the claims, from runs that are written down."""

from __future__ import annotations

from typing import Any

import pytest

from yarn_research.campaigns.mixed_judging import judged

ITEM = {"queue": "research", "may_lose_ratio": 0.2, "lost_ms": 10_000, "container_mib": 512}


def kept(**changes: Any) -> dict[str, Any]:
    order = {"order": "o-1", "lever": "drain", "explained": True}
    told: dict[str, Any] = {
        "bursts": [{"state": "SUCCEEDED"}],
        "budgets": [[{**ITEM, "lost_ms": 0}], [ITEM]],
        "held_mib_ms": 512 * 100_000,
        "wrong": {"spark": "", "flink": "", "mapreduce": ""},
        "orders": [order],
        "levers": {"drain": 1},
    }
    return told | changes


def test_a_run_in_which_everything_holds() -> None:
    assert judged(kept()) == {
        "bursts": 1,
        "bursts that failed": 0,
        "outputs that are wrong": 0,
        "lost over what the budget allows": 0.5,
        "frameworks that gave room": 1,
        "orders": 1,
        "orders that are not explained": 0,
    }


@pytest.mark.parametrize(
    ("changes", "claim", "figure"),
    [
        ({"bursts": [{"state": "FAILED"}]}, "bursts that failed", 1),
        ({"wrong": {"spark": "another result"}}, "outputs that are wrong", 1),
        ({"budgets": [[{**ITEM, "lost_ms": 30_000}]]}, "lost over what the budget allows", 1.5),
        ({"budgets": []}, "lost over what the budget allows", None),
        ({"held_mib_ms": 0}, "lost over what the budget allows", None),
        ({"orders": [{"explained": False}]}, "orders that are not explained", 1),
        ({"levers": {"suspend": 2, "drain": 1, "rescale": 3}}, "frameworks that gave room", 3),
    ],
)
def test_what_does_not_hold_is_counted(changes: dict[str, Any], claim: str, figure: Any) -> None:
    assert judged(kept(**changes))[claim] == figure
