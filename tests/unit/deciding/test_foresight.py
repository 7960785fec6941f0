"""Foresight: only the first wave of a job seen before it held anything, at most so much, and once."""

from __future__ import annotations

from typing import Any

import pytest

from yarnctl.deciding.foresight import LASTS_MS, Prediction, first_wave
from yarnctl.deciding.model import ApplicationView, ContainerRequest
from yarnctl.deciding.reasons.demand import Unmet
from yarnctl.journal.rendering import text as reason_text
from yarnctl.units import Resources, times

SLOT = Resources(1024, 1)
MASTER, MAPS, REDUCES = (
    ContainerRequest(0, SLOT, 1),
    ContainerRequest(20, SLOT, 6),
    ContainerRequest(10, SLOT, 5),
)


def view(name: str = "a", **more: Any) -> ApplicationView:
    told: dict[str, Any] = {
        "queue": "production",
        "user": "u",
        "submitted_at_ms": 0,
        "rank": 0,
        "containers": 0,
        "requests": (MASTER,),
        **more,
    }
    used = times(SLOT, told["containers"])
    return ApplicationView(application=name, used=used, am_size=SLOT, task_size=SLOT, **told)


def foresight(most: int = 4, *more: ContainerRequest) -> Prediction:
    return Prediction(most, {"production"}.__contains__, lambda _: (MAPS, *more))


def test_a_starting_job_is_shown_with_its_first_wave_but_no_more_than_allowed():
    (shown,) = foresight().predict([view()], 0)
    assert (shown.requests, shown.predicted) == ((MASTER, MAPS._replace(count=4)), 4)
    (shown,) = foresight(9).predict([view()], 0)
    assert (shown.requests, shown.predicted) == ((MASTER, MAPS), 6)
    (shown,) = foresight(9, REDUCES).predict([view()], 0)
    assert (shown.requests, shown.predicted) == ((MASTER, MAPS, REDUCES._replace(count=3)), 9)


def test_the_first_wave_is_the_maps_and_the_reduces_that_need_more_room():
    big = Resources(2048, 1)
    assert first_wave(6, SLOT, 6, big) == (MAPS,)
    assert first_wave(6, SLOT, 8, big) == (MAPS, ContainerRequest(10, big, 2))
    assert first_wave(0, SLOT, 0, big) == ()


def test_it_stays_while_the_master_starts_and_ends_for_good_with_the_jobs_own_ask():
    """Told at 0 s; its master is granted, and at 5 s asks for maps; at 20 s it waits for reduces."""
    sight = foresight()
    seen = [
        (0, view(), 4),
        (3_000, view(containers=1, requests=()), 4),
        (5_000, view(containers=1, requests=(MAPS,)), 0),
        (9_000, view(containers=7, requests=()), 0),
        (20_000, view(containers=1, requests=()), 0),
    ]
    for at_ms, told, predicted in seen:
        (shown,) = sight.predict([told], at_ms)
        assert shown.predicted == predicted, at_ms
        assert sight.expects == bool(predicted), at_ms


@pytest.mark.parametrize(
    "told",
    [
        view(containers=1, requests=()),  # at work before we came, or at its end
        view(containers=3),
        view(requests=(MASTER, MAPS)),
        view(queue="research"),
        view(activated=False),  # no master of it may start yet
    ],
)
def test_of_whom_nothing_is_foreseen(told):
    (shown,) = foresight().predict([told], 0)
    assert shown == told


def test_a_job_that_cannot_start_yet_is_foreseen_when_it_can():
    sight = foresight()
    sight.predict([view(activated=False)], 0)
    (shown,) = sight.predict([view()], 10_000)
    assert shown.predicted == 4


def test_a_master_that_asks_for_nothing_is_not_waited_for_any_longer():
    sight, started = foresight(), view(containers=1, requests=())
    sight.predict([view()], 0)
    assert sight.predict([started], LASTS_MS - 1)[0].predicted == 4
    assert sight.predict([started], LASTS_MS)[0].predicted == 0
    assert not sight.expects
    assert sight.predict([view()], LASTS_MS + 1)[0].predicted == 0  # its second master: known, and no more


def test_what_is_not_known_is_not_foreseen_until_it_is():
    answers: list[tuple[ContainerRequest, ...]] = [(), (MAPS._replace(count=0),), (MAPS,)]
    sight = Prediction(4, {"production"}.__contains__, lambda _: answers.pop(0))
    assert [sight.predict([view()], now_ms)[0].predicted for now_ms in (0, 1, 2)] == [0, 0, 4]


def test_who_is_gone_is_forgotten():
    sight = foresight()
    sight.predict([view()], 0)
    assert sight.predict([], 1) == ()
    assert not sight.expects


def test_off_it_changes_nothing_and_asks_nobody():
    sight = Prediction(0, {"production"}.__contains__, lambda _: pytest.fail("asked"))
    told = view()
    assert sight.predict([told], 0) == (told,)
    assert not sight.expects


def test_the_reason_says_how_many_are_foreseen():
    assert reason_text(Unmet()) == "pending requests fit on no node"
    assert reason_text(Unmet(3)) == "pending requests fit on no node; 3 of them are predicted, not sent yet"
