"""Executors come back also while yarnctl may not act, and while production waits for what nobody can free."""

from __future__ import annotations

from tests.golden.mix_tables import NOW_MS
from tests.golden.tables import size
from tests.unit.deciding.test_drain import Play, executor
from yarnctl.deciding.model import ContainerEnded, ContainerGranted, Grow, Observation


def served() -> Play:
    """Return a play in which one executor has left, and production has its container."""
    play = Play(executor("e1"), executor("e2"), asks=1)
    (drain,) = play.asked()
    gone = ContainerEnded(drain.container, "r", "n1", "suspended", NOW_MS + 3000)
    play.step(NOW_MS + 3000, gone)
    play.tasks = (executor("e2", may=False),)
    play.step(NOW_MS + 3200, ContainerGranted("c9", "p", "n1", size(1), NOW_MS + 3100), asks=0)
    return play


def grown(step) -> int:
    return sum(isinstance(action, Grow) for action in step.actions)


def test_executors_come_back_while_the_cluster_is_hidden():
    play, told = served(), 0
    for now_ms in range(NOW_MS + 4000, NOW_MS + 124_000, 1000):
        told += grown(
            play.controller.step(Observation(now_ms=now_ms, as_of_ms=now_ms, cluster="unreachable"))
        )
    assert told >= 1


def test_executors_come_back_while_a_request_waits_that_brings_no_order():
    play, told = served(), 0
    for now_ms in range(NOW_MS + 4000, NOW_MS + 124_000, 1000):
        told += grown(play.step(now_ms, asks=1))
    assert told >= 1
