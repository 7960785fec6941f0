"""``python -m tests.cluster.judging``: what ``bench-hadoop.json`` shows, as figures against the targets.

Law: nothing is measured here; every figure is a median of runs that the file lists, and a scheme without runs
is no figure.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WHOLE_CLUSTER = ("soft-cap", "yarn-defaults", "yarn-tuned")
"""The other schemes that let research use all there is."""

COMPARED = ("production-alone", "research-alone", "hard-cap", *WHOLE_CLUSTER, "yarnctl")
"""What must have run often enough; the file may hold other ways of running yarnctl beside them."""


def figures(document: dict[str, Any]) -> dict[str, Any]:
    """Return medians against each job alone, what was lost, and whether every output was the same."""
    schemes = document["schemes"]
    alone = {
        name: statistics.median(schemes[f"{name}-alone"][f"{name}_s"]) for name in ("production", "research")
    }

    def ratio(scheme: str, name: str) -> float:
        return round(statistics.median(schemes[scheme][f"{name}_s"]) / alone[name], 3)

    least = min(ratio(scheme, "production") for scheme in WHOLE_CLUSTER)
    return {
        "runs": min(len(schemes[name]["killed"]) for name in COMPARED),
        "production_ratio": ratio("yarnctl", "production"),
        "production_below_others": ratio("yarnctl", "production") < least,
        "production_others_least_ratio": least,
        "research_ratio": ratio("yarnctl", "research"),
        "research_ratio_of": {
            scheme: ratio(scheme, "research") for scheme in schemes if "research_s" in schemes[scheme]
        },
        "production_ratio_of": {
            scheme: ratio(scheme, "production") for scheme in schemes if "production_s" in schemes[scheme]
        },
        "groups_twice": sum(schemes["yarnctl"]["groups_twice"]),
        "groups_twice_of": {scheme: found["groups_twice"] for scheme, found in schemes.items()},
        "overhead_s": _overhead(schemes, "yarnctl"),
        "overhead_yarn_tuned_s": _overhead(schemes, "yarn-tuned"),
        "identical": all(found["identical"] for found in schemes.values()),
        "am_wait_s": round(statistics.median(document["am_wait_s"]), 2),
    }


def _overhead(schemes: dict[str, Any], scheme: str) -> float | None:
    """Return what all interruptions of a run cost, s (the runs' median); None where there was none.

    Their sum, because a kill is cheap where the attempt has only just begun again.
    """
    costs = [sum(run) for run in schemes[scheme]["overhead_s"] if run]
    return round(statistics.median(costs), 2) if costs else None


def main(arguments: Sequence[str]) -> int:
    """Print the figures as JSON."""
    path = Path(arguments[0] if arguments else "bench-hadoop.json")
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        print(f"error: {path} is not there; make bench-hadoop writes it", file=sys.stderr)
        return 2
    print(json.dumps(figures(document), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
