"""Results: what became of each mutant, kept in a file; the score with its interval; reasons of survivors.

Law: a result counts for the sources and tests that it was found with, and for no others: the file is begun
anew when they have changed. With ``keep_killed`` the killed are kept, which is right when tests were only
added. A reason is kept by the mutant's name; who has none is called unexplained.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import platform
import subprocess
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

EXPLAINED = Path(__file__).with_name("explained.toml")
CONFIDENCE_Z = 1.959964
"""Two-sided 95 %."""


class Result(NamedTuple):
    """``outcome``: killed or survived; ``by`` the test that failed, or how else; ``change`` for people."""

    identity: str
    outcome: str
    by: str
    change: str
    cpu_s: float


class Results:
    """The file: one line that names sources and tests, then one a mutant."""

    def __init__(
        self, path: Path, root: Path, target: str, tests: Sequence[str], *, keep_killed: bool = False
    ) -> None:
        self.path = path
        self.known: dict[str, Result] = {}
        head = {"digest": digest(root, [target, *tests])}
        self.baseline = path.with_name(f"{path.stem}-{head['digest'][:12]}.baseline.json")
        lines = path.read_text().splitlines() if path.exists() else []
        same = bool(lines) and json.loads(lines[0]) == head
        for line in lines[1:]:
            result = Result(**json.loads(line))
            if same or (keep_killed and result.outcome == "killed"):
                self.known[result.identity] = result
        if not same:
            path.write_text(json.dumps(head) + "\n")
            for result in list(self.known.values()):
                self.add(result)

    def add(self, result: Result) -> None:
        """Keep a result, at once."""
        self.known[result.identity] = result
        with self.path.open("a") as file:
            file.write(json.dumps(result._asdict(), ensure_ascii=False) + "\n")


def digest(root: Path, places: Sequence[str]) -> str:
    """Return a digest of all Python and JSON files below these places."""
    found = hashlib.sha256()
    for place in places:
        path = root / place.split("::")[0]
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.suffix in (".py", ".json") and file.is_file():
                found.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


def wilson(killed: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson, JASA 22 (1927), 209-212)."""
    if not count:
        return 0.0, 1.0
    z, share = CONFIDENCE_Z, killed / count
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - half) / (1 + z * z / count), (middle + half) / (1 + z * z / count)


def reasons() -> dict[str, dict[str, str]]:
    """Return the explained survivors: name -> kind and reason."""
    rows = tomllib.loads(EXPLAINED.read_text()).get("survivor", [])
    return {row["mutant"]: row for row in rows}


def summary(
    root: Path, results: Sequence[Result], options: argparse.Namespace, all_of: int
) -> dict[str, Any]:
    """Return the campaign: what was drawn from what, the score, and each survivor with its reason."""
    known = reasons()
    survived = [one for one in results if one.outcome == "survived"]
    killed = len(results) - len(survived)
    rows = [
        {
            "mutant": one.identity,
            "change": one.change,
            "by": one.by,
            "kind": known.get(one.identity, {}).get("kind", "unexplained"),
            "reason": known.get(one.identity, {}).get("reason", ""),
        }
        for one in survived
    ]
    equivalent = sum(row["kind"] == "equivalent" for row in rows)
    low, high = wilson(killed, len(results))
    return {
        "kind": "mutants",
        "commit": _git(root, "rev-parse", "HEAD"),
        "changed_since_commit": bool(_git(root, "status", "--porcelain")),
        "date": _git(root, "log", "-1", "--format=%cI"),
        "machine": {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "system": platform.platform(),
        },
        "load": list(os.getloadavg()),
        "seed": options.seed,
        "count": options.count,
        "target": options.target,
        "tests": options.tests,
        "population": all_of,
        "tried": len(results),
        "killed": killed,
        "survived": len(survived),
        "score_percent": round(100 * killed / len(results), 1) if results else 0.0,
        "interval_percent": {"low": round(100 * low, 1), "high": round(100 * high, 1)},
        "score_without_equivalent_percent": _share(killed, len(results) - equivalent),
        "by_kind": _by(results, 2),
        "by_file": _by(results, 0),
        "unexplained": sum(row["kind"] == "unexplained" for row in rows),
        "survivors": rows,
        "killed_mutants": [
            {"mutant": one.identity, "by": one.by} for one in results if one.outcome == "killed"
        ],
    }


def _share(killed: int, count: int) -> float:
    return round(100 * killed / count, 1) if count else 0.0


def _by(results: Sequence[Result], part: int) -> dict[str, str]:
    """Return killed of tried, by a part of the mutants' names."""
    tried = Counter(one.identity.split("::")[part] for one in results)
    killed = Counter(one.identity.split("::")[part] for one in results if one.outcome == "killed")
    return {name: f"{killed[name]} of {count}" for name, count in sorted(tried.items())}


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def told(found: dict[str, Any]) -> str:
    """Return a summary for people."""
    low, high = found["interval_percent"].values()
    lines = [
        f"{found['killed']} of {found['tried']} mutants killed: {found['score_percent']} %"
        f" (95 % interval {low} to {high} %), of {found['population']} in {found['target']},"
        f" seed {found['seed']}; {found['score_without_equivalent_percent']} % without the equivalent ones",
        "  ".join(f"{name} {share}" for name, share in found["by_kind"].items()),
    ]
    for row in found["survivors"]:
        lines += [
            f"survived: {row['mutant']}",
            f"    {row['change']}",
            f"    {row['kind']}: {row['reason'] or row['by']}",
        ]
    return "\n".join(lines)
