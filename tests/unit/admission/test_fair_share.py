"""Max-min in whole containers: against a loop that hands them out one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnctl.deciding.admission.rounds import fair_shares, water_level


@pytest.mark.parametrize(
    ("demands", "free", "shares", "why"),
    [([5, 1, 9], 100, [5, 1, 9], "all are satisfied"),
     ([5, 1, 9], 9, [4, 1, 4], "the small one is satisfied, the others share what is left"),
     ([5, 1, 9], 10, [5, 1, 4], "a surplus of one goes to the first that wants it"),
     ([3, 3, 3], 2, [1, 1, 0], "fewer containers than jobs: the first get one"),
     ([7], 0, [0], "nothing to share"), ([], 4, [], "nobody asks")],
)  # fmt: skip
def test_by_hand(demands, free, shares, why):
    assert fair_shares(demands, free) == shares, why


def test_the_level_when_all_are_satisfied_and_when_not():
    assert water_level({2: 1, 5: 1}, 100) == (5, 93)
    assert water_level({2: 1, 5: 2}, 9) == (3, 1)


def one_by_one(demands: list[int], free: int) -> list[int]:
    """The definition: each container goes to who has least and wants more, the first of equals."""
    shares = [0] * len(demands)
    for _ in range(min(free, sum(demands))):
        wanting = [place for place, demand in enumerate(demands) if shares[place] < demand]
        shares[min(wanting, key=lambda place: (shares[place], place))] += 1
    return shares


@given(st.lists(st.integers(1, 12), max_size=8), st.integers(0, 60))
def test_it_is_what_handing_out_one_by_one_gives(demands, free):
    assert fair_shares(demands, free) == one_by_one(demands, free)
