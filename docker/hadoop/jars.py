"""Prints the folder with the jars of a Hadoop version, fetched into the user's cache at the first time."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.hadoop.artifacts import NotToBeHad, jars


def main() -> None:
    """Print it, or leave with 2 and what is missing."""
    try:
        sys.stdout.write(f"{jars(sys.argv[1])}\n")
    except NotToBeHad as missing:
        sys.exit(f"error: {missing}")


main()
