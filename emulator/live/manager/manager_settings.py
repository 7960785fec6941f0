"""Settings of a live ResourceManager, and its queues from a command line or a capacity-scheduler.xml.

Spans are ms of kernel time unless a name says wall time; defaults are those of an unmodified Hadoop 3 with
the two queues of ``hadoop-conf/dual-queue``. What the scheduler cannot do is refused with file and key: it
has one level of queues under root, shares in percent that add up to 100.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from emulator.cluster.entities import QueueConfig
from emulator.cluster.timing import HADOOP3, Timing
from yarnctl.errors import BadInput

PREFIX = "yarn.scheduler.capacity."
AM_RATIO = 0.5
LARGEST_FILE_BYTES = 1 << 20

QUEUES: tuple[QueueConfig, ...] = (
    QueueConfig(name="production", capacity_ratio=0.95, am_ratio=0.5, preempting=True),
    QueueConfig(name="research", capacity_ratio=0.05, am_ratio=0.5),
)


class ManagerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a live ResourceManager.

    ``silence_floor_ms``: a gap between heartbeats shorter than this in *wall* time is no loss, at any speed.
    ``linger_ms``: how long an AM may run after it unregistered. ``finished_kept``: as YARN's
    max-completed-applications. ``seed`` draws the phases of nodes that name none.
    """

    queues: tuple[QueueConfig, ...] = QUEUES
    timing: Timing = HADOOP3
    max_attempts: int = 2
    am_expiry_ms: int = 60_000
    silence_floor_ms: int = 3000
    linger_ms: int = 10_000
    finished_kept: int = 1000
    max_priority: int = 10
    seed: int = 1


def queues_of_text(text: str) -> tuple[QueueConfig, ...]:
    """Return the queues of ``name=share,name=share`` (percent); the first is the preempting one."""
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, equals, share = part.strip().partition("=")
        if not equals or not _is_name(name):
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


def queues_of_file(path: Path) -> tuple[QueueConfig, ...]:
    """Return the queues of a capacity-scheduler.xml; that of the highest priority is the preempting one."""
    entries = read_properties(path)

    def said(queue: str, key: str, default: str) -> str:
        return entries.get(f"{PREFIX}root.{queue}.{key}", default)

    names = [name.strip() for name in entries.get(f"{PREFIX}root.queues", "").split(",") if name.strip()]
    if not names:
        raise BadInput(f"{path}: {PREFIX}root.queues", "names no queue", "name the leaf queues under root")
    general = entries.get(f"{PREFIX}maximum-am-resource-percent", "0.1")
    shares = {}
    for name in names:
        where = f"{path}: {PREFIX}root.{name}"
        if not _is_name(name) or f"{PREFIX}root.{name}.queues" in entries:
            raise BadInput(
                where, "is not a leaf under root", "use one level of queues; the emulator has no more"
            )
        shares[name] = _ratio(f"{where}.capacity", said(name, "capacity", ""), 100)
    _check_sum(f"{path}: capacities", shares)
    priorities = {name: _number(f"{path}: priority of {name}", said(name, "priority", "0")) for name in names}
    first = max(names, key=lambda name: (priorities[name], shares[name]))
    return tuple(
        QueueConfig(
            name=name,
            capacity_ratio=shares[name],
            maximum_ratio=_ratio(f"{path}: maximum-capacity", said(name, "maximum-capacity", "100"), 100),
            am_ratio=_ratio(f"{path}: AM share", said(name, "maximum-am-resource-percent", general), 1),
            user_limit_factor=_factor(path, said(name, "user-limit-factor", "1")),
            preempting=name == first,
        )
        for name in names
    )


def read_properties(path: Path) -> Mapping[str, str]:
    """Return a site file's entries. Raises BadInput."""
    data = path.read_bytes()
    if len(data) > LARGEST_FILE_BYTES:
        raise BadInput(str(path), f"larger than {LARGEST_FILE_BYTES} bytes", "give a capacity-scheduler.xml")
    if b"<!ENTITY" in data or b"<!DOCTYPE" in data:
        raise BadInput(str(path), "has a document type", "remove it")
    try:
        root = ElementTree.fromstring(data)  # noqa: S314  # no entities: see above
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise BadInput(str(path), f"is not XML ({error})", "give a capacity-scheduler.xml") from None
    return {
        (one.findtext("name") or "").strip(): (one.findtext("value") or "").strip()
        for one in root.iterfind("property")
    }


def _is_name(name: str) -> bool:
    return bool(name) and name.isascii() and name.replace("-", "").replace("_", "").isalnum()


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


def _factor(path: Path, text: str) -> float | None:
    factor = _number(f"{path}: user-limit-factor", text)
    return None if factor < 0 else factor


def _check_sum(where: str, shares: Mapping[str, float]) -> None:
    total = sum(shares.values()) * 100
    if abs(total - 100) > 1e-3:
        raise BadInput(where, f"shares add up to {total:g}", "use shares that add up to 100")
