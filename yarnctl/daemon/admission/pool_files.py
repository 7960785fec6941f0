"""``pools.toml``: the pools in which applications are placed, each a leaf queue.

Law: a file is taken whole or not at all; what is not known, or cannot be, is refused by its name.

::

    [[pool]]
    name = "spark"
    queue = "root.spark"            # what is placed in this pool is submitted there
    kinds = ["spark"]               # frameworks that it takes; none: all
    label = "large"                 # the queue's containers run on nodes with this label; else: with none
    capacity = 7                    # in containers; else: the queue's maximum capacity, of those nodes
    container_mib = 1024            # else: what MapReduce asks for by default
    cost_mtokens = 1000             # the price of a container-second
    hourly_mtokens = 14400000       # the most that it may cost an hour; else: no bound
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
    """One pool as its file has it; ``capacity`` and ``container_mib`` None: measured.

    ``label`` names a partition (YARN's node labels); "": the nodes without a label.
    """

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
            raise BadInput(where, "is larger than 64 KiB", "name a file of [[pool]] tables")
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(where, f"cannot be read ({error.strerror})", "name a readable file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(where, f"is no TOML: {error}"[:200], "write [[pool]] tables") from None
    entries = told.get("pool")
    odd = next((name for name in told if name != "pool"), None)
    if odd is not None:
        raise BadInput(where, f"{odd[:60]!r} is not known", "write [[pool]] tables and nothing else")
    if not isinstance(entries, list) or not 0 < len(entries) <= POOLS_MAX:
        raise BadInput(where, "has no [[pool]]", f"write 1 to {POOLS_MAX} [[pool]] tables")
    pools = tuple(_pool(f"{where}: pool {number}", entry) for number, entry in enumerate(entries, 1))
    for number, pool in enumerate(pools):
        for other in pools[:number]:
            if pool.name == other.name or pool.queue == other.queue:
                told_ = f"{pool.name!r} has the name or the queue of {other.name!r}"
                raise BadInput(where, told_, "give each pool a name and a queue of its own")
    return pools


def _pool(where: str, entry: Any) -> PoolSettings:
    known = PoolSettings.__struct_fields__
    if not isinstance(entry, dict):
        raise BadInput(where, "is no table", "write [[pool]]")
    odd = next((name for name in entry if name not in known), None)
    if odd is not None:
        raise BadInput(where, f"{odd[:60]!r} is not known", f"use {', '.join(known)}")
    for name, pattern in (("name", _NAME), ("queue", _QUEUE)):
        value = entry.get(name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            told = "is missing" if name not in entry else f"is {value!r}"
            raise BadInput(where, f"{name} {told}"[:120], f"give a {name} of letters and digits")
    label = entry.get("label", "")
    if not isinstance(label, str) or (label and not _LABEL.fullmatch(label)):
        raise BadInput(where, f"label is {label!r}"[:120], "name a node label of letters and digits, _ and -")
    kinds = entry.get("kinds", [])
    if not isinstance(kinds, list) or not all(
        isinstance(each, str) and _KIND.fullmatch(each) for each in kinds
    ):
        raise BadInput(where, "kinds is no list of frameworks", 'write kinds = ["spark", "flink"]')
    for name in _NUMBERS:
        value = entry.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**12:
            raise BadInput(where, f"{name} is {value!r}"[:120], "give a whole number from 1")
    return PoolSettings(**{**entry, "kinds": tuple(kinds)})
