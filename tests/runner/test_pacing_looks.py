"""How often it is looked whether the child has taken its slice: seldom, and nobody starves by it."""

from __future__ import annotations

from itertools import cycle, islice

import pytest

from yarnctl.task_runner.yarnctl_task import CLOSE_SLICES_MAX, LONG_NAP_MAX_S, SLICE_MIN_BYTES, Pacer


class Close(Pacer):
    """Watches every slice closely."""

    def look_nap_s(self, waited_s: float) -> float:
        self.close_slices = 1
        return super().look_nap_s(waited_s)


def play(work_s: list[float], slices: int, pacer: Pacer | None = None) -> tuple[int, float]:
    """Feed a child that works so long on each slice (again and again); return looks, and how long it starved.

    The child takes a slice when it is done with the one before; a slice is written when the one before is
    seen to be gone.
    """
    pacer = pacer or Pacer()
    looks, starved_s, now_s, done_s = 0, 0.0, 0.0, 0.0
    for span_s in islice(cycle(work_s), slices):
        written_s = now_s
        starved_s += max(0.0, written_s - done_s)
        taken_s = max(written_s, done_s)
        while now_s < taken_s:
            now_s += pacer.look_nap_s(now_s - written_s)
            looks += 1
        pacer.taken(SLICE_MIN_BYTES, now_s - written_s)
        looks += 1
        done_s = taken_s + span_s
    return looks, starved_s


def test_slices_that_lie_equally_long_are_looked_for_seldom():
    """Closely watched, a slice that lies for 100 ms is looked for more than 40 times."""
    looks, starved_s = play([0.1], 1000)
    assert looks < 10 * 1000
    assert starved_s == 0


def test_so_are_groups_of_one_and_a_half_slices():
    work_s = [0.1, 0.1, 0.0]
    looks, starved_s = play(work_s, 1500)
    closely, starved_closely_s = play(work_s, 1500, Close())
    assert looks < closely * 2 / 3
    assert starved_s < starved_closely_s + 0.02 * sum(work_s) * 500  # of the time it works


@pytest.mark.parametrize("quick", [1, 4, 30])
@pytest.mark.parametrize("long_s", [0.03, 0.1, 1.0])
def test_a_child_that_takes_slices_in_bursts_hardly_starves(quick: int, long_s: float):
    """It fills its buffer in no time, works for long, and so on: sleeping through its hunger ends soon."""
    work_s, slices = [long_s] + [0.0001] * quick, 4000 // (quick + 1) * (quick + 1)
    starved_s = play(work_s, slices)[1] - play(work_s, slices, Close())[1]
    assert starved_s < LONG_NAP_MAX_S * (8 + 4000 / CLOSE_SLICES_MAX)


def test_a_child_that_speeds_up_starves_for_one_nap_at_most():
    work_s = [0.1] * 50 + [0.004] * 450
    assert play(work_s, 500)[1] - play(work_s, 500, Close())[1] < 2 * LONG_NAP_MAX_S
