"""Golden tables of the ledger: every cell of the life cycle, time-outs, retirement, foreign facts."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, row, seen, size, with_
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.lifecycle import OPEN, TABLE, Event, State
from yarnctl.deciding.model import (
    ApplicationEnded,
    ContainerEnded,
    ContainerGranted,
    EpochChanged,
    Kill,
    ManifestSeen,
    Release,
    Suspend,
    UploadProgressed,
    Withdraw,
)
from yarnctl.deciding.order import Order
from yarnctl.deciding.records import Epoch, Transfer, Transition
from yarnctl.deciding.settings import PAPER

STATES, EVENTS = get_args(State), get_args(Event)

# One line a state, one column an event, as in the drawing; "." is "stays where it is".
CELLS = """
             accepted   refused   progress   manifest     ended-as-ordered ended-otherwise completed granted misdirected unclaimed not-needed requester-ended give-up  kill   epoch-changed simulated
ordered      suspending withdrawn suspending checkpointed freed            lost            completed .       .           .         withdrawn  withdrawn       given_up killed lost          simulated
suspending   .          .         suspending checkpointed freed            lost            completed .       .           .         withdrawn  withdrawn       given_up killed lost          .
checkpointed .          withdrawn .          .            freed            lost            completed .       .           .         .          withdrawn       given_up killed lost          .
freed        .          .         .          .            .                .               .         granted misdirected lost      withdrawn  withdrawn       .        .      lost          .
granted      .          .         .          .            .                .               .         .       .           .         .          .               .        .      .             .
given_up     .          .         .          .            .                .               .         .       .           .         .          .               .        .      .             .
killed       .          .         .          .            .                .               .         .       .           .         .          .               .        .      .             .
completed    .          .         .          .            .                .               .         .       .           .         .          .               .        .      .             .
lost         .          .         .          .            .                .               .         .       .           .         .          .               .        .      .             .
withdrawn    .          .         .          .            .                .               .         .       .           .         .          .               .        .      .             .
misdirected  .          .         .          .            .                .               .         .       .           .         .          .               .        .      .             .
simulated    .          .         .          .            .                .               .         .       .           .         withdrawn  withdrawn       .        .      lost          .
"""  # noqa: E501


def cells():
    header, *lines = CELLS.strip().splitlines()
    for line in lines:
        state, *targets = line.split()
        for event, target in zip(header.split(), targets, strict=True):
            yield state, event, None if target == "." else target


@pytest.mark.parametrize(("state", "event", "target"), list(cells()))
def test_every_cell(state, event, target):
    assert TABLE[state].get(event) == target


def test_the_table_is_total():
    assert {(state, event) for state, event, _ in cells()} == {(s, e) for s in STATES for e in EVENTS}
    assert set(TABLE) == set(STATES)


# --- through the controller -------------------------------------------------------------------

FULL = cluster(app("r1", "research", 50), app("p1", "production", 1, 1))
TASKS = {"r1": row("r1", 49)}
NAMES = ("o-000001", "r1", "r1.1", "r1.1c")


def started(settings=GUARD_FREE, capabilities=frozenset(), snapshot=FULL):
    steps = Controller(settings, capabilities, validate=True)
    step = steps.step(seen(snapshot, TASKS))
    assert isinstance(step.actions[0], Suspend)
    return steps


def state(steps, order="o-000001"):
    found = steps.ledger.open.get(order) or steps.ledger.settled.get(order)
    return found.state if found else "retired"


def manifest(at_ms=900, **changes):
    facts = {"order": "o-000001", "attempt": "r1.1", "generation": 1, "keys_done": 5, "at_ms": at_ms}
    return ManifestSeen(**{**facts, **changes})


def ended(ending, at_ms=950, container="r1.1c"):
    return ContainerEnded(container, "r1", "n1", ending, at_ms)


def granted(application="p1", at_ms=980, node="n1", slots=1):
    return ContainerGranted("new", application, node, size(slots), at_ms)


FACTS = [
    # facts, in order                                                     state      actions
    ([UploadProgressed("o-000001", 500)], "suspending", []),
    ([manifest()], "checkpointed", [Release(*NAMES, 1)]),
    ([manifest(generation=0)], "checkpointed", [Release(*NAMES, 0)]),  # "unchanged, generation 0 still valid"
    (
        [manifest(), ended("killed")],
        "freed",
        [Release(*NAMES, 1)],
    ),  # released: killed by the AM, nothing lost
    ([manifest(), ended("killed"), granted()], "granted", [Release(*NAMES, 1)]),
    ([ended("suspended")], "freed", []),  # the host releases by itself, the manifest is still to come
    ([ended("suspended"), manifest()], "freed", []),  # ... and comes late
    ([ended("completed")], "completed", []),  # it finished by itself first
    ([manifest(), ended("completed")], "completed", [Release(*NAMES, 1)]),
    ([ended("killed")], "lost", []),  # others killed it
    ([ended("failed")], "lost", []),
    ([manifest(), ended("lost")], "lost", [Release(*NAMES, 1)]),  # the node died: its room did too
    ([ended("suspended"), granted("r1")], "misdirected", []),  # the victim itself took it back
    # taken back in the look that shows its requester ended: the requester had it, or needs it no more
    ([ended("suspended"), granted("r1"), ApplicationEnded("p1", 985)], "withdrawn", []),
    ([ended("suspended"), granted("r1", node="n2")], "freed", []),  # somewhere else: not this room
    ([ended("suspended"), granted(node="n2")], "granted", []),  # the requester got one elsewhere: served
    ([ended("suspended"), granted(slots=2)], "freed", []),  # another size is another ask
    ([granted()], "ordered", []),  # granted before anything was freed: not ours
    ([ApplicationEnded("p1", 700)], "withdrawn", [Withdraw(*NAMES)]),
    ([manifest(), ApplicationEnded("p1", 950)], "withdrawn", [Release(*NAMES, 1)]),
    ([ended("suspended"), ApplicationEnded("p1", 960)], "withdrawn", []),
    ([ApplicationEnded("r1", 700)], "completed", []),
    ([ended("suspended"), ApplicationEnded("r1", 960)], "freed", []),  # the room is free all the same
    ([EpochChanged("2", 700)], "ordered", []),  # the task may live: only its end settles the order
    ([manifest(), EpochChanged("2", 950)], "checkpointed", [Release(*NAMES, 1)]),
    ([EpochChanged("2", 700), ended("suspended"), granted()], "granted", []),
    # foreign, duplicate and late facts do nothing
    ([manifest(order="o-000077")], "ordered", []),
    ([manifest(attempt="r1.2")], "ordered", []),
    ([manifest(generation=2)], "ordered", []),
    ([ended("suspended", container="zz")], "ordered", []),
    ([manifest(), manifest()], "checkpointed", [Release(*NAMES, 1)]),  # one Release, not two
    ([ended("suspended"), ended("suspended"), granted(), granted("r1")], "granted", []),
    ([ended("completed"), manifest(), ended("killed"), granted()], "completed", []),
    ([ApplicationEnded("zz", 700)], "ordered", []),
]


@pytest.mark.parametrize(("facts", "expected", "actions"), FACTS)
def test_facts(facts, expected, actions):
    steps = started()
    step = steps.step(seen(None, now_ms=990, facts=tuple(facts)))
    assert state(steps) == expected
    assert list(step.actions) == actions


def test_a_host_that_releases_by_itself_is_not_told_to():
    steps = started(capabilities=frozenset({"releases-itself"}))
    assert not steps.step(seen(None, now_ms=990, facts=(manifest(),))).actions
    assert state(steps) == "checkpointed"


def test_the_grant_prefers_the_freed_room_on_its_own_node():
    snapshot = cluster(app("r1", "research", 50), app("p1", "production", 1, 2))
    tasks = {"r1": [*row("r1", 1, node="n1"), *row("r1", 49, node="n2")[1:]]}
    steps = Controller(GUARD_FREE, validate=True)
    steps.step(seen(snapshot, tasks))
    both = (
        ContainerEnded("r1.1c", "r1", "n1", "suspended", 10),
        ContainerEnded("r1.2c", "r1", "n2", "suspended", 11),
    )
    steps.step(seen(None, now_ms=20, facts=(*both, granted(node="n2", at_ms=15))))
    assert (state(steps, "o-000001"), state(steps, "o-000002")) == ("freed", "granted")
    steps.step(seen(None, now_ms=30, facts=(granted(node="n7", at_ms=25),)))
    assert state(steps, "o-000001") == "granted"  # elsewhere: the oldest


def test_an_epoch_is_recorded():
    step = started().step(seen(None, now_ms=990, facts=(EpochChanged("2", 700),)))
    assert step.records[1] == Epoch(700, "2")


# --- time -------------------------------------------------------------------------------------

TIMEOUTS = [
    # on time-out  facts                              state at 11 999  at 12 000    actions then
    ("give-up", [], "ordered", "given_up", [Withdraw(*NAMES)]),
    ("kill", [], "ordered", "killed", [Kill(*NAMES)]),
    ("give-up", [manifest(at_ms=1)], "checkpointed", "checkpointed", []),  # 11 999 ms since the manifest
    ("give-up", [UploadProgressed("o-000001", 1)], "suspending", "suspending", []),
    ("give-up", [ended("suspended", at_ms=0)], "freed", "lost", []),  # nobody was seen to get it
]


@pytest.mark.parametrize(("on_timeout", "facts", "before", "then", "actions"), TIMEOUTS)
def test_time_outs_count_from_the_last_progress(on_timeout, facts, before, then, actions):
    steps = started(with_(GUARD_FREE, on_timeout=on_timeout))
    steps.step(seen(None, now_ms=100, facts=tuple(facts)))
    steps.to_observe = type(steps.to_observe)(cluster=False)
    steps.step(seen(None, now_ms=11_999))
    assert state(steps) == before
    steps.to_observe = type(steps.to_observe)(cluster=False)
    step = steps.step(seen(None, now_ms=12_000))
    assert state(steps) == then
    assert list(step.actions) == actions


def test_a_settled_entry_retires_after_two_seconds():
    steps = started()
    steps.step(seen(None, now_ms=990, facts=(ended("completed", at_ms=950),)))
    for now_ms, expected in ((2949, "completed"), (2950, "retired")):
        steps.step(seen(None, now_ms=now_ms))
        assert state(steps) == expected


def test_what_was_given_up_is_not_tried_again_at_once():
    """The attempt did not answer for 12 s: for the next 12 s another one is asked."""
    steps = started()
    assert steps.step(seen(FULL, TASKS, now_ms=12_000)).actions[1].attempt == "r1.2"
    step = steps.step(seen(FULL, TASKS, now_ms=24_000))
    assert [action.attempt for action in step.actions if isinstance(action, Suspend)] == ["r1.1"]


def test_natjam_counts_a_killed_entry_until_it_retires():
    steps = started(PAPER)
    step = steps.step(seen(FULL, TASKS, now_ms=12_000))
    assert step.actions == (Kill(*NAMES),)
    assert not steps.step(seen(FULL, TASKS, now_ms=13_000)).actions  # on the expired list (section 3.2)
    assert len(steps.step(seen(FULL, TASKS, now_ms=14_000)).actions) == 1


def test_a_killed_containers_room_is_counted_once():
    """Its end is seen: the room is in the snapshot, and no longer "coming"."""
    steps = started(with_(GUARD_FREE, on_timeout="kill"))
    steps.step(seen(None, now_ms=250))
    steps.step(seen(FULL, TASKS, now_ms=12_000))
    assert len(list(steps.ledger.expected_room(12_000))) == 1
    steps.step(seen(None, now_ms=12_500, facts=(ended("killed", at_ms=12_400),)))
    assert not list(steps.ledger.expected_room(12_500))


def test_freed_room_nobody_wants_any_more_is_forgotten():
    steps = started()
    steps.step(seen(None, now_ms=990, facts=(ended("suspended", at_ms=900),)))
    idle = cluster(app("r1", "research", 49), app("p1", "production", 1), free={"n1": 1})
    steps.step(seen(idle, now_ms=2000))
    assert state(steps) == "freed"  # the grant may still be on its way
    steps.step(seen(idle, now_ms=3000))
    assert state(steps) == "withdrawn"


# --- the ledger alone -------------------------------------------------------------------------


def order(number, **changes):
    made = {
        "order": f"o-{number:06d}", "requester": "p1", "victim": "r1", "attempt": f"r1.{number}",
        "container": f"r1.{number}c", "node": "n1", "size": size(1), "request_size": size(1), "serves": 1,
        "group": f"o-{number:06d}", "generation": 1, "verb": "suspend", "decision": 1, "ordered_at_ms": 0,
        "progress_at_ms": 0,
    }  # fmt: skip
    return Order(**{**made, **changes})


def test_what_does_not_belong_is_not_entered():
    ledger = Ledger()
    ledger.add(order(1))
    with pytest.raises(AssertionError):
        ledger.add(order(3))
    with pytest.raises(AssertionError):
        ledger.add(order(2, container="r1.1c"))


def test_applying_to_nothing_is_nothing():
    ledger = Ledger()
    assert ledger.happen("o-000001", "granted", 5) is None
    ledger.add(order(1))
    assert ledger.happen("o-000001", "granted", 5) is None
    moved = ledger.happen("o-000001", "refused", 7)
    assert isinstance(moved, Transition)
    kept = ledger.settled["o-000001"]
    assert (moved.target, kept.state, kept.settled_at_ms, kept.is_open) == (
        "withdrawn",
        "withdrawn",
        7,
        False,
    )
    assert ledger.happen("o-000001", "manifest", 8) is None
    assert OPEN == ("ordered", "suspending", "checkpointed", "freed", "simulated")


def test_transitions_are_recorded_with_who_got_the_room():
    steps = started()
    step = steps.step(seen(None, now_ms=990, facts=(manifest(), ended("killed"), granted())))
    moves = [record for record in step.records if isinstance(record, Transition)]
    assert [(move.source, move.event, move.target) for move in moves] == [
        ("ordered", "manifest", "checkpointed"),
        ("checkpointed", "ended-as-ordered", "freed"),
        ("freed", "granted", "granted"),
    ]
    assert moves[0].keys_done == 5
    assert (moves[2].container, moves[2].application) == ("new", "p1")


# --- several requesters: rooms of one size are all alike --------------------------------------------

TWO = cluster(app("r1", "research", 50), app("p1", "production", 1, 1), app("p2", "production", 1, 1, rank=1))


def two_askers(settings=GUARD_FREE):
    """Order 1 works for p1, order 2 for p2."""
    return started(settings, snapshot=TWO)


def requesters(steps):
    return {name: kept.requester for name, kept in steps.ledger.open.items()}


@pytest.mark.parametrize("settings", [GUARD_FREE, PAPER], ids=["default", "paper"])
def test_who_is_given_anothers_room_passes_its_own_order_on(settings):
    """The scheduler gives p1 the room freed for p2: p1's order, still running, now works for p2."""
    steps = two_askers(settings)
    facts = (ended("suspended", container="r1.2c"), granted("p1"))
    step = steps.step(seen(None, now_ms=990, facts=facts))
    assert state(steps, "o-000002") == "granted"
    assert requesters(steps) == {"o-000001": "p2"}
    passed = [record for record in step.records if isinstance(record, Transfer)]
    assert [(move.order, move.source, move.target) for move in passed] == [("o-000001", "p1", "p2")]
    steps.step(seen(None, now_ms=1990, facts=(ended("suspended", 1900), granted("p2", 1950))))
    assert state(steps) == "granted"


def test_an_asker_without_an_order_of_its_own_takes():
    """Nothing can be passed on: p2 has lost its room and asks again."""
    steps = two_askers()
    steps.step(seen(None, now_ms=500, facts=(ended("suspended", 400), granted("p1", 450))))
    assert state(steps) == "granted"
    steps.step(seen(None, now_ms=990, facts=(ended("suspended", container="r1.2c"), granted("p1"))))
    assert state(steps, "o-000002") == "misdirected"


def test_an_order_its_asker_does_not_need_goes_to_one_who_does():
    """A slot came free by itself and p1 has it; now p3 waits: order 1 is not withdrawn, it is p3's."""
    steps = two_askers()
    later = cluster(
        app("r1", "research", 50),
        app("p1", "production", 2),
        app("p2", "production", 1, 1, rank=1),
        app("p3", "production", 1, 1, rank=2),
    )
    step = steps.step(seen(later, TASKS, now_ms=1000))
    assert not step.actions
    assert requesters(steps) == {"o-000001": "p3", "o-000002": "p2"}


def test_what_nobody_needs_is_withdrawn_the_youngest_first():
    steps = two_askers()
    idle = cluster(app("r1", "research", 50), app("p1", "production", 2), app("p2", "production", 2))
    step = steps.step(seen(idle, now_ms=1000))
    assert [action.order for action in step.actions] == ["o-000002", "o-000001"]
    assert not steps.ledger.open
