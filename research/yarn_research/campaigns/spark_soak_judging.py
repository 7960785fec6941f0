"""What the soak of Spark shows: the claims of research/notes/spark.md, from the runs of its file.

``python -m yarn_research.campaigns.spark_soak_judging FILE`` judges a kept soak.

Law: pure but for that. A run that failed counts as one whose result was not identical; it is never left out.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

import msgspec

from yarn_research.campaigns.kept_file import tell

Run = dict[str, Any]
MEDIAN_S, RIGHT_RATIO, ROOM_RATIO = 3.0, 0.9, 1.25
READ_MS = 3000
"""A driver whose tasks end sooner than this after it was told to grow need not have read it."""


class SoakClaim(msgspec.Struct, frozen=True):
    """A claim and what the runs say; ``found`` is the figure that is compared with ``bound``."""

    claim: str
    bound: float
    found: float | None
    runs: int
    holds: bool


def most_tasks(run: Run) -> int:
    """Return how many reduce tasks may be begun twice: one for each core that stays, within a stage only."""
    whole = run["leaving"] in (0, run["executors"])
    return 0 if whole or run["when"] == "between" else run["executors"] - run["leaving"]


def is_right(run: Run) -> bool:
    """Return whether no more was computed twice than predicted, and of the cache just what was predicted."""
    maps = run["predicted"]["maps_again"] if run["leaving"] == run["executors"] else 0
    return (
        run["twice"]["tasks"] <= run["predicted"]["tasks_again"]
        and run["predicted"]["tasks_again"] <= most_tasks(run)
        and run["twice"]["maps"] == maps
    )


def after_rest_s(runs: Sequence[Run]) -> list[float]:
    """Return the time from order to container's end, less its longest task's rest, of each that left."""
    return [
        each["gone_s"] - each["rest_s"] for run in runs for each in run["executors_asked"] if each["gone_s"]
    ]


def had_time(run: Run) -> bool:
    """Return whether an application of a fixed number of executors went on for a while after it may grow."""
    return run["allocation"] == "static" and run["ended_ms"] - run["grown_ms"] >= READ_MS


def is_small(run: Run) -> bool:
    """Return whether the master was told last to have fewer executors than before the order."""
    return bool(run["wanted"]) and run["wanted"][-1] < run["executors"]


def room_right(runs: Sequence[Run]) -> list[bool]:
    """Return, of each executor that left, whether it was gone within its predicted time x 1.25."""
    return [
        each["gone_s"] <= each["room_in_s"] * ROOM_RATIO
        for run in runs
        for each in run["executors_asked"]
        if each["gone_s"]
    ]


def judged(runs: Sequence[Run]) -> list[SoakClaim]:
    """Return the claims in the plan's order."""
    ended = [run for run in runs if "failed" not in run]
    asked = [run for run in ended if run["leaving"]]
    same = sum(run["identical"] for run in ended)
    over = sum(run["twice"]["tasks"] > most_tasks(run) for run in ended)
    counted = sum(run["failures"]["tasks"] + run["failures"]["executors"] for run in ended)
    counted += sum(run["failures"]["excluded"] for run in ended)
    again = sum(run["stage_attempts"] > (run["when"] == "within") for run in ended)
    right = sum(map(is_right, asked)) / len(asked) if asked else None
    spans = after_rest_s(asked)
    stayed = sum(not each["gone_s"] for run in asked for each in run["executors_asked"])
    middle = round(median(spans), 3) if spans else None
    enough = len(asked) >= 60
    looked = [run for run in asked if "wanted" in run and had_time(run)]
    small = sum(map(is_small, looked)) if looked else None
    in_time = room_right(asked)
    soon = round(sum(in_time) / len(in_time), 3) if in_time else None
    return [
        SoakClaim(
            "results that differ, or runs that failed",
            0,
            len(runs) - same,
            len(runs),
            enough and same == len(runs),
        ),
        SoakClaim(
            "runs with more reduce tasks twice than cores stayed", 0, over, len(ended), enough and not over
        ),
        SoakClaim(
            "predictions of what is computed twice that were right",
            RIGHT_RATIO,
            right,
            len(asked),
            enough and right is not None and right >= RIGHT_RATIO,
        ),
        SoakClaim(
            "failures that Spark counts, and excluded hosts", 0, counted, len(ended), enough and not counted
        ),
        SoakClaim(
            "runs with more attempts at stages than orders within a stage",
            0,
            again,
            len(ended),
            enough and not again,
        ),
        SoakClaim("executors that did not leave", 0, stayed, len(asked), enough and not stayed),
        SoakClaim(
            "median time to room after the longest task's end, s",
            MEDIAN_S,
            middle,
            len(spans),
            enough and middle is not None and middle <= MEDIAN_S,
        ),
        SoakClaim("applications left small", 0, small, len(looked), enough and small == 0),
        SoakClaim(
            "executors gone within the predicted time x 1.25",
            RIGHT_RATIO,
            soon,
            len(in_time),
            enough and soon is not None and soon >= RIGHT_RATIO,
        ),
    ]


def table(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return, for each kind of run, how many there were and what was computed twice."""
    rows: dict[tuple[Any, ...], Counter[str]] = {}
    for run in runs:
        if "failed" in run or not run["leaving"]:
            continue
        left = "all" if run["leaving"] == run["executors"] else "some"
        row = rows.setdefault((run["route"], run["when"], left), Counter())
        row.update(runs=1, maps_twice=run["twice"]["maps"], keys_twice=run["twice"]["keys"])
        row.update(tasks_twice=run["twice"]["tasks"], tasks_predicted=run["predicted"]["tasks_again"])
        row.update(stage_attempts=run["stage_attempts"], fetch_failed=run["fetch_failed"])
    named = ("route", "when", "leaving")
    return [{**dict(zip(named, key, strict=True)), **row} for key, row in sorted(rows.items())]


def told(held: dict[str, Any]) -> dict[str, Any]:
    """Return the claims by name, and what each kind of run showed, of what a file holds."""
    runs = held["runs"]
    return {"runs": len(runs), "claims": {each.claim: each for each in judged(runs)}, "kinds": table(runs)}


def main(arguments: Sequence[str]) -> int:
    """Judge a kept file; print what came out as JSON."""
    return tell(arguments, "spark-soak", told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
