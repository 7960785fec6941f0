"""What a test needs of this machine: a real Hadoop of some version, or a skip that says why not.

Law: no silent skip. Under CI, or with YARNCTL_REQUIRE_HADOOP, what is missing is a failure.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable

import pytest

from tests.hadoop import security
from tests.hadoop.artifacts import (
    NotToBeHad,
    flink_jars,
    jars,
    javac,
    manager_test_jar,
    missing_programs,
    spark_home,
)


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
    _need("Spark", spark_home)


def need_flink() -> None:
    """Skip the test, or fail it, if Flink cannot be had here."""
    _need("Flink", flink_jars)


def need_recorded(version: str) -> None:
    """Skip the test, or fail it, if the answers that a version's tests recorded cannot be had here."""
    _need(f"test jar of the ResourceManager {version}", lambda: manager_test_jar(version))


def need_javac() -> None:
    """Skip the test, or fail it, if there is no compiler of Java here."""
    _need("javac", javac)


def need_kerberos() -> None:
    """Skip the test, or fail it, if no secured Hadoop can be started here."""
    _need("secured Hadoop", _find_kerberos)


def _find_kerberos() -> None:
    missing = [f"{name} (Debian: krb5-kdc, krb5-user)" for name in security.missing_programs()]
    if importlib.util.find_spec("requests_gssapi") is None:
        missing.append("the package requests-gssapi (pip install 'yarnctl[kerberos]')")
    if missing:
        raise NotToBeHad(f"it needs {', '.join(missing)}")


def _need(what: str, find: Callable[[], object]) -> None:
    try:
        find()
    except NotToBeHad as error:
        if os.environ.get("CI") or os.environ.get("YARNCTL_REQUIRE_HADOOP"):
            pytest.fail(f"{what} is asked for and cannot be had: {error}", pytrace=False)
        pytest.skip(f"no {what}: {error}")
