"""What is chosen before applications are placed: how many come, how fast, with which deadlines.

Law: pure. Who comes when follows from the terms and the profile alone, and is the same in all schemes of a
round.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from yarnctl.prediction.application_runs import KnownRun

TIGHT, LOOSE = 1.3, 2.0
"""A deadline is so many times the best profiled time."""

Profiled = tuple[str, tuple[tuple[str, float], ...]]
"""An application of some size: its name and its features."""


class Terms(NamedTuple):
    """``gap_s`` is the mean time between two arrivals.

    None: as ``load`` says, the part of all containers that they would keep busy if each took the least
    container-seconds that its profile has. Each round has a seed of its own.
    """

    arrivals: int = 18
    rounds: int = 3
    containers: str = "1,2,3"
    repeat: int = 2
    gap_s: float | None = None
    load: float = 1.0
    seed: int = 1


SLICE = Terms(arrivals=6, rounds=1, containers="1,3")


class PlacedArrival(NamedTuple):
    """One application that comes: its file, when (s from the first), and its deadline (s from then)."""

    file: str
    at_s: float
    deadline_s: int


def profiled(application: str, features: Mapping[str, float]) -> Profiled:
    """Return how a profile names an application of some size."""
    return application, tuple(sorted(features.items()))


def work_s(runs: Iterable[KnownRun], prices: Mapping[str, float]) -> dict[Profiled, dict[str, float]]:
    """Return by application and kind the least cost of a run.

    That is price x containers x mean time (s) of the cheapest number of containers; with prices of 1 it is
    container-seconds.
    """
    times_ms = defaultdict[tuple[Profiled, str, int], list[int]](list)
    for run in runs:
        times_ms[profiled(run.application, run.features), run.kind, run.containers].append(run.elapsed_ms)
    found = defaultdict[Profiled, dict[str, float]](dict)
    for (which, kind, containers), spans_ms in times_ms.items():
        cost = prices[kind] * containers * fmean(spans_ms) / 1000
        found[which][kind] = min(cost, found[which].get(kind, cost))
    return dict(found)


def gap_of(terms: Terms, runs: Sequence[KnownRun], containers: int) -> float:
    """Return the mean time between two arrivals, in s, with so many containers in all pools."""
    if terms.gap_s is not None:
        return terms.gap_s
    found = work_s(runs, {run.kind: 1.0 for run in runs})
    return fmean(min(by_kind.values()) for by_kind in found.values()) / (containers * terms.load)


def best_s(runs: Iterable[KnownRun]) -> dict[Profiled, float]:
    """Return the shortest profiled time of each application of some size, in s."""
    found = dict[Profiled, float]()
    for run in runs:
        which = profiled(run.application, run.features)
        found[which] = min(run.elapsed_ms / 1000, found.get(which, run.elapsed_ms / 1000))
    return found


def arrivals(best: Mapping[str, float], terms: Terms, gap_s: float, number: int) -> list[PlacedArrival]:
    """Return who comes when in a round: each file about as often, gaps exponential, all by the seed.

    ``best`` is the shortest profiled time of each file's application, in s.
    """
    chance = random.Random(terms.seed + number)
    files = list(best)
    order = [files[place % len(files)] for place in range(terms.arrivals)]
    chance.shuffle(order)
    found, at_s = [], 0.0
    for file in order:
        deadline_s = max(1, round(best[file] * chance.uniform(TIGHT, LOOSE)))
        found.append(PlacedArrival(file, round(at_s, 3), deadline_s))
        at_s += chance.expovariate(1 / gap_s)
    return found
