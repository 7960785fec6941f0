"""Names: module names and class names that the product uses more than once.

Law: a reader who is told a name finds one thing. Apart stand the modules of a folder ``cli`` (named after
their commands), those of a framework's folder (each has the same), ports (``port.py``, ``..._port.py``: one
border, a module a host), ``__init__`` and ``__main__``. Classes count wherever they are defined, inside
functions and other classes, too.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping

from tests.architecture.house.sources import Breach, Figure, Finding, Module, definitions

MODULES = 14
CLASSES = 20

Places = dict[str, list[tuple[str, int]]]


def names(modules: Mapping[str, Module]) -> tuple[Finding, Finding]:
    """Return the module names and the class names that stand for several things."""
    files: Places = defaultdict(list)
    classes: Places = defaultdict(list)
    for module in modules.values():
        if is_counted(module):
            files[module.stem].append((module.path, 1))
        for _, node in definitions(module.tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append((module.path, node.lineno))
    return doubled("module-names", files, MODULES), doubled("class-names", classes, CLASSES)


def is_counted(module: Module) -> bool:
    """Say whether a module's name must be its own."""
    return not (
        module.stem in ("__init__", "__main__", "port")
        or module.stem.endswith("_port")
        or module.folder.rpartition("/")[2] == "cli"
        or module.folder.startswith("yarnctl/frameworks/")
    )


def doubled(section: str, places: Places, target: int) -> Finding:
    """Return the names with more than one place."""
    breaches = tuple(
        Breach(name, len(found), "{}:{}".format(*found[0]),
            f"{name} stands for {len(found)}: " + ", ".join(f"{path}:{line}" for path, line in found))
        for name, found in sorted(places.items())
        if len(found) > 1
    )  # fmt: skip
    return Finding(section, (Figure(section.replace("-", "_"), len(breaches), target),), breaches)
