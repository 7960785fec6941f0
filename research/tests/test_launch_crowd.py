"""Launches that share cores: by hand where a hand can reckon, else against a simulation in fractions."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from emulator.cluster.kernel import Kernel
from yarn_research.campaigns.shared_cpu import SLACK, UNIT, ProcessorSharing


def up_at(
    joins: list[tuple[int, int]], cores: int, width: int, leaves: dict[int, int] | None = None
) -> list[int]:
    """Return when each launch (at ms, CPU ms) is up; -1: never."""
    kernel = Kernel()
    crowd = ProcessorSharing[int](kernel, cores, width)
    done = [-1] * len(joins)

    def up(number: int) -> None:
        done[number] = kernel.now_ms

    for number, (at_ms, _) in enumerate(joins):
        kernel.at(at_ms, lambda one: crowd.join(one, joins[one][1], up), number)
    for number, at_ms in (leaves or {}).items():
        kernel.at(at_ms, crowd.leave, number)
    kernel.run()
    assert len(crowd) == 0
    return done


@pytest.mark.parametrize(
    ("joins", "cores", "width", "done"),
    [
        ([(0, 1000)], 2, 1, [1000]),  # alone on one core
        ([(0, 1000)], 2, 2, [500]),  # alone on both
        ([(0, 1000)] * 2, 2, 2, [1000] * 2),  # a core each
        ([(0, 1000)] * 2, 2, 1, [1000] * 2),
        ([(0, 1000)] * 6, 2, 2, [3000] * 6),  # a third of a core each
        ([(0, 1000), (500, 1000)], 1, 1, [1500, 2000]),  # the first is half done when the second comes
        ([(0, 1000), (500, 250)], 1, 1, [1250, 1000]),  # and is overtaken by a short one
        ([(0, 100), (100, 100)], 1, 1, [100, 200]),  # one goes as the other comes
        ([(0, 0), (7, 0)], 2, 2, [0, 7]),  # nothing to do
        ([(0, 1)] * 3, 2, 2, [2, 2, 2]),  # 1.5 ms, told at the next whole one
    ],
)
def test_what_a_hand_reckons(joins, cores, width, done):
    assert up_at(joins, cores, width) == done


def test_who_leaves_makes_the_others_faster():
    assert up_at([(0, 1000), (0, 1000)], 1, 1, {0: 500}) == [-1, 1250]


def test_who_leaves_in_the_millisecond_of_being_done_is_not_told():
    assert up_at([(0, 1001)], 2, 2, {0: 501}) == [-1]


def test_leaving_twice_or_never_having_come_changes_nothing():
    assert up_at([(0, 1000), (0, 1000)], 1, 1, {7: 400}) == [2000, 2000]


def exact(joins: list[tuple[int, int]], cores: int, width: int) -> list[Fraction]:
    """Play the same with fractions, from change to change."""
    left: dict[int, Fraction] = {}
    coming = sorted((at_ms, number) for number, (at_ms, _) in enumerate(joins))
    now = Fraction(0)
    done = [Fraction(-1)] * len(joins)
    while coming or left:
        speed = min(Fraction(width), Fraction(cores, len(left))) if left else Fraction(0)
        ends = now + min(left.values()) / speed if left else None
        if coming and (ends is None or coming[0][0] <= ends):
            then = Fraction(coming[0][0])
        else:
            assert ends is not None
            then = ends
        for number in left:
            left[number] -= (then - now) * speed
        now = then
        for number in [number for number, rest in left.items() if rest == 0]:
            done[number] = now
            del left[number]
        while coming and coming[0][0] == now:
            _, number = coming.pop(0)
            left[number] = Fraction(joins[number][1])
    return done


@pytest.mark.parametrize("seed", range(20))
def test_it_is_processor_sharing_to_the_millisecond(seed):
    draw = random.Random(seed)
    joins = [(draw.randrange(5000), draw.randrange(1, 3000)) for _ in range(draw.randrange(1, 30))]
    cores, width = draw.choice([(1, 1), (2, 1), (2, 2), (8, 2), (3, 3)])
    found = up_at(joins, cores, width)
    for at_ms, exactly in zip(found, exact(joins, cores, width), strict=True):
        assert -SLACK / UNIT <= at_ms - exactly < 1  # told in the next whole millisecond


def test_work_is_conserved():
    """A machine that is never idle has done all when it is done: nothing is given twice, nothing lost."""
    joins = [(number * 10, 400) for number in range(20)]
    assert max(up_at(joins, 2, 2)) == 4000
