"""The cases from the field, beside the project at ``../shared/cases``: recorded answers and site files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "shared" / "cases"


def folder(name: str) -> Path:
    """Return the folder of a case; fails where it is missing."""
    path = FOLDER / name
    assert path.is_dir(), f"../shared/cases/{name} is missing beside the project"
    return path


def answers(name: str) -> dict[str, Any]:
    """Return a case's recorded answers by path; fails where it is missing."""
    path = FOLDER / f"{name}.json"
    assert path.is_file(), f"../shared/cases/{name}.json is missing beside the project"
    found: dict[str, Any] = json.loads(path.read_text())["answers"]
    return found
