"""Spark sessions that hold executors without work. Pure.

An executor is busy while tasks run on it: Spark's ``totalDuration`` is the sum over its task slots. What it
held beyond that, per slot, is idle. A session whose executors leave when idle (dynamic allocation) needs a
shorter time-out, another one needs dynamic allocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from yarnctl.attach.bill.preempted import BilledJob
from yarnctl.frameworks.spark import rest

DYNAMIC = "spark.dynamicAllocation.enabled"
IDLE_TIMEOUT = "spark.dynamicAllocation.executorIdleTimeout"


class IdleSession(msgspec.Struct, frozen=True, kw_only=True):
    """One application; work in MiB-seconds. ``running``: it has not ended; ``setting`` frees the rest."""

    queue: str
    user: str
    name: str
    application: str
    running: bool
    executors: int
    held_mib_s: int
    idle_mib_s: int
    idle_ratio: float
    setting: str


def idle_session(
    job: BilledJob,
    executors: Iterable[rest.HistoryExecutor],
    memory_mib: int,
    settings: Mapping[str, str],
    now_ms: int,
) -> IdleSession | None:
    """Return what a session held, and how much of it was idle; None: it held nothing."""
    held_ms = idle_ms = count = 0
    until_ms = job.day_at_ms if job.has_ended else now_ms
    for one in executors:
        began_ms = rest.instant_ms(one.added)
        if one.executor == "driver" or began_ms < 0:
            continue
        removed_ms = rest.instant_ms(one.removed)
        span_ms = max(0, (removed_ms if removed_ms >= 0 else until_ms) - began_ms)
        count += 1
        held_ms += span_ms
        idle_ms += max(0, span_ms - one.busy_ms // max(1, one.slots or one.cores))
    if not held_ms:
        return None
    setting = f"{DYNAMIC}=true"
    if settings.get(DYNAMIC) == "true":
        setting = f"{IDLE_TIMEOUT} (now {settings.get(IDLE_TIMEOUT, '60s')})"
    return IdleSession(
        queue=job.queue,
        user=job.user,
        name=job.name,
        application=job.application,
        running=not job.has_ended,
        executors=count,
        held_mib_s=held_ms * memory_mib // 1000,
        idle_mib_s=idle_ms * memory_mib // 1000,
        idle_ratio=idle_ms / held_ms,
        setting=setting,
    )


def ranked(sessions: Iterable[IdleSession]) -> list[IdleSession]:
    """Return the sessions with idle executors, the most idle memory first."""
    found = (one for one in sessions if one.idle_mib_s)
    return sorted(found, key=lambda one: (-one.idle_mib_s, one.application))
