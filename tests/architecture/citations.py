"""Citations of ``docs/facts``: how one looks, which page it means, and whether its section exists.

Law: pure but for reading files below a root. Every form in use is one alternative of ``CITATION``; text that
looks like a citation and has none of these forms is a problem, too, so that no citation escapes the check.

The forms, PAGE being the name of a page without its ``.md`` and N section numbers (``5``, ``4.1 and 11``,
``1.1 to 1.5``)::

    facts/PAGE.md, section N     facts/PAGE, section N     facts/PAGE.md, N
    facts, PAGE.md section N     facts, PAGE N             PAGE.md, section N
    facts, section N             facts (section N)         facts section N
    facts N                      PAGE N
    section N of the facts       section N of facts/PAGE.md

Each may end in ", no. R": the row R of a numbered table in that section. A line break, with the sign that
begins the next comment line, counts as a space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

PAGES = ("dependencies", "flink", "hadoop", "natjam", "spark")
SUFFIXES = {
    ".c", ".cfg", ".css", ".html", ".ini", ".java", ".js", ".json", ".jsonl", ".md", ".py", ".sh", ".toml",
    ".txt", ".xml", ".yaml", ".yml",
}  # fmt: skip
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
_PAGE = rf"(?:{'|'.join(PAGES)})"
_SECTION = rf"\(?sections?{S}"
CITATION = re.compile(
    rf"""
    (?: \bfacts/(?P<path>{_PAGE})(?:\.md)?,?{S}(?:{_SECTION})?
      | (?:\bfacts,?{S})?\b(?P<file>{_PAGE})\.md,?{S}(?:{_SECTION})?
      | (?:\bfacts,?{S})?(?<![\w./-])(?P<page>{_PAGE}){S}(?:{_SECTION})?
      | \bfacts,?{S}{_SECTION}
      | \bfacts{S}
    )
    (?P<numbers>{_NUMBERS}) (?:,{S}no\.{S}(?P<row>\d+\w?)\b)?
    | \bsections?{S}(?P<before>{_NUMBERS}){S}of{S}(?:the{S})?(?:docs/)?
      (?:facts/(?P<named>{_PAGE})\.md|facts\b(?!/))
    """,
    re.VERBOSE,
)
LIKE_ONE = re.compile(
    r"\bfacts\b(?:(?!\. )[^\n=(]){0,30}[( ]sections?[ ]+\d"
    r"|\bfacts/\w+(?:\.md)?,?[ ]+\d"
    r"|\bsections?[ ]+[\d.]+\b(?:(?!\. )[^\n=]){0,30}\bfacts\b"
)
HEADING = re.compile(r"^#{2,4} (\d{1,2}(?:\.\d{1,2})?)\.? \S.*$", re.MULTILINE)
ROW = re.compile(r"^\| (\d+\w?) \|", re.MULTILINE)


class Citation(NamedTuple):
    """One section that is cited. ``page`` is "" where none is named, ``row`` where no row is."""

    line: int
    page: str
    section: str
    row: str
    text: str


class Page(NamedTuple):
    """The sections of a page, in its order, each with its text up to the next heading."""

    sections: Mapping[str, str]
    numbers: tuple[str, ...]


def citations(text: str) -> Iterator[Citation]:
    for match in CITATION.finditer(text):
        groups = match.groupdict()
        page = next((groups[one] for one in ("path", "file", "page", "named") if groups[one]), "")
        said = " ".join(match[0].split())
        line = text.count("\n", 0, match.start()) + 1
        for section in sections_in(match["numbers"] or match["before"]):
            yield Citation(line, page, section, match["row"] or "", said)


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


def unread(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and words of whatever looks like a citation and cannot be read as one."""
    known = [match.span() for match in CITATION.finditer(text)]
    for match in LIKE_ONE.finditer(text):
        if not any(begin < match.end() and match.start() < end for begin, end in known):
            yield text.count("\n", 0, match.start()) + 1, match[0]


def meant_by(path: str) -> str:
    """Return the page that a citation without a page means in this file; "" if the file must name it."""
    return next((page for pattern, page in MEANT if fnmatch(path, pattern)), "")


@cache
def page_of(file: Path) -> Page:
    text = file.read_text(encoding="utf-8")
    heads = list(HEADING.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    sections = {head[1]: text[head.end() : end] for head, end in zip(heads, ends, strict=True)}
    return Page(sections, tuple(head[1] for head in heads))


def without_source(page: Page, beginning: str) -> list[str]:
    """Return the sections that have text and no source: not there, in their parent or in the beginning."""
    if "Source of all sections" in beginning:
        return []
    return [
        number
        for number, text in page.sections.items()
        if text.strip() and "Source" not in text + page.sections.get(number.partition(".")[0], "")
    ]


def problems_of(path: str, text: str, folder: Path) -> list[str]:
    """Return what is wrong with the citations of one file, a line each. ``folder`` holds the pages."""
    found = [f"{path}:{line}: {words!r} is no form of a citation" for line, words in unread(text)]
    for one in citations(text):
        where = f"{path}:{one.line}: {one.text!r}"
        page = one.page or meant_by(path)
        if not page:
            found.append(f"{where} names no page: write facts/PAGE.md, section {one.section}")
            continue
        file = folder / f"{page}.md"
        sections = page_of(file).sections if file.is_file() else {}
        if one.section not in sections:
            found.append(f"{where}: docs/facts/{page}.md has no section {one.section}")
        elif one.row and one.row not in ROW.findall(sections[one.section]):
            found.append(f"{where}: section {one.section} of docs/facts/{page}.md has no row {one.row}")
    return found


def texts(root: Path) -> Iterator[tuple[str, str]]:
    """Yield path and text of every file that may cite, in order."""
    files = [path for path in root.iterdir() if path.is_file()]
    files += [path for folder in FOLDERS for path in (root / folder).rglob("*") if path.is_file()]
    for path in sorted(files):
        if path.suffix in SUFFIXES or path.name in ("Makefile", "Dockerfile"):
            yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8", errors="replace")
