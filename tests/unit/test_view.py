"""The view: whole, immutable, bounded, and true to ledger and journal."""

from __future__ import annotations

import itertools
import threading

import msgspec
import pytest

from tests.property.stories import job
from tests.unit.service.played import SETUP, PublishedRun, busy, last, views, whole
from yarnctl.daemon.view.histogram import ORDER_BOUNDS_MS, Histogram
from yarnctl.daemon.view.occupancy import (
    SPACING_MAX_MS,
    SPACING_MIN_MS,
    Occupancy,
    RoleUsage,
    Sample,
    role_of,
)
from yarnctl.daemon.view.published import Counting, LoopStatus, Publisher, View, quieted
from yarnctl.daemon.view.recent_orders import RecentOrders
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.model import Observation
from yarnctl.deciding.order import Order, order_number
from yarnctl.deciding.reasons.modes import Paused
from yarnctl.deciding.records import Decision, Header, Transition
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.explaining.story import OrderStory
from yarnctl.service.answers.from_view import applications, snapshot
from yarnctl.units import Resources

RUNNING = LoopStatus(state="running", reachable=True, ticks=1)


# --- true to the ledger -------------------------------------------------------------------------------


IN_BOTH = sorted({*Order.__struct_fields__} & {*OrderStory.__struct_fields__} - {"verb"})


def as_order(story: OrderStory) -> dict[str, object]:
    """Return what a story and its order in the ledger have in common."""
    return {name: getattr(story, name) for name in IN_BOTH} | {"verb": story.order_verb}


def as_shown(order: Order) -> dict[str, object]:
    return {name: getattr(order, name) for name in [*IN_BOTH, "verb"]}


def test_entries_are_the_ledgers_orders_after_every_tick():
    compared = 0

    def look(view: View) -> None:
        nonlocal compared
        assert run.controller is not None
        ledger = run.controller.ledger
        wanted = sorted(
            (*ledger.open.values(), *ledger.settled.values()), key=lambda o: order_number(o.order)
        )
        assert [as_order(story) for story in view.entries] == list(map(as_shown, wanted))
        compared += len(wanted)

    run = PublishedRun(look)
    run.go()
    assert compared > 20


def test_every_order_ends_among_the_ended_with_its_last_state():
    transitions = [record for record in whole()[1] if isinstance(record, Transition)]
    final = {record.order: record for record in transitions if record.target not in OPEN}
    assert final
    for entry in last().ended:
        record = final[entry.order]
        assert (entry.state, entry.settled_at_ms) == (record.target, record.at_ms)
        assert entry.receiver_container == record.container
    assert {entry.order for entry in last().ended} == set(final)


def test_states_of_a_decisions_orders_follow_the_ledger():
    for view in views():
        states = {entry.order: entry.state for entry in view.entries}
        for decided in view.decisions:
            assert [story.order for story in decided.orders] == list(decided.record.orders)
            for story in decided.orders:
                assert states.get(story.order, story.state) == story.state


def test_a_job_whose_last_reduce_left_is_told_as_its_master_alone():
    """Research has two reduces, production takes all: one container stays behind, research's master."""
    jobs = (job("r", "research", 0, 2, 2, reduce_ms=(60_000, 61_000)), job("p", "production", 20_000, 2, 14))
    seen: list[View] = []
    setup = msgspec.structs.replace(SETUP, shares=(0.95, 0.05))
    PublishedRun(seen.append, setup, jobs).go(until_ms=10 * 60_000)
    told = []
    for view in seen:
        (row,) = (each for each in applications(view) if each.queue == "research")
        whole = row.suspended == 2 and row.containers == 1
        assert (row.master_only_ms is not None) == whole
        assert snapshot(view).masters_only == whole
        told.append((row.suspended, row.containers, row.master_only_ms))
    assert told[0] == (0, 3, None)
    assert (1, 2, None) in told
    assert told[-1][:2] == (2, 1)
    ended_at_ms = max(entry.freed_at_ms or 0 for entry in seen[-1].ended)
    assert told[-1][2] == seen[-1].now_ms - ended_at_ms > 10_000


# --- immutable ----------------------------------------------------------------------------------------


def test_a_view_stays_as_it_was_published():
    kept: list[tuple[View, bytes]] = []
    PublishedRun(lambda view: kept.append((view, repr(view).encode()))).go()
    assert len(kept) > 20
    for view, bytes_then in kept:
        assert repr(view).encode() == bytes_then


def test_readers_in_other_threads_see_whole_views_only():
    """A view is whole if what it counts, remembers and shows are of one instant."""
    run = PublishedRun()
    ended = threading.Event()
    faults: list[str] = []
    versions: set[int] = set()

    def read() -> None:
        newest = -1
        while not ended.is_set() or newest < run.publisher.view.version:
            view = run.publisher.view
            versions.add(view.version)
            if view.version < newest:
                faults.append("older than the one before")
            newest = view.version
            if len(view.decisions) != view.counts.decisions:
                faults.append(f"{len(view.decisions)} decisions, {view.counts.decisions} counted")
            numbered = {order for decided in view.decisions for order in decided.record.orders}
            if not {entry.order for entry in view.entries} <= numbered:
                faults.append("an entry without its decision")

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    run.go()
    ended.set()
    for reader in readers:
        reader.join()
    assert faults == []
    assert len(versions) > 1


def test_versions_and_instants_never_go_back():
    for before, after in zip(views(), views()[1:], strict=False):
        assert after.version == before.version + 1
        assert after.now_ms >= before.now_ms


def test_a_new_status_leaves_the_rest_as_it_is():
    run = PublishedRun()
    run.go()
    before = run.publisher.view
    run.publisher.set_status(LoopStatus(state="paused", why=(Paused("noon"),)), before.now_ms + 5)
    after = run.publisher.view
    assert (after.loop.state, after.now_ms, after.version) == (
        "paused",
        before.now_ms + 5,
        before.version + 1,
    )
    changed = {"loop", "now_ms", "version", "events", "events_to"}
    assert (after.events[:-1], after.events[-1].record.at_ms) == (before.events, before.now_ms + 5)
    for name in View.__struct_fields__:
        assert name in changed or getattr(after, name) is getattr(before, name)


def test_when_nobody_hurried_waits_none_is_shown_waiting():
    assert last().no_demand
    shown = last().snapshot
    assert shown is not None
    for view in shown.applications:
        assert not (view.requests and role_of(view, DEFAULT) == "preempting")
    waiting = busy().snapshot
    assert waiting is not None
    assert any(view.requests for view in waiting.applications)
    assert not any(view.requests for view in quieted(waiting, DEFAULT).applications)


def test_between_two_looks_nothing_is_said_to_be_quiet():
    publisher, snapshot = Publisher(), busy().snapshot
    controller = Controller(DEFAULT)
    publisher.tick(controller, Observation(now_ms=1000, as_of_ms=1000, snapshot=snapshot), RUNNING)
    publisher.tick(controller, Observation(now_ms=1250, as_of_ms=1250), RUNNING)
    assert not publisher.view.no_demand
    publisher.tick(controller, Observation(now_ms=9000, as_of_ms=9000, cluster="unreachable"), RUNNING)
    assert not publisher.view.no_demand
    assert publisher.view.snapshot is snapshot
    publisher.tick(controller, Observation(now_ms=9250, as_of_ms=9250), RUNNING)
    assert publisher.view.no_demand
    assert publisher.view.snapshot_at_ms == 1000
    publisher.tick(controller, Observation(now_ms=9500, as_of_ms=9500), RUNNING, snapshot=snapshot)
    assert (publisher.view.no_demand, publisher.view.snapshot_at_ms) == (False, 9500)


# --- bounded ------------------------------------------------------------------------------------------


def sample(at_ms: int) -> Sample:
    return Sample(
        at_ms=at_ms, total=Resources(1, 1), preempting=RoleUsage(), preemptable=RoleUsage(),
        other=RoleUsage(), open_orders=0,
    )  # fmt: skip


def test_occupancy_covers_hours_in_bounded_memory():
    kept = Occupancy(samples_max=64)
    for at_ms in range(0, 3_600_000, 250):
        if kept.is_due(at_ms):
            kept.add(sample(at_ms))
        assert len(kept.samples) <= 64
    instants = [each.at_ms for each in kept.samples]
    assert kept.spacing_ms == SPACING_MAX_MS
    assert instants == sorted(instants)
    assert instants[-1] > 3_600_000 - 2 * SPACING_MAX_MS
    assert {later - earlier for earlier, later in itertools.pairwise(instants)} == {SPACING_MAX_MS}


def test_occupancy_begins_fine_and_thins_out():
    kept = Occupancy(samples_max=8)
    for at_ms in range(0, 9_000, 1_000):
        assert kept.is_due(at_ms)
        kept.add(sample(at_ms))
    assert [each.at_ms for each in kept.samples] == [0, 2000, 4000, 6000, 8000]
    assert kept.spacing_ms == 2 * SPACING_MIN_MS
    assert not kept.is_due(9_000)


def remember(records, **bounds: int) -> RecentOrders:
    recent = RecentOrders(**bounds)
    for record in records:
        recent.apply(record)
    recent.update(Ledger())
    return recent


def test_the_oldest_decisions_are_forgotten_with_all_that_belongs_to_them():
    for bound in ("decisions_max", "stories_max"):
        (kept,) = remember(whole()[1], **{bound: 1}).decisions
        assert kept.record.number == 2
        assert [story.state for story in kept.orders] == ["granted"] * len(kept.record.orders)


def test_a_daemon_that_continues_lists_what_the_one_before_it_took():
    kept = remember(whole()[1]).ended
    assert {entry.order: entry.state for entry in kept} == {
        entry.order: entry.state for entry in last().ended
    }
    newest = [order_number(entry.order) for entry in kept]
    assert newest == sorted(newest, reverse=True)


def test_a_controller_that_numbers_anew_replaces_what_was_before():
    kept = remember(whole()[1] * 2).decisions
    assert [decided.record.number for decided in kept] == [2, 1]
    assert all(story.state == "granted" for decided in kept for story in decided.orders)


def test_records_of_orders_that_nobody_knows_are_harmless():
    publisher = Publisher()
    publisher.record([record for record in whole()[1] if not isinstance(record, Decision | Header)])
    publisher.tick(Controller(DEFAULT), Observation(now_ms=1, as_of_ms=1), RUNNING)
    assert (publisher.view.decisions, publisher.view.entries, publisher.view.checkpoints) == ((), (), ())


def test_counters_only_grow_and_agree_with_the_journal():
    for before, after in zip(views(), views()[1:], strict=False):
        for name in ("decisions", "refusals", "keys_saved"):
            assert getattr(after.counts, name) >= getattr(before.counts, name)
    counts = last().counts
    assert counts.decisions == len(last().decisions)
    assert counts.ended == {"granted": len(last().ended)}
    assert counts.keys_saved == sum(each.keys_done or 0 for each in last().checkpoints)
    assert sum(counts.saved.counts) == len(last().checkpoints)


@pytest.mark.parametrize(("span_ms", "place"), [(0, 0), (250, 0), (251, 1), (60_000, 8), (60_001, 9)])
def test_a_span_falls_into_the_bucket_that_holds_it(span_ms, place):
    seen = Histogram().plus(span_ms)
    assert [i for i, count in enumerate(seen.counts) if count] == [place]
    assert len(seen.counts) == len(ORDER_BOUNDS_MS) + 1
    assert seen.sum_ms == span_ms


def test_counts_are_values():
    counted = Counting()
    recent = RecentOrders()
    for record in whole()[1]:
        counted.apply(record, recent.apply(record))
    first = counted.counts()
    before = msgspec.json.encode(dict(first.ended))
    for record in whole()[1]:
        counted.apply(record, recent.apply(record))
    assert counted.counts().ended != first.ended
    assert msgspec.json.encode(dict(first.ended)) == before
