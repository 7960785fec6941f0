"""The mix: which levers are pulled for which asks, in which order, and what a budget leaves out.

Sizes are in slots; a map that began n s ago loses n s; a reduce costs 9 s to come back unless said otherwise.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.golden.mix_tables import (
    NOW_MS,
    PLENTY_S,
    given,
    mix_case,
    mix_settings,
    mixed,
    reasons,
    rules,
    told,
)
from tests.golden.tables import app, candidate, case, cluster, seen, size, task, with_
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.mix import EXACT_MAX, choose_mix
from yarnctl.deciding.model import HeldTime, Kill, Refused, Suspend, TaskView
from yarnctl.deciding.order import name_orders
from yarnctl.deciding.reasons.outcomes import AttemptEnded
from yarnctl.deciding.records import Awaited, Decision, Refusal

MINUTE_MS = 60_000


def a_map(attempt: str, began_s: int, remaining_ms: int = MINUTE_MS, **more: Any) -> TaskView:
    return task(attempt, remaining_ms, kind="map", since_ms=NOW_MS - 1000 * began_s, **more)


def fetching(attempt: str, cost_ms: int = 9000, **more: Any) -> TaskView:
    """A reduce that has begun no key."""
    return task(attempt, able=False, since_ms=NOW_MS, cost_ms=cost_ms, **more)


ONE_ASK = [
    # tasks of one job                                              what is done
    ([a_map("a1_0", 9), a_map("a2_0", 3)], "kill a2_0"),  # the youngest map loses least
    ([a_map("a1_0", 1), task("a2_0")], "suspend a2_0"),  # losing nothing comes before a small overhead
    ([a_map("a1_0", 0), task("a2_0")], "suspend a2_0"),  # both lose nothing, both cost 9 s: then the policy
    ([a_map("a1_0", 0, cost_ms=8999), task("a2_0", MINUTE_MS)], "kill a1_0"),  # then least overhead
    ([fetching("a1_0", 5000), task("a2_0", cost_ms=4999)], "suspend a2_0"),
    ([fetching("a1_0", 5000), task("a2_0", cost_ms=5001)], "end a1_0"),
    ([task("a1_0", cost_ms=1), a_map("a2_0", 9, 4000)], "wait a2_0"),  # nothing is cheaper than to wait
    ([a_map("a1_0", 3, 50_000), a_map("a2_0", 3, 40_000)], "kill a2_0"),  # equal cost: SRT
    ([a_map("a2_0", 3), a_map("a1_0", 3)], "kill a1_0"),  # then the attempt
]


@pytest.mark.parametrize(("tasks", "expected"), ONE_ASK)
def test_least_lost_then_least_overhead_then_the_policies_then_the_attempt(tasks, expected):
    if expected == "suspend a2_0" and tasks[0].attempt == "a1_0" and tasks[0].since_ms == NOW_MS:
        tasks = [tasks[0]._replace(remaining_ms=tasks[1].remaining_ms + 1), tasks[1]]
    assert told(mixed(mix_case({"a": tasks}))) == expected


@pytest.mark.parametrize(
    ("policy", "expected"), [("MR", "kill b1_0 | kill b2_0"), ("LR", "kill a1_0 | kill b1_0")]
)
def test_among_equal_cost_the_job_policy_orders_jobs(policy, expected):
    jobs = {"a": [a_map("a1_0", 3)], "b": [a_map("b1_0", 3), a_map("b2_0", 3)]}
    choice = mixed(mix_case(jobs, 2), settings=mix_settings(job_policy=policy))
    assert told(choice) == expected
    assert choice.hit == tuple(dict.fromkeys(pull.lever.unit[0] for pull in choice.pulls))


def test_cost_comes_before_the_policies():
    jobs = {"a": [a_map("a1_0", 2)], "b": [a_map("b1_0", 3), a_map("b2_0", 3)]}
    assert told(mixed(mix_case(jobs, 2))) == "kill a1_0 | kill b1_0"


def test_every_pull_says_who_pays():
    choice = mixed(mix_case({"a": [a_map("a1_0", 3)]}))
    assert [(pull.queue, pull.user) for pull in choice.pulls] == [("research", "u")]


# --- asks and nodes ---------------------------------------------------------------------------

ASKS = [
    # tasks                                                          wanted  what is done
    ([task("a1_0", slots=2), task("a2_0", cost_ms=1)], [(2, 1)], "suspend a1_0"),  # one node holds it whole
    ([task("a1_0", node="n1"), task("a2_0", node="n2")], [(2, 1)], "1 unmet"),  # two halves on two nodes
    ([task("a1_0"), task("a2_0", node="n2"), task("a3_0")], [(2, 1)], "suspend a1_0 | suspend a3_0"),
    ([task("a1_0", cost_ms=5), task("a2_0", cost_ms=5), task("a3_0", slots=2)], [(2, 1)],
     "suspend a1_0 | suspend a2_0"),  # two small ones are cheaper than the large one
    ([task("a1_0", cost_ms=5), task("a2_0", cost_ms=5), task("a3_0", slots=2, cost_ms=9)], [(2, 1)],
     "suspend a3_0"),
    ([a_map("a1_0", 3), a_map("a2_0", 3), a_map("a3_0", 6, slots=2, cost_ms=18_000)], [(2, 1)],
     "kill a3_0"),  # equal in sum: one rather than two
    ([task("a1_0", slots=2), task("a2_0", cost_ms=9001)], 2, "suspend a1_0"),  # the rest meets the next
    ([task("a1_0", slots=3), task("a2_0", cost_ms=9001)], [(2, 1), (1, 1)], "suspend a1_0"),  # another size
    ([a_map("a1_0", 3, 1000, slots=2), task("a2_0")], 2, "wait a1_0"),  # also the rest of an end
    ([a_map("a1_0", 3, 1000), task("a2_0"), task("a3_0", cost_ms=1)], [(2, 1)], "suspend a3_0 | wait a1_0"),
    ([task("a1_0"), task("a2_0")], 3, "suspend a1_0 | suspend a2_0 | 1 unmet"),
    ([task("a1_0", cost_ms=2), task("a2_0", cost_ms=2), task("a3_0", cost_ms=3, slots=2)], [(3, 1)],
     "suspend a1_0 | suspend a3_0"),
]  # fmt: skip


@pytest.mark.parametrize(("tasks", "wanted", "expected"), ASKS)
def test_a_whole_ask_on_one_node_for_the_least(tasks, wanted, expected):
    assert told(mixed(mix_case({"a": tasks}, wanted))) == expected


def test_free_room_of_a_node_is_used_first():
    tasks = [task("a1_0", cost_ms=1), task("a2_0", node="n2", cost_ms=9)]
    assert told(mixed(mix_case({"a": tasks}, [(2, 1)], room={"n2": 1}))) == "suspend a2_0"
    assert mixed(mix_case({"a": tasks}, [(2, 1)], room={"n2": 1})).free == {"n2": size(0)}


def test_orders_of_one_ask_are_one_group_and_serve_it_once():
    tasks = [task("a1_0", slots=2), task("a2_0", slots=2), task("a3_0", slots=3, node="n2", cost_ms=99_000)]
    choice = mixed(mix_case({"a": tasks}, [(3, 2)]))
    assert [(pick.task.attempt, pick.serves) for pick in choice.picks] == [
        ("a1_0", 0),
        ("a2_0", 1),
        ("a3_0", 1),
    ]
    assert name_orders(choice.picks, 0)[1] == ("o-000001", "o-000001", "o-000003")


def test_what_an_awaited_container_leaves_over_counts_as_served_by_it():
    tasks = [a_map("a1_0", 3, 1000, slots=2)]
    (one,) = mixed(mix_case({"a": tasks}, 2)).awaited
    assert one.serves == 2


def test_more_small_containers_than_are_combined_in_every_way():
    """An ask that needs more containers of a node than are tried in every way is met all the same."""
    tasks = [task(f"a{number:02d}_0", cost_ms=1 + number) for number in range(EXACT_MAX + 6)]
    choice = mixed(mix_case({"a": tasks}, [(EXACT_MAX + 3, 1)]))
    assert [pick.task.attempt for pick in choice.picks] == [f"a{n:02d}_0" for n in range(EXACT_MAX + 3)]
    assert sum(pick.serves for pick in choice.picks) == 1


def test_of_more_than_are_tried_none_is_taken_for_nothing():
    """Fifteen small ones do not make it, the large sixteenth does with one of them."""
    tasks = [task(f"a{number:02d}_0", cost_ms=1 + number) for number in range(EXACT_MAX + 1)]
    tasks.append(task("azz_0", slots=29, cost_ms=500))
    assert told(mixed(mix_case({"a": tasks}, [(30, 1)]))) == "suspend a00_0 | suspend azz_0"


# --- budgets ----------------------------------------------------------------------------------


def test_with_a_budget_of_nothing_no_map_is_killed():
    none = mix_settings(rules(may_lose_ratio=0.0))
    new, old = a_map("a1_0", 0), a_map("a2_0", 50)
    choice = mixed(mix_case({"a": [new, old]}), given(["a"], kill_s=PLENTY_S), settings=none)
    assert (told(choice), reasons(choice)) == ("1 unmet", {"a1_0": "map", "a2_0": "map"})


def test_what_the_loss_budget_does_not_allow_is_left_out_by_name():
    tasks = [a_map("a1_0", 3), a_map("a2_0", 4), a_map("a3_0", 5)]
    choice = mixed(mix_case({"a": tasks}, 3), given(["a"], kill_s=7))
    assert (told(choice), reasons(choice)) == ("kill a1_0 | kill a2_0 | 1 unmet", {"a3_0": "loss-budget"})


def test_a_map_that_is_too_large_for_the_budget_does_not_hide_a_smaller_loss():
    tasks = [a_map("a1_0", 3, slots=2), a_map("a2_0", 4)]
    choice = mixed(mix_case({"a": tasks}), given(["a"], kill_s=5))
    assert (told(choice), reasons(choice)) == ("kill a2_0", {"a1_0": "loss-budget"})


def test_what_is_fetched_again_has_a_budget_of_its_own():
    tasks = [fetching("a1_0", 5000), fetching("a2_0", 5000), a_map("a3_0", 3)]
    choice = mixed(mix_case({"a": tasks}, 3), given(["a"], kill_s=3, end_s=5))
    assert told(choice) == "end a1_0 | kill a3_0 | 1 unmet"
    assert reasons(choice) == {"a2_0": "loss-budget"}


def test_a_job_gives_no_more_containers_than_may_leave_but_ends_by_themselves_are_not_counted():
    tasks = [task("a1_0"), task("a2_0"), a_map("a3_0", 3, 1000)]
    choice = mixed(mix_case({"a": tasks}, 3, budget=1))
    assert told(choice) == "suspend a1_0 | wait a3_0 | 1 unmet"
    assert reasons(choice) == {"a2_0": "job-budget"}


def test_a_cheap_combination_that_a_budget_forbids_does_not_hide_another():
    """Two of job a are cheapest, but only one of it may leave; with one of b the ask is met."""
    jobs = {"a": [task("a1_0", cost_ms=1), task("a2_0", cost_ms=1)], "b": [task("b1_0", cost_ms=50)]}
    assert told(mixed(mix_case(jobs, [(2, 1)], budget=1))) == "suspend a1_0 | suspend b1_0"
    maps = {"a": [a_map("a1_0", 3), a_map("a2_0", 3), task("a3_0", cost_ms=99_000)]}
    assert told(mixed(mix_case(maps, [(2, 1)]), given(["a"], kill_s=3))) == "suspend a3_0 | kill a1_0"


def test_two_attempts_of_one_task_are_not_both_killed():
    """A speculative attempt beside the first: killing both would be the same task twice."""
    tasks = [a_map("m_1_0", 9), a_map("m_1_1", 3)]
    choice = mixed(mix_case({"a": tasks}, 2))
    assert (told(choice), reasons(choice)) == ("kill m_1_1 | 1 unmet", {"m_1_0": "killed-lately"})


def test_a_job_whose_tasks_are_not_known_is_asked_for_first():
    jobs = [candidate("a", 3), candidate("b", 3)]
    choice = mixed(case(jobs, 2, {"a": [task("a1_0")]}, now_ms=NOW_MS), given(["a", "b"]))
    assert (choice.missing, choice.unmet, choice.picks) == (("b",), 2, ())


def test_closed_jobs_are_told_and_barred_tasks_left():
    jobs = [candidate("a", 3), candidate("b", 3)]
    tasks = {"a": [task("a1_0"), task("a2_0")]}
    of = case(jobs, 2, tasks, now_ms=NOW_MS, closed={"b": "unreachable"}, barred={"a1_0": "already-ordered"})
    choice = mixed(of, given(["a", "b"]))
    assert told(choice) == "suspend a2_0 | 1 unmet"
    assert [(job.application, job.why) for job in choice.refused_jobs] == [("b", "unreachable")]
    assert reasons(choice) == {"a1_0": "already-ordered"}


def test_room_that_another_would_get_is_not_made():
    of = msgspec.structs.replace(mix_case({"a": [a_map("a1_0", 3, 1000)]}), reserved={"n1": "x"})
    assert reasons(mixed(of)) == {"a1_0": "node-reserved"}


def test_as_many_jobs_as_are_compared():
    jobs = {"a": [a_map("a1_0", 1)], "b": [a_map("b1_0", 3), a_map("b2_0", 3)]}
    choice = mixed(mix_case(jobs), settings=mix_settings(rules(jobs_max=1)))
    assert told(choice) == "kill b1_0"


# --- plans: several demands, one after another ------------------------------------------------

SHARES = {"production": 98, "research": 1}
HELD = (HeldTime("research", 3_600_000, 10**12),)
MIX = with_(mix_settings(), model_scheduler=False, in_flight_ratio_max=1.0)


class Play:
    """A controller that is shown a full cluster; production's ``asks`` wait."""

    def __init__(self, tasks: list[TaskView], **asks: int) -> None:
        self.controller = Controller(MIX, validate=True)
        self.tasks = tasks
        self.asks = asks

    def step(self, now_ms: int, tasks: list[TaskView] | None = None) -> list[str]:
        """Return what one step did: orders, awaited tasks, refusals."""
        self.tasks = self.tasks if tasks is None else tasks
        waiting = [
            app(name, "production", 1, count, rank=rank)
            for rank, (name, count) in enumerate(self.asks.items())
        ]
        snapshot = cluster(app("r", "research", len(self.tasks) + 1), *waiting, guaranteed=SHARES)
        look = seen(snapshot, {"r": self.tasks}, now_ms=now_ms)
        step = self.controller.step(msgspec.structs.replace(look, held=HELD))
        found = [
            f"{type(action).__name__.lower()} {action.attempt}"
            for action in step.actions
            if isinstance(action, Kill | Suspend)
        ]
        for record in step.records:
            if isinstance(record, Awaited):
                found += [f"wait {each.lever.unit} for {record.application}" for each in record.tasks]
            elif isinstance(record, Refusal):
                found.append(f"refuse {record.trigger.application}")
        return found


def test_a_task_that_is_awaited_for_one_is_not_counted_for_another():
    tasks = [a_map("r1_0", 3, 1000), task("r2_0", cost_ms=1), task("r3_0")]
    assert Play(tasks, p1=1, p2=1).step(NOW_MS) == ["suspend r2_0", "wait r1_0 for p1"]


def test_a_promise_is_recorded_once_and_no_ask_is_refused_meanwhile():
    play = Play([a_map("r1_0", 3, 3000)], p1=1)
    assert play.step(NOW_MS) == ["wait r1_0 for p1"]
    assert play.step(NOW_MS + 1000, [a_map("r1_0", 3, 2000)]) == []
    assert play.controller.ledger.awaited.until_ms == {"r1_0": NOW_MS + 4000}


def test_a_task_that_does_not_end_as_promised_is_taken_by_another_lever():
    """It was promised to end within 4 s; a second later it still says so: the ask waits no more."""
    play = Play([a_map("r1_0", 3, 3000)], p1=1)
    assert play.step(NOW_MS) == ["wait r1_0 for p1"]
    assert play.step(NOW_MS + 1000) == ["kill r1_0"]


@pytest.mark.parametrize("view", [a_map("r1_0", 3, 3000), task("r1_0", 3000)])
def test_waiting_never_hides_an_ask_for_longer_than_was_promised(view):
    """However often it says that it is about to end, an order is given within the first promise."""
    play, at_ms = Play([view], p1=1), NOW_MS
    while not any(each.startswith(("kill", "suspend")) for each in play.step(at_ms)):
        at_ms += 250
        assert at_ms <= NOW_MS + 5000
    assert len(play.controller.ledger.open) == 1


def test_the_budget_of_a_plan_is_one_for_all_its_demands():
    play = Play([a_map("r1_0", 3), a_map("r2_0", 3)], p1=1, p2=1)
    held = (HeldTime("research", 3_600_000, 3 * 1024 * 1000 * 50),)
    snapshot = cluster(
        app("r", "research", 3),
        app("p1", "production", 1, 1),
        app("p2", "production", 1, 1),
        guaranteed=SHARES,
    )
    look = msgspec.structs.replace(seen(snapshot, {"r": play.tasks}, now_ms=NOW_MS), held=held)
    step = play.controller.step(look)
    assert [action.attempt for action in step.actions if isinstance(action, Kill)] == ["r1_0"]
    (refused,) = [record for record in step.records if isinstance(record, Refusal)]
    assert refused.trigger.application == "p2"


def test_a_kill_that_was_refused_is_given_back_and_may_be_tried_again():
    play = Play([a_map("r1_0", 3)], p1=1)
    look = seen(
        cluster(app("r", "research", 2), app("p1", "production", 1, 1), guaranteed=SHARES),
        {"r": play.tasks},
        now_ms=NOW_MS,
    )
    step = play.controller.step(msgspec.structs.replace(look, held=HELD))
    (kill,) = [action for action in step.actions if isinstance(action, Kill)]
    assert len(play.controller.ledger.losses.charges) == 1
    play.controller.settle(kill, Refused(AttemptEnded()))
    assert play.controller.ledger.losses.charges == {}


def test_a_decision_has_the_lever_of_each_order():
    play = Play([a_map("r1_0", 3), task("r2_0")], p1=2)
    look = seen(
        cluster(app("r", "research", 3), app("p1", "production", 1, 2), guaranteed=SHARES),
        {"r": play.tasks},
        now_ms=NOW_MS,
    )
    step = play.controller.step(msgspec.structs.replace(look, held=HELD))
    (decision,) = [record for record in step.records if isinstance(record, Decision)]
    assert [pull.lever.kind for pull in decision.pulls if pull is not None] == ["suspend", "kill"]
    assert len(decision.orders) == 2


def test_what_was_compared_is_written_so_that_a_replay_can_compare_it():
    """More small containers than are combined in every way: those that were not picked are kept, too."""
    tasks = [task(f"r{number:02d}_0", cost_ms=1 + number) for number in range(EXACT_MAX + 6)]
    snapshot = cluster(
        app("r", "research", len(tasks) + 1),
        app("p1", "production", 1, 1, ask=2),
        guaranteed=SHARES,
        largest_node=64,
    )
    look = seen(snapshot, {"r": tasks}, now_ms=NOW_MS)
    step = Controller(MIX).step(msgspec.structs.replace(look, held=HELD))
    (kept,) = [record for record in step.records if isinstance(record, Observed)]
    assert sorted(view.attempt for view in kept.tasks["r"]) == [view.attempt for view in tasks]


def test_a_clock_that_was_set_back_takes_charges_and_promises_with_it():
    play = Play([a_map("r1_0", 3), a_map("r2_0", 3, 1000)], p1=2)
    assert play.step(NOW_MS) == ["kill r1_0", "wait r2_0 for p1"]
    ledger = play.controller.ledger
    ledger.set_back(NOW_MS)
    assert [charge.at_ms for charge in ledger.losses.charges.values()] == [0]
    assert ledger.awaited.until_ms == {"r2_0": 2000}


def test_without_levers_nothing_of_this_is_written():
    play = Controller(with_(MIX, levers=None))
    snapshot = cluster(app("r", "research", 3), app("p1", "production", 1, 1), guaranteed=SHARES)
    step = play.step(seen(snapshot, {"r": [task("r1_0"), task("r2_0")]}, now_ms=NOW_MS))
    (decision,) = [record for record in step.records if isinstance(record, Decision)]
    assert decision.levers == ()
    assert b"levers" not in msgspec.json.encode(decision)


def test_a_choice_uses_nothing_of_the_budget_that_it_was_given():
    """What is left is taken by the plan, once, and not by each attempt to choose."""
    allowed = given(["a"], kill_s=3)
    of = mix_case({"a": [a_map("a1_0", 3)]})
    assert (
        told(choose_mix(of, mix_settings(), allowed))
        == told(choose_mix(of, mix_settings(), allowed))
        == "kill a1_0"
    )
