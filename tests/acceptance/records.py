"""Figures that were measured earlier: of which commit they are, and what has changed since.

Law: a record is stale as soon as one of the files that it depends on differs from its commit, committed or
not; and also where the commit is not known, or git cannot say. Stale is not held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tests.measured.provenance import git

Changed = Callable[[str, Sequence[str], Path], list[str] | None]
"""Which files of some paths differ from a commit; None: it cannot be found out."""

SHORT = 8


class Record(msgspec.Struct, frozen=True):
    """What is said of a record, and whether it is stale."""

    said: str
    stale: bool

    @classmethod
    def of(cls, name: str, commit: object, changed: Changed, depends: Sequence[str], root: Path) -> Record:
        """Hold a record against what is checked out."""
        if not isinstance(commit, str) or not commit:
            return cls(f"recorded: {name}, of an unknown commit", stale=True)
        files = changed(commit, depends, root)
        said = f"recorded: {name}, commit {commit[:SHORT]}"
        if files is None:
            return cls(f"{said}, which git does not know", stale=True)
        if files:
            return cls(f"{said}, {len(files)} files changed since, {files[0]} among them", stale=True)
        return cls(f"{said}, unchanged since", stale=False)


def changed_since(commit: str, paths: Sequence[str], root: Path) -> list[str] | None:
    """Return the files below some paths that differ from a commit in the working tree, new ones included."""
    differing = git("diff", "--name-only", commit, "--", *paths, root=root)
    new = git("ls-files", "--others", "--exclude-standard", "--", *paths, root=root)
    if differing is None or new is None:
        return None
    return sorted({*differing.splitlines(), *new.splitlines()})
