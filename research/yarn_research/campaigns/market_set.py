"""Jobs of users who cannot wait and of users who can, and what became of them under three schemes.

Law: pure; a round follows from its seed. The same jobs come at the same instants under each scheme of a
round, and are judged by the same deadlines: those that were sold to them in that round's run with the market.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

import msgspec

from yarn_research.campaigns.admission_set import Kind

Scheme = Literal["fifo", "priority", "mrm"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
KEPT_RATIO_LEAST = 0.95


class MarketMix(NamedTuple):
    """What a round is made of. ``load`` is offered work by capacity, ``seed`` draws kinds, gaps and users.

    ``held_s``: the container-seconds that a job of each kind held on an empty cluster, its master and what
    its containers take to start included; without it only tasks count.
    """

    kinds: tuple[Kind, ...]
    capacity: int
    jobs: int
    load: float
    seed: int
    held_s: Mapping[str, float] = MappingProxyType({})


class Bought(NamedTuple):
    """One job: when it comes, and whether its user cannot wait (``sensitive``)."""

    name: str
    kind: Kind
    at_s: float
    sensitive: bool


class Outcome(msgspec.Struct, frozen=True):
    """One job under one scheme, instants in ms since 1970; None: never submitted, never ended.

    ``deadline_at_ms`` and ``price_mtokens`` are what was sold, under ``mrm`` alone.
    """

    name: str
    kind: str
    sensitive: bool
    arrived_at_ms: int
    ended_at_ms: int | None
    final: str
    deadline_at_ms: int | None = None
    price_mtokens: int | None = None

    @property
    def stayed_ms(self) -> int | None:
        """From its arrival to its end."""
        return None if self.ended_at_ms is None else self.ended_at_ms - self.arrived_at_ms


class Figures(msgspec.Struct, frozen=True):
    """One run of one scheme: waits in seconds, and how many jobs came later than they were promised.

    ``kept`` and ``promised`` count promises; ``killed`` jobs that did not succeed; ``unsold`` those that
    were promised nothing.
    """

    sensitive_wait_s: float
    tolerant_wait_s: float
    sensitive_late: int
    tolerant_late: int
    promised: int
    kept: int
    unsold: int
    killed: int


def work_s(kind: Kind) -> float:
    """Return the container-seconds of a job's tasks."""
    return kind.maps * kind.map_s + kind.reduces * kind.reduce_s


def arrivals(mix: MarketMix) -> tuple[Bought, ...]:
    """Return the jobs of a round: as many of each kind, half of its users cannot wait, gaps random."""
    chance = random.Random(mix.seed)
    drawn = [
        (mix.kinds[place % len(mix.kinds)], place // len(mix.kinds) % 2 == 0) for place in range(mix.jobs)
    ]
    chance.shuffle(drawn)
    held_s = [mix.held_s.get(kind.name) or work_s(kind) for kind, _ in drawn]
    mean_s = statistics.fmean(held_s) / (mix.capacity * mix.load)
    found, at_s = list[Bought](), 0.0
    for place, (kind, sensitive) in enumerate(drawn, 1):
        found.append(Bought(f"{kind.name}-{place}", kind, round(at_s, 3), sensitive))
        at_s += chance.expovariate(1 / mean_s)
    return tuple(found)


def order_of(number: int) -> tuple[Scheme, ...]:
    """Return in which order a round plays the schemes: each comes first once in three rounds."""
    first = number % len(SCHEMES)
    return (*SCHEMES[first:], *SCHEMES[:first])


def figures(found: Sequence[Outcome], sold: Sequence[Outcome], alone_ms: Mapping[str, float]) -> Figures:
    """Return a run's figures.

    ``sold`` is the round's run with the market; ``alone_ms`` how long each kind takes on an empty cluster.
    """
    spans_ms = {
        each.name: each.deadline_at_ms - each.arrived_at_ms
        for each in sold
        if each.deadline_at_ms is not None
    }
    waits: dict[bool, list[float]] = {True: [], False: []}
    late: dict[bool, int] = {True: 0, False: 0}
    for each in found:
        stayed_ms = each.stayed_ms
        if stayed_ms is not None:
            waits[each.sensitive].append(max(0.0, stayed_ms - alone_ms[each.kind]))
        if each.name in spans_ms:
            late[each.sensitive] += stayed_ms is None or stayed_ms > spans_ms[each.name]
    return Figures(
        sensitive_wait_s=_median_s(waits[True]),
        tolerant_wait_s=_median_s(waits[False]),
        sensitive_late=late[True],
        tolerant_late=late[False],
        promised=len(spans_ms),
        kept=len(spans_ms) - late[True] - late[False],
        unsold=len(found) - len(spans_ms),
        killed=sum(each.final != "SUCCEEDED" for each in found),
    )


def _median_s(spans_ms: Sequence[float]) -> float:
    return round(statistics.median(spans_ms) / 1000, 3) if spans_ms else 0.0


class Claims(msgspec.Struct, frozen=True):
    """What is claimed of all rounds; ``kept_ratio`` is of all promises."""

    kept_ratio: float
    promises_kept: bool
    sensitive_sooner_than_fifo: bool
    tolerant_less_late_than_priority: bool
    none_killed: bool

    @property
    def holds(self) -> bool:
        """Whether all of it holds."""
        return (
            self.promises_kept
            and self.sensitive_sooner_than_fifo
            and self.tolerant_less_late_than_priority
            and self.none_killed
        )


def claims(rounds: Sequence[Mapping[Scheme, Figures]]) -> Claims:
    """Judge all rounds; the median wait is compared within each round, late jobs over all of them."""
    sold = [each["mrm"] for each in rounds]
    promised = sum(each.promised for each in sold)
    kept_ratio = sum(each.kept for each in sold) / promised if promised else 0.0
    return Claims(
        kept_ratio=round(kept_ratio, 4),
        promises_kept=kept_ratio >= KEPT_RATIO_LEAST,
        sensitive_sooner_than_fifo=bool(rounds)
        and all(each["mrm"].sensitive_wait_s < each["fifo"].sensitive_wait_s for each in rounds),
        tolerant_less_late_than_priority=sum(each.tolerant_late for each in sold)
        < sum(each["priority"].tolerant_late for each in rounds),
        none_killed=bool(rounds) and all(one.killed == 0 for each in rounds for one in each.values()),
    )
