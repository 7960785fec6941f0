"""Applications followed from look to look: their stages, and the starts and ends that are foretold."""

from __future__ import annotations

import msgspec

from tests.golden.tables import app, cluster
from yarnctl.daemon.view.when_followed import Following
from yarnctl.deciding.model import ApplicationView, Snapshot

LOOK_MS = 1_000


def look(*views: ApplicationView) -> Snapshot:
    return cluster(app("other", "research", 1), *views)


def lived(following: Following, name: str, at_ms: int, *, waits: int, runs: int, tasks: int = 4) -> int:
    """Let an application wait, run and end; return the instant of the last look."""
    for number in range(waits + runs):
        containers, pending = (0, 1) if number < waits else (1 + tasks, 0)
        view = app(name, "production", containers, pending, request=0 if number < waits else 20)
        view = msgspec.structs.replace(view, submitted_at_ms=at_ms, name="daily-7")
        following.look(look(view), at_ms + number * LOOK_MS)
    following.look(look(), at_ms + (waits + runs) * LOOK_MS)
    return at_ms + (waits + runs + 1) * LOOK_MS


def followed(count: int) -> tuple[Following, int]:
    following, now_ms = Following(), LOOK_MS
    following.look(look(), 0)
    for number in range(count):
        now_ms = lived(following, f"p{number}", now_ms, waits=3, runs=10)
    return following, now_ms


def test_start_and_end_are_those_of_earlier_runs() -> None:
    following, now_ms = followed(20)
    view = app("new", "production", 0, 1, request=0)
    following.look(look(view), now_ms)
    when = following.when("new", now_ms)
    assert when.starts is not None
    assert when.ends is not None
    assert (when.starts.least_ms, when.starts.most_ms) == (3 * LOOK_MS, 3 * LOOK_MS)
    assert when.ends.middle_ms == 13 * LOOK_MS
    later_ms = now_ms + 2 * LOOK_MS
    following.look(look(view), later_ms)
    left = following.when("new", later_ms)
    assert left.ends is not None
    assert left.ends.middle_ms == 11 * LOOK_MS


def test_of_few_runs_the_start_may_be_now() -> None:
    following, now_ms = followed(12)
    following.look(look(app("new", "production", 0, 1, request=0)), now_ms)
    starts = following.when("new", now_ms).starts
    assert starts is not None
    assert (starts.least_ms, starts.middle_ms) == (0, 3 * LOOK_MS)


def test_application_that_has_started_has_an_end_only() -> None:
    following, now_ms = followed(20)
    following.look(look(app("new", "production", 0, 1, request=0)), now_ms)
    following.look(look(app("new", "production", 5, 0)), now_ms + LOOK_MS)
    when = following.when("new", now_ms + LOOK_MS)
    assert when.starts is None
    assert when.ends is not None
    assert when.ends.middle_ms == 10 * LOOK_MS


def test_nothing_is_foretold_from_too_few_or_of_what_ran_before() -> None:
    following, now_ms = followed(3)
    following.look(look(app("new", "production", 0, 1, request=0)), now_ms)
    assert following.when("new", now_ms) == (None, None)
    assert following.when("other", now_ms) == (None, None)
    assert following.when("unknown", now_ms) == (None, None)
