"""Prints what base and extra ``emulator`` require and can be had as wheels, for the image's context."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

EXTRA = "emulator"
SOURCE_ONLY = ("hdfs",)
"""Published as source only: installed without building anything, with what they need named here."""

NEEDED_BY_THEM = ("six",)


def main() -> None:
    """Print one requirement a line."""
    project = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["project"]
    required = project["dependencies"] + project["optional-dependencies"][EXTRA]
    wheels = [one for one in required if not one.startswith(SOURCE_ONLY)]
    sys.stdout.write("\n".join([*wheels, *NEEDED_BY_THEM]) + "\n")


main()
