"""Loss budgets with many tagged jobs, users and long windows: what a choice costs, and what is written.

Cost is counted in lines that are executed: no clock is read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec

from tests.golden.mix_tables import mix_settings
from tests.golden.tables import app, cluster, seen
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.held_windows import user_owner
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.levers import Lever, LeverPull
from yarnctl.deciding.loss_budget import LossBudget, standings
from yarnctl.deciding.model import HeldTime, JobConsent
from yarnctl.deciding.records import Record, encode
from yarnctl.deciding.settings import LeverSettings, LossRule
from yarnctl.journal.fold import Fold
from yarnctl.units import Resources

RULES = LeverSettings(room_within_ms=4000, suspend_ms=4000, leave_ms=1000, may_lose_ratio=0.02)
WEEK_MS = 7 * 86_400_000
START_MS = 10**12


def lines_of(work: Callable[[], object]) -> int:
    """Return how many lines of Python a call executes."""
    count = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def consents(jobs: int) -> tuple[JobConsent, ...]:
    return tuple(JobConsent(f"application_1_{n:04d}", "ann", 0.1) for n in range(jobs))


def held_by(of: tuple[JobConsent, ...]) -> tuple[HeldTime, ...]:
    return tuple(HeldTime(each.application, RULES.window_ms, 5000) for each in of)


def charged(jobs: int) -> LossBudget:
    """Each job has lost a map."""
    budget = LossBudget()
    for each in consents(jobs):
        lever = Lever(f"{each.application}_m_0", "kill", 1000, 10, 0, "run-again")
        pull = LeverPull(lever, each.application, each.user)
        budget.charge(f"o-{each.application}", START_MS, Resources(1, 1), pull)
    return budget


def test_left_is_linear_in_tagged_jobs() -> None:
    def cost(jobs: int) -> int:
        of, budget = consents(jobs), charged(jobs)
        ratios = {each.application: each.may_lose_ratio for each in of}
        return lines_of(lambda: budget.left(START_MS, held_by(of), RULES, ratios))

    assert cost(200) < 2.5 * cost(100)


def test_standings_are_linear_in_tagged_jobs() -> None:
    def cost(jobs: int) -> int:
        of, budget = consents(jobs), charged(jobs)
        return lines_of(lambda: standings(budget, START_MS, RULES, ("research",), held_by(of), of))

    assert cost(200) < 2.5 * cost(100)


def test_state_does_not_grow_with_the_window() -> None:
    """A day of observations, ten minutes apart, of 50 users, one with a window of a week."""
    rules = msgspec.structs.replace(RULES, budgets=(LossRule("user", "u01", 0.01, WEEK_MS),))
    fold = Fold()
    fold.ledger.settings = mix_settings(rules)
    for place in range(144):
        held = tuple(HeldTime(user_owner(f"u{user:02d}"), WEEK_MS, place * 1000) for user in range(50))
        fold.apply(Observed(at_ms=START_MS + place * 600_000, cluster="seen", held=held))
    assert len(encode(fold.state())) < 10_000


def written(*steps: tuple[JobConsent, ...]) -> list[Record]:
    """Return the records of a controller that is shown these consents, a second apart, and refuses an ask."""
    controller, records = Controller(mix_settings(RULES)), list[Record]()
    for place, of in enumerate(steps):
        snapshot = cluster(
            app("r", "research", 2),
            app(f"p{place}", "production", 1, 1),
            guaranteed={"production": 98, "research": 1},
        )
        look = seen(snapshot, {"r": []}, now_ms=START_MS + 1000 * place)
        records += controller.step(msgspec.structs.replace(look, consents=of)).records
    return records


def test_consents_are_written_when_they_change() -> None:
    of = consents(3)
    records = written(of, of, of[:2], of)
    inputs = [record for record in records if isinstance(record, Observed) and record.change is not None]
    assert [len(record.consents) for record in inputs] == [3, 0, 0, 1]
