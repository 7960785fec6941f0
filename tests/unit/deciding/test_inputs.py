"""Inputs: what a step reads stands in the journal, and nothing that it reads is left out.

Law: each part of an input that a step depends on is dropped once, in histories that were played with it:
replay must see the difference. What the random world does not show (a master that is silent, a grant between
two looks) has a history of its own below.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.scenario import prepare, read_scenario, setup
from emulator.virtual.run import run_scheme
from emulator.virtual.schemes import SCHEMES
from tests.golden.tables import GUARD_FREE, app, cluster, row
from tests.unit.deciding.controller_world import TASKS, Kept, Played, kept, read, run
from tests.unit.deciding.queue_trees import slots, tree, waits
from tests.unit.deciding.random_histories import draw
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.inputs import LookMemory, Observed
from yarnctl.deciding.model import Observation, SetPriority, Snapshot
from yarnctl.deciding.reasons.demand import NotModelled
from yarnctl.deciding.records import Decision, Record, Refusal
from yarnctl.deciding.settings import DEFAULT, PAPER, Settings
from yarnctl.deciding.snapshot_rows import Columns, Reader, SnapshotChange, Writer
from yarnctl.errors import Different, YarnctlError
from yarnctl.journal.chain import MemoryJournal
from yarnctl.units import decode_vector

SCENARIOS = Path(__file__).parents[3] / "docs/scenarios"
HISTORIES = 500
FIRST = 2069
"""The first of the random ones in which it matters who waited before: it is tried before the others."""
GPU = NotModelled(("gpu",))
DEADLINES = msgspec.structs.replace(DEFAULT, mode="deadlines", job_policy="MLF")


@cache
def played(number: int) -> Played:
    """Return a kept history, or (from 0 on) a random one."""
    shelf = list(kept().values())
    one: Kept = shelf[-number - 1] if number < 0 else draw(5, number)
    return run(one.settings(), one.moves, one.own)


def noticed(change: Callable[[Observed], Observed]) -> bool:
    """Say whether replay sees a difference where each input is changed."""
    for number in (*range(-len(kept()), 0), FIRST, *range(HISTORIES)):
        records = played(number).records
        spoiled: list[Record] = [change(one) if isinstance(one, Observed) else one for one in records]
        if spoiled == records:
            continue
        try:
            read(spoiled).finish()
        except (YarnctlError, AssertionError, LookupError, ValueError):
            return True
    return False


def without_memory(part: str) -> Callable[[Observed], Observed]:
    empty = getattr(LookMemory(), part)

    def change(told: Observed) -> Observed:
        if told.memory is None:
            return told
        return msgspec.structs.replace(told, memory=msgspec.structs.replace(told.memory, **{part: empty}))

    return change


def without_column(column: str, value: object) -> Callable[[Observed], Observed]:
    def change(told: Observed) -> Observed:
        if told.change is None:
            return told
        rows = [msgspec.structs.replace(row, **{column: value}) for row in told.change.applications]
        made = msgspec.structs.replace(told.change, applications=tuple(rows))
        return msgspec.structs.replace(told, change=made)

    return change


def without(part: str, value: object) -> Callable[[Observed], Observed]:
    return lambda told: msgspec.structs.replace(told, **{part: value})


def without_change(part: str, value: object) -> Callable[[Observed], Observed]:
    def change(told: Observed) -> Observed:
        if told.change is None:
            return told
        return msgspec.structs.replace(told, change=msgspec.structs.replace(told.change, **{part: value}))

    return change


PARTS = {
    **{
        f"memory.{part}": without_memory(part)
        for part in ("refused", "order", "sent", "declined", "waiting")
    },
    **{
        f"row.{column}": without_column(column, value)
        for column, value in (("queue", "research"), ("rank", 0), ("containers", 3), ("used", (1, 1)),
            ("requests", ()), ("activated", False), ("runner", False), ("deadline_at_ms", 5), ("priority", 3))
    },
    "change.free": without_change("free", {}),
    "change.gone": without_change("gone", ()),
    "change.order": without_change("order", None),
    "change.queues": without_change("queues", ()),
    "not-requested": lambda told: (
        msgspec.structs.replace(told, cluster="quiet") if told.cluster == "not-requested" else told
    ),
    "since_ms": without("since_ms", 0),
    "as_of_ms": without("as_of_ms", None),
    "tasks": without("tasks", {}),
    "facts": without("facts", ()),
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_input_that_is_left_out_is_noticed(part: str) -> None:
    assert noticed(PARTS[part])


def silent_master() -> list[Record]:
    """Play a job whose master never answers: it is asked again after ``silent_ms``, in a look that is left
    out.
    """
    steps, records, now_ms = Controller(GUARD_FREE), list[Record](), 0
    r1, p1 = app("r1", "research", 9), app("p1", "production", 1, 1)
    both = cluster(r1, p1, app("p2", "production", 1, 1))
    again_ms = GUARD_FREE.silent_ms + 1000
    for wait_ms, snapshot in ((0, cluster(r1, p1)), (again_ms, cluster(r1, p1)), (1000, both)):
        now_ms += wait_ms
        step = steps.step(Observation(now_ms=now_ms, as_of_ms=now_ms, snapshot=snapshot))
        records += step.records
        if step.to_observe.victims:
            told = Observation(now_ms=now_ms, as_of_ms=now_ms, unreachable=step.to_observe.victims)
            records += steps.step(told).records
    return records


@pytest.mark.parametrize("change", [without_memory("silent"), without("unreachable", ())])
def test_who_did_not_answer_stands_in_the_input(change: Callable[[Observed], Observed]) -> None:
    records = silent_master()
    read(records).finish()
    with pytest.raises(Different):
        read([change(one) if isinstance(one, Observed) else one for one in records]).finish()


# --- what is not modelled -------------------------------------------------------------------------


def read_again(change: SnapshotChange) -> SnapshotChange:
    return msgspec.json.decode(msgspec.json.encode(change), type=SnapshotChange, dec_hook=decode_vector)


def left_out(*snapshots: Snapshot) -> list[Record]:
    """Play snapshots, one a second; return the records."""
    steps, records = Controller(GUARD_FREE), list[Record]()
    for place, snapshot in enumerate(snapshots):
        now_ms = place * 1000
        records += steps.step(Observation(now_ms=now_ms, as_of_ms=now_ms, snapshot=snapshot)).records
    return records


def with_left_out(snapshot: Snapshot, *names: str, why: NotModelled = GPU) -> Snapshot:
    return msgspec.structs.replace(snapshot, left_out=dict.fromkeys(names, why))


def test_requests_that_are_left_out_are_refused_once_and_stand_in_the_input() -> None:
    full = {"n1": 0}
    waits, works = app("p1", "production", 1), app("p1", "production", 2)
    research, fpga = app("r1", "research", 9), NotModelled((), ("fpga",))
    records = left_out(
        with_left_out(cluster(waits, research, free=full), "p1", "r1"),
        with_left_out(cluster(waits, research, free=full), "p1", "r1"),
        with_left_out(cluster(waits, research, free=full), "p1", why=fpga),
        cluster(works, research, free=full),
        with_left_out(cluster(works, research, free=full), "p1", why=fpga),
    )
    refusals = [each for each in records if isinstance(each, Refusal)]
    assert [each.why for each in refusals] == [GPU, fpga, fpga]
    assert {(each.trigger.application, each.trigger.shortfall) for each in refusals} == {("p1", 0)}
    read(records).finish()
    change = without_change("left_out", None)
    with pytest.raises(Different):
        read([change(one) if isinstance(one, Observed) else one for one in records]).finish()


@pytest.mark.parametrize("settings", [DEFAULT, PAPER, DEADLINES])
def test_what_is_left_out_is_no_need_whatever_the_rule(settings: Settings) -> None:
    steps = Controller(settings)
    deadline_at_ms = 5_000_000 if settings.mode == "deadlines" else None
    requester = app("p1", "production", 1, deadline=deadline_at_ms)
    snapshot = with_left_out(cluster(requester, app("r1", "research", 9)), "p1")
    step = steps.step(Observation(now_ms=0, as_of_ms=0, snapshot=snapshot))
    assert [each.why for each in step.records if isinstance(each, Refusal)] == [GPU]
    assert {type(action) for action in step.actions} <= {SetPriority}
    assert step.to_observe.victims == ()


def test_requests_that_are_modelled_are_served_beside_those_that_are_not() -> None:
    steps = Controller(GUARD_FREE)
    snapshot = with_left_out(cluster(app("p1", "production", 1, 3), app("r1", "research", 9)), "p1")
    assert steps.step(Observation(now_ms=0, as_of_ms=0, snapshot=snapshot)).to_observe.victims == ("r1",)


def echo() -> list[Record]:
    """Play an ask that still stands, though a container was given since a look that led to nothing."""
    steps, records, r1 = Controller(GUARD_FREE), list[Record](), app("r1", "research", 9)
    room = {"n1": 9}
    for now_ms, snapshot in (
        (0, cluster(r1, app("p1", "production", 1, 0), free=room)),
        (1000, cluster(r1, app("p1", "production", 1, 3), free=room)),
        (1500, cluster(r1, app("p1", "production", 2, 3))),
    ):
        step = steps.step(Observation(now_ms=now_ms, as_of_ms=now_ms, snapshot=snapshot))
        records += step.records
        if step.to_observe.victims:
            told = Observation(now_ms=now_ms, as_of_ms=now_ms, tasks={"r1": TASKS["r1"]})
            records += steps.step(told).records
    return records


def test_what_was_granted_since_a_look_that_is_left_out_stands_in_the_input() -> None:
    records = echo()
    read(records)
    (decision,) = [record for record in records if isinstance(record, Decision)]
    assert decision.trigger.shortfall == 2, "one of three asks is doubted"
    change = without_memory("echoes")
    with pytest.raises(Different):
        read([change(one) if isinstance(one, Observed) else one for one in records])


def test_the_packaged_demo_is_fed_without_a_difference() -> None:
    """A look that had begun to be written was not written to its end: only this journal showed that."""
    prepared, journal = prepare(*read_scenario(SCENARIOS / "facebook-2009.toml")), MemoryJournal()
    run_scheme(setup(prepared.scenario), prepared.jobs, SCHEMES["natjam"], journal)
    state = read(journal.records)
    state.finish()
    assert (state.records, state.decisions, state.steps) == (len(journal.records), 338, 2564)


NAMES = ("r1", "r2", "p1", "p2")
ROWS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(1, 3), st.integers(0, 2), st.integers(0, 2)),
    unique_by=lambda row: row[0],
)
LOOKS = st.lists(
    st.tuples(ROWS, st.dictionaries(st.sampled_from(["n1", "n2"]), st.integers(0, 2)),
        st.sets(st.sampled_from(NAMES))),
    max_size=5,
)  # fmt: skip


@given(LOOKS, st.sampled_from([DEFAULT, DEADLINES]))
def test_a_reader_of_changes_sees_what_the_writer_saw(looks: Any, settings: Settings) -> None:
    writer, again, reader, columns = Writer(settings), Writer(settings), Reader(), Columns(settings)
    for rows, free, names in looks:
        views = [
            app(name, "production" if name[0] == "p" else "research", held, asks, rank=rank, deadline=rank)
            for name, held, asks, rank in rows
        ]
        shown = [view.application for view in views if view.application in names]
        snapshot = with_left_out(cluster(*views, free=free), *shown)
        change = writer.change(snapshot)
        read_back = msgspec.json.decode(
            msgspec.json.encode(change), type=SnapshotChange, dec_hook=decode_vector
        )
        seen = reader.snapshot(read_back)
        assert again.change(seen) == change, "a change is canonical"
        assert rows_of(columns, seen) == rows_of(columns, snapshot)
        assert (seen.total, seen.largest_node) == (snapshot.total, snapshot.largest_node)
        assert seen.free_by_node == snapshot.free_by_node
        assert seen.left_out == snapshot.left_out
        assert [view.queue for view in seen.queues] == [view.queue for view in snapshot.queues]


@pytest.mark.parametrize("later", [4, 8, 16])
def test_writer_shows_the_largest_node_of_the_last_snapshot(later: int) -> None:
    """The largest node of a cluster may leave it, too."""
    writer, reader = Writer(DEFAULT), Reader()
    for largest_node in (8, later):
        seen = reader.snapshot(writer.change(cluster(largest_node=largest_node)))
    assert seen.largest_node == cluster(largest_node=later).largest_node


def rows_of(columns: Columns, snapshot: Snapshot) -> list[object]:
    return [columns.row(view) for view in columns.rows(snapshot)]


def test_a_tree_is_written_by_what_changes_and_a_flat_one_not_at_all() -> None:
    """Parents by row, reservations and the users' limits whole; all are gone once the tree is flat again."""
    writer, again, reader = Writer(DEFAULT), Writer(DEFAULT), Reader()
    nested = tree({"res": 2}, reserved={"m": 2}, user_limits={"u": 1})
    busier = tree({"res": 2, "eng.lab": 1}, reserved={"m": 2}, user_limits={"u": 1})
    busier = msgspec.structs.replace(busier, active_limits={"root.res": {"u": slots(1)}})
    flat = msgspec.structs.replace(busier, parents=(), reserved={}, user_limits={}, active_limits={})
    nested = msgspec.structs.replace(
        nested,
        held_back=("late",),
        reserved_priority={"n1": 20},
        node_totals={"n2": slots(2)},
        heartbeat_ms=400,
        located={"m": 3},
    )
    for snapshot, parents, gone in (
        (nested, ["root", "root.eng"], []),
        (nested, [], []),
        (busier, ["root", "root.eng"], []),
        (msgspec.structs.replace(busier, parents=nested.parents[:1]), ["root"], ["root.eng"]),
        (flat, [], ["root"]),
    ):
        change = writer.change(snapshot)
        assert ([view.queue for view in change.parents], [*change.parents_gone]) == (parents, gone)
        seen = reader.snapshot(read_again(change))
        assert (seen.parents, seen.reserved) == (snapshot.parents, snapshot.reserved)
        assert (seen.user_limits, seen.held_back) == (snapshot.user_limits, snapshot.held_back)
        assert seen.active_limits == snapshot.active_limits
        assert seen.reserved_priority == snapshot.reserved_priority
        assert seen.node_totals == snapshot.node_totals
        assert seen.heartbeat_ms == snapshot.heartbeat_ms
        assert seen.located == snapshot.located
        assert again.change(seen) == change
    text = msgspec.json.encode(Writer(DEFAULT).change(flat))
    assert not any(
        word in text for word in (b"parents", b"reservations", b"user_limits", b"active_limits", b"held_back")
    )


def test_decisions_in_a_tree_are_fed_without_a_difference() -> None:
    """Its parents, reservations and limits are read: without the parents another decision is made."""
    rules = msgspec.structs.replace(
        GUARD_FREE, preempting_queues=("root.eng.prod",), preemptable_queues=("root.res", "root.eng.lab")
    )
    running = [
        waits(queue, name, containers=count, used=slots(count))
        for queue, name, count in (("res", "r1", 12), ("eng.lab", "l1", 10))
    ]
    snapshot = tree(
        {"eng.lab": 10, "eng.prod": 2, "res": 12}, *running, waits("eng.prod", "p1", (1, 2)), eng_maximum=12
    )
    steps, records = Controller(rules), list[Record]()
    step = steps.step(Observation(now_ms=0, as_of_ms=0, snapshot=snapshot))
    assert step.to_observe.victims == ("l1",)
    records += step.records
    told = tuple(task._replace(size=slots(1)) for task in row("l1", 9))
    records += steps.step(Observation(now_ms=0, as_of_ms=0, tasks={"l1": told})).records
    assert [each.orders for each in records if isinstance(each, Decision)]
    read(records)

    def without_parents(record: Record) -> Record:
        if not isinstance(record, Observed) or record.change is None:
            return record
        change = msgspec.structs.replace(record.change, parents=())
        return msgspec.structs.replace(record, change=change)

    with pytest.raises(Different):
        read([without_parents(record) for record in records])
