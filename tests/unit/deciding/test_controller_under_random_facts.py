"""The controller with every invariant on, under facts that come twice, late, foreign or never."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.tables import GUARD_FREE, size, with_
from tests.unit.deciding.controller_world import JOBS, Kept, Move, Played, judge, kept, play, run, unlike
from tests.unit.deciding.random_histories import draw, problem, smaller
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.model import (
    Accepted,
    ApplicationEnded,
    CameBack,
    CameBackWithout,
    ContainerEnded,
    ContainerGranted,
    EpochChanged,
    ManifestSeen,
    Refused,
    Unknown,
    UploadProgressed,
    Withheld,
)
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import (
    Decision,
    KilledEnded,
    Performed,
    Progressed,
    Record,
    Requests,
    SavedLost,
    Transition,
    UnknownApplication,
    encode,
)
from yarnctl.deciding.settings import DEFAULT, PAPER
from yarnctl.journal.fold import Fold

ORDERS = st.integers(1, 12).map(lambda n: f"o-{n:06d}")
NODES = st.sampled_from(["n1", "n2", "n3"])
CONTAINERS = st.builds(lambda job, n: f"{job}.{n}c", st.sampled_from(JOBS), st.integers(0, 9))
ATTEMPTS = CONTAINERS.map(lambda container: container[:-1])
APPLICATIONS = st.sampled_from(["p1", "p2", *JOBS, "zz"])
AT = st.integers(0, 1500)
FACTS = st.one_of(
    st.builds(ManifestSeen, ORDERS, ATTEMPTS, st.integers(0, 2), st.just(3), AT),
    st.builds(UploadProgressed, ORDERS, AT),
    st.builds(ContainerEnded, CONTAINERS, st.sampled_from(JOBS), NODES,
        st.sampled_from(["suspended", "completed", "killed", "failed", "lost"]), AT),
    st.builds(ContainerGranted, CONTAINERS, APPLICATIONS, NODES, st.integers(1, 2).map(size), AT),
    st.builds(CameBack, ORDERS, ATTEMPTS, st.just(100), st.just(200), st.just(300), AT),
    st.builds(CameBackWithout, ORDERS, ATTEMPTS, st.just(7), st.just(1), st.just(0), AT),
    st.builds(ApplicationEnded, APPLICATIONS, AT),
    st.builds(EpochChanged, st.just("2"), AT),
)  # fmt: skip
WAYS = st.builds(
    lambda base, timeout, job, own, mode, rest_ms, part: with_(base, on_timeout=timeout, job_policy=job,
        eviction=own, mode=mode, kill_timeout_ms=4000, rest_ms=rest_ms, in_flight_ratio_max=part,
        cost_guard=False),
    st.sampled_from([GUARD_FREE, PAPER, DEFAULT]),
    st.sampled_from(["give-up", "kill"]),
    st.sampled_from(["MR", "LR", "PR", "MDF", "MLF"]),
    st.sampled_from(["suspend", "kill"]),
    st.sampled_from(["queues", "queues", "deadlines"]),
    st.sampled_from([12_000, 1000]),
    st.sampled_from([1.0, 0.2]),
)  # fmt: skip
MOVES = st.builds(
    Move,
    later_ms=st.sampled_from([0, 250, 1000, 3000]),
    whole=st.booleans(),
    pending=st.tuples(st.integers(0, 4), st.integers(0, 3)),
    free=st.dictionaries(NODES, st.integers(0, 2), max_size=2),
    facts=st.lists(FACTS, max_size=4),
    outcome=st.sampled_from(
        [Accepted(), Refused(ClientFault("no")), Unknown(), Withheld(ClientFault("not now"))]
    ),
    absent=st.sampled_from([(), (), *((name,) for name in JOBS)]),
    again=st.sampled_from([False, False, False, True]),
    blind=st.sampled_from([False, False, False, True]),
    age_ms=st.sampled_from([100, 0, 1500]),
)
HISTORIES = st.tuples(WAYS, st.lists(MOVES, min_size=1, max_size=14), st.booleans())
SHELF = kept()
CHANGES = (Decision, Transition, Requests, Performed, Progressed, UnknownApplication, KilledEnded, SavedLost)


@pytest.mark.parametrize("name", SHELF)
def test_what_once_broke_holds(name: str) -> None:
    """Kept examples come first: each was red, with the programs that they name."""
    assert problem(SHELF[name]) == ""


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_of_the_ledger_without_its_record_is_noticed(kind: type[Record]) -> None:
    """Planted: records of one kind are not written. Kept examples, and some more, see it in the fold."""
    assert any(misses(kind, played_history(number)) for number in range(len(SHELF) + 120))


@cache
def played_history(number: int) -> Played:
    """Return a kept history, or (after those) a random one; played once for all kinds of records."""
    shelf = list(SHELF.values())
    one = shelf[number] if number < len(shelf) else draw(3, number - len(shelf))
    return run(one.settings(), one.moves, one.own)


def misses(kind: type[Record], played: Played) -> bool:
    """Say whether the fold differs where the records of one kind are left out."""
    written = [record for record in played.records if not isinstance(record, kind)]
    return len(written) < len(played.records) and bool(unlike(played.controller, folded(written)))


def test_the_order_of_bars_is_no_part_of_what_is_compared() -> None:
    """A bar that time lifts before it is set anew stands last in the ledger, and not in the fold."""
    assert problem(draw(1, 2425)) == ""


def folded(records: list[Record]) -> Fold:
    fold = Fold()
    for record in records:
        fold.apply(record)
    return fold


def test_what_differs_is_made_smaller_and_still_differs() -> None:
    """The shrinker of the random driver, on a planted fault: whatever gives up is called a difference."""

    def gives_up(history: Kept) -> str:
        records = run(history.settings(), history.moves, history.own).records
        found = [record for record in records if isinstance(record, Transition)]
        return "gave up" if any(record.event == "give-up" for record in found) else ""

    found = next(one for one in map(draw, [1] * 200, range(200)) if gives_up(one))
    small = smaller(found, gives_up)
    assert gives_up(small)
    assert len(small.moves) <= 3 < len(found.moves)  # one asks, and the time-out passes
    assert not any(move.facts for move in small.moves)


def test_random_histories_have_names() -> None:
    """The same seed and number, the same history; another number, another one."""
    assert draw(3, 7) == draw(3, 7)
    assert draw(3, 7) != draw(3, 8)


@given(HISTORIES)
def test_invariants_hold_and_the_journal_replays(made):
    played = run(*made)
    assert judge(played) == ""
    # same observations, same bytes
    assert [encode(record) for record in play(*made)] == [encode(record) for record in played.records]


@given(HISTORIES)
def test_settled_orders_never_move_and_every_order_comes_from_a_decision(made):
    state: dict[str, str] = {}
    for record in play(*made):
        if isinstance(record, Decision):
            for order in record.orders:
                assert order not in state
                state[order] = "ordered"
        elif isinstance(record, Transition):
            assert state[record.order] in OPEN
            assert state[record.order] == record.source
            state[record.order] = record.target
