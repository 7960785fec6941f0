"""How often it is looked whether the child has taken its slice: seldom while slices lie equally long."""

from __future__ import annotations

from yarnctl.task_runner.yarnctl_task import SLICE_MIN_BYTES, STEADY_SLICES, Pacer


def play(pacer: Pacer, lies_s: float) -> tuple[int, float]:
    """Let a slice lie for a while; return how often it was looked at, and how late it was seen gone."""
    looks, at_s = 1, 0.0
    while at_s < lies_s:
        at_s += pacer.look_nap_s(at_s)
        looks += 1
    pacer.taken(SLICE_MIN_BYTES, at_s)
    return looks, at_s - lies_s


def test_while_slices_lie_equally_long_there_are_few_looks_and_none_is_late():
    pacer = Pacer()
    before = [play(pacer, 0.1) for _ in range(STEADY_SLICES)]
    after = [play(pacer, 0.1) for _ in range(5)]
    assert min(looks for looks, _ in before) > 30
    assert max(looks for looks, _ in after) < 10
    assert max(late_s for _, late_s in before + after) <= 0.1 / 8


def test_a_child_that_speeds_up_is_seen_late_once_and_watched_closely_then():
    pacer = Pacer()
    for _ in range(STEADY_SLICES + 2):
        play(pacer, 0.1)
    _, late_s = play(pacer, 0.001)
    assert late_s < 0.05
    for _ in range(STEADY_SLICES):
        assert play(pacer, 0.001)[1] <= 0.0002


def test_bursts_are_never_slept_through():
    """A child that fills its buffer takes slices in no time between two long waits: no three are alike."""
    pacer = Pacer()
    for _ in range(20):
        play(pacer, 0.2)
        assert [play(pacer, 0.0001)[1] <= 0.0002 for _ in range(4)] == [True] * 4
