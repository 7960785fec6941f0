"""The Makefile: its targets, the variables that are given on its command line, and what CI calls of it.

Law: a variable is one that a caller may set: it has a default (``?=``) or none at all.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BUILT_IN = ("MAKEFILE_LIST",)


def targets(makefile: str = "", script: str = "") -> dict[str, Any]:
    """Return targets with the variables each reads, the variables' defaults, and what ``.ci/run`` calls."""
    makefile = makefile or (ROOT / "Makefile").read_text(encoding="utf-8")
    script = script or (ROOT / ".ci/run").read_text(encoding="utf-8")
    fixed = set(re.findall(r"^([A-Z]\w*)\s*:?=", makefile, re.MULTILINE)) | set(BUILT_IN)
    defaults = dict(re.findall(r"^([A-Z]\w*)\s*\?=\s*(.*?)\s*$", makefile, re.MULTILINE))
    free = set(_read_in(makefile)) - fixed - set(defaults)
    own = set(defaults) | free
    named = re.findall(r"^([a-z][a-z-]*):(.*(?:\n\t.*)*)", makefile, re.MULTILINE)
    return {
        "targets": {
            name: {"reads": {each: True for each in _read_in(body) if each in own}} for name, body in named
        },
        "variables": defaults | dict.fromkeys(free, ""),
        "ci": dict.fromkeys(re.findall(r"^make .*$", script, re.MULTILINE), True),
        "ci_paths": {path: (ROOT / path).exists() for path in re.findall(r"tests/[\w/.]+", script)},
    }


def _read_in(text: str) -> list[str]:
    """Return the variables that a piece of the Makefile reads."""
    return re.findall(r"\$\((?:if \$\()?([A-Z]\w*)\)", text)
