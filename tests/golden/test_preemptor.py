"""Golden tables of the Preemptor: a cluster in slots, and who is made room for.

Unless said otherwise: production is guaranteed 95, research 5; everything is full.
"""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.tables import (
    GUARD_FREE,
    app,
    candidate,
    case,
    cluster,
    picked,
    row,
    seen,
    size,
    task,
    with_,
)
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.looks import STALE_MS
from yarnctl.deciding.model import (
    Accepted,
    ContainerEnded,
    ContainerGranted,
    Kill,
    ManifestSeen,
    ObservationRequest,
    Refused,
    Release,
    Suspend,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.preemptor import DemandInput, demand
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import Decision, Refusal, Transition
from yarnctl.deciding.selector import choose
from yarnctl.deciding.settings import DEFAULT, PAPER
from yarnctl.journal.rendering import text as reason_text


def needs(snapshot, settings=DEFAULT):
    """Return {application: containers that must be made room for}."""
    found = demand(DemandInput(snapshot, 0, 0), Ledger(), settings)
    return {
        wish.application.application: sum(n.containers for n in wish.shortfalls)
        for wish in found.applications
    }


def reasons(snapshot, settings=DEFAULT):
    found = demand(DemandInput(snapshot, 0, 0), Ledger(), settings)
    return {trigger.application: reason_text(why) for trigger, why in found.refused}


def research(containers, name="r1", **more):
    return app(name, "research", containers, **more)


BOTH = pytest.mark.parametrize("settings", [DEFAULT, PAPER], ids=["default", "paper"])


def test_its_own_limit_is_the_reason_where_no_queue_is_over_its_guarantee():
    """Seen live: production at its maximum read "no preemptable queue is over its guarantee"."""
    above, guaranteed = "no preemptable queue is over its guarantee", {"production": 10, "research": 50}
    small = app("p1", "production", 3, 2)
    assert reasons(cluster(research(50), small, guaranteed=guaranteed)) == {"p1": above}
    full = cluster(research(50), small, guaranteed=guaranteed, maximum={"production": 3})
    assert reasons(full) == {"p1": "the application's queue is at its maximum"}
    room = cluster(research(50), small, guaranteed=guaranteed, maximum={"production": 4})
    assert reasons(room) == {"p1": above}
    large = cluster(research(50), app("p1", "production", 3, 2, ask=9), guaranteed=guaranteed)
    assert reasons(large) == {"p1": "no node is large enough for one requested container"}


# --- need -------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("pending", "free", "need"),
    [
        (3, {}, {"p1": 3}),  # full: all of it
        (3, {"n1": 1}, {"p1": 2}),  # less what is free
        (3, {"n1": 1, "n2": 2}, {}),  # enough is free: not full
        (0, {}, {}),  # nobody asks
    ],
)
def test_need_is_what_fits_nowhere(settings, pending, free, need):
    assert needs(cluster(research(50), app("p1", "production", 2, pending), free=free), settings) == need


@BOTH
def test_needs_are_kept_per_application_in_serving_order(settings):
    snapshot = cluster(
        research(50),
        app("p2", "production", 1, 2, rank=1),
        app("p1", "production", 1, 3, rank=0),
        free={"n1": 4},
    )
    assert needs(snapshot, settings) == {"p2": 1}  # the free slots serve p1 and one of p2


def test_an_ask_is_met_by_room_on_one_node_only():
    """Four free slots on four nodes hold no 2-slot container; the paper counts the sum (section 3.2)."""
    free = dict.fromkeys(("n1", "n2", "n3", "n4"), 1)
    snapshot = cluster(research(50), app("p1", "production", 1, 2, ask=2), free=free)
    assert needs(snapshot) == {"p1": 2}
    assert needs(snapshot, PAPER) == {}


@BOTH
@pytest.mark.parametrize(
    ("used", "found"),
    [
        (10, {}),  # at its guarantee of 10
        (11, {}),  # 10 % over: within the tolerance
        (12, {"p1": 1}),  # over guarantee x 1.1
    ],
)
def test_victims_must_be_over_their_guarantee_by_the_tolerance(settings, used, found):
    snapshot = cluster(
        research(used), app("p1", "production", 3, 1), guaranteed={"production": 90, "research": 10}
    )
    assert needs(snapshot, settings) == found
    if not found:
        assert reasons(snapshot, settings) == {"p1": "no preemptable queue is over its guarantee"}


# --- nothing is evicted that admits nobody ----------------------------------------------------


def test_a_third_queue_with_a_lower_ratio_comes_first():
    """Queue etl (2/50) is served before production (20/45): whatever research gives, etl takes."""
    snapshot = cluster(
        research(40),
        app("e1", "etl", 2, 5),
        app("p1", "production", 20, 5),
        guaranteed={"production": 45, "etl": 50, "research": 5},
    )
    assert needs(snapshot) == {}
    assert reasons(snapshot) == {"p1": "YARN would give the freed container to e1 in queue etl"}


def test_a_third_queue_ends_the_sequence_where_its_turn_comes():
    """Production 18/45 is served up to etl's 20/50 = 18/45: ties go to the larger guarantee (etl)."""
    snapshot = cluster(
        research(40),
        app("e1", "etl", 22, 5),
        app("p1", "production", 18, 9),
        guaranteed={"production": 45, "etl": 50, "research": 5},
    )
    assert needs(snapshot) == {"p1": 2}  # at 18/45 and 19/45 < 22/50; 20/45 > 22/50 is etl's turn


def test_a_third_queue_without_pending_asks_does_not_matter():
    snapshot = cluster(
        research(40),
        app("e1", "etl", 2, 0),
        app("p1", "production", 20, 5),
        guaranteed={"production": 45, "etl": 50, "research": 5},
    )
    assert needs(snapshot) == {"p1": 5}


def test_research_keeps_what_it_is_guaranteed():
    """Guarantees 11 and 11: research gives up what it has beyond, 14 to 11, and no more."""
    snapshot = cluster(
        research(14), app("p1", "production", 8, 9), guaranteed={"production": 11, "research": 11}
    )
    assert needs(snapshot) == {"p1": 3}
    assert needs(snapshot, PAPER) == {"p1": 9}  # Natjam does not ask


def test_research_takes_its_room_back_once_production_is_ahead():
    """Guarantees 10 and 20, research at 24: from 12 and 24 on the next room would go to research."""
    snapshot = cluster(
        research(25), app("p1", "production", 11, 9), guaranteed={"production": 10, "research": 20}
    )
    assert needs(snapshot) == {"p1": 1}
    assert reasons(snapshot) == {}


def test_a_victim_larger_than_the_ask_gives_more_than_is_asked():
    """Shares 7/3 and 9/3: giving 1 leaves research last, giving a task of 3 makes it first again."""
    shares = {"production": 3, "research": 3}
    small = cluster(app("r1", "research", 9, 1), app("p1", "production", 7, 1), guaranteed=shares)
    assert needs(small) == {"p1": 1}
    snapshot = cluster(app("r1", "research", 3, 1, slots=3), app("p1", "production", 7, 1), guaranteed=shares)
    assert needs(snapshot) == {}
    assert reasons(snapshot) == {
        "p1": "YARN would serve queue research first and give it the freed container again"
    }


def test_a_queue_without_guarantee_is_served_last():
    snapshot = cluster(
        research(20), app("p1", "production", 0, 3), guaranteed={"production": 0, "research": 5}
    )
    assert needs(snapshot) == {}
    assert reasons(snapshot) == {
        "p1": "YARN would serve queue research first and give it the freed container again"
    }


@pytest.mark.parametrize(
    ("limits", "need", "why"),
    [
        ({}, {"p1": 6}, None),
        ({"maximum": {"production": 7}}, {"p1": 4}, None),  # 3 used, 7 at most
        ({"maximum": {"production": 3}}, {}, "the application's queue is at its maximum"),
        ({"user_limit": {"production": 5}}, {"p1": 3}, None),  # the one that crosses 5 is still given
        ({"user_limit": {"production": 2}}, {}, "the application's user is at the user limit"),
        ({"largest_node": 0}, {}, "no node is large enough for one requested container"),
    ],
)
def test_limits_of_the_queue_and_of_the_user(limits, need, why):
    snapshot = cluster(research(50), app("p1", "production", 3, 6), **limits)
    assert needs(snapshot) == need
    if why:
        assert reasons(snapshot) == {"p1": why}


def test_one_users_limit_does_not_stop_another():
    snapshot = cluster(
        research(50),
        app("p1", "production", 3, 2, user="ann"),
        app("p2", "production", 1, 2, user="bob", rank=1),
        user_limit={"production": 2},
    )
    assert needs(snapshot) == {"p2": 2}
    assert reasons(snapshot) == {"p1": "the application's user is at the user limit"}


def test_a_master_that_is_activated_has_its_place_under_the_masters_limit():
    """What is used of the limit counts activated applications: theirs are not counted again."""
    snapshot = cluster(
        research(50),
        app("p1", "production", 0, 1, request=0),
        app("p2", "production", 3, 2, rank=1),
        am={"production": (2, 2)},
    )
    assert needs(snapshot) == {"p1": 1, "p2": 2}


def test_an_application_that_is_not_activated_gets_nothing():
    """Room does not help it; and it does not stand in the way of the next."""
    snapshot = cluster(
        research(50), app("p1", "production", 0, 1, activated=False), app("p2", "production", 1, 2, rank=1)
    )
    assert needs(snapshot) == {"p2": 2}
    assert reasons(snapshot)["p1"].startswith(
        "the limit on application masters keeps the application pending"
    )


def test_free_room_that_others_will_take_is_not_counted():
    """One slot is free, but etl is served first: production's ask still fits nowhere."""
    snapshot = cluster(
        research(40),
        app("e1", "etl", 2, 1),
        app("p1", "production", 20, 1),
        guaranteed={"production": 45, "etl": 50, "research": 5},
        free={"n1": 1},
    )
    assert needs(snapshot) == {"p1": 1}


# --- victims ----------------------------------------------------------------------------------


def controller(settings=GUARD_FREE, **changes):
    return Controller(with_(settings, **changes), validate=True)


def first_decision(snapshot, tasks, settings=GUARD_FREE):
    steps = controller(settings)
    step = steps.step(seen(snapshot, tasks))
    return steps, step, [record for record in step.records if isinstance(record, Decision)]


def victims(step):
    asked = [action for action in step.actions if isinstance(action, Suspend | Kill)]
    return [action.attempt for action in sorted(asked, key=lambda action: action.order)]


@BOTH
def test_tandem_job_policy_then_task_policy(settings):
    """For each container the job first, then its task: MR alternates, SRT takes the shortest of each."""
    snapshot = cluster(research(5, "r1"), research(5, "r2"), app("p1", "production", 1, 3))
    tasks = {
        "r1": [task("r1.1", 300_000), task("r1.2", 100_000), task("r1.3", 200_000), task("r1.4", 400_000)],
        "r2": [task("r2.1", 900_000), task("r2.2", 800_000), task("r2.3", 700_000), task("r2.4", 600_000)],
    }
    _, step, _ = first_decision(snapshot, tasks, settings)
    assert victims(step) == ["r1.2", "r2.4", "r1.3"]


@BOTH
def test_never_the_master(settings):
    """Three jobs of master and one task, ten wanted: three tasks are taken, and no master."""
    rows = [research(2, name, rank=n) for n, name in enumerate(("r1", "r2", "r3"))]
    snapshot = cluster(*rows, app("p1", "production", 1, 10), guaranteed={"production": 95, "research": 1})
    tasks = {name: [task(f"{name}.0", 1, kind="am"), task(f"{name}.1")] for name in ("r1", "r2", "r3")}
    _, step, decisions = first_decision(snapshot, tasks, settings)
    assert victims(step) == ["r1.1", "r2.1", "r3.1"]
    assert decisions[0].unmet == decisions[0].trigger.shortfall - 3 > 0


def test_a_master_seen_among_the_tasks_is_refused_by_name():
    _, step, decisions = first_decision(
        cluster(research(7), app("p1", "production", 1, 1)),
        {"r1": [task("r1.0", 1, kind="am"), *row("r1", 6)]},
    )
    assert victims(step) == ["r1.1"]
    assert ("r1.0", "am") in [(refused.attempt, refused.why) for refused in decisions[0].refused_tasks]


@BOTH
def test_a_job_without_an_eligible_task_drops_out(settings):
    snapshot = cluster(research(9, "r1"), research(4, "r2"), app("p1", "production", 1, 2))
    tasks = {"r1": [task(f"r1.{n}", able=False) for n in range(8)], "r2": row("r2", 3)}
    _, step, _ = first_decision(snapshot, tasks, settings)
    assert victims(step) == ["r2.1", "r2.2"]


def test_jobs_without_a_runner_are_left_alone():
    snapshot = cluster(research(9, "r1", runner=False), research(4, "r2"), app("p1", "production", 1, 1))
    _, step, decisions = first_decision(snapshot, {"r1": row("r1", 8), "r2": row("r2", 3)})
    assert victims(step) == ["r2.1"]
    assert ("r1", "no-runner") in [(job.application, job.why) for job in decisions[0].refused_jobs]


def test_a_budget_bounds_the_tasks_of_one_job_under_order():
    snapshot = cluster(research(9, "r1"), research(4, "r2"), app("p1", "production", 1, 5))
    settings = with_(GUARD_FREE, job_open_ratio_max=0.25)
    _, step, decisions = first_decision(snapshot, {"r1": row("r1", 8), "r2": row("r2", 3)}, settings)
    assert victims(step) == ["r1.1", "r1.2", "r2.1"]  # a quarter of 9 is 2, of 4 is 1
    assert {job.application: job.why for job in decisions[0].refused_jobs} == {
        "r1": "job-budget",
        "r2": "job-budget",
    }


FIT_TABLE = [
    # tasks (node, slots)                       wanted    room        picked             handed back
    ([("n1", 1), ("n2", 1), ("n1", 1)], [(2, 1)], {}, "a.1 a.3", "a.2"),  # a.2 completes no room on n2
    ([("n1", 1), ("n2", 1), ("n3", 1)], [(2, 1)], {}, "", "a.1 a.2 a.3"),  # nowhere two: all handed back
    ([("n1", 1), ("n2", 1)], [(2, 1)], {"n2": 1}, "a.2", "a.1"),  # the free slot on n2 helps
    ([("n1", 1), ("n1", 3)], [(3, 1)], {}, "a.2", "a.1"),  # the larger one is enough by itself
    ([("n1", 4), ("n2", 1)], [(2, 2)], {}, "a.1", ""),  # one large container makes room for two asks
    ([("n1", 4), ("n2", 1)], [(3, 1), (1, 1)], {}, "a.1", ""),  # its remainder serves the smaller ask
    ([("n1", 1), ("n1", 1), ("n1", 1)], [(2, 2)], {}, "a.1 a.2", "a.3"),  # the second ask stays unmet
]


@pytest.mark.parametrize(("tasks", "wanted", "room", "expected", "back"), FIT_TABLE)
def test_an_ask_is_met_on_one_node_and_the_rest_is_handed_back(tasks, wanted, room, expected, back):
    rows = [task(f"a.{n + 1}", 1000 + n, node=node, slots=slots) for n, (node, slots) in enumerate(tasks)]
    found = choose(case([candidate("a", 9)], wanted, {"a": rows}, room=room), GUARD_FREE)
    assert " ".join(picked(found)) == expected
    assert " ".join(pick.task.attempt for pick in found.handed_back) == back
    asked = sum(count for _, count in wanted)
    assert sum(pick.serves for pick in found.picks) <= asked - found.unmet


def test_picks_for_one_ask_form_a_group_that_is_granted_together():
    snapshot = cluster(research(50), app("p1", "production", 1, 1, ask=2))
    steps, step, decisions = first_decision(snapshot, {"r1": row("r1", 49)})
    assert victims(step) == ["r1.1", "r1.2"]
    assert decisions[0].groups == ("o-000001", "o-000001")
    assert steps.ledger.promised("p1") == 1
    ended = tuple(ContainerEnded(f"r1.{n}c", "r1", "n1", "suspended", 1000) for n in (1, 2))
    granted = ContainerGranted("new", "p1", "n1", size(2), 1100)
    steps.step(seen(None, now_ms=1100, facts=(*ended, granted)))
    assert not steps.ledger.open
    assert {order.state for order in steps.ledger.settled.values()} == {"granted"}


# --- never twice for the same ask -------------------------------------------------------------


@BOTH
def test_never_twice_for_the_same_ask(settings):
    """The ask stays pending while its order is under way, freed, and until it is granted."""
    settings = with_(settings, cost_guard=False, settle_ms=0)
    steps = Controller(settings, frozenset({"releases-itself"}), validate=True)
    full = cluster(research(50), app("p1", "production", 1, 2))
    assert len(victims(steps.step(seen(full, {"r1": row("r1", 49)})))) == 2
    for now_ms in (1000, 2000):
        assert not steps.step(seen(full, {"r1": row("r1", 49)}, now_ms=now_ms)).actions
    freed = ContainerEnded("r1.1c", "r1", "n1", "suspended", 2500)
    step = steps.step(seen(full, {"r1": row("r1", 48)}, now_ms=3000, as_of_ms=2400, facts=(freed,)))
    assert not step.actions  # freed, but not yet in the snapshot
    one_free = cluster(research(49), app("p1", "production", 1, 2), free={"n1": 1})
    assert not steps.step(seen(one_free, {"r1": row("r1", 48)}, now_ms=4000)).actions  # in the snapshot
    granted = ContainerGranted("new", "p1", "n1", size(1), 4500)
    later = cluster(research(49), app("p1", "production", 2, 1))
    assert not steps.step(seen(later, {"r1": row("r1", 48)}, now_ms=5000, facts=(granted,))).actions
    more = cluster(research(49), app("p1", "production", 2, 4))  # three more asks, and no echo of the grant
    assert len(victims(steps.step(seen(more, {"r1": row("r1", 49)[2:]}, now_ms=5000 + STALE_MS)))) == 3


@BOTH
def test_what_somebody_else_took_is_asked_for_again(settings):
    settings = with_(settings, cost_guard=False, settle_ms=0)
    steps = Controller(settings, validate=True)
    full = cluster(research(50), app("p1", "production", 1, 1))
    steps.step(seen(full, {"r1": row("r1", 49)}))
    facts = (
        ContainerEnded("r1.1c", "r1", "n1", "suspended", 500),
        ContainerGranted("c9", "r1", "n1", size(1), 600),
    )
    step = steps.step(seen(full, {"r1": row("r1", 49)[1:]}, now_ms=1000, facts=facts))
    assert victims(step) == ["r1.2"]
    taken = next(
        record for record in step.records if isinstance(record, Transition) and record.event == "misdirected"
    )
    assert (taken.order, taken.container, taken.application) == ("o-000001", "c9", "r1")


def test_a_second_asker_in_the_same_tick_does_not_get_the_same_tasks():
    snapshot = cluster(
        research(4, "r1"),
        research(4, "r2"),
        app("p1", "production", 1, 2),
        app("p2", "production", 1, 2, rank=1),
        guaranteed={"production": 95, "research": 1},
    )
    _, step, decisions = first_decision(snapshot, {"r1": row("r1", 3), "r2": row("r2", 3)})
    assert [record.trigger.application for record in decisions] == ["p1", "p2"]
    assert victims(step) == ["r1.1", "r2.1", "r1.2", "r2.2"]


def test_orders_are_withdrawn_when_the_ask_finds_room_elsewhere():
    """Two under way; one slot becomes free by itself: the youngest order is handed back."""
    steps, step, _ = first_decision(
        cluster(research(50), app("p1", "production", 1, 2)), {"r1": row("r1", 49)}
    )
    assert len(victims(step)) == 2
    step = steps.step(seen(cluster(research(49), app("p1", "production", 1, 2), free={"n9": 1}), now_ms=1000))
    assert list(step.actions) == [Withdraw("o-000002", "r1", "r1.2", "r1.2c")]
    for now_ms in (1250, 1500, 1750, 2000):
        assert steps.to_observe.cluster == (now_ms == 2000)
        step = steps.step(seen(None, now_ms=now_ms))  # at 2000 the gate says: nobody hurried waits
    assert [action.order for action in step.actions] == ["o-000001"]


def test_a_checkpointed_order_is_not_withdrawn():
    steps, _, _ = first_decision(cluster(research(50), app("p1", "production", 1, 1)), {"r1": row("r1", 49)})
    facts = (ManifestSeen("o-000001", "r1.1", 1, 5, 900),)
    step = steps.step(seen(None, now_ms=1000, facts=facts))
    assert step.actions == (Release("o-000001", "r1", "r1.1", "r1.1c", 1),)


def test_natjam_never_hands_back():
    steps, _, _ = first_decision(
        cluster(research(50), app("p1", "production", 1, 2)), {"r1": row("r1", 49)}, PAPER
    )
    step = steps.step(seen(cluster(research(49), app("p1", "production", 1, 1), free={"n9": 1}), now_ms=1000))
    assert not step.actions


# --- asking for tasks, in rounds --------------------------------------------------------------


def test_tasks_are_looked_at_only_when_their_job_is_hit():
    steps = controller()
    snapshot = cluster(research(9, "r1"), research(8, "r2"), research(7, "r3"), app("p1", "production", 1, 2))
    step = steps.step(seen(snapshot))
    assert (step.to_observe.victims, step.wake_at_ms, step.to_observe.cluster) == (("r1",), 0, False)
    assert not step.actions
    step = steps.step(seen(None, {"r1": [task("r1.1"), task("r1.2", able=False)]}))
    assert step.to_observe.victims == ("r2",)  # r1 has only one to give
    step = steps.step(seen(None, {"r2": row("r2", 7)}))
    assert victims(step) == ["r1.1", "r2.1"]
    assert step.wake_at_ms == 250
    assert step.to_observe.orders == ("o-000001", "o-000002")


def test_an_unreachable_master_drops_out_with_that_reason():
    steps = controller()
    snapshot = cluster(research(9, "r1"), research(8, "r2"), app("p1", "production", 1, 1))
    steps.step(seen(snapshot))
    step = steps.step(seen(None, unreachable=("r1",)))
    assert step.to_observe.victims == ("r2",)
    step = steps.step(seen(None, {"r2": row("r2", 7)}))
    decision = next(record for record in step.records if isinstance(record, Decision))
    assert ("r1", "unreachable") in [(job.application, job.why) for job in decision.refused_jobs]
    assert victims(step) == ["r2.1"]


def test_a_job_that_does_not_answer_is_not_asked_for_ever():
    steps = controller()
    step = steps.step(seen(cluster(research(9), app("p1", "production", 1, 1))))
    assert step.wake_at_ms == 0
    step = steps.step(seen(None))  # neither tasks nor unreachable
    assert step.wake_at_ms == 1000
    refusal = step.records[-1]
    assert isinstance(refusal, Refusal)
    assert [(job.application, job.why) for job in refusal.refused_jobs] == [("r1", "not-observed")]


def test_a_look_that_has_grown_old_is_not_decided_on():
    steps = controller()
    steps.step(seen(cluster(research(9), app("p1", "production", 1, 1))))
    step = steps.step(seen(None, {"r1": row("r1", 8)}, now_ms=5000))
    assert not step.actions
    assert step.to_observe.cluster
    steps = controller()
    steps.step(seen(cluster(research(9), app("p1", "production", 1, 1))))
    assert victims(steps.step(seen(None, {"r1": row("r1", 8)}, now_ms=4999))) == ["r1.1"]


# --- the step's frame -------------------------------------------------------------------------


def test_refusals_are_written_when_their_reason_changes():
    steps = controller()
    stuck = cluster(research(9), app("p1", "production", 1, 1), guaranteed={"production": 1, "research": 20})
    written = [
        [type(record).__name__ for record in steps.step(seen(stuck, now_ms=now_ms)).records]
        for now_ms in (0, 1000, 2000)
    ]
    assert written == [["Header", "Observed", "Refusal"], [], []]


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(Accepted(), "suspending"), (Refused(ClientFault("too late")), "withdrawn"), (Unknown(), "ordered"),
     (Withheld(ClientFault("no lock")), "withdrawn")],
)  # fmt: skip
def test_outcomes(outcome, state):
    steps, step, _ = first_decision(cluster(research(9), app("p1", "production", 1, 1)), {"r1": row("r1", 8)})
    records = steps.settle(step.actions[0], outcome)
    order = {**steps.ledger.open, **steps.ledger.settled}["o-000001"]
    assert order.state == state
    assert len(records) == (1 if state == "ordered" else 2)


def test_ticks_stand_on_the_grid_of_the_first_observation():
    steps = controller()
    assert steps.step(seen(None, now_ms=130)).wake_at_ms == 1130
    assert steps.step(seen(None, now_ms=1131)).wake_at_ms == 2130
    assert steps.step(seen(None, now_ms=5130)).wake_at_ms == 6130


def test_the_gate_names_the_hurried_queues():
    assert controller().to_observe == ObservationRequest(cluster=True, probe_queues=("production",))


def test_killing_instead_of_suspending():
    settings = with_(GUARD_FREE, eviction="kill")
    steps, step, _ = first_decision(
        cluster(research(9), app("p1", "production", 1, 1)), {"r1": row("r1", 8)}, settings
    )
    assert step.actions == (Kill("o-000001", "r1", "r1.1", "r1.1c"),)
    steps.step(seen(None, now_ms=100, facts=(ContainerEnded("r1.1c", "r1", "n1", "killed", 90),)))
    assert steps.ledger.open["o-000001"].state == "freed"


def test_a_seed_replaces_the_settings_seed():
    assert Controller(DEFAULT, seed=7).settings == msgspec.structs.replace(DEFAULT, seed=7)
