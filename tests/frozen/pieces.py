"""A piece: one frozen file, how its value is made today, and what may differ.

Law: files are canonical JSON (sorted keys, one leaf a line); a packed one is the same below gzip, with no
instant in it, so that it is written to the same bytes every time.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.frozen.comparing import Rule, differences, shown

DATA = Path(__file__).with_name("data")
LAW = (
    "A frozen file changes only together with a line of CHANGELOG.md that a user reads."
    " If this change is meant, write that line and run"
)


class Piece(NamedTuple):
    """``rule`` "kept": more may come. ``slow``: made only by the thorough tests."""

    name: str
    make: Callable[[], Any]
    rule: Rule = "same"
    packed: bool = False
    slow: bool = False

    def path(self, folder: Path = DATA) -> Path:
        return folder / (f"{self.name}.json.gz" if self.packed else f"{self.name}.json")

    def frozen(self, folder: Path = DATA) -> Any:
        """Return the frozen value; None if there is none yet."""
        path = self.path(folder)
        if not path.exists():
            return None
        data = path.read_bytes()
        return json.loads(gzip.decompress(data) if self.packed else data)

    def write(self, value: Any, folder: Path = DATA) -> None:
        path = self.path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(packed(canonical(value)) if self.packed else canonical(value))

    def complaint(self, now: Any, folder: Path = DATA) -> str:
        """Say what differs from what is frozen and what to do; "" if nothing does."""
        frozen = self.frozen(folder)
        if frozen is None:
            return f"{self.name} is not frozen yet: python -m tests.frozen write {self.name}"
        found = differences(frozen, as_json(now), self.rule)
        if not found:
            return ""
        head = f"{self.name}: {len(found)} lines differ (- frozen, + now)"
        return f"{head}\n{shown(found)}\n{LAW}: python -m tests.frozen write {self.name}"


def as_json(value: Any) -> Any:
    return json.loads(canonical(value))


def canonical(value: Any) -> bytes:
    """Return a value's JSON, the same bytes every time."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def packed(data: bytes) -> bytes:
    """Return data below gzip, without an instant."""
    return gzip.compress(data, 9, mtime=0)
