"""``python -m tests.soak CAMPAIGN [options]``: long seeded campaigns; exit status 1 if one is lost.

Each campaign is a module of this package with ``main(arguments) -> exit status``, loaded when it is named.
"""

from __future__ import annotations

import sys
from importlib import import_module

CAMPAIGNS = {
    "alerts": "each alert rule in a real Prometheus: its fault on the live emulator, it fires and resolves",
    "equal": "suspended at random moments, output and counters identical",
    "campaigns": "faults at random moments, nothing lost or doubled",
    "in-vain": "random states carried out: who gets each container that is freed",
    "io-faults": "every call for I/O of the task runner fails once: output equal, or the attempt fails",
    "late-promises": "promises of jobs that overrun: known to be late before their deadline",
    "late-promises-live": "the same on the live emulator, by a daemon at its gate",
    "lowered-kinds": "a daemon that has lowered a setting is killed at each request: the setting comes back",
    "market": "random histories of the market: tokens conserved, nothing served unpaid",
    "budgets": "lives of containers, days long, and no loss that the rule of budgets does not allow",
    "hostile": "answers of applications mutated: no look ends, no other application is hidden",
    "queue-names": "random trees of queues: a name stands for what a plain reading says",
    "replay": "random histories of the controller, decided again without a difference",
    "timeline": "promises served in steps and by the plain computation, without a difference",
    "what-if": "questions on the live emulator, then done: chosen tasks and starts as answered",
    "what-if-virtual": "the same in virtual time: chosen tasks as answered",
    "waiting": "why production waits, at each step of random clusters: one reason, and it is true",
}


def main(arguments: list[str]) -> int:
    """Run the campaign that is named first."""
    if not arguments or arguments[0] not in CAMPAIGNS:
        print("usage: python -m tests.soak CAMPAIGN [--help]", file=sys.stderr)
        for name, what in CAMPAIGNS.items():
            print(f"  {name:<13} {what}", file=sys.stderr)
        return 2
    return int(import_module(f"tests.soak.{arguments[0].replace('-', '_')}").main(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
