"""What became of each lever of a run: how many, when their room came, what was lost, and the predictions.

Law: it reads what is written and the cluster, and changes nothing. A lever is counted when its order has
given room, or, of a task that was awaited, when its container is gone; ``wait`` and ``cap`` have no order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import get_args

import msgspec

from emulator.cluster.entities import Container
from yarnctl.deciding.levers import Lever, LeverKind
from yarnctl.deciding.records import Awaited, Decision, Lowering, Record, Transition
from yarnctl.loop import Journal

LATE_FACTOR = 1.25
"""A prediction of the time to room holds if the room came within so many times that span."""


class LeverFigures(msgspec.Struct, frozen=True, kw_only=True):
    """``pulled``: levers that gave room, by kind; ``in_time``: those of them within their prediction x 1.25.

    ``refetch_ms``: predicted for ended reduces, to fetch and start again; ``predicted_lost_ms``: of maps.
    """

    pulled: Mapping[str, int]
    in_time: Mapping[str, int]
    predicted_lost_ms: int
    refetch_ms: int


class LeverTally:
    """A journal that hands on records and counts levers. ``find``: a running container by its ids."""

    def __init__(self, journal: Journal, find: Callable[[str, str], Container | None]) -> None:
        self._journal, self._find = journal, find
        self._open: dict[str, tuple[Lever, int]] = {}
        self._awaited: list[tuple[Container, int, int]] = []
        self._pulled: dict[str, int] = dict.fromkeys(get_args(LeverKind), 0)
        self._in_time = dict(self._pulled)
        self._lost_ms = self._refetch_ms = 0

    @property
    def records(self) -> Sequence[Record]:
        """Return what the journal keeps (none: it only writes)."""
        kept: Sequence[Record] = getattr(self._journal, "records", ())
        return kept

    def append(self, records: Sequence[Record]) -> None:
        """Hand on records, and count."""
        self._journal.append(records)
        for record in records:
            if isinstance(record, Decision) and record.levers:
                pulls = zip(record.orders, record.levers, strict=True)
                self._open.update((name, (pull.lever, record.at_ms)) for name, pull in pulls)
            elif isinstance(record, Transition) and record.target in ("freed", "killed"):
                self._freed(record)
            elif isinstance(record, Awaited):
                self._await(record)
            elif isinstance(record, Lowering):
                self._pulled["cap"] += 1

    def _freed(self, transition: Transition) -> None:
        lever, asked_ms = self._open.pop(transition.order, (None, 0))
        if lever is None:
            return
        self._count(lever.kind, transition.at_ms - asked_ms, lever.free_in_ms)
        if lever.kind == "kill":
            self._lost_ms += lever.lost_ms
        elif lever.kind == "end":
            self._refetch_ms += lever.overhead_ms

    def _await(self, awaited: Awaited) -> None:
        for task in awaited.tasks:
            container = self._find(task.application, task.container)
            if container is not None:
                self._awaited.append((container, awaited.at_ms, task.lever.free_in_ms))

    def _count(self, kind: str, took_ms: int, predicted_ms: int) -> None:
        self._pulled[kind] += 1
        self._in_time[kind] += took_ms <= predicted_ms * LATE_FACTOR

    def close(self) -> LeverFigures:
        """Return the figures at a run's end."""
        for container, asked_ms, predicted_ms in self._awaited:
            self._count("wait", container.released_at_ms - asked_ms, predicted_ms)
        self._awaited.clear()
        return LeverFigures(
            pulled=self._pulled,
            in_time=self._in_time,
            predicted_lost_ms=self._lost_ms,
            refetch_ms=self._refetch_ms,
        )
