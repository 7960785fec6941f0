"""Where a measurement comes from: commit, changed files, machine, load, versions.

Law: what cannot be found out is None, never a guess.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


def git(*words: str, root: Path = ROOT) -> str | None:
    """Return what git prints; None where it fails or is absent."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def commit(root: Path = ROOT) -> str | None:
    """Return the commit that is checked out."""
    found = git("rev-parse", "HEAD", root=root)
    return found.strip() if found else None


def uncommitted(paths: Sequence[str] = (), root: Path = ROOT) -> list[str] | None:
    """Return the files that differ from the commit, of some paths or of all; None where git cannot say."""
    found = git("status", "--porcelain", "--untracked-files=all", "--", *paths, root=root)
    return None if found is None else sorted(line[3:] for line in found.splitlines())


def now() -> str:
    """Return the present instant, UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def load() -> list[float]:
    """Return the machine's load averages over 1, 5 and 15 minutes."""
    return [round(each, 2) for each in os.getloadavg()]


def machine() -> dict[str, Any]:
    """Return what the measurement ran on."""
    return {
        "cores": os.cpu_count(),
        "processor": _first(Path("/proc/cpuinfo"), r"^model name\s*:\s*(.*)$"),
        "memory_kib": _first(Path("/proc/meminfo"), r"^MemTotal:\s*(\d+)"),
        "system": f"{platform.system()} {platform.release()}",
    }


def versions(**given: str) -> dict[str, str | None]:
    """Return the versions of what took part, those that the caller knows among them."""
    return {
        **given,
        "yarnctl": metadata.version("yarnctl"),
        "python": platform.python_version(),
        "java": _java(),
    }


def head(kind: str, paths: Sequence[str] = (".", ":!research/records"), **known: str) -> dict[str, Any]:
    """Return what a file of results says first, taken as the measurement begins; ``known`` are versions."""
    return {
        "kind": kind,
        "began": now(),
        "commit": commit(),
        "uncommitted": uncommitted(paths),
        "machine": machine(),
        "load_before": load(),
        "versions": versions(**known),
    }


def _java() -> str | None:
    try:
        done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    lines = (done.stderr or done.stdout).splitlines()
    return lines[0] if lines else None


def _first(path: Path, pattern: str) -> str | None:
    try:
        found = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return found[1].strip() if found else None
