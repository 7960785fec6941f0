"""Answers about admissions and the gate.

Law: as in :mod:`yarnctl.api`. Work is in container-ms, a deadline is asked for as a span and told as an
instant on the daemon's clock. Nothing is done for who asks: what is told is what to submit with.
"""

from __future__ import annotations

import msgspec

from yarnctl.api.paged import Count, Paged, ReasonOut
from yarnctl.api.placement_answers import PlacementOut, PoolOut
from yarnctl.deciding.admission.records import Estimate, State, Verdict


class AskedOut(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for; ``account`` pays at most ``budget_mtokens`` where deadlines have a price."""

    name: str
    user: str
    queue: str
    containers: Count
    deadline_ms: int
    submitted_at_ms: int
    estimate: Estimate | None
    kind: str
    account: str | None = None
    budget_mtokens: int | None = None


class PlanOut(msgspec.Struct, frozen=True, kw_only=True):
    """The newest verdict with what follows from it; what is unknown is null.

    ``reason`` is a sentence for people; programs compare ``reason_code``.
    """

    verdict: Verdict
    containers: Count
    deadline_at_ms: int
    start_at_ms: int | None
    finish_at_ms: int | None
    reason: str
    reason_code: str = ""
    price_mtokens: int | None = None
    late_ratio: float | None = None
    because: list[tuple[str, int]] = []


class AdmissionOut(msgspec.Struct, frozen=True, kw_only=True):
    """One admission.

    ``tags`` and ``settings`` are what to submit with once ``state`` is "admitted" (before, and for a
    kind that is not known here, ``settings`` are empty); it must have been seen by ``expires_at_ms``.
    ``lease_ms``: who
    waits and does not renew for so long is withdrawn. ``why`` says why it is over, or is empty.
    ``changed_at_ms`` is the instant of its state: of one that has ended, when that was observed.
    ``refunded_mtokens`` is what was paid back of the plan's price so far, null where nothing has a price.
    ``placement``: as what it runs, where the gate places applications.
    """

    id: str
    state: State
    why: str
    request: AskedOut
    plan: PlanOut
    application: str | None
    expires_at_ms: int | None
    lease_ms: int
    tags: list[str]
    settings: dict[str, str]
    reason: ReasonOut | None = None
    changed_at_ms: int | None = None
    refunded_mtokens: Count | None = None
    placement: PlacementOut | None = None


class GateOut(msgspec.Struct, frozen=True, kw_only=True):
    """The gate. ``capacity`` in containers of ``container_mib``, null until the cluster has been seen.

    ``pools``: where it places applications; ``capacity`` is that of all.

    ``problem`` ("" if there is none) and ``reason`` say why the gate cannot decide now.
    """

    allocator: str
    capacity: Count | None
    container_mib: Count | None
    waiting: Count
    reserved: Count
    learned: Count
    problem: str
    reason: ReasonOut | None = None
    pools: list[PoolOut] = []


class AdmissionPage(Paged, frozen=True, kw_only=True):
    """Admissions, newest first; ``gate`` is null if the daemon runs without one."""

    gate: GateOut | None
    items: list[AdmissionOut]
