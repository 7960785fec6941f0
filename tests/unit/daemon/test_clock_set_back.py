"""A wall clock that jumps between two lives of a daemon: orders time out by the time that has passed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from tests.unit.daemon.test_going_on import life
from tests.unit.daemon.test_loop import busy
from yarnctl.deciding.model import Suspend, Withdraw
from yarnctl.deciding.order import set_back
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.file import read
from yarnctl.journal.rebuild import rebuild
from yarnctl.journal.replay import replay

HOUR_MS = 3_600_000


@pytest.mark.parametrize("back_ms", [0, 1, 3000, HOUR_MS], ids=["not", "1 ms", "3 s", "1 h"])
def test_orders_time_out_by_the_time_that_passes_after_a_clock_was_set_back(
    tmp_path: Path, back_ms: int
) -> None:
    """Else hung orders fill the cap on what is in flight for as long as the clock was set back."""
    cluster, path = busy(), tmp_path / "journal.jsonl"
    cluster.now_ms = 10 * HOUR_MS
    cluster.drain_ms = 1 << 40
    life(cluster, path, 8, enforce=True, peace=False)
    assert len([action for action in cluster.actions if isinstance(action, Suspend)]) == 3
    assert not [action for action in cluster.actions if isinstance(action, Withdraw)]
    cluster.now_ms -= back_ms
    waited = DEFAULT.kill_timeout_ms // 250 + 4
    life(cluster, path, waited, enforce=True, peace=False)
    given_up = [action.order for action in cluster.actions if isinstance(action, Withdraw)]
    assert len(given_up) == 3
    replay(read(path), "journal", closed=False)


@pytest.mark.parametrize("drain_ms", [1300, 1 << 40])
@given(
    lives=st.lists(st.tuples(st.integers(1, 40), st.integers(-20_000, 20_000), st.booleans(), st.booleans()),
        min_size=2, max_size=5)
)  # fmt: skip
@settings(max_examples=examples(60))
def test_a_journal_of_lives_under_a_clock_that_jumps_replays(
    tmp_path_factory: pytest.TempPathFactory, drain_ms: int, lives: list[tuple[int, int, bool, bool]]
) -> None:
    cluster, path = busy(), tmp_path_factory.mktemp("jumps") / "journal.jsonl"
    cluster.now_ms, cluster.drain_ms = HOUR_MS, drain_ms
    for ticks, jump_ms, enforce, peace in lives:
        life(cluster, path, ticks, enforce=enforce, peace=peace)
        cluster.now_ms += jump_ms
        replay(read(path), "journal", closed=False)


def test_a_ledger_that_is_set_back_keeps_every_span(tmp_path: Path) -> None:
    cluster, path = busy(), tmp_path / "journal.jsonl"
    cluster.now_ms = HOUR_MS
    life(cluster, path, 30, enforce=True, peace=False)
    rebuilt, twin = rebuild(path), rebuild(path)
    assert rebuilt is not None
    assert twin is not None
    ledger, before = rebuilt.remembered.ledger, twin.remembered.ledger
    ledger.set_back(1000)
    assert [*ledger.open.values()] == [set_back(order, 1000) for order in before.open.values()]
    assert [*ledger.settled.values()] == [set_back(order, 1000) for order in before.settled.values()]
    assert all(ledger.settled.get(one.order, one) is one for one in ledger.terminating.values())
    now_ms = cluster.now_ms
    for wait_ms in range(0, 60_000, 500):
        before.retire(now_ms + wait_ms)
        ledger.retire(now_ms - 1000 + wait_ms)
        assert list(ledger.settled) == list(before.settled)
        assert ledger.excluded == before.excluded
