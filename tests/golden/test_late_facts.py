"""Golden tables of what the controller cannot know yet: late facts, silent masters, lost requests."""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, row, seen, size, task, with_
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.invariants import check
from yarnctl.deciding.model import (
    Accepted,
    ApplicationEnded,
    ContainerEnded,
    ContainerGranted,
    ManifestSeen,
    Refused,
    Release,
    SetPriority,
    Suspend,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.reasons.orders import NoPendingRequests
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import Decision, Ranking, Refusal, Requests, Transition, decode, encode
from yarnctl.deciding.settings import (
    DEFAULT,
    PAPER,
    TEN_YEARS_MS,
    LeverSettings,
    LossRule,
    Settings,
    validate,
)
from yarnctl.errors import BadInput, InvariantBroken

BOTH = pytest.mark.parametrize(
    "settings", [GUARD_FREE, with_(PAPER, job_open_ratio_max=1.0)], ids=["default", "paper"]
)
TASKS = {"r1": row("r1", 49)}


def full(pending=2, **more):
    return cluster(app("r1", "research", 50), app("p1", "production", 1, pending), **more)


def started(settings=GUARD_FREE, pending=2, capabilities=frozenset()):
    steps = Controller(settings, capabilities, validate=True)
    step = steps.step(seen(full(pending), TASKS))
    assert len(suspended(step)) == pending
    return steps


def suspended(step):
    asked = [action for action in step.actions if isinstance(action, Suspend)]
    return [action.attempt for action in sorted(asked, key=lambda action: action.order)]


def ended(number, at_ms, ending="suspended"):
    return ContainerEnded(f"r1.{number}c", "r1", "n1", ending, at_ms)


def granted(at_ms, name="p1", slots=1, node="n1"):
    return ContainerGranted(f"new{at_ms}", name, node, size(slots), at_ms)


# --- facts newer than the snapshot ------------------------------------------------------------

NEWER = {
    "freed and granted": ((ended(1, 1020), ended(2, 1030), granted(1050), granted(1051)), {}),
    "granted, the room stood free in the snapshot": (
        (ended(1, 900), ended(2, 910), granted(1050), granted(1051)),
        {"n1": 2},
    ),
    "granted, the room did not stand free in the snapshot (somebody has reserved it)": (
        (ended(1, 900), ended(2, 910), granted(1050), granted(1051)),
        {},
    ),
    "one of two": ((ended(1, 1020), granted(1050)), {}),
    "taken": ((ended(1, 1020), granted(1050, "r1")), {}),
    "finished by itself": ((ended(1, 1020, "completed"),), {}),
    "killed by others": ((ended(1, 1020, "killed"),), {}),
}


@BOTH
@pytest.mark.parametrize(("facts", "free"), NEWER.values(), ids=NEWER)
def test_the_same_ask_is_not_answered_twice_when_facts_are_newer_than_the_snapshot(settings, facts, free):
    steps = started(settings)
    snapshot = cluster(app("r1", "research", 50 - len(free) * 2), app("p1", "production", 1, 2), free=free)
    step = steps.step(seen(snapshot, TASKS, now_ms=1100, as_of_ms=1000, facts=facts))
    assert not suspended(step)


@BOTH
def test_facts_that_come_while_a_look_waits_for_tasks(settings):
    """Three wait, two are promised: one more is asked for, though both are granted meanwhile."""
    steps = started(settings)
    assert steps.step(seen(full(3), now_ms=1000)).to_observe.victims == ("r1",)
    facts = (ended(1, 1020), ended(2, 1020), granted(1050), granted(1051))
    step = steps.step(seen(None, TASKS, now_ms=1200, facts=facts))
    assert suspended(step) == ["r1.3"]  # and not r1.1, which these tasks still show
    decision = next(record for record in step.records if isinstance(record, Decision))
    assert (decision.trigger.promised, decision.trigger.shortfall, decision.trigger.as_of_ms) == (2, 1, 1000)


def test_an_answered_ask_is_not_due_an_order_of_somebody_else():
    """An old snapshot still shows p1's ask, met since: p2's needless order is taken back, not moved.

    Not by that look: what ended while it was taken may be in it or not. By the next.
    """
    steps = Controller(GUARD_FREE, validate=True)
    two = [app("p1", "production", 1, 1), app("p2", "production", 1, 1, rank=1)]
    steps.step(seen(cluster(app("r1", "research", 50), *two), TASKS))
    idle = [app("p1", "production", 1, 1), app("p2", "production", 2, rank=1)]
    facts = (ended(1, 1020), granted(1050))
    step = steps.step(
        seen(cluster(app("r1", "research", 50), *idle), now_ms=1100, as_of_ms=1000, facts=facts)
    )
    assert step.actions == ()
    assert step.wake_at_ms < 1500
    idle[0] = app("p1", "production", 2)
    step = steps.step(seen(cluster(app("r1", "research", 49), *idle), now_ms=1300))
    assert step.actions == (Withdraw("o-000002", "r1", "r1.2", "r1.2c"),)


def test_natjam_keeps_room_given_since_for_whom_it_was_given_to():
    """The slot that stands free in the snapshot has gone to p1: p2's ask fits nowhere."""
    steps = started(with_(PAPER, job_open_ratio_max=1.0), pending=1)
    requesters = [app("p1", "production", 1, 1), app("p2", "production", 1, 1, rank=1)]
    snapshot = cluster(app("r1", "research", 49), *requesters, free={"n1": 1})
    facts = (ended(1, 900), granted(1050))
    step = steps.step(seen(snapshot, TASKS, now_ms=1100, as_of_ms=1000, facts=facts))
    assert suspended(step) == ["r1.2"]
    assert [order.requester for order in steps.ledger.open.values()] == ["p2"]


def test_a_container_that_ended_since_counts_in_its_jobs_budget():
    steps = Controller(with_(GUARD_FREE, job_open_ratio_max=0.5), validate=True)
    jobs = [app("r1", "research", 10), app("p1", "production", 1, 9)]
    look = cluster(*jobs, guaranteed={"production": 99, "research": 1})
    assert len(suspended(steps.step(seen(look, TASKS)))) == 5
    facts = (ended(1, 1020), granted(1050))
    assert not suspended(steps.step(seen(look, TASKS, now_ms=1100, as_of_ms=1000, facts=facts)))
    assert len(suspended(steps.step(seen(look, TASKS, now_ms=2000)))) == 1


def test_a_killed_container_counts_in_looks_older_than_its_end():
    steps = Controller(with_(PAPER, job_open_ratio_max=1.0), validate=True)
    steps.step(seen(full(1), TASKS))
    steps.step(seen(None, now_ms=12_000))  # killed: no progress
    step = steps.step(
        seen(full(1), TASKS, now_ms=13_100, as_of_ms=13_000, facts=(ended(1, 13_050, "killed"),))
    )
    assert not step.actions


def test_what_is_over_is_forgotten_once_no_look_can_be_that_old():
    steps = started(pending=1)
    steps.step(seen(None, now_ms=990, facts=(ended(1, 900), granted(950))))
    assert steps.ledger.promised("p1", 900) == 1
    assert steps.ledger.promised("p1", 950) == 0
    keep_ms = GUARD_FREE.expire_ms + GUARD_FREE.look_age_max_ms
    steps.step(seen(None, now_ms=950 + keep_ms - 1))
    assert steps.ledger.recently_settled
    assert steps.ledger.excluded == {"r1.1": "already-ordered"}
    steps.step(seen(None, now_ms=950 + keep_ms))
    assert not steps.ledger.recently_settled
    assert not steps.ledger.excluded


def two_jobs(pending=1):
    return cluster(app("r1", "research", 9), app("r2", "research", 8), app("p1", "production", 1, pending))


def test_a_master_that_does_not_answer_for_longer_than_a_tick_does_not_block_the_others():
    steps = Controller(GUARD_FREE, validate=True)
    assert steps.step(seen(two_jobs())).to_observe.victims == ("r1",)
    step = steps.step(seen(None, now_ms=1200, unreachable=("r1",)))
    assert step.to_observe.victims == ("r2",)
    assert suspended(steps.step(seen(None, {"r2": row("r2", 7)}, now_ms=1205))) == ["r2.1"]


@pytest.mark.parametrize(("now_ms", "asked"), [(29_000, ("r2",)), (31_000, ("r1",))])
def test_a_silent_master_is_left_alone_for_silent_ms_over_many_looks(now_ms, asked):
    """The look itself was too old; that r1 is silent is remembered."""
    steps = Controller(GUARD_FREE, validate=True)
    steps.step(seen(two_jobs()))
    step = steps.step(seen(None, now_ms=5000, unreachable=("r1",)))
    assert step.to_observe.cluster
    steps.step(seen(None, now_ms=5000 + now_ms - 1000))
    assert steps.step(seen(two_jobs(), now_ms=5000 + now_ms)).to_observe.victims == asked


def test_a_master_that_answers_is_silent_no_more():
    steps = Controller(GUARD_FREE, validate=True)
    steps.step(seen(two_jobs()))
    steps.step(seen(None, unreachable=("r1",)))
    steps.step(seen(None, {"r1": row("r1", 8), "r2": []}, now_ms=10))  # it comes late
    assert steps.step(seen(two_jobs(), now_ms=1000)).to_observe.victims == ("r1",)


def blind(now_ms, **more):
    return msgspec.structs.replace(seen(None, now_ms=now_ms, **more), cluster="unreachable")


def test_who_sees_nothing_changes_nothing_but_time_runs_out():
    steps = started(pending=1)
    for now_ms in range(1000, 12_000, 1000):
        assert not steps.step(blind(now_ms)).actions
    assert list(steps.ledger.open) == ["o-000001"]
    assert [type(action) for action in steps.step(blind(12_000)).actions] == [Withdraw]


def test_a_look_under_way_is_dropped_when_nothing_can_be_seen_any_more():
    steps = Controller(GUARD_FREE, validate=True)
    steps.step(seen(full(1)))
    step = steps.step(msgspec.structs.replace(blind(10), tasks={"r1": tuple(TASKS["r1"])}))
    assert not step.actions
    assert step.wake_at_ms == 1000


def test_when_nobody_hurried_waits_orders_are_withdrawn_with_that_reason():
    steps = started(pending=1)
    steps.step(seen(None, now_ms=750))
    step = steps.step(seen(None, now_ms=1000))
    assert [record.why for record in step.records if isinstance(record, Transition)] == [NoPendingRequests()]


# --- requests that may be lost ------------------------------------------------------------------

RELEASE = Release("o-000001", "r1", "r1.1", "r1.1c", 1)


def released(outcome):
    steps = started(pending=1)
    step = steps.step(seen(None, now_ms=200, facts=(ManifestSeen("o-000001", "r1.1", 1, 5, 190),)))
    assert step.actions == (RELEASE,)
    return steps, steps.settle(RELEASE, outcome)


def quiet(steps, now_ms, *facts):
    """Step without looking at the cluster."""
    steps.to_observe = type(steps.to_observe)(cluster=False)
    return steps.step(seen(None, now_ms=now_ms, facts=facts))


def test_a_release_whose_outcome_is_unknown_is_sent_at_each_step_until_its_effect_is_seen():
    steps, _ = released(Unknown())
    for now_ms in (450, 700):
        assert quiet(steps, now_ms).actions == (RELEASE,)
        steps.settle(RELEASE, Unknown())
    assert not quiet(steps, 950, ended(1, 900, "killed")).actions
    assert not steps.ledger.sent or quiet(steps, 1200).actions == ()


def test_an_accepted_release_is_sent_again_when_no_end_is_seen():
    steps, _ = released(Accepted())
    assert not quiet(steps, 2199).actions
    assert quiet(steps, 2200).actions == (RELEASE,)
    assert not quiet(steps, 2450).actions
    assert quiet(steps, 4200).actions == (RELEASE,)


def test_a_refused_release_settles_its_order_at_once():
    steps, records = released(Refused(ClientFault("no manifest")))
    assert [(record.target, record.why) for record in records if isinstance(record, Transition)] == [
        ("withdrawn", ClientFault("no manifest"))
    ]
    assert not steps.ledger.open


@pytest.mark.parametrize("first", [Accepted(), Unknown()])
def test_a_refusal_of_a_repeated_release_may_only_mean_that_it_is_gone_already(first):
    steps, _ = released(first)
    assert quiet(steps, 2200).actions == (RELEASE,)
    steps.settle(RELEASE, Refused(ClientFault("no such container")))
    assert not quiet(steps, 2450).actions
    quiet(steps, 2700, ended(1, 2190, "killed"))
    assert steps.ledger.open["o-000001"].state == "freed"


def test_a_withdraw_whose_outcome_is_unknown_is_sent_again():
    steps = started(pending=1)
    step = quiet(steps, 500, ApplicationEnded("p1", 490))
    assert [type(action) for action in step.actions] == [Withdraw]
    steps.settle(step.actions[0], Unknown())
    again = quiet(steps, 1500)
    assert again.actions == step.actions
    steps.settle(again.actions[0], Accepted())
    assert not quiet(steps, 2500).actions


def test_a_withdraw_is_not_sent_for_ever():
    steps = started(pending=1)
    step = quiet(steps, 500, ApplicationEnded("p1", 490))
    steps.settle(step.actions[0], Unknown())
    assert quiet(steps, 12_499).actions
    assert not quiet(steps, 12_500).actions


# --- attempts that do not stop ------------------------------------------------------------------


def tries(settings, until_ms):
    """Return when the only attempt of a job was asked, though it never stops."""
    steps, asked = Controller(settings, validate=True), []
    snapshot = cluster(app("r1", "research", 8), app("p1", "production", 1, 1))
    for now_ms in range(0, until_ms, 1000):
        step = steps.step(seen(snapshot, {"r1": [task("r1.1")]}, now_ms=now_ms))
        asked += [now_ms] * len(suspended(step))
        for action in step.actions:
            steps.settle(action, Accepted())
    return asked


def test_an_attempt_that_does_not_stop_rests_ever_longer_and_at_last_for_good():
    """Asked, given up after 12 s; a pause of 12 s, then of 24 s; after the third time never again."""
    assert tries(GUARD_FREE, 300_000) == [0, 24_000, 60_000]
    assert len(tries(with_(GUARD_FREE, task_tries_max=1_000_000), 300_000)) == 5


def test_a_request_that_was_not_sent_is_no_failed_try():
    """The lock ran out in the middle of a tick: that says nothing of the attempt."""
    steps = Controller(with_(GUARD_FREE, task_tries_max=1), validate=True)
    step = steps.step(seen(full(1), TASKS))
    records = steps.settle(step.actions[0], Withheld(ClientFault("the lock has run out")))
    assert [record.target for record in records if isinstance(record, Transition)] == ["withdrawn"]
    assert set(steps.ledger.excluded.values()) == {"just-tried"}
    assert not steps.ledger.tries


def test_a_request_withheld_because_we_only_observe_stays_open():
    steps = Controller(with_(GUARD_FREE, observe_only=True), validate=True)
    step = steps.step(seen(full(1), TASKS))
    steps.settle(step.actions[0], Withheld(ClientFault("observing")))
    assert steps.ledger.open["o-000001"].state == "ordered"


def test_a_recall_is_no_failed_try():
    steps = started(with_(GUARD_FREE, task_tries_max=1), pending=1)
    steps.step(seen(None, now_ms=500, facts=(ApplicationEnded("p1", 490),)))
    assert steps.ledger.excluded == {"r1.1": "just-tried"}
    assert not steps.ledger.tries


@pytest.mark.parametrize("by_fact", [True, False])
def test_tries_of_an_application_that_has_ended_are_forgotten(by_fact):
    steps = started(with_(GUARD_FREE, task_tries_max=1), pending=1)
    steps.step(seen(None, now_ms=250))
    quiet(steps, 12_000)
    assert steps.ledger.excluded == {"r1.1": "task-tries"}
    if by_fact:
        quiet(steps, 13_000, ApplicationEnded("r1", 12_900))
    else:
        steps.to_observe = steps._request()
        steps.step(seen(cluster(app("p1", "production", 1, 1)), now_ms=13_000))
    assert not steps.ledger.tries
    assert not steps.ledger.excluded


def test_the_default_takes_at_most_half_of_a_jobs_containers_at_once():
    steps = Controller(with_(DEFAULT, cost_guard=False), validate=True)
    snapshot = cluster(app("r1", "research", 10), app("r2", "research", 2), app("p1", "production", 1, 11))
    step = steps.step(seen(snapshot, {"r1": row("r1", 9), "r2": row("r2", 1)}))
    assert suspended(step) == ["r1.1", "r1.2", "r1.3", "r1.4", "r1.5", "r2.1"]  # at least one of each
    settings = with_(GUARD_FREE, job_open_ratio_max=0.25)
    snapshot = cluster(
        app("r2", "research", 3), app("p1", "production", 1, 2), guaranteed={"production": 9, "research": 1}
    )
    assert suspended(Controller(settings, validate=True).step(seen(snapshot, {"r2": row("r2", 2)}))) == [
        "r2.1"
    ]
    assert PAPER.job_open_ratio_max == 1.0


def test_no_victim_stands_on_a_node_that_is_reserved_for_somebody_else():
    snapshot = msgspec.structs.replace(full(2), reserved_by_node={"n1": "r9", "n2": "p1", "n9": "r9"})
    tasks = {"r1": [task("r1.0", 1), task("r1.1", 5, node="n2"), task("r1.2", 6, node="n3"), *row("r1", 1)]}
    steps = Controller(GUARD_FREE, validate=True)
    step = steps.step(seen(snapshot, tasks))
    assert suspended(step) == ["r1.1", "r1.2"]
    decision = next(record for record in step.records if isinstance(record, Decision))
    assert ("r1.0", "node-reserved") in [(task.attempt, task.why) for task in decision.refused_tasks]
    observed = next(record for record in step.records if isinstance(record, Observed))
    assert observed.change is not None
    assert observed.change.reserved == {"n1": "r9", "n2": "p1", "n9": "r9"}
    assert decode(encode(decision)) == decision


# --- priorities, refusals -----------------------------------------------------------------------

EDF = with_(GUARD_FREE, mode="deadlines", job_policy="MDF")


def ranks(**priorities):
    jobs = [
        app(name, "default", 5, deadline=1000 * (n + 1), rank=n, priority=priorities.get(name, 0))
        for n, name in enumerate("ab")
    ]
    return cluster(*jobs, guaranteed={"default": 100})


def test_priorities_are_explained_before_they_are_sent():
    step = Controller(EDF, validate=True).step(seen(ranks(a=10)))
    assert step.actions == (SetPriority("b", 9),)
    ranking, requests = step.records[-2:]
    assert isinstance(ranking, Ranking)
    assert requests == Requests(0, step.actions)
    assert [tuple(row) for row in ranking.order] == [("a", 1000, 0, 10, 10), ("b", 2000, 0, 9, 0)]
    assert decode(encode(ranking)) == ranking


def test_a_priority_without_its_reason_is_found():
    steps = Controller(EDF)
    step = steps.step(seen(ranks()))
    check(steps, step)
    bare = tuple(record for record in step.records if not isinstance(record, Ranking))
    with pytest.raises(InvariantBroken) as broken:
        check(steps, msgspec.structs.replace(step, records=bare))
    assert broken.value.name == "actions-are-explained"


@pytest.mark.parametrize(
    ("outcome", "sent_at"),
    [(Accepted(), [0, 2000]), (Refused(ClientFault("busy")), [0, 1000, 3000]), (Unknown(), [0, 1000, 3000])],
)
def test_a_priority_is_sent_again_if_it_was_not_accepted_or_does_not_show(outcome, sent_at):
    steps, sent = Controller(EDF, validate=True), []
    for now_ms in (0, 1000, 2000, 3000):
        step = steps.step(seen(ranks(), now_ms=now_ms))
        sent += [now_ms] if step.actions else []
        for action in step.actions:
            steps.settle(action, outcome)
    assert sent == sent_at


@pytest.mark.parametrize("calm", ["nothing pending", "quiet", "ended", "gone"])
def test_a_refusal_that_comes_again_after_calm_is_written_again(calm):
    steps = Controller(GUARD_FREE, validate=True)
    guaranteed = {"production": 1, "research": 20}
    stuck = cluster(app("r1", "research", 9), app("p1", "production", 1, 1), guaranteed=guaranteed)
    still = cluster(app("r1", "research", 9), app("p1", "production", 1), guaranteed=guaranteed)
    gone = cluster(app("r1", "research", 9), guaranteed=guaranteed)
    looks = {
        "nothing pending": seen(still, now_ms=1000),
        "quiet": seen(None, now_ms=1000),
        "ended": seen(None, now_ms=500, facts=(ApplicationEnded("p1", 400),)),
        "gone": seen(gone, now_ms=1000),
    }

    def refusals(step):
        return [record for record in step.records if isinstance(record, Refusal)]

    assert len(refusals(steps.step(seen(stuck)))) == 1
    steps.step(looks[calm])
    assert len(refusals(steps.step(seen(stuck, now_ms=2000)))) == 1
    assert not refusals(steps.step(seen(stuck, now_ms=3000)))


def large(**more):
    """One order: a container of 4 slots ends for an ask of 2."""
    steps = Controller(GUARD_FREE, validate=True)
    snapshot = cluster(app("r1", "research", 8, slots=4), app("p1", "production", 1, 1, ask=2))
    assert suspended(steps.step(seen(snapshot, {"r1": [task("r1.1", slots=4)]}))) == ["r1.1"]
    return steps


@pytest.mark.parametrize(
    ("slots", "state"), [(1, "freed"), (3, "freed"), (4, "misdirected"), (5, "misdirected")]
)
def test_a_grant_smaller_than_what_ended_takes_nothing(slots, state):
    steps = large()
    quiet(steps, 500, ended(1, 400), granted(450, "r1", slots))
    assert {**steps.ledger.open, **steps.ledger.settled}["o-000001"].state == state


def test_an_asker_that_waits_for_nothing_has_lost_nothing():
    steps = started(pending=1)
    quiet(steps, 900, ended(1, 800))
    idle = cluster(app("r1", "research", 49), app("p1", "production", 2), free={"n1": 1})
    steps.step(seen(idle, now_ms=1000))
    quiet(steps, 1250, granted(1200, "r1"))
    assert steps.ledger.open["o-000001"].state == "freed"
    steps.step(seen(idle, now_ms=3000))
    assert not steps.ledger.open


@pytest.mark.parametrize(
    ("field", "value"),
    [("job_open_ratio_max", 1e308), ("utilisation_tolerance_ratio", float("nan")),
     ("utilisation_tolerance_ratio", float("inf")), ("job_open_ratio_max", -0.1),
     ("job_open_ratio_max", 1000.5), ("tick_ms", 0), ("kill_timeout_ms", 10**15), ("silent_ms", -1),
     ("task_tries_max", -1), ("refused_shown", -1)],
)  # fmt: skip
def test_numbers_nobody_can_reckon_with_are_refused_by_name(field, value):
    with pytest.raises(BadInput) as bad:
        Controller(with_(**{field: value}))
    assert bad.value.where == field


@pytest.mark.parametrize(
    ("may_lose_ratio", "window_ms"),
    [(-0.01, 60_000), (1.01, 60_000), (float("nan"), 60_000), (0.1, 0), (0.1, TEN_YEARS_MS + 1)],
)
def test_validate_names_the_budget_that_is_out_of_range(may_lose_ratio, window_ms):
    budget = LossRule("user", "ann", may_lose_ratio, window_ms)
    levers = LeverSettings(room_within_ms=1000, suspend_ms=1000, leave_ms=1000, budgets=(budget,))
    with pytest.raises(BadInput, match=r"^user ann: "):
        validate(with_(levers=levers))


@pytest.mark.parametrize("settings", [DEFAULT, PAPER, Settings(job_open_ratio_max=1000, seed=-5)])
def test_usable_settings_pass(settings):
    validate(settings)
    snapshot = cluster(app("r1", "research", 9), app("p1", "production", 1, 1))
    Controller(settings).step(seen(snapshot, {"r1": row("r1", 8)}))
