"""Replay: random histories of the controller's property world, each decided again from its journal.

Law: the kept examples are played first, then random histories until ``--steps`` observations have been
shown. The seed and a history's number name it, whatever the number of workers. A difference (in a record, or
in what the ledger knows) ends in exit status 1 and is told as small as it can be made, in the form of
``tests/unit/deciding/shelf``, where it is to be kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from typing import NamedTuple

import msgspec

from tests.unit.deciding.controller_world import kept
from tests.unit.deciding.random_histories import draw, problem, smaller

BATCH = 250
"""Histories in one piece of work."""
MOST_TOLD = 5


class Batch(NamedTuple):
    """What a piece of work has come to; ``differing`` are the numbers of histories."""

    histories: int
    steps: int
    records: int
    kinds: Counter[str]
    differing: list[int]


class Summary(msgspec.Struct, kw_only=True):
    """What a campaign reports: ``steps`` are observations shown, ``records`` those decided again."""

    seed: int
    kept: int
    histories: int
    steps: int
    records: int
    by_kind: dict[str, int]
    differences: int
    different: list[dict[str, object]]
    took_s: float


def play_batch(seed: int, first: int) -> Batch:
    steps, kinds, differing = 0, Counter[str](), []
    for number in range(first, first + BATCH):
        history = draw(seed, number)
        steps += len(history.moves)
        if problem(history, kinds):
            differing.append(number)
    return Batch(BATCH, steps, kinds.total(), kinds, differing)


def campaign(steps: int, seed: int, workers: int, say: Callable[[str], object]) -> Summary:
    """Play the shelf and at least ``steps`` random steps."""
    began_s = time.monotonic()
    shelf = kept()
    different: list[dict[str, object]] = [
        {"kept": name, "story": story} for name, one in shelf.items() if (story := problem(one))
    ]
    histories, shown, kinds, differing = 0, 0, Counter[str](), []
    with ProcessPoolExecutor(workers) as pool:
        numbers = count(0, BATCH)
        waiting = [pool.submit(play_batch, seed, next(numbers)) for _ in range(2 * workers)]
        while shown < steps:
            batch = waiting.pop(0).result()  # in the order of the numbers, so that the sum is the same
            waiting.append(pool.submit(play_batch, seed, next(numbers)))
            histories, shown = histories + batch.histories, shown + batch.steps
            kinds += batch.kinds
            differing += batch.differing
            if histories % (20 * BATCH) == 0:
                say(f"{shown:,} of {steps:,} steps, {histories:,} histories, {len(differing)} differ")
        pool.shutdown(cancel_futures=True)
    for number in differing[:MOST_TOLD]:
        small = smaller(draw(seed, number))
        told = msgspec.to_builtins(small)
        different.append({"number": number, "story": problem(small), "example": told})
    return Summary(
        seed=seed, kept=len(shelf), histories=histories, steps=shown, records=kinds.total(),
        by_kind=dict(sorted(kinds.items())),
        differences=len(differing) + sum("kept" in one for one in different), different=different,
        took_s=round(time.monotonic() - began_s, 1),
    )  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run the campaign that the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak replay", description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="observations to show, at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="the summary as JSON on standard output")
    options = parser.parse_args(arguments)
    if min(options.steps, options.workers) < 1:
        parser.error("--steps and --workers: use 1 or more")
    summary = campaign(
        options.steps, options.seed, options.workers, lambda line: print(line, file=sys.stderr, flush=True)
    )
    if options.json:
        print(json.dumps(msgspec.to_builtins(summary), indent=2))
    else:
        print(
            f"{summary.kept} kept examples, {summary.steps:,} steps in {summary.histories:,} histories,"
            f" {summary.records:,} records in {summary.took_s} s: {summary.differences} differences"
        )
        for one in summary.different:
            print(json.dumps(one))
    return 1 if summary.differences else 0
