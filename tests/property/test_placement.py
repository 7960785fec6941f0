"""ORiON's placement over random stories: no pool is overbooked, no bound is late, nothing cheaper is missed.

Applications come one after the other and are placed beside those that came before. An oracle tries every
instant instead of ends alone. A planted bug replaces one function, and the law must fail on the same seeds.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest

from yarnctl.deciding.admission.capacity import Load, Profile
from yarnctl.deciding.admission.mechanisms import orion
from yarnctl.deciding.admission.mechanisms.orion import (
    OrionChoices,
    PlacementPool,
    cost_of,
    least_loaded,
    place,
)
from yarnctl.deciding.admission.placement_options import PlacementOption
from yarnctl.deciding.reasons.placements import NoRoomThroughout, NothingFits

SEEDS = range(150)
APPLICATIONS = 8
LAST_MS = 120
KINDS = ("flink", "mapreduce", "spark")


class PlacementStory:
    """A random story of one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.pools = [
            PlacementPool(f"pool-{number}", self.chance.randint(1, 6),
                self.chance.choice(((), (kind,), KINDS[:2])), self.chance.choice((500, 1000, 3000)),
                self.chance.choice((None, 7_200_000, 14_400_000)))
            for number, kind in enumerate(KINDS)
        ]  # fmt: skip
        self.now_ms = 0

    def options(self) -> list[PlacementOption]:
        found = []
        for _ in range(self.chance.randint(1, 5)):
            predicted_ms = self.chance.randint(1, 30)
            found.append(
                PlacementOption(self.chance.choice(KINDS), self.chance.randint(1, 5), predicted_ms,
                    predicted_ms + self.chance.randint(0, 6), (("memory", self.chance.choice("ab")),))
            )  # fmt: skip
        return found

    def play(self) -> None:
        for _ in range(APPLICATIONS):
            options, deadline_at_ms = self.options(), self.now_ms + self.chance.randint(1, 60)
            found = place(options, self.pools, self.now_ms, deadline_at_ms)
            self.same_in_any_order(options, deadline_at_ms)
            best = self.every_instant(options, deadline_at_ms)
            if found.placed is None:
                assert best is None, "one would have fitted"
                assert found.why is not None
                self.would_do(options, found.why)
            else:
                placed = found.placed
                assert placed.start_at_ms >= self.now_ms
                assert placed.start_at_ms + placed.option.upper_ms <= deadline_at_ms, "a bound ends late"
                assert best is not None
                assert (placed.cost_mtokens, placed.start_at_ms) == best, (
                    "a cheaper or earlier one was missed"
                )
                assert all(each.option in options for each in found.not_taken)
                self.reserve(placed.pool, placed.option, placed.start_at_ms)
            self.now_ms += self.chance.randint(0, 15)

    def reserve(self, name: str, option: PlacementOption, start_at_ms: int) -> None:
        held = Load(option.kind, option.containers, start_at_ms, start_at_ms + option.upper_ms)
        self.pools = [
            msgspec.structs.replace(each, reserved=(*each.reserved, held)) if each.name == name else each
            for each in self.pools
        ]
        for each in self.pools:
            for at_ms in range(LAST_MS):
                used = sum(load.containers for load in each.reserved if load.from_ms <= at_ms < load.until_ms)
                assert used <= each.capacity, "a pool is overbooked"
                costs = used * each.cost_mtokens * 3600
                assert each.hourly_mtokens is None or costs <= each.hourly_mtokens, "over the hourly budget"

    def same_in_any_order(self, options: list[PlacementOption], deadline_at_ms: int) -> None:
        found = place(options, self.pools, self.now_ms, deadline_at_ms)
        mixed, pools = list(options), list(self.pools)
        self.chance.shuffle(mixed)
        self.chance.shuffle(pools)
        assert place(mixed, pools, self.now_ms, deadline_at_ms) == found, "the order of options matters"

    def every_instant(self, options: list[PlacementOption], deadline_at_ms: int) -> tuple[int, int] | None:
        """Return cost and start of the best of all instants, by counting."""
        found = []
        for pool in self.pools:
            for option in options:
                if pool.kinds and option.kind not in pool.kinds:
                    continue
                for at_ms in range(self.now_ms, deadline_at_ms - option.upper_ms + 1):
                    if self.fits(pool, option, at_ms):
                        found.append((cost_of(pool, option), at_ms))
                        break
        return min(found, default=None)

    def fits(self, pool: PlacementPool, option: PlacementOption, from_ms: int) -> bool:
        for at_ms in range(from_ms, from_ms + option.upper_ms):
            used = sum(load.containers for load in pool.reserved if load.from_ms <= at_ms < load.until_ms)
            used += option.containers
            costs = used * pool.cost_mtokens * 3600
            if used > pool.capacity or (pool.hourly_mtokens is not None and costs > pool.hourly_mtokens):
                return False
        return True

    def would_do(self, options: list[PlacementOption], why: NothingFits) -> None:
        """The deadline that is named would do, and one that is 1 ms earlier would not."""
        if why.first_finish_at_ms is None:
            assert self.every_instant(options, self.now_ms + 10 * LAST_MS) is None
            return
        assert place(options, self.pools, self.now_ms, why.first_finish_at_ms).placed is not None
        assert place(options, self.pools, self.now_ms, why.first_finish_at_ms - 1).placed is None


@pytest.mark.parametrize("seed", SEEDS)
def test_placement_keeps_its_laws(seed: int) -> None:
    PlacementStory(seed).play()


OTHERWISE = {
    "waiting": OrionChoices(waiting="never"),
    "ends": OrionChoices(ends="before"),
    "unplaceable": OrionChoices(unplaceable="best_effort"),
}


@pytest.mark.parametrize("reading", list(OTHERWISE))
@pytest.mark.parametrize("seed", SEEDS)
def test_read_otherwise_pools_hold_too_and_nothing_is_cheaper_than_ours(seed: int, reading: str) -> None:
    story, choices = PlacementStory(seed), OTHERWISE[reading]
    for _ in range(APPLICATIONS):
        options, deadline_at_ms = story.options(), story.now_ms + story.chance.randint(1, 60)
        ours = place(options, story.pools, story.now_ms, deadline_at_ms).placed
        found = place(options, story.pools, story.now_ms, deadline_at_ms, choices)
        placed = found.placed
        if placed is not None and found.why is None:
            assert placed.finish_at_ms <= deadline_at_ms
            assert ours is not None
            assert ours.cost_mtokens <= placed.cost_mtokens
        elif placed is not None:
            assert (reading, ours) == ("unplaceable", None)
            assert found.why is not None
            assert deadline_at_ms < placed.finish_at_ms == found.why.first_finish_at_ms
        if placed is not None:
            story.reserve(placed.pool, placed.option, placed.start_at_ms)
        story.now_ms += story.chance.randint(0, 15)


class _AtTheStart(Profile):
    """Looks at the beginning of a run alone."""

    def least_free(self, from_ms: int, until_ms: int) -> int:
        return self.free_at(from_ms)


def _start_alone(at, option, start_at_ms, deadline_at_ms, choices):
    return WHY_NOT(at._replace(free=_AtTheStart(*at.free)), option, start_at_ms, deadline_at_ms, choices)


def _by_prediction(at, option, start_at_ms, deadline_at_ms, choices):
    hopeful = msgspec.structs.replace(option, upper_ms=option.predicted_ms)
    return WHY_NOT(at, hopeful, start_at_ms, deadline_at_ms, choices)


def _for_free(at, option, start_at_ms, deadline_at_ms, choices):
    pool = msgspec.structs.replace(at.pool, hourly_mtokens=None)
    return WHY_NOT(at._replace(pool=pool), option, start_at_ms, deadline_at_ms, choices)


def _now_alone(pool, now_ms, choices):
    return POOLED(pool, now_ms, choices)._replace(starts_ms=(now_ms,))


WHY_NOT, POOLED = orion.why_not, orion.pool_now
BUGS: dict[str, tuple[str, Callable[..., object]]] = {
    "room is looked for at the start alone": ("why_not", _start_alone),
    "the prediction is taken for the bound": ("why_not", _by_prediction),
    "nobody looks at the budget": ("why_not", _for_free),
    "nobody waits": ("pool_now", _now_alone),
    "the first that fits is taken": ("_placed_key", lambda placed: 0),
    "options stay in their order": ("_option_key", lambda option: 0),
}


@pytest.mark.parametrize("bug", list(BUGS))
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, instead = BUGS[bug]
    monkeypatch.setattr(orion, name, instead)
    with pytest.raises(AssertionError):
        _on_all_seeds()


def _on_all_seeds() -> None:
    for seed in SEEDS:
        PlacementStory(seed).play()


# --- by hand --------------------------------------------------------------------------------------------

SLOW, FAST = PlacementOption("spark", 1, 100, 110), PlacementOption("spark", 4, 40, 44)
POOL = PlacementPool("spark", 4, ("spark",))
HELD = Load("other", 3, 0, 50)
CASES = [
    # deadline, reserved, placed (containers, start), claim
    (200, (), (1, 0), "the cheaper one: 100 against 160"),
    (100, (), (4, 0), "in a hurry the dearer one"),
    (100, (HELD,), (4, 50), "it waits until its room is free"),
    (93, (HELD,), None, "that would be too late"),
    (43, (), None, "nothing is so fast"),
]


@pytest.mark.parametrize(
    ("deadline_at_ms", "reserved", "expected", "claim"), CASES, ids=[row[3] for row in CASES]
)
def test_placement_by_hand(deadline_at_ms, reserved, expected, claim) -> None:
    pool = msgspec.structs.replace(POOL, reserved=reserved)
    placed = place([SLOW, FAST], [pool], 0, deadline_at_ms).placed
    assert (None if placed is None else (placed.option.containers, placed.start_at_ms)) == expected


def test_what_would_do_is_told_and_why_each_was_not_taken() -> None:
    pool = msgspec.structs.replace(POOL, reserved=(HELD,))
    found = place([SLOW, FAST], [pool], 0, 93)
    assert found.why == NothingFits(94)
    nearest = found.not_taken[0]
    assert (nearest.option.containers, nearest.why) == (4, NoRoomThroughout(4, 1))


def test_as_printed_arrivals_do_not_matter() -> None:
    """Reading ``literal``: nobody asks what is free, so all start at once, in one pool of four."""
    pool = msgspec.structs.replace(POOL, reserved=(Load("other", 4, 0, 500),))
    assert place([FAST], [pool], 0, 60).placed is None
    literal = place([FAST], [pool], 0, 60, OrionChoices(capacity="none")).placed
    assert literal is not None
    assert literal.start_at_ms == 0


def test_never_waiting_and_a_budget_of_each_application_are_readings() -> None:
    pool = msgspec.structs.replace(POOL, reserved=(HELD,), hourly_mtokens=4 * 3_600_000)
    assert place([FAST], [pool], 0, 100, OrionChoices(waiting="never")).placed is None
    tight = msgspec.structs.replace(pool, capacity=9, hourly_mtokens=5 * 3_600_000)
    assert place([FAST], [tight], 0, 60).placed is None
    assert place([FAST], [tight], 0, 60, OrionChoices(budget="application")).placed is not None


def test_ends_up_to_the_start_of_what_was_placed_later_are_no_starts_if_line_21_is_read_as_printed() -> None:
    """A (3 of 4) ends at 50, B (4) runs from 60 to 90 and was placed behind it: line 21 dropped 50."""
    pool = msgspec.structs.replace(POOL, reserved=(HELD, Load("b", 4, 60, 90)))
    short = PlacementOption("spark", 2, 10, 10)
    literally = OrionChoices(ends="before")
    for reserved, expected in ((pool.reserved, (50, 90)), (pool.reserved[::-1], (50, 50))):
        at = msgspec.structs.replace(pool, reserved=reserved)
        starts = [place([short], [at], 0, 200, each).placed for each in (OrionChoices(), literally)]
        assert tuple(each.start_at_ms for each in starts if each is not None) == expected


def test_what_cannot_end_in_time_is_placed_where_it_ends_first_if_null_is_a_best_effort() -> None:
    pool = msgspec.structs.replace(POOL, reserved=(HELD,))
    effort = OrionChoices(unplaceable="best_effort")
    late = place([SLOW, FAST], [pool], 0, 93, effort)
    assert late.why == NothingFits(94)
    assert late.placed is not None
    assert (late.placed.option, late.placed.start_at_ms, late.placed.finish_at_ms) == (FAST, 50, 94)
    in_time = place([SLOW, FAST], [pool], 0, 94, effort)
    assert in_time == place([SLOW, FAST], [pool], 0, 94)
    full = msgspec.structs.replace(pool, capacity=3)
    never = msgspec.structs.replace(effort, waiting="never")
    assert place([FAST], [full], 0, 93, effort).placed is None  # four never fit
    assert place([SLOW], [full], 0, 93, never).placed is None
    assert place([SLOW], [full], 0, 93, effort).placed is not None


def test_the_pool_with_the_fewest_applications_is_taken_whatever_it_takes_there() -> None:
    busy = msgspec.structs.replace(POOL, capacity=8, reserved=(HELD, Load("y", 1, 0, 9)))
    other = PlacementPool("flink", 3, ("flink",), reserved=(Load("x", 2, 0, 9),))
    options = [SLOW, FAST, PlacementOption("flink", 2, 900, 999), PlacementOption("flink", 1, 5, 5)]
    placed = least_loaded(options, [busy, other], 0)
    assert placed is not None
    assert (placed.pool, placed.option.containers, placed.start_at_ms) == ("flink", 1, 0)
    waits = least_loaded([FAST], [msgspec.structs.replace(POOL, reserved=(HELD,))], 0)
    assert waits is not None
    assert waits.start_at_ms == 50
    assert least_loaded([FAST], [other], 0) is None
