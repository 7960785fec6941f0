"""Loss budgets of queues, users and jobs: whose counts, when it counts again, and who is named.

Everything in containers of 1,024 MiB and seconds; in the last hour research has held 10,000 s.
"""

from __future__ import annotations

import pytest

from tests.golden.mix_tables import SLOT_S
from yarnctl.deciding.held_windows import user_owner
from yarnctl.deciding.levers import Lever, LeverPull
from yarnctl.deciding.loss_budget import LossBudget, standings
from yarnctl.deciding.model import HeldTime, JobConsent
from yarnctl.deciding.settings import LeverSettings, LossRule
from yarnctl.units import Resources

SLOT_MIB = SLOT_S // 1000
NOW_MS = 1_000_000
HOUR_MS = 3_600_000
NIGHTLY = JobConsent("application_1_7", "ann", 0.1)
NEVER = NIGHTLY._replace(application="application_1_8", may_lose_ratio=0.0)


def held(consents: tuple[JobConsent, ...] = (), window_ms: int = HOUR_MS) -> tuple[HeldTime, ...]:
    """Return research's 10,000 s, 6,000 of them ann's, and 500 s of each tagged job, which is ann's, too."""
    seconds = {"research": 10_000, user_owner("ann"): 6_000 + 500 * len(consents)}
    seconds |= {each.application: 500 for each in consents}
    return tuple(HeldTime(payer, window_ms, value * SLOT_S) for payer, value in seconds.items())


def rules(*of: LossRule, may_lose: float = 0.02) -> LeverSettings:
    return LeverSettings(
        room_within_ms=4000, suspend_ms=4000, leave_ms=1000, may_lose_ratio=may_lose, budgets=of
    )


def killed(budget: LossBudget, order: str, queue: str, user: str, lost_s: int, at_s: int = 999) -> None:
    lever = Lever(f"attempt_{order}_0", "kill", 1000, lost_s * 1000, 3000, "run-again")
    size = Resources(SLOT_MIB, 1)
    budget.charge(order, at_s * 1000, size, LeverPull(lever, queue, user), remaining_ms=41_000)


def left_s(budget: LossBudget, of: LeverSettings, owner: str, consents=(), now_ms: int = NOW_MS) -> float:
    ratios = {each.application: each.may_lose_ratio for each in consents}
    return budget.left(now_ms, held(consents), of, ratios).amount(owner, "kill") / SLOT_S


@pytest.mark.parametrize(
    ("of", "owner", "consents", "left"),
    [
        (rules(), "research", (), 200),  # 2 % of what the queue held
        (rules(LossRule("queue", "research", 0.05)), "research", (), 500),  # its own instead
        (rules(LossRule("queue", "other", 0.05)), "research", (), 200),  # another's is not its
        (rules(LossRule("user", "ann", 0.01)), user_owner("ann"), (), 60),  # of what the user held
        (rules(), NIGHTLY.application, (NIGHTLY,), 50),  # a tagged job's: of what it held itself
        (rules(), NEVER.application, (NEVER,), 0),  # a tag of 0 lets nothing be lost, whatever the queue may
        (rules(may_lose=0), "research", (), 0),  # nobody said anything
        (rules(may_lose=0), NIGHTLY.application, (NIGHTLY,), 50),  # but the job did
    ],
)
def test_whose_budget_counts(
    of: LeverSettings, owner: str, consents: tuple[JobConsent, ...], left: float
) -> None:
    assert left_s(LossBudget(), of, owner, consents) == left


def test_what_was_held_in_another_window_gives_no_budget() -> None:
    """A budget of a day is a part of what was held in a day; that of refetching, of an hour."""
    day_ms = 24 * HOUR_MS
    of = rules(LossRule("queue", "research", 0.02, day_ms), LossRule("user", "ann", 0.01))
    hour = LossBudget().left(NOW_MS, held(), of)
    assert (hour.amount("research", "kill"), hour.amount("research", "end")) == (0, 2_000 * SLOT_S)
    assert hour.amount(user_owner("ann"), "kill") == 60 * SLOT_S
    day = LossBudget().left(NOW_MS, held(window_ms=day_ms), of)
    assert (day.amount("research", "kill"), day.amount("research", "end")) == (200 * SLOT_S, 0)
    assert day.exceeded([("research", "ann", "kill", 1)]) == user_owner("ann")


def test_a_user_with_a_rule_who_held_nothing_may_lose_nothing() -> None:
    of = rules(LossRule("user", "bob", 0.5))
    left = LossBudget().left(NOW_MS, held(), of)
    assert left.exceeded([("research", "bob", "kill", 1)]) == user_owner("bob")
    assert left.exceeded([("research", "bob", "end", 1)]) is None, "refetching is its queue's alone"


def test_a_loss_is_charged_to_its_queue_and_its_user_and_a_tagged_job_s_to_itself_and_its_user() -> None:
    of, budget = rules(LossRule("user", "ann", 0.01)), LossBudget()
    killed(budget, "o-1", "research", "ann", 10)
    killed(budget, "o-2", "research", "bob", 20)
    killed(budget, "o-3", NIGHTLY.application, "ann", 15)
    assert left_s(budget, of, "research", (NIGHTLY,)) == 200 - 30
    assert left_s(budget, of, user_owner("ann"), (NIGHTLY,)) == 65 - 25  # its job's time is the user's, too
    assert left_s(budget, of, NIGHTLY.application, (NIGHTLY,)) == 50 - 15


def test_what_exceeds_a_budget_is_named_by_its_owner() -> None:
    of = rules(LossRule("user", "ann", 0.001))
    left = LossBudget().left(NOW_MS, held((NIGHTLY,)), of, {NIGHTLY.application: 0.1})
    assert left.exceeded([("research", "ann", "kill", 6 * SLOT_S)]) is None
    assert left.exceeded([("research", "ann", "kill", 7 * SLOT_S)]) == user_owner("ann")
    assert left.exceeded([("research", "bob", "kill", 201 * SLOT_S)]) == "research"
    assert left.exceeded([(NIGHTLY.application, "cyd", "kill", 51 * SLOT_S)]) == NIGHTLY.application
    left.take("research", "ann", "kill", 6 * SLOT_S, "m_1")
    assert left.exceeded([(NIGHTLY.application, "ann", "kill", SLOT_S)]) == user_owner("ann")


def test_a_charge_leaves_each_budget_with_its_own_window() -> None:
    of = rules(LossRule("queue", "research", 0.02, 100_000), LossRule("user", "ann", 0.01, 7_200_000))
    budget = LossBudget()
    killed(budget, "o-1", "research", "ann", 10, at_s=850)
    known = (
        HeldTime("research", 100_000, 100 * SLOT_S),
        HeldTime(user_owner("ann"), 7_200_000, 6_100 * SLOT_S),
    )
    assert budget.left(949_999, known, of).amount("research", "kill") == -8 * SLOT_S
    assert budget.left(950_000, known, of).amount("research", "kill") == 2 * SLOT_S
    assert budget.left(960_000, known, of).amount(user_owner("ann"), "kill") == 61 * SLOT_S - 10 * SLOT_S


def test_charges_are_dropped_when_they_are_as_old_as_the_longest_window() -> None:
    of, budget = rules(LossRule("user", "ann", 0.01, 7_200_000)), LossBudget()
    killed(budget, "o-1", "research", "ann", 10, at_s=0)
    killed(budget, "o-2", "research", "bob", 10, at_s=1)
    budget.retire(7_199_999, of)
    assert list(budget.charges) == ["o-1", "o-2"]
    budget.retire(7_200_000, of)
    assert list(budget.charges) == ["o-2"]
    budget.retire(7_201_000, of)
    assert budget.state().charges == ()


def test_what_was_lost_is_shown_with_what_it_bought() -> None:
    of = rules(LossRule("user", "ann", 0.01))
    budget = LossBudget()
    killed(budget, "o-1", "research", "ann", 10)
    killed(budget, "o-2", NIGHTLY.application, "ann", 15)
    rows = standings(budget, NOW_MS, of, ("research", "idle"), held((NIGHTLY,)), (NIGHTLY,))
    assert [
        (
            row.kind, row.name, row.lost_ms // 1000, row.left_mib_ms // SLOT_S, row.containers,
            row.waiting_saved_ms,
        )
        for row in rows
    ] == [
        ("queue", "research", 10, 190, 1, 40_000),
        ("queue", "idle", 0, 0, 0, 0),
        ("user", "ann", 25, 40, 2, 80_000),
        ("job", NIGHTLY.application, 15, 35, 1, 40_000),
    ]  # fmt: skip


def test_how_much_sooner_is_not_guessed() -> None:
    budget = LossBudget()
    lever = Lever("attempt_1_0", "kill", 1000, 5000, 3000, "run-again")
    budget.charge("o-1", 0, Resources(SLOT_MIB, 1), LeverPull(lever, "research", "ann"))
    assert budget.charges["o-1"].saved_ms == 0
