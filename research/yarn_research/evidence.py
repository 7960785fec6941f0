"""``python -m yarn_research.evidence``: write docs/evidence.md from the checks and the newest records.

A check runs on every change and can fail. A record says what a campaign gave, with date, commit, machine and
options; it is never run again because code near it changed. Invariants:

- every file of ``research/records`` belongs to exactly one record of the index;
- a record that carries an interval names its method and its coverage;
- the page is a function of ``index.toml``, ``checks.toml`` and the files' heads.
"""

from __future__ import annotations

import json
import sys
import textwrap
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from yarn_research.campaigns.campaign import FOLDER
from yarn_research.campaigns.provenance import ROOT

PAGE = ROOT / "docs" / "evidence.md"
USUAL_CORES = 2
USUAL_INTERVAL = "Clopper and Pearson"
WIDTH, PARAGRAPH_LINES, ASKED_MAX = 110, 5, 100


class MeasuredRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What one campaign gave. ``files`` are names in the folder, without ``.json``; ``date`` is YYYY-MM-DD."""

    topic: str
    date: str
    files: tuple[str, ...]
    options: str
    was: str
    asked: str
    missed: bool = False
    rival: str = ""
    interval: str = ""


class Check(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What CI checks in one area, and the tests that do it."""

    area: str
    checks: str
    tests: tuple[str, ...]


def records(folder: Path = FOLDER) -> list[MeasuredRecord]:
    """Return the index, in its order."""
    found = tomllib.loads((folder / "index.toml").read_text(encoding="utf-8"))["record"]
    return msgspec.convert(found, list[MeasuredRecord])


def checks(folder: Path = FOLDER) -> list[Check]:
    """Return what CI checks, by area."""
    found = tomllib.loads((folder / "checks.toml").read_text(encoding="utf-8"))["check"]
    return msgspec.convert(found, list[Check])


def newest(found: Sequence[MeasuredRecord]) -> list[MeasuredRecord]:
    """Return the last record of each topic; topics keep the order of the index."""
    return list({record.topic: record for record in found}.values())


def head_of(name: str, folder: Path = FOLDER) -> dict[str, Any]:
    """Return what a file says of its own making: its ``head``, or the file itself."""
    document = json.loads((folder / f"{name}.json").read_bytes())
    if not isinstance(document, dict):
        return {}
    head = document.get("head", document)
    return head if isinstance(head, dict) else {}


def made_of(record: MeasuredRecord, folder: Path = FOLDER) -> str:
    """Return the commit and the machine of a record; "" if its files name no commit."""
    heads = [head_of(name, folder) for name in record.files]
    commits = sorted({str(head["commit"])[:8] for head in heads if head.get("commit")})
    cores = sorted({head["machine"]["cores"] for head in heads if isinstance(head.get("machine"), dict)})
    commit = ", ".join(commits)
    if not commit:
        return ""
    if len(cores) != 1:
        return f"{commit}, machine unknown"
    return commit if cores[0] == USUAL_CORES else f"{commit}, {cores[0]} cores"


def _item(indent: str, text: str) -> list[str]:
    """Return an item of a list, wrapped."""
    under = " " * len(indent)
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=under, break_on_hyphens=False)


def page() -> str:
    """Return docs/evidence.md."""
    lines = [
        "# Evidence",
        "",
        "What CI checks on every change (tests: `research/records/checks.toml`), and what was measured (generated).",
        "",
        "## Checks",
        "",
        "| area | what is checked |",
        "|---|---|",
        *(f"| {check.area} | {check.checks} |" for check in checks()),
        "",
        "## Newest records",
        "",
        "What campaigns gave: date, commit; two cores, and intervals by Clopper and Pearson (95 %), if none is named.",
        "Options, what was asked, other runs: `research/records/index.toml`, [misses](../research/records/misses.md).",
        "",
    ]
    for record in newest(records()):
        if not (made := made_of(record)):
            continue
        missed = ", missed" if record.missed else ""
        parts = [f"Asked: {record.asked}."] if record.missed and len(record.asked) <= ASKED_MAX else []
        parts += [f"Nearest rival: {record.rival}."] if record.rival else []
        if record.interval and not record.interval.startswith(USUAL_INTERVAL):
            parts.append(f"Interval: {record.interval}.")
        was = f"**{record.topic}**, {record.date}, {made}{missed}. {record.was}"
        item = _item("* ", " ".join([was, *parts]))
        lines += (
            item if len(item) <= PARAGRAPH_LINES else [*_item("* ", was), *_item("  * ", " ".join(parts))]
        )
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
