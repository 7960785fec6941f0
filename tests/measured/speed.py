"""``make bench``'s results as a file of their own, with what they were measured on.

Law: ``bench-results.json`` is written over by the next run; what documents show is kept in ``docs/measured``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cluster.recording import ELSEWHERE
from tests.measured.campaign import FOLDER
from tests.measured.provenance import ROOT, commit, load, machine, now, uncommitted, versions
from yarnctl.errors import BadInput

RESULTS = ROOT / "bench-results.json"


def keep(results: Path = RESULTS, folder: Path = FOLDER) -> Path:
    """Copy the results into a new file; raises BadInput where there are none."""
    if not results.exists():
        raise BadInput(results.name, "there are no results", "run make bench first")
    kept = now()
    document: dict[str, Any] = {
        "kind": "speed",
        "kept": kept,
        "commit": commit(),
        "uncommitted": uncommitted(ELSEWHERE),
        "machine": machine(),
        "load_after": load(),
        "versions": versions(),
        "unknown": [],
        "rows": json.loads(results.read_bytes()),
    }
    path = folder / f"speed-{kept[:10]}-{kept[11:13]}{kept[14:16]}.json"
    with path.open("x", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return path
