"""What was taken from an application comes back, whoever asks for it and whatever is silent meanwhile."""

from __future__ import annotations

import json

import pytest

from tests.unit.attach import test_executors, test_workers
from tests.unit.attach.fake_cluster import FakeCluster
from tests.unit.attach.patience import Hangs
from tests.unit.attach.test_executors import BY_PLUGIN, SPARK, Driver, both
from tests.unit.attach.test_performing import looking
from tests.unit.attach.test_workers import FLINK, JobMaster, changes, drains
from tests.unit.hadoop.replaying import Reply
from yarnctl.attach.connection.application_guard import LATE
from yarnctl.deciding.model import Accepted, Change, Grow, Refused, Unknown, Withheld


@pytest.fixture
def job(fake):
    return JobMaster(fake)


def drained_by_plugin(fake: FakeCluster) -> Driver:
    driver = Driver(fake, tags="yarnctl-drain:plugin")
    driver.settings = {**BY_PLUGIN, "spark.app.startTime": "1700000000123"}
    port = looking(fake, levers=True)
    test_executors.observed(port)
    assert [port.perform(each) for each in both()] == [Accepted(), Accepted()]
    return driver


def test_a_driver_that_is_silent_after_a_restart_is_told_to_grow_later(fake):
    drained_by_plugin(fake)
    answer = fake.drivers.pop(SPARK)
    again = looking(fake, levers=True)
    assert isinstance(again.perform(Grow(SPARK, (1,))), Unknown | Withheld)
    fake.drivers[SPARK] = answer
    fake.now_ms += 60_000
    assert again.perform(Grow(SPARK, (1,))) == Accepted()
    assert any("-back-" in path for path in test_executors.orders(fake))


def test_a_daemon_without_the_mix_lets_executors_come_back(fake):
    drained_by_plugin(fake)
    assert looking(fake).perform(Grow(SPARK, (1,))) == Accepted()
    assert any("-back-" in path for path in test_executors.orders(fake))


def answering(driver: Driver, order: object, executors: object) -> None:
    """Let the plugin in a driver answer, among gauges of others."""
    prefix = f"{SPARK}.driver.plugin.yarnctl.Leave"
    driver.gauges = {
        f"{SPARK}.driver.jvm.heap.max": {"value": "NaN"},
        f"{prefix}.order": {"value": order},
        f"{prefix}.executors": {"value": executors},
    }


@pytest.mark.parametrize(
    ("dynamic", "answer", "has_pending", "state"),
    [
        ("false", None, False, "before"),  # an older plugin: a written order is done with
        ("false", None, True, "before"),  # three rows are active
        ("false", (1, 1), False, "now"),  # it has obeyed only the order to leave
        ("false", (2, 1), True, "now"),
        ("false", (2, 1), False, "before"),
        ("false", (2, 3), True, "before"),
        ("false", ("2", 1), True, "before"),  # no answer of the plugin
        ("true", (1, 3), False, "now"),
        ("true", (2, 1), True, "before"),  # Spark's manager keeps the number
    ],
)
def test_executors_are_back_once_the_plugin_says_that_the_order_is_done_with(
    fake, dynamic, answer, has_pending, state
):
    driver = drained_by_plugin(fake)
    driver.settings["spark.dynamicAllocation.enabled"] = dynamic
    waiting = {"stageId": 0, "status": "ACTIVE", "numTasks": 9, "numActiveTasks": 1, "numCompleteTasks": 1}
    driver.stages = [waiting] if has_pending else []
    port = looking(fake, levers=True)
    test_executors.observed(port)
    setting = port.restorer._settings["executors"]
    change = Change("executors", SPARK, "3", "d1")
    if answer is not None:
        answering(driver, *answer)
    assert setting.read(change).state == "now", "no order is written yet"
    assert setting.write(change) == Accepted()
    assert sorted(name[:14] for name in test_executors.orders(fake)) == ["000000001-leav", "000000002-back"]
    assert setting.read(change).state == state


@pytest.mark.parametrize("late", ["settings", "active", "plugin_answer", "has_pending_task"])
def test_a_late_answer_of_a_driver_is_no_answer_yet_and_all_have_been_asked_for(fake, monkeypatch, late):
    driver = drained_by_plugin(fake)
    answering(driver, 2, 1)
    port = looking(fake, levers=True)
    setting = port.restorer._settings["executors"]
    asked = []

    def watched(name):
        plain = getattr(setting._executors, name)

        def read(application):
            asked.append(name)
            return LATE if name == late else plain(application)

        monkeypatch.setattr(setting._executors, name, read)

    for name in ("settings", "active", "plugin_answer", "has_pending_task"):
        watched(name)
    change = Change("executors", SPARK, "3", "d1")
    port.restorer._settings["executors"]._orders().back(SPARK, "1700000000123", ["d1"])
    assert setting.read(change).state == "late"
    assert asked[:3] == ["settings", "active", "plugin_answer"]


def test_a_late_answer_of_the_plugin_ends_nothing(fake):
    """The list of executors still has those that leave: three rows are active."""
    drained_by_plugin(fake)
    port = looking(fake, levers=True)
    test_executors.observed(port)
    setting = port.restorer._settings["executors"]
    change = Change("executors", SPARK, "3", "d1")
    assert setting.read(change).state == "now"
    assert setting.write(change) == Accepted()
    hangs = Hangs(port, SPARK, "plugin")
    assert setting.read(change).state == "late"
    hangs.until_idle()


def test_a_daemon_without_the_mix_restores_bounds(fake, job):
    port = looking(fake, levers=True)
    for each in drains(2, 3):
        port.perform(each)
    assert looking(fake).perform(Grow(FLINK, (1,))) == Accepted()
    assert job.uppers() == {6}
    assert looking(fake).perform(Grow(FLINK, (1,))) == Accepted()
    assert changes(fake) == []


def test_without_hdfs_bounds_are_restored_later(fake, job):
    port = looking(fake, levers=True)
    for each in drains(2, 3):
        port.perform(each)
    again = looking(fake, levers=True)
    fake.hdfs.denied = "/yarnctl/lock"
    assert isinstance(again.perform(Grow(FLINK, (1,))), Unknown)
    assert job.uppers() == {2}


def test_bounds_of_a_request_that_failed_are_not_taken_for_lowered_ones(fake, job):
    port = looking(fake, levers=True)
    job.refuses = Reply("no", status=503)
    for each in drains(2):
        port.perform(each)
    job.refuses = None
    job.bounds = {name: {"parallelism": {"lowerBound": 1, "upperBound": 4}} for name in ("v1", "v2")}
    for each in drains(2, 3, decision=2):
        port.perform(each)
    assert job.uppers() == {2}
    port.perform(Grow(FLINK, (1, 2)))
    assert job.uppers() == {4}, "what its owner set, not what was before"


def test_a_minimum_of_the_owner_is_never_lowered(fake, job):
    job.bounds = {name: {"parallelism": {"lowerBound": 3, "upperBound": 6}} for name in ("v1", "v2")}
    port = looking(fake, levers=True)
    shown = test_workers.observed(port)
    assert sum(each.checkpointable for each in shown.values()) == 1, "three of four stay"
    assert isinstance(port.perform(drains(2, 3)[0]), Refused)
    assert json.dumps(job.bounds).count('"lowerBound": 3') == 2
    assert port.perform(drains(2, decision=2)[0]) == Accepted()
    assert json.dumps(job.bounds).count('"lowerBound": 3') == 2
    assert job.uppers() == {3}
