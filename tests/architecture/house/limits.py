"""Limits: statements of each top folder, modules of one folder, and names that stand for several things.

A statement is a statement of Python's grammar (``ast.stmt``), docstrings left out. ``budget.toml`` has the
budget of each top folder and its reason; a change that needs more raises the number and says why beside it.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.architecture.house.sources import Breach, Module, Modules, definitions

Allowed = Mapping[str, Mapping[str, object]]
BUDGET = "tests/architecture/house/budget.toml"
MOST = 13
"""Modules that lie directly in one folder, ``__init__.py`` left out."""
EXEMPT = "yarnctl/deciding"
"""It keeps its rooms; so does a folder ``cli``, which has one module a command."""


def spent(modules: Modules) -> Counter[str]:
    """Return the statements of each top folder: the package for a module directly below it."""
    found: Counter[str] = Counter()
    for module in modules.values():
        nodes = [node for node in ast.walk(module.tree) if isinstance(node, ast.stmt)]
        strings = sum(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in nodes)
        parts = module.path.split("/")
        found["/".join(parts[:2]) if len(parts) > 2 else parts[0]] += len(nodes) - strings
    return found


def budget(root: Path) -> Allowed:
    return tomllib.loads((root / BUDGET).read_text(encoding="utf-8"))


def over_budget(modules: Modules, allowed: Allowed) -> list[str]:
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


def folders(modules: Modules) -> Iterator[Breach]:
    """Yield the folders that hold too many modules."""
    counts = Counter(module.folder for module in modules.values() if not module.is_package)
    for folder, count in sorted(counts.items()):
        if count > MOST and folder != EXEMPT and not folder.endswith("/cli"):
            says = f"{count} modules lie directly in this folder, at most {MOST} may"
            yield Breach(folder, f"{folder}:1", says)


def names(modules: Modules) -> Iterator[Breach]:
    """Yield the names of modules and classes that stand for several things: a reader finds one thing by one.

    Classes count wherever they are defined, inside functions and other classes, too.
    """
    files: dict[str, list[str]] = defaultdict(list)
    classes: dict[str, list[str]] = defaultdict(list)
    for module in modules.values():
        if is_counted(module):
            files[module.stem].append(f"{module.path}:1")
        for _, node in definitions(module.tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(f"{module.path}:{node.lineno}")
    for name, found in sorted([*files.items(), *classes.items()]):
        if len(found) > 1:
            says = f"{name} stands for {len(found)}: {', '.join(found)}"
            yield Breach(f"{name}, {len(found)} times", found[0], says)


def is_counted(module: Module) -> bool:
    """Say whether a module's name must be its own.

    Not those of a folder ``cli`` (named after their commands) and of a framework's folder (each has the
    same), nor ports (one border, a module a host), ``__init__`` and ``__main__``.
    """
    return not (
        module.stem in ("__init__", "__main__", "port")
        or module.stem.endswith("_port")
        or module.folder.endswith("/cli")
        or module.folder.startswith("yarnctl/frameworks/")
    )
