"""Command lines that people have typed, from the files beside the project (``../shared/cases/jobs``).

Law: a file that is missing is an error; no test is skipped.
"""

from __future__ import annotations

import shlex
from pathlib import Path

JOBS = Path(__file__).parents[2] / "shared" / "cases" / "jobs"


def commands_in(name: str) -> dict[str, list[str]]:
    """Return the lines of a file by the name before each; a prefix behind the name comes before the words."""
    found: dict[str, list[str]] = {}
    front: list[str] = []
    case = ""
    for line in (JOBS / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            case, _, rest = line[1:].partition("]")
            front = shlex.split(rest)
        elif line and not line.startswith("#"):
            found[case] = [*front, *shlex.split(line)]
    return found
