"""What preemptable applications held inside a window, as the attached port counts it.

Everything in MiB-seconds: ``research`` is one application of one GiB that runs all the time, so that a minute
is 61,440 of them; all of what was held may be lost, so that a budget is what was held.
"""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.attach.fake_cluster import EPOCH, App, FakeCluster
from yarnctl.deciding.held_windows import user_owner
from yarnctl.deciding.loss_budget import LossBudget
from yarnctl.deciding.model import Observation, ObservationRequest
from yarnctl.deciding.settings import LeverSettings, LossRule
from yarnctl.units import Resources

RULES = LeverSettings(room_within_ms=4000, suspend_ms=4000, leave_ms=1500, may_lose_ratio=1)
GIB = 1024
RESEARCH = "root.research"
MINUTE_S, HOUR_S = 60, 3600
QUIET = ObservationRequest(probe_queues=("root.production",))


class Counted:
    """A cluster on which research runs since ever; production waits if ``waits``."""

    def __init__(self, fake: FakeCluster, *, waits: bool = False) -> None:
        self.fake = fake
        self.fake.nodes = {"n1:1": Resources(8 * GIB, 8)}
        self.job = fake.research(1, ["n1:1"], mib_seconds=72 * HOUR_S * GIB)
        self.production = fake.add(App(2, "production", state="ACCEPTED", user="bob"))
        self.wait(waits)
        self.port = fake.port(levers=True)

    def wait(self, waits: bool) -> None:
        self.production.asks = [(20, Resources(GIB, 1), 1)] if waits else []

    def go(self, seconds: int) -> None:
        """Let time pass: research holds its container."""
        self.fake.now_ms += 1000 * seconds
        self.job.mib_seconds += GIB * seconds

    def observe(self) -> Observation:
        return self.port.observe(QUIET)

    def budget_mib_s(self, losses: LossBudget | None = None) -> int:
        """Return what may be lost by what the port observes now."""
        seen = self.observe()
        left = (losses or LossBudget()).left(seen.now_ms, seen.held, RULES)
        return left.amount(RESEARCH, "kill") // 1000


@pytest.fixture
def counted():
    with FakeCluster() as fake:
        yield Counted(fake)


def test_budget_after_quiet_days_is_of_the_window(counted: Counted) -> None:
    """Three quiet days, polled for the view, at last each minute; then production comes."""
    counted.observe()
    for seconds in (*[HOUR_S] * 71, *[MINUTE_S] * 60):
        counted.go(seconds)
        assert counted.port.observe_soon() is not None
    counted.wait(True)
    assert 59 * MINUTE_S * GIB <= counted.budget_mib_s() <= HOUR_S * GIB


def test_quiet_observations_count_by_themselves(counted: Counted) -> None:
    """A host that never polls for a view has the same budget: ten minutes of production's rest count."""
    counted.observe()
    for _ in range(10):
        counted.go(MINUTE_S)
        counted.observe()
    counted.wait(True)
    assert counted.budget_mib_s() == 10 * MINUTE_S * GIB


def test_counter_that_fell_is_a_new_base(counted: Counted) -> None:
    counted.wait(True)
    counted.observe()
    counted.go(10 * MINUTE_S)
    assert counted.budget_mib_s() == 10 * MINUTE_S * GIB
    counted.job.mib_seconds = 5
    assert counted.budget_mib_s() == 0
    counted.go(2 * MINUTE_S)
    assert counted.budget_mib_s() == 2 * MINUTE_S * GIB


def test_another_resource_manager_is_a_new_base(counted: Counted) -> None:
    """It recovers containers with all their time, which was not held since the last look."""
    counted.wait(True)
    counted.observe()
    counted.go(10 * MINUTE_S)
    counted.fake.epoch += 1
    counted.job.mib_seconds *= 2
    while counted.observe().cluster == "unreachable":
        counted.go(1)
    assert counted.budget_mib_s() == 0
    counted.go(2 * MINUTE_S)
    assert counted.budget_mib_s() == 2 * MINUTE_S * GIB


def test_clock_that_was_set_back_is_a_new_base(counted: Counted) -> None:
    counted.wait(True)
    counted.observe()
    counted.go(30 * MINUTE_S)
    assert counted.budget_mib_s() == 30 * MINUTE_S * GIB
    counted.fake.now_ms = EPOCH
    assert counted.budget_mib_s() == 0
    counted.go(2 * MINUTE_S)
    assert counted.budget_mib_s() == 2 * MINUTE_S * GIB


def test_base_is_the_first_observation(counted: Counted) -> None:
    """What was held before counts as 0; from then on all counts, in the first hour, too."""
    counted.wait(True)
    assert counted.budget_mib_s() == 0
    counted.go(30)
    assert counted.budget_mib_s() == 30 * GIB


def test_another_daemon_begins_with_another_base(counted: Counted) -> None:
    counted.wait(True)
    counted.observe()
    counted.go(10 * MINUTE_S)
    assert counted.budget_mib_s() == 10 * MINUTE_S * GIB
    counted.port = counted.fake.port(levers=True)
    assert counted.budget_mib_s() == 0
    counted.go(MINUTE_S)
    assert counted.budget_mib_s() == MINUTE_S * GIB


def test_counter_that_was_not_shown_has_another_base(counted: Counted) -> None:
    """Without the right to see an application YARN shows -1; what was held meanwhile counts as 0."""
    counted.wait(True)
    counted.observe()
    counted.go(MINUTE_S)
    assert counted.budget_mib_s() == MINUTE_S * GIB
    for _ in range(24):
        counted.go(HOUR_S)
        shown, counted.job.mib_seconds = counted.job.mib_seconds, -1
        counted.observe()
        counted.job.mib_seconds = shown
    counted.go(MINUTE_S)
    assert counted.budget_mib_s() == 0
    counted.go(MINUTE_S)
    assert counted.budget_mib_s() == MINUTE_S * GIB


def test_queues_time_is_that_of_the_window_of_its_budget(counted: Counted) -> None:
    rules = msgspec.structs.replace(RULES, budgets=(LossRule("queue", RESEARCH, 0.5, 2 * HOUR_S * 1000),))
    counted.wait(True)
    counted.port = counted.fake.port(levers=True, budgets=rules.budgets)
    counted.observe()
    for _ in range(180):
        counted.go(MINUTE_S)
        seen = counted.observe()
    left = LossBudget().left(seen.now_ms, seen.held, rules).amount(RESEARCH, "kill") // 1000
    assert 119 * MINUTE_S * GIB <= 2 * left <= 2 * HOUR_S * GIB


def test_users_time_is_that_of_all_jobs_also_of_those_that_ended(counted: Counted) -> None:
    rules = msgspec.structs.replace(RULES, budgets=(LossRule("user", "ann", 0.5, 2 * HOUR_S * 1000),))
    tagged = counted.fake.research(3, ["n1:1"], tags="yarnctl-may-lose:100%")
    counted.wait(True)
    counted.port = counted.fake.port(levers=True, budgets=rules.budgets)
    counted.observe()
    counted.go(10)
    tagged.mib_seconds += 20
    counted.observe()
    del counted.fake.apps[tagged.id]
    counted.go(10)
    seen = counted.observe()
    left = LossBudget().left(seen.now_ms, seen.held, rules)
    assert left.amount(RESEARCH, "kill") == 20 * GIB * 1000
    assert left.amount(user_owner("ann"), "kill") == (20 * GIB + 20) * 500
    assert left.amount(tagged.id, "kill") == 0, "its budget ended with it"


def test_samples_are_seconds_apart_and_a_fall_is_one_at_once(counted: Counted) -> None:
    """So that numbers of thousands of jobs are not written with each step."""
    counted.wait(True)
    counted.observe()
    counted.go(4)
    assert counted.budget_mib_s() == 0
    counted.go(1)
    assert counted.budget_mib_s() == 5 * GIB
    counted.go(4)
    counted.job.mib_seconds = 0
    assert counted.budget_mib_s() == 0


def test_quiet_applications_are_not_read_more_often_than_a_sample_needs(counted: Counted) -> None:
    counted.observe()
    for _ in range(120):
        counted.go(1)
        counted.observe()
    assert sum(heard.path.endswith("/apps") for heard in counted.fake.rm.heard) == 3


def test_nothing_is_read_for_budgets_without_levers(counted: Counted) -> None:
    counted.port = counted.fake.port()
    counted.fake.rm.heard.clear()
    counted.observe()
    assert not any(heard.path.endswith("/apps") for heard in counted.fake.rm.heard)
