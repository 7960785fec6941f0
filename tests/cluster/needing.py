"""What a test needs of this machine: a real Hadoop of some version, or a skip that says why not.

Law: no silent skip. Under CI, or with YARNCTL_REQUIRE_HADOOP, what is missing is a failure.
"""

from __future__ import annotations

import os

import pytest

from tests.cluster.artifacts import NotToBeHad, jars, missing_programs, spark_home


def need_hadoop(version: str) -> None:
    """Skip the test, or fail it, if a version of Hadoop cannot be started here."""
    absent = missing_programs()
    try:
        if "java" in absent:
            raise NotToBeHad("java is not on the path (Debian: openjdk-17-jdk-headless)")
        jars(version)
    except NotToBeHad as error:
        if os.environ.get("CI") or os.environ.get("YARNCTL_REQUIRE_HADOOP"):
            pytest.fail(f"Hadoop {version} is asked for and cannot be had: {error}", pytrace=False)
        pytest.skip(f"no real Hadoop {version}: {error}")


def need_spark() -> None:
    """Skip the test, or fail it, if Spark cannot be had here."""
    try:
        spark_home()
    except NotToBeHad as error:
        if os.environ.get("CI") or os.environ.get("YARNCTL_REQUIRE_HADOOP"):
            pytest.fail(f"Spark is asked for and cannot be had: {error}", pytrace=False)
        pytest.skip(f"no Spark: {error}")
