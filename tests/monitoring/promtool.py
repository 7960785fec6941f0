"""Debian's promtool and prometheus, and what the shipped files of ``yarnctl/monitoring`` have in them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(str(files("yarnctl").joinpath("monitoring")))
RULES = FOLDER / "alerts.yaml"
BOARD = FOLDER / "board.json"


def program(name: str) -> str:
    """Return the path of ``promtool`` or ``prometheus``; skip the test, aloud, where it is missing."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing: apt-get download prometheus, dpkg-deb -x, and set PATH")
    return found


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    """Run promtool."""
    return subprocess.run([program("promtool"), *words], capture_output=True, text=True, check=False)


def rules() -> dict[str, dict[str, Any]]:
    """Return the shipped rules by the alert's name."""
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def queries() -> Iterator[tuple[str, str]]:
    """Yield (panel, query) of the board, with its variables filled in."""
    for panel in json.loads(BOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"].replace("$__rate_interval", "5m")
            yield panel["title"], re.sub(r"\$\w+", ".*", query)


def names_in(query: str) -> set[str]:
    """Return the names of yarnctl's series in a query."""
    return set(re.findall(r"\byarnctl_[a-z_]+", query))
