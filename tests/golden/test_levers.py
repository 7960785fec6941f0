"""Golden tables of the levers of a task, of the loss budget, and of awaited ends."""

from __future__ import annotations

import pytest

from tests.golden.mix_tables import NOW_MS, RULES, SLOT_S, given, mix_case, mix_settings, mixed, reasons, told
from tests.golden.mix_tables import rules as changed
from tests.golden.tables import size, task
from yarnctl.deciding.held_windows import user_owner
from yarnctl.deciding.ledger_state import KEPT_MS, AwaitedEnds
from yarnctl.deciding.levers import AwaitedTask, Lever, LeverKind, LeverPull, Undo, levers_of
from yarnctl.deciding.loss_budget import LossBudget, LossLeft, task_of
from yarnctl.deciding.model import HeldTime
from yarnctl.deciding.offers import MixInput

Amount = tuple[str, str, LeverKind, int]
HOUR_MS = 3_600_000
LATE, SOON = 60_000, 3000

# --- the levers of a task ---------------------------------------------------------------------

LEVER_TABLE = [
    # task                                              promised  levers: kind, room in, lost, overhead
    (task("a_0", LATE, kind="map", since_ms=70_000), -1, ["kill 1000 30000 9000"]),  # elapsed is lost
    (task("a_0", LATE, kind="map", since_ms=NOW_MS), -1, ["kill 1000 0 9000"]),  # it has only begun
    (task("a_0", LATE, kind="map", since_ms=NOW_MS + 5), -1, ["kill 1000 0 9000"]),  # never less than none
    (task("a_0", -1, kind="map", since_ms=90_000), -1, ["kill 1000 10000 9000"]),  # end unknown: no wait
    (task("a_0", 4000, kind="map"), -1, ["wait 5000 0 0", "kill 1000 100000 9000"]),  # just in time
    (task("a_0", 4001, kind="map"), -1, ["kill 1000 100000 9000"]),  # a millisecond too late
    (task("a_0", 0, kind="map"), -1, ["wait 1000 0 0", "kill 1000 100000 9000"]),  # its container leaves yet
    (task("a_0", 3500), -1, ["wait 5000 0 0", "suspend 4000 0 9000"]),  # a reduce commits besides: 500 ms
    (task("a_0", 3501), -1, ["suspend 4000 0 9000"]),
    (task("a_0", LATE, cost_ms=70), -1, ["suspend 4000 0 70"]),  # suspending loses nothing
    (task("a_0", -1), -1, ["suspend 4000 0 9000"]),  # end unknown: objecting is the chooser's
    (task("a_0", LATE, able=False), -1, []),  # it has begun keys and cannot be suspended: nothing
    (task("a_0", 500, able=False), -1, ["wait 2000 0 0"]),  # but its end can be waited for
    (task("a_0", LATE, able=False, since_ms=NOW_MS), -1, ["end 1000 0 9000"]),  # no key is begun
    (task("a_0", 500, able=False, since_ms=NOW_MS), -1, ["end 1000 0 9000"]),  # 500 ms of keys, none begun
    (task("a_0", LATE, able=False, since_ms=NOW_MS, resumed=True, generation=1), -1, ["end 1000 0 9000"]),
    (task("a_0", SOON, kind="map"), NOW_MS + 4000, ["wait 4000 0 0", "kill 1000 100000 9000"]),  # kept
    (task("a_0", SOON, kind="map"), NOW_MS + 3999, ["kill 1000 100000 9000"]),  # promised sooner: no more
    (task("a_0", SOON), NOW_MS - 1, ["suspend 4000 0 9000"]),  # the promise is past, and it still runs
]

UNDO: dict[LeverKind, Undo] = {
    "wait": "none", "suspend": "resume", "end": "run-again", "kill": "run-again", "drain": "come-back",
    "rescale": "come-back", "cap": "raise",
}  # fmt: skip


def words(lever: Lever) -> str:
    return f"{lever.kind} {lever.free_in_ms} {lever.lost_ms} {lever.overhead_ms}"


@pytest.mark.parametrize(("view", "promised_ms", "expected"), LEVER_TABLE)
def test_the_levers_of_a_task(view, promised_ms, expected):
    assert [words(lever) for lever in levers_of(view, NOW_MS, RULES, promised_ms)] == expected


@pytest.mark.parametrize("view", [row[0] for row in LEVER_TABLE])
def test_every_lever_names_its_attempt_and_how_it_is_taken_back(view):
    for lever in levers_of(view, NOW_MS, RULES, -1):
        assert lever.unit == view.attempt
        assert lever.undo == UNDO[lever.kind]
        assert (lever.undo == "none") == (lever.kind == "wait")


CHOSEN_TABLE = [
    # task                                                                  done, or why it is not
    (task("a_0", 3000, kind="map", since_ms=99_000), "wait a_0"),  # nothing is lost
    (task("a_0", LATE, kind="map", since_ms=99_000), "kill a_0"),
    (task("a_0", LATE, able=False, since_ms=NOW_MS), "end a_0"),
    (task("a_0", LATE), "suspend a_0"),
    (task("a_0", 9000), "cost"),  # done before coming back would have paid
    (task("a_0", -1), "remaining-unknown"),
    (task("a_0", LATE, able=False), "not-checkpointable"),
    (task("a_0", LATE, resumed=True, since_ms=99_000), "suspend a_0"),  # costs are compared, not barred
    (task("a_0", 9000, resumed=True, since_ms=99_000), "cost"),
    (task("a_0", -1, resumed=True, since_ms=99_000), "remaining-unknown"),
    (task("a_0", LATE, generation=8), "task-budget"),
    (task("a_0", LATE, kind="am"), None),  # a master is never named
]


@pytest.mark.parametrize(("view", "expected"), CHOSEN_TABLE)
def test_the_guard_of_suspending_leaves_other_levers(view, expected):
    choice = mixed(mix_case({"a": [view]}), settings=mix_settings(cost_guard=True, settle_ms=30_000))
    done = told(choice).removesuffix("1 unmet")
    assert (done or reasons(choice).get("a_0")) == expected


def test_a_lever_that_gives_room_too_late_is_not_used():
    late = mixed(mix_case({"a": [task("a_0")]}), settings=mix_settings(changed(room_within_ms=3999)))
    assert (told(late), reasons(late)) == ("1 unmet", {"a_0": "not-in-time"})


@pytest.mark.parametrize(
    ("queue", "kill_s", "user_s", "may_lose", "expected"),
    [
        ("research", 999, 999, {}, "kill a_0"),
        ("research", 5, 999, {}, "loss-budget"),  # its queue's
        ("research", 999, 5, {}, "user-loss-budget"),
        ("research", 999, 999, {"research": 0.0}, "map"),  # a file gives this queue nothing
        ("a", 999, 999, {"a": 0.5}, "kill a_0"),  # the job says so by its tag
        ("a", 5, 999, {"a": 0.5}, "job-loss-budget"),
        ("a", 999, 999, {"a": 0.0}, "job-loss-budget"),  # and this one says no
    ],
)
def test_a_refusal_says_whose_budget_it_was(queue, kill_s, user_s, may_lose, expected):
    """The map would lose ten seconds."""
    left = LossLeft({(queue, "kill"): kill_s * SLOT_S, (user_owner("u"), "kill"): user_s * SLOT_S})
    told_ = MixInput(left, {}, {"a": (queue, "u")}, may_lose)
    choice = mixed(mix_case({"a": [task("a_0", LATE, kind="map", since_ms=90_000)]}), told_)
    assert (told(choice).removesuffix("1 unmet") or reasons(choice)["a_0"]) == expected


def test_a_task_that_was_killed_lately_is_not_again():
    """Its next attempt is another attempt of the same task."""
    view = task("m_7_1", LATE, kind="map")
    choice = mixed(mix_case({"a": [view]}), given(["a"], lately=["m_7"]))
    assert (told(choice), reasons(choice)) == ("1 unmet", {"m_7_1": "killed-lately"})
    assert told(mixed(mix_case({"a": [view]}), given(["a"], lately=["m_8"]))) == "kill m_7_1"
    reduce = task("r_7_1", LATE, able=False, since_ms=NOW_MS)
    assert (
        told(mixed(mix_case({"a": [reduce]}), given(["a"], lately=["r_7"]))) == "end r_7_1"
    )  # it lost nothing


# --- the loss budget --------------------------------------------------------------------------

BUDGET = changed(may_lose_ratio=0.1, may_refetch_ratio=0.01, window_ms=HOUR_MS)


def held(seconds: int, queue: str = "research") -> HeldTime:
    return HeldTime(queue, HOUR_MS, seconds * SLOT_S)


def pull(kind: LeverKind, lost_s: int = 0, overhead_s: int = 0, queue: str = "research") -> LeverPull:
    return LeverPull(Lever("m_1_0", kind, 1000, lost_s * 1000, overhead_s * 1000, UNDO[kind]), queue, "u")


def left_s(
    budget: LossBudget, at_s: int, held_s: int = 1000, queue: str = "research", kind: LeverKind = "kill"
) -> float:
    """Return what is left in slot seconds; of 1,000 held ones 100 may be lost."""
    return budget.left(at_s * 1000, (held(held_s),), BUDGET).amount(queue, kind) / SLOT_S


def test_nothing_held_gives_no_budget():
    assert LossBudget().left(0, (), BUDGET).amount("research", "kill") == 0
    assert left_s(LossBudget(), 0, 0) == 0
    assert left_s(LossBudget(), 1000) == 100
    assert left_s(LossBudget(), 1000, kind="end") == 10


AFTER_A_KILL_OF_40_S = [
    # events, each 5 s after the decision                left
    ([], 60),  # charged by the decision, before anything is killed
    (["accepted"], 60),
    (["refused"], 100),  # it was not killed
    (["completed"], 100),  # it had ended by itself
    (["ended-as-ordered"], 55),  # it computed 5 s more
    (["accepted", "ended-as-ordered"], 55),
    (["ended-otherwise"], 55),  # killed from outside: it is lost all the same
    (["give-up"], 60),  # it may be killed yet
    (["epoch-changed"], 60),  # nobody knows
    (["ended-as-ordered", "granted"], 55),
    (["ended-as-ordered", "unclaimed"], 55),
]


@pytest.mark.parametrize(("events", "expected_s"), AFTER_A_KILL_OF_40_S)
def test_a_kill_is_charged_by_the_decision_and_later_only_more(events, expected_s):
    budget = LossBudget()
    budget.charge("o-1", 1_000_000, size(1), pull("kill", 40))
    for event in events:
        budget.moved("o-1", event, 1_005_000)
    assert left_s(budget, 1000) == expected_s
    assert budget.left(1_000_000, (held(1000),), BUDGET).killed.keys() == (
        set() if expected_s == 100 else {"m_1"}
    )


CHARGED_TABLE = [
    # lever                 slots  left to kill, left to end
    (pull("kill", 40, 9), 1, (60, 10)),  # the overhead of a kill is not lost work
    (pull("kill", 40), 2, (20, 10)),  # container time times its size
    (pull("end", 0, 4), 1, (100, 6)),  # what it fetches again, by a setting of its own
    (pull("suspend", 0, 9), 1, (100, 10)),
    (pull("kill", 40, queue="other"), 1, (100, 10)),  # each queue has its own
    (None, 1, (100, 10)),  # chosen by the two policies
]


@pytest.mark.parametrize(("lever", "slots", "expected"), CHARGED_TABLE)
def test_what_a_lever_charges(lever, slots, expected):
    budget = LossBudget()
    budget.charge("o-1", 1_000_000, size(slots), lever)
    assert (left_s(budget, 1000), left_s(budget, 1000, kind="end")) == expected


def test_an_ended_reduce_is_charged_once_whenever_it_ends():
    budget = LossBudget()
    budget.charge("o-1", 1_000_000, size(1), pull("end", 0, 4))
    budget.moved("o-1", "ended-as-ordered", 1_005_000)
    assert left_s(budget, 1000, kind="end") == 6


def test_queues_have_budgets_apart():
    left = LossBudget().left(1_000_000, (held(100, "batch"), held(1000)), BUDGET)
    assert [left.amount(queue, "kill") // SLOT_S for queue in ("research", "batch", "none")] == [100, 10, 0]


def test_a_charge_is_over_with_the_window_whether_something_is_noted_or_not():
    budget = LossBudget()
    budget.charge("o-1", 1_000_000, size(1), pull("kill", 40))
    assert left_s(budget, 4599, 3600) == pytest.approx(320)
    assert left_s(budget, 4600, 3600) == pytest.approx(360)


def test_a_clock_that_was_set_back_changes_nothing_that_is_left():
    budget = LossBudget()
    budget.charge("o-1", 1_000_000, size(1), pull("kill", 40))
    budget.set_back(900_000)
    assert left_s(budget, 100) == left_s(budget, 3699) == 60
    assert left_s(budget, 3700) == 100


def test_a_budget_as_a_value_is_the_same_budget():
    budget = LossBudget()
    budget.charge("o-1", 1_000_000, size(1), pull("kill", 40))
    again = LossBudget(budget.state())
    assert again.state() == budget.state()
    assert left_s(again, 1005) == left_s(budget, 1005) == 60


def test_amounts_that_are_used_together_are_allowed_together():
    left = LossBudget().left(1_000_000, (held(1000),), BUDGET)
    half: Amount = ("research", "ann", "kill", 50 * SLOT_S)
    least: Amount = ("research", "ann", "kill", 1)
    assert left.allows([half, half])
    assert not left.allows([half, half, least])
    assert not left.allows([("other", "ann", "kill", 1)])
    assert left.allows([("other", "ann", "kill", 0)])
    other = left.copy()
    other.take("research", "ann", "kill", 60 * SLOT_S, "m_1")
    assert (other.allows([half]), left.allows([half, half])) == (False, True)
    assert (list(other.taken), list(left.taken)) == (["m_1"], [])


def test_a_task_is_named_by_its_attempt_without_its_number():
    assert task_of("attempt_1700000000000_0001_m_000007_12") == "attempt_1700000000000_0001_m_000007"


def awaited(attempt: str, until_ms: int) -> AwaitedTask:
    return AwaitedTask("a", "c", Lever(attempt, "wait", 1000, 0, 0, "none"), until_ms, 1)


def test_the_first_promise_stands():
    ends = AwaitedEnds()
    ends.note([awaited("m_1_0", 5000), awaited("m_2_0", 7000)])
    ends.note([awaited("m_1_0", 9000)])
    assert ends.until_ms == {"m_1_0": 5000, "m_2_0": 7000}


def test_promises_are_forgotten_an_hour_after_they_were_due():
    ends = AwaitedEnds({"m_1_0": 5000, "m_2_0": 7000})
    ends.retire(5000 + KEPT_MS - 1)
    assert len(ends.until_ms) == 2
    ends.retire(5000 + KEPT_MS)
    assert ends.until_ms == {"m_2_0": 7000}


def test_promises_move_with_a_clock_that_was_set_back():
    ends = AwaitedEnds({"m_1_0": 5000})
    ends.set_back(2000)
    assert ends.until_ms == {"m_1_0": 3000}
