"""Echoes: an ask that does not fall when its application is given a container is doubted for a while."""

from __future__ import annotations

import pytest

from tests.unit.deciding.test_foresight import SLOT, view
from yarnctl.deciding.looks import STALE_MS, StaleAsks
from yarnctl.deciding.model import ContainerRequest


def seen(pending: int, containers: int):
    return view(requests=(ContainerRequest(10, SLOT, pending),) if pending else (), containers=containers)


@pytest.mark.parametrize(
    ("looks", "doubted"),
    [
        # (ms, pending, containers): what a master that asks once a second made of its third reduce
        ([(0, 1, 3), (500, 1, 4), (1000, 0, 4)], [0, 1, 0]),
        ([(0, 1, 3), (500, 0, 4), (1000, 1, 4), (1500, 0, 4)], [0, 0, 1, 0]),  # heard a look later
        ([(0, 3, 1), (500, 1, 3), (1000, 0, 4), (1500, 1, 4)], [0, 0, 0, 1]),  # two at once, then the third
        ([(0, 1, 3), (500, 1, 4), (1500, 1, 4), (500 + STALE_MS, 1, 4)], [0, 1, 1, 0]),  # it is real
        ([(0, 1, 3), (1500, 1, 4)], [0, 1]),  # between the looks nobody waited, so that nobody looked
        ([(0, 1, 3), (STALE_MS, 1, 4)], [0, 0]),  # too long ago to tell
        ([(0, 3, 1), (500, 2, 2), (1000, 1, 3), (1500, 0, 4)], [0, 0, 0, 0]),  # as it should be
        ([(0, 3, 1), (500, 3, 2), (1000, 3, 2)], [0, 1, 1]),  # two are wanted for sure
        ([(0, 3, 1), (500, 1, 1), (1000, 1, 3)], [0, 0, 0]),  # the asks were read later than the containers
        ([(0, 0, 3), (500, 5, 3)], [0, 0]),  # a new wave, and nothing was given
        ([(0, 1, 0), (500, 5, 1)], [0, 1]),  # the same ask again, and more of it
        ([(0, 4, 3), (500, 2, 3), (1000, 2, 2)], [0, 0, 0]),  # asks taken back; a task ended
        ([(0, 2, 3), (500, 2, 5), (900, 1, 5)], [0, 2, 1]),  # no more is doubted than is asked for
    ],
)
def test_what_is_doubted(looks, doubted):
    echoes = StaleAsks()
    found = [echoes.update([seen(pending, held)], at_ms).get("a", 0) for at_ms, pending, held in looks]
    assert found == doubted


def test_another_ask_is_no_echo():
    """A master was given its container and asks for maps; they were given, and reduces are asked for."""
    echoes = StaleAsks()
    waves = [(0, 1, 0), (20, 2, 1), (10, 3, 3)]
    for at_ms, (priority, count, containers) in enumerate(waves):
        told = view(requests=(ContainerRequest(priority, SLOT, count),), containers=containers)
        assert echoes.update([told], 500 * at_ms) == {}


def test_who_is_gone_is_forgotten():
    echoes = StaleAsks()
    echoes.update([seen(1, 3)], 0)
    echoes.update([], 500)
    assert echoes.update([seen(1, 4)], 1000) == {}
