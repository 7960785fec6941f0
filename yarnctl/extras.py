"""Extras: which packages of ``yarnctl[...]`` a command needs, and the error where one is not installed.

A package of an extra is imported where it is used. What takes long calls :func:`require_extra` first.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from yarnctl.errors import BadInput

EXTRAS = {
    "emulator": ("numpy", "uvloop"),
    "export": ("pyarrow",),
    "ha": ("kazoo",),
    "prediction": ("numpy",),
    "report": ("jinja2", "matplotlib"),
}
"""The packages of each extra, by the names that are imported; pyproject.toml has those that are installed."""


def require_extra(extra: str) -> None:
    """Raise BadInput if a package of an extra is not installed."""
    for package in EXTRAS[extra]:
        if find_spec(package) is None:
            raise missing(package, extra)


def missing(package: str, extra: str) -> BadInput:
    """Return the error for a package that is not installed: it names the extra and how to install it."""
    problem = f"not installed; this command needs the extra {extra!r}"
    return BadInput(f"package {package}", problem, f"run pip install 'yarnctl[{extra}]'")


def missing_of(package: str, extras: Iterable[str]) -> BadInput | None:
    """Return the error for a package of the first extra that has it; None if no extra has it."""
    return next((missing(package, extra) for extra in extras if package in EXTRAS[extra]), None)
