"""Golden tables of Natjam-R: urgency, YARN priorities, and who gives to whom."""

from __future__ import annotations

import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, row, seen, with_
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Accepted, Refused, SetPriority, Suspend
from yarnctl.deciding.prioritising import in_order, less_urgent, urgency
from yarnctl.deciding.reasons.demand import NoJobMayGive, PriorityPending, RoomGoesTo
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import Decision, Refusal
from yarnctl.deciding.settings import PAPER

EDF = with_(GUARD_FREE, mode="deadlines", job_policy="MDF", priority_levels=10)
LLF = with_(EDF, job_policy="MLF")
BOTH = pytest.mark.parametrize(
    "settings",
    [EDF, with_(PAPER, mode="deadlines", job_policy="MDF", priority_levels=10)],
    ids=["default", "paper"],
)


def one_queue(*applications, **more):
    return cluster(*applications, guaranteed={"default": 100}, **more)


def job(name, containers=0, pending=0, **more):
    return app(name, "default", containers, pending, **more)


def order_of(applications, settings, now_ms=0, previous=()):
    return " ".join(view.application for view in in_order(applications, now_ms, settings, previous))


ORDER_TABLE = [
    # settings  (deadline, progress, submitted)                                     most urgent first
    (EDF, [(200, 0, 0), (190, 0, 5), (180, 0, 10)], "c b a"),  # Fig 10's three jobs
    (EDF, [(None, 0, 0), (900, 0, 5), (None, 0, 3)], "b a c"),  # no deadline: last, by submission
    (EDF, [(200, 0, 5), (200, 0, 0), (200, 0, 0)], "b c a"),  # ties: earliest submitted, then id
    (LLF, [(900_000, 0.1, 0), (950_000, 0.01, 0), (None, 0, 0)], "b a c"),  # b is slower: less laxity
]


@pytest.mark.parametrize(("settings", "rows", "expected"), ORDER_TABLE)
def test_order_of_urgency(settings, rows, expected):
    views = [
        job(name, deadline=deadline, progress=progress, submitted=submitted)
        for name, (deadline, progress, submitted) in zip("abc", rows, strict=True)
    ]
    assert order_of(views, settings, now_ms=1000) == expected


def test_laxities_within_the_margin_keep_their_order():
    views = [job("a", deadline=100_000), job("b", deadline=90_000), job("c", deadline=65_000)]
    assert order_of(views, LLF, previous=("a", "b", "c")) == "c a b"  # c passes a (35 s), b does not (10 s)
    assert order_of(views, LLF) == "c b a"  # without a past: a plain sort
    assert order_of(views, EDF, previous=("a", "b", "c")) == "c b a"  # deadlines are not fuzzy


@pytest.mark.parametrize(
    ("settings", "victim", "requester", "gives"),
    [
        (EDF, 101, 100, True),  # strictly later
        (EDF, 100, 100, False),  # equal deadlines never take from each other
        (EDF, None, 100, True),  # no deadline gives to any
        (EDF, None, None, False),
        (LLF, 130_000, 100_000, False),  # within the margin of 30 s
        (LLF, 130_001, 100_000, True),
    ],
)
def test_less_urgent(settings, victim, requester, gives):
    keys = [urgency(job("x", deadline=deadline), 0, settings) for deadline in (victim, requester)]
    assert less_urgent(keys[0], keys[1], settings) is gives


@BOTH
def test_priorities_follow_the_deadlines_and_only_changes_are_sent(settings):
    steps = Controller(settings, validate=True)
    jobs = [
        job("a", 5, deadline=200_000),
        job("b", 5, deadline=190_000, rank=1),
        job("c", 5, deadline=180_000, rank=2),
    ]
    step = steps.step(seen(one_queue(*jobs)))
    assert step.actions == (SetPriority("c", 10), SetPriority("b", 9), SetPriority("a", 8))
    for action in step.actions:
        steps.settle(action, Refused(ClientFault("no")) if action.application == "b" else Accepted())
    step = steps.step(seen(one_queue(*jobs), now_ms=1000))
    assert step.actions == (SetPriority("b", 9),)  # the others are asked for already
    steps.settle(step.actions[0], Accepted())
    held = [job("a", 5, deadline=200_000, priority=8), job("c", 5, deadline=180_000, priority=10)]
    assert steps.step(seen(one_queue(*held), now_ms=2000)).actions == (SetPriority("a", 9),)  # b has ended


def test_beyond_the_levels_everybody_is_at_zero():
    jobs = [job(f"j{n}", 1, deadline=1000 + n, rank=n) for n in range(5)]
    step = Controller(with_(EDF, priority_levels=2), validate=True).step(seen(one_queue(*jobs)))
    assert step.actions == (SetPriority("j0", 2), SetPriority("j1", 1))  # the rest is at 0 already


def decided(step):
    return [
        (record.trigger.application, [pick.application for pick in record.picks])
        for record in step.records
        if isinstance(record, Decision)
    ]


@BOTH
def test_the_latest_deadline_gives_first_and_only_to_more_urgent_ones(settings):
    """Job b asks; a is more urgent and keeps all; c and d give, the latest deadline first."""
    snapshot = one_queue(
        job("a", 5, deadline=100, rank=0),
        job("b", 1, 4, deadline=200, rank=1),
        job("c", 3, deadline=300, rank=2),
        job("d", 3, deadline=400, rank=3),
    )
    tasks = {name: row(name, 4) for name in "acd"}
    step = Controller(settings, validate=True).step(seen(snapshot, tasks))
    assert decided(step) == [("b", ["d", "d", "c", "c"])]


@BOTH
def test_one_asker_at_a_time_the_most_urgent_that_waits(settings):
    """Section 4: the first job in the queue that still has tasks waiting."""
    snapshot = one_queue(
        job("a", 1, 1, deadline=100, rank=0),
        job("b", 1, 4, deadline=200, rank=1),
        job("c", 9, deadline=300, rank=2),
    )
    steps = Controller(settings, validate=True)
    step = steps.step(seen(snapshot, {"c": row("c", 8), "b": []}))
    assert decided(step) == [("a", ["c"])]
    step = steps.step(seen(snapshot, {"c": row("c", 8), "b": []}, now_ms=1000))
    assert decided(step) == [("b", ["c", "c", "c", "c"])]  # a's ask is on its way: b is next


@BOTH
def test_nobody_less_urgent_nobody_gives(settings):
    snapshot = one_queue(job("a", 9, deadline=100, rank=0), job("b", 1, 4, deadline=200, rank=1))
    step = Controller(settings, validate=True).step(seen(snapshot, {"a": row("a", 8)}))
    assert not [action for action in step.actions if isinstance(action, Suspend)]
    assert [record.why for record in step.records if isinstance(record, Refusal)] == [NoJobMayGive()]


def test_until_yarns_order_has_changed_nothing_is_evicted():
    """Job c stands before b in the queue's present order: b would give to itself what c takes."""
    snapshot = one_queue(
        job("c", 3, 1, deadline=300, rank=0),
        job("b", 1, 2, deadline=200, rank=1),
        job("d", 8, deadline=900, rank=2),
    )
    steps = Controller(EDF, validate=True)
    step = steps.step(seen(snapshot, {"d": row("d", 7)}))
    assert not [action for action in step.actions if isinstance(action, Suspend)]
    refusals = {r.trigger.application: r.why for r in step.records if isinstance(r, Refusal)}
    assert refusals["b"] == RoomGoesTo("c", "default")


def test_a_less_urgent_application_that_yarn_still_serves_first_is_named():
    """The new priorities show one look later: until then a's container would go back to a."""
    snapshot = one_queue(job("a", 8, deadline=900, rank=0), job("b", 1, 2, deadline=200, rank=1))
    steps = Controller(EDF, validate=True)
    step = steps.step(seen(snapshot, {"a": row("a", 7)}))
    assert [record.why for record in step.records if isinstance(record, Refusal)] == [PriorityPending("a")]
    snapshot = one_queue(job("a", 8, deadline=900, rank=1), job("b", 1, 2, deadline=200, rank=0))
    step = steps.step(seen(snapshot, {"a": row("a", 7)}, now_ms=1000))
    assert decided(step) == [("b", ["a", "a"])]
