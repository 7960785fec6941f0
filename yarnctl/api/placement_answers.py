"""Answers about placement: framework and pool of an application, reservations in pools, known runs.

Containers include the application master's; costs are in milli-tokens.
"""

from __future__ import annotations

import msgspec

from yarnctl.api.paged import Count, Paged, ReasonOut
from yarnctl.deciding.admission.records import Verdict


class NotPlacedOut(msgspec.Struct, frozen=True, kw_only=True):
    """An option that was not chosen, at a start, and why."""

    kind: str
    pool: str
    containers: Count
    start_at_ms: int
    reason: ReasonOut


class PlacementOut(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on an application that exists for several frameworks.

    It is submitted at ``start_at_ms`` and ends by ``finish_at_ms``, except with probability ``late_ratio``
    (null: too few runs to certify one). If it is rejected, ``kind`` and ``pool`` are empty. ``refused``: the
    nearest options that were not chosen. ``elapsed_ms``: from its start to its end, null until it has ended.
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
    """A reservation of an admission in a pool; ``application``: set once it runs.

    ``admission`` and ``application`` of other users are null for a token that reads only its own.
    """

    admission: str | None
    kind: str
    containers: Count
    from_ms: int
    until_ms: int
    application: str | None


class PoolOut(msgspec.Struct, frozen=True, kw_only=True):
    """A pool: its queues and capacity, the kinds that it accepts, its price, and its reservations."""

    name: str
    queues: list[str]
    kinds: list[str]
    capacity: Count
    container_mib: Count
    cost_mtokens: Count
    hourly_mtokens: Count | None
    reserved: list[PoolReservationOut]


class RunOut(msgspec.Struct, frozen=True, kw_only=True):
    """One ended run of a placed application; ``elapsed_ms``: from its start to its end."""

    application: str
    kind: str
    features: dict[str, float]
    settings: dict[str, str]
    containers: Count
    elapsed_ms: Count
    source: str


class RunPage(Paged, frozen=True, kw_only=True):
    """Runs in the journal, newest last."""

    items: list[RunOut]
