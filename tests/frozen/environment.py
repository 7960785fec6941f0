"""The environment: variables that the programs read, and those that the container files read.

Law: a variable is found by its name in the source, wherever it stands, so that code may move and no variable
may go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = re.compile(r"""["']((?:YARNCTL|YARN_EMULATOR|HADOOP)_[A-Z_]*[A-Z])["']""")
READ = re.compile(r"""\b(?:environ|environment|env)(?:\.get\(|\[)\s*["']([A-Z][A-Z_]*)["']""")
EXPANDED = re.compile(r"\$\{([A-Z][A-Z_]*)(:?[-?+][^}]*)?\}")


def variables() -> dict[str, dict[str, object]]:
    """Return the variables of the programs, and those of each container folder with what stands for none."""
    found: dict[str, dict[str, object]] = {"programs": dict.fromkeys(read_by_programs(), True)}
    for folder in sorted(path for path in (ROOT / "docker").iterdir() if path.is_dir()):
        found[f"docker/{folder.name}"] = dict(read_by_containers(folder.rglob("*")))
    found["compose.yaml"] = dict(read_by_containers([ROOT / "compose.yaml"]))
    return found


def read_by_programs() -> list[str]:
    """Return every variable that yarnctl, the task runner or the emulator reads."""
    names: set[str] = set()
    for package in ("yarnctl", "emulator"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if "data" in path.relative_to(ROOT).parts:  # a job of the demo, not a program of ours
                continue
            text = path.read_text(encoding="utf-8")
            names.update(OURS.findall(text), READ.findall(text))
    return sorted(names)


def read_by_containers(paths: Iterable[Path]) -> dict[str, str]:
    """Return every variable that files expand, with its defaults as they are written there."""
    found: dict[str, set[str]] = {}
    for path in sorted(path for path in paths if path.is_file() and path.suffix != ".xml"):
        for name, otherwise in EXPANDED.findall(path.read_text(encoding="utf-8", errors="replace")):
            found.setdefault(name, set()).add(otherwise)
    return {name: " | ".join(sorted(each for each in told if each)) for name, told in sorted(found.items())}
