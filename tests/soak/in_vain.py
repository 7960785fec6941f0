"""Random states carried out: which orders are in vain, and which states are missed.

    python -m tests.soak in-vain 10000 --seed 1

A state is a function of its number (``tests/property/acted_states.py``, which has the law); ``in-vain 1
--seed N`` plays the state N alone. Exit status 1 if more than 1 % of the orders are in vain.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter

from tests.property.acted_states import Acted, act

IN_VAIN_MAX_RATIO = 0.01
Z = 1.959964
"""Of the normal distribution: 95 % lie within it on both sides."""


def wilson(found: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share by Wilson's formula."""
    if not count:
        return 0.0, 1.0
    share, square = found / count, Z * Z
    middle = share + square / (2 * count)
    half = Z * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    whole = 1 + square / count
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)


def counted(counts: Counter[str], acted: Acted) -> list[str]:
    """Add a state to the counts; return its misses in words."""
    counts["states"] += 1
    counts["states with orders"] += bool(acted.orders)
    counts["orders"] += len(acted.orders)
    counts["below the guarantee"] += acted.below
    counts["in vain"] += len(acted.vain)
    counts["idle while production waits"] += acted.waits and not acted.orders
    counts["missed"] += bool(acted.missed)
    where = f"seed {acted.seed} ({', '.join(acted.features)})"
    told = []
    if acted.below:
        told.append(f"below the guarantee: {where}: {acted.below} orders")
    for vain in acted.vain:
        counts[f"in vain, {vain.fate}"] += 1
        told.append(f"in vain, {vain.fate}: {where}: {vain.order}, {vain.receiver or 'no application'}")
    if acted.missed:
        why = ", ".join(sorted(set(acted.refused.values()))) or "no refusal"
        counts[f"missed, {why}"] += 1
        told.append(f"missed, {why}: {where}: {acted.missed}; {acted.refused}")
    return told


def share(counts: Counter[str], part: str, whole: str) -> str:
    low, high = wilson(counts[part], counts[whole])
    ratio = counts[part] / max(counts[whole], 1)
    return f"{counts[part]} of {counts[whole]}, {ratio:.2%} (95 %: {low:.2%} to {high:.2%})"


def main(arguments: list[str]) -> int:
    """Play the states and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak in-vain", description=__doc__)
    parser.add_argument("states", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--labels", action="store_true", help="most clusters have a node label")
    options = parser.parse_args(arguments)
    counts = Counter[str]()
    for seed in range(options.seed, options.seed + options.states):
        for line in counted(counts, act(seed, labelled=options.labels)):
            print(line, flush=True)
        if counts["states"] % 1000 == 0:
            print(
                f"{counts['states']} states: {share(counts, 'in vain', 'orders')}",
                file=sys.stderr,
                flush=True,
            )
    print(f"{dict(sorted(counts.items()))}")
    print(f"orders in vain: {share(counts, 'in vain', 'orders')}")
    print(f"states missed: {share(counts, 'missed', 'idle while production waits')}")
    return 1 if counts["in vain"] > IN_VAIN_MAX_RATIO * counts["orders"] else 0
