"""Placement over HTTP: options in a request, the plan in an answer, pools, and the runs in the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from yarnctl.api.paged import ReasonOut
from yarnctl.api.placement_answers import (
    NotPlacedOut,
    PlacementOut,
    PoolOut,
    PoolReservationOut,
    RunOut,
    RunPage,
)
from yarnctl.daemon.admission.admission_controller import AdmissionStatus
from yarnctl.daemon.admission.placement_desk import LATE_RATIO, UserRun
from yarnctl.daemon.admission.request_queue import RequestQueue
from yarnctl.daemon.view.published import View
from yarnctl.deciding.admission.book import OPEN, Admission
from yarnctl.deciding.admission.placement_options import OPTIONS_MAX, Alternatives, PlacementOption
from yarnctl.deciding.reasons.rooting import Reason
from yarnctl.errors import BadInput
from yarnctl.journal.rendering import text
from yarnctl.service.answers.describing import AnswerRoute
from yarnctl.service.answers.error_body import ApiProblem, responses
from yarnctl.service.answers.from_view import read_off, reason
from yarnctl.service.answers.paging import INSTANT_MAX_MS, Name, NumberQuery, by_number
from yarnctl.service.security.middleware import ONLY_USER

CONTAINERS_MAX = 1_000_000
SPAN_MAX_MS = 366 * 86_400_000


def _number(value: object) -> object:
    """Return a number; raises ValueError for text and booleans, which pydantic would convert."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")
    return value


NUMBER = BeforeValidator(_number)
PRINTED = r"^[^\x00-\x1f\x7f-\x9f]+$"  # Text without control characters, which a terminal would execute
Span = Annotated[int, Field(gt=0, le=SPAN_MAX_MS), NUMBER]
Work = Annotated[int, Field(ge=0, le=INSTANT_MAX_MS), NUMBER]
Kind = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,40}$")]
Word = Annotated[str, Field(min_length=1, max_length=200, pattern=PRINTED)]

FEATURES_MAX = 64
SETTINGS_MAX = 32

Feature = Annotated[float, Field(allow_inf_nan=False), NUMBER]
LateRatio = Annotated[float, Field(gt=0, le=0.5, allow_inf_nan=False), NUMBER]
PRINTED_KEYS_ONLY = {"additionalProperties": False}
"""The document has the keys' pattern as ``patternProperties``, which alone allows any other key."""
Features = Annotated[dict[Word, Feature], Field(max_length=FEATURES_MAX, json_schema_extra=PRINTED_KEYS_ONLY)]


class OptionIn(BaseModel):
    """A framework with a number of containers, its application master's included.

    ``upper_ms``: upper bound of its run time. ``predicted_ms``: its expected run time (default: the bound).
    ``pool``: the pool to run in (default: any).
    """

    model_config = ConfigDict(extra="forbid")

    kind: Kind
    pool: Annotated[str, Field(max_length=40)] = ""
    containers: Annotated[int, Field(ge=1, le=CONTAINERS_MAX), NUMBER]
    upper_ms: Span
    predicted_ms: Span | None = None
    settings: Annotated[
        dict[Word, Word], Field(max_length=SETTINGS_MAX, json_schema_extra=PRINTED_KEYS_ONLY)
    ] = {}
    late_ratio: LateRatio | None = None


Options = Annotated[list[OptionIn], Field(min_length=1, max_length=OPTIONS_MAX)]
Lacking = Annotated[list[Kind], Field(max_length=16)]


class PlacementRequest(BaseModel):
    """The placement part of an admission request.

    ``options``: the frameworks to choose from. Without them yarnctl predicts options from the known runs of
    ``application``, by ``features``; ``late_ratio`` is the probability to exceed an upper bound (0.5: the
    prediction itself). ``lacking``: kinds with too few runs known to the sender.
    """

    application: Word | None = None
    features: Features | None = None
    options: Options | None = None
    lacking: Lacking = []
    late_ratio: LateRatio = LATE_RATIO

    @property
    def is_placed(self) -> bool:
        """Whether the request is for placement."""
        return self.options is not None or self.application is not None


def alternatives_in(
    request: PlacementRequest, view: View, request_queue: RequestQueue, user: str
) -> Alternatives | None:
    """Return a request's options; None: it is not for placement. Raises ApiProblem (409)."""
    if not request.is_placed:
        return None
    features = dict(sorted((request.features or {}).items()))
    if request.options is not None:
        named = tuple(features.items())
        made = tuple(map(_option, request.options))
        return Alternatives(made, request.application or "", named, tuple(sorted(set(request.lacking))))
    if request_queue.predicted is None:
        raise ApiProblem(
            409,
            "no-runs",
            "the daemon keeps no runs to predict options from",
            "send options, or restart the daemon with --admission orion",
        )
    runs = [each.run for each in _runs(view) if each.user == user]
    try:
        return request_queue.predicted(request.application or "", features, request.late_ratio, runs)
    except BadInput as problem:
        message = f"{problem.where}: {problem.problem}"
        raise ApiProblem(409, "no-options", message, problem.remedy or "see yarnctl profile") from None


def _option(option: OptionIn) -> PlacementOption:
    return PlacementOption(
        option.kind,
        option.containers,
        min(option.predicted_ms or option.upper_ms, option.upper_ms),
        option.upper_ms,
        tuple(sorted(option.settings.items())),
        option.pool,
        option.late_ratio,
    )


def _runs(view: View) -> tuple[UserRun, ...]:
    return () if view.admission is None else view.admission.runs


def placement(admission: Admission, status: AdmissionStatus) -> PlacementOut | None:
    """Return the placement of an admission; None: its request is not for placement."""
    plan = admission.plan
    if admission.request.alternatives is None:
        return None
    return read_off(
        PlacementOut,
        plan,
        settings=dict(plan.settings),
        reason=_reason(plan.reason),
        refused=[read_off(NotPlacedOut, one, reason=_reason(one.reason)) for one in plan.refused],
        elapsed_ms=status.ran_ms.get(admission.admission) or None,
    )


def _reason(placement_reason: Reason) -> ReasonOut:
    return reason(placement_reason) or ReasonOut(code="", text=text(placement_reason))


def queue_of(admission: Admission, status: AdmissionStatus) -> str:
    """Return the queue of an admission; of a placed one, its pool's."""
    pool = next((one for one in status.pools if one.name and one.name == admission.plan.pool), None)
    return admission.queue if pool is None or not pool.queues else pool.queues[0]


def pools(status: AdmissionStatus, only_user: str | None) -> list[PoolOut]:
    """Return the pools with reservations by start; those of others than ``only_user`` have no ids."""
    open_now = [each for each in status.admissions if each.reservation is not None and each.state in OPEN]
    return [
        read_off(
            PoolOut,
            pool,
            queues=list(pool.queues),
            kinds=list(pool.kinds),
            reserved=sorted(
                (_reserved(each, only_user) for each in open_now if each.plan.pool == pool.name),
                key=lambda held: (held.from_ms, held.admission or ""),
            ),
        )
        for pool in status.pools
        if pool.name
    ]


def _reserved(admission: Admission, only_user: str | None) -> PoolReservationOut:
    assert admission.reservation is not None
    named = only_user in (None, admission.user)
    return read_off(
        PoolReservationOut,
        admission.reservation,
        admission.plan,
        admission=admission.admission if named else None,
        application=(admission.application or None) if named else None,
    )


class RunsQuery(NumberQuery):
    """Filters of the runs."""

    application: Annotated[Name | None, Field(description="Of this application.")] = None


def run_routes(source: Callable[[], View]) -> APIRouter:
    """Return the route of the runs in the journal."""
    router = APIRouter(
        prefix="/v1/runs", tags=["admissions"], responses=responses(401, 421), route_class=AnswerRoute
    )

    @router.get("")
    def runs(request: Request, query: Annotated[RunsQuery, Query()]) -> RunPage:
        """Run times of ended placed applications, in the order of their ends."""
        view = source()
        only = request.scope.get(ONLY_USER)
        numbered = [
            (number, each.run)
            for number, each in enumerate(_runs(view))
            if only in (None, each.user) and query.application in (None, each.run.application)
        ]
        shown, following = by_number(numbered, lambda row: row[0], query, rising=True)
        return RunPage(
            now_ms=view.now_ms,
            version=view.version,
            total=len(numbered),
            next=following,
            items=[RunOut(**msgspec.structs.asdict(run)) for _, run in shown],
        )

    return router
