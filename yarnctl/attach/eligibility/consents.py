"""The rules by which executors of each framework may be drained, by YARN's application type.

Law: a plain dict. Without levers no driver is read, but executors that an earlier daemon drained are
restored.
"""

from __future__ import annotations

from collections.abc import Callable

from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.eligibility.executor_reader import Consent
from yarnctl.attach.eligibility.flink_consent import FlinkConsent
from yarnctl.attach.eligibility.spark_consent import SparkConsent
from yarnctl.hadoop.job_manager import JobManager
from yarnctl.hadoop.spark_driver import SparkDriver
from yarnctl.hadoop.wire.flink_rest import KIND as FLINK
from yarnctl.hadoop.wire.spark_rest import KIND as SPARK

DriverOf = Callable[[str], SparkDriver]
JobManagerOf = Callable[[str], JobManager]


def consents(
    settings: Attachment, driver: DriverOf | None, job_manager: JobManagerOf | None
) -> dict[str, Consent]:
    """Return the consent rules of each framework."""
    found: dict[str, Consent] = {}
    if driver is not None:
        found[SPARK] = SparkConsent(settings, driver)
    if job_manager is not None:
        found[FLINK] = FlinkConsent(job_manager)
    return found
