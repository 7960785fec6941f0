"""Market: random histories of the daemon's market, tokens conserved and nothing served unpaid.

Law: a history is a function of its seed (``tests/property/market_histories.py``, which has the laws), and a
run has the seeds from ``--seed`` on. Exit status 1 if a law was broken; the seeds are told.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.property.market_histories import play

BATCH = 250
"""Histories in one piece of work."""


def play_batch(seeds: range) -> tuple[Counter[str], dict[int, str]]:
    """Play some histories; return what was counted in them, and the violations by seed."""
    logging.disable(logging.ERROR)
    counted, broken = Counter[str](), dict[int, str]()
    for seed in seeds:
        try:
            history = play(seed)
        except Exception as error:  # a history that breaks off is a violation, too
            broken[seed] = f"{type(error).__name__}: {str(error)[:200]}"
            continue
        counted.update(history.laws.closed.values())
        counted["charged"] += len(history.laws.charged)
        counted["crashes"] += history.crashes
    return counted, broken


def main(arguments: list[str]) -> int:
    """Run the campaign that the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak market", description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000, help="histories")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    if min(options.runs, options.workers) < 1:
        parser.error("--runs and --workers: use 1 or more")
    last = options.seed + options.runs
    batches = [range(first, min(first + BATCH, last)) for first in range(options.seed, last, BATCH)]
    counted, broken = Counter[str](), dict[int, str]()
    with ProcessPoolExecutor(options.workers) as pool:
        for number, (more, lost) in enumerate(pool.map(play_batch, batches), 1):
            counted += more
            broken |= lost
            if number % 20 == 0:
                print(f"{number * BATCH:,} histories, {len(broken)} violations", file=sys.stderr, flush=True)
    for seed, told in sorted(broken.items())[:20]:
        print(f"seed {seed}: {told}")
    figures = ", ".join(f"{count:,} {name}" for name, count in sorted(counted.items()))
    print(f"{options.runs:,} histories from seed {options.seed}, {len(broken)} violations: {figures}")
    return 1 if broken else 0
