"""Random trees with an inverse query, and ORiON's integer programs of it (section 5) as oracles.

HiGHS solves one program for each leaf and number of containers; SCIP, as the paper does, one for each leaf:
the number of containers is a variable, the cost containers x time is their product, time is at most D.
"""

from __future__ import annotations

import numpy as np

from yarnctl.prediction.model_tree import ModelTree, TreeLeaf, model_tree
from yarnctl.prediction.options import InverseQuery, Tunable

ABOVE = 1e-6
"""So much above an open lower end of a box is within."""


def rows_of(seed: int, count: int = 120, columns: int = 4):
    chance = np.random.default_rng(seed)
    features = np.column_stack(
        [chance.integers(1, 9, count), chance.integers(0, 2, count), chance.choice([640, 1024, 2048], count)]
        + [chance.integers(1, 5, count) for _ in range(columns - 3)]
    ).astype(float)
    steps = np.where(features[:, 0] > 4, 3.0, 1.0) * (1 + features[:, 1])
    values = steps * 1000 / features[:, 0] + features[:, 2] / 10 + chance.normal(0, 20, count)
    return features, values


def asked(seed: int, rows: int = 150) -> tuple[ModelTree, InverseQuery]:
    """Return a tree and a query: 8 numbers of containers, a switch, a word of three (one-hot), a number."""
    features, values = rows_of(seed, rows)
    chance = np.random.default_rng([seed, 1])
    word = chance.integers(0, 3, len(values))
    hot = np.eye(3)[word]
    both = np.column_stack([features, hot])
    tree = model_tree(both, values * (1 + 0.3 * word) * (1 + 0.2 * (features[:, 3] > 2)))
    tunables = (
        Tunable("compress", (1,), ((0.0,), (1.0,))),
        Tunable("memory", (2,), ((640.0,), (1024.0,), (2048.0,))),
        Tunable("codec", (4, 5, 6), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))),
    )
    return tree, InverseQuery((0, 0, 0, 3.0, 0, 0, 0), 0, tuple(range(1, 9)), tunables)


def _given(query: InverseQuery) -> list[int]:
    """Return the columns that are neither tuned nor the number of containers."""
    tuned = {column for each in query.tunables for column in each.columns}
    return [place for place in range(len(query.features)) if place not in {*tuned, query.containers_column}]


def _holds(leaf: TreeLeaf, query: InverseQuery) -> bool:
    columns = _given(query)
    row = np.array(query.features)[columns]
    return bool(((row > leaf.above[columns]) & (row <= leaf.until[columns])).all())


def leaves_for(tree: ModelTree, query: InverseQuery) -> list[TreeLeaf]:
    """Return the leaves that the given columns, and some number of containers, are in: one program each."""
    return [leaf for leaf in tree.leaves if _holds(leaf, query) and _numbers(leaf, query)]


def _numbers(leaf: TreeLeaf, query: InverseQuery) -> list[int]:
    column = query.containers_column
    return [each for each in query.containers if leaf.above[column] < each <= leaf.until[column]]


def _given_part(leaf: TreeLeaf, query: InverseQuery) -> float:
    columns = _given(query)
    return leaf.intercept + float(np.array(query.features)[columns] @ leaf.weights[columns])


def by_highs(tree: ModelTree, query: InverseQuery) -> dict[int, float]:
    """One program for each leaf and number: a 0-1 variable for each choice, the box as constraints."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # a second of every worker, if at the top

    starts = np.cumsum([0, *(len(each.choices) for each in query.tunables)])
    column = query.containers_column
    found = {}
    for count in query.containers:
        best = np.inf
        for leaf in leaves_for(tree, query._replace(containers=(count,))):
            costs, constraints = np.zeros(starts[-1]), []
            for place, tunable in enumerate(query.tunables):
                mine = slice(starts[place], starts[place + 1])
                pick = np.zeros(starts[-1])
                pick[mine] = 1
                constraints.append(LinearConstraint(pick, 1, 1))
                for number, tuned in enumerate(tunable.columns):
                    values = np.zeros(starts[-1])
                    values[mine] = [each[number] for each in tunable.choices]
                    costs += leaf.weights[tuned] * values
                    constraints.append(LinearConstraint(values, leaf.above[tuned] + ABOVE, leaf.until[tuned]))
            whole = np.ones(starts[-1])
            solved = milp(costs, integrality=whole, bounds=Bounds(0, 1), constraints=constraints)
            if solved.status == 0:
                line = _given_part(leaf, query) + count * leaf.weights[column] + float(solved.fun)
                best = min(best, float(np.clip(line, leaf.least, leaf.most)))
        found[count] = best
    return found


def by_scip(leaf: TreeLeaf, query: InverseQuery, time_max: float) -> float | None:
    """Return the least containers x time within one of ``leaves_for`` (None: no choice is in time)."""
    from pyscipopt import Model, quicksum

    column, inside = query.containers_column, _numbers(leaf, query)
    model = Model()
    model.hideOutput()
    model.setParam("numerics/feastol", 1e-9)
    count = model.addVar(vtype="I", lb=min(inside), ub=max(inside))
    line = _given_part(leaf, query) + float(leaf.weights[column]) * count
    for tunable in query.tunables:
        picks = [model.addVar(vtype="B") for _ in tunable.choices]
        model.addCons(quicksum(picks) == 1)
        for number, tuned in enumerate(tunable.columns):
            value = quicksum(each[number] * pick for each, pick in zip(tunable.choices, picks, strict=True))
            if np.isfinite(leaf.above[tuned]):
                model.addCons(value >= float(leaf.above[tuned]) + ABOVE)
            if np.isfinite(leaf.until[tuned]):
                model.addCons(value <= float(leaf.until[tuned]))
            line += float(leaf.weights[tuned]) * value
    # The time is the line, and the leaf's most where the line is above it: then ``capped`` is 1.
    time = model.addVar(lb=leaf.least, ub=leaf.most)
    model.addCons(time <= time_max)
    capped = model.addVar(vtype="B")
    model.addCons(time >= line - _highest(leaf, query) * capped)
    model.addCons(time >= leaf.least + (leaf.most - leaf.least) * capped)
    cost = model.addVar(lb=0)
    model.addCons(cost >= count * time)
    model.setObjective(cost)
    model.optimize()
    status = model.getStatus()
    assert status in ("optimal", "infeasible"), status
    return float(model.getObjVal()) if status == "optimal" else None


def _highest(leaf: TreeLeaf, query: InverseQuery) -> float:
    """Return by how much a line may be above the least of its leaf, at most."""
    largest = np.zeros(len(query.features))
    largest[query.containers_column] = max(query.containers)
    for each in query.tunables:
        largest[list(each.columns)] = np.abs(each.choices).max(axis=0)
    return float(abs(_given_part(leaf, query)) + np.abs(leaf.weights) @ largest + abs(leaf.least))
