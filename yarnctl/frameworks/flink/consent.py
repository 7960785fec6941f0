"""Decide which Flink jobs may be rescaled, by a tag and their JobManager's settings.

Only the adaptive scheduler can be rescaled. With Flink's default time-outs workers leave after a minute and a
half (docs/facts/flink.md, 3 and 4). ``observing`` checks each time that the job has a
checkpoint from which it can resume.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from yarnctl.attach.eligibility.settings_reader import SHOWN_MAX, Drainable
from yarnctl.deciding.reasons.eligibility import EligibilityReason, NoDrainTag, SettingForbidsDrain
from yarnctl.frameworks.flink.job_manager import JobManager
from yarnctl.frameworks.flink.rest import (
    ADAPTIVE,
    CHECKPOINTS,
    DELAY,
    GONE,
    IDLE,
    ROUTE,
    SCHEDULER,
    TIMEOUT,
    TIMEOUT_MAX_MS,
    duration_ms,
)
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.wire.tags import min_executors_of, routes_in

SAVES_FIRST = "saves-first"  # The trait of a job whose rescales wait until a checkpoint has completed
ORDER_MS = 1_500  # From the order to idle slots, and from the last time-out until YARN shows it


def judge(tags: Sequence[str], settings: Mapping[str, str], major: int = 1) -> Drainable | EligibilityReason:
    """Return how a job may be rescaled, or why not, by its tags, its JobManager's settings and version."""
    if ROUTE not in routes_in(tags):
        return NoDrainTag()
    scheduler = settings.get(SCHEDULER, "")
    if scheduler.strip().lower() != ADAPTIVE:
        return SettingForbidsDrain(SCHEDULER, scheduler[:SHOWN_MAX], ADAPTIVE)
    for name in (IDLE, GONE):
        if not 0 <= duration_ms(settings.get(name, "")) <= TIMEOUT_MAX_MS:
            return SettingForbidsDrain(name, settings.get(name, "")[:SHOWN_MAX], TIMEOUT)
    # Flink checks each time-out once per its own length, so it takes one to two times that.
    waits_ms = duration_ms(settings[IDLE]) + duration_ms(settings[GONE])
    room_in_ms, least = waits_ms * 3 // 2 + ORDER_MS, min_executors_of(tags)
    interval_ms, delay_ms = (duration_ms(settings.get(name, "")) for name in (CHECKPOINTS, DELAY))
    if major < 2 or delay_ms < 0 or interval_ms < 0:
        return Drainable(ROUTE, least, room_in_ms)
    room_in_ms += min(interval_ms, delay_ms)
    traits = {SAVES_FIRST} if interval_ms <= delay_ms else set()
    return Drainable(ROUTE, least, room_in_ms, frozenset(traits))


class FlinkConsent:
    """Reads a JobManager's settings and applies the rules to them."""

    def __init__(self, job_manager: Callable[[str], JobManager]) -> None:
        self._job_manager = job_manager

    def is_tagged(self, tags: Sequence[str]) -> bool:
        """Return whether the submitter's tags allow rescaling."""
        return ROUTE in routes_in(tags)

    def judge(self, application: str, tags: Sequence[str]) -> Drainable | EligibilityReason | Absent:
        """Return how a job may be rescaled, or why not; Absent: the JobManager gave no answer."""
        manager = self._job_manager(application)
        settings, config = manager.settings(), manager.config()
        if isinstance(settings, Absent):
            return settings
        # Without a version workers are taken to leave as soon as with 1.x.
        return judge(tags, settings, 1 if isinstance(config, Absent) else config.major)
