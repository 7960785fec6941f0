"""Golden tables of the price of a second: what waits, what levers cost, repeats, and observed spans."""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.mix_tables import NOW_MS, RULES, given, mix_case, mix_settings, mixed, reasons, rules, told
from tests.golden.tables import task
from yarnctl.deciding.case import Choice
from yarnctl.deciding.draws import uniform
from yarnctl.deciding.lever_times import KEPT_MS, LeverTime, LeverTimes, corrected, late_by_kind
from yarnctl.deciding.loss_budget import LossLeft, TaskLoss
from yarnctl.deciding.model import ApplicationView, ContainerRequest, Snapshot, TaskView
from yarnctl.deciding.order import Order, OrderVerb
from yarnctl.deciding.settings import LeverSettings
from yarnctl.deciding.waiting_worth import NO_PRICE, SecondPrice, price_for, waiting_for
from yarnctl.units import Resources

SLOT = Resources(1024, 1)
PRICED = rules(second_worth_ratio=1.0, kills_max=3)


# --- what waits -------------------------------------------------------------------------------


def job(
    name: str, containers: int, pending: int, *, user: str = "u", activated: bool = True
) -> ApplicationView:
    """Return a job; of one without containers the request is its master's."""
    priority = 20 if containers else 0
    return ApplicationView(
        application=name, queue="production", user=user, submitted_at_ms=0, rank=int(name[1:]),
        containers=containers, used=Resources(1024 * containers, containers), am_size=SLOT, task_size=SLOT,
        requests=(ContainerRequest(priority, SLOT, pending),) if pending else (), activated=activated,
    )  # fmt: skip


def held(first: int, count: int, user: str = "u") -> list[ApplicationView]:
    return [job(f"j{number}", 0, 1, user=user, activated=False) for number in range(first, first + count)]


WAITING = [
    # the requester, with others of its queue                          containers that wait for one request
    (job("j1", 5, 3), [], 1),  # a task's request: itself
    (job("j1", 0, 1), [], 2),  # a master alone: itself and one task at least
    (job("j1", 0, 1), [job("j2", 5, 6)], 11),  # as many tasks as its user's other job has and requests
    (job("j1", 0, 1), [job("j2", 5, 6), job("j3", 3, 0, user="v")], 11),  # its own user's alone
    (job("j1", 0, 1, user="w"), [job("j2", 5, 6), job("j3", 3, 0, user="v")], 7),  # of all: (10 + 2) / 2
    (job("j1", 5, 1), held(2, 1), 7),  # its last request: a job of 5 containers waits for its end
    (job("j1", 5, 3), held(2, 1), 1 + 3),  # (7 + 1) / 3: one of three last requests
    (job("j1", 5, 1), held(2, 4), 1 + 4 * 6),  # one after the other
    (job("j1", 5, 1), [job("j2", 5, 1), *held(3, 4)], 1 + 2 * 6),  # two jobs end: each lets two start
]  # fmt: skip


@pytest.mark.parametrize(("requester", "others", "count"), WAITING)
def test_how_many_containers_wait_for_one(requester, others, count):
    elsewhere = msgspec.structs.replace(job("j99", 9, 90, activated=False), queue="other")
    views = (requester, *others, elsewhere)
    snapshot = Snapshot(total=SLOT, largest_node=SLOT, queues=(), applications=views, free_by_node={})
    assert waiting_for(requester, snapshot) == count
    assert price_for(requester, snapshot, rules(second_worth_ratio=0.5)).of(4000) == 2000 * count
    assert price_for(requester, snapshot, RULES) == NO_PRICE
    assert price_for(requester, snapshot, None) == NO_PRICE


# --- what is chosen ---------------------------------------------------------------------------


def young(age_s: int, *, left_s: int = 60, name: str = "m_1_0", cost_ms: int = 0) -> TaskView:
    """Return a map that has worked so long."""
    return task(name, left_s * 1000, kind="map", since_ms=100_000 - age_s * 1000, cost_ms=cost_ms)


def reduce(cost_s: int, *, left_s: int = 60) -> TaskView:
    return task("r_1_0", left_s * 1000, cost_ms=cost_s * 1000)


def chosen(
    *tasks: TaskView,
    waiting: int = 1,
    running: int = 1_000_000,
    levers: LeverSettings = PRICED,
    lost: dict[str, TaskLoss] | None = None,
) -> Choice:
    case = mix_case({"a": tasks})
    jobs = [job._replace(usage=job.usage._replace(releasable=running)) for job in case.jobs]
    parts = 1000 * waiting if levers.second_worth_ratio else 0
    case = msgspec.structs.replace(case, second=SecondPrice(parts), jobs=tuple(jobs))
    left = LossLeft(given(["a"]).left._left, lost or {})
    return mixed(case, given(["a"])._replace(left=left), mix_settings(levers))


# A suspension takes 4 s, a kill 1 s.
CHOSEN = [
    # tasks                          waiting   what is done
    ((young(2), reduce(3)), 0, "suspend r_1_0"),  # without a price nothing is lost
    ((young(2), reduce(3)), 1, "kill m_1_0"),  # 2 + 1 s and not 3 + 4 s
    ((young(7), reduce(3)), 1, "suspend r_1_0"),  # 7 + 1 s and not 3 + 4 s
    ((young(7), reduce(3)), 3, "kill m_1_0"),  # 7 + 3 s and not 3 + 12 s
    ((young(9), reduce(3)), 2, "suspend r_1_0"),
    ((young(9), reduce(3)), 3, "kill m_1_0"),  # 12 and 15 s
    ((young(20, left_s=15),), 1, "1 unmet"),  # 20 s for 15 s
    ((young(20, left_s=20),), 1, "kill m_1_0"),
    ((young(20, left_s=15),), 2, "kill m_1_0"),  # 20 s for 30 s
    ((reduce(12, left_s=14),), 1, "1 unmet"),  # 12 + 4 s, and it ends in 14 + 1 s
    ((reduce(12, left_s=15),), 1, "suspend r_1_0"),
    ((reduce(12, left_s=10),), 2, "suspend r_1_0"),  # its return takes longer than its end
]

ENDING = [
    # tasks that end within 12 s      budget  what is done; to wait costs the rest and 2 s, for a map 1 s
    ((reduce(3, left_s=1),), True, "wait r_1_0"),
    ((reduce(3, left_s=4),), True, "wait r_1_0"),  # 6 s and not 3 + 4 s
    ((reduce(3, left_s=5),), True, "wait r_1_0"),
    ((reduce(3, left_s=6),), True, "suspend r_1_0"),  # 8 s and 3 + 4 s
    ((reduce(9, left_s=10),), True, "wait r_1_0"),
    ((reduce(9, left_s=11),), True, "1 unmet"),  # neither is worth it or in time
    ((young(2, left_s=8),), True, "kill m_1_0"),
    ((young(2, left_s=8),), False, "wait m_1_0"),  # as if nothing might be lost
    ((young(9, left_s=8), reduce(3, left_s=60)), False, "suspend r_1_0"),  # 7 and 9 s
]


@pytest.mark.parametrize(("tasks", "has_budget", "done"), ENDING)
def test_tasks_that_end_in_time_are_awaited_where_that_costs_least(tasks, has_budget, done):
    case = mix_case({"a": tasks})
    jobs = [job._replace(usage=job.usage._replace(releasable=1_000_000)) for job in case.jobs]
    case = msgspec.structs.replace(case, second=SecondPrice(1000), jobs=tuple(jobs))
    mix_input = given(["a"])
    if not has_budget:
        mix_input = mix_input._replace(left=LossLeft(dict.fromkeys(mix_input.left._left, 0)))
    levers = msgspec.structs.replace(PRICED, room_within_ms=12_000)
    assert told(mixed(case, mix_input, mix_settings(levers))) == done


@pytest.mark.parametrize(("tasks", "waiting", "done"), CHOSEN)
def test_what_is_chosen_where_a_second_has_a_price(tasks, waiting, done):
    assert told(chosen(*tasks, waiting=waiting, levers=PRICED if waiting else RULES)) == done


@pytest.mark.parametrize(
    ("group_ms", "done"),
    # 3 + 4 s of a suspension, and a group, and not 7 + 1 s of a kill; nothing may come later than 5 s
    [(0, "suspend r_1_0"), (999, "suspend r_1_0"), (1001, "kill m_1_0")],
)
def test_a_suspension_comes_after_a_key_group(group_ms, done):
    case = mix_case({"a": (young(7), reduce(3))})
    case = msgspec.structs.replace(case, second=SecondPrice(1000))
    mix_input = given(["a"])._replace(group_ms={"r_1_0": group_ms})
    assert told(mixed(case, mix_input, mix_settings(PRICED))) == done


def test_a_task_with_two_levers_is_shown_once_beside_what_is_chosen():
    """The one that is left may be killed, and ends in time."""
    levers = msgspec.structs.replace(PRICED, room_within_ms=12_000)
    choice = chosen(young(1, left_s=8), young(2, left_s=8, name="m_2_0"), levers=levers)
    assert told(choice) == "kill m_1_0"
    assert [each.attempt for each in choice.refused_tasks] == ["m_2_0"]


def test_a_lever_that_costs_more_than_it_brings_is_named():
    assert reasons(chosen(young(20, left_s=15))) == {"m_1_0": "not-worth"}


HELD = [
    # age, remaining: s     running   what is done with the only container that is shown
    ((5, 64), 1, "1 unmet"),  # 5 s and the master's 60 s for 64 s
    ((5, 65), 1, "kill m_1_0"),
    ((5, 24), 3, "1 unmet"),  # 5 s and a third of 60 s for 24 s
    ((5, 25), 3, "kill m_1_0"),
]


@pytest.mark.parametrize(("spans", "running", "done"), HELD)
def test_a_master_that_holds_its_container_longer_has_a_price(spans, running, done):
    assert told(chosen(young(spans[0], left_s=spans[1]), running=running)) == done


def test_of_two_jobs_the_one_with_more_containers_gives_one():
    small, large = (young(5),), (young(15, name="m_2_0"), *(young(90, name=f"m_{n}_0") for n in range(3, 9)))
    case = mix_case({"a": small, "b": large})
    assert told(mixed(case, given(["a", "b"]), mix_settings(PRICED))) == "kill m_1_0"
    case = msgspec.structs.replace(case, second=SecondPrice(1000))
    assert told(mixed(case, given(["a", "b"]), mix_settings(PRICED))) == "kill m_2_0"


def test_an_executor_that_leaves_sooner_than_a_map_comes_first():
    idle = task("x_1_0", 600, kind="executor", since_ms=100_000, cost_ms=3000)
    short = msgspec.structs.replace(PRICED, room_within_ms=1500)
    assert told(chosen(idle, young(2, cost_ms=700), levers=short)) == "drain x_1_0"  # 3.6 and 3.7 s
    assert told(chosen(idle, young(2, cost_ms=500), levers=short)) == "kill m_1_0"


def test_without_a_price_every_lever_is_worth_it():
    assert told(chosen(young(20, left_s=15), levers=rules(kills_max=3))) == "kill m_1_0"


def test_what_a_task_lost_before_counts_again():
    lost = {"m_1": TaskLoss(1, 30_000)}
    first, second = young(5), young(20, name="m_2_0")
    assert told(chosen(first, second)) == "kill m_1_0"
    assert told(chosen(first, second, lost=lost)) == "kill m_2_0"
    assert told(chosen(first, second, lost=lost, levers=rules(kills_max=3))) == "kill m_2_0"


@pytest.mark.parametrize(("kills", "done"), [(0, "kill m_1_0"), (2, "kill m_1_0"), (3, "1 unmet")])
def test_a_task_is_killed_at_most_so_often(kills, done):
    choice = chosen(young(5), lost={"m_1": TaskLoss(kills, 1000)})
    assert told(choice) == done
    assert reasons(choice) == ({} if kills < 3 else {"m_1_0": "killed-lately"})


def test_two_attempts_of_a_task_are_never_killed_by_one_choice():
    case = msgspec.structs.replace(
        mix_case({"a": (young(5), young(6, name="m_1_1"))}, 2), second=SecondPrice(5000)
    )
    choice = mixed(case, given(["a"]), mix_settings(PRICED))
    assert (told(choice), reasons(choice)) == ("kill m_1_0 | 1 unmet", {"m_1_1": "killed-lately"})


# --- observed spans ---------------------------------------------------------------------------


def freed(verb: OrderVerb, at_ms: int, remaining_ms: int = -1, group_ms: int = 0) -> Order:
    return Order(
        order="o-000001", requester="p", victim="r", attempt="a_0", container="c", node="n", size=SLOT,
        request_size=SLOT, serves=1, group="o-000001", generation=0, verb=verb, decision=1,
        ordered_at_ms=at_ms, progress_at_ms=at_ms, remaining_ms=remaining_ms,
        group_ms=group_ms or msgspec.UNSET,
    )  # fmt: skip


def test_spans_follow_what_is_observed():
    times = LeverTimes()
    assert corrected(PRICED, times, 0) == PRICED
    for number in range(40):
        took_ms = 12_000 if number % 2 else 13_000
        times.freed(freed("suspend", number * 1000), "suspend", number * 1000 + took_ms, PRICED)
    found = times.by_kind["suspend"]
    assert found.samples == 8
    assert 12_300 <= found.mean_ms <= 12_700
    assert 400 <= found.spread_ms <= 700
    assert corrected(PRICED, times, 60_000) == rules(
        second_worth_ratio=1.0, kills_max=3, suspend_ms=found.mean_ms + 2 * found.spread_ms
    )
    assert corrected(RULES, times, 60_000) == RULES


def test_half_a_key_group_is_not_counted():
    times = LeverTimes()
    times.freed(freed("suspend", 0, group_ms=6500), "suspend", 12_400, PRICED)
    assert times.by_kind["suspend"] == LeverTime("suspend", 2, 4000 + 5150 // 2, 5150 // 2, 12_400)


def test_suspensions_of_long_key_groups_come_in_time():
    """Groups of 6 to 7 s, as on a real Hadoop where 12.4 s were seen and 4 s were predicted."""
    times, in_time, at_ms, orders = LeverTimes(), 0, 0, 200
    for number in range(orders):
        part = [uniform(11, number, draw) % 1001 for draw in range(3)]
        group_ms = 6000 + part[0]
        took_ms = 3900 + 2 * part[1] + group_ms * part[2] // 1000
        in_time += took_ms <= corrected(PRICED, times, at_ms).suspend_ms + group_ms
        times.freed(freed("suspend", at_ms, group_ms=group_ms), "suspend", at_ms + took_ms, PRICED)
        at_ms += 60_000
    assert in_time >= 0.95 * orders
    assert times.by_kind["suspend"].long_ms <= 11_000, "the spread of a group and not of all suspensions"


def test_a_span_that_is_never_observed_again_is_forgotten():
    times = LeverTimes()
    times.freed(freed("kill", 0), "kill", 9000, PRICED)
    assert times.by_kind["kill"] == LeverTime("kill", 2, 5000, 4000, 9000)
    assert corrected(PRICED, times, 8999 + KEPT_MS).leave_ms == 13_000
    assert corrected(PRICED, times, 9000 + KEPT_MS).leave_ms == RULES.leave_ms


@pytest.mark.parametrize(("took_ms", "mean_ms"), [(10_000, 0), (13_000, 1500), (7000, -1500), (6999, -1500)])
def test_executors_are_corrected_by_what_they_report(took_ms, mean_ms):
    times = LeverTimes()
    times.freed(freed("drain", 500, 10_000), "drain", 500 + took_ms, PRICED)
    assert times.of("drain", 20_000, PRICED).mean_ms == mean_ms


def test_a_lever_that_is_sooner_makes_the_next_one_no_later():
    """As on a real Hadoop: an executor said 14 s and left after 7 s. The next ones were out of time."""
    times = LeverTimes()
    times.freed(freed("drain", 0, 14_000), "drain", 7000, PRICED)
    assert times.of("drain", 20_000, PRICED) == LeverTime("drain", 2, -3500, 7000 // 16, 7000)
    assert late_by_kind(PRICED, times, 20_000)["drain"] < 0


def test_a_kind_of_lever_learns_nothing_of_another():
    """A worker of Flink that left 9 s late, and a reduce whose end took 9 s, are no executor and no map."""
    times = LeverTimes()
    times.freed(freed("drain", 0, 3000), "rescale", 12_000, PRICED)
    times.freed(freed("kill", 0), "end", 9000, PRICED)
    late_ms = late_by_kind(PRICED, times, 20_000)
    assert late_ms == {"drain": 0, "rescale": 4500 + 2 * 4500, "end": 5000 + 2 * 4000 - PRICED.leave_ms}
    assert corrected(PRICED, times, 20_000) == PRICED
    assert late_by_kind(RULES, times, 20_000) == {}


LATE = [
    # the task                  what is late            its lever, or none within 5 s
    (task("e_0", 3000, kind="executor", able=True, cost_ms=9), {"rescale": 9000}, "drain e_0"),
    (task("e_0", 3000, kind="executor", able=True, cost_ms=9), {"drain": 2001}, "1 unmet"),
    (task("w_0", 3000, kind="worker", able=True, cost_ms=9), {"rescale": 2001}, "1 unmet"),
    (task("w_0", 3000, kind="worker", able=True, cost_ms=9), {"drain": 9000}, "rescale w_0"),
    (task("r_0", 90_000, since_ms=NOW_MS, able=False), {"end": 4001}, "1 unmet"),
    (task("r_0", 90_000, since_ms=NOW_MS, able=False), {"end": 4000}, "end r_0"),
    (task("m_0", 90_000, kind="map", since_ms=NOW_MS), {"end": 9000}, "kill m_0"),
]  # fmt: skip


@pytest.mark.parametrize(("view", "late_ms", "expected"), LATE)
def test_a_lever_that_is_late_is_out_of_time_and_no_other(view, late_ms, expected):
    asked = given(["a"])._replace(late_ms=late_ms)
    assert told(mixed(mix_case({"a": [view]}, 1), asked, mix_settings(PRICED))) == expected


def test_a_clock_that_is_set_back_moves_the_last_instant():
    times = LeverTimes()
    times.freed(freed("kill", 0), "kill", 9000, PRICED)
    times.set_back(4000)
    assert times.by_kind["kill"].at_ms == 5000
