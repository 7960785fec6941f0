"""Running limits: what a master holds back, and when it lets it out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from emulator.cluster.pending_tasks import FAILED_MAP, MAP_PRIORITY, REDUCE_PRIORITY
from emulator.live.master.live_actor import RunningLimits

MAPS, REDUCES = "mapreduce.job.running.map.limit", "mapreduce.job.running.reduce.limit"


def containers(*priorities: int) -> list[Any]:
    return [SimpleNamespace(priority=priority) for priority in priorities]


@pytest.mark.parametrize("conf", [{}, {MAPS: "0"}, {MAPS: "-1"}])
def test_without_a_limit_all_is_asked_at_once(conf):
    limits = RunningLimits(conf)
    assert limits.asked(MAP_PRIORITY, 100) == 100
    assert list(limits.due(containers())) == []


def test_at_most_so_many_are_asked_for_or_held():
    limits = RunningLimits({MAPS: "3"})
    assert limits.asked(MAP_PRIORITY, 5) == 0
    assert list(limits.due([])) == [(MAP_PRIORITY, 3)]
    assert list(limits.due([])) == []  # three are on their way
    granted = containers(MAP_PRIORITY, MAP_PRIORITY)
    limits.granted(granted)
    assert list(limits.due(granted)) == []  # two are held, one is on its way
    assert list(limits.due(granted[:1])) == [(MAP_PRIORITY, 1)]
    assert list(limits.due([])) == [(MAP_PRIORITY, 1)]
    assert list(limits.due([])) == []  # nothing is left


def test_maps_and_reduces_have_limits_of_their_own():
    limits = RunningLimits({MAPS: "2"})
    assert (limits.asked(MAP_PRIORITY, 9), limits.asked(REDUCE_PRIORITY, 9)) == (0, 9)
    limits = RunningLimits({MAPS: "2", REDUCES: "1"})
    assert (limits.asked(REDUCE_PRIORITY, 9), limits.asked(MAP_PRIORITY, 9)) == (0, 0)
    assert list(limits.due(containers(MAP_PRIORITY))) == [(REDUCE_PRIORITY, 1), (MAP_PRIORITY, 1)]


def test_a_failed_map_goes_first():
    limits = RunningLimits({MAPS: "2"})
    limits.asked(MAP_PRIORITY, 3)
    limits.asked(FAILED_MAP, 1)
    assert list(limits.due([])) == [(FAILED_MAP, 1), (MAP_PRIORITY, 1)]


def test_a_new_resource_manager_knows_of_nothing():
    limits = RunningLimits({MAPS: "2"})
    limits.asked(MAP_PRIORITY, 3)
    assert list(limits.due([])) == [(MAP_PRIORITY, 2)]
    limits.drop()
    limits.asked(MAP_PRIORITY, 3)
    assert list(limits.due([])) == [(MAP_PRIORITY, 2)]
