"""ApplicationMasters on the timeline: a submitted job holds a container until it ends, served or not.

Until a job is submitted its master is part of its work. From then on it is fixed load until the job's planned
end, even while the job waits behind earlier deadlines. The planned ends follow from the load and the load
from the ends: both are computed in turn from the least load on, so that neither falls, until they agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Profile
from yarnctl.deciding.admission.pricing.timeline import Due, by_deadline, served_of

TRIES = 8
"""If the ends still move then, the masters are counted until their jobs' deadlines at least."""


class Master(NamedTuple):
    """One container: for ``latency_ms`` longer than the job's work takes, until ``until_ms`` at least."""

    latency_ms: int
    until_ms: int = 0


def masters_load(
    profile: Profile, dues: Sequence[Due], masters: Mapping[str, Master], now_ms: int
) -> tuple[Load, ...]:
    """Return the load of the masters; ``dues`` are all jobs that are served, without these containers.

    The last results are kept: a round needs the same one several times.
    """
    if not masters:
        return ()
    return _masters_load(profile, tuple(by_deadline(dues)), tuple(masters.items()), now_ms)


@lru_cache(maxsize=4)
def _masters_load(
    profile: Profile, dues: tuple[Due, ...], named: tuple[tuple[str, Master], ...], now_ms: int
) -> tuple[Load, ...]:
    masters = dict(named)
    ends_ms = _ends(profile, dues, masters, (), now_ms)
    for _ in range(TRIES):
        loads = _loads(masters, ends_ms, now_ms)
        later_ms = _ends(profile, dues, masters, loads, now_ms)
        if all(later_ms[who] <= end_ms for who, end_ms in ends_ms.items()):
            return loads
        ends_ms = {who: max(end_ms, later_ms[who]) for who, end_ms in ends_ms.items()}
    due_ms = {due.who: due.due_at_ms for due in dues}
    return _loads(masters, {who: max(end, due_ms.get(who, 0)) for who, end in ends_ms.items()}, now_ms)


def _ends(
    profile: Profile, dues: Sequence[Due], masters: Mapping[str, Master], loads: Sequence[Load], now_ms: int
) -> dict[str, int]:
    """Return when the work of each submitted job ends; of one without any left, now."""
    found = served_of(profile.with_loads(loads), dues, now_ms, masters)
    return {who: found.get(who, now_ms) for who in masters}


def _loads(masters: Mapping[str, Master], ends_ms: Mapping[str, int], now_ms: int) -> tuple[Load, ...]:
    loads = list[Load]()
    for who, master in masters.items():
        until_ms = max(ends_ms[who] + master.latency_ms, master.until_ms)
        if until_ms > now_ms:
            loads.append(Load(who, 1, now_ms, min(until_ms, FOREVER_MS)))
    return tuple(loads)
