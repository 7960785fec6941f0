"""How well levers were predicted in studies that are kept: room in time, and work lost.

``python -m yarn_research.campaigns.lever_predictions FILE...`` reads studies of unseen hours (research/records/study-...).

Law: pure but for that. Every lever of every pair and seed counts, of each budget that was played.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from yarnctl.command_line import complain, print_json
from yarnctl.deciding.levers import Lever
from yarnctl.deciding.records import Decision, Record, Transition
from yarnctl.errors import BadInput


class PulledLever(NamedTuple):
    """A lever that freed a container; ``took_ms``: from the decision on."""

    kind: str
    predicted_ms: int
    took_ms: int


def pulled(records: Iterable[Record]) -> list[PulledLever]:
    """Return the levers of a journal whose containers were freed, in the order of that."""
    asked: dict[str, tuple[Lever, int]] = {}
    found = []
    for record in records:
        if isinstance(record, Decision) and record.levers:
            pulls = zip(record.orders, record.levers, strict=True)
            asked.update((order, (pull.lever, record.at_ms)) for order, pull in pulls)
        elif (
            isinstance(record, Transition) and record.target in ("freed", "killed") and record.order in asked
        ):
            lever, at_ms = asked.pop(record.order)
            found.append(PulledLever(lever.kind, lever.free_in_ms, record.at_ms - at_ms))
    return found


def predicted(pairs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return how many levers gave their room in time, and lost work as predicted over what was lost."""
    rows = [row for pair in pairs for row in pair["schemes"].values() if "levers" in row]
    levers = sum(sum(row["levers"].values()) for row in rows)
    in_time = sum(sum(row["levers_in_time"].values()) for row in rows)
    foreseen_s, lost_s = (sum(row[name] for row in rows) for name in ("predicted_lost_s", "lost_work_s"))
    return {
        "levers": levers,
        "in_time_ratio": in_time / levers,
        "predicted_over_lost": round(foreseen_s / lost_s, 4),
        "deviation_ratio": round(abs(foreseen_s / lost_s - 1), 4),
    }


def main(arguments: Sequence[str]) -> int:
    """Print each study's figures, and the worst of all, as JSON."""
    try:
        kept = {Path(file).stem: msgspec.json.decode(Path(file).read_bytes()) for file in arguments}
        by = {name: predicted(study["pairs"]) for name, study in kept.items()}
        first = next(iter(kept.values()))
    except (OSError, ValueError, KeyError, StopIteration, ZeroDivisionError, msgspec.MsgspecError) as error:
        problem = BadInput("FILE...", f"hold no study: {error}", "name research/records/study-...json")
        return complain(str(problem), problem.exit_status)
    worst = {
        "in_time_ratio": min(each["in_time_ratio"] for each in by.values()),
        "deviation_ratio": max(each["deviation_ratio"] for each in by.values()),
    }
    print_json({"campaign": ", ".join(by), "commit": first["commit"], "studies": by, "worst": worst})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
