"""``python -m tests.acceptance.short_run``: a whole loop on the live emulator, seconds long.

Law: this is what a row plays beside figures that were recorded earlier on a real Hadoop: `yarnctl run
--enforce` as a process of its own, real tasks, a research job that fills the cluster, a production job that
asks for room. Where yarnctl suspends nothing, it says so in the figures; it never leaves them out.
"""

from __future__ import annotations

import json
import sys

import msgspec

from emulator.demo.live_act import LivePlan, play

PLAN = LivePlan(nodes=1, slots=3, reduces=2, words=160, pause_s=0.16, speed=10.0)


def main() -> int:
    """Play the run and print what came of it as JSON; what happens meanwhile goes to stderr."""
    outcome = play(PLAN, lambda line: print(line, file=sys.stderr))
    print(json.dumps(msgspec.to_builtins(outcome)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
