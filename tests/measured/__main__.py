"""``python -m tests.measured add``: put new files of results into the index.

Law: a file in the index that was changed or removed is refused.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.measured import index
from yarnctl.errors import YarnctlError


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.measured")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("add", help="put new files of docs/measured into its index")
    parser.parse_args(arguments)
    try:
        for name in index.add():
            print(f"added {name}")
    except YarnctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
