"""Documents and data: tables between markers, and single figures that carry one.

    <!-- table: NAME [WORDS] -->
    ...
    <!-- /table -->

    production took 48.8<!--=hadoop-2026-11-22-0841:yarnctl.production_s .1f--> s

Law: what stands between a table's markers, and the word right before a figure's marker, is what the data
give; the command puts it there, and a test holds it there. ``100*.1f`` shows a ratio as per cent. A marker
that cannot be read is an error, never text.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.measured import estimates_tables, fidelity_tables, tables
from tests.measured.campaign import FOLDER, KIND, kind_of, read
from tests.measured.provenance import ROOT
from tests.measured.summary import figures
from yarnctl.errors import BadInput

TABLES: dict[str, Callable[[Sequence[str]], str]] = {
    "overview": tables.overview,
    "campaigns": tables.campaigns,
    "coming-back": tables.coming_back,
    "admission": tables.admission,
    "estimates": estimates_tables.models,
    "estimates-claims": estimates_tables.claims,
    "speed": tables.speed,
    "fidelity": fidelity_tables.deviations,
    "fidelity-means": fidelity_tables.means,
    "fidelity-parameters": fidelity_tables.parameters,
    "predictions": fidelity_tables.predictions,
}
COMPUTED: dict[str, Callable[[], Any]] = {
    "fidelity": fidelity_tables.document,
    "predictions": fidelity_tables.checked,
}
"""Data that are computed from campaigns, by the name under which a figure's marker asks for them."""

TABLE = re.compile(r"<!-- table: (?P<words>[^>]+?) -->\n(?P<body>.*?)<!-- /table -->", re.DOTALL)
TABLE_BEGIN = "<!-- table:"
FIGURE = re.compile(
    r"(?P<text>[^\s<>()|\[\]]+)"
    r"<!--=(?P<source>[\w.-]+):(?P<path>[^\s<>]+) (?:(?P<scale>-?[\d.]+)\*)?(?P<format>[\w.,+%]+)-->"
)
FIGURE_BEGIN = "<!--="


def documents() -> list[Path]:
    """Return every document that may hold tables or figures."""
    folders = ("docs/**", "docker", "research/**")
    return sorted([*ROOT.glob("*.md"), *(page for each in folders for page in ROOT.glob(f"{each}/*.md"))])


@functools.cache
def source(name: str) -> Any:
    """Return the data that a marker names: the figures of a campaign's schemes, or a file as it is."""
    if name in COMPUTED:
        return COMPUTED[name]()
    path = FOLDER / f"{name}.json"
    if not path.exists():
        raise BadInput(name, "a marker names data that are not there", f"see docs/{FOLDER.name}")
    return figures(read(path))["schemes"] if kind_of(path) == KIND else json.loads(path.read_bytes())


def value_at(name: str, path: str) -> float:
    """Return the number that a path leads to; raises BadInput where there is none."""
    found = source(name)
    for step in path.split("."):
        try:
            found = found[int(step)] if isinstance(found, list) else found[step]
        except (KeyError, IndexError, ValueError, TypeError):
            raise BadInput(f"{name}:{path}", f"leads to nothing at {step!r}") from None
    if not isinstance(found, int | float) or isinstance(found, bool):
        raise BadInput(f"{name}:{path}", f"is no number: {found!r}")
    return found


def figure(match: re.Match[str]) -> str:
    """Return a figure's text as the data give it."""
    value = value_at(match["source"], match["path"]) * float(match["scale"] or 1)
    if match["format"].endswith("d"):
        value = round(value)
    return format(value, match["format"])


def rendered(text: str, name: str) -> str:
    """Return a document with its tables and figures as the data give them."""
    begun, closed = text.count(TABLE_BEGIN), len(TABLE.findall(text))
    if begun != closed:
        raise BadInput(name, f"{begun} tables begin and {closed} can be read")
    begun, closed = text.count(FIGURE_BEGIN), len(FIGURE.findall(text))
    if begun != closed:
        raise BadInput(name, f"{begun} figures are marked and {closed} can be read")
    text = TABLE.sub(_table, text)
    return FIGURE.sub(lambda match: match[0].replace(match["text"], figure(match), 1), text)


def _table(match: re.Match[str]) -> str:
    name, *words = match["words"].split()
    if name not in TABLES:
        raise BadInput(f"table: {name}", "there is no such table", f"there are {', '.join(TABLES)}")
    return f"<!-- table: {match['words']} -->\n{made(name, tuple(words))}\n<!-- /table -->"


@functools.cache
def made(name: str, words: tuple[str, ...]) -> str:
    """Return a table; it is made once in a process."""
    return TABLES[name](words)


def differences(paths: Sequence[Path] | None = None) -> list[str]:
    """Return a line for each document's line that is not what the data give."""
    found = []
    for path in documents() if paths is None else paths:
        before = path.read_text(encoding="utf-8")
        after = rendered(before, path.name)
        for number, (one, other) in enumerate(zip(before.split("\n"), after.split("\n"), strict=False), 1):
            if one != other:
                found.append(f"{path.name}:{number}: {_part(one, other)}")
        if before.count("\n") != after.count("\n"):
            found.append(f"{path.name}: a table has another number of rows")
    return found


def _part(one: str, other: str) -> str:
    """Say what a line has, and what it should have, from the first character that differs."""
    start = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    begin = max(0, start - 20)
    return f"has {one[begin : start + 30]!r}, the data give {other[begin : start + 30]!r}"


def render(paths: Sequence[Path] | None = None) -> list[str]:
    """Write what the data give into every document; return the names of those that changed."""
    changed = []
    for path in documents() if paths is None else paths:
        before = path.read_text(encoding="utf-8")
        after = rendered(before, path.name)
        if after != before:
            path.write_text(after, encoding="utf-8")
            changed.append(path.name)
    return changed
