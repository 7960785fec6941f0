"""Admissions over HTTP: request one, wait, read, withdraw.

A command is answered once its record is written and published. Requesting, renewing and withdrawing need a
token with the scope ``submit``, for admissions of its own user, or ``operate``. Where reading needs a token,
a ``submit`` token reads its own admissions. Waiting is bounded in time and in number; a request beyond the
bound is answered at once. Work is in container-ms, a deadline is requested as a span.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from yarnctl.api.admission_answers import (
    AdmissionOut,
    AdmissionPage,
    AdmissionRequestOut,
    DelayedOut,
    GateOut,
    LateOut,
    PlanOut,
)
from yarnctl.api.market_answers import QuoteOut, RepricedBody
from yarnctl.api.paged import ErrorBody
from yarnctl.daemon.admission.admission_controller import AdmissionStatus
from yarnctl.daemon.admission.backlog import tag_of
from yarnctl.daemon.admission.request_queue import (
    NO_SENDER,
    Refusal,
    RequestedAdmission,
    RequestQueue,
    RequestSender,
    WithdrawRequest,
)
from yarnctl.daemon.view.published import View
from yarnctl.deciding.admission.book import OPEN, Admission
from yarnctl.deciding.admission.capacity import FOREVER_MS
from yarnctl.deciding.admission.records import Budget, Estimate, Refund, State
from yarnctl.deciding.reasons.rooting import code
from yarnctl.frameworks.submissions import FRAMEWORKS, PLAIN_KIND
from yarnctl.frameworks.submitting import Submitter
from yarnctl.hadoop.wire.tags import deadline_tag
from yarnctl.journal.rendering import said, text
from yarnctl.service.answers.describing import AnswerRoute, described
from yarnctl.service.answers.error_body import ApiProblem, responses
from yarnctl.service.answers.from_view import read_off, reason
from yarnctl.service.answers.paging import (
    INSTANT_MAX_MS,
    WAIT_MAX_MS,
    Name,
    NoParameters,
    NumberQuery,
    Parameters,
    by_number,
    matches,
)
from yarnctl.service.routes.lists import paths_in, with_queue
from yarnctl.service.routes.placement import (
    CONTAINERS_MAX,
    NUMBER,
    PRINTED,
    Kind,
    PlacementRequest,
    Span,
    Word,
    Work,
    alternatives_in,
    placement,
    pools,
    queue_of,
)
from yarnctl.service.security.middleware import ONLY_USER, Credentials, require, require_own
from yarnctl.service.security.tokens import Caller, Tokens


class EstimateIn(BaseModel):
    """The work of a job in container-ms, and the source of the estimate."""

    model_config = ConfigDict(extra="forbid")

    mean_ms: Annotated[int, Field(gt=0, le=INSTANT_MAX_MS), NUMBER]
    stdev_ms: Work = 0
    source: Annotated[str, Field(min_length=1, max_length=100, pattern=PRINTED)] = "request"


def _has(**types: str) -> dict[str, Any]:
    """Return the schema of an object with these properties, which are not null."""
    return {"required": [*types], "properties": {name: {"type": kind} for name, kind in types.items()}}


HAS_SIZE = {
    "if": {"anyOf": [_has(options="array"), _has(application="string")]},
    "else": _has(queue="string", containers="integer"),
}
HAS_TIME_AND_SIZE: dict[str, Any] = {
    "if": _has(deadline_ms="integer"),
    "then": HAS_SIZE,
    "else": {"allOf": [_has(budget_mtokens="integer"), HAS_SIZE]},
}
"""A request has a deadline or a budget, and options or a size: describes the check below.

``anyOf`` here would make generators of clients take it for a union and drop the operation.
"""


EXAMPLES: list[JsonValue] = [
    {"name": "daily", "user": "ann", "queue": "root.production", "containers": 6, "deadline_ms": 1_200_000}
]


class AdmissionRequest(PlacementRequest):
    """A request for the admission of a job.

    ``containers``: the most it can use at once, its application master's included. ``deadline_ms``: a span
    from now. Without ``estimate`` yarnctl reads the history of jobs of this name and kind. ``request_key``:
    made by the client; the same key returns the same admission, so that a request can be repeated.
    ``options``, or ``application`` with ``features``: the frameworks to choose from, where the gate places
    applications; then ``containers`` is optional, and ``queue`` is its pool's.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra={**HAS_TIME_AND_SIZE, "examples": EXAMPLES})

    name: Word
    user: Annotated[str, Field(min_length=1, max_length=100, pattern=PRINTED)]
    queue: Word | None = None
    containers: Annotated[int, Field(ge=1, le=CONTAINERS_MAX), NUMBER] | None = None
    deadline_ms: Span | None = None
    estimate: EstimateIn | None = None
    budget_mtokens: Annotated[int, Field(ge=1, le=10**15), NUMBER] | None = None
    account: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")] | None = None
    refund: Refund = "both"
    quote: Annotated[str, Field(pattern=r"^quo-[A-Za-z0-9]{1,40}-[0-9]{1,15}$")] | None = None
    kind: Kind = PLAIN_KIND
    request_key: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] | None = None

    @model_validator(mode="after")
    def _require_deadline_and_size(self) -> AdmissionRequest:
        if self.deadline_ms is None and self.budget_mtokens is None:
            raise ValueError("set deadline_ms or budget_mtokens")
        if not self.is_placed and (self.queue is None or self.containers is None):
            raise ValueError("set queue and containers, or options")
        return self


class AdmissionsQuery(NumberQuery):
    """Filters of the admissions."""

    state: Annotated[State | None, Field(description="In this state.")] = None
    user: Annotated[Name | None, Field(description="Of this user.")] = None
    queue: Annotated[Name | None, Field(description="For this queue.")] = None


class WaitQuery(Parameters):
    """How long to wait until the state is no longer ``waiting``."""

    wait_ms: Annotated[
        int,
        Field(
            ge=0,
            le=WAIT_MAX_MS,
            description="Answer when the state is no longer `waiting`, or after this time.",
        ),
    ] = 0


DONE_MS = 10_000  # How long a command waits for the loop to process it

STATUS = {
    "not-found": 404,
    "already-running": 409,
    "cluster-unreachable": 503,
    "request-key-used": 409,
    "queue-not-gated": 422,
    "no-such-queue": 422,
    "queue-full": 503,
    "not-written": 503,
    "no-estimate-yet": 503,
    "no-account": 409,
    "account-known": 409,
    "no-estimate": 409,
    "estimate-needs-operate": 403,
    "too-early": 409,
    "quote-moved": 409,
    "no-placement": 409,
    "no-options": 409,
    "no-pool": 422,
}

PRICED: dict[int | str, dict[str, Any]] = {409: {"model": described(RepricedBody) | described(ErrorBody)}}

Id = Annotated[str, PathParameter(pattern=r"^adm-[A-Za-z0-9]{1,40}-[0-9]{1,15}$", examples=["adm-a1b2-1"])]
Source = Callable[[], View]


def admission_routes(source: Source, tokens: Tokens, request_queue: RequestQueue | None) -> APIRouter:
    """Return the routes; ``request_queue`` None: admission is disabled, and its commands are errors."""
    router = APIRouter(
        prefix="/v1/admissions", tags=["admissions"], responses=responses(401, 421), route_class=AnswerRoute
    )
    _add_reading(router, source, request_queue)
    _add_writing(router, source, tokens, request_queue)
    return router


def _add_reading(router: APIRouter, source: Source, request_queue: RequestQueue | None) -> None:
    @router.get("")
    def admissions(request: Request, query: Annotated[AdmissionsQuery, Query()]) -> AdmissionPage:
        """Open admissions and the last ended ones, newest first."""
        view = source()
        only = request.scope.get(ONLY_USER)
        listed = [
            each
            for each in (view.admission.admissions if view.admission else ())
            if only in (None, each.user)
        ]
        query = with_queue(query, [*paths_in(view), *(each.queue for each in listed)])
        found = [
            each for each in listed if matches(query, state=each.state, user=each.user, queue=each.queue)
        ]
        shown, following = by_number(found, lambda each: each.sequence, query)
        return AdmissionPage(
            now_ms=view.now_ms,
            version=view.version,
            total=len(found),
            next=following,
            gate=None if view.admission is None else gate(view.admission, only),
            items=[admission(each, view.admission) for each in shown if view.admission is not None],
        )

    @router.get("/{admission_id}", responses=responses(404))
    def get_admission(
        request: Request, admission_id: Id, query: Annotated[WaitQuery, Query()]
    ) -> AdmissionOut:
        """One admission; with `wait_ms`, as soon as it is no longer `waiting`. Reading renews no lease."""
        only = request.scope.get(ONLY_USER)
        if only is not None:
            _require_own(source, Caller("", only, frozenset({"submit"})), admission_id)
        sender = NO_SENDER if only is None else RequestSender(only)
        return _waited(source, request_queue, admission_id, query.wait_ms, sender)


def _add_writing(
    router: APIRouter, source: Source, tokens: Tokens, request_queue: RequestQueue | None
) -> None:
    @router.post("", status_code=202, responses=responses(400, 403, 413, 503) | PRICED)
    def request_admission(
        credentials: Credentials, _: Annotated[NoParameters, Query()], request: AdmissionRequest
    ) -> AdmissionOut:
        """Request an admission. The answer follows once it is in the journal; the verdict can come later."""
        caller, queue = _admission(credentials, tokens, request_queue)
        if not caller.may_touch(request.user):
            raise other_user(caller, request.user)
        alternatives = alternatives_in(request, source(), queue, request.user)
        budget = _budget_of(caller, request, source().admission)
        options = () if alternatives is None else alternatives.options
        most = max((each.containers for each in options), default=1)
        wanted = RequestedAdmission(
            name=request.name,
            user=request.user,
            queue=request.queue or "",
            containers=request.containers or most,
            deadline_ms=request.deadline_ms,
            estimate=estimate_of(caller, request.estimate),
            kind=request.kind,
            key=request.request_key or "",
            budget=budget,
            quote=request.quote or "",
            alternatives=alternatives,
        )
        return _shown(source, _done(source, queue.submit(wanted, DONE_MS, sender_of(caller))))

    @router.post("/{admission_id}/renew", responses=responses(403, 404, 409))
    def renew_admission(
        admission_id: Id, credentials: Credentials, query: Annotated[WaitQuery, Query()]
    ) -> AdmissionOut:
        """Renew the lease of a waiting admission, and wait as reading does."""
        caller, queue = _admission(credentials, tokens, request_queue)
        _require_own(source, caller, admission_id)
        queue.renew(admission_id, query.wait_ms)
        return _waited(source, queue, admission_id, query.wait_ms, sender_of(caller))

    @router.delete("/{admission_id}", responses=responses(403, 404, 409, 503))
    def withdraw_admission(
        admission_id: Id, credentials: Credentials, _: Annotated[NoParameters, Query()]
    ) -> AdmissionOut:
        """Withdraw a `waiting` or `admitted` admission, unless its application is in YARN already."""
        caller, queue = _admission(credentials, tokens, request_queue)
        _require_own(source, caller, admission_id)
        withdrawal = WithdrawRequest(admission_id)
        return _shown(source, _done(source, queue.submit(withdrawal, DONE_MS, sender_of(caller))))


def _require_own(source: Source, caller: Caller, name: str) -> None:
    _, found = _find(source, name)
    if found is None:
        raise _unknown(name)
    require_own(caller, found.user)


def _admission(
    credentials: Credentials, tokens: Tokens, request_queue: RequestQueue | None
) -> tuple[Caller, RequestQueue]:
    """Return the caller and the request queue; raises ApiProblem without the scope ``submit``."""
    caller = require(tokens, credentials, "submit")
    if request_queue is None:
        raise gate_off()
    return caller, request_queue


def gate_off() -> ApiProblem:
    """Return the error of a daemon without admission control."""
    return ApiProblem(
        409, "gate-off", "admission control is disabled", "restart the daemon with --admission ALLOCATOR"
    )


def other_user(caller: Caller, user: str) -> ApiProblem:
    """Return the error of a token that must not request for ``user``."""
    return ApiProblem(
        403,
        "other-user",
        f"the token {caller.name} is for user {caller.user}, the request for user {user}",
        "use a token of that user, or one with the scope operate",
    )


def _done(source: Source, answer: str | Refusal) -> str:
    if isinstance(answer, Refusal):
        made = quote_of(source, answer.quote)
        raise ApiProblem(STATUS[answer.code], answer.code, answer.problem, answer.remedy, quote=made)
    return answer


def quote_of(source: Source, name: str) -> QuoteOut | None:
    """Return a quote, None if it is no longer kept."""
    status = source().admission
    made = None if status is None else status.quotes.get(name)
    return None if made is None else msgspec.convert(made, QuoteOut, from_attributes=True)


def _budget_of(caller: Caller, request: AdmissionRequest, status: AdmissionStatus | None) -> Budget | None:
    """Return the budget, None without prices; raises ApiProblem (403) for an account not the token's."""
    if request.budget_mtokens is None or (status is not None and not status.priced):
        return None
    return Budget(account_of(caller, request.account), request.budget_mtokens, request.refund)


def account_of(caller: Caller, account: str | None) -> str:
    """Return the account that pays; raises ApiProblem (403) if it is not the token's."""
    if account is None:
        if not caller.account:
            raise ApiProblem(
                403,
                "other-account",
                f"the token {caller.name} has no account",
                'name an account in the request, or set account = "NAME" for the token',
            )
        return caller.account
    if account != caller.account and not caller.may("operate"):
        raise ApiProblem(
            403,
            "other-account",
            f"the token {caller.name} cannot pay from account {account}",
            "use a token of that account, or one with the scope operate",
        )
    return account


def estimate_of(caller: Caller, estimate: EstimateIn | None) -> Estimate | None:
    """Return the estimate of a request, marked with the caller's role."""
    if estimate is None:
        return None
    by: Literal["operator", "user"] = "operator" if caller.may("operate") else "user"
    return Estimate(estimate.mean_ms, estimate.stdev_ms, estimate.source, given_by=by)


# --- reading ------------------------------------------------------------------------------------------


def sender_of(caller: Caller) -> RequestSender:
    """Return the sender that a token's commands count for in the request queue."""
    return RequestSender(caller.user or caller.name, "operate" in caller.scopes)


def _waited(
    source: Source, request_queue: RequestQueue | None, name: str, wait_ms: int, sender: RequestSender
) -> AdmissionOut:
    def decided() -> bool:
        _, found = _find(source, name)
        return found is None or found.state != "waiting"

    if request_queue is not None and wait_ms and not decided():
        request_queue.wait(decided, wait_ms, sender)
    return _shown(source, name)


def _find(source: Source, name: str) -> tuple[AdmissionStatus | None, Admission | None]:
    status = source().admission
    found = () if status is None else status.admissions
    return status, next((each for each in found if each.admission == name), None)


def _shown(source: Source, name: str) -> AdmissionOut:
    status, found = _find(source, name)
    if status is None or found is None:
        raise _unknown(name)
    return admission(found, status)


def _unknown(name: str) -> ApiProblem:
    return ApiProblem(
        404,
        "not-found",
        f"admission {name} does not exist or is no longer kept",
        "GET /v1/admissions lists the admissions that are kept",
    )


def gate(status: AdmissionStatus, only_user: str | None) -> GateOut:
    """Return the gate; ``only_user``: name admissions of this user only (None: of all)."""
    return read_off(
        GateOut,
        status,
        problem=said(status.problem),
        reason=reason(status.problem),
        pools=pools(status, only_user),
    )


def _serve_by_ms(admission: Admission) -> int:
    """Return the deadline for YARN: where deadlines have a price, the end of the reservation."""
    if admission.plan.price_mtokens is not None and admission.reservation is not None:
        return admission.reservation.until_ms
    return admission.request.due_ms


def _term_name(admission: Admission, term: str) -> str:
    """Return the id of an admission of the same gate, which a price names by its number."""
    return f"{admission.admission.rpartition('-')[0]}-{term}" if term.isdigit() else term


def _refunded_mtokens(admission: Admission, status: AdmissionStatus) -> int | None:
    if admission.plan.price_mtokens is None:
        return None
    paid = status.payments.get(admission.admission)
    return 0 if paid is None else paid.refunded_mtokens or 0


def admission(admission: Admission, status: AdmissionStatus) -> AdmissionOut:
    """Return one admission, with the tags and settings to submit its job with."""
    request, plan, held = admission.request, admission.plan, admission.reservation
    framework = (
        FRAMEWORKS.get(plan.kind or request.kind) if admission.state in ("admitted", "running") else None
    )
    budget = request.budget
    return AdmissionOut(
        id=admission.admission,
        state=admission.state,
        why="" if admission.why is None else text(admission.why),
        reason=reason(admission.why),
        request=AdmissionRequestOut(
            name=admission.name,
            user=admission.user,
            queue=queue_of(admission, status),
            containers=request.tasks,
            deadline_ms=request.span_ms
            if request.deadline_ms is not None or plan.verdict != "admit"
            else plan.deadline_at_ms - request.submitted_at_ms,
            submitted_at_ms=request.submitted_at_ms,
            estimate=request.estimate,
            kind=plan.kind or request.kind,
            account=None if budget is None else budget.account,
            budget_mtokens=None if budget is None else budget.most_mtokens,
        ),
        plan=read_off(
            PlanOut,
            plan,
            reason=text(plan.reason),
            reason_code=code(plan.reason),
            because=[(_term_name(admission, term), amount) for term, amount in plan.because],
        ),
        application=admission.application or None,
        expires_at_ms=None if held is None or held.expires_at_ms >= FOREVER_MS else held.expires_at_ms,
        lease_ms=status.lease_ms,
        tags=[deadline_tag(_serve_by_ms(admission)), tag_of(admission.admission)],
        settings={} if framework is None else _settings(framework, admission, status),
        placement=placement(admission, status),
        changed_at_ms=admission.changed_at_ms,
        refunded_mtokens=_refunded_mtokens(admission, status),
        late=_late(admission, status),
        delayed=_delayed(admission, status),
    )


def _late(admission: Admission, status: AdmissionStatus) -> LateOut | None:
    late = status.late.get(admission.admission)
    return None if late is None or admission.state != "running" else read_off(LateOut, late)


def _delayed(admission: Admission, status: AdmissionStatus) -> DelayedOut | None:
    delayed = status.delayed.get(admission.admission)
    if delayed is None or admission.state not in OPEN:
        return None
    return read_off(DelayedOut, delayed, delayed_by=list(delayed.delayed_by))


def _settings(submitter: Submitter, admission: Admission, status: AdmissionStatus) -> dict[str, str]:
    plan, given = admission.plan, submitter.given(admission.plan.containers)
    if not plan.kind:
        return given
    path = queue_of(admission, status)
    queue = path if status.queues is None else status.queues.submitted(path)
    return given | {submitter.QUEUE: queue} | dict(plan.settings)
