"""The inverse query of a tree of 30 leaves in closed form, beside ORiON's integer program of a leaf by SCIP.

Law: both sides answer the same; a bench whose sides disagree stops.
"""

from __future__ import annotations

from functools import partial

from tests.unit.prediction.leaf_programs import asked, by_scip, leaves_for
from yarn_research.bench.row import Row, cpu_ms, spread
from yarnctl.prediction.model_tree import TreeLeaf
from yarnctl.prediction.options import InverseQuery, tuned_options

LEAVES, ROWS = 30, 750
QUERY_MS, LEAF_MS = 2, 100


def _keep(found: list[float | None], leaf: TreeLeaf, query: InverseQuery, time_max: float) -> None:
    found.append(by_scip(leaf, query, time_max))


def inverse_query(trees: int = 20, runs: int = 15) -> Row:
    """Ask each tree for the cheapest that is in time, of 8 numbers of containers and 18 settings."""
    ours, theirs, sizes = list[float](), list[float](), list[int]()
    for seed in range(trees):
        tree, query = asked(seed, ROWS)
        sizes.append(len(tree.leaves))
        options = tuned_options(tree, query)
        times = sorted(each.predicted for each in options)
        time_max = (times[3] + times[4]) / 2
        cheapest = min(each.containers * each.predicted for each in options if each.predicted <= time_max)
        ours += [cpu_ms(partial(tuned_options, tree, query)) for _ in range(runs)]
        found = list[float | None]()
        for leaf in leaves_for(tree, query):
            theirs.append(cpu_ms(partial(_keep, found, leaf, query, time_max)))
        if abs(min(each for each in found if each is not None) - cheapest) > 1e-6 * cheapest:
            raise SystemExit("inverse-query: the two sides disagree")
    us, them = spread(ours), spread(theirs)
    return Row(
        name="inverse-query",
        what=f"trees of {min(sizes)} to {max(sizes)} leaves, a query, beside SCIP for one leaf",
        ours=us["median"],
        baseline=them["median"],
        ratio=them["median"] / us["median"],
        target=f"<= {QUERY_MS} ms",
        holds=min(sizes) >= LEAVES and us["median"] <= QUERY_MS and them["max"] <= LEAF_MS,
        unit="ms",
        details={
            "ours_ms": us,
            "leaf_by_scip_ms": them,
            "leaves_min": min(sizes),
            "leaf_at_most_ms": LEAF_MS,
        },
    )
