"""Golden table of the Releaser: one task, and why it may not be stopped."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.golden.tables import candidate, case, task, with_
from yarnctl.deciding.releaser import Reason, is_killed, objections
from yarnctl.deciding.selector import choose
from yarnctl.deciding.settings import DEFAULT, PAPER

NOW_MS = 100_000

TABLE = [
    # task, settings, the reason under the profile default, the reason under the profile paper
    ({}, {}, "", ""),  # a long reduce in its reduce phase: nothing speaks against it
    ({"kind": "am"}, {"kill_maps": True}, "am", "am"),  # never the master, whatever is configured
    ({"kind": "map"}, {}, "map", "map"),  # maps lose their work
    ({"kind": "map"}, {"kill_maps": True}, "", ""),  # only if the administrator says so
    ({"able": False}, {}, "not-checkpointable", "not-checkpointable"),  # shuffle, skipping
    (
        {"able": False},
        {"eviction": "kill"},
        "not-checkpointable",
        "not-checkpointable",
    ),  # kill: the same tasks
    ({"remaining_ms": 9000, "cost_ms": 9000}, {}, "cost", ""),  # done before it would be back
    ({"remaining_ms": 9001, "cost_ms": 9000}, {}, "", ""),  # just worth it
    ({"remaining_ms": 1, "cost_ms": 9000}, {"eviction": "kill"}, "", ""),  # killing costs no way back
    ({"remaining_ms": -1}, {}, "remaining-unknown", ""),  # nobody knows whether it pays
    ({"resumed": True, "since_ms": NOW_MS - 29_999}, {}, "just-resumed", ""),  # settle_ms is 30 s
    ({"resumed": True, "since_ms": NOW_MS - 30_000}, {}, "", ""),
    ({"resumed": False, "since_ms": NOW_MS - 1}, {}, "", ""),  # just started is not just resumed
    ({"generation": 8}, {}, "task-budget", ""),  # suspended eight times already
    ({"generation": 7}, {}, "", ""),
]


@pytest.mark.parametrize(("made", "changes", "default", "paper"), TABLE)
def test_objections(made, changes, default, paper):
    looked_at = task("a.1", **made)
    assert objections(NOW_MS, with_(DEFAULT, **changes), {})(looked_at) == default
    assert objections(NOW_MS, with_(PAPER, **changes), {})(looked_at) == paper


@pytest.mark.parametrize("why", ["already-ordered", "just-tried"])
def test_barred_attempts(why):
    assert objections(NOW_MS, PAPER, {"a.1": why})(task("a.1")) == why
    assert objections(NOW_MS, PAPER, {"a.2": why})(task("a.1")) == ""


def test_a_refused_task_is_passed_over_and_shown_with_its_key():
    tasks = {"a": [task("a.1", 10_000, cost_ms=20_000), task("a.2", 30_000), task("a.3", 40_000)]}
    found = choose(case([candidate("a", 4)], 1, tasks), DEFAULT)
    assert [pick.task.attempt for pick in found.picks] == ["a.2"]
    assert [tuple(refused)[:4] for refused in found.refused_tasks] == [
        ("a", "a.1", (10_000,), "cost"),
        ("a", "a.3", (40_000,), "next"),
    ]


def test_only_a_few_refused_are_shown():
    tasks = {"a": [task(f"a.{n:02d}", n, cost_ms=50) for n in range(60)]}
    found = choose(case([candidate("a", 61)], 1, tasks), with_(DEFAULT, refused_shown=2))
    assert [(refused.attempt, refused.why) for refused in found.refused_tasks] == [
        ("a.00", "cost"),
        ("a.01", "cost"),
        ("a.52", "next"),
        ("a.53", "next"),
    ]


@pytest.mark.parametrize(
    ("kind", "eviction", "killed"),
    [("reduce", "suspend", False), ("map", "suspend", True), ("reduce", "kill", True)],
)
def test_what_is_lost(kind, eviction, killed):
    assert is_killed(task("a.1", kind=kind), with_(eviction=eviction)) is killed


def test_every_reason_is_explained():
    """The table in the docstring of Reason names each of them."""
    import inspect

    from yarnctl.deciding import releaser

    source = inspect.getsource(releaser)
    for reason in get_args(Reason):
        assert not reason or source.count(reason) >= 2, reason
