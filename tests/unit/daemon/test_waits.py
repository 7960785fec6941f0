"""How long production waits, from snapshots alone."""

from __future__ import annotations

from tests.golden.tables import app, cluster
from yarnctl.daemon.view.waits import WAIT_BOUNDS_MS, Waits
from yarnctl.deciding.settings import DEFAULT


def test_a_wait_begins_with_the_first_request_and_ends_with_the_last() -> None:
    waits = Waits()
    waits.look(cluster(app("a", "production", 1, 3), app("r", "research", 1, 5)), DEFAULT, 1_000)
    waits.look(cluster(app("a", "production", 2, 2), app("b", "production", 0, 1)), DEFAULT, 3_000)
    (both,) = waits.by_queue(3_500).values()
    assert (sum(both.ended.counts), both.longest_ms) == (0, 2_500)
    waits.look(cluster(app("a", "production", 4), app("b", "production", 0, 1)), DEFAULT, 4_000)
    waits.look(cluster(), DEFAULT, 13_000)  # b has ended while it waited
    (ended,) = waits.by_queue(99_000).values()
    assert ended.ended.sum_ms == 3_000 + 10_000
    assert [WAIT_BOUNDS_MS[place] for place, count in enumerate(ended.ended.counts) if count] == [
        5_000,
        10_000,
    ]
    assert ended.longest_ms == 0


def test_research_has_no_wait() -> None:
    waits = Waits()
    waits.look(cluster(app("r", "research", 1, 5)), DEFAULT, 1_000)
    assert waits.by_queue(9_000) == {}
