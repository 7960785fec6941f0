"""The report: one file that reaches for nothing, says what the numbers say, and is the same every time."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from emulator.experiments.report import drawing
from emulator.experiments.report.conclusions import finding, reasons, recommended
from emulator.experiments.report.drawing import MARK_COLOURS, picture_svg
from emulator.experiments.report.page import Provenance, report_html
from emulator.experiments.report.scheme_tables import (
    COLUMNS,
    MetricRow,
    narrow_text,
    outcome_rows,
    summary_row,
    waiting_by_class,
)
from emulator.experiments.results.runs import Comparison, run_experiment
from emulator.experiments.results.summary import ClassSummary, SchemeSummary
from emulator.scenario import Scenario, prepare
from emulator.virtual.schemes import SCHEMES
from tests.service.browser import browsing

pytestmark = pytest.mark.xdist_group("report")  # what is made once for all is made in one worker

SMALL = Scenario(
    nodes=3, slots=5, production="synthetic:production-s", research="synthetic:research-s",
    schemes=tuple(SCHEMES), may_lose=0.2,
)  # fmt: skip
MADE = Provenance("2026-11-28", "0.1.0", "yarn-emulator compare --seed '<1>'")


@pytest.fixture(scope="module")
def outcome() -> Comparison:
    return run_experiment(prepare(SMALL), workers=1)


@pytest.fixture(scope="module")
def page(outcome: Comparison) -> str:
    return report_html(outcome, MADE)


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


def test_same_results_same_bytes(outcome: Comparison, page: str) -> None:
    assert report_html(outcome, MADE) == page
    assert picture_svg(outcome) == picture_svg(outcome)
    assert "<metadata>" not in page


def test_says_what_was_run_and_what_came_of_it(outcome: Comparison, page: str) -> None:
    assert f"<h1>{finding(outcome.summaries())}" in page
    assert "2 jobs from synthetic:production-s and synthetic:research-s on 3 nodes of 5 containers" in page
    assert outcome.prepared.identity in page
    assert all(f">{name}</th>" in page for name in SCHEMES)
    assert page.count("<svg") == 3
    assert "2026-11-28, yarnctl 0.1.0." in page
    assert "<code>yarn-emulator compare --seed &#39;&lt;1&gt;&#39;</code>" in page
    assert "prefers-color-scheme: dark" in page


def test_what_a_user_has_named_is_text(outcome: Comparison) -> None:
    prepared = outcome.prepared._replace(sources=("swim:<i>.tsv",), notes=('it\'s "<b>"',))
    page = report_html(outcome._replace(prepared=prepared), MADE)
    assert not re.search("<(script|i|b)>", page)
    assert "jobs from swim:&lt;i&gt;.tsv on" in page
    assert "<dt>note</dt><dd>it&#39;s &#34;&lt;b&gt;&#34;</dd>" in page


def marks(svg: str, colour: str) -> list[int]:
    """Return how many marks each panel has that has any of a colour; the lines of schemes have one stroke."""
    lines = re.findall(rf'<path d="([^"]*)"[^>]*style="fill: none; stroke: {colour}', svg)
    return [line.count("M ") for line in lines]


def test_occupancy_marks_every_suspension_and_every_kill_of_every_scheme(outcome: Comparison) -> None:
    svg = drawing.occupancy_svg(outcome.results, 15 * 1024)
    results = outcome.results.values()
    suspended = [result.suspensions for result in results if result.suspensions]
    killed = [result.kills for result in results if result.kills]
    assert [name for name, result in outcome.results.items() if result.kills] == [
        "kill",
        "yarn",
        "yarn-tuned",
    ]
    assert marks(svg, MARK_COLOURS["suspended"]) == suspended
    assert marks(svg, MARK_COLOURS["killed"]) == killed
    for name, result in outcome.results.items():
        if name != "ideal":
            assert f"{result.suspensions} suspended, {result.kills} killed" in svg
        assert list(result.suspended_at_ms) == sorted(result.suspended_at_ms)
        assert (len(result.suspended_at_ms), len(result.killed_at_ms)) == (result.suspensions, result.kills)


@pytest.mark.parametrize("width", [1280, 800])
def test_the_page_fits_a_window(tmp_path: Path, page: str, width: int) -> None:
    """Nothing is wider than the window, and no table or picture scrolls inside its frame."""
    path = tmp_path / "report.html"
    path.write_text(page)
    with browsing() as browser:
        browser.size(width, 900)
        browser.open(path.as_uri())
        assert browser.script("return window.innerWidth") <= width
        assert browser.script("return document.documentElement.scrollWidth <= window.innerWidth")
        frames = "return [...document.querySelectorAll('.scroll, figure')]"
        assert browser.script(f"{frames}.filter(each => each.scrollWidth > each.clientWidth).length") == 0
        assert browser.script("return document.querySelectorAll('.scroll').length") == 2


def test_no_table_of_schemes_has_more_than_a_label_and_eight_columns(page: str) -> None:
    """What the test in a browser shows of this workload holds for others: columns do not depend on it."""
    heads = re.findall(r'<table class="schemes"><thead><tr>(.*?)</tr>', page)
    assert [head.count("<th") for head in heads] == [1 + len(SCHEMES)] * 2


def test_without_journals_or_schemes_it_still_draws(outcome: Comparison) -> None:
    ideal = outcome._replace(results={"ideal": outcome.results["ideal"]})
    assert "Use of the cluster" not in report_html(ideal, MADE)
    assert "Use of the cluster" in report_html(outcome, MADE)
    assert picture_svg(ideal).startswith("<svg")


def test_one_class_alone_can_be_drawn(tmp_path: Path) -> None:
    alone = msgspec.structs.replace(SMALL, production=None, schemes=("soft-cap", "natjam"))
    outcome = run_experiment(prepare(alone), workers=1)
    assert "<svg" in report_html(outcome, MADE)
    assert recommended(outcome.summaries()) is None
    assert all("production" not in row.label for row in waiting_by_class(outcome.results))
    assert summary_row("natjam", outcome.summaries()["natjam"])[1] is None


# --- conclusions -----------------------------------------------------------------------------


def scheme(
    production_s: float,
    research_s: float = 300.0,
    lost_work_s: float = 0.0,
    suspensions: int = 0,
    kills: int = 0,
) -> SchemeSummary:
    return SchemeSummary(
        production=ClassSummary(1, production_s, production_s, production_s),
        research=ClassSummary(1, research_s, research_s, research_s), lost_work_s=lost_work_s,
        overhead_s=12.0, suspensions=suspensions, kills=kills, utilisation_ratio=0.5, makespan_s=10.0,
        events=1,
    )  # fmt: skip


TUNED = scheme(100, 400, 36_000)


@pytest.mark.parametrize(
    ("summaries", "best"),
    [
        # within 2 % of the fastest the least lost work decides, wherever it comes from
        ({"yarn-tuned": TUNED, "mix": scheme(102, 500, 7200)}, ("mix", "yarn-tuned")),
        ({"yarn-tuned": TUNED, "mix": scheme(102.1, 300, 0)}, ("yarn-tuned", "mix")),
        (
            {"yarn-tuned": TUNED, "soft-cap": scheme(101), "mix": scheme(101, 300, 1)},
            ("soft-cap", "yarn-tuned"),
        ),
        # as much lost: research decides
        ({"natjam": scheme(100, 310), "soft-cap": scheme(101, 300)}, ("soft-cap", "natjam")),
        # a class that runs alone is no scheme to share a cluster
        ({"ideal": scheme(90), "kill": TUNED, "natjam": scheme(120)}, ("kill", "natjam")),
        ({"ideal": scheme(90), "kill": TUNED}, None),
        ({"kill": TUNED}, None),
    ],
)
def test_recommended_has_the_least_loss_of_the_fastest(
    summaries: dict[str, SchemeSummary], best: tuple[str, str] | None
) -> None:
    assert recommended(summaries) == best


def test_finding_names_the_recommended_scheme_beside_the_fastest_other() -> None:
    summaries = {"yarn-tuned": TUNED, "mix": scheme(101, 320, 7200)}
    assert finding(summaries) == (
        "Recommended: mix. Production 101 s, research 320 s, 2.0 h of work lost"
        " (yarn-tuned: 100 s, 400 s, 10.0 h)"
    )
    assert finding({"natjam": scheme(103, 320, 30)}) == (
        "natjam: production 103 s, research 320 s, 30 s of work lost"
    )


def test_reasons_explain_natjam_and_soft_cap_where_they_differ() -> None:
    summaries = {
        "soft-cap": scheme(150, 280),
        "yarn-tuned": TUNED,
        "natjam": scheme(110, 330),
        "mix": scheme(100, 320, 7200),
    }
    assert reasons(summaries) == [
        "mix (the cheapest levers within a loss budget) is recommended.",
        "Production takes 100 s, as long as under yarn-tuned.",
        "Research takes 320 s, 20 % less than under yarn-tuned (400 s).",
        "2.0 h of container time are lost, under yarn-tuned 10.0 h.",
        "natjam alone is slower for production (110 s): it suspends only reduces that have begun work, and"
        " waits until maps and other reduces end.",
        "soft-cap is kinder to research (280 s): it takes no container from a running task. Production pays"
        " with its waiting time (150 s).",
    ]
    alike = {**summaries, "soft-cap": scheme(150, 320), "natjam": scheme(101, 330, 7201)}
    assert len(reasons(alike)) == 4
    assert reasons({"mix": TUNED}) == []


def test_narrow_tables_of_all_schemes_fit_80_columns(outcome: Comparison) -> None:
    long = {name: scheme(5591.4, 16_166, 49.7 * 3600, 1790, 1790) for name in SCHEMES}
    for rows in (outcome_rows(outcome.summaries()), waiting_by_class(outcome.results), outcome_rows(long)):
        text = narrow_text(list(SCHEMES), rows)
        assert max(map(len, text.splitlines())) <= 80
        assert {len(row.cells) for row in rows} == {0, len(SCHEMES)}


def test_narrow_text_aligns_values_under_their_scheme() -> None:
    rows = [MetricRow("production s"), MetricRow("  mean", (101, None))]
    assert narrow_text(["mix", "natjam"], rows) == (
        "              mix  natjam\n"
        "production s\n"
        "  mean        101       -\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lost_s", "shown"),
    [(0, "0"), (36, "0.01"), (35_980, "9.99"), (35_999, "10.0"), (179_000, "49.7"), (3.6e6, "1000")],
)
def test_hours_have_the_decimals_of_four_characters(lost_s: float, shown: str) -> None:
    rows = {row.label: row.cells for row in outcome_rows({"mix": scheme(1, 1, lost_s)})}
    assert rows["lost h"] == (shown,)


def test_a_row_has_every_column() -> None:
    assert len(summary_row("kill", scheme(1))) == len(COLUMNS)
