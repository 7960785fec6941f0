"""When an application starts and ends, why, and what would make it sooner: from a view."""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.tables import app, cluster
from tests.unit.service.conftest import Served
from tests.unit.service.played import PublishedRun
from yarnctl.api.cluster_answers import ForetoldOut
from yarnctl.cli.apps import ends_in
from yarnctl.daemon.view.published import LoopStatus, View
from yarnctl.daemon.view.when_followed import Following, When
from yarnctl.deciding.model import ApplicationView
from yarnctl.prediction.when_ending import Interval
from yarnctl.service.answers import foretold, from_view
from yarnctl.service.answers.from_view import applications

SOON = When(None, Interval(60_000, 120_000, 240_000, 60))


def view_of(*views: ApplicationView, when: When = SOON, guaranteed: int = 4) -> View:
    return View(
        version=1,
        now_ms=1_000_000,
        loop=LoopStatus(),
        snapshot=cluster(*views, guaranteed={"other": guaranteed}),
        when=lambda *_: when,
    )


def test_application_has_the_interval_of_its_end() -> None:
    (shown,) = applications(view_of(app("r1", "other", 3)))
    assert shown.when is not None
    assert shown.when.starts is None
    assert shown.when.ends == ForetoldOut(
        least_at_ms=1_060_000, middle_at_ms=1_120_000, most_at_ms=1_240_000, runs=60
    )
    assert (shown.when.because, shown.when.sooner) == ("it holds all containers that it requests", "")
    assert ends_in(shown, 1_000_000) == "60 to 240 s"
    assert ends_in(msgspec.structs.replace(shown, when=None), 0) == "-"


def test_unknown_end_says_why() -> None:
    (shown,) = applications(view_of(app("r1", "other", 3), when=When(None, None)))
    assert shown.when is not None
    assert shown.when.because == foretold.UNKNOWN
    assert ends_in(shown, 1_000_000) == "-"


@pytest.mark.parametrize(
    ("views", "guaranteed", "remedy"),
    [
        ((app("r1", "other", 3, 2),), 9, "wait: its queue uses less"),
        ((app("r1", "other", 4, 2),), 4, "raise the guarantee of other"),
        ((app("r1", "other", 2, 2, rank=5), app("r0", "other", 2, 7, rank=1)), 4, "raise its priority"),
        ((app("r1", "other", 2, 2),), 0, "give its queue a guarantee"),
    ],
)
def test_what_would_make_it_sooner(views: tuple[ApplicationView, ...], guaranteed: int, remedy: str) -> None:
    view = view_of(*views, guaranteed=guaranteed)
    assert foretold.sooner(views[0], view).startswith(remedy)


def test_explanation_has_end_reason_and_remedy() -> None:
    views = app("r1", "other", 2, 2, rank=5), app("r0", "other", 2, 7, rank=1)
    lines = foretold.in_words(views[0], view_of(*views))
    assert lines == [
        "now: ends in 120 s (60 to 240 s in 9 of 10 cases), as 60 earlier applications took",
        "now: why: 2 of its requests are pending, after 7 of other applications of its queue",
        "now: sooner: raise its priority: its queue serves other applications first",
    ]


def test_a_tick_foretells_nothing_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def when(_: Following, name: str, _now_ms: int) -> When:
        asked.append(name)
        return When(None, None)

    monkeypatch.setattr(Following, "when", when)
    seen: list[View] = []
    PublishedRun(seen.append).go(until_ms=10 * 60_000)
    assert (len(seen) > 5, asked) == (True, [])
    assert [each.application for each in applications(seen[5])] == asked


def test_only_the_shown_applications_are_made(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(from_view, "when_of", lambda each, view: made.append(each.application))
    served.view = view_of(*(app(f"r{number}", "other", 3) for number in range(10, 30)))
    answer = served.get("/v1/applications?limit=2&cursor=r10")
    assert (answer["total"], made) == (20, ["r11", "r12"])


def test_requests_ahead_are_those_of_lower_ranks_of_the_queue() -> None:
    views = [
        app("a", "q", 1, 2, rank=1), app("b", "q", 1, 3, rank=2), app("c", "q", 1, 4, rank=2),
        app("d", "q", 1, 5, rank=3), app("e", "other", 1, 6, rank=9),
    ]  # fmt: skip
    snapshot = cluster(*views, guaranteed={"q": 4, "other": 4})
    assert foretold.AHEAD(snapshot) == {"a": 0, "b": 2, "c": 2, "d": 9, "e": 0}
    assert foretold.AHEAD(snapshot) is foretold.AHEAD(snapshot)
