"""The report: one file that reaches for nothing, says what the numbers say, and is the same every time."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from emulator.experiments.instants import evicted_at_ms
from emulator.experiments.picture import picture_svg
from emulator.experiments.reading import finding, reading
from emulator.experiments.report import COLUMNS, report_html, summary_row
from emulator.experiments.runs import Outcome, run_experiment
from emulator.experiments.summary import ClassSummary, SchemeSummary
from emulator.scenario import Scenario, prepare
from emulator.schemes import SCHEMES

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
def outcome(out: Path) -> Outcome:
    return run_experiment(prepare(SMALL), workers=1, out=out)


@pytest.fixture(scope="module")
def page(outcome: Outcome, out: Path) -> str:
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


def test_same_results_same_bytes(outcome: Outcome, out: Path, page: str) -> None:
    assert report_html(outcome, out=out) == page
    assert picture_svg(outcome, out) == picture_svg(outcome, out)
    assert "<metadata>" not in page
    assert str(out) not in page


def test_says_what_was_run_and_what_came_of_it(outcome: Outcome, page: str) -> None:
    assert f"<h1>{finding(outcome.summaries())}" in page
    assert "2 jobs from synthetic:production-s and synthetic:research-s on 3 nodes of 5 containers" in page
    assert outcome.prepared.identity in page
    assert all(f">{name}</td>" in page for name in SCHEMES)
    assert page.count("<svg") == 3
    assert "prefers-color-scheme: dark" in page


def test_suspensions_are_marked(outcome: Outcome, out: Path) -> None:
    assert len(evicted_at_ms(out, "natjam")) == outcome.results["natjam"].suspensions > 0
    assert len(evicted_at_ms(out, "kill")) == outcome.results["kill"].kills > 0
    assert evicted_at_ms(out, "soft-cap") == ()
    assert evicted_at_ms(None, "natjam") == ()


def test_without_journals_or_schemes_it_still_draws(outcome: Outcome) -> None:
    ideal = outcome._replace(results={"ideal": outcome.results["ideal"]})
    assert "Who holds the cluster" not in report_html(ideal)
    assert "Who holds the cluster" in report_html(outcome)
    assert picture_svg(ideal, None).startswith("<svg")


def test_one_class_alone_can_be_drawn(tmp_path: Path) -> None:
    alone = msgspec.structs.replace(SMALL, production=None, schemes=("soft-cap", "natjam"))
    outcome = run_experiment(prepare(alone), workers=1)
    assert "<svg" in report_html(outcome)
    assert summary_row("natjam", outcome.summaries()["natjam"])[1] is None


def test_paper_beside_ours(outcome: Outcome) -> None:
    figure = {
        "figure": "4",
        "rows": [
            {"label": "natjam <s>", "metric": "production s", "paper": 60.2, "ours": 61.0, "runs": 5,
             "relative_error": 0.0133},
            {"label": "ideal", "metric": "production s", "paper": 58.0, "ours": 58.0, "runs": 5,
             "relative_error": None},
        ],
        "claims": [{"claim": "natjam < kill", "paper": "yes", "ours": "no", "holds": False}],
    }  # fmt: skip
    page = report_html(outcome, figures=[figure])
    assert "Paper against ours: figure 4" in page
    assert "natjam &lt;s&gt;: production s" in page
    assert "+1.3%" in page
    assert '<td class="no">no</td>' in page


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
