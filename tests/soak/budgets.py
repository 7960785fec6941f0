"""Budgets: random histories of container lives, and whether more was lost than the rule of budgets allows.

Law: history number i of a seed is a function of both, whatever the number of workers. A loss that the
product allows against the rule (overspent), or refuses against it (rejected), ends in exit status 1 and is
told with the history's number. The rule is judged by true lifetimes (``tests/property/loss_histories.py``).
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from tests.property.loss_histories import History

BATCH = 500
MOST_TOLD = 5


class Batch(NamedTuple):
    """What a piece of work has come to; ``stories``: of histories that differ."""

    overspent: int
    rejected: int
    allowed: int
    refused: int
    stories: tuple[str, ...]


def play_batch(first: int, histories: int) -> Batch:
    overspent = rejected = allowed = refused = 0
    stories = []
    for number in range(first, first + histories):
        found = History(number).play()
        overspent, rejected = overspent + found.overspent, rejected + found.rejected
        allowed, refused = allowed + found.allowed, refused + found.refused
        if found.story:
            stories.append(f"history {number}: {found.story}")
    return Batch(overspent, rejected, allowed, refused, tuple(stories))


def main(arguments: list[str]) -> int:
    """Run the campaign that the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak budgets", description=__doc__)
    parser.add_argument("--histories", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    if min(options.histories, options.workers) < 1:
        parser.error("--histories and --workers: use 1 or more")
    begin = options.seed * 10**9
    firsts = range(begin, begin + options.histories, BATCH)
    sizes = [min(BATCH, begin + options.histories - first) for first in firsts]
    sums, stories = [0, 0, 0, 0], list[str]()
    with ProcessPoolExecutor(options.workers) as pool:
        for place, batch in enumerate(pool.map(play_batch, firsts, sizes)):
            sums = [one + other for one, other in zip(sums, batch[:4], strict=True)]
            stories += batch.stories
            if place % 20 == 19:
                print(
                    f"{(place + 1) * BATCH:,} histories: {len(stories)} differ", file=sys.stderr, flush=True
                )
    overspent, rejected, allowed, refused = sums
    print(
        f"{options.histories:,} histories, {allowed:,} losses allowed, {refused:,} refused:"
        f" {overspent} overspent, {rejected} rejected that the rule allows"
    )
    for story in stories[:MOST_TOLD]:
        print(story)
    return 1 if stories else 0
