"""A page with a paper's figures: the paper's numbers beside ours, in drawings of the right lengths."""

from __future__ import annotations

import re

import msgspec
import pytest

from tests.experiments.test_report import test_ids_that_are_used_exist as ids_exist
from tests.experiments.test_report import test_reaches_for_nothing_outside as reaches_for_nothing
from yarn_research.papers.figures import Figure, FigureRow, PaperClaim
from yarn_research.papers.paper_page import paper_html, paper_svg

PAPER = Figure(
    "4",
    "Natjam & others",
    rows=(
        FigureRow("natjam <s> $x$", "production_s", 60.0, 120.0, 12.0, 5, 1.0),
        FigureRow("ideal", "production_s", 58.0, 58.0, 0.0, 5, None),
        FigureRow("kill", "production_s", None, 30.0, 0.0, 5, None),
    ),
    claims=(PaperClaim("natjam < kill", "yes & no", "no", False, "default"),),
    notes=("left open: <script>",),
)


def bars(svg: str, colour: str) -> list[float]:
    """Return the lengths of the bars of a colour, the legend's last."""
    paths = re.findall(rf'<path d="([^"]*)"[^>]*style="fill: {colour}', svg)
    places = [[float(at) for at in re.findall(r"[ML] (-?[\d.]+)", path)] for path in paths]
    return [max(each) - min(each) for each in places]


def test_the_paper_s_bar_stands_beside_ours() -> None:
    svg = paper_svg(PAPER)
    paper, ours = bars(svg, "#8b919c"), bars(svg, "#12996f")
    assert len(paper) == 2 + 1, "kill has no number in the paper"
    assert len(ours) == 3 + 1
    unit = paper[0] / 60
    assert [length / unit for length in paper[:2]] == pytest.approx([60, 58], rel=0.01)
    assert [length / unit for length in ours[:3]] == pytest.approx([120, 58, 30], rel=0.01)
    assert all(f">{number}</text>" in svg for number in ("60", "120", "58", "30"))
    assert ">natjam &lt;s&gt; $x$</text>" in svg, "a label is no formula"
    assert paper_svg(PAPER) == svg


def test_a_whisker_is_one_standard_deviation_to_either_side() -> None:
    def whiskers(svg: str) -> list[float]:
        paths = re.findall(r'<path d="M (-?[\d.]+) (-?[\d.]+)\s+L (-?[\d.]+) (-?[\d.]+)', svg)
        flat = [(float(right) - float(left)) for left, above, right, below in paths if above == below]
        return [length for length in flat if length > 0]

    svg = paper_svg(PAPER)
    steady = tuple(msgspec.structs.replace(row, stdev=0.0) for row in PAPER.rows)
    calm = paper_svg(msgspec.structs.replace(PAPER, rows=steady))
    for each, drawn in ((svg, True), (calm, False)):
        wanted = 24 * bars(each, "#8b919c")[0] / 60
        assert any(abs(length - wanted) < 0.5 for length in whiskers(each)) is drawn


def test_each_metric_has_its_panel_and_a_figure_without_rows_no_plot() -> None:
    more = FigureRow("jobs that complete earlier", "share", 0.5, -0.25, 0.0, 1, None)
    svg = paper_svg(msgspec.structs.replace(PAPER, rows=(*PAPER.rows, more)))
    assert all(f">{metric}</text>" in svg for metric in ("production_s", "share"))
    assert ">-0.25</text>" in svg
    assert paper_svg(msgspec.structs.replace(PAPER, rows=())) == ""
    alone = paper_svg(msgspec.structs.replace(PAPER, rows=PAPER.rows[2:]))
    assert ">the paper</text>" not in alone
    assert len(bars(alone, "#12996f")) == 2


def test_paper_beside_ours_on_a_page() -> None:
    page = paper_html("Natjam", [PAPER])
    assert page.count("<svg") == 1
    assert "Paper against ours: figure 4. Natjam &amp; others" in page
    assert "natjam &lt;s&gt; $x$: production_s" in page
    assert "left open: &lt;script&gt;" in page
    assert "natjam &lt; kill" in page
    assert "<td>default</td><td>yes &amp; no</td>" in page
    assert "+100.0%" in page
    assert "the mean of 5 runs" in page
    assert '<td class="no">no</td>' in page
    alone = paper_html("Two <pages>", [PAPER, msgspec.structs.replace(PAPER, figure="5")], "in & short")
    assert "<h1>Two &lt;pages&gt;</h1>" in alone
    assert "in &amp; short" in alone
    for each in (page, alone):
        reaches_for_nothing(each)
        ids_exist(each)
        used = re.findall(r"url\(#([^)]+)\)", each) + re.findall(r'href="#([^"]+)"', each)
        assert used
        assert all(each.count(f'id="{name}"') == 1 for name in used)
