"""Answers about admissions and the gate.

Work is in container-ms. A request has its deadline as a span, an answer as an instant of the daemon's clock.
The client submits the job, with the tags and settings of the answer.
"""

from __future__ import annotations

import msgspec

from yarnctl.api.paged import Count, Paged, ReasonOut
from yarnctl.api.placement_answers import PlacementOut, PoolOut
from yarnctl.deciding.admission.records import Estimate, State, Verdict


class AdmissionRequestOut(msgspec.Struct, frozen=True, kw_only=True):
    """The request; ``account`` pays at most ``budget_mtokens`` where deadlines have a price."""

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
    """The newest verdict and the plan that follows from it; unknown values are null.

    ``reason`` is for people; programs compare ``reason_code``. ``because``: the terms of the price.
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


class LateOut(msgspec.Struct, frozen=True, kw_only=True):
    """A running job that will miss its deadline: when that was known, and when it ends at its pace so far."""

    known_at_ms: int
    projected_at_ms: int


class DelayedOut(msgspec.Struct, frozen=True, kw_only=True):
    """A promise that late admissions (``delayed_by``) break, with its new quote of ``quoted_at_ms``.

    ``deadline_at_ms`` is the earliest deadline that can be kept. ``start_at_ms`` is null if the job runs
    already, ``price_mtokens`` where deadlines have no price. Nothing more is charged.
    """

    quoted_at_ms: int
    deadline_at_ms: int
    start_at_ms: int | None
    price_mtokens: Count | None
    delayed_by: list[str]


class AdmissionOut(msgspec.Struct, frozen=True, kw_only=True):
    """One admission.

    ``tags``, ``settings``: submit the job with them once ``state`` is "admitted" (before that, and for
    an unknown kind, ``settings`` is empty). The application must be running by ``expires_at_ms``.
    ``lease_ms``: a waiting admission that no client renews for this time is withdrawn.
    ``why``: the reason of its end, or "". ``changed_at_ms``: when it entered its state, or was first
    observed in it.
    ``refunded_mtokens``: the part of the price refunded so far, null where deadlines have no price.
    ``placement``: the framework and pool, where the gate places applications. ``late``: its job runs and will
    miss its deadline (null: it is not known to). ``delayed``: late jobs delay it past its deadline (null:
    none does).
    """

    id: str
    state: State
    why: str
    request: AdmissionRequestOut
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
    late: LateOut | None = None
    delayed: DelayedOut | None = None


class GateOut(msgspec.Struct, frozen=True, kw_only=True):
    """The gate. ``capacity``: containers of ``container_mib``, null until the cluster is observed.

    ``pools``: where the gate places applications; ``capacity`` is then their sum. ``problem`` ("" if there is
    none) and ``reason``: why admission is paused.
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
