"""Schemes: the ways to share one cluster between production and research that are compared.

Law: a scheme is data. Everything that differs between two schemes stands in its record, so
that a comparison changes nothing else.
"""

from __future__ import annotations

import msgspec

from emulator.cluster.entities import QueueConfig
from emulator.cluster.preemption import TUNED, PreemptionConfig


class Scheme(msgspec.Struct, frozen=True, kw_only=True):
    """``alone``: each class has the cluster for itself. ``caps``: queues have the caps as their
    guarantee (else the shares), ``hard``: and cannot grow beyond. ``eviction``: yarnctl's
    controller runs and does this to its picks. ``preemption``: YARN's own policy runs.
    """

    name: str
    what: str
    alone: bool = False
    caps: bool = False
    hard: bool = False
    eviction: str | None = None
    preemption: PreemptionConfig | None = None


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
    )
}


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
            hurried=name == "production",
        )
        for name, ratio in zip(("production", "research"), ratios, strict=True)
    )
