"""What three frameworks together show: the claims of docs/levers.md, from a kept file.

``python -m tests.cluster.mixed_judging FILE`` judges one.

Law: pure but for that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from yarnctl.command_line import complain, print_json
from yarnctl.errors import BadInput

LEVERS = ("suspend", "drain", "rescale")


def judged(kept: dict[str, Any]) -> dict[str, Any]:
    """Return each claim's figure, in the plan's order."""
    budgets = [item for items in kept["budgets"] for item in items]
    orders = kept["orders"]
    return {
        "bursts": len(kept["bursts"]),
        "bursts that failed": sum(burst["state"] != "SUCCEEDED" for burst in kept["bursts"]),
        "outputs that are wrong": sum(bool(why) for why in kept["wrong"].values()),
        "budgets that were exceeded": sum(item["left_ms"] < 0 for item in budgets) if budgets else None,
        "frameworks that gave room": sum(bool(kept["levers"].get(name)) for name in LEVERS),
        "orders": len(orders),
        "orders that are not explained": sum(not order["explained"] for order in orders),
    }


def main(arguments: Sequence[str]) -> int:
    """Judge a kept file; print what came out as JSON."""
    try:
        (file,) = arguments
        kept = msgspec.json.decode(Path(file).read_bytes(), type=dict[str, Any])
        claims = judged(kept)
    except (OSError, ValueError, KeyError, msgspec.MsgspecError) as error:
        problem = BadInput("FILE", f"holds no mixed run: {error}", "name docs/measured/mixed-...json")
        return complain(str(problem), problem.exit_status)
    print_json({"campaign": Path(file).stem, "commit": kept["head"]["commit"], "claims": claims})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
