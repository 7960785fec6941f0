"""Executors of a live driver that were chosen as idle: one that has a task by then stays, the others leave.

Law: orders are written into HDFS as the daemon writes them; what came of them is read from the driver's REST.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest

from tests.live.lowered_live import LONG_MS, Executors
from tests.live.test_all_in_one import wait_until
from yarnctl.frameworks.spark.driver import SparkDriver
from yarnctl.frameworks.spark.ordering import PluginOrders, start_of
from yarnctl.frameworks.spark.rest import Executor, PluginAnswer
from yarnctl.hadoop.http.auth import Identity
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.webhdfs import WebHdfs

BUSY = 3


class Session(Executors):
    """An application of which three executors have a task that does not end, and the others none."""

    map_ms: ClassVar[tuple[int, ...]] = (1_000,) * Executors.COUNT + (LONG_MS,) * BUSY


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Session]:
    with closing(Session(tmp_path / "cluster")) as made:
        made.renew()
        yield made


def executors_of(driver: SparkDriver) -> dict[str, Executor]:
    found = driver.executors()
    assert not isinstance(found, Absent)
    return {each.executor: each for each in found if not each.is_driver}


def answer_of(driver: SparkDriver) -> tuple[int, int]:
    """Return the last order that the plugin is done with, and its executors that work."""
    found = driver.plugin_answer()
    return found if isinstance(found, PluginAnswer) else (-1, -1)


def busy_of(driver: SparkDriver) -> set[str]:
    tasks = driver.running_tasks(0, 0)
    assert not isinstance(tasks, Absent)
    return {task.executor for task in tasks}


def test_an_executor_that_has_a_task_by_the_time_its_order_is_read_stays(rig: Session) -> None:
    with Transport([rig.url]) as to:
        driver = SparkDriver(to, rig.application)
        wait_until(lambda: len(busy_of(driver)) == BUSY, "the others have ended their tasks")
        busy = min(busy_of(driver))
        first, second, *_ = sorted(executors_of(driver).keys() - busy_of(driver))
        settings = driver.settings()
        assert not isinstance(settings, Absent)
        hdfs = WebHdfs([f"http://{rig.submitter.webhdfs()}"], Identity(user="yarnctl"))
        orders, start = PluginOrders(hdfs, "/yarnctl/requests", 1), start_of(settings)

        assert orders.leave(rig.application, start, [first, busy, second], "d1", idle=True)
        wait_until(lambda: answer_of(driver)[0] == 1, "the order is read")
        assert answer_of(driver) == (1, rig.COUNT - 2), "the driver lowered its number by those that leave"
        wait_until(lambda: sum(each.is_active for each in executors_of(driver).values()) == 5, "two left")
        told = executors_of(driver)
        assert told[busy].is_active
        assert busy in busy_of(driver), "its task runs on"
        assert {told[name].remove_reason for name in (first, second)} == {"Executor killed by driver."}

        orders.back(rig.application, start, ["d1"])
        wait_until(lambda: answer_of(driver) == (2, rig.COUNT), "as many work as before")
        assert sum(each.is_active for each in executors_of(driver).values()) == rig.COUNT
