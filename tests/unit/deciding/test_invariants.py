"""Each invariant finds the bug that it is named for: one is planted, and that name is expected."""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, row, seen, task, with_
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.invariants import LEDGER, SETTLED_IS_FINAL, STEPS, History, check, check_ledger
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import Accepted, ObservationRequest
from yarnctl.deciding.records import Decision, Step, Transition
from yarnctl.errors import InvariantBroken

SNAPSHOT = cluster(app("r1", "research", 50), app("p1", "production", 1, 3))
replace = msgspec.structs.replace


def decided() -> tuple[Controller, Step]:
    steps = Controller(with_(GUARD_FREE, cost_guard=True), validate=True)
    return steps, steps.step(seen(SNAPSHOT, {"r1": row("r1", 49)}))


def ledger() -> Ledger:
    return decided()[0].ledger


def both_lists(book):
    book.settled["o-000001"] = book.open["o-000001"]


def wrong_list(book):
    book.open["o-000001"] = replace(book.open["o-000001"], state="granted")


def same_container(book):
    book.open["o-000002"] = replace(book.open["o-000002"], container="r1.1c")


def same_attempt(book):
    book.open["o-000002"] = replace(book.open["o-000002"], attempt="r1.1")


def stale_container(book):
    book.by_container["zz"] = "o-000001"


def skipped_id(book):
    book.issued = 2


def swapped_ids(book):
    book.open = dict(reversed(book.open.items()))


def lost_from_the_index(book):
    del book.by_requester["p1"]["o-000002"]


def lost_from_the_victims_index(book):
    del book.by_victim["r1"]


def freed_without_index(book):
    book.open["o-000001"] = replace(book.open["o-000001"], state="freed", freed_at_ms=5)


def never_retired(book):
    book.happen("o-000001", "refused", 0)
    book.retiring.clear()


def unanswered(book):
    book.open["o-000001"] = replace(book.open["o-000001"], progress_at_ms=-12_000)


def freed_too_early(book):
    book.open["o-000001"] = replace(book.open["o-000001"], freed_at_ms=5)


def settled_at_no_instant(book):
    book.happen("o-000001", "refused", 0)
    book.settled["o-000001"] = replace(book.settled["o-000001"], settled_at_ms=None)


def granted_without_room(book):
    book.happen("o-000001", "refused", 0)
    book.settled["o-000001"] = replace(book.settled["o-000001"], state="granted")


def not_barred(book):
    book.excluded.clear()


def barred_for_good(book):
    order = book.open["o-000001"]
    book.happen("o-000001", "refused", 0)
    book.bars.set(order, "already-ordered")


def serves_nothing(book):
    book.open["o-000001"] = replace(book.open["o-000001"], serves=0)


PLANTED_IN_THE_LEDGER = [
    (both_lists, "order-in-one-list", 0), (wrong_list, "order-in-one-list", 0),
    (same_container, "one-open-order-per-container", 0), (same_attempt, "one-open-order-per-container", 0),
    (stale_container, "one-open-order-per-container", 0), (skipped_id, "ids-sequential", 0),
    (swapped_ids, "ids-sequential", 0), (lost_from_the_index, "open-counts-match", 0),
    (lost_from_the_victims_index, "open-counts-match", 0), (freed_without_index, "open-counts-match", 0),
    (never_retired, "entries-retire", 2000), (unanswered, "unanswered-orders-end", 0),
    (freed_too_early, "instants-in-order", 0), (settled_at_no_instant, "instants-in-order", 0),
    (granted_without_room, "instants-in-order", 0), (not_barred, "under-order-is-excluded", 0),
    (barred_for_good, "excluded-is-under-order", 0), (serves_nothing, "groups-meet-an-ask", 0),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "name", "now_ms"), PLANTED_IN_THE_LEDGER)
def test_a_bug_in_the_ledger_is_found_by_name(plant, name, now_ms):
    book = ledger()
    check_ledger(book, GUARD_FREE, now_ms)
    plant(book)
    with pytest.raises(InvariantBroken) as broken:
        check_ledger(book, GUARD_FREE, now_ms)
    assert broken.value.name == name
    assert broken.value.story


def decision(step: Step) -> Decision:
    return next(record for record in step.records if isinstance(record, Decision))


def changed(step: Step, **changes: object) -> Step:
    records = tuple(replace(r, **changes) if isinstance(r, Decision) else r for r in step.records)
    return replace(step, records=records)


def master_picked(step):
    pick = decision(step).picks[0]
    return changed(step, picks=(pick._replace(task=task("r1.1", kind="am")), *decision(step).picks[1:]))


def gives_to_itself(step):
    pick = decision(step).picks[0]
    return changed(step, picks=(pick._replace(application="p1"), *decision(step).picks[1:]))


def done_sooner(step):
    pick = decision(step).picks[0]
    return changed(step, picks=(pick._replace(task=task("r1.1", 9000)), *decision(step).picks[1:]))


def just_came_back(step):
    pick = decision(step).picks[0]
    back = task("r1.1", resumed=True, since_ms=-8999)
    return changed(step, picks=(pick._replace(task=back), *decision(step).picks[1:]))


def serves_too_many(step):
    pick = decision(step).picks[0]
    return changed(step, picks=(pick._replace(serves=9), *decision(step).picks[1:]))


def needs_too_many(step):
    return changed(step, trigger=replace(decision(step).trigger, promised=1))


def completes_no_room(step):
    pick = decision(step).picks[0]
    return changed(step, picks=(pick._replace(serves=0), *decision(step).picks[1:]))


def illegal_move(step):
    move = Transition(order="o-000001", source="ordered", event="granted", target="granted", at_ms=0)
    return replace(step, records=(*step.records, move))


def unexplained_action(step):
    return replace(step, actions=(replace(step.actions[0], order="o-000009"), *step.actions[1:]))


def wakes_late(step):
    return replace(step, wake_at_ms=251)


def wakes_in_the_past(step):
    return replace(step, wake_at_ms=-1)


def wakes_for_nothing(step):
    return replace(step, wake_at_ms=0, to_observe=ObservationRequest(cluster=False))


PLANTED_IN_A_STEP = [
    (master_picked, "no-am-ordered"), (gives_to_itself, "victims-are-not-the-requester"),
    (done_sooner, "suspending-pays"), (just_came_back, "suspending-pays"),
    (serves_too_many, "never-more-than-needed"), (needs_too_many, "never-more-than-needed"),
    (completes_no_room, "every-pick-completes-room"), (illegal_move, "lifecycle-legal"),
    (unexplained_action, "actions-are-explained"), (wakes_late, "wakes-in-time"),
    (wakes_in_the_past, "wakes-in-time"), (wakes_for_nothing, "wakes-in-time"),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "name"), PLANTED_IN_A_STEP)
def test_a_bug_in_a_step_is_found_by_name(plant, name):
    steps, step = decided()
    check(steps, step)
    with pytest.raises(InvariantBroken) as broken:
        check(steps, plant(step))
    assert broken.value.name == name


def test_a_law_that_holds_has_nothing_to_say():
    """Each is called by itself, over orders in several states and a step with transitions."""
    steps, step = decided()
    moved = steps.settle(step.actions[0], Accepted())
    told = replace(step, records=(*step.records, *moved))
    assert any(isinstance(record, Transition) for record in told.records)
    assert {name: law(steps.ledger, steps.settings, steps.now_ms) for name, law in LEDGER.items()} == (
        dict.fromkeys(LEDGER, "")
    )
    assert {name: law(steps, told) for name, law in STEPS.items()} == dict.fromkeys(STEPS, "")
    free = Controller(with_(GUARD_FREE, cost_guard=False))
    assert STEPS["suspending-pays"](free, told) == ""


@pytest.mark.parametrize("resurrect", [True, False])
def test_a_settled_order_that_moves_is_found(resurrect):
    book, history = ledger(), History()
    was = book.open["o-000001"]
    book.happen("o-000001", "refused", 0)
    history.check(book)
    if resurrect:
        del book.settled["o-000001"]
        book.open["o-000001"] = was
    else:
        book.settled["o-000001"] = replace(book.settled["o-000001"], state="lost")
    with pytest.raises(InvariantBroken) as broken:
        history.check(book)
    assert broken.value.name == SETTLED_IS_FINAL


def test_every_invariant_has_a_bug_planted_for_it():
    planted = {name for _, name, _ in PLANTED_IN_THE_LEDGER} | {name for _, name in PLANTED_IN_A_STEP}
    assert planted == {*LEDGER, *STEPS}
    assert len({*LEDGER, *STEPS, SETTLED_IS_FINAL}) == 19
