"""Documents say what was measured: a changed figure or table in a copy of any document is seen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.measured import rendering
from tests.measured.__main__ import main
from tests.measured.campaign import all_of
from tests.measured.provenance import ROOT
from tests.measured.rendering import FIGURE, TABLE, differences, documents, render, rendered
from yarnctl.errors import BadInput

PAGE = ROOT / "research" / "notes" / "measurements.md"
LIMITS = ROOT / "research" / "notes" / "limitations-long.md"
MARKED = [path for path in documents() if FIGURE.search(path.read_text()) or TABLE.search(path.read_text())]


def test_every_table_and_figure_is_what_the_data_give():
    assert {PAGE, LIMITS} <= set(MARKED)
    assert differences() == []
    assert main(["check"]) == 0


def other(text: str) -> str:
    """Return a figure with its last digit changed."""
    place = max(place for place, letter in enumerate(text) if letter.isdigit())
    return f"{text[:place]}{(int(text[place]) + 1) % 10}{text[place + 1 :]}"


@pytest.mark.parametrize("path", MARKED, ids=lambda path: path.name)
def test_each_changed_figure_in_a_copy_is_seen(path: Path, tmp_path: Path):
    text = path.read_text()
    copy = tmp_path / path.name
    for match in FIGURE.finditer(text):
        start, end = match.span("text")
        copy.write_text(text[:start] + other(match["text"]) + text[end:])
        (line,) = differences([copy])
        assert line.startswith(f"{path.name}:{text[:start].count(chr(10)) + 1}: has ")


@pytest.mark.parametrize("path", MARKED, ids=lambda path: path.name)
def test_each_changed_number_in_a_table_of_a_copy_is_seen(path: Path, tmp_path: Path):
    text = path.read_text()
    copy = tmp_path / path.name
    for table in TABLE.finditer(text):
        cell = re.search(r"\| (\d[\d.,]*) ", table["body"])
        if cell is None:
            continue
        start, end = (table.start("body") + place for place in cell.span(1))
        copy.write_text(text[:start] + other(cell[1]) + text[end:])
        assert len(differences([copy])) == 1
        rows = table["body"].split("\n")
        copy.write_text(text.replace(table["body"], "\n".join(rows[:-2]) + "\n"))
        assert differences([copy]), "a row that is gone is not seen"


def test_render_mends_what_check_complains_of(tmp_path: Path):
    copy = tmp_path / "page.md"
    good = PAGE.read_text()
    copy.write_text(FIGURE.sub(lambda match: match[0].replace(match["text"], "0", 1), good))
    assert differences([copy])
    assert render([copy]) == ["page.md"]
    assert copy.read_text() == good
    assert render([copy]) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!-- table: nothing -->\n<!-- /table -->\n", "there is no such table"),
        ("<!-- table: overview -->\n", "1 tables begin and 0 can be read"),
        ("took 3<!--=coming-back--> s", "1 figures are marked and 0 can be read"),
        ("took 3<!--=nothing:a .1f--> s", "data that are not there"),
        ("took 3<!--=coming-back:runs.9.yarnctl.research_s .1f--> s", "leads to nothing at '9'"),
        ("took 3<!--=coming-back:runs.0.identical .1f--> s", "is no number"),
        ("took 3<!--=hadoop-2026-11-22-0841:yarnctl.production_alone_s .1f--> s", "leads to nothing"),
    ],
)
def test_a_marker_that_cannot_be_read_is_an_error(text: str, said: str):
    with pytest.raises(BadInput, match=re.escape(said)):
        rendered(text, "page.md")


def test_every_campaign_is_shown():
    """A newer campaign stands beside the older ones, and none is left out of the page."""
    page = PAGE.read_text()
    for campaign in all_of():
        assert f"### {campaign.name.removeprefix('hadoop-')}\n" in page


PROSE = re.compile(
    r"```.*?```|<!-- \w+:begin -->.*?<!-- \w+:end -->|<!-- table:.*?<!-- /table -->", re.DOTALL
)
NUMBER = re.compile(r"(?<![\w./=-])(\d+\.\d+)(?P<marker><!--=[^>]*-->)?(?= s\b| %|%| ms\b| x\b)")
NOT_MEASURED = {
    "0.1": "a key group's sleep; seconds that asking takes, told as they were seen",
}


@pytest.mark.parametrize("path", [PAGE, LIMITS], ids=lambda path: path.name)
def test_no_measured_figure_stands_without_a_marker(path: Path):
    """Decimal seconds, milliseconds, per cents and factors in prose are marked, or named above."""
    prose = "\n".join(
        line for line in PROSE.sub("", path.read_text()).split("\n") if not line.startswith("|")
    )
    bare = [found[1] for found in NUMBER.finditer(prose) if not found["marker"]]
    assert [number for number in bare if number not in NOT_MEASURED] == []


def test_a_figure_without_a_marker_is_found():
    assert [
        found[1]
        for found in NUMBER.finditer("took 48.8 s, 3.4.2, 2.9<!--=x:y .1f--> % and 1.98%")
        if not found["marker"]
    ] == ["48.8", "1.98"]
    assert rendering.FIGURE.search("(48.8<!--=a-b:c.d .1f-->)")
