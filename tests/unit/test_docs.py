"""The documentation is checked against the program: its links and words exist.

That its commands run is tested in ``tests/commands``.
"""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from yarnctl.cli import PROGRAM

ROOT = Path(__file__).parents[2]
README_LINES_MAX = 100
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
NOTES = sorted(ROOT.glob("research/**/*.md"))


@pytest.mark.parametrize("page", [*PAGES, *NOTES], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        path = (page.parent / target).resolve()
        assert path.exists(), f"{page.name} links to {target}"


def headings(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    lines = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_heading_leads_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
        path = page.parent / target if target else page
        if path.suffix == ".md" and path.exists():
            assert anchor in headings(path.read_text()), f"{page.name} links to {target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_named_on_the_page_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)`", page.read_text()))
    assert named <= targets, f"{page.name} names {named - targets}"


def test_the_readme_is_short():
    """It leads to the pages; tables and what falls short in full stand there."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES_MAX


def commands_named(text: str) -> list[list[str]]:
    """Return every ``yarnctl ...`` of a page, in blocks and between backticks, as words up to a ``--``."""
    code = "\n".join(re.findall(r"```.*?\n(.*?)```", text, re.DOTALL) + re.findall(r"`([^`\n]+)`", text))
    lines = re.findall(r"(?:^|[\s/;(])yarnctl ((?:[^\n|&#\\]|\\\n)+)", code)
    return [line.replace("\\\n", " ").partition(" -- ")[0].split() for line in lines]


def options_of(words: list[str]) -> set[str]:
    """Return the options of the command that the words begin with; none if they name no command."""
    found: set[str] = set()
    group: click.Command | None = PROGRAM
    context = click.Context(click.Group())
    for word in words:
        if isinstance(group, click.Group) and word in group.list_commands(context):
            group = group.get_command(context, word)
            assert group is not None
            found |= {name for one in group.params for name in (*one.opts, *one.secondary_opts)}
    return found | {"--help", "-h"} if found else found


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "docker" / "README.md"], ids=lambda page: page.parent.name + page.name
)
def test_options_named_on_the_page_exist(page):
    for words in commands_named(page.read_text()):
        known = options_of(words)
        named = {word.partition("=")[0].strip(";,.:)") for word in words if re.match(r"--?[a-z]", word)}
        assert not known or named <= known, f"{page.name}: yarnctl {' '.join(words)}: no {named - known}"


def test_an_option_that_does_not_exist_is_found():
    (words,) = commands_named("Type `yarnctl run --enforced --rm URL`, or do not.")
    assert "--enforced" not in options_of(words)
    assert {"--rm", "--enforce"} <= options_of(words)


def metric_names() -> set[str]:
    """Return the metrics' names, with the endings that Prometheus gives to counters and histograms."""
    source = (ROOT / "yarnctl/service/routes/prometheus.py").read_text()
    endings = ("", "_total", "_bucket", "_count", "_sum")
    return {f"{name}{ending}" for name in re.findall(r'"(yarnctl_\w+)"', source) for ending in endings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_metrics_named_on_the_page_exist(page):
    named = set(re.findall(r"\b(yarnctl_[a-z_]+)\b(?!\.py)", page.read_text())) - {"yarnctl_task"}
    assert named <= metric_names(), f"{page.name} names {named - metric_names()}"


GLOSSARY_ROWS_MAX, PRIVATE_WORDS_MAX = 60, 12


def glossary() -> dict[str, list[str]]:
    """Return the words of the glossary, row by row, below the heading of each table."""
    tables = (ROOT / "GLOSSARY.md").read_text().split("\n## ")[1:]
    return {
        table.partition("\n")[0]: re.findall(r"^\| (?!word )(.+?) \|", table, re.MULTILINE)
        for table in tables
    }


def test_the_glossary_has_no_word_twice():
    words = [word.strip() for rows in glossary().values() for row in rows for word in row.split(",")]
    assert len(words) == len(set(words))


def test_the_glossary_is_short():
    assert sum(map(len, glossary().values())) <= GLOSSARY_ROWS_MAX
    assert 0 < len(glossary()["Words of yarnctl"]) <= PRIVATE_WORDS_MAX


PATHS = re.compile(
    r"`((?:yarnctl|emulator|tests|daemon|attach|deciding|hadoop|service|journal|cli|checkpoint)/[\w/.]+)`"
)
LATER: set[str] = set()
"""A folder that is named before there is anything in it."""


def named_modules(page: Path) -> set[str]:
    """Return the modules and folders that a page names, without what stands in them after a dot."""
    found = set()
    for path in PATHS.findall(page.read_text(encoding="utf-8")):
        head, _, last = path.rpartition("/")
        found.add(path if (ROOT / path).exists() else f"{head}/{last.partition('.')[0]}")
    return found


@pytest.mark.parametrize(
    "page",
    [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))],
    ids=str,
)
def test_modules_that_a_page_names_exist(page: Path) -> None:
    missing = {
        name
        for name in named_modules(page) - LATER
        if not any(
            (ROOT / each).exists() for each in (name, f"{name}.py", f"yarnctl/{name}", f"yarnctl/{name}.py")
        )
    }
    assert missing == set()
