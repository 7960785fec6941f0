"""The controller with every invariant on, under facts that come twice, late, foreign or never."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.golden.tables import GUARD_FREE, app, cluster, size, task, with_
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.invariants import History
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.model import (
    Accepted,
    ApplicationEnded,
    ContainerEnded,
    ContainerGranted,
    EpochChanged,
    ManifestSeen,
    Observation,
    Refused,
    Unknown,
    UploadProgressed,
)
from yarnctl.deciding.records import Decision, Record, Transition, encode
from yarnctl.deciding.settings import PAPER
from yarnctl.journal.file import Line
from yarnctl.journal.replay import replay

JOBS = ("r1", "r2", "r3")
ORDERS = st.integers(1, 12).map(lambda n: f"o-{n:06d}")
NODES = st.sampled_from(["n1", "n2", "n3"])
CONTAINERS = st.builds(lambda job, n: f"{job}.{n}c", st.sampled_from(JOBS), st.integers(0, 9))
APPLICATIONS = st.sampled_from(["p1", "p2", *JOBS, "zz"])
AT = st.integers(0, 1500)
FACTS = st.one_of(
    st.builds(ManifestSeen, ORDERS, CONTAINERS.map(lambda c: c[:-1]), st.integers(0, 2), st.just(3), AT),
    st.builds(UploadProgressed, ORDERS, AT),
    st.builds(
        ContainerEnded,
        CONTAINERS,
        st.sampled_from(JOBS),
        NODES,
        st.sampled_from(["suspended", "completed", "killed", "failed", "lost"]),
        AT,
    ),
    st.builds(ContainerGranted, CONTAINERS, APPLICATIONS, NODES, st.integers(1, 2).map(size), AT),
    st.builds(ApplicationEnded, APPLICATIONS, AT),
    st.builds(EpochChanged, st.just("2"), AT),
)
WAYS = st.builds(
    lambda base, timeout, job, own, mode: with_(
        base,
        on_timeout=timeout,
        job_policy=job,
        eviction=own,
        mode=mode,
        kill_timeout_ms=4000,
        cost_guard=False,
    ),
    st.sampled_from([GUARD_FREE, PAPER]),
    st.sampled_from(["give-up", "kill"]),
    st.sampled_from(["MR", "LR", "PR", "MDF", "MLF"]),
    st.sampled_from(["suspend", "kill"]),
    st.sampled_from(["queues", "queues", "deadlines"]),
)


@st.composite
def histories(draw):
    """Draw a way of deciding and a list of (ms later, snapshot?, pending, facts, outcome)."""
    steps = st.tuples(
        st.sampled_from([0, 250, 1000, 3000]),
        st.booleans(),
        st.tuples(st.integers(0, 4), st.integers(0, 3)),
        st.dictionaries(NODES, st.integers(0, 2), max_size=2),
        st.lists(FACTS, max_size=4),
        st.sampled_from([Accepted(), Refused("no"), Unknown()]),
    )
    return draw(WAYS), draw(st.lists(steps, min_size=1, max_size=14)), draw(st.booleans())


def look(pending, free, mode):
    deadlines = mode == "deadlines"
    queue = {"production": "default", "research": "default"} if deadlines else {}
    rows = [
        app(
            name,
            queue.get("research", "research"),
            count,
            rank=10 + n,
            deadline=5000 + n if deadlines else None,
            slots=1 + (n == 2),
        )
        for n, (name, count) in enumerate(zip(JOBS, (6, 5, 4), strict=True))
    ]
    rows += [
        app(
            name,
            queue.get("production", "production"),
            1,
            count,
            rank=n,
            ask=1 + n,
            deadline=1000 + n if deadlines else None,
        )
        for n, (name, count) in enumerate(zip(("p1", "p2"), pending, strict=True))
    ]
    guaranteed = {"default": 100} if deadlines else {"production": 95, "research": 5}
    return cluster(*rows, guaranteed=guaranteed, free=free)


TASKS = {
    name: tuple(
        task(f"{name}.{n}", 50_000 + n, node=f"n{1 + n % 3}", slots=1 + (name == "r3"))
        for n in range(count - 1)
    )
    for name, count in zip(JOBS, (6, 5, 4), strict=True)
}


def play(way, moves, own):
    """Run a history; return the records. Every step checks every invariant."""
    capabilities = frozenset({"releases-itself"}) if own else frozenset()
    steps, now_ms, history = Controller(way, capabilities, validate=True), 0, History()
    records: list[Record] = []
    for later, whole, pending, free, facts, outcome in moves:
        now_ms += later
        for _ in range(10):
            snapshot = look(pending, free, way.mode) if whole and steps.scope.cluster else None
            tasks = {name: TASKS[name] for name in steps.scope.victims if name in TASKS}
            step = steps.step(
                Observation(
                    now_ms=now_ms,
                    as_of_ms=now_ms - 100,
                    snapshot=snapshot,
                    tasks=tasks,
                    facts=tuple(facts),  # in every round again: duplicates
                )
            )
            records += step.records
            for action in step.actions:
                records += steps.settle(action, outcome)
            history.check(steps.ledger)
            if step.wake_at_ms > now_ms:
                break
        else:
            raise AssertionError("the controller never came to rest")
    return records


@given(histories())
def test_invariants_hold_and_the_journal_replays(made):
    records = play(*made)
    raw = [encode(record) for record in records]
    lines = [
        Line(n, record, line) for n, (record, line) in enumerate(zip(records, raw, strict=True), start=1)
    ]
    done = replay(lines, "journal")
    assert done.records == len(records)
    assert [encode(record) for record in play(*made)] == raw  # same observations, same bytes


@given(histories())
def test_settled_orders_never_move_and_every_order_comes_from_a_decision(made):
    state: dict[str, str] = {}
    for record in play(*made):
        if isinstance(record, Decision):
            for order in record.orders:
                assert order not in state
                state[order] = "asked"
        elif isinstance(record, Transition):
            assert state[record.order] in OPEN
            assert state[record.order] == record.source
            state[record.order] = record.target
