"""More than two thousand random scenarios, every event of each under all invariants.

Law: the scenarios are the same on every machine (fixed seeds, no database), each is played to its
end, and the count is asserted, not hoped for. Families are split into parts so that workers share
them evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, get_args

import pytest

from tests.property.playing import Tally, explore, play, play_bare
from tests.property.scenarios import bare_clusters, mix_scenarios, scenarios, spark_scenarios
from tests.thoroughness import is_thorough
from yarnctl.deciding.levers import LEAVING, LeverKind

PART = 100


class Family(NamedTuple):
    """Scenarios of one kind; ``suspensions`` and ``kills`` are what they must have had at the least."""

    schemes: tuple[str, ...]
    parts: int
    mode: str = "queues"
    faulty: bool = False
    suspensions: int = 0
    kills: int = 0


FAMILIES = {
    "bare": Family((), 4, suspensions=3), "bare-faults": Family((), 5, faulty=True, suspensions=3),
    "natjam": Family(("natjam",), 4, suspensions=10),
    "natjam-faults": Family(("natjam",), 4, faulty=True, suspensions=10),
    "kill": Family(("kill",), 2, kills=10), "kill-faults": Family(("kill",), 1, faulty=True, kills=10),
    "deadlines": Family(("natjam",), 2, mode="deadlines", suspensions=10),
    "deadlines-faults": Family(("natjam",), 1, mode="deadlines", faulty=True, suspensions=10),
    "caps": Family(("hard-cap", "soft-cap", "ideal"), 1), "yarn": Family(("yarn", "yarn-tuned"), 1, kills=10),
    "yarn-faults": Family(("yarn-tuned", "yarn", "hard-cap"), 1, faulty=True, kills=10),
    "mix": Family(("mix",), 3, suspensions=3, kills=10),
    "mix-faults": Family(("mix",), 2, faulty=True, suspensions=3, kills=10),
    "sparks": Family(("mix",), 2, suspensions=3),
    "sparks-faults": Family(("mix",), 2, faulty=True, suspensions=3),
}  # fmt: skip

PARTS = [
    pytest.param(name, part, marks=pytest.mark.thorough if part else ())
    for name, family in FAMILIES.items()
    for part in range(family.parts)
]
"""The first part of each family is played always, the others with ``--thorough``."""

PLAYED = PART if is_thorough() else 40
"""Scenarios of a part that are played: all of them, or the first."""

SLICE, ALL = 600, 3500
"""Scenarios that are played without ``--thorough``, and with it."""


def test_at_least_two_thousand_scenarios_are_played():
    """In CI and in ``make test-thorough``; ``make test`` plays a slice. What is left out is not counted."""
    played = [part for part in PARTS if is_thorough() or not part.marks]
    assert PLAYED * len(played) == (ALL if is_thorough() else SLICE)
    assert {part.values[0] for part in played} == set(FAMILIES)
    assert ALL == PART * len(PARTS) >= 2000


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_every_invariant_holds_after_every_event(name, part, record_property):
    family = FAMILIES[name]
    number = 100 * list(FAMILIES).index(name) + part
    if family.schemes == ("mix",):
        with_spark = name.startswith("sparks")
        drawn = spark_scenarios if with_spark else mix_scenarios
        tally = explore(drawn(family.faulty), PLAYED, number, play)
        assert sum(tally.levers.values()) > 0
        pulled = ["drain"] if with_spark else set(get_args(LeverKind)) - set(LEAVING.values())
        assert not is_thorough() or all(tally.levers[kind] for kind in pulled), tally.levers
    elif family.schemes:
        jobs = scenarios(family.schemes, family.mode, family.faulty)
        tally = enough(family, lambda count: explore(jobs, count, number, play))
    else:
        bare = bare_clusters(family.faulty)
        tally = enough(family, lambda count: explore(bare, count, number, play_bare))
    record_property("scenarios", tally.played)
    claims(tally, family)


def enough(family: Family, explored: Callable[[int], Tally]) -> Tally:
    """Return what was played: the slice, or the whole part where the slice lacks what it should have."""
    tally = explored(PLAYED)
    lacks = (tally.suspensions < min(family.suspensions, 1)) or (tally.kills < min(family.kills, 1))
    return explored(PART) if lacks and PLAYED < PART else tally


def claims(tally: Tally, family: Family) -> None:
    """Judge what was played; of a slice only that it had some, as draws depend on what else is imported."""
    assert tally.played >= PLAYED
    assert tally.checks == tally.events
    for found, least in ((tally.suspensions, family.suspensions), (tally.kills, family.kills)):
        least_of_slice = 0 if family.schemes == ("mix",) else min(least, 1)  # its levers are counted
        assert found >= (least if is_thorough() else least_of_slice), (tally.suspensions, tally.kills)
