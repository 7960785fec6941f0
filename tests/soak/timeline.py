"""``python -m tests.soak timeline --cases N --seed S``: the timeline, compared with the plain computation."""

from __future__ import annotations

import argparse

from tests.property.test_timeline import LAWS, campaign


def main(arguments: list[str]) -> int:
    """Compare so many drawn cases; AssertionError at the first that differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak timeline")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args(arguments)
    seeds = range(told.seed, told.seed + -(-told.cases // len(LAWS)))
    print(f"{campaign(seeds)} cases, no difference")
    return 0
