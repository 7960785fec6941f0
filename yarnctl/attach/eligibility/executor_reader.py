"""Which applications of Spark let their executors be asked to leave: a tag, and what their driver says.

Law: the submitter's tag allows it, and the driver's own settings must show what the tag promises: a setting
that does not hold, or cannot be read, leaves the application alone with the reason. Settings of a driver are
fixed when it starts, so the answer holds for the application's life (docs/facts/spark.md, 2 and 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from yarnctl.attach.connection.connection import Connection, Problem
from yarnctl.deciding.reasons.eligibility import (
    ConfigurationUnread,
    ConfigurationUnreadable,
    EligibilityReason,
    InNoVictimQueue,
    NoDrainTag,
    SettingForbidsDrain,
    SparkTooOld,
)
from yarnctl.hadoop.app_master import Absent
from yarnctl.hadoop.spark_driver import SparkDriver
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.mapreduce import tags_in
from yarnctl.hadoop.wire.spark_rest import (
    KIND,
    LEAST_VERSION,
    PLUGIN,
    PLUGINS,
    REQUESTS,
    REQUESTS_OWNER,
    REQUIRED,
    REQUIRED_BY_SIGNAL,
    Route,
    leaves_whole,
    min_executors_of,
    no_signal_options,
    route_of,
    version_of,
)

NOT_YET = ConfigurationUnread()
SHOWN_MAX = 80
"""So much of a setting is repeated: its application's owner wrote it."""


class Drainable(NamedTuple):
    """How the executors of an application are asked, and how many of them stay (0: it is suspended whole)."""

    route: Route
    min_executors: int


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
    if route == "signal" and (odd := no_signal_options(driver.settings)):
        return SettingForbidsDrain(odd[0], driver.settings[odd[0]][:SHOWN_MAX], "no -Xrs")
    if route == "plugin" and PLUGIN not in driver.settings.get(PLUGINS, "").split(","):
        return SettingForbidsDrain(PLUGINS, driver.settings.get(PLUGINS, "")[:SHOWN_MAX], PLUGIN)
    keep = min_executors_of(named)
    return Drainable(route, 0 if keep == 1 and leaves_whole(driver.settings, route) else keep)


class ExecutorReader:
    """Keeps the answers; ``reasons`` (shared with other frameworks) has why an application is left alone."""

    def __init__(
        self,
        link: Connection,
        driver: Callable[[str], SparkDriver],
        reasons: dict[str, EligibilityReason],
    ) -> None:
        self._link = link
        self._settings = link.settings
        self._requests = link.settings.requests_root.rstrip("/")
        self._driver = driver
        self.drainable: dict[str, Drainable] = {}
        self.reasons = reasons
        self._settled: set[str] = set()
        self._unread: dict[str, yarn.AppInfo] = {}
        self._again_at_ms: dict[str, int] = {}

    def read_some(self, rows: Iterable[yarn.AppInfo]) -> None:
        """Read the settings of a few drivers not read yet, of tagged applications that may be preempted."""
        for row in rows:
            name = row.application
            if row.kind.upper() != KIND or name in self._settled:
                continue
            self._unread.pop(name, None)
            if not self._settings.may_give(row.queue):
                self.reasons[name] = InNoVictimQueue()
            elif route_of(tags_in(row.tags)) is None:
                self.reasons[name] = NoDrainTag()
            else:
                self.reasons.setdefault(name, NOT_YET)
                self._unread[name] = row
        now_ms, again = self._link.clock(), self._again_at_ms
        due = [row for row in self._unread.values() if now_ms >= again.get(row.application, 0)]
        due.sort(key=lambda row: (-row.containers, len(row.application), row.application))
        self._read({row.application: row for row in due[: self._settings.eligibility_reads_max]})

    def judged(self, row: yarn.AppInfo) -> Drainable | EligibilityReason:
        """Return an application's answer, reading its driver's settings if need be."""
        if row.application not in self._settled:
            self._read({row.application: row})
        found = self.drainable.get(row.application)
        return self.reasons.get(row.application, NOT_YET) if found is None else found

    def is_settled(self, application: str) -> bool:
        """Return whether a driver's settings have been read and judged."""
        return application in self._settled

    def _read(self, rows: Mapping[str, yarn.AppInfo]) -> None:
        for name, said in self._link.calls.each(self._ask, rows).items():
            if isinstance(said, Problem | Absent):
                told = said.why if isinstance(said, Absent) else str(said)
                self.reasons[name] = ConfigurationUnreadable(told[:200])
                self._again_at_ms[name] = self._link.clock() + self._settings.eligibility_retry_ms
                continue
            self._settled.add(name)
            self._unread.pop(name, None)
            found = judge(tags_in(rows[name].tags), said, self._requests, self._settings.requests_owner)
            if isinstance(found, Drainable):
                self.drainable[name] = found
                self.reasons.pop(name, None)
            else:
                self.reasons[name] = found

    def _ask(self, application: str) -> DriverSays | Absent:
        driver = self._driver(application)
        settings = driver.settings()
        if isinstance(settings, Absent):
            return settings
        version = driver.version()
        return version if isinstance(version, Absent) else DriverSays(settings, version)

    def drop(self, applications: Iterable[str]) -> None:
        """Drop applications that have ended."""
        for name in applications:
            self.drainable.pop(name, None)
            self.reasons.pop(name, None)
            self._settled.discard(name)
            self._unread.pop(name, None)
            self._again_at_ms.pop(name, None)
