"""What three frameworks together show: the claims of research/notes/levers.md, from a kept file.

``python -m yarn_research.campaigns.mixed_judging FILE`` judges one.

Law: pure but for that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from yarn_research.campaigns.kept_file import tell

LEVERS = ("suspend", "drain", "rescale")


def judged(kept: dict[str, Any]) -> dict[str, Any]:
    """Return each claim's figure, in the plan's order."""
    orders = kept["orders"]
    return {
        "bursts": len(kept["bursts"]),
        "bursts that failed": sum(burst["state"] != "SUCCEEDED" for burst in kept["bursts"]),
        "outputs that are wrong": sum(bool(why) for why in kept["wrong"].values()),
        "lost over what the budget allows": spent_ratio(kept),
        "frameworks that gave room": sum(bool(kept["levers"].get(name)) for name in LEVERS),
        "orders": len(orders),
        "orders that are not explained": sum(not order["explained"] for order in orders),
    }


def spent_ratio(kept: dict[str, Any]) -> float | None:
    """Return research's lost container time over what its budget allows; None where none was told."""
    last = kept["budgets"][-1] if kept["budgets"] else []
    told = [item for item in last if str(item["queue"]).rpartition(".")[2] == "research"]
    if not told or not kept["held_mib_ms"]:
        return None
    (item,) = told
    allowed_mib_ms = item["may_lose_ratio"] * kept["held_mib_ms"]
    return round(float(item["lost_ms"] * item["container_mib"] / allowed_mib_ms), 3)


def main(arguments: Sequence[str]) -> int:
    """Judge a kept file; print what came out as JSON."""
    return tell(arguments, "mixed", lambda held: {"claims": judged(held)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
