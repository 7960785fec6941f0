"""Golden tables: in which order tasks leave, and so come back."""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.tables import app, cluster, row, seen
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import ManifestSeen, Release, Suspend
from yarnctl.deciding.settings import DEFAULT, PAPER

LEFT_MS = (40_000, 50_000, 60_000, 90_000)
"""Of the tasks r1.1 to r1.4; shortest remaining time picks three in this order."""


def tasks():
    found = row("r1", 4)
    return {"r1": tuple(one._replace(remaining_ms=left) for one, left in zip(found, LEFT_MS, strict=True))}


def asked(settings):
    """Return a controller that has just asked three tasks to leave, and its step."""
    steps = Controller(msgspec.structs.replace(settings, job_open_ratio_max=1.0), validate=True)
    full = cluster(app("r1", "research", 50), app("p1", "production", 1, 3))
    step = steps.step(seen(full, tasks()))
    while not step.actions:
        step = steps.step(seen(full, tasks()))
    return steps, step


@pytest.mark.parametrize(
    ("settings", "order"),
    [(DEFAULT, ["r1.3", "r1.2", "r1.1"]), (PAPER, ["r1.1", "r1.2", "r1.3"])],
    ids=["default", "paper"],
)
def test_who_has_most_left_leaves_first_and_is_back_first(settings, order):
    """A master starts stopped reduces again in the order in which they ended; the paper does not care."""
    steps, step = asked(settings)
    assert [action.attempt for action in step.actions if isinstance(action, Suspend)] == order
    saved = tuple(ManifestSeen(f"o-00000{n}", f"r1.{n}", 1, 7, 500) for n in (1, 2, 3))
    let_go = steps.step(seen(None, now_ms=600, facts=saved))
    assert [action.attempt for action in let_go.actions if isinstance(action, Release)] == order


def test_nobody_waits_for_somebody_who_has_more_left():
    steps, _ = asked(DEFAULT)
    let_go = steps.step(seen(None, now_ms=600, facts=(ManifestSeen("o-000001", "r1.1", 1, 7, 500),)))
    assert [action.attempt for action in let_go.actions] == ["r1.1"]
