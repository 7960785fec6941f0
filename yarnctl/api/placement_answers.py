"""Answers about placement: as what an application runs and why, pools with what is reserved, known runs.

Law: as in :mod:`yarnctl.api`. Containers include the master's; costs are in milli-tokens.
"""

from __future__ import annotations

import msgspec

from yarnctl.api.paged import Count, Paged, ReasonOut
from yarnctl.deciding.admission.records import Verdict


class NotPlacedOut(msgspec.Struct, frozen=True, kw_only=True):
    """An option at a start that was not chosen, and why."""

    kind: str
    pool: str
    containers: Count
    start_at_ms: int
    reason: ReasonOut


class PlacementOut(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided for an application that exists for several frameworks.

    It is submitted at ``start_at_ms`` and ends by ``finish_at_ms`` but with the chance ``late_ratio`` (null:
    from too few runs to certify it). Rejected: ``kind`` and ``pool`` are empty. ``refused``: the nearest.
    ``elapsed_ms`` is what it took, from its start to its end; null until it has ended.
    """

    verdict: Verdict
    kind: str
    pool: str
    containers: Count
    start_at_ms: int | None
    finish_at_ms: int | None
    predicted_ms: int | None
    cost_mtokens: int | None
    late_ratio: float | None
    settings: dict[str, str]
    reason: ReasonOut
    refused: list[NotPlacedOut]
    elapsed_ms: int | None = None


class PoolReservationOut(msgspec.Struct, frozen=True, kw_only=True):
    """What an admission holds in a pool, from when until when; ``application`` once it runs.

    ``admission`` and ``application`` of other users are null where a token reads only its own.
    """

    admission: str | None
    kind: str
    containers: Count
    from_ms: int
    until_ms: int
    application: str | None


class PoolOut(msgspec.Struct, frozen=True, kw_only=True):
    """A pool: what it has, what it takes, its price, and what is reserved when."""

    name: str
    queues: list[str]
    kinds: list[str]
    capacity: Count
    container_mib: Count
    cost_mtokens: Count
    hourly_mtokens: Count | None
    reserved: list[PoolReservationOut]


class RunOut(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a placed application that has ended; ``elapsed_ms``: from its start to its end."""

    application: str
    kind: str
    features: dict[str, float]
    settings: dict[str, str]
    containers: Count
    elapsed_ms: Count
    source: str


class RunPage(Paged, frozen=True, kw_only=True):
    """Runs that the journal has, the newest last."""

    items: list[RunOut]
