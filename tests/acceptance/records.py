"""Figures that were measured earlier: of which commit they are, and what has changed since.

Law: a record is stale as soon as one of the files that it depends on differs from its commit, committed
or not; and also where the commit is not known, or git cannot say. Stale is not held. Python files are
compared as programs (syntax trees without docstrings): a reworded comment changes nothing that was measured.
"""

from __future__ import annotations

import ast
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
    """Return the files below some paths that differ from a commit in the working tree, new ones included.

    A Python file whose comments and docstrings alone differ is not one of them.
    """
    differing = git("diff", "--name-only", commit, "--", *paths, root=root)
    new = git("ls-files", "--others", "--exclude-standard", "--", *paths, root=root)
    if differing is None or new is None:
        return None
    return sorted(
        {path for path in differing.splitlines() if not _is_same_program(commit, path, root)}
        | set(new.splitlines())
    )


def _is_same_program(commit: str, path: str, root: Path) -> bool:
    """Say whether a Python file is the same program as at a commit; False for every other file."""
    before, now = git("show", f"{commit}:{path}", root=root), root / path
    if not path.endswith(".py") or before is None or not now.is_file():
        return False
    try:
        return _program(before) == _program(now.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        return False


def _program(source: str) -> str:
    """Return the syntax tree of a source without its docstrings, as text."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [each for each in node.body if not _is_docstring(each)]
    return ast.dump(tree)


def _is_docstring(each: ast.stmt) -> bool:
    """Say whether a statement is a string alone: a docstring, also of an attribute."""
    return (
        isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Constant)
        and isinstance(each.value.value, str)
    )
