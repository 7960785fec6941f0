"""The index of what was measured: ``research/records/SHA256SUMS``, as ``sha256sum -c`` reads it.

Law: a file that is in the index stays as it is; one that is not is added by ``python -m yarn_research.campaigns.index``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from yarn_research.campaigns.campaign import FOLDER
from yarnctl.errors import BadInput

NAME = "SHA256SUMS"


def digest(path: Path) -> str:
    """Return a file's SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def entries(folder: Path = FOLDER) -> dict[str, str]:
    """Return the index: SHA-256 by file name."""
    lines = (folder / NAME).read_text(encoding="utf-8").splitlines() if (folder / NAME).exists() else []
    return {name: sha for sha, _, name in (line.partition("  ") for line in lines)}


def complaints(folder: Path = FOLDER) -> list[str]:
    """Say which files were changed or removed, and which are not in the index yet."""
    known = entries(folder)
    there = {path.name: digest(path) for path in sorted(folder.glob("*.json"))}
    found = [f"{name} was removed: bring it back" for name in sorted(known.keys() - there.keys())]
    found += [
        f"{name} was changed: put it back, and write what is new into a file of its own"
        for name in sorted(known.keys() & there.keys())
        if known[name] != there[name]
    ]
    remedy = "python -m yarn_research.campaigns.index"
    found += [f"{name} is not in {NAME}: {remedy}" for name in sorted(there.keys() - known.keys())]
    return found


def add(folder: Path = FOLDER) -> list[str]:
    """Add every new file; return their names. A changed or removed one is refused, and nothing is added."""
    broken = [line for line in complaints(folder) if " is not in " not in line]
    if broken:
        raise BadInput(NAME, "; ".join(broken))
    known = entries(folder)
    new = [path.name for path in sorted(folder.glob("*.json")) if path.name not in known]
    all_of = known | {name: digest(folder / name) for name in new}
    text = "".join(f"{sha}  {name}\n" for name, sha in sorted(all_of.items()))
    (folder / NAME).write_text(text, encoding="utf-8")
    return new


if __name__ == "__main__":
    print("\n".join(add()) or "nothing new")
