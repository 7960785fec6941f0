"""Recorded answers of real Hadoops: what they said once stays as it was said.

Law: a recording is never edited. A new one is a file of its own, and this file names it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORDED = ("tests/contract/recorded/*.json", "tests/hadoop/counters/*.json")


def sums(root: Path = ROOT) -> dict[str, str]:
    paths = [path for pattern in RECORDED for path in sorted(root.glob(pattern))]
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }
