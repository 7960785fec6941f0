"""What production beside Spark research shows: the claims of research/notes/spark.md, paired within rounds.

``python -m yarn_research.campaigns.spark_beside_judging FILE`` judges a kept file, of either bench.

Law: pure but for that. A round that is not whole does not count.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

import msgspec

from yarn_research.campaigns import spark_ahead
from yarn_research.campaigns.kept_file import tell
from yarn_research.campaigns.spark_beside import LOADS, ROUNDS, SCHEMES

Run = dict[str, Any]
OURS = ("signal", "plugin")
COMPARED = (
    ("production", "production-alone", 1.10, False),
    ("production", "yarn-tuned", 1.03, False),
    ("research", "yarn-tuned", 1.0, True),
)
"""Whose time is compared with that under which scheme, the bound, and whether every round must keep it."""

WHOLE = {**dict.fromkeys(LOADS, SCHEMES.keys()), spark_ahead.LOAD: spark_ahead.SET.keys()}
"""The schemes of which a whole round consists, by load."""

HELD_S = 1.0
"""Within what production holds the room of an executor that left, as the journal has both instants."""


class BesideClaim(msgspec.Struct, frozen=True):
    """A claim on a load and scheme; ``ours`` is compared with ``bound``; the range is over rounds."""

    load: str
    claim: str
    bound: float
    ours: float | None
    low: float | None
    high: float | None
    rounds: int
    holds: bool


def counted(runs: Sequence[Run], load: str) -> dict[int, dict[str, Run]]:
    """Return round -> scheme -> run, of whole rounds of a load."""
    found: dict[int, dict[str, Run]] = {}
    for run in runs:
        if run["load"] == load and "left_out" not in run:
            found.setdefault(run["round"], {})[run["scheme"]] = run
    return {number: each for number, each in found.items() if each.keys() == WHOLE[load]}


def ratios(runs: Sequence[Run], load: str, job: str, scheme: str, base: str) -> list[float]:
    """Return a scheme's time over another's, of each whole round."""
    return [each[scheme][job]["took_s"] / each[base][job]["took_s"] for each in counted(runs, load).values()]


def judged(runs: Sequence[Run], loads: Iterable[str] = LOADS) -> list[BesideClaim]:
    """Return the claims in the plan's order."""
    found = []
    for load in loads:
        for scheme in OURS:
            for job, base, bound, wholly in COMPARED:
                told = ratios(runs, load, job, scheme, base)
                found.append(_claim(load, f"{job} under {scheme} over {base}", told, bound, wholly=wholly))
            found.append(_again(runs, load, scheme))
            found.append(_held(runs, load, scheme))
        found.append(_identical(runs, load))
    return found


def _claim(
    load: str, claim: str, told: list[float], bound: float, *, wholly: bool, rounds: int | None = None
) -> BesideClaim:
    """Judge the largest or the median of figures; there is one of each round where ``rounds`` is not told."""
    claim += ", every round" if wholly else ", median"
    if not told:
        return BesideClaim(load, claim, bound, None, None, None, 0, holds=False)
    rounds = len(told) if rounds is None else rounds
    judged_by = max(told) if wholly else median(told)
    holds = rounds >= ROUNDS and (judged_by < bound if wholly else judged_by <= bound)
    return BesideClaim(load, claim, bound, median(told), min(told), max(told), rounds, holds)


def _again(runs: Sequence[Run], load: str, scheme: str) -> BesideClaim:
    rounds = counted(runs, load).values()
    told = [
        each[scheme]["research"]["again_s"] - each["yarn-tuned"]["research"]["again_s"] for each in rounds
    ]
    return _claim(
        load, f"work done twice under {scheme} less that under yarn-tuned, s", told, 0.0, wholly=True
    )


def _held(runs: Sequence[Run], load: str, scheme: str) -> BesideClaim:
    rounds = counted(runs, load).values()
    told = [span_s for each in rounds for span_s in each[scheme]["held_s"]]
    claim = f"from an executor's end under {scheme} to production holding its room, s"
    return _claim(load, claim, told, HELD_S, wholly=False, rounds=len(rounds))


def _identical(runs: Sequence[Run], load: str) -> BesideClaim:
    rounds = counted(runs, load)
    wrong = sum(
        not run["research"]["identical"]
        for each in rounds.values()
        for run in each.values()
        if "research" in run
    )
    enough = len(rounds) >= ROUNDS
    return BesideClaim(load, "results that differ", 0, wrong, None, None, len(rounds), enough and not wrong)


def table(runs: Sequence[Run], loads: Iterable[str] = LOADS) -> list[dict[str, Any]]:
    """Return medians by load and scheme."""
    rows = []
    for load in loads:
        rounds = counted(runs, load).values()
        for scheme in WHOLE[load] if rounds else ():
            mine = [each[scheme] for each in rounds]
            row: dict[str, Any] = {"load": load, "scheme": scheme, "rounds": len(mine)}
            for job in ("production", "research"):
                times = [run[job]["took_s"] for run in mine if job in run]
                row[f"{job}_s"] = median(times) if times else None
            again = [run["research"]["again_s"] for run in mine if "research" in run]
            row["again_s"] = median(again) if again else None
            rows.append(row)
    return rows


def told(held: dict[str, Any]) -> dict[str, Any]:
    """Return the claims by load and name, and medians by load and scheme, of what a file holds."""
    loads = (spark_ahead.LOAD,) if held["head"]["kind"] == spark_ahead.KIND else tuple(LOADS)
    by = {f"{each.load}: {each.claim}": each for each in judged(held["runs"], loads)}
    return {"claims": by, "schemes": table(held["runs"], loads)}


def main(arguments: Sequence[str]) -> int:
    """Judge a kept file; print what came out as JSON."""
    return tell(arguments, "spark-production", told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
