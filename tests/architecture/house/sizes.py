"""Size: lines of the product, its modules, and lines of each class.

Law: a line is a line of a Python file, blank ones and comments included. A class counts from its first
decorator to its last line. Lines and modules have a target and no ratchet: a feature may add some; classes
have both.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tests.architecture.house.sources import Breach, Figure, Finding, Module, definitions

LINES = 52_500
MODULES = 310
CLASS_LINES = 300


def sizes(modules: Mapping[str, Module]) -> Finding:
    """Return the product's size and the classes that are too long."""
    classes = {
        (module.path, name): length(node)
        for module in modules.values()
        for name, node in definitions(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    breaches = tuple(
        Breach(
            f"{path}:{name}",
            lines,
            f"{path}:{line}",
            f"class {name} has {lines} lines, at most {CLASS_LINES} may be",
        )
        for (path, name), (line, lines) in classes.items()
        if lines > CLASS_LINES
    )
    figures = (
        Figure("lines", sum(len(module.text.splitlines()) for module in modules.values()), LINES),
        Figure("modules", sum(not module.is_package for module in modules.values()), MODULES),
        Figure("files", len(modules)),
        Figure("largest_class", max((lines for _, lines in classes.values()), default=0), CLASS_LINES),
    )
    return Finding("classes", figures, breaches)


def length(node: ast.ClassDef) -> tuple[int, int]:
    """Return a class's first line and how many it has."""
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return first, (node.end_lineno or first) - first + 1
