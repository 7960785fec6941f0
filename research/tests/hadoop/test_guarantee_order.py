"""A slice of the campaign ``guarantee_order``: three trees on a real ResourceManager with its preemption."""

from __future__ import annotations

import pytest

from tests.hadoop.needing import need_hadoop, need_javac
from yarn_research.campaigns.guarantee_order import MonitoredRig, judged, play

pytestmark = pytest.mark.xdist_group("hadoop")


def test_the_leaves_that_give_are_those_of_the_policy() -> None:
    """In seeds 4 and 8 leaves are held by the limits of users that were never served."""
    need_hadoop("3.4.2")
    need_javac()
    with MonitoredRig() as rig:
        trees = [play(rig, seed) for seed in (4, 8, 21)]
    found = judged(trees)
    assert found["equal"] == 3, trees
    assert found["leaves that give"] == found["leaves selected"] == found["leaves with equal resources"] == 5
