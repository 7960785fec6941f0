"""What coming back was to cost, and did, shows with the order, long after it has left its list."""

from __future__ import annotations

import logging

import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, row, seen
from yarnctl.daemon.guards import WriteGuard
from yarnctl.daemon.loop import Recorder
from yarnctl.daemon.view.published import Counting, LoopStatus, Publisher
from yarnctl.daemon.view.recent_orders import RecentOrders
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import (
    CameBack,
    CameBackWithout,
    ContainerEnded,
    ManifestSeen,
    Observation,
    Refused,
    SetPriority,
)
from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import Return, SavedLost, performed
from yarnctl.journal.chain import MemoryJournal
from yarnctl.journal.explaining.explain import in_words, reader_of
from yarnctl.service.routes.prometheus import text

FULL = cluster(app("r1", "research", 50), app("p1", "production", 1, 1))
BACK = CameBack("o-000001", "again", 700, 2500, 900, 60_000)
EVENTS = [
    (0, FULL, ()),
    (2600, None, (ManifestSeen("o-000001", "r1.1", 1, 5, 2000),)),
    (2700, None, (ContainerEnded("r1.1c", "r1", "n1", "suspended", 2600),)),
    (20_000, None, ()),  # settled, and retired
    (60_000, None, (BACK,)),
]


@pytest.mark.parametrize("retired", [True, False])
def test_the_cost_is_noted_in_the_list_or_after(retired):
    steps, reclaiming = Controller(GUARD_FREE), RecentOrders()
    for now_ms, snapshot, facts in EVENTS if retired else [*EVENTS[:3], EVENTS[4], (90_000, None, ())]:
        step = steps.step(seen(snapshot, {"r1": row("r1", 49, cost_ms=7000)}, now_ms=now_ms, facts=facts))
        for record in step.records:
            reclaiming.apply(record)
        reclaiming.update(steps.ledger)
        shown = reclaiming.entries + reclaiming.ended
        assert [(each.order, each.predicted_cost_ms) for each in shown] == [("o-000001", 7000)]
    (entry,) = reclaiming.ended
    assert entry.came_back is not None
    assert entry.came_back.cost_ms == 2600 + 700 + 2500 + 900


LOST = CameBackWithout("o-000001", "again", 7, 1, 0, 60_000)


@pytest.mark.parametrize(
    ("fact", "words"), [(BACK, "measured 6.7 s"), (LOST, "did not use the checkpoint of 7 keys")]
)
def test_the_service_remembers_what_became_of_a_suspended_task(fact, words):
    steps, remembered = Controller(GUARD_FREE), RecentOrders()
    for now_ms, snapshot, facts in [*EVENTS[:-1], (60_000, None, (fact,))]:
        step = steps.step(seen(snapshot, {"r1": row("r1", 49, cost_ms=7000)}, now_ms=now_ms, facts=facts))
        for record in step.records:
            remembered.apply(record)
    remembered.update(steps.ledger)
    (decided,) = remembered.decisions
    told = reader_of("o-000001").explanation(decided.orders)
    assert words in "\n".join(in_words(told))


def test_people_are_told_once_why_a_priority_is_not_changed(caplog):
    recorder = Recorder(MemoryJournal(), Publisher(), WriteGuard(None, lambda: None, Misdirection()))
    caplog.set_level(logging.INFO)
    for fault in ("not allowed", "not allowed", "busy"):
        recorder.append([performed(1, SetPriority("a", 3), Refused(ClientFault(fault)))])
    told = [line.getMessage() for line in caplog.records if line.name != "yarnctl.audit"]
    assert told == [f"cannot change the priority of a: {why}" for why in ("not allowed", "busy")]


def test_people_are_told_of_a_return(caplog):
    recorder = Recorder(MemoryJournal(), Publisher(), WriteGuard(None, lambda: None, Misdirection()))
    caplog.set_level(logging.INFO)
    recorder.append([_returned()])
    assert "again resumed (order o-1): resume cost 6.7 s, predicted 7.0 s" in caplog.text


@pytest.mark.parametrize(("keys", "words"), [(7, "7 keys were saved"), (-1, "unknown keys were saved")])
def test_people_are_warned_of_saved_work_that_was_lost(caplog, keys, words):
    recorder = Recorder(MemoryJournal(), Publisher(), WriteGuard(None, lambda: None, Misdirection()))
    recorder.append([_lost("o-1", keys)])
    assert f"o-1: work lost: again resumed from generation 0 instead of 1 ({words})" in caplog.text
    assert [line.levelname for line in caplog.records] == ["WARNING"]


def test_lost_checkpoints_and_their_keys_are_counted():
    counted = Counting()
    for record in (_lost("o-1", 7), _lost("o-2", -1), _lost("o-3", 4), _returned()):
        counted.apply(record, ())
    assert (counted.counts().checkpoints_lost, counted.counts().keys_lost) == (3, 11)


def test_metrics_tell_lost_checkpoints_and_their_keys():
    publisher = Publisher()
    publisher.record([_lost("o-1", 7), _lost("o-2", -1)])
    running = LoopStatus(state="running", reachable=True, ticks=1)
    publisher.tick(Controller(GUARD_FREE), Observation(now_ms=1, as_of_ms=1), running)
    told = text(publisher.view).decode()
    assert "yarnctl_lost_checkpoints_total 2.0" in told
    assert "yarnctl_lost_keys_total 7.0" in told


def _lost(order: str, keys: int) -> SavedLost:
    return SavedLost(
        order=order, attempt="again", at_ms=1, keys_lost=keys, generation_expected=1, generation_found=0
    )


def _returned() -> Return:
    return Return(
        order="o-1", attempt="again", at_ms=1, predicted_ms=7000, cost_ms=6700, leave_ms=2600, launch_ms=700,
        shuffle_ms=2500, skip_ms=900,
    )  # fmt: skip
