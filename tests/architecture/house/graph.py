"""Circles: modules that reach each other by imports.

Law: every import counts: at the top, below ``TYPE_CHECKING``, inside a function, by ``import_module`` with
a constant name, and by an entry "package.module:attribute", which ``yarnctl.command_line`` imports when the
command runs. That an import of ``a.b`` also runs ``a/__init__.py`` does not count: Python needs no order
there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from tests.architecture.house.sources import Breach, Module, Modules

ENTRY = re.compile(r"(?P<module>\w+(\.\w+)+):\w+")
LOADERS = ("import_module", "__import__")

Graph = dict[str, dict[str, int]]
"""For each module the modules that it imports, each with the first line that does."""


def circles(modules: Modules) -> Iterator[Breach]:
    """Yield one circle of modules, if there is any."""
    graph = imports(modules)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        group = sorted(set(error.args[1]))
        lines = [
            f"{modules[name].path}:{line} imports {other}"
            for name in group
            for other, line in sorted(graph[name].items())
            if other in group
        ]
        where = lines[0].partition(" ")[0]
        yield Breach(" ".join(group), where, f"{len(group)} modules in a circle: {'; '.join(lines)}")


def imports(modules: Modules) -> Graph:
    graph: Graph = {name: {} for name in modules}
    for name, module in modules.items():
        for other, line in named(module):
            target = nearest(other, modules)
            if target is not None and target != name:
                graph[name].setdefault(target, line)
    return graph


def nearest(name: str, modules: Modules) -> str | None:
    """Return the module that an imported name is, or is defined in."""
    if name in modules:
        return name
    outer = name.rpartition(".")[0]
    return outer if outer in modules else None


def named(module: Module) -> Iterator[tuple[str, int]]:
    """Yield every name that a module imports, with its line; ``from a import b`` is ``a.b``."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = absolute(module, node)
            yield from ((f"{source}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if entry := ENTRY.fullmatch(node.value):
                yield entry["module"], node.lineno
        elif isinstance(node, ast.Call) and node.args and is_loader(node.func):
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value, node.lineno


def is_loader(function: ast.expr) -> bool:
    """Say whether a call of this function imports what its first argument names."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in LOADERS


def absolute(module: Module, node: ast.ImportFrom) -> str:
    """Return the full name of the package that a ``from`` names."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    outer = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*outer, *([node.module] if node.module else [])])
