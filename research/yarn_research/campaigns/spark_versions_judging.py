"""What other versions of Spark and Hadoop show: for each pair, which of the soak's claims hold.

``python -m yarn_research.campaigns.spark_versions_judging FILE...`` judges kept files of ``make bench-spark-versions``.

Law: pure but for that. A run that failed counts against the pair.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from yarn_research.campaigns.spark_soak_judging import had_time, is_small, most_tasks
from yarnctl.command_line import complain, print_json
from yarnctl.errors import BadInput

RUNS = 8


def pair_of(told: dict[str, Any]) -> dict[str, Any]:
    """Return what the runs of one pair show; ``holds``: all that is asked of it."""
    runs, versions = told["runs"], told["head"]["versions"]
    ended = [run for run in runs if "failed" not in run]
    asked = [each for run in ended for each in run["executors_asked"]]
    failures = sum(run["failures"][kind] for run in ended for kind in ("tasks", "executors", "excluded"))
    found: dict[str, Any] = {
        "spark": versions["spark"],
        "hadoop": versions["hadoop"],
        "runs": len(runs),
        "not_identical": len(runs) - sum(run["identical"] for run in ended),
        "did_not_leave": sum(not each["gone_s"] for each in asked),
        "too_much_twice": sum(run["twice"]["tasks"] > most_tasks(run) for run in ended),
        "failures": failures,
        "left_small": sum(had_time(run) and is_small(run) for run in ended),
    }
    wrong = ("not_identical", "did_not_leave", "too_much_twice", "failures", "left_small")
    return {**found, "holds": len(runs) >= RUNS and not any(found[name] for name in wrong)}


class KeptPair(msgspec.Struct, frozen=True):
    """What is read of a kept file."""

    head: dict[str, Any]
    runs: list[dict[str, Any]]


def main(arguments: Sequence[str]) -> int:
    """Judge kept files; print what came out as JSON."""
    try:
        kept = [msgspec.json.decode(Path(file).read_bytes(), type=KeptPair) for file in arguments]
        first = kept[0]
    except (OSError, ValueError, IndexError, msgspec.MsgspecError) as error:
        problem = BadInput("FILE", f"holds no runs: {error}", "name research/records/spark-versions-...json")
        return complain(str(problem), problem.exit_status)
    pairs = [pair_of({"head": each.head, "runs": each.runs}) for each in kept]
    hold = sum(pair["holds"] for pair in pairs)
    commits = [each.head["commit"] for each in kept]
    named = ", ".join(Path(each).stem for each in arguments)
    print_json(
        {"campaign": named, "commit": first.head["commit"], "commits": commits, "pairs": pairs, "hold": hold}
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
