"""Rooms: how many modules lie directly in one folder.

Law: ``__init__.py`` is not counted. ``yarnctl/deciding`` keeps its rooms, and a folder ``cli`` has one
module a command; every other folder has at most ``MOST``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tests.architecture.house.sources import Breach, Figure, Finding, Module

MOST = 13
EXEMPT = ("yarnctl/deciding",)
EXEMPT_NAME = "cli"


def rooms(modules: Mapping[str, Module]) -> Finding:
    """Return the folders that hold too many modules."""
    counts = counted(modules)
    judged = {folder: count for folder, count in counts.items() if not is_exempt(folder)}
    breaches = tuple(
        Breach(
            folder, count, f"{folder}:1", f"{count} modules lie directly in this folder, at most {MOST} may"
        )
        for folder, count in sorted(judged.items())
        if count > MOST
    )
    return Finding("rooms", (Figure("largest", max(judged.values(), default=0), MOST),), breaches)


def counted(modules: Mapping[str, Module]) -> dict[str, int]:
    """Return how many modules lie directly in each folder, exempt ones included."""
    return dict(Counter(module.folder for module in modules.values() if not module.is_package))


def is_exempt(folder: str) -> bool:
    """Say whether a folder may have any number of modules."""
    return folder in EXEMPT or folder.rpartition("/")[2] == EXEMPT_NAME
