"""The report: one file that reaches for nothing, says what the numbers say, and is the same every time."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from emulator.experiments.report import drawing
from emulator.experiments.report.conclusions import finding, reading
from emulator.experiments.report.drawing import picture_svg
from emulator.experiments.report.page import COLUMNS, paper_html, report_html, summary_row
from emulator.experiments.results.figures import Figure, FigureRow, PaperClaim
from emulator.experiments.results.runs import Comparison, run_experiment
from emulator.experiments.results.summary import ClassSummary, SchemeSummary, evicted_at_ms
from emulator.experiments.showing import run_shown
from emulator.scenario import Scenario, prepare
from emulator.virtual.schemes import BY_DEFAULT
from research.tests.fig_4 import FIG_4

pytestmark = pytest.mark.xdist_group("report")  # what is made once for all is made in one worker

SMALL = Scenario(
    nodes=3,
    slots=5,
    production="synthetic:production-s",
    research="synthetic:research-s",
)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report") / "out"


@pytest.fixture(scope="module")
def outcome(out: Path) -> Comparison:
    return run_experiment(prepare(SMALL), workers=1, out=out)


@pytest.fixture(scope="module")
def page(outcome: Comparison, out: Path) -> str:
    return report_html(outcome, out=out)


class Reader(HTMLParser):
    """Collects what a page reaches for, and whether its elements are closed in order."""

    VOID = ("meta", "br", "rect", "use", "path", "link", "img")

    def __init__(self) -> None:
        super().__init__()
        self.reached: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.reached += [
            value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action")
        ]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_reaches_for_nothing_outside(page: str) -> None:
    reader = Reader()
    reader.feed(page)
    assert [where for where in reader.reached if not where.startswith("#")] == []
    assert re.findall(r"url\((?!#)", page) == []
    assert re.findall(r"(?i)<(script|link|img|iframe|object)\b|@import", page) == []
    assert reader.open == []


def test_ids_that_are_used_exist(page: str) -> None:
    defined = set(re.findall(r'\bid="([^"]+)"', page))
    used = set(re.findall(r"url\(#([^)]+)\)", page)) | set(re.findall(r'href="#([^"]+)"', page))
    assert used <= defined


def test_same_results_same_bytes(outcome: Comparison, out: Path, page: str) -> None:
    assert report_html(outcome, out=out) == page
    assert picture_svg(outcome, out) == picture_svg(outcome, out)
    assert "<metadata>" not in page
    assert str(out) not in page


def test_says_what_was_run_and_what_came_of_it(outcome: Comparison, page: str) -> None:
    assert f"<h1>{finding(outcome.summaries())}" in page
    assert "2 jobs from synthetic:production-s and synthetic:research-s on 3 nodes of 5 containers" in page
    assert outcome.prepared.identity in page
    assert all(f">{name}</td>" in page for name in BY_DEFAULT)
    assert page.count("<svg") == 3
    assert "prefers-color-scheme: dark" in page


def test_what_a_user_has_named_is_text(outcome: Comparison) -> None:
    prepared = outcome.prepared._replace(sources=("swim:<i>.tsv",), notes=('it\'s "<b>"',))
    page = report_html(outcome._replace(prepared=prepared), title="<script>mine</script>")
    assert not re.search("<(script|i|b)>", page)
    assert "<h1>&lt;script&gt;mine&lt;/script&gt;</h1>" in page
    assert "jobs from swim:&lt;i&gt;.tsv on" in page
    assert "<dt>note</dt><dd>it&#39;s &#34;&lt;b&gt;&#34;</dd>" in page


def test_suspensions_are_marked(outcome: Comparison, out: Path) -> None:
    assert len(evicted_at_ms(out, "natjam")) == outcome.results["natjam"].suspensions > 0
    assert len(evicted_at_ms(out, "kill")) == outcome.results["kill"].kills > 0
    assert evicted_at_ms(out, "soft-cap") == ()
    assert evicted_at_ms(None, "natjam") == ()


def test_without_journals_or_schemes_it_still_draws(outcome: Comparison) -> None:
    ideal = outcome._replace(results={"ideal": outcome.results["ideal"]})
    assert "Who holds the cluster" not in report_html(ideal)
    assert "Who holds the cluster" in report_html(outcome)
    assert picture_svg(ideal, None).startswith("<svg")


def test_one_class_alone_can_be_drawn(tmp_path: Path) -> None:
    alone = msgspec.structs.replace(SMALL, production=None, schemes=("soft-cap", "natjam"))
    outcome = run_experiment(prepare(alone), workers=1)
    assert "<svg" in report_html(outcome)
    assert summary_row("natjam", outcome.summaries()["natjam"])[1] is None


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
    svg = drawing.paper_svg(PAPER)
    paper, ours = bars(svg, "#8b919c"), bars(svg, "#12996f")
    assert len(paper) == 2 + 1, "kill has no number in the paper"
    assert len(ours) == 3 + 1
    unit = paper[0] / 60
    assert [length / unit for length in paper[:2]] == pytest.approx([60, 58], rel=0.01)
    assert [length / unit for length in ours[:3]] == pytest.approx([120, 58, 30], rel=0.01)
    assert all(f">{number}</text>" in svg for number in ("60", "120", "58", "30"))
    assert ">natjam &lt;s&gt; $x$</text>" in svg, "a label is no formula"
    assert drawing.paper_svg(PAPER) == svg


def test_a_whisker_is_one_standard_deviation_to_either_side() -> None:
    def whiskers(svg: str) -> list[float]:
        paths = re.findall(r'<path d="M (-?[\d.]+) (-?[\d.]+)\s+L (-?[\d.]+) (-?[\d.]+)', svg)
        flat = [(float(right) - float(left)) for left, above, right, below in paths if above == below]
        return [length for length in flat if length > 0]

    svg = drawing.paper_svg(PAPER)
    steady = tuple(msgspec.structs.replace(row, stdev=0.0) for row in PAPER.rows)
    calm = drawing.paper_svg(msgspec.structs.replace(PAPER, rows=steady))
    for each, drawn in ((svg, True), (calm, False)):
        wanted = 24 * bars(each, "#8b919c")[0] / 60
        assert any(abs(length - wanted) < 0.5 for length in whiskers(each)) is drawn


def test_each_metric_has_its_panel_and_a_figure_without_rows_no_plot() -> None:
    more = FigureRow("jobs that complete earlier", "share", 0.5, -0.25, 0.0, 1, None)
    svg = drawing.paper_svg(msgspec.structs.replace(PAPER, rows=(*PAPER.rows, more)))
    assert all(f">{metric}</text>" in svg for metric in ("production_s", "share"))
    assert ">-0.25</text>" in svg
    assert drawing.paper_svg(msgspec.structs.replace(PAPER, rows=())) == ""
    alone = drawing.paper_svg(msgspec.structs.replace(PAPER, rows=PAPER.rows[2:]))
    assert ">the paper</text>" not in alone
    assert len(bars(alone, "#12996f")) == 2


def test_paper_beside_ours_on_a_page(outcome: Comparison) -> None:
    page = report_html(outcome, figures=[PAPER])
    assert page.count("<svg") == 4
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
        test_reaches_for_nothing_outside(each)
        test_ids_that_are_used_exist(each)
        used = re.findall(r"url\(#([^)]+)\)", each) + re.findall(r'href="#([^"]+)"', each)
        assert used
        assert all(each.count(f'id="{name}"') == 1 for name in used)


def test_a_run_of_the_paper_has_its_numbers_in_the_report(tmp_path: Path) -> None:
    run_shown(prepare(FIG_4), out=tmp_path / "fig-4", workers=1)
    assert "Paper against ours: figure 4." in (tmp_path / "fig-4/report.html").read_text()
    other = msgspec.structs.replace(FIG_4, nodes=7)
    run_shown(prepare(other), out=tmp_path / "other", workers=1)
    assert "Paper against ours" not in (tmp_path / "other/report.html").read_text()


# --- what is said ----------------------------------------------------------------------------


def scheme(
    production_s: float, lost_work_s: float = 0.0, suspensions: int = 0, kills: int = 0
) -> SchemeSummary:
    times = ClassSummary(1, production_s, production_s, production_s)
    return SchemeSummary(
        production=times,
        research=times,
        lost_work_s=lost_work_s,
        overhead_s=12.0,
        suspensions=suspensions,
        kills=kills,
        utilisation_ratio=0.5,
        makespan_s=10.0,
        events=1,
    )


@pytest.mark.parametrize(
    ("summaries", "said"),
    [
        (
            {
                "ideal": scheme(100),
                "kill": scheme(101, 7200, kills=9),
                "natjam": scheme(103, suspensions=3),
            },
            "natjam: production +3 % over ideal, research loses nothing; lost under kill 2.0 container hours",
        ),
        (
            {"natjam": scheme(103, 7200)},
            "natjam: production 103 s on average, 2.0 container hours of work lost",
        ),
        (
            {"ideal": scheme(100), "natjam": scheme(99)},
            "natjam: production -1 % over ideal, research loses nothing",
        ),
        ({"ideal": scheme(100), "yarn": scheme(99)}, "Schemes side by side: ideal, yarn"),
    ],
)
def test_the_finding_follows_from_the_numbers(summaries: dict[str, SchemeSummary], said: str) -> None:
    assert finding(summaries) == said


def test_the_reading_has_a_sentence_per_scheme() -> None:
    lines = reading({"ideal": scheme(100), "kill": scheme(270, 30, kills=9)})
    assert lines == [
        "ideal (each class alone on the whole cluster): production 100 s, research 100 s on average.",
        "kill (natjam's picks, killed): production 270 s (2.7 times ideal); research 270 s (2.7 times ideal);"
        " 9 kills, 30.0 container seconds of work lost, 12.0 container seconds spent on coming back.",
    ]


def test_a_row_has_every_column() -> None:
    assert len(summary_row("kill", scheme(1))) == len(COLUMNS)
