"""Make the observers of executors of each framework, and the senders of drain orders.

Law: plain dicts by YARN's application type, of the frameworks that have an eligibility reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.consents import DriverOf, JobManagerOf
from yarnctl.attach.eligibility.executor_reader import ExecutorReader
from yarnctl.attach.eligibility.permission import Permission
from yarnctl.attach.observing.cluster_state import LiveContainers
from yarnctl.attach.observing.executors import ExecutorObserver, LeavingObserver
from yarnctl.attach.observing.flink_workers import WorkerObserver
from yarnctl.attach.orders.executor_orders import ExecutorOrders, LeavingOrders
from yarnctl.attach.orders.tracking import OrderTracking
from yarnctl.attach.orders.worker_orders import WorkerOrders
from yarnctl.hadoop.wire.flink_rest import KIND as FLINK
from yarnctl.hadoop.wire.spark_rest import KIND as SPARK


class Parts(NamedTuple):
    """The parts of a port that observers and senders of drain orders need."""

    connection: Connection
    live: LiveContainers
    tracking: OrderTracking
    permission: Permission
    readers: Mapping[str, ExecutorReader]


class LeavingParts(NamedTuple):
    """The observers and the senders of drain orders, by application type."""

    observers: dict[str, LeavingObserver]
    orders: dict[str, LeavingOrders]


def leaving(parts: Parts, driver: DriverOf | None, job_manager: JobManagerOf | None) -> LeavingParts:
    """Return observers and orders of the frameworks that have a reader."""
    found = LeavingParts({}, {})
    connection, live, tracking, permission, readers = parts
    if SPARK in readers and driver is not None:
        executors = ExecutorObserver(connection, live, readers[SPARK], driver, tracking.are_leaving)
        found.observers[SPARK] = executors
        found.orders[SPARK] = ExecutorOrders(connection, tracking, permission, executors, readers[SPARK])
    if FLINK in readers and job_manager is not None:
        found.observers[FLINK] = WorkerObserver(
            connection, live, readers[FLINK], job_manager, tracking.are_leaving
        )
        found.orders[FLINK] = WorkerOrders(connection, live, tracking, permission, job_manager)
    return found
