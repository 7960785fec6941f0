"""Citations of ``docs/facts``: how one looks, which page it means, and whether its section exists.

The forms, PAGE being the name of a page and N section numbers (``5``, ``4.1 and 11``, ``1.1 to 1.5``):
``facts/PAGE.md, section N``, ``facts, PAGE N``, ``PAGE N``, ``facts, section N``, ``facts N``. A line break,
with the sign that begins the next comment line, counts as a space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

PAGES = ("dependencies", "flink", "hadoop", "natjam", "spark")
SUFFIXES = {".html", ".ini", ".java", ".js", ".md", ".py", ".sh", ".toml", ".txt", ".xml", ".yaml", ".yml"}
FOLDERS = ("docker", "docs", "emulator", "hadoop-conf", "research", "tests", "yarnctl")
"""What is searched, beside the files of the root itself."""

MEANT = (
    ("*natjam*", "natjam"), ("research/notes/paper.md", "natjam"),
    ("research/yarn_research/papers/*", "natjam"), ("emulator/*timing.py", "natjam"),
    ("tests/golden/test_policies.py", "natjam"), ("yarnctl/deciding/policies/*", "natjam"),
    ("yarnctl/deciding/settings.py", "natjam"), ("emulator/live/*", "hadoop"), ("tests/contract/*", "hadoop"),
    ("tests/unit/hadoop/*", "hadoop"), ("yarnctl/attach/*", "hadoop"),
    ("yarnctl/deciding/queue_hold.py", "hadoop"), ("yarnctl/hadoop/*", "hadoop"),
)  # fmt: skip
"""The page that a citation without a page means, by the path of its file; the first match counts."""

S = r"(?:[ \t]*\n[ \t]*(?:\#+|//|\*)?[ \t]*|[ \t]+)"
_ONE = r"\d{1,2}(?:\.\d{1,2})?(?!\.?\d)"
_NUMBERS = rf"{_ONE}(?:(?:,|{S}and|{S}to|,{S}and){S}{_ONE})*"
_PAGE = "|".join(PAGES)
_SECTION = rf"(?:\(?sections?{S})"
CITATION = re.compile(
    rf"(?:(?:\bfacts(?:/|,?{S}))?(?<![\w.-])(?P<page>{_PAGE})(?:\.md)?,?{S}{_SECTION}?"
    rf"|\bfacts/(?P<other>\w+)(?:\.md)?,?{S}{_SECTION}?|\bfacts,?{S}{_SECTION}|\bfacts{S})(?P<numbers>{_NUMBERS})"
)
HEADING = re.compile(r"^#{2,4} (\d{1,2}(?:\.\d{1,2})?)\.? \S.*$", re.MULTILINE)


class Citation(NamedTuple):
    """One section that is cited. ``page`` is "" where none is named."""

    line: int
    page: str
    section: str
    text: str


def citations(text: str) -> Iterator[Citation]:
    for match in CITATION.finditer(text):
        said = " ".join(match[0].split())
        line = text.count("\n", 0, match.start()) + 1
        for section in sections_in(match["numbers"]):
            yield Citation(line, match["page"] or match["other"] or "", section, said)


def sections_in(numbers: str) -> list[str]:
    """Return the sections that are named: ``1.1 to 1.3`` names three, ``4.1 and 11`` two."""
    found: list[str] = []
    for joint, one in re.findall(r"(?:[^\d]*?(\bto\b))?[^\d]*(\d+(?:\.\d+)?)", numbers):
        parent, _, last = one.rpartition(".")
        before = found[-1].rpartition(".") if found else ("", "", "")
        if joint and before[0] == parent:
            prefix = f"{parent}." if parent else ""
            found += [f"{prefix}{number}" for number in range(int(before[2]) + 1, int(last))]
        found.append(one)
    return found


def meant_by(path: str) -> str:
    """Return the page that a citation without a page means in this file; "" if the file must name it."""
    return next((page for pattern, page in MEANT if fnmatch(path, pattern)), "")


@cache
def page_of(file: Path) -> Mapping[str, str]:
    """Return the sections of a page in its order, each with its text up to the next heading."""
    text = file.read_text(encoding="utf-8")
    heads = list(HEADING.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    return {head[1]: text[head.end() : end] for head, end in zip(heads, ends, strict=True)}


def problems_of(path: str, text: str, folder: Path) -> list[str]:
    """Return what is wrong with the citations of one file, a line each. ``folder`` holds the pages."""
    found = []
    for one in citations(text):
        where = f"{path}:{one.line}: {one.text!r}"
        page = one.page or meant_by(path)
        file = folder / f"{page}.md"
        if not page:
            found.append(f"{where} names no page: write facts/PAGE.md, section {one.section}")
        elif one.section not in (page_of(file) if file.is_file() else {}):
            found.append(f"{where}: docs/facts/{page}.md has no section {one.section}")
    return found


def texts(root: Path) -> Iterator[tuple[str, str]]:
    """Yield path and text of every file that may cite, in order."""
    files = [path for path in root.iterdir() if path.is_file()]
    files += [path for folder in FOLDERS for path in (root / folder).rglob("*") if path.is_file()]
    for path in sorted(files):
        if path.suffix in SUFFIXES or path.name in ("Makefile", "Dockerfile"):
            yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8", errors="replace")
