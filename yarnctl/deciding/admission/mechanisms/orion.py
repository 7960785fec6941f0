"""ORiON (Xekalaki et al., Alg 2): the cheapest option and start that meet a deadline, pool by pool.

The answer does not depend on the order of options or pools. A container is the unit, its price is the pool's:
an option costs price x containers x predicted time (Eq 6). An option holds its containers from its start
until its upper bound, so capacity and hourly budgets hold as long as runs stay below their bounds; the bound
also decides whether it ends in time. Where Alg 2 is silent or contradicts itself, ``OrionChoices`` has our
reading first (research/notes/paper.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from yarnctl.deciding.admission.capacity import Load, Profile, profile
from yarnctl.deciding.admission.placement_options import OPTIONS_MAX, PlacementOption, Settings
from yarnctl.deciding.reasons import placements

HOUR_S = 3600
REFUSED_MAX = 5
"""The most options that are listed as not chosen, the nearest first."""


class OrionChoices(msgspec.Struct, frozen=True, tag_field="mechanism", tag="orion"):
    """Our readings of Alg 2.

    ``capacity``: an option needs its containers free through its run (``free``), or nothing (``none``, as
    printed). ``waiting``: of equal costs the earliest start, or never any but now. ``ends``: what ended is no
    start any more (``past``), or neither is what ends by the start of what was placed later in that pool
    (``before``, line 21 as printed). ``budget``: B_c bounds the running cost of a pool (``pool``), or that of
    each application. ``unplaceable``: what cannot end in time is rejected (NULL, line 20), or placed where it
    ends first (``best_effort``).
    """

    capacity: Literal["free", "none"] = "free"
    waiting: Literal["earliest", "never"] = "earliest"
    ends: Literal["past", "before"] = "past"
    budget: Literal["pool", "application"] = "pool"
    unplaceable: Literal["reject", "best_effort"] = "reject"


OURS = OrionChoices()


class PlacementPool(msgspec.Struct, frozen=True):
    """A pool with what is ``reserved`` in it, in the order in which it was placed.

    ``kinds`` are the frameworks that it takes (none: all). ``cost_mtokens`` is the price of a
    container-second, ``hourly_mtokens`` the most that it may cost an hour (None: no bound).
    """

    name: str
    capacity: int
    kinds: tuple[str, ...] = ()
    cost_mtokens: int = 1000
    hourly_mtokens: int | None = None
    reserved: tuple[Load, ...] = ()


class Placed(msgspec.Struct, frozen=True):
    """An option in a pool from an instant on; it ends by ``finish_at_ms`` unless it exceeds its bound."""

    pool: str
    option: PlacementOption
    start_at_ms: int
    finish_at_ms: int
    cost_mtokens: int


class NotTaken(msgspec.Struct, frozen=True):
    """An option at a start, and why it was not chosen."""

    pool: str
    option: PlacementOption
    start_at_ms: int
    why: placements.PlacementReason


class PlacementVerdict(msgspec.Struct, frozen=True):
    """What was ``placed`` (None: nothing), and the nearest that were not chosen.

    ``why``: nothing ends in time; what was placed nevertheless is a best effort.
    """

    placed: Placed | None
    not_taken: tuple[NotTaken, ...] = ()
    why: placements.NothingFits | None = None


class PoolNow(NamedTuple):
    """A pool at one instant: what is free, and when a start is tried."""

    pool: PlacementPool
    free: Profile
    starts_ms: tuple[int, ...]


def cost_of(pool: PlacementPool, option: PlacementOption) -> int:
    """Return what an option is predicted to cost, in milli-tokens, rounded up (Eq 6)."""
    return -(-pool.cost_mtokens * option.containers * option.predicted_ms // 1000)


def place(
    options: Iterable[PlacementOption],
    pools: Sequence[PlacementPool],
    now_ms: int,
    deadline_at_ms: int,
    choices: OrionChoices = OURS,
) -> PlacementVerdict:
    """Return the cheapest placement that ends by the deadline: then the earliest, fewest containers, kind."""
    ordered = sorted(set(options), key=_option_key)[:OPTIONS_MAX]
    pooled = [pool_now(pool, now_ms, choices) for pool in sorted(pools, key=lambda each: each.name)]
    fitting, refused = list[Placed](), list[NotTaken]()
    for option in ordered:
        taking = [each for each in pooled if takes(each.pool, option)]
        if not taking:
            refused.append(NotTaken("", option, now_ms, placements.NoSuchPool(option.kind)))
        for each in taking:
            _try(each, option, deadline_at_ms, choices, fitting, refused)
    if not fitting:
        first = _first(ordered, pooled, choices)
        why = placements.NothingFits(None if first is None else first.finish_at_ms)
        late = first if choices.unplaceable == "best_effort" else None
        return PlacementVerdict(late, _nearest(refused), why)
    fitting.sort(key=_placed_key)
    chosen = fitting[0]
    dearer = [
        NotTaken(
            each.pool,
            each.option,
            each.start_at_ms,
            placements.CostsMoreThanChosen(each.cost_mtokens, chosen.cost_mtokens),
        )
        for each in fitting[1:]
    ]
    return PlacementVerdict(chosen, (*dearer, *_nearest(refused))[:REFUSED_MAX])


def takes(pool: PlacementPool, option: PlacementOption) -> bool:
    """Say whether a pool takes an option's kind, and the option may go there."""
    return (not pool.kinds or option.kind in pool.kinds) and option.pool in ("", pool.name)


def _option_key(option: PlacementOption) -> tuple[str, int, int, int, Settings, str, float]:
    late_ratio = -1.0 if option.late_ratio is None else option.late_ratio
    times = (option.predicted_ms, option.upper_ms)
    return option.kind, option.containers, *times, option.settings, option.pool, late_ratio


def _placed_key(placed: Placed) -> tuple[int, int, int, str, str, Settings, int, float]:
    option = placed.option
    late_ratio = 1.0 if option.late_ratio is None else option.late_ratio
    first = (placed.cost_mtokens, placed.start_at_ms, option.containers, option.kind, placed.pool)
    return *first, option.settings, option.upper_ms, late_ratio


def pool_now(pool: PlacementPool, now_ms: int, choices: OrionChoices) -> PoolNow:
    """Return what is free in a pool from an instant on, and which starts are worth a try."""
    ends_ms = set[int]()
    for load in pool.reserved:
        if choices.ends == "before":  # line 21
            ends_ms = {each for each in ends_ms if each > load.from_ms}
        ends_ms.add(load.until_ms)
    later_ms = sorted(each for each in ends_ms if each > now_ms)
    starts_ms = (now_ms, *later_ms) if choices.waiting == "earliest" else (now_ms,)
    return PoolNow(pool, profile(pool.capacity, pool.reserved, now_ms), starts_ms)


def _try(
    pool: PoolNow,
    option: PlacementOption,
    deadline_at_ms: int,
    choices: OrionChoices,
    fitting: list[Placed],
    refused: list[NotTaken],
) -> None:
    for start_at_ms in pool.starts_ms:
        finish_at_ms = start_at_ms + option.upper_ms
        why = why_not(pool, option, start_at_ms, deadline_at_ms, choices)
        if why is None:
            cost = cost_of(pool.pool, option)
            fitting.append(Placed(pool.pool.name, option, start_at_ms, finish_at_ms, cost))
        else:
            refused.append(NotTaken(pool.pool.name, option, start_at_ms, why))


def why_not(
    pool: PoolNow, option: PlacementOption, start_at_ms: int, deadline_at_ms: int, choices: OrionChoices
) -> placements.PlacementReason | None:
    """Return why an option cannot start then; None: it can. Time first, then capacity, then money."""
    finish_at_ms = start_at_ms + option.upper_ms
    if finish_at_ms > deadline_at_ms:
        return placements.EndsTooLate(finish_at_ms, deadline_at_ms)
    free = pool.free.least_free(start_at_ms, finish_at_ms)
    if choices.capacity == "free" and free < option.containers:
        return placements.NoRoomThroughout(option.containers, max(0, free))
    most = pool.pool.hourly_mtokens
    if most is None:
        return None
    beside = pool.pool.capacity - free if choices.budget == "pool" else 0
    needed = pool.pool.cost_mtokens * HOUR_S * (option.containers + beside)
    return placements.OverHourlyBudget(needed, most) if needed > most else None


def _first(
    options: Sequence[PlacementOption], pooled: Sequence[PoolNow], choices: OrionChoices
) -> Placed | None:
    """Return what could end first, whatever the deadline."""
    found = [
        Placed(each.pool.name, option, start_at_ms, start_at_ms + option.upper_ms, cost_of(each.pool, option))
        for each in pooled
        for option in options
        if takes(each.pool, option)
        for start_at_ms in each.starts_ms
        if why_not(each, option, start_at_ms, start_at_ms + option.upper_ms, choices) is None
    ]
    return min(found, key=lambda each: (each.finish_at_ms, *_placed_key(each)), default=None)


def _nearest(refused: Sequence[NotTaken]) -> tuple[NotTaken, ...]:
    """Return one refusal for each option in a pool, those that would end soonest first."""
    first: dict[tuple[str, PlacementOption], NotTaken] = {}
    for each in refused:
        first.setdefault((each.pool, each.option), each)
    ordered = sorted(
        first.values(),
        key=lambda each: (each.start_at_ms + each.option.upper_ms, each.pool, _option_key(each.option)),
    )
    return tuple(ordered[:REFUSED_MAX])


def least_loaded(
    options: Iterable[PlacementOption], pools: Sequence[PlacementPool], now_ms: int
) -> Placed | None:
    """Return the paper's comparison: the pool with the fewest applications, and there all that is available.

    It reads no deadline and no predicted time: it takes the most containers that some option can use of those
    that are free, as soon as any are. None where no pool takes the application.
    """
    known = sorted(set(options), key=_option_key)
    found = []
    for pool in pools:
        usable = [each for each in known if takes(pool, each) and each.containers <= pool.capacity]
        running = sum(load.until_ms > now_ms for load in pool.reserved)
        if usable:
            found.append((running, pool.name, pool, usable))
    if not found:
        return None
    _, _, pool, usable = min(found, key=lambda each: each[:2])
    at = pool_now(pool, now_ms, OURS)
    for start_at_ms in at.starts_ms:
        fit = [
            each
            for each in usable
            if at.free.least_free(start_at_ms, start_at_ms + each.upper_ms) >= each.containers
        ]
        if fit:
            best = min(fit, key=lambda each: (-each.containers, _option_key(each)))
            return Placed(pool.name, best, start_at_ms, start_at_ms + best.upper_ms, cost_of(pool, best))
    return None
