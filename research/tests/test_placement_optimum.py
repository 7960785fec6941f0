"""The offline optimum of small sets: its plan can be done, nothing better can, and one too low is noticed."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from yarn_research.papers.orion.bound_figure import figure_bound
from yarn_research.papers.orion.paper_orion import FIGURES, paper_orion
from yarn_research.placement import placement_optimum
from yarn_research.placement.placement_optimum import STEP_MS, PlacementSet, drawn, optimum, reached
from yarn_research.placement.placement_replay import MECHANISMS
from yarn_research.placement.placement_set import options_of
from yarnctl.deciding.admission.mechanisms.orion import Placed, PlacementPool, cost_of
from yarnctl.errors import BadInput

SETS = 40


def used_at(placed: list[Placed], pool: str, at_ms: int) -> int:
    return sum(
        each.option.containers
        for each in placed
        if each.pool == pool and each.start_at_ms <= at_ms < each.finish_at_ms
    )


@pytest.mark.parametrize("seed", range(SETS))
def test_what_the_program_plans_can_be_done(seed: int) -> None:
    drawn_set = drawn(seed)
    best = optimum(drawn_set)
    placed = [each for each in best.placed if each is not None]
    for submitted, each in zip(drawn_set.submitted, best.placed, strict=True):
        if each is not None:
            assert each.option in options_of(submitted.app, 4, 1.0)
            assert each.finish_at_ms == each.start_at_ms + each.option.predicted_ms
            assert submitted.at_ms <= each.start_at_ms
            assert each.finish_at_ms <= submitted.deadline_at_ms
    for pool in drawn_set.pools:
        for at_ms in range(0, 60 * STEP_MS, STEP_MS):
            assert used_at(placed, pool.name, at_ms) <= pool.capacity
    assert (best.met, best.cost_mtokens) == (len(placed), sum(each.cost_mtokens for each in placed))


def every_order(drawn_set: PlacementSet) -> tuple[int, int]:
    """Return the most met and their least cost: all orders and options, each as early as there is room."""
    best = (0, 0)

    def go_on(placed: list[Placed], left: list[int]) -> None:
        nonlocal best
        best = max(best, (len(placed), -sum(each.cost_mtokens for each in placed)))
        for number in left:
            submitted = drawn_set.submitted[number]
            for pool in drawn_set.pools:
                for option in options_of(submitted.app, pool.capacity, 1.0):
                    if (
                        option.kind in pool.kinds
                        and (found := earliest(placed, pool, option, submitted.at_ms)).finish_at_ms
                        <= submitted.deadline_at_ms
                    ):
                        go_on([*placed, found], [each for each in left if each != number])

    go_on([], list(range(len(drawn_set.submitted))))
    return best[0], -best[1]


def earliest(placed: list[Placed], pool: PlacementPool, option, from_ms: int) -> Placed:
    start_ms = from_ms
    while True:
        instants = range(start_ms, start_ms + option.predicted_ms, STEP_MS)
        if all(used_at(placed, pool.name, at_ms) + option.containers <= pool.capacity for at_ms in instants):
            return Placed(pool.name, option, start_ms, start_ms + option.predicted_ms, cost_of(pool, option))
        start_ms += STEP_MS


def crowded(seed: int) -> PlacementSet:
    """Return three applications of a set in one pool, so that they are in each other's way."""
    submitted, pools = drawn(seed)
    narrow = tuple(msgspec.structs.replace(pool, capacity=2) for pool in pools[:1])
    kind = narrow[0].name
    return PlacementSet(tuple(each for each in submitted if kind in each.app.slower)[:3], narrow)


@pytest.mark.parametrize("seed", range(SETS))
def test_the_program_is_as_good_as_every_order_and_option(seed: int) -> None:
    drawn_set = crowded(seed)
    if drawn_set.submitted:
        assert optimum(drawn_set)[:2] == every_order(drawn_set)


def test_nothing_in_time_is_an_optimum_of_none() -> None:
    submitted, pools = drawn(0)
    hopeless = tuple(each._replace(app=each.app._replace(deadline_s=1)) for each in submitted)
    found = optimum(PlacementSet(hopeless, pools))
    assert (found.met, found.cost_mtokens, set(found.placed)) == (0, 0, {None})


def test_nobody_is_above_the_optimum_and_the_gap_is_told() -> None:
    figure = figure_bound(sets=SETS)
    assert all(claim.holds for claim in figure.claims), figure.claims
    assert [each.label for each in figure.rows[::2]] == list(MECHANISMS)
    gaps = [optimum(drawn(seed)).met - reached(drawn(seed), "orion").met for seed in range(SETS)]
    assert figure.rows[0].ours == pytest.approx(sum(gaps) / SETS, abs=5e-4)
    assert max(gaps) > 0, "these sets are too easy to tell an optimum from a greedy answer"


def _narrower(drawn_set, columns, *, bounded):
    pools = tuple(msgspec.structs.replace(pool, capacity=pool.capacity - 1) for pool in drawn_set.pools)
    return CONSTRAINTS(drawn_set._replace(pools=pools), columns, bounded=bounded)


def _at_once(drawn_set):
    return [each for each in COLUMNS(drawn_set) if each.start_at_ms == drawn_set.submitted[each.number].at_ms]


def _never_last(drawn_set):
    return [
        each
        for each in COLUMNS(drawn_set)
        if each.placed.finish_at_ms < drawn_set.submitted[each.number].deadline_at_ms
    ]


def _dearest(costs, matrix, most, least_met):
    chosen, value = SOLVED(costs if (costs < 0).all() else -costs, matrix, most, least_met)
    return chosen, value


COLUMNS, CONSTRAINTS = placement_optimum._columns, placement_optimum._constraints
SOLVED = placement_optimum._solved
BUGS: dict[str, tuple[str, Callable[..., object]]] = {
    "a container of each pool is forgotten": ("_constraints", _narrower),
    "nobody waits": ("_columns", _at_once),
    "a deadline is no end that is in time": ("_columns", _never_last),
    "the dearest of all ways is taken": ("_solved", _dearest),
}


@pytest.mark.parametrize("bug", list(BUGS))
def test_an_optimum_that_is_too_low_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, instead = BUGS[bug]
    monkeypatch.setattr(placement_optimum, name, instead)
    assert not all(claim.holds for claim in figure_bound(sets=SETS).claims)


def test_an_optimum_that_is_too_high_is_noticed() -> None:
    """Pools without end: some set of those above has another answer then."""
    assert any(
        optimum(crowded(seed), bounded=False)[:2] != every_order(crowded(seed)) for seed in range(SETS)
    )


def test_the_bound_is_asked_for_by_its_name_and_needs_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "bound" not in FIGURES
    monkeypatch.setattr(placement_optimum, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match="scipy is not installed"):
        paper_orion("bound")
