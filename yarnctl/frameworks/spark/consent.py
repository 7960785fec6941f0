"""Decide which Spark applications may have executors drained, by a tag and their driver's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.eligibility.settings_reader import SHOWN_MAX, Drainable
from yarnctl.deciding.reasons.eligibility import (
    EligibilityReason,
    NoDrainTag,
    SettingForbidsDrain,
    SparkTooOld,
)
from yarnctl.frameworks.spark.configuration import (
    ARCHIVES,
    ATTEMPTS,
    ATTEMPTS_OF_SPARK,
    BLOCKS_MAX,
    FALLBACK,
    FILES,
    FORCE_KILL,
    LEAST_VERSION,
    OF_R,
    PLUGIN,
    PLUGINS,
    REQUESTS,
    REQUESTS_OWNER,
    REQUIRED,
    REQUIRED_BY_SIGNAL,
    TRAP,
    BlockPlaces,
    Route,
    dynamic_minimum,
    is_as_needed,
    leaves_whole,
    no_signal_options,
    places_in,
    route_of,
    ships_trap,
    version_of,
)
from yarnctl.frameworks.spark.driver import SparkDriver
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.wire.tags import charges_bound, min_executors_of

CHARGES_BOUND = "charges_bound"  # The trait of an application that is charged the bound of its loss
LEAVES_IDLE = (
    "leaves_idle"  # While no executor has work, all may leave: Spark requests them with the next task
)


def judge(
    tags: Sequence[str], settings: Mapping[str, str], version: str, requests: str, owner: str
) -> Drainable | EligibilityReason:
    """Return how executors may be drained, or why not; ``requests``, ``owner``: of orders to a plugin."""
    route = route_of(tags)
    if route is None:
        return NoDrainTag()
    if version_of(version) < LEAST_VERSION:
        return SparkTooOld(version[:SHOWN_MAX])
    by_plugin = {REQUESTS: requests, REQUESTS_OWNER: owner}
    needed = {**REQUIRED, **(REQUIRED_BY_SIGNAL if route == "signal" else by_plugin)}
    for name, value in needed.items():
        found = settings.get(name, "")
        if not is_as_needed(found, value):
            return SettingForbidsDrain(name, found[:SHOWN_MAX], value)
    if lossy := _setting_that_loses(settings, route):
        return lossy
    if route == "signal" and not ships_trap(settings):
        return SettingForbidsDrain(FILES, settings.get(FILES, "")[:SHOWN_MAX], f"{TRAP} among them")
    if route == "plugin" and PLUGIN not in settings.get(PLUGINS, "").split(","):
        return SettingForbidsDrain(PLUGINS, settings.get(PLUGINS, "")[:SHOWN_MAX], PLUGIN)
    keep = min_executors_of(tags)
    places = places_in(settings, route, version)
    traits = {name for name, holds in places._asdict().items() if holds}
    traits |= {CHARGES_BOUND} if charges_bound(tags) else set()
    minimum = dynamic_minimum(settings)
    if route == "plugin" and minimum is not None:
        traits |= {LEAVES_IDLE} if places.removes_idle and minimum == 0 and keep == 1 else set()
        keep = max(keep, minimum)
    keep = 0 if keep == 1 and not minimum and leaves_whole(settings, route) else keep
    return Drainable(route, keep, traits=frozenset(traits))


def _setting_that_loses(settings: Mapping[str, str], route: Route) -> SettingForbidsDrain | None:
    """Return the setting with which a drain loses work, or ends tasks or the job."""
    if FORCE_KILL in settings:
        needed_here = "no limit, because Spark kills an executor that reaches it"
        return SettingForbidsDrain(FORCE_KILL, settings[FORCE_KILL][:SHOWN_MAX], needed_here)
    if BLOCKS_MAX in settings and not settings.get(FALLBACK):
        needed_here = "no limit, because blocks that exceed it are lost"
        return SettingForbidsDrain(BLOCKS_MAX, settings[BLOCKS_MAX][:SHOWN_MAX], needed_here)
    attempts = settings.get(ATTEMPTS, "").strip()
    if attempts and not (attempts.isdecimal() and int(attempts[:9]) >= ATTEMPTS_OF_SPARK):
        needed_here = f"at least {ATTEMPTS_OF_SPARK}, because a drain can repeat a stage"
        return SettingForbidsDrain(ATTEMPTS, attempts[:SHOWN_MAX], needed_here)
    if route == "signal" and (odd := no_signal_options(settings)):
        return SettingForbidsDrain(odd[0], settings[odd[0]][:SHOWN_MAX], "no -Xrs")
    if route == "signal" and OF_R in settings.get(ARCHIVES, ""):
        needed_here = "no package of R, because the signal ends its processes"
        return SettingForbidsDrain(ARCHIVES, settings[ARCHIVES][:SHOWN_MAX], needed_here)
    return None


def places_of(drainable: Drainable) -> BlockPlaces:
    """Return where shuffle blocks of an application go."""
    return BlockPlaces(*(name in drainable.traits for name in BlockPlaces._fields))


class SparkConsent:
    """Reads a driver's settings and applies the rules to them."""

    def __init__(self, attachment: Attachment, driver: Callable[[str], SparkDriver]) -> None:
        self._requests, self._owner = attachment.requests_root.rstrip("/"), attachment.requests_owner
        self._driver = driver

    def is_tagged(self, tags: Sequence[str]) -> bool:
        """Return whether the submitter's tags allow draining."""
        return route_of(tags) is not None

    def judge(self, application: str, tags: Sequence[str]) -> Drainable | EligibilityReason | Absent:
        """Return how executors may be drained, or why not; Absent: the driver gave no answer."""
        driver = self._driver(application)
        settings = driver.settings()
        if isinstance(settings, Absent):
            return settings
        version = driver.version()
        if isinstance(version, Absent):
            return version
        return judge(tags, settings, version, self._requests, self._owner)
