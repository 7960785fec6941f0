"""Settings of a live ResourceManager, and its queues from a command line.

Spans are ms of kernel time unless a name says wall time; defaults are those of an unmodified Hadoop 3 with
the two queues of ``hadoop-conf/dual-queue``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from emulator.cluster.entities import NodeLabel, ParentConfig, QueueConfig
from emulator.cluster.preemption import PreemptionConfig
from emulator.cluster.timing import HADOOP3, Timing
from emulator.scenario.scheduler_file import is_queue_name
from yarnctl.errors import BadInput
from yarnctl.units import NOTHING, Resources

AM_RATIO = 0.5

QUEUES: tuple[QueueConfig, ...] = (
    QueueConfig(name="production", capacity_ratio=0.95, am_ratio=0.5, preempting=True),
    QueueConfig(name="research", capacity_ratio=0.05, am_ratio=0.5),
)


class ManagerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a live ResourceManager.

    ``parents`` and ``keys``: where the queues come from a capacity-scheduler.xml, the parents and all keys.
    ``labels`` go to the nodes in the order in which they register first. ``types``: the resource types beside
    memory and vcores, and how many of each every node has; only with ``parents``.
    ``silence_floor_ms``: a gap between heartbeats shorter than this in *wall* time is no loss, at any speed.
    ``linger_ms``: how long an AM may run after it unregistered. ``finished_kept``: as YARN's
    max-completed-applications. ``seed`` draws the phases of nodes that name none. ``preemption``: YARN's own
    preemption runs (None: its monitor is off).
    """

    queues: tuple[QueueConfig, ...] = QUEUES
    parents: tuple[ParentConfig, ...] = ()
    keys: Mapping[str, str] = {}
    labels: tuple[NodeLabel, ...] = ()
    types: Mapping[str, int] = {}
    timing: Timing = HADOOP3
    max_attempts: int = 2
    am_expiry_ms: int = 60_000
    silence_floor_ms: int = 3000
    linger_ms: int = 10_000
    finished_kept: int = 1000
    max_priority: int = 10
    seed: int = 1
    preemption: PreemptionConfig | None = None


def queues_of_text(text: str) -> tuple[QueueConfig, ...]:
    """Return the queues of ``name=share,name=share`` (percent); the first is the preempting one."""
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, equals, share = part.strip().partition("=")
        if not equals or not is_queue_name(name):
            raise BadInput(
                "--queues", f"{part[:60]!r} is not NAME=SHARE", "use for example production=95,research=5"
            )
        if name in shares:
            raise BadInput("--queues", f"{name} is named twice", "name each queue once")
        shares[name] = _ratio("--queues", share, 100)
    _check_sum("--queues", shares)
    return tuple(
        QueueConfig(name=name, capacity_ratio=share, am_ratio=AM_RATIO, preempting=at == 0)
        for at, (name, share) in enumerate(shares.items())
    )


def others_in(types: Sequence[str], amounts: Mapping[str, int]) -> Resources:
    """Return amounts by resource type as the scheduler's vector, without memory and vcores."""
    return Resources(0, 0, *(amounts.get(name, 0) for name in types)) if amounts else NOTHING


def labels_of_text(text: str) -> tuple[NodeLabel, ...]:
    """Return the node labels of ``NAME:NODES,NAME:NODES:shared``. Raises BadInput."""
    found: dict[str, NodeLabel] = {}
    for part in text.split(","):
        name, _, rest = part.strip().partition(":")
        count, _, kind = rest.partition(":")
        if not is_queue_name(name) or not (count.isascii() and count.isdigit() and len(count) < 6):
            raise BadInput(
                "--node-labels", f"{part[:60]!r} is not NAME:NODES", "use for example gpu:2,ne:1:shared"
            )
        if kind not in ("", "shared") or name in found:
            problem = f"{part[:60]!r} is named twice, or is neither exclusive nor shared"
            raise BadInput("--node-labels", problem, "name each label once; add :shared or nothing")
        found[name] = NodeLabel(name=name, nodes=int(count), exclusive=not kind)
    return tuple(found.values())


def _number(where: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(where, f"{text[:60]!r} is not a number") from None


def _ratio(where: str, text: str, whole: float) -> float:
    number = _number(where, text)
    if not 0 <= number <= whole:
        raise BadInput(where, f"{text} is not between 0 and {whole:g}", "give a share of the cluster")
    return number / whole


def _check_sum(where: str, shares: Mapping[str, float]) -> None:
    total = sum(shares.values()) * 100
    if abs(total - 100) > 1e-3:
        raise BadInput(where, f"shares add up to {total:g}", "use shares that add up to 100")
