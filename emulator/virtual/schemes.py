"""Schemes: the ways to share one cluster between production and research that are compared.

Law: a scheme is data. Everything that differs between two schemes is in its record, so that a comparison
changes nothing else. A limit of one of the two queues never gives more than the scheme.
"""

from __future__ import annotations

from typing import Any

import msgspec

from emulator.cluster.entities import QueueConfig
from emulator.cluster.preemption import TUNED, PreemptionConfig


class Scheme(msgspec.Struct, frozen=True, kw_only=True):
    """``alone``: each class has the cluster for itself. ``caps``: queues have the caps as their guarantee
    (else the shares), ``hard``: and cannot grow beyond. ``eviction``: yarnctl's controller runs and does this
    to its picks. ``preemption``: YARN's own policy runs. ``mix``: the controller pulls the cheapest levers.
    """

    name: str
    what: str
    alone: bool = False
    caps: bool = False
    hard: bool = False
    eviction: str | None = None
    preemption: PreemptionConfig | None = None
    mix: bool = False


SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme(name="ideal", what="each class alone on the whole cluster", alone=True),
        Scheme(name="hard-cap", what="two fixed partitions", caps=True, hard=True),
        Scheme(name="soft-cap", what="elastic shares, no preemption", caps=True),
        Scheme(name="kill", what="natjam's picks, killed", eviction="kill"),
        Scheme(name="yarn", what="YARN's own preemption, defaults", preemption=PreemptionConfig()),
        Scheme(name="yarn-tuned", what="YARN's own preemption, tuned", preemption=TUNED),
        Scheme(name="natjam", what="suspend with a checkpoint, resume later", eviction="suspend"),
        Scheme(name="mix", what="the cheapest levers within a loss budget", eviction="suspend", mix=True),
    )
}


BY_DEFAULT = tuple(name for name, scheme in SCHEMES.items() if not scheme.mix)
"""The schemes of a scenario file that names none. ``mix`` is named with what it may lose."""


def queues_of(
    scheme: Scheme, shares: tuple[float, float], caps: tuple[float, float], am_ratio: float
) -> tuple[QueueConfig, ...]:
    """Return the two queues of a scheme; ``shares`` and ``caps`` are (production, research)."""
    ratios = caps if scheme.caps else shares
    return tuple(
        QueueConfig(
            name=name,
            capacity_ratio=ratio,
            maximum_ratio=ratio if scheme.hard else 1.0,
            am_ratio=am_ratio,
            preempting=name == "production",
        )
        for name, ratio in zip(("production", "research"), ratios, strict=True)
    )


class LeafLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What differs for the queue ``name``, as in ``QueueConfig`` (None: as it was)."""

    name: str
    maximum_ratio: float | None = None
    am_ratio: float | None = None
    user_limit_factor: float | None = None


def limited(queues: tuple[QueueConfig, ...], limits: tuple[LeafLimits, ...]) -> tuple[QueueConfig, ...]:
    """Return the queues under their limits; a limit of a queue that is not there is left out."""
    by_name = {each.name: each for each in limits}
    return tuple(_limited(queue, by_name[queue.name]) if queue.name in by_name else queue for queue in queues)


def _limited(queue: QueueConfig, limits: LeafLimits) -> QueueConfig:
    changed: dict[str, Any] = {}
    if limits.maximum_ratio is not None:
        changed["maximum_ratio"] = min(queue.maximum_ratio, limits.maximum_ratio)
    if limits.am_ratio is not None:
        changed["am_ratio"] = limits.am_ratio
    if limits.user_limit_factor is not None:
        changed["user_limit_factor"] = limits.user_limit_factor
    return msgspec.structs.replace(queue, **changed)
