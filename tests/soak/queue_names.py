"""``python -m tests.soak queue-names``: names of queues against a plain second opinion, over random trees."""

from __future__ import annotations

import argparse

from tests.property.queue_trees import check_names


def main(arguments: list[str]) -> int:
    """Check so many trees; return 1 at the first that differs, and name its seed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak queue-names")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args(arguments)
    for seed in range(told.seed, told.seed + told.runs):
        try:
            check_names(seed)
        except AssertionError as difference:
            print(f"seed {seed}: {difference}")
            return 1
    print(f"{told.runs} trees from seed {told.seed} on: no difference")
    return 0
