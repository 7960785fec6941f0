"""The sources that are measured: every Python file of the product, parsed once.

Law: everything below the product's packages counts, data and ``__init__.py`` included; nothing else does. The
one file of the task runner is built from sources that count, and does not count again. A file that cannot be
parsed is an error with its name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("emulator", "yarnctl")
BUILT = "yarnctl/task_runner/yarnctl_task.py"

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """One source file. ``name`` is what an import calls it, ``path`` is relative to the root."""

    name: str
    path: str
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def stem(self) -> str:
        """The file's name without its ending."""
        return self.path.rpartition("/")[2].removesuffix(".py")


Modules = Mapping[str, Module]


class Breach(NamedTuple):
    """One place that breaks a rule. ``key`` names it without line numbers, ``where`` with one."""

    key: str
    where: str
    says: str


def read(root: Path, packages: tuple[str, ...] = PACKAGES) -> dict[str, Module]:
    paths = sorted(path for package in packages for path in (root / package).rglob("*.py"))
    paths = [path for path in paths if path != root / BUILT]
    modules = (parse(path, path.relative_to(root).as_posix()) for path in paths)
    return {module.name: module for module in modules}


def parse(path: Path, shown: str) -> Module:
    text = path.read_text(encoding="utf-8")
    name = shown.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return Module(name, shown, text, ast.parse(text, shown))


def definitions(tree: ast.AST, outer: str = "") -> Iterator[tuple[str, Function | ast.ClassDef]]:
    """Yield every function and class with its qualified name, outer ones first."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function | ast.ClassDef):
            name = f"{outer}{node.name}"
            yield name, node
            yield from definitions(node, f"{name}.")
        else:
            yield from definitions(node, outer)
