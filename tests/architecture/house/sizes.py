"""Size: lines of the product and its modules.

Law: a line is a line of a Python file, blank ones and comments included. Both figures have a target and no
ratchet: a feature may add some.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.architecture.house.sources import Figure, Finding, Module

LINES = 52_500
MODULES = 310


def sizes(modules: Mapping[str, Module]) -> Finding:
    """Return the product's size."""
    figures = (
        Figure("lines", sum(len(module.text.splitlines()) for module in modules.values()), LINES),
        Figure("modules", sum(not module.is_package for module in modules.values()), MODULES),
        Figure("files", len(modules)),
    )
    return Finding("size", figures, ())
