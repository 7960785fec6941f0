"""The ratchet: the list of today's breaches, which only shrinks.

Law: a breach that the list does not name is a problem; so is one that has grown, and so is an entry that is
no longer a breach or is higher than what it stands for. ``shrunk`` removes and lowers entries and never
adds one.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.architecture.house.sources import Finding

LISTED = "tests/architecture/house/known.toml"
HAND_WRITTEN = ("exceptions", "not-reasons", "roles")
"""Tables whose values are reasons for people, not figures."""

_TABLE = re.compile(r"\[(?P<name>[\w-]+)\]")


class Known(NamedTuple):
    """What ``known.toml`` says."""

    figures: Mapping[str, Mapping[str, int]]
    exceptions: Mapping[str, str]
    not_reasons: Mapping[str, str]
    roles: Mapping[str, str]


def load(path: Path) -> Known:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    figures = {name: table for name, table in document.items() if name not in HAND_WRITTEN}
    return Known(figures, *(document.get(name, {}) for name in HAND_WRITTEN))


def problems(findings: Iterable[Finding], known: Known) -> list[str]:
    """Return what makes the check fail: one line each."""
    findings = list(findings)
    found = [line for finding in findings for line in judged(finding, known.figures.get(finding.section, {}))]
    sections = {finding.section for finding in findings}
    return found + [
        f"known.toml: [{name}] is the table of no check" for name in known.figures if name not in sections
    ]


def judged(finding: Finding, entries: Mapping[str, int]) -> Iterator[str]:
    """Compare the breaches of one check with its entries."""
    for breach in finding.breaches:
        entry = entries.get(breach.key, 0)
        if not entry:
            yield f"{breach.where}: {breach.says}"
        elif breach.figure > entry:
            yield f"{breach.where}: {breach.says}; it had {entry} before"
    present = by_key(finding)
    for key, entry in entries.items():
        figure = present.get(key)
        if figure is None:
            yield f"known.toml: [{finding.section}] {key}: no longer a breach; remove it"
        elif figure < entry:
            yield f"known.toml: [{finding.section}] {key}: lower it from {entry} to {figure}"


def shrunk(text: str, findings: Iterable[Finding]) -> str:
    """Return the text of ``known.toml`` without what is no breach any more, and with lower figures."""
    present = {finding.section: by_key(finding) for finding in findings}
    section = ""
    lines = []
    for line in text.splitlines(keepends=True):
        if table := _TABLE.match(line):
            section = table["name"]
        elif section in present and section not in HAND_WRITTEN and line.strip() and not line.startswith("#"):
            ((key, entry),) = tomllib.loads(line).items()
            if key not in present[section]:
                continue
            line = written(key, min(entry, present[section][key]))
        lines.append(line)
    return "".join(lines)


def by_key(finding: Finding) -> dict[str, int]:
    """Return the breaches' figures by their keys; of two with one key the higher one."""
    figures: dict[str, int] = {}
    for breach in finding.breaches:
        figures[breach.key] = max(breach.figure, figures.get(breach.key, 0))
    return figures


def written(key: str, figure: int) -> str:
    return f"{json.dumps(key, ensure_ascii=False)} = {figure}\n"
