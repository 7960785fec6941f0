"""``python -m tests.frozen``: say what differs, write frozen files again, record a golden journal.

    python -m tests.frozen check [NAME ...]
    python -m tests.frozen write [NAME ...]
    python -m tests.frozen record NAME [FILE]

Law: ``write`` prints every line that changes, so that it can be written into CHANGELOG.md; it never changes a
golden journal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.frozen.catalogue import PIECES
from tests.frozen.comparing import differences, shown
from tests.frozen.pieces import DATA, Piece, as_json
from tests.frozen.recording import recipes, record
from yarnctl.errors import BadInput, YarnctlError

EVERY_LINE = 10_000
REMINDER = "Write it into CHANGELOG.md: a frozen file changes only together with a line that a user reads."


def chosen(names: Sequence[str]) -> list[Piece]:
    """Return the pieces of these names, all if none is given; raises BadInput for an unknown one."""
    known = [each.name for each in PIECES]
    for name in names:
        if name not in known:
            raise BadInput(name, "is not frozen", f"use some of {', '.join(known)}")
    return [each for each in PIECES if not names or each.name in names]


def check(pieces: Sequence[Piece], folder: Path = DATA) -> int:
    """Print what differs; return 1 if anything does."""
    told = [story for story in (each.complaint(each.make(), folder) for each in pieces) if story]
    print("\n\n".join(told) or f"{len(pieces)} frozen files are as they were")
    return 1 if told else 0


def write(pieces: Sequence[Piece], folder: Path = DATA) -> int:
    """Write the files that differ, and print how."""
    changed = 0
    for each in pieces:
        frozen, now = each.frozen(folder), as_json(each.make())
        found = [] if frozen is None else differences(frozen, now)
        if frozen is None or found:
            each.write(now, folder)
            changed += 1
            head = "new" if frozen is None else f"{len(found)} lines differ"
            print(f"{each.name}: {head}\n{shown(found, EVERY_LINE)}".rstrip())
    print(f"{changed} of {len(pieces)} files written.{f' {REMINDER}' if changed else ''}")
    return 0


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.frozen", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    for name, about in (("check", "say what differs"), ("write", "write what differs, and say how")):
        actions.add_parser(name, help=about).add_argument("names", nargs="*", metavar="NAME")
    recording = actions.add_parser(
        "record", help="record a golden journal, or every one that is not there yet"
    )
    recording.add_argument("name", nargs="?", metavar="NAME")
    recording.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="a journal that was written elsewhere"
    )
    given = parser.parse_args(arguments)
    try:
        if given.action == "record":
            return record_all() if given.name is None else _recorded(record(given.name, given.file))
        return (check if given.action == "check" else write)(chosen(given.names))
    except YarnctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status


def record_all() -> int:
    """Record every journal that has a recipe and is not there yet."""
    for name in recipes():
        try:
            _recorded(record(name))
        except BadInput as error:
            print(f"{error}", file=sys.stderr)
    return 0


def _recorded(path: Path) -> int:
    print(f"{path.name}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
