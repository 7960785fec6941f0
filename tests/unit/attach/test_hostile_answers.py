"""Whatever an application's own program answers hides that application, and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster, application, attempt, container, task
from tests.unit.attach.test_executors import SPARK, Driver
from tests.unit.attach.test_performing import looking
from tests.unit.attach.test_workers import FLINK, JobMaster
from tests.unit.hadoop.replaying import Reply
from yarnctl.attach.history import fitting
from yarnctl.deciding.model import Observation, ObservationRequest
from yarnctl.deciding.order import Order
from yarnctl.hadoop.wire.mapreduce import MAP_LIMIT
from yarnctl.hadoop.wire.spark_rest import QUANTILES
from yarnctl.units import times

HONEST = application(1)
TOO_LONG = "9" * 5000
"""Python reads no whole number of so many digits."""


@pytest.fixture
def fake():
    """An honest MapReduce job holds three reduces, and production waits."""
    with FakeCluster() as found:
        found.nodes = {"n1:1": times(SLOT, 8), "n2:1": times(SLOT, 8)}
        found.research(1, ["n1:1", "n1:1", "n2:1", "n2:1"])
        found.add(App(2, "production", state="ACCEPTED", user="bob", asks=[(0, SLOT, 1)]))
        yield found


def observe(port, *victims: str) -> Observation:
    """Look twice, as a daemon does: settings are read by the first look."""
    port.observe(ObservationRequest())
    return port.observe(ObservationRequest(victims=(HONEST, *victims)))


def is_whole(seen: Observation) -> bool:
    """Return whether the cluster and the honest job were seen."""
    return seen.cluster == "seen" and len(seen.tasks.get(HONEST, ())) == 3


class Summarising(Driver):
    """A driver with an active stage, one running task, and quantiles of its own."""

    quantiles: Mapping[str, Any] = {}

    def __init__(self, fake: FakeCluster) -> None:
        super().__init__(fake)
        self.stages = [
            {"stageId": 2, "status": "ACTIVE", "numTasks": 9, "numActiveTasks": 1, "numCompleteTasks": 3}
        ]

    def answer(self, path: str, query: Mapping[str, str]) -> Reply | None:
        if path.endswith("/taskSummary"):
            return Reply(json.dumps(self.quantiles))
        if path.endswith("/taskList"):
            launched = "2023-11-14T22:29:59.000GMT"
            return Reply(json.dumps([{"executorId": "1", "status": "RUNNING", "launchTime": launched}]))
        return super().answer(path, query)


@pytest.mark.xfail(strict=True, raises=OverflowError)
def test_observe_spark_quantiles_beyond_all_bounds_hide_the_driver_alone(fake):
    driver = Summarising(fake)
    driver.quantiles = {"executorRunTime": [1e308, 1e308], "executorDeserializeTime": [1e308, 1e308]}
    seen = observe(looking(fake, levers=True), SPARK)
    assert is_whole(seen)
    assert seen.unreachable == (SPARK,)


@pytest.mark.xfail(strict=True)
@pytest.mark.parametrize("value", [1e308, -1.0, True, 2**63, 10**30])
def test_decode_spark_quantiles_rejects_what_is_no_span(value):
    from yarnctl.hadoop.wire.decoders import Unreadable

    with pytest.raises(Unreadable):
        QUANTILES.read(json.dumps({"executorRunTime": [5.0, value]}).encode())


@pytest.mark.xfail(strict=True, raises=ValueError)
def test_poll_resumed_task_an_attempt_with_an_endless_number_hides_nothing(fake):
    port = looking(fake)
    port.expect([suspended_order()])
    fake.apps[HONEST].tasks[task(1, 1)].append(
        fake.running(1, 1, 2) | {"id": attempt(1, 1)[:-1] + TOO_LONG, "container": "x"}
    )
    fake.now_ms += 10_000
    assert is_whole(observe(port))


def suspended_order() -> Order:
    return Order(
        order="o-1",
        asker=application(2),
        victim=HONEST,
        attempt=attempt(1, 1),
        container=container(1, 2),
        node="n1:1",
        size=SLOT,
        ask=SLOT,
        serves=1,
        group="g",
        generation=1,
        verb="suspend",
        decision=1,
        asked_at_ms=0,
        progress_at_ms=0,
    )


@pytest.mark.xfail(strict=True)
@pytest.mark.parametrize(
    "row",
    [
        {"id": "1" * 100_000},  # it becomes a part of names, which are written down
        {"id": "\ud800"},  # no text that can be written
        {"id": "8"},  # two executors in one container
    ],
)
def test_observe_spark_executors_of_impossible_names_are_not_shown(fake, row):
    driver = Driver(fake)
    driver.rows.append(driver._row("9", container(7, 3)) | row)
    seen = observe(looking(fake, levers=True), SPARK)
    assert is_whole(seen)
    shown = seen.tasks.get(SPARK, ())
    assert len({each.container for each in shown}) == len(shown)
    assert all(len(each.attempt.encode()) < 100 for each in shown)


@pytest.mark.xfail(strict=True)
def test_observe_flink_a_worker_named_twice_hides_the_job(fake):
    job = JobMaster(fake)
    job.managers[-1] = job.managers[0]
    seen = observe(looking(fake, levers=True), FLINK)
    assert is_whole(seen)
    assert seen.unreachable == (FLINK,)


@pytest.mark.xfail(strict=True)
def test_slow_driver_does_not_hold_up_the_look_at_others(fake):
    """The driver answers when the look is over, and not before; the honest job is seen meanwhile."""
    driver, over = Driver(fake), threading.Event()
    port = looking(fake, levers=True)
    observe(port, SPARK)
    waited_out = []
    usual = driver.answer

    def answer(path: str, query: Mapping[str, str]) -> Reply | None:
        if not over.wait(1):
            waited_out.append(path)
        return usual(path, query)

    fake.drivers[SPARK] = answer
    seen = port.observe(ObservationRequest(victims=(HONEST, SPARK)))
    over.set()
    assert is_whole(seen)
    assert waited_out == []


@pytest.mark.xfail(strict=True, raises=ValueError)
def test_history_a_limit_of_endless_digits_is_none():
    assert fitting.limited({MAP_LIMIT: TOO_LONG}, maps=5, reduces=1) == 6
