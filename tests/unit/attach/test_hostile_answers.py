"""Whatever an application's own program answers hides that application, and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster, application, attempt, container, task
from tests.unit.attach.patience import Hangs
from tests.unit.attach.test_executors import SPARK, Driver, drain
from tests.unit.attach.test_performing import looking
from tests.unit.attach.test_workers import FLINK, JobMaster
from tests.unit.hadoop.replaying import NEVER_S, Reply
from yarnctl.attach.history import fitting
from yarnctl.deciding.model import (
    Accepted,
    Observation,
    ObservationRequest,
    Release,
    Suspend,
    Unknown,
    Withheld,
)
from yarnctl.deciding.order import Order
from yarnctl.deciding.reasons.eligibility import AnswerLate
from yarnctl.frameworks.mapreduce.rest import MAP_LIMIT
from yarnctl.frameworks.spark.rest import QUANTILES
from yarnctl.hadoop.wire.decoders import Unreadable
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


def test_observe_spark_quantiles_beyond_all_bounds_hide_the_driver_alone(fake):
    driver = Summarising(fake)
    driver.quantiles = {"executorRunTime": [1e308, 1e308], "executorDeserializeTime": [1e308, 1e308]}
    seen = observe(looking(fake, levers=True), SPARK)
    assert is_whole(seen)
    assert not any(each.checkpointable for each in seen.tasks.get(SPARK, ()))


@pytest.mark.parametrize("value", [1e308, -1.0, True, 2**63, 10**30])
def test_decode_spark_quantiles_rejects_what_is_no_span(value):
    with pytest.raises(Unreadable):
        QUANTILES.read(json.dumps({"executorRunTime": [5.0, value]}).encode())


def test_poll_resumed_task_an_attempt_with_an_endless_number_hides_nothing(fake):
    fake.research(3, ["n1:1", "n2:1"])
    port = looking(fake)
    port.expect([suspended_order()])
    rows = fake.apps[application(3)].tasks[task(3, 1)]
    rows.append(fake.running(3, 1, 2) | {"id": attempt(3, 1)[:-1] + TOO_LONG})
    fake.now_ms += 10_000
    assert is_whole(observe(port, application(3)))


def suspended_order() -> Order:
    return Order(
        order="o-1", requester=application(2), victim=application(3), attempt=attempt(3, 1),
        container=container(3, 2), node="n1:1", size=SLOT, request_size=SLOT, serves=1, group="g",
        generation=1, verb="suspend", decision=1, ordered_at_ms=0, progress_at_ms=0,
    )  # fmt: skip


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


def test_observe_flink_a_worker_named_twice_hides_the_job(fake):
    job = JobMaster(fake)
    job.managers[-1] = job.managers[0]
    seen = observe(looking(fake, levers=True), FLINK)
    assert is_whole(seen)
    assert seen.unreachable == (FLINK,)


class Hanging:
    """A driver that answers when the look is over, and not before."""

    def __init__(self, fake: FakeCluster) -> None:
        self.over = threading.Event()
        self.usual = fake.drivers[SPARK]
        fake.drivers[SPARK] = self.answer

    def answer(self, path: str, query: Mapping[str, str]) -> Reply | None:
        self.over.wait(NEVER_S)
        return self.usual(path, query)


def test_slow_driver_is_late_in_this_look_and_seen_in_the_next(fake):
    Driver(fake)
    port = looking(fake, levers=True)
    assert len(observe(port, SPARK).tasks[SPARK]) == 3
    driver, waiting = Hanging(fake), Hangs(port, SPARK)
    seen = port.observe(ObservationRequest(victims=(HONEST, SPARK)))
    assert is_whole(seen)
    assert (seen.late, seen.unreachable) == ((SPARK,), ())
    driver.over.set()
    waiting.until_idle()
    seen = port.observe(ObservationRequest(victims=(HONEST, SPARK)))
    assert is_whole(seen)
    assert len(seen.tasks[SPARK]) == 3


def test_driver_of_unknown_settings_that_is_slow_is_left_alone_with_the_reason(fake):
    Driver(fake)
    port = fake.port(levers=True)
    driver, waiting = Hanging(fake), Hangs(port, SPARK)
    assert port.observe(ObservationRequest()).cluster == "seen"
    assert port.why_not[SPARK] == AnswerLate()
    driver.over.set()
    waiting.until_idle()
    seen = observe(port, SPARK)
    assert SPARK not in port.why_not
    assert is_whole(seen)


def test_drain_a_driver_that_is_slow_is_withheld_and_sent_when_it_has_answered(fake):
    Driver(fake)
    port = looking(fake, levers=True)
    observe(port, SPARK)
    driver, waiting = Hanging(fake), Hangs(port, SPARK)
    assert port.perform(drain()) == Withheld(AnswerLate())
    driver.over.set()
    waiting.until_idle()
    assert port.perform(drain()) == Accepted()
    assert fake.changes == [f"GRACEFUL_SHUTDOWN {container(7, 2)}"]


def test_release_a_master_that_does_not_answer_the_kill_is_unknown_then_done(fake):
    """The kill is sent once; whether it was done is fetched when the master has answered."""
    port = looking(fake)
    suspend = Suspend("o-1", HONEST, attempt(1, 1), container(1, 2), 1, fake.now_ms + 60_000)
    assert port.perform(suspend) == Accepted()
    fake.save(1, 1, "o-1")
    port.observe(ObservationRequest(orders=("o-1",)))
    release, over = Release("o-1", HONEST, attempt(1, 1), container(1, 2), 1), threading.Event()
    killed = fake.on_kill

    def on_kill(name: str) -> None:
        over.wait(NEVER_S)
        killed(name)

    fake.on_kill = on_kill
    waiting = Hangs(port, HONEST, "kill")
    assert isinstance(port.perform(release), Unknown)
    over.set()
    waiting.until_idle()
    while (outcome := port.perform(release)) == Unknown(AnswerLate()):
        waiting.until_idle()  # a master that was late is not waited for
    assert outcome == Accepted()
    assert [each for each in fake.changes if each.startswith("KILL")] == [f"KILL {attempt(1, 1)}"]


def test_history_a_limit_of_endless_digits_is_none():
    assert fitting.limited({MAP_LIMIT: TOO_LONG}, maps=5, reduces=1) == 6
