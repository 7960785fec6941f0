"""Golden journals: recorded once, read ever after. Here: what explain, a restart and replay make of each.

Law: a golden journal is never written again, whatever this program writes today (``recording`` says how each
was made; README.md names the one exception). What is asked of it is asked through the commands that users
have; ids are found in its lines as JSON, without this program's records.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.frozen.invoking import invoked
from tests.frozen.pieces import Piece
from tests.frozen.rebuilt import rebuilt
from yarnctl.errors import YarnctlError

FOLDER = Path(__file__).with_name("journals")
SUFFIX = ".jsonl.gz"
END = "end"


def names() -> list[str]:
    return sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}"))


def raw(name: str) -> bytes:
    return gzip.decompress((FOLDER / f"{name}{SUFFIX}").read_bytes())


def records(data: bytes) -> list[dict[str, Any]]:
    """Return a journal's lines as plain JSON."""
    return [json.loads(line) for line in data.splitlines()]


@contextlib.contextmanager
def laid_out(data: bytes) -> Iterator[Path]:
    """Lay a journal down as a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        path.write_bytes(data)
        yield path


def ids_in(found: list[dict[str, Any]]) -> list[str]:
    """Return what is to be explained: decisions, who asked, who gave, priorities, admissions."""
    ids: dict[str, None] = {}
    for record in found:
        kind, action = record["type"], record.get("action", {})
        if kind == "decision":
            ids[str(record["number"])] = None
        if kind in ("decision", "refusal"):
            ids[record["trigger"]["application"]] = None
        if kind == "requests":
            ids.update((each.get("application", ""), None) for each in record["actions"])
        if kind == "performed" and isinstance(action, dict):
            ids[action.get("victim") or action.get("application", "")] = None
        if kind.startswith("admission-") and "admission" in record:
            ids[record["admission"]] = None
        if kind in ("admission-started", "forgotten"):
            ids[record["application"]] = None
    ids.pop("", None)
    return list(ids)


def outcome(name: str) -> dict[str, Any]:
    """Return what is made of a golden journal."""
    return outcome_of(raw(name))


def outcome_of(data: bytes) -> dict[str, Any]:
    """Return what replay, a restart and explain make of a journal."""
    found = records(data)
    opened = [] if found[-1]["type"] == END else ["--open"]
    with laid_out(data) as path:
        shown = str(path)
        return {
            "replay": invoked("replay", *opened, "--json", shown, hidden=shown),
            "rebuilt": _rebuilt(path),
            "explained": {each: explained(path, each) for each in ids_in(found)},
        }


def _rebuilt(path: Path) -> Any:
    """Return what a restart goes on with, or why it is refused."""
    try:
        return rebuilt(path)
    except YarnctlError as error:
        return {"refused": str(error).replace(str(path), "PATH")}


def explained(path: Path, wanted: str) -> dict[str, Any]:
    """Return an explanation as JSON and in words."""
    shown = str(path)
    told = invoked("explain", "--journal", shown, "--json", wanted, hidden=shown)
    if told["status"] == 0:
        told["out"] = json.loads("\n".join(told["out"]))
    return {"json": told, "text": invoked("explain", "--journal", shown, wanted, hidden=shown)}


def facts() -> dict[str, Any]:
    """Return of each journal its SHA-256, the formats in it, and how many records of each kind it holds."""
    return {name: _facts(raw(name)) for name in names()}


def _facts(data: bytes) -> dict[str, Any]:
    found = records(data)
    headers = [record for record in found if record["type"] == "header"]
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "formats": sorted({header["format"] for header in headers}),
        "closed": found[-1]["type"] == END,
        "records": dict(sorted(Counter(record["type"] for record in found).items())),
    }


def pieces() -> list[Piece]:
    """Return a piece for each golden journal, and one that holds the journals themselves."""
    made = [Piece(f"journals/{name}", partial(outcome, name), packed=True) for name in names()]
    return [Piece("journals", facts, "kept"), *made]
