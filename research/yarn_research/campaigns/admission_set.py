"""Jobs with deadlines, and what became of them: the set that is run plain and through the gate.

Law: pure. The same jobs arrive at the same instants in both runs, and are judged alike: a deadline is met if
the ResourceManager says that the job had succeeded by then. Spans are in seconds of the wall clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

Outcome = Literal["met", "late", "rejected", "failed"]
COLUMNS = ("job", "deadline s", "plain", "ended s", "gate", "ended s", "containers")


class Kind(NamedTuple):
    """Jobs that do the same: tasks and their lengths. Its name is what history knows them by."""

    name: str
    maps: int
    map_s: float
    reduces: int
    reduce_s: float


class Arrival(NamedTuple):
    """One job: when it comes and how long it may take. ``hopeless``: nobody could end it by then."""

    name: str
    kind: Kind
    at_s: float
    deadline_s: float
    hopeless: bool = False


class Ran(msgspec.Struct, frozen=True):
    """One job of one run. Instants in ms since 1970; None: it never was submitted, or never ended."""

    name: str
    submitted_at_ms: int
    deadline_at_ms: int
    ended_at_ms: int | None
    outcome: Outcome
    containers: int | None = None

    @property
    def met(self) -> bool:
        """Whether its deadline was met."""
        return self.outcome == "met"


class Mix(NamedTuple):
    """What a set is made of; spans in seconds.

    ``unit_s`` is about the time that a large job takes alone; ``hopeless`` large ones are given less than
    half of it. Small ones come in so many units after one another.
    """

    big: Kind
    small: Kind
    unit_s: float
    loose_s: float
    tight_s: float
    hopeless: int
    tight: int = 5


def arrivals(mix: Mix) -> tuple[Arrival, ...]:
    """Return the set: large jobs come first and fill the cluster, most of them for nothing; then small ones.

    First come first served, the small ones stand behind all the work of the large ones.
    """
    big, small, unit_s = mix.big, mix.small, mix.unit_s
    last = 2 + mix.hopeless
    large = [Arrival(f"{big.name}-1", big, 0.0, mix.loose_s)]
    large += [
        Arrival(f"{big.name}-{number}", big, 0.02 * (number - 1) * unit_s, 0.4 * unit_s, hopeless=True)
        for number in range(2, last)
    ]
    large.append(Arrival(f"{big.name}-{last}", big, 0.1 * unit_s, mix.loose_s))
    few = [
        Arrival(f"{small.name}-{number}", small, (0.2 + 0.5 * (number - 1)) * unit_s, mix.tight_s)
        for number in range(1, 1 + mix.tight)
    ]
    return (*large, *few)


def judged(arrival: Arrival, began_ms: int, ended_at_ms: int | None, final: str, rejected: bool) -> Ran:
    """Return what became of a job. ``final`` is YARN's final status, "" if it was never submitted."""
    submitted_at_ms = began_ms + round(arrival.at_s * 1000)
    deadline_at_ms = submitted_at_ms + round(arrival.deadline_s * 1000)
    outcome: Outcome = "rejected" if rejected else "failed"
    if final == "SUCCEEDED" and ended_at_ms is not None:
        outcome = "met" if ended_at_ms <= deadline_at_ms else "late"
    return Ran(arrival.name, submitted_at_ms, deadline_at_ms, ended_at_ms, outcome)


def met(rows: Sequence[Ran]) -> int:
    """Return how many deadlines were met."""
    return sum(row.met for row in rows)


def table(jobs: Sequence[Arrival], plain: Sequence[Ran], gate: Sequence[Ran]) -> list[tuple[object, ...]]:
    """Return both runs side by side, a row for each job (``COLUMNS``)."""
    rows: list[tuple[object, ...]] = []
    for job, without, through in zip(jobs, plain, gate, strict=True):
        mark = " (hopeless)" if job.hopeless else ""
        ends = [_after_s(one) for one in (without, through)]
        limits = (
            round(job.deadline_s, 1),
            without.outcome,
            ends[0],
            through.outcome,
            ends[1],
            through.containers,
        )
        rows.append((job.name + mark, *limits))
    return [*rows, ("deadlines met", None, met(plain), None, met(gate), None, None)]


def _after_s(row: Ran) -> float | None:
    return None if row.ended_at_ms is None else round((row.ended_at_ms - row.submitted_at_ms) / 1000, 1)
