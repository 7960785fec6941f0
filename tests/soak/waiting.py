"""One true sentence over many steps: why production waits, in random clusters, read by a plain oracle.

    python -m tests.soak waiting --steps 100000 --seed 1

The worlds and the oracle are those of ``tests.property.test_why_waiting``. Exit status 1 at the first lie.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence

from tests.property.test_why_waiting import found_lies

WORLDS_OF_A_SEED = 1_000_000
"""The worlds of two seeds are never the same."""


def main(arguments: Sequence[str]) -> int:
    """Play and print how often each kind of reason was given, as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak waiting", description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args(arguments)
    kinds: Counter[str] = Counter()
    lies = found_lies(told.steps, kinds, (told.seed - 1) * WORLDS_OF_A_SEED + 1)
    print(json.dumps({"steps": told.steps, "seed": told.seed, **dict(sorted(kinds.items())), "lies": lies}))
    return 1 if lies else 0
