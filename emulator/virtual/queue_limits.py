"""Limits of the two queues that every scheme has, beyond what the scheme itself gives them.

Law: a limit never gives more than the scheme: a maximum is the smaller of the two.
"""

from __future__ import annotations

from typing import Any

import msgspec

from emulator.cluster.entities import QueueConfig


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What differs for the queue ``name``, as in ``QueueConfig`` (None: as it was)."""

    name: str
    maximum_ratio: float | None = None
    am_ratio: float | None = None
    user_limit_factor: float | None = None


def limited(queues: tuple[QueueConfig, ...], limits: tuple[QueueLimits, ...]) -> tuple[QueueConfig, ...]:
    """Return the queues under their limits; a limit of a queue that is not there is left out."""
    by_name = {each.name: each for each in limits}
    return tuple(_limited(queue, by_name[queue.name]) if queue.name in by_name else queue for queue in queues)


def _limited(queue: QueueConfig, limits: QueueLimits) -> QueueConfig:
    changed: dict[str, Any] = {}
    if limits.maximum_ratio is not None:
        changed["maximum_ratio"] = min(queue.maximum_ratio, limits.maximum_ratio)
    if limits.am_ratio is not None:
        changed["am_ratio"] = limits.am_ratio
    if limits.user_limit_factor is not None:
        changed["user_limit_factor"] = limits.user_limit_factor
    return msgspec.structs.replace(queue, **changed)
