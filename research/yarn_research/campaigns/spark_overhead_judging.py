"""What the settings by which executors can leave cost: the claim of research/notes/spark.md, from a kept file.

``python -m yarn_research.campaigns.spark_overhead_judging FILE`` judges one.

Law: pure but for that. Ratios are of pairs; their median's interval is a percentile bootstrap of pairs.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

from yarn_research.campaigns.kept_file import tell

DRAWS, OUTER_RATIO = 10_000, 0.025


def judged(pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the median of the pairs' ratios with its 95 % interval, and how many results differ."""
    ratios = [pair["with"]["processor_s"] / pair["without"]["processor_s"] for pair in pairs]
    chance = random.Random(1)
    drawn = sorted(median(chance.choices(ratios, k=len(ratios))) for _ in range(DRAWS))
    outer = round(OUTER_RATIO * DRAWS)
    return {
        "pairs": len(ratios),
        "median": median(ratios),
        "low": drawn[outer],
        "high": drawn[-1 - outer],
        "other results": sum(pair["with"]["printed"] != pair["without"]["printed"] for pair in pairs),
    }


def main(arguments: Sequence[str]) -> int:
    """Judge a kept file; print what came out as JSON."""
    return tell(arguments, "spark-overhead", lambda held: {"claims": judged(held["pairs"])})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
