"""Read ``pools.toml``: the pools in which applications are placed, each a leaf queue.

Law: a file is used completely or not at all; an unknown key or an invalid value is an error with its name.

::

    [[pool]]
    name = "spark"
    queue = "root.spark"            # applications of this pool are submitted to this queue
    kinds = ["spark"]               # accepted frameworks; none: all
    label = "large"                 # the queue's containers run on nodes with this label; else: with none
    capacity = 7                    # in containers; else: the queue's maximum capacity, of those nodes
    container_mib = 1024            # else: MapReduce's default size of a task
    cost_mtokens = 1000             # the price of a container-second
    hourly_mtokens = 14400000       # the maximum cost per hour; else: no bound
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from yarnctl.errors import BadInput

FILE_BYTES_MAX = 64 << 10
POOLS_MAX = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_QUEUE = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_KIND = re.compile(r"[a-z0-9_-]{1,40}")
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,255}")


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One pool of the file; ``capacity`` and ``container_mib`` None: measured. ``label``: "": no label."""

    name: str
    queue: str
    kinds: tuple[str, ...] = ()
    label: str = ""
    capacity: int | None = None
    container_mib: int | None = None
    cost_mtokens: int = 1000
    hourly_mtokens: int | None = None


_NUMBERS = ("capacity", "container_mib", "cost_mtokens", "hourly_mtokens")


def read_pools(path: Path) -> tuple[PoolSettings, ...]:
    """Read ``[[pool]]`` tables; raises BadInput naming file, pool and key."""
    where = f"--pools {path}"
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise BadInput(where, "the file exceeds 64 KiB", "use a file with [[pool]] tables")
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(where, f"cannot be read ({error.strerror})", "use a readable file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(where, f"invalid TOML: {error}"[:200], "use [[pool]] tables") from None
    entries = tables.get("pool")
    odd = next((name for name in tables if name != "pool"), None)
    if odd is not None:
        raise BadInput(where, f"unknown key {odd[:60]!r}", "use only [[pool]] tables")
    if not isinstance(entries, list) or not 0 < len(entries) <= POOLS_MAX:
        number = len(entries) if isinstance(entries, list) else 0
        raise BadInput(where, f"{number} [[pool]] tables", f"use 1 to {POOLS_MAX} [[pool]] tables")
    pools = tuple(_pool(f"{where}: pool {number}", entry) for number, entry in enumerate(entries, 1))
    for number, pool in enumerate(pools):
        for other in pools[:number]:
            if pool.name == other.name or pool.queue == other.queue:
                problem = f"pool {pool.name!r} has the same name or queue as pool {other.name!r}"
                raise BadInput(where, problem, "use a different name and queue for each pool")
    return pools


def _pool(where: str, entry: Any) -> PoolSettings:
    known = PoolSettings.__struct_fields__
    if not isinstance(entry, dict):
        raise BadInput(where, "not a table", "use [[pool]]")
    odd = next((name for name in entry if name not in known), None)
    if odd is not None:
        raise BadInput(where, f"unknown key {odd[:60]!r}", f"use {', '.join(known)}")
    for name, pattern in (("name", _NAME), ("queue", _QUEUE)):
        value = entry.get(name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            problem = f"{name} is missing" if name not in entry else f"invalid {name} {value!r}"
            raise BadInput(where, problem[:120], f"set {name} to letters and digits")
    label = entry.get("label", "")
    if not isinstance(label, str) or (label and not _LABEL.fullmatch(label)):
        raise BadInput(where, f"invalid label {label!r}"[:120], "use letters, digits, _ and -")
    kinds = entry.get("kinds", [])
    if not isinstance(kinds, list) or not all(
        isinstance(each, str) and _KIND.fullmatch(each) for each in kinds
    ):
        raise BadInput(where, "kinds is not a list of frameworks", 'use the form kinds = ["spark", "flink"]')
    for name in _NUMBERS:
        value = entry.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**12:
            raise BadInput(where, f"invalid {name} {value!r}"[:120], "use a whole number from 1")
    return PoolSettings(**{**entry, "kinds": tuple(kinds)})
