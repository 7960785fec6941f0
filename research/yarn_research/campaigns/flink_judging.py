"""What rescales of a Flink job show: the claims of research/notes/flink.md, from the jobs of a kept file.

``python -m yarn_research.campaigns.flink_judging FILE`` judges one.

Law: pure but for that. A job or a burst that failed counts against every claim that it would have told of.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tests.hadoop.flink_rescaling import WORKERS
from yarn_research.campaigns.kept_file import tell
from yarnctl.deciding.model import Accepted
from yarnctl.deciding.records import Decision, Performed, Record, Transition

RESCALES, ROOM_RATIO, IN_TIME = 20, 1.5, 0.9


class RescaleClaim(msgspec.Struct, frozen=True):
    """A claim and what the jobs say; ``found`` is the figure that is compared with ``bound``."""

    claim: str
    bound: float
    found: float | None
    holds: bool


def rescales_in(records: Iterable[Record]) -> int:
    """Return how many changes of bounds were accepted: one a decision, and one that puts them back."""
    decisions: dict[str, int] = {}
    lowered, raised = set[int](), 0
    for record in records:
        if isinstance(record, Decision):
            decisions |= dict.fromkeys(record.orders, record.number)
        elif isinstance(record, Performed) and isinstance(record.outcome, Accepted):
            if record.action == "drain":
                lowered.add(decisions[record.order])
            raised += record.action == "grow"
    return len(lowered) + raised


def orders_of(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return each order to a worker: its predicted room, when that came, and its last state."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        if isinstance(record, Decision):
            for order, pull in zip(record.orders, record.pulls, strict=True):
                if pull is not None and pull.lever.kind == "rescale":
                    predicted_s = pull.lever.free_in_ms / 1000
                    charged_s = pull.lever.lost_ms / 1000
                    found[order] = {"at_ms": record.at_ms, "predicted_s": predicted_s, "charged_s": charged_s}
                    found[order]["state"] = "ordered"
        elif isinstance(record, Transition) and record.order in found:
            row = found[record.order]
            row["state"] = record.target
            if record.target == "freed":
                row["freed_s"] = (record.at_ms - row["at_ms"]) / 1000
                row["other"] = bool(record.left)
            elif record.target in ("granted", "misdirected") and "freed_s" in row:
                row["held_s"] = round((record.at_ms - row["at_ms"]) / 1000 - row["freed_s"], 3)
    return [{"order": order, **row} for order, row in found.items()]


def judged(jobs: Sequence[dict[str, Any]]) -> list[RescaleClaim]:
    """Return the claims in the plan's order."""
    bursts = [burst for job in jobs for burst in job["bursts"]]
    orders = [order for burst in bursts for order in burst["orders"]]
    rescales = sum(burst["rescales"] for burst in bursts)
    wrong = sum("failed" in job or bool(job["faults"]) or job["ended"] != "SUCCEEDED" for job in jobs)
    small = sum(burst["bounds"] != [WORKERS] for burst in bursts) + sum("failed" in job for job in jobs)
    freed = [order for order in orders if "freed_s" in order]
    in_time = [order["freed_s"] <= order["predicted_s"] * ROOM_RATIO for order in freed]
    soon = round(sum(in_time) / len(in_time), 3) if in_time else None
    held = [order["state"] == "granted" for order in freed]
    holds = round(sum(held) / len(held), 3) if held else None
    unanswered = len(orders) - len(freed)
    enough = rescales >= RESCALES
    return [
        RescaleClaim("rescales", RESCALES, rescales, enough),
        RescaleClaim("jobs that failed or gave inexact output", 0, wrong, enough and not wrong),
        RescaleClaim("bursts after which bounds were not back", 0, small, enough and not small),
        RescaleClaim(
            "room in one and a half of the predicted time",
            IN_TIME,
            soon,
            enough and soon is not None and soon >= IN_TIME,
        ),
        RescaleClaim(
            "freed room that production was given",
            IN_TIME,
            holds,
            enough and holds is not None and holds >= IN_TIME,
        ),
        RescaleClaim("orders that no container answered (reported)", len(orders), unanswered, enough),
    ]


def told(held: dict[str, Any]) -> dict[str, Any]:
    """Return the claims by name, of what a file holds."""
    return {"claims": {each.claim: each for each in judged(held["jobs"])}}


def main(arguments: Sequence[str]) -> int:
    """Judge a kept file; print what came out as JSON."""
    return tell(arguments, "flink-rescales", told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
