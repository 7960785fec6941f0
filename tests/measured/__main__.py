"""``python -m tests.measured render | check | add | speed``: the documents' tables and figures from the data.

    render   write tables and marked figures into every document
    check    say where a document is not what the data give; exit status 1 if it is not
    add      put new files of docs/measured into its index
    speed    keep bench-results.json as a file of docs/measured

Law: a file in the index that was changed or removed is refused.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.measured import index, rendering, speed
from yarnctl.errors import YarnctlError

ACTIONS = ("render", "check", "add", "speed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.measured")
    parser.add_argument("action", choices=ACTIONS)
    action = parser.parse_args(arguments).action
    try:
        return do(action)
    except YarnctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status


def do(action: str) -> int:
    """Do one action and print what came of it."""
    if action == "check":
        found = [*index.complaints(), *rendering.differences()]
        print("\n".join(found) if found else "every table and figure is what the data give")
        return 1 if found else 0
    if action == "render":
        print(f"written: {', '.join(rendering.render()) or 'nothing had changed'}")
    elif action == "speed":
        print(f"kept as {speed.keep().name}; now: python -m tests.measured add")
    else:
        print(f"added: {', '.join(index.add()) or 'nothing new'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
