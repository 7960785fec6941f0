"""The rows of ``targets.toml``: one per thing that was asked for, with the commands that show it.

Law: a row says everything itself; nothing about a row stands in code. ``expected-ids.txt`` lists
what was asked for, so that a row cannot disappear unseen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from yarnctl.errors import BadInput

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
TARGETS = FOLDER / "targets.toml"
EXPECTED_IDS = FOLDER / "expected-ids.txt"

SHORT_RUN = ("python", "-m", "tests.acceptance.short_run")
"""What every row with recorded figures plays beside them."""

Operator = Literal["<=", ">=", "==", "within"]
Unit = Literal["plain", "percent", "times", "ms", "s", "yes"]
Reduction = Literal["only", "count", "held", "undecided", "mean-abs", "max-abs", "max", "min", "sum"]


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A number in what the commands answered, and the rule it must keep.

    ``path`` leads through the JSON (see ``figures.find``); ``of`` names the file it is read
    from, else it is the commands' output: that of all of them together, or of the one whose place
    (from 1) ``answer`` gives. A figure without ``op`` is shown and not judged.
    """

    says: str
    path: str
    of: str = ""
    answer: int = 0
    reduce: Reduction = "only"
    unit: Unit = "plain"
    op: Operator | None = None
    bound: float | bool | None = None
    tolerance: float = 0.0


class Recorded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where figures come from that were measured earlier: not by the row's own commands.

    ``of`` is the file that holds them, and says of which ``commit`` they are; without it the first command's
    output says it, and the ``campaign``. ``depends`` names the paths whose change makes them stale: a list
    of ``[paths]``.
    """

    depends: str
    of: str = ""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that was asked for. ``recorded``: its figures were measured earlier, or some of them."""

    id: str
    issue: int
    title: str
    target: str
    state: Literal["built", "planned"] = "built"
    command: list[str | list[str]] = []
    figure: list[Figure] = []
    recorded: Recorded | None = None

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """All commands, each a tuple of words; no shell is involved."""
        if any(isinstance(part, str) for part in self.command):
            return (tuple(str(part) for part in self.command),)
        return tuple(tuple(part) for part in self.command)


class Targets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    row: list[Row]
    paths: dict[str, list[str]] = {}


def load_rows(path: Path = TARGETS) -> list[Row]:
    """Read the rows; a mistake in the file is bad input."""
    return load(path).row


def load(path: Path = TARGETS) -> Targets:
    """Read the whole file; a mistake in it is bad input."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Targets)
    except msgspec.DecodeError as error:
        raise BadInput(path.name, str(error)) from error


def paths_of(name: str, path: Path = TARGETS) -> list[str]:
    """Return the paths that a record depends on."""
    lists = load(path).paths
    if name not in lists:
        raise BadInput(path.name, f"[paths] has no list {name!r}", f"it has {', '.join(lists) or 'none'}")
    return lists[name]


def expected_ids(path: Path = EXPECTED_IDS) -> list[str]:
    """Return the ids of all that was asked for."""
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def complaints(rows: list[Row], expected: list[str]) -> list[str]:
    """Say what is absent, doubled, unknown or has nothing to run."""
    ids = [row.id for row in rows]
    found = [f"row {name} is absent" for name in expected if name not in ids]
    found += [f"row {name} stands twice" for name in sorted({name for name in ids if ids.count(name) > 1})]
    found += [f"row {name} is not in {EXPECTED_IDS.name}" for name in ids if name not in expected]
    found += [f"row {row.id} has no command" for row in rows if row.state == "built" and not row.commands]
    found += [
        f"row {row.id} belongs to another issue" for row in rows if not row.id.startswith(f"{row.issue}.")
    ]
    found += [
        f"row {row.id} is recorded and plays nothing of its own: add {' '.join(SHORT_RUN)}"
        for row in rows
        if row.recorded is not None and not plays(row)
    ]
    return found


def plays(row: Row) -> bool:
    """Say whether a row judges a figure of the short run on the live emulator."""
    places = [place for place, words in enumerate(row.commands, start=1) if words == SHORT_RUN]
    return any(figure.answer in places and figure.op is not None for figure in row.figure)
