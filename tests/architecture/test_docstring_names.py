"""Docstrings of classes name what exists.

Law: an identifier in double backticks of a class's docstring is a name of that class (a field, method,
attribute or parameter, also of its bases), a name of its module (defined or imported), or a word of a string
in it. ``ELSEWHERE`` lists the exceptions: names that another module defines. It may only shrink.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("yarnctl", "emulator")
BUILT = "yarnctl/task_runner/yarnctl_task.py"
QUOTED = re.compile(r"(?<!:)``([A-Za-z_]\w*)(?:\(\))?``")
BUILTIN = frozenset(dir(builtins))
ELSEWHERE = {
    "yarnctl/task_runner/runner/attempt.py: AttemptState": {"skip", "replay", "drain", "save", "hold", "end"},
    "yarnctl/task_runner/runner/orders.py: Watcher": {"poll_ms"},
}


class ClassIndex:
    """The classes of all packages by name, and the names within them."""

    def __init__(self, root: Path) -> None:
        self.by_name: dict[str, list[ast.ClassDef]] = {}
        self.of_path: dict[str, tuple[ast.Module, list[ast.ClassDef]]] = {}
        for package in PACKAGES:
            for path in sorted((root / package).rglob("*.py")):
                where = path.relative_to(root).as_posix()
                if where != BUILT:
                    tree = ast.parse(path.read_text(encoding="utf-8"))
                    self.of_path[where] = tree, list(classes_in(tree.body))
        for _, found in self.of_path.values():
            for node in found:
                self.by_name.setdefault(node.name, []).append(node)

    def names(self, node: ast.ClassDef, seen: frozenset[str] = frozenset()) -> Iterator[str]:
        """Yield the names in a class's body, its parameters and attributes, and those of its bases."""
        for statement in node.body:
            yield from defined(statement)
        for each in ast.walk(node):
            if isinstance(each, ast.arg):
                yield each.arg
            elif (
                isinstance(each, ast.Attribute)
                and isinstance(each.value, ast.Name)
                and each.value.id == "self"
            ):
                yield each.attr
        for base in node.bases:
            name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
            for above in () if name in seen else self.by_name.get(name, ()):
                yield from self.names(above, seen | {name})


def classes_in(body: list[ast.stmt]) -> Iterator[ast.ClassDef]:
    """Yield the classes of a module, also those within classes."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node
            yield from classes_in(node.body)


def defined(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    for target in getattr(node, "targets", [getattr(node, "target", None)]):
        for each in ast.walk(target) if isinstance(target, ast.AST) else ():
            if isinstance(each, ast.Name):
                yield each.id


def names_of_module(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines or imports, and the words of the strings in its code."""
    documents = set()
    for statement in tree.body:
        yield from defined(statement)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documents.add(node.value)
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (getattr(node, "module", None) or "").split(".")
            for alias in node.names:
                yield from (alias.asname or alias.name).split(".")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documents:
            yield from re.findall(r"\w+", node.value)


def unknown_names(root: Path) -> dict[str, set[str]]:
    """Return ``path: Class`` -> the quoted identifiers that do not exist."""
    index, found = ClassIndex(root), dict[str, set[str]]()
    for path, (tree, classes) in index.of_path.items():
        for node in classes:
            missing = set(QUOTED.findall(ast.get_docstring(node) or "")) - BUILTIN
            missing = missing and missing.difference(index.names(node))
            if missing := missing and missing.difference(names_of_module(tree)):
                found[f"{path}: {node.name}"] = missing
    return found


def test_unknown_names_are_only_the_listed_exceptions() -> None:
    assert unknown_names(ROOT) == ELSEWHERE


@pytest.mark.parametrize(
    ("quoted", "is_known"),
    [("rank", True), ("place", False), ("kept", True), ("limit", True), ("above", True), ("BOUND", True),
     ("reduce", True), ("local", False)],
)  # fmt: skip
def test_unknown_names_finds_a_renamed_field(tmp_path: Path, quoted: str, is_known: bool) -> None:
    source = f'''
BOUND = 3
class Above:
    above: int = 0
class Row(Above):
    """A row; ``{quoted}``: what is quoted."""
    rank: int
    def __init__(self, limit):
        self.kept = limit
def other():
    local = "reduce"
'''
    path = tmp_path / "yarnctl" / "rows.py"
    path.parent.mkdir()
    path.write_text(source)
    (tmp_path / "emulator").mkdir()
    assert unknown_names(tmp_path) == ({} if is_known else {"yarnctl/rows.py: Row": {quoted}})
