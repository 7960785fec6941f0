"""Size: statements per top folder against a budget, and the product's lines and modules.

A statement is a statement of Python's grammar (``ast.stmt``), docstrings left out. ``budget.toml`` has the
budget of each top folder and its reason; a change that needs more raises the number and says why beside it.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.architecture.house.sources import Figure, Finding, Module

Allowed = Mapping[str, Mapping[str, object]]
BUDGET = "tests/architecture/house/budget.toml"


def statements_of(tree: ast.Module) -> int:
    """Return the number of statements, without docstrings."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return sum(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in nodes)


def folder_of(path: str) -> str:
    """Return the top folder of a module's path: the package for a module directly below it."""
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def spent(modules: Mapping[str, Module]) -> Counter[str]:
    """Return the statements of each top folder."""
    found: Counter[str] = Counter()
    for module in modules.values():
        found[folder_of(str(module.path))] += statements_of(module.tree)
    return found


def sizes(modules: Mapping[str, Module]) -> Finding:
    figures = (
        Figure("lines", sum(len(module.text.splitlines()) for module in modules.values())),
        Figure("statements", spent(modules).total()),
        Figure("modules", sum(not module.is_package for module in modules.values())),
    )
    return Finding("size", figures, ())


def budget(root: Path) -> Allowed:
    return tomllib.loads((root / BUDGET).read_text(encoding="utf-8"))


def over_budget(modules: Mapping[str, Module], allowed: Allowed) -> list[str]:
    """Return a line for each folder above its budget, without one, or with one and no statements."""
    used = spent(modules)
    found = [f"{name}: has no budget in {BUDGET}; add one" for name in sorted(used.keys() - allowed.keys())]
    found += [f"{BUDGET}: {name} has no modules; remove it" for name in sorted(allowed.keys() - used.keys())]
    for name in sorted(used.keys() & allowed.keys()):
        if not allowed[name].get("why"):
            found.append(f"{BUDGET}: {name} has no reason; add `why`")
        most = int(str(allowed[name]["statements"]))
        if used[name] > most:
            found.append(
                f"{name}: {used[name]} statements exceed the budget of {most}; delete some, or raise the "
                f"number in {BUDGET} with its reason"
            )
    return found
