"""Applications for the replay of placement: Table II of ORiON, and how long each takes on which framework.

Law: written before any replay and not changed after one. Deadlines are Table II's. The paper prints no times:
ours follow Ernest's terms with the winners of its Fig 1 (TensorFlow for linear regression, Flink for TPC-H,
else Spark), as parts of the deadline, so that the best framework meets it with two nodes and a short wait.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from yarnctl.deciding.admission.mechanisms.orion import PlacementPool
from yarnctl.deciding.admission.placement_options import OPTIONS_MAX, PlacementOption
from yarnctl.errors import BadInput

SERIAL, PARALLEL, EACH_NODE = 0.08, 0.80, 0.01
"""Parts of the deadline that the best framework takes: fixed, by 1 / n, by n."""
NOISE_SD = 0.1
"""Of the logarithm of real over predicted time."""
NODES = 7
FILE_BYTES_MAX = 64 << 10
OF_A_CLUSTER = ("queue", "container_mib")
CHANGES = "changes"
STANDS_FOR: dict[str, str] = {"mapreduce": "tensorflow"}
"""On a cluster MapReduce has the place that TensorFlow has here."""


class AppSpec(NamedTuple):
    """One application: its deadline, and by how much each framework is slower than its best (1).

    ``times_ms``: by framework the times with 1, 2, ... containers; where given, they count instead.
    """

    name: str
    deadline_s: int
    slower: Mapping[str, float]
    times_ms: Mapping[str, tuple[int, ...]] | None = None


APPS: tuple[AppSpec, ...] = (
    AppSpec("linear-regression", 500, {"tensorflow": 1.0, "spark": 1.5, "flink": 1.9}),
    AppSpec("als", 100, {"spark": 1.0, "flink": 1.6}),
    AppSpec("k-means", 350, {"spark": 1.0, "flink": 1.3, "tensorflow": 1.8}),
    AppSpec("tpc-h-3", 200, {"flink": 1.0, "spark": 1.2}),
    AppSpec("tpc-h-10", 250, {"flink": 1.0, "spark": 1.2}),
    AppSpec("wordcount", 500, {"spark": 1.0, "flink": 1.25}),
    AppSpec("grep", 400, {"spark": 1.0, "flink": 1.15}),
    AppSpec("pi", 600, {"spark": 1.0, "flink": 1.2, "tensorflow": 1.3}),
)
POOLS: tuple[PlacementPool, ...] = tuple(
    PlacementPool(kind, NODES, (kind,)) for kind in ("flink", "spark", "tensorflow")
)


def predicted_ms(app: AppSpec, kind: str, containers: int) -> int:
    """Return how long an application takes on a framework with so many containers."""
    if app.times_ms is not None:
        return app.times_ms[kind][containers - 1]
    parts = SERIAL + PARALLEL / containers + EACH_NODE * containers
    return round(1000 * app.deadline_s * parts * app.slower[kind])


class Submitted(NamedTuple):
    """One submission; ``noise`` is real over predicted time, whatever it runs on."""

    app: AppSpec
    at_ms: int
    noise: float

    @property
    def deadline_at_ms(self) -> int:
        """Its deadline."""
        return self.at_ms + 1000 * self.app.deadline_s


def options_of(app: AppSpec, most: int, factor: float) -> list[PlacementOption]:
    """Return each framework with 1 to ``most`` containers; an upper bound is ``factor`` x the prediction.

    Of more than a mechanism takes, as many of each framework.
    """
    found = []
    each_kind = OPTIONS_MAX // len(app.slower)
    for kind in sorted(app.slower):
        known = most if app.times_ms is None else min(most, len(app.times_ms[kind]))
        for containers in spread(known, each_kind):
            known_ms = predicted_ms(app, kind, containers)
            found.append(PlacementOption(kind, containers, known_ms, round(known_ms * factor)))
    return found


def spread(most: int, count: int) -> list[int]:
    """Return at most so many numbers from 1 to ``most``, both among them; all where there are no more.

    Else the smaller half one by one, and from there in equal ratios: a container more counts for less.
    """
    if most <= count:
        return list(range(1, most + 1))
    near = count // 2
    far = [round(near * (most / near) ** (step / (count - near))) for step in range(1, count - near)]
    return sorted({*range(1, near + 1), *far, most})


def submissions(count: int, inter_arrival_s: float, seed: int) -> list[Submitted]:
    """Return so many applications in turn, with exponential gaps (section V)."""
    chance = np.random.default_rng([seed, 21])
    at_ms = np.cumsum(chance.exponential(inter_arrival_s * 1000, count)).astype(np.int64)
    noise = np.exp(NOISE_SD * chance.standard_normal(count))
    return [
        Submitted(APPS[place % len(APPS)], int(at_ms[place]), float(noise[place])) for place in range(count)
    ]


class PoolChange(NamedTuple):
    """From an instant on a pool has another capacity: nodes came, or went."""

    at_ms: int
    pool: str
    capacity: int


def read_pools(path: Path) -> tuple[tuple[PlacementPool, ...], tuple[PoolChange, ...]]:
    """Read ``[[pool]]`` tables, and when which pool grows or shrinks; raises BadInput.

    A table has name, capacity, kinds, cost_mtokens, hourly_mtokens, changes (of at_s, capacity).
    The file of ``yarnctl run --pools`` will do: what a cluster has (queue, container_mib) is left out, and a
    pool of mapreduce takes what Table II runs on TensorFlow.
    """
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise BadInput(f"--pools {path}", "is larger than 64 KiB", "name a file of [[pool]] tables")
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"--pools {path}", f"cannot be read ({type(error).__name__})", "name a file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"--pools {path}", f"is not valid TOML: {error}", "write [[pool]] tables") from None
    entries = told.get("pool")
    if set(told) != {"pool"} or not isinstance(entries, list) or not entries:
        raise BadInput(f"--pools {path}", "has no [[pool]], or something else", "write [[pool]] tables")
    pools = tuple(_pool(path, number, entry) for number, entry in enumerate(entries, 1))
    if len({pool.name for pool in pools}) < len(pools):
        raise BadInput(f"--pools {path}", "names a pool twice", "give each a name of its own")
    changes = [
        change
        for number, (pool, entry) in enumerate(zip(pools, entries, strict=True), 1)
        for change in _changes(f"--pools {path}: pool {number}", pool.name, entry.get("changes", []))
    ]
    return pools, tuple(sorted(changes))


def _changes(where: str, pool: str, told: Any) -> list[PoolChange]:
    if not isinstance(told, list) or not all(isinstance(each, dict) for each in told):
        raise BadInput(
            where, "changes is not a list of tables", "write changes = [{ at_s = 600, capacity = 3 }]"
        )
    odd = next((name for each in told for name in each if name not in ("at_s", "capacity")), None)
    if odd is not None:
        raise BadInput(where, f"changes: {odd[:60]!r} is not known", "use at_s, capacity")
    return [
        PoolChange(
            1000 * _whole(where, "changes: at_s", each.get("at_s")),
            pool,
            _whole(where, "changes: capacity", each.get("capacity")),
        )
        for each in told
    ]


def _pool(path: Path, number: int, entry: Any) -> PlacementPool:
    where = f"--pools {path}: pool {number}"
    known = (*PlacementPool.__struct_fields__[:-1], CHANGES, *OF_A_CLUSTER)
    if not isinstance(entry, dict) or (unknown := sorted(set(entry) - set(known))):
        told = f"{unknown[0]!r} is not known" if isinstance(entry, dict) else "is not a table"
        raise BadInput(where, told, f"use {', '.join(known)}")
    name, capacity, kinds = entry.get("name"), entry.get("capacity"), entry.get("kinds", [])
    if not isinstance(name, str) or not name:
        raise BadInput(where, "has no name", 'write name = "spark"')
    every = {kind for app in APPS for kind in app.slower} | set(STANDS_FOR)
    if not isinstance(kinds, list) or not set(map(str, kinds)) <= every:
        raise BadInput(where, "kinds are not known", f"use a list of {', '.join(sorted(every))}")
    if "capacity" not in entry:
        raise BadInput(where, "capacity is missing", "a replay has no queue to ask: write capacity = 7")
    hourly = entry.get("hourly_mtokens")
    return PlacementPool(
        name,
        _whole(where, "capacity", capacity),
        tuple(STANDS_FOR.get(str(kind), str(kind)) for kind in kinds),
        _whole(where, "cost_mtokens", entry.get("cost_mtokens", 1000)),
        None if hourly is None else _whole(where, "hourly_mtokens", hourly),
    )


def _whole(where: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**12:
        raise BadInput(where, f"{name} is {value!r}", "give a whole number from 1")
    return value


def bound_factor(late_ratio: float, deviations: float) -> float:
    """Return by how much an upper bound is above the prediction; ``deviations``: z of the ratio."""
    return math.exp(NOISE_SD * deviations) if late_ratio < 0.5 else 1.0
