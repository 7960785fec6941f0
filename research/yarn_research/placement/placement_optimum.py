"""The most deadlines of a small set that can be met offline, at the least cost: an integer program (HiGHS).

Law: exact. Arrivals and times are multiples of ``STEP_MS``, and moving each start to the left until it meets
its arrival or an end keeps a schedule possible; so some best schedule starts on this grid, and the program
over its instants has the optimum. Predictions are right here: what is planned is what happens.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from yarn_research.placement.placement_replay import Mechanism, PlacementReplay
from yarn_research.placement.placement_set import AppSpec, Submitted, options_of
from yarnctl.deciding.admission.mechanisms.orion import (
    OURS,
    OrionChoices,
    Placed,
    PlacementPool,
    cost_of,
)
from yarnctl.deciding.admission.placement_options import PlacementOption
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

STEP_MS = 10_000
POINT = 0.5
"""``late_ratio`` of a replay whose bounds are the predictions."""
KINDS = ("flink", "spark", "tensorflow")
PRICES_MTOKENS = (500, 1000, 2000)


class PlacementSet(NamedTuple):
    """Applications in the order of their arrival, and pools."""

    submitted: tuple[Submitted, ...]
    pools: tuple[PlacementPool, ...]


class Reached(NamedTuple):
    """Met deadlines, and what those cost that met theirs; ``placed``: each application's (None: not met)."""

    met: int
    cost_mtokens: int
    placed: tuple[Placed | None, ...]


def drawn(seed: int) -> PlacementSet:
    """Return 2 to 6 applications on two or three pools of 2 to 4 containers (research/notes/paper.md, Bound)."""
    chance = random.Random(seed)
    kinds = KINDS[: chance.randint(2, 3)]
    pools = tuple(
        PlacementPool(kind, chance.randint(2, 4), (kind,), chance.choice(PRICES_MTOKENS)) for kind in kinds
    )
    submitted, at_ms = list[Submitted](), 0
    for number in range(chance.randint(2, 6)):
        at_ms += STEP_MS * chance.randint(0, 3)
        exists = chance.sample(kinds, chance.randint(1, len(kinds)))
        times = {pool.name: _times_ms(chance, pool.capacity) for pool in pools if pool.name in exists}
        deadline_s = STEP_MS * chance.randint(2, 14) // 1000
        app = AppSpec(f"application-{number}", deadline_s, dict.fromkeys(times, 1.0), times)
        submitted.append(Submitted(app, at_ms, 1.0))
    return PlacementSet(tuple(submitted), pools)


def _times_ms(chance: random.Random, most: int) -> tuple[int, ...]:
    """Return the times with 1, 2, ... containers: each up to three steps less than the one before."""
    steps = [chance.randint(3, 12)]
    while len(steps) < most:
        steps.append(max(1, steps[-1] - chance.randint(0, 3)))
    return tuple(STEP_MS * each for each in steps)


def reached(drawn_set: PlacementSet, mechanism: Mechanism, choices: OrionChoices = OURS) -> Reached:
    """Return what a mechanism reaches; what it places and ends late costs nothing here."""
    runs = PlacementReplay(drawn_set.pools, mechanism, POINT, choices).play(drawn_set.submitted)
    return _reached([run.placed if run.met else None for run in runs])


def _reached(placed: Sequence[Placed | None]) -> Reached:
    met = [each for each in placed if each is not None]
    return Reached(len(met), sum(each.cost_mtokens for each in met), tuple(placed))


class _Column(NamedTuple):
    """One 0-1 variable: an application's option in a pool from a start on."""

    number: int
    pool: PlacementPool
    option: PlacementOption
    start_at_ms: int

    @property
    def placed(self) -> Placed:
        finish_at_ms = self.start_at_ms + self.option.predicted_ms
        cost = cost_of(self.pool, self.option)
        return Placed(self.pool.name, self.option, self.start_at_ms, finish_at_ms, cost)


def optimum(drawn_set: PlacementSet, *, bounded: bool = True) -> Reached:
    """Return the most deadlines that can be met, and of all ways the one of least cost.

    Not ``bounded``: pools have no end, as in the replay of ``literal``. Raises BadInput without scipy.
    """
    if find_spec("scipy") is None:
        raise BadInput("the offline optimum", "scipy is not installed", "pip install 'yarnctl[prediction]'")
    columns = _columns(drawn_set)
    if not columns:
        return _reached([None] * len(drawn_set.submitted))
    matrix, most = _constraints(drawn_set, columns, bounded=bounded)
    costs = np.array([float(each.placed.cost_mtokens) for each in columns])
    met = round(-_solved(-np.ones(len(columns)), matrix, most, 0)[1])
    chosen, _ = _solved(costs, matrix, most, met)
    placed: list[Placed | None] = [None] * len(drawn_set.submitted)
    for place in np.flatnonzero(chosen):
        placed[columns[place].number] = columns[place].placed
    found = _reached(placed)
    assert found.met == met, "the cheaper program met another number"
    return found


def _columns(drawn_set: PlacementSet) -> list[_Column]:
    """Return each start on the grid that is in time."""
    most = max(pool.capacity for pool in drawn_set.pools)
    found = []
    for number, each in enumerate(drawn_set.submitted):
        for option in options_of(each.app, most, 1.0):
            for pool in drawn_set.pools:
                if option.kind in pool.kinds:
                    last_ms = each.deadline_at_ms - option.predicted_ms
                    starts_ms = range(each.at_ms, last_ms + 1, STEP_MS)
                    found += [_Column(number, pool, option, start_ms) for start_ms in starts_ms]
    return found


def _constraints(
    drawn_set: PlacementSet, columns: Sequence[_Column], *, bounded: bool
) -> tuple[csr_array[np.float64], NDArray[np.float64]]:
    """Return the rows: each application once, each pool in each step up to its capacity."""
    from scipy.sparse import coo_array

    applications = len(drawn_set.submitted)
    steps = max(each.deadline_at_ms for each in drawn_set.submitted) // STEP_MS
    first = {pool.name: applications + place * steps for place, pool in enumerate(drawn_set.pools)}
    at_row, at_column, amount = list[int](), list[int](), list[float]()
    for place, each in enumerate(columns):
        from_step = each.start_at_ms // STEP_MS
        until_step = from_step + each.option.predicted_ms // STEP_MS
        rows = [first[each.pool.name] + step for step in range(from_step, until_step)]
        at_row += [each.number, *rows]
        at_column += [place] * (1 + len(rows))
        amount += [1.0, *([float(each.option.containers)] * len(rows))]
    most = np.full(applications + len(drawn_set.pools) * steps, np.inf)
    most[:applications] = 1
    for pool in drawn_set.pools:
        if bounded:
            most[first[pool.name] : first[pool.name] + steps] = pool.capacity
    shape = (len(most), len(columns))
    return coo_array((amount, (at_row, at_column)), shape=shape).tocsr(), most


def _solved(
    costs: NDArray[np.float64], matrix: csr_array[np.float64], most: NDArray[np.float64], least_met: int
) -> tuple[NDArray[np.bool_], float]:
    """Return what is chosen at the least cost where so many are met at least, and that cost."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    found = milp(
        costs,
        integrality=np.ones(len(costs), dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(matrix, -np.inf, most),
            LinearConstraint(np.ones(len(costs)), least_met),
        ],
        options={"mip_rel_gap": 0.0},
    )
    assert found.success, found.message
    return np.asarray(found.x) > 0.5, float(found.fun)
