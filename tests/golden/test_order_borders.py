"""Golden tables of the borders of orders: who is granted which room, when an order ends, clocks set back."""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.tables import size
from tests.golden.test_borders import an_order, entered, freed
from yarnctl.deciding.controller import Controller, Remembered
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import (
    ContainerEnded,
    ContainerGranted,
    Fact,
    ManifestSeen,
    Observation,
    Suspend,
)
from yarnctl.deciding.order import set_back
from yarnctl.deciding.reasons.orders import RequesterHasRoom, Unclaimed
from yarnctl.deciding.records import Requests, Transfer, Transition
from yarnctl.deciding.settings import DEFAULT
from yarnctl.deciding.settlement import Settlement
from yarnctl.errors import InvariantBroken


def transitions(records):
    return [record for record in records if isinstance(record, Transition)]


@pytest.mark.parametrize(("granted_slots", "taken"), [(1, "o-000002"), (2, "o-000001")])
def test_room_that_somebody_else_is_given_is_that_of_the_size_given(granted_slots, taken):
    """Two orders of other requesters are freed on the node, for asks of two slots and of one."""
    large = msgspec.structs.replace(an_order(1, "p2", ask=2), size=size(2))
    work = Settlement(Ledger(), DEFAULT, releases_itself=False)
    freed(work.ledger, large, 100)
    freed(work.ledger, an_order(2, "p3"), 100)
    work.take([ContainerGranted("new", "p1", "n1", size(granted_slots), 200)])
    assert {name: order.state for name, order in work.ledger.settled.items()} == {taken: "misdirected"}


@pytest.mark.parametrize("pending", [None, {}, {"p1": 0}])
def test_nobody_is_said_to_wait_who_was_not_seen_to(pending):
    work = Settlement(Ledger(), DEFAULT, releases_itself=False)
    freed(work.ledger, an_order(), 0)
    work.pending, work.pending_at_ms = pending, 11_000
    (record,) = transitions(work.time_out(12_000).records)
    assert record.event == "unclaimed"
    assert record.why == Unclaimed(12_000)


@pytest.mark.parametrize(("as_of_ms", "state"), [(1999, "freed"), (2000, "withdrawn")])
def test_room_is_forgotten_when_its_asker_was_silent_for_as_long_as_a_grant_takes(as_of_ms, state):
    work = Settlement(Ledger(), DEFAULT, releases_itself=False)
    freed(work.ledger, an_order(), 0)
    work.forget_unwanted({}, 5000, as_of_ms)
    found = work.ledger.open.get("o-000001") or work.ledger.settled["o-000001"]
    assert found.state == state


def test_only_a_manifest_tells_keys():
    work = Settlement(entered(an_order()), DEFAULT, releases_itself=False)
    told: list[Fact] = [
        ManifestSeen("o-000001", "r1.1", 1, 5, 100),
        ContainerEnded("r1.1c", "r1", "n1", "suspended", 200),
        ContainerGranted("new", "p1", "n1", size(1), 300),
    ]
    assert [(record.event, record.keys_done) for record in transitions(work.take(told).records)] == [
        ("manifest", 5),
        ("ended-as-ordered", -1),
        ("granted", -1),
    ]


def test_a_transferred_order_works_for_the_other_asker():
    ledger = entered(an_order())
    ledger.apply(Transfer(order="o-000001", source="p1", target="p2", at_ms=1, why=RequesterHasRoom("p1")))
    assert ledger.open["o-000001"].requester == "p2"
    assert list(ledger.by_requester) == ["p2"]


def observed(now_ms: int) -> Observation:
    """Return an observation of a cluster that does not answer: only time passes."""
    return Observation(now_ms=now_ms, as_of_ms=now_ms, cluster="unreachable")


@pytest.mark.parametrize(
    ("then_ms", "events"), [(50_000, []), (61_999, []), (62_000, ["give-up"]), (100_000, ["give-up"])]
)
def test_an_order_times_out_by_the_clock_that_was_set_back(then_ms, events):
    """Asked at 100 s; a controller that begins at 50 s gives it twelve seconds of its own clock."""
    ledger = Ledger()
    ledger.add(an_order(at_ms=100_000))
    steps = Controller(DEFAULT, remembered=Remembered(ledger, 100_000), validate=True)
    first = steps.step(observed(50_000))
    then = steps.step(observed(then_ms))
    assert [record.event for record in transitions((*first.records, *then.records))] == events


def test_an_observer_that_goes_on_shows_again_what_it_observed():
    """Nobody was asked, so nothing was lost: what it would ask for is told once more."""
    settings = msgspec.structs.replace(DEFAULT, observe_only=True)
    ledger = Ledger()
    ledger.add(an_order(settings=settings))
    request = Suspend("o-000001", "r1", "r1.1", "r1.1c", 1, 12_000)
    ledger.due = [request]
    steps = Controller(settings, remembered=Remembered(ledger, 0))
    (requests,) = [one for one in steps.step(observed(1000)).records if isinstance(one, Requests)]
    assert requests.actions == (request,)


def test_who_validates_finds_a_ledger_that_was_changed_behind_its_back():
    ledger = Ledger()
    ledger.add(an_order())
    steps = Controller(DEFAULT, remembered=Remembered(ledger, 0), validate=True)
    steps.step(observed(10))
    ledger.excluded.clear()
    with pytest.raises(InvariantBroken, match="under-order-is-excluded"):
        steps.step(observed(20))


def test_what_is_over_goes_back_with_the_clock():
    ledger = Ledger()
    freed(ledger, an_order(), 5000)
    ledger.happen("o-000001", "granted", 6000)
    ledger.set_back(1000)
    (late,) = ledger.recently_settled["p1"].values()
    assert (late.room_ms, late.until_ms, late.order.settled_at_ms) == (4000, 5000, 5000)


def test_set_back_moves_every_instant_of_an_order():
    ledger = Ledger()
    freed(ledger, an_order(at_ms=100_000), 105_000)
    ledger.happen("o-000001", "granted", 106_000)
    order = set_back(ledger.settled["o-000001"], 30_000)
    assert (order.ordered_at_ms, order.progress_at_ms) == (70_000, 70_000)
    assert (order.freed_at_ms, order.settled_at_ms) == (75_000, 76_000)
