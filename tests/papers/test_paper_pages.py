"""The tables of research/notes/paper.md are made from data, and a changed figure is seen."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.papers import pages

TEXTS = {page.name: page.read_text(encoding="utf-8") for page in pages.PAGES}


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_is_as_its_data(name: str) -> None:
    assert pages.rendered(TEXTS[name]) == TEXTS[name], "python -m tests.papers.pages renders it"


def test_every_table_stands_on_a_page_and_every_figure_is_shown() -> None:
    named = [found["name"] for text in TEXTS.values() for found in pages.MARKED.finditer(text)]
    assert sorted(named) == sorted(pages.TABLES)
    assert {path.stem for path in pages.DATA.glob("*.json")} == set(pages.COMMANDS)


@pytest.mark.parametrize("name", pages.TABLES)
def test_a_changed_figure_in_a_copy_of_the_page_is_seen(name: str) -> None:
    (text,) = (each for each in TEXTS.values() if f"<!-- paper-table: {name} -->" in each)
    (found,) = (each for each in pages.MARKED.finditer(text) if each["name"] == name)
    digits = list(re.finditer(r"\d", found[0].partition("-->")[2]))
    for digit in (digits[0], digits[-1]):
        place = found.start() + len(found[0].partition("-->")[0]) + 3 + digit.start()
        other = str((int(digit[0]) + 1) % 10)
        copy = text[:place] + other + text[place + 1 :]
        assert pages.rendered(copy) == text != copy


def test_other_data_make_another_table(tmp_path: Path) -> None:
    shutil.copytree(pages.DATA, tmp_path / "figures")
    path = tmp_path / "figures/natjam-10.json"
    path.write_text(path.read_text().replace('"193 s"', '"173 s"'))
    assert pages.TABLES["natjam-deadlines"](tmp_path / "figures") != pages.TABLES["natjam-deadlines"](
        pages.DATA
    )


def test_the_data_are_of_the_blocks_that_the_page_tells_of() -> None:
    twenty, five = (pages.load(name)["blocks"] for name in ("natjam-blocks", "natjam-blocks-of-5"))
    assert [(one["count"], one["runs"], one["seeds"]) for one in (twenty, five)] == [
        (10, 20, [0, 199]),
        (40, 5, [0, 199]),
    ]
