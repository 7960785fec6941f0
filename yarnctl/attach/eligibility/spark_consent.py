"""Which applications of Spark let their executors be asked to leave: a tag, and what their driver says.

Law: as of ``executor_reader``. Settings of a driver are fixed when it starts (docs/facts/spark.md, 2 and 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.eligibility.executor_reader import SHOWN_MAX, Drainable
from yarnctl.deciding.reasons.eligibility import (
    EligibilityReason,
    NoDrainTag,
    SettingForbidsDrain,
    SparkTooOld,
)
from yarnctl.hadoop.app_master import Absent
from yarnctl.hadoop.spark_driver import SparkDriver
from yarnctl.hadoop.wire.drain_tags import min_executors_of
from yarnctl.hadoop.wire.spark_rest import (
    FORCE_KILL,
    LEAST_VERSION,
    PLUGIN,
    PLUGINS,
    REQUESTS,
    REQUESTS_OWNER,
    REQUIRED,
    REQUIRED_BY_SIGNAL,
    leaves_whole,
    no_signal_options,
    route_of,
    version_of,
)


class DriverSays(NamedTuple):
    """What a driver says of itself."""

    settings: Mapping[str, str]
    version: str


def judge(
    tags: Iterable[str], driver: DriverSays, requests: str, owner: str
) -> Drainable | EligibilityReason:
    """Return whether executors of an application may be asked, by its tags and its driver's settings.

    ``requests`` and ``owner``: where we write orders to a plugin, and the account that we are there.
    """
    named = tuple(tags)
    route = route_of(named)
    if route is None:
        return NoDrainTag()
    if version_of(driver.version) < LEAST_VERSION:
        return SparkTooOld(driver.version[:SHOWN_MAX])
    ours = {REQUESTS: requests, REQUESTS_OWNER: owner}
    needed = {**REQUIRED, **(REQUIRED_BY_SIGNAL if route == "signal" else ours)}
    for name, value in needed.items():
        said = driver.settings.get(name, "")
        if said.strip().lower() != value.lower():
            return SettingForbidsDrain(name, said[:SHOWN_MAX], value)
    if FORCE_KILL in driver.settings:
        needed_here = "no such limit: Spark kills what has not left by then"
        return SettingForbidsDrain(FORCE_KILL, driver.settings[FORCE_KILL][:SHOWN_MAX], needed_here)
    if route == "signal" and (odd := no_signal_options(driver.settings)):
        return SettingForbidsDrain(odd[0], driver.settings[odd[0]][:SHOWN_MAX], "no -Xrs")
    if route == "plugin" and PLUGIN not in driver.settings.get(PLUGINS, "").split(","):
        return SettingForbidsDrain(PLUGINS, driver.settings.get(PLUGINS, "")[:SHOWN_MAX], PLUGIN)
    keep = min_executors_of(named)
    return Drainable(route, 0 if keep == 1 and leaves_whole(driver.settings, route) else keep)


class SparkConsent:
    """Reads what a driver says, and judges it."""

    def __init__(self, settings: Attachment, driver: Callable[[str], SparkDriver]) -> None:
        self._requests, self._owner = settings.requests_root.rstrip("/"), settings.requests_owner
        self._driver = driver

    def is_tagged(self, tags: Sequence[str]) -> bool:
        """Return whether the submitter's tags allow that executors are asked."""
        return route_of(tags) is not None

    def judge(self, application: str, tags: Sequence[str]) -> Drainable | EligibilityReason | Absent:
        """Return whether executors of an application may be asked; Absent: its driver did not say."""
        driver = self._driver(application)
        settings = driver.settings()
        if isinstance(settings, Absent):
            return settings
        version = driver.version()
        if isinstance(version, Absent):
            return version
        return judge(tags, DriverSays(settings, version), self._requests, self._owner)
