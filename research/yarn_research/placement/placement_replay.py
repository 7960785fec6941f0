"""The replay of placement: applications come, are placed, wait for their start, and run as they really do.

Law: the same submissions, pools and mechanism give the same answer. An application is a black box: it is
never suspended, and holds its containers from its start to its end. One that takes longer than its bound
keeps them, and who was placed behind it begins later than planned. ``literal`` asks nobody what is free, as
Alg 2 is printed, so its pools have no end; nor have those of ``orion`` where it reads Alg 2 so.
A pool may grow or shrink: nobody knows that before, who runs keeps its containers, and who waits for more
than there is left is placed anew.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import msgspec

from yarn_research.placement.placement_set import PoolChange, Submitted, bound_factor, options_of
from yarnctl.deciding.admission.capacity import Load
from yarnctl.deciding.admission.mechanisms.orion import (
    OURS,
    OrionChoices,
    Placed,
    PlacementPool,
    least_loaded,
    place,
)

Mechanism = Literal["orion", "least_loaded", "literal"]
MECHANISMS: tuple[Mechanism, ...] = ("orion", "least_loaded", "literal")
CHOICES: dict[Mechanism, OrionChoices] = {"least_loaded": OURS, "literal": OrionChoices(capacity="none")}
"""Of those that have no choice."""
OVERDUE_MS = 1000
"""A run that has passed its bound is expected to last as long again as it is late, and at least so long."""


class PlacedRun(msgspec.Struct):
    """One submission: where it was placed (None: rejected), when it began and ended."""

    submitted: Submitted
    placed: Placed | None
    began_at_ms: int | None = None
    ended_at_ms: int | None = None

    @property
    def deadline_at_ms(self) -> int:
        """Its deadline."""
        return self.submitted.deadline_at_ms

    @property
    def met(self) -> bool:
        """Whether it ended in time."""
        return self.ended_at_ms is not None and self.ended_at_ms <= self.deadline_at_ms

    def ended_before(self, now_ms: int) -> bool:
        """Say whether its containers are free by now."""
        return self.ended_at_ms is not None and self.ended_at_ms <= now_ms

    def runs_at(self, now_ms: int) -> bool:
        """Say whether it holds its containers now."""
        return self.began_at_ms is not None and not self.ended_before(now_ms)


class PlacementFigures(NamedTuple):
    """What became of all: ``met_ratio`` is of all submitted, ``late_of_admitted_ratio`` of those placed."""

    met_ratio: float
    rejected: int
    containers_mean: float
    cost_mtokens: int
    by_kind: dict[str, int]
    late_of_admitted_ratio: float

    def told(self) -> dict[str, Any]:
        """Return what ``yarn-research placement --json`` prints."""
        return self._asdict()


class PlacementReplay:
    """One replay; ``late_ratio`` is the chance to exceed a bound, .5 and more takes the prediction for it.

    ``choices`` are read by ``orion`` alone.
    """

    def __init__(
        self,
        pools: Sequence[PlacementPool],
        mechanism: Mechanism,
        late_ratio: float,
        choices: OrionChoices = OURS,
        changes: Sequence[PoolChange] = (),
    ) -> None:
        self.changes = changes
        self.pools = {pool.name: pool for pool in pools}
        self.mechanism = mechanism
        self.choices = CHOICES.get(mechanism, choices)
        self.factor = bound_factor(late_ratio, NormalDist().inv_cdf(1 - late_ratio))
        self.runs: list[PlacedRun] = []
        self._waiting: dict[str, list[tuple[int, int]]] = {pool.name: [] for pool in pools}
        self._events: list[tuple[int, int, str, int]] = []

    def play(self, submitted: Sequence[Submitted]) -> list[PlacedRun]:
        """Let all come and end."""
        self.runs = [PlacedRun(each, None) for each in submitted]
        for number, run in enumerate(self.runs):
            self._at(run.submitted.at_ms, "arrival", number)
        for number, change in enumerate(self.changes):
            self._at(change.at_ms, "change", number)
        while self._events:
            now_ms, _, what, number = heapq.heappop(self._events)
            if what == "end":
                self._free(number, now_ms)
            elif what == "arrival":
                self._arrive(number, now_ms)
            elif what == "change":
                self._change(self.changes[number], now_ms)
            elif self.runs[number].placed is not None:  # else it was to start in a pool that shrank
                self._begin_who_can(self._pool_of(number), now_ms)
        return self.runs

    def _at(self, at_ms: int, what: str, number: int) -> None:
        """Ends come before changes, those before starts, and those before arrivals, of one instant."""
        rank = {"end": 0, "change": 1, "start": 2, "arrival": 3}[what]
        heapq.heappush(self._events, (at_ms, rank * 10**9 + number, what, number))

    def _pool_of(self, number: int) -> str:
        placed = self.runs[number].placed
        assert placed is not None
        return placed.pool

    def _arrive(self, number: int, now_ms: int) -> None:
        run = self.runs[number]
        pools = [
            msgspec.structs.replace(pool, reserved=self._reserved(pool.name, now_ms))
            for pool in self.pools.values()
        ]
        most = max(pool.capacity for pool in pools)
        options = options_of(run.submitted.app, most, self.factor)
        if self.mechanism == "least_loaded":
            run.placed = least_loaded(options, pools, now_ms)
        else:
            run.placed = place(options, pools, now_ms, run.deadline_at_ms, self.choices).placed
        if run.placed is not None:
            heapq.heappush(self._waiting[run.placed.pool], (run.placed.start_at_ms, number))
            self._at(run.placed.start_at_ms, "start", number)

    def _change(self, change: PoolChange, now_ms: int) -> None:
        """Let a pool have another capacity from now on."""
        pool = msgspec.structs.replace(self.pools[change.pool], capacity=change.capacity)
        self.pools[pool.name] = pool
        kept, too_large = list[tuple[int, int]](), list[int]()
        for start_at_ms, number in sorted(self._waiting[pool.name]):
            placed = self.runs[number].placed
            assert placed is not None
            if self.choices.capacity == "free" and placed.option.containers > pool.capacity:
                too_large.append(number)
            else:
                kept.append((start_at_ms, number))
        self._waiting[pool.name] = kept
        for number in too_large:
            self.runs[number].placed = None
        for number in too_large:
            self._arrive(number, now_ms)
        self._begin_who_can(pool.name, now_ms)

    def _reserved(self, pool: str, now_ms: int) -> tuple[Load, ...]:
        """Return what runs in a pool and what is to start there, as it is expected now."""
        found = []
        for run in self.runs:
            if run.placed is None or run.placed.pool != pool or run.ended_before(now_ms):
                continue
            option = run.placed.option
            from_ms = max(run.placed.start_at_ms, now_ms) if run.began_at_ms is None else run.began_at_ms
            until_ms = from_ms + option.upper_ms
            if until_ms <= now_ms:
                until_ms = now_ms + max(OVERDUE_MS, now_ms - until_ms)
            found.append(Load(option.kind, option.containers, from_ms, until_ms))
        return tuple(found)

    def _begin_who_can(self, pool: str, now_ms: int) -> None:
        """Begin what is due in a pool, in the order of planned starts, as long as it has its containers."""
        waiting = self._waiting[pool]
        while waiting and waiting[0][0] <= now_ms:
            run = self.runs[waiting[0][1]]
            assert run.placed is not None
            option = run.placed.option
            if self.choices.capacity == "free" and option.containers > self._free_now(pool, now_ms):
                return
            _, number = heapq.heappop(waiting)
            run.began_at_ms = now_ms
            run.ended_at_ms = now_ms + max(1, round(option.predicted_ms * run.submitted.noise))
            self._at(run.ended_at_ms, "end", number)

    def _free_now(self, pool: str, now_ms: int) -> int:
        used = 0
        for run in self.runs:
            if run.placed is not None and run.placed.pool == pool and run.runs_at(now_ms):
                used += run.placed.option.containers
        return self.pools[pool].capacity - used

    def _free(self, number: int, now_ms: int) -> None:
        self._begin_who_can(self._pool_of(number), now_ms)


def measured(runs: Sequence[PlacedRun], pools: Sequence[PlacementPool]) -> PlacementFigures:
    """Return the figures of a replay; containers are a mean over the time from first arrival to last end."""
    prices = {pool.name: pool.cost_mtokens for pool in pools}
    admitted = [run for run in runs if run.placed is not None]
    held_ms, cost, by_kind = 0, 0, dict[str, int]()
    for run in admitted:
        assert run.placed is not None
        assert run.began_at_ms is not None
        assert run.ended_at_ms is not None
        span_ms = (run.ended_at_ms - run.began_at_ms) * run.placed.option.containers
        held_ms += span_ms
        cost += -(-span_ms * prices[run.placed.pool] // 1000)
        by_kind[run.placed.option.kind] = by_kind.get(run.placed.option.kind, 0) + 1
    ends_ms = [run.ended_at_ms for run in admitted if run.ended_at_ms is not None]
    whole_ms = max(ends_ms, default=0) - min((run.submitted.at_ms for run in runs), default=0)
    met = sum(run.met for run in runs)
    return PlacementFigures(
        met / len(runs),
        len(runs) - len(admitted),
        held_ms / whole_ms if whole_ms > 0 else 0.0,
        cost,
        dict(sorted(by_kind.items())),
        (len(admitted) - met) / len(admitted) if admitted else 0.0,
    )
