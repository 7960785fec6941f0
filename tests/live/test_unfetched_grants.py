"""A container that is lost between its grant and its master's next heartbeat does not take the ask with it.

Law (YARN's): a master that has not fetched a grant cannot miss it. The ResourceManager remembers what such a
container was asked with, and asks again itself; of one that was fetched the master is told, and asks again.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.live.manager.state import AppRecord
from tests.live.rm_playing import Played

LOST_AFTER_S = 10


def granted_on_the_second_node(played: Played) -> AppRecord:
    """An application whose master runs on n1 and who was just given a reduce's container on n2."""
    played.node("n1:1", slots=1)
    app = played.submit()
    played.beat("n1:1")
    played.up(app)
    played.node("n2:1")
    played.call(app, (10, 1))
    played.beat("n2:1")
    assert (app.actor.pending, len(app.containers)) == (0, 2)
    return app


def begins_anew(played: Played, _: AppRecord) -> None:
    """The node was away for less than its expiry, and holds nothing any more."""
    played.node("n2:1")


def is_lost(played: Played, app: AppRecord) -> None:
    for _ in range(LOST_AFTER_S):
        played.pass_ms(1000)
        played.beat("n1:1")
    assert "n2:1" in played.manager.lost
    assert app.state == "RUNNING"
    played.node("n2:1")


def comes_back_larger(played: Played, _: AppRecord) -> None:
    played.node("n2:1", slots=8)


def tells_its_end(played: Played, app: AppRecord) -> None:
    """The node was told to end what it had never started."""
    name = next(one.id for one in app.containers.values() if not one.is_master)
    played.beat("n2:1", name, exit_status=-100)


LOSSES: tuple[Callable[[Played, AppRecord], None], ...] = (
    begins_anew,
    is_lost,
    comes_back_larger,
    tells_its_end,
)


@pytest.mark.parametrize("lose", LOSSES)
def test_a_container_lost_before_it_was_fetched_is_granted_again(
    lose: Callable[[Played, AppRecord], None],
) -> None:
    played = Played()
    app = granted_on_the_second_node(played)
    (first,) = [one.id for one in app.containers.values() if not one.is_master]
    lose(played, app)
    assert first not in app.containers
    played.beat("n2:1")
    (granted,) = played.call(app).granted
    assert granted.container != first
    assert (granted.priority, granted.memory_mib, granted.vcores) == (10, 1024, 1)
    played.beat("n2:1")
    assert played.call(app).granted == ()  # once
    played.check_sums()


@pytest.mark.parametrize("lose", [begins_anew, is_lost])
def test_a_container_lost_after_it_was_fetched_is_for_the_master_to_ask_for(
    lose: Callable[[Played, AppRecord], None],
) -> None:
    played = Played()
    app = granted_on_the_second_node(played)
    (first,) = played.call(app).granted
    lose(played, app)
    assert app.actor.pending == 0
    played.beat("n2:1")
    answer = played.call(app)
    assert answer.granted == ()
    assert [one.container for one in answer.ended] == [first.container]
    played.check_sums()


def test_nothing_is_asked_again_for_an_attempt_that_is_over() -> None:
    played = Played()
    app = granted_on_the_second_node(played)
    played.beat("n1:1", app.attempts[0].container, exit_status=1)
    played.node("n2:1")
    assert (app.actor.pending, app.actor.asks) == (0, [])
    played.check_sums()
