"""Admissions over HTTP: request one, wait, read, withdraw.

Law: what is read is read from one view. A command is answered once its record is written and published;
requesting, renewing and withdrawing need a token with the scope ``submit``, for its own user's admissions
only, or ``operate``. Where reading is not free such a token reads its own, too. Waiting is bounded in time
and in number: a request beyond the bound is answered at once. Bodies are checked here; an unknown field is
refused. Work is in container-ms, a deadline is requested as a span.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from pydantic import BaseModel, ConfigDict, Field, model_validator

from yarnctl.api.admission_answers import AdmissionOut, AdmissionPage, AskedOut, GateOut, PlanOut
from yarnctl.api.market_answers import QuoteOut, RepricedBody
from yarnctl.api.paged import ErrorBody
from yarnctl.daemon.admission.admission_controller import AdmissionStatus
from yarnctl.daemon.admission.backlog import tag_of
from yarnctl.daemon.admission.request_queue import (
    NO_SENDER,
    AdmissionClient,
    Refusal,
    RequestQueue,
    RequestSender,
    WithdrawRequest,
)
from yarnctl.daemon.view.published import View
from yarnctl.deciding.admission.book import Admission
from yarnctl.deciding.admission.capacity import FOREVER_MS
from yarnctl.deciding.admission.placement_options import Alternatives
from yarnctl.deciding.admission.records import Budget, Estimate, Refund, State
from yarnctl.deciding.reasons.rooting import code
from yarnctl.hadoop.wire.mapreduce import deadline_tag
from yarnctl.journal.rendering import said, text
from yarnctl.service.answers.describing import AnswerRoute, described
from yarnctl.service.answers.error_body import ApiProblem, responses
from yarnctl.service.answers.from_view import reason
from yarnctl.service.answers.paging import INSTANT_MAX_MS, ByNumber, Name, NoParameters, Parameters, by_number
from yarnctl.service.routes.body_fields import CONTAINERS_MAX, NUMBER, PRINTED, Kind, Span, Word, Work
from yarnctl.service.routes.placement import (
    PlacementRequest,
    alternatives_in,
    placement,
    pools,
    queue_of,
)
from yarnctl.service.routes.queue_filter import paths_in, with_queue
from yarnctl.service.security.middleware import ONLY_USER, Credentials, require, require_own
from yarnctl.service.security.tokens import Caller, Tokens
from yarnctl.submitting import FRAMEWORKS, PLAIN_KIND
from yarnctl.submitting.framework import Framework

WAIT_MAX_MS = 30_000


class PauseRequest(BaseModel):
    """Why the loop is to pause; it is shown with the loop's state."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    why: Annotated[str, Field(max_length=200)] = "paused by request"


class EstimateIn(BaseModel):
    """How much a job computes, in container-ms, and the source of that."""

    model_config = ConfigDict(extra="forbid")

    mean_ms: Annotated[int, Field(gt=0, le=INSTANT_MAX_MS), NUMBER]
    stdev_ms: Work = 0
    source: Annotated[str, Field(min_length=1, max_length=100, pattern=PRINTED)] = "request"


WHEN = ({"deadline_ms": "integer"}, {"budget_mtokens": "integer"})
HOW_BIG = ({"queue": "string", "containers": "integer"}, {"options": "array"}, {"application": "string"})
WHEN_AND_HOW_BIG: list[Any] = [
    {"required": [*when, *size], "properties": {name: {"type": of} for name, of in (when | size).items()}}
    for when in WHEN
    for size in HOW_BIG
]
"""A request has a deadline or a budget, and a size or options: the description of the check below."""


class AdmissionRequest(PlacementRequest):
    """A job that asks to be let in.

    ``containers``: the most it can use at once, its master's included. ``deadline_ms``: a span from now.
    Without ``estimate`` the history of jobs of this name and kind is queried. ``request_key``: made by the
    client; the same key again gets the same admission, so that a request may be repeated.
    ``options``, or ``application`` with ``features``: as what it may be run, where applications are placed;
    then ``containers`` may be left out, and ``queue`` is its pool's.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra={"anyOf": WHEN_AND_HOW_BIG})

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
    def _says_when_or_for_how_much(self) -> AdmissionRequest:
        """A deadline may be left out only where a budget says how early it is to be."""
        if self.deadline_ms is None and self.budget_mtokens is None:
            raise ValueError("give deadline_ms, or budget_mtokens")
        if not self.is_placed and (self.queue is None or self.containers is None):
            raise ValueError("give queue and containers, or options")
        return self


class AdmissionsQuery(ByNumber):
    """Filters of the admissions."""

    state: Annotated[State | None, Field(description="In this state.")] = None
    user: Annotated[Name | None, Field(description="Of this user.")] = None
    queue: Annotated[Name | None, Field(description="For this queue.")] = None


class WaitQuery(Parameters):
    """How long to wait for an answer that is no longer ``waiting``."""

    wait_ms: Annotated[
        int,
        Field(ge=0, le=WAIT_MAX_MS, description="Answer as soon as the state is not `waiting`, or then."),
    ] = 0


DONE_MS = 10_000
"""So long the loop has to come to what was handed over."""

STATUS = {
    "not-found": 404,
    "already-taken": 409,
    "cluster-unreachable": 503,
    "request-key-used": 409,
    "queue-not-gated": 422,
    "no-such-queue": 422,
    "desk-full": 503,
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

Id = Annotated[str, PathParameter(pattern=r"^adm-[A-Za-z0-9]{1,40}-[0-9]{1,15}$")]
Source = Callable[[], View]


def admission_routes(source: Source, tokens: Tokens, window: RequestQueue | None) -> APIRouter:
    """Make the routes; without ``window`` there is no gate, and its commands are refused."""
    router = APIRouter(
        prefix="/v1/admissions",
        tags=["admissions"],
        responses=responses(401, 421),
        route_class=AnswerRoute,
    )
    _add_reading(router, source, window)
    _add_writing(router, source, tokens, window)
    return router


def _add_reading(router: APIRouter, source: Source, window: RequestQueue | None) -> None:
    @router.get("")
    def admissions(request: Request, asked: Annotated[AdmissionsQuery, Query()]) -> AdmissionPage:
        """All admissions that are open and the last that are over, newest first."""
        view = source()
        only = request.scope.get(ONLY_USER)
        listed = [
            each
            for each in (view.admission.admissions if view.admission else ())
            if only in (None, each.user)
        ]
        asked = with_queue(asked, [*paths_in(view), *(each.queue for each in listed)])
        found = [each for each in listed if _is_wanted(each, asked)]
        shown, following = by_number(found, lambda each: each.sequence, asked)
        return AdmissionPage(
            now_ms=view.now_ms,
            version=view.version,
            total=len(found),
            next=following,
            gate=None if view.admission is None else gate(view.admission, only),
            items=[admission(each, view.admission) for each in shown if view.admission is not None],
        )

    @router.get("/{admission_id}", responses=responses(404))
    def one(request: Request, admission_id: Id, asked: Annotated[WaitQuery, Query()]) -> AdmissionOut:
        """One admission; with `wait_ms` as soon as it is no longer `waiting`. Looking renews no lease."""
        only = request.scope.get(ONLY_USER)
        if only is not None:
            _require_own(source, Caller("", only, frozenset({"submit"})), admission_id)
        sender = NO_SENDER if only is None else RequestSender(only)
        return _waited(source, window, admission_id, asked.wait_ms, sender)


def _add_writing(router: APIRouter, source: Source, tokens: Tokens, window: RequestQueue | None) -> None:
    @router.post("", status_code=202, responses=responses(400, 403, 413, 503) | PRICED)
    def ask(
        given: Credentials, _: Annotated[NoParameters, Query()], request: AdmissionRequest
    ) -> AdmissionOut:
        """Ask to be let in. It is written down when this answers; the verdict may come later."""
        caller, desk = _admission(given, tokens, window)
        if not caller.may_touch(request.user):
            told = f"the token {caller.name} is for admissions of {caller.user}, and not of {request.user}"
            raise ApiProblem(403, "other-user", told, "ask as the token's user, or with the scope operate")
        alternatives = alternatives_in(request, source(), desk, request.user)
        budget = _budget_of(caller, request, source().admission)
        wanted = _request_of(request, alternatives, budget, estimate_of(caller, request.estimate))
        return _shown(source, _done(source, desk.submit(wanted, DONE_MS, sender_of(caller))))

    @router.post("/{admission_id}/renew", responses=responses(403, 404, 409))
    def renew(admission_id: Id, given: Credentials, asked: Annotated[WaitQuery, Query()]) -> AdmissionOut:
        """Say that somebody still waits, and wait as reading does."""
        caller, desk = _admission(given, tokens, window)
        _require_own(source, caller, admission_id)
        desk.renew(admission_id, asked.wait_ms)
        return _waited(source, desk, admission_id, asked.wait_ms, sender_of(caller))

    @router.delete("/{admission_id}", responses=responses(403, 404, 409, 503))
    def withdraw(admission_id: Id, given: Credentials, _: Annotated[NoParameters, Query()]) -> AdmissionOut:
        """Withdraw what is `waiting` or `admitted`, unless its application is in YARN; what is over stays."""
        caller, desk = _admission(given, tokens, window)
        _require_own(source, caller, admission_id)
        withdrawal = WithdrawRequest(admission_id)
        return _shown(source, _done(source, desk.submit(withdrawal, DONE_MS, sender_of(caller))))


def _require_own(source: Source, caller: Caller, name: str) -> None:
    """Let a token touch what is its own, or anything with ``operate``; raises ApiProblem (403, 404)."""
    _, found = _find(source, name)
    if found is None:
        raise _unknown(name)
    require_own(caller, found.user)


def _admission(
    given: Credentials, tokens: Tokens, window: RequestQueue | None
) -> tuple[Caller, RequestQueue]:
    """Return the caller, which may submit, and the request queue."""
    caller = require(tokens, given, "submit")
    if window is None:
        raise gate_off()
    return caller, window


def gate_off() -> ApiProblem:
    """Say that there is no gate."""
    told = "this daemon keeps no gate"
    return ApiProblem(409, "gate-off", told, "start it with yarnctl run --admission")


def _done(source: Source, answer: str | Refusal) -> str:
    if isinstance(answer, Refusal):
        made = quote_of(source, answer.quote)
        raise ApiProblem(STATUS[answer.code], answer.code, answer.problem, answer.remedy, quote=made)
    return answer


def quote_of(source: Source, name: str) -> QuoteOut | None:
    """Return a quote that is still known."""
    desk = source().admission
    made = None if desk is None else desk.quotes.get(name)
    return None if made is None else msgspec.convert(made, QuoteOut, from_attributes=True)


def _budget_of(caller: Caller, request: AdmissionRequest, status: AdmissionStatus | None) -> Budget | None:
    """Return what it may cost; raises ApiProblem (403) for an account that is not the token's.

    Where deadlines have no price nothing is paid, and a budget needs no account.
    """
    if request.budget_mtokens is None or (status is not None and not status.priced):
        return None
    return Budget(account_of(caller, request.account), request.budget_mtokens, request.refund)


def account_of(caller: Caller, asked: str | None) -> str:
    """Return the account that pays; raises ApiProblem (403) for one that is not the token's."""
    if asked is None:
        if not caller.account:
            told = f"the token {caller.name} has no account"
            raise ApiProblem(
                403, "other-account", told, 'name an account, or give the token account = "NAME"'
            )
        return caller.account
    if asked != caller.account and not caller.may("operate"):
        told = f"the token {caller.name} does not spend from {asked}"
        raise ApiProblem(403, "other-account", told, "use that account's token, or an operator's")
    return asked


def estimate_of(caller: Caller, told: EstimateIn | None) -> Estimate | None:
    """Return the estimate that a caller sends, marked with what the caller is."""
    if told is None:
        return None
    by: Literal["operator", "user"] = "operator" if caller.may("operate") else "user"
    return Estimate(told.mean_ms, told.stdev_ms, told.source, given_by=by)


def _request_of(
    request: AdmissionRequest,
    alternatives: Alternatives | None,
    budget: Budget | None,
    estimate: Estimate | None,
) -> AdmissionClient:
    options = () if alternatives is None else alternatives.options
    most = max((each.containers for each in options), default=1)
    return AdmissionClient(
        name=request.name,
        user=request.user,
        queue=request.queue or "",
        containers=request.containers or most,
        deadline_ms=request.deadline_ms,
        estimate=estimate,
        kind=request.kind,
        key=request.request_key or "",
        budget=budget,
        quote=request.quote or "",
        alternatives=alternatives,
    )


# --- looking ------------------------------------------------------------------------------------------


def _is_wanted(each: Admission, asked: AdmissionsQuery) -> bool:
    return (
        (asked.state is None or each.state == asked.state)
        and (asked.user is None or each.user == asked.user)
        and (asked.queue is None or each.queue == asked.queue)
    )


def sender_of(caller: Caller) -> RequestSender:
    """Return by which share of the queue a token's commands are counted."""
    return RequestSender(caller.user or caller.name, "operate" in caller.scopes)


def _waited(
    source: Source, window: RequestQueue | None, name: str, wait_ms: int, sender: RequestSender
) -> AdmissionOut:
    def decided() -> bool:
        _, found = _find(source, name)
        return found is None or found.state != "waiting"

    if window is not None and wait_ms and not decided():
        window.wait(decided, wait_ms, sender)
    return _shown(source, name)


def _find(source: Source, name: str) -> tuple[AdmissionStatus | None, Admission | None]:
    desk = source().admission
    found = () if desk is None else desk.admissions
    return desk, next((each for each in found if each.admission == name), None)


def _shown(source: Source, name: str) -> AdmissionOut:
    desk, found = _find(source, name)
    if desk is None or found is None:
        raise _unknown(name)
    return admission(found, desk)


def _unknown(name: str) -> ApiProblem:
    told = f"admission {name} is not known (any more)"
    return ApiProblem(404, "not-found", told, "GET /v1/admissions lists those that are kept")


def gate(desk: AdmissionStatus, only_user: str | None) -> GateOut:
    """Show the gate; ``only_user``: the one user whose admissions may be read (None: all)."""
    return GateOut(
        allocator=desk.allocator,
        capacity=desk.capacity,
        container_mib=desk.container_mib,
        waiting=desk.waiting,
        reserved=desk.reserved,
        learned=desk.learned,
        problem=said(desk.problem),
        reason=reason(desk.problem),
        pools=pools(desk, only_user),
    )


def _serve_by_ms(each: Admission) -> int:
    """Return the deadline by which YARN is to serve it: of what is paid for, that of its claim."""
    if each.plan.price_mtokens is not None and each.reservation is not None:
        return each.reservation.until_ms
    return each.request.due_ms


def _named(each: Admission, who: str) -> str:
    """Return the id of an admission of the same gate, which a price names by its number."""
    return f"{each.admission.rpartition('-')[0]}-{who}" if who.isdigit() else who


def _refunded_mtokens(each: Admission, desk: AdmissionStatus) -> int | None:
    """Return what was paid back so far of a deadline's price; None: nothing was sold."""
    if each.plan.price_mtokens is None:
        return None
    paid = desk.payments.get(each.admission)
    return 0 if paid is None else paid.refunded_mtokens or 0


def admission(each: Admission, desk: AdmissionStatus) -> AdmissionOut:
    """Show one admission, with what to submit with."""
    request, plan, held = each.request, each.plan, each.reservation
    framework = FRAMEWORKS.get(plan.kind or request.kind) if each.state in ("admitted", "taken") else None
    budget = request.budget
    return AdmissionOut(
        id=each.admission,
        state=each.state,
        why="" if each.why is None else text(each.why),
        reason=reason(each.why),
        request=AskedOut(
            name=each.name,
            user=each.user,
            queue=queue_of(each, desk),
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
        plan=PlanOut(
            verdict=plan.verdict,
            containers=plan.containers,
            deadline_at_ms=plan.deadline_at_ms,
            start_at_ms=plan.start_at_ms,
            finish_at_ms=plan.finish_at_ms,
            reason=text(plan.reason),
            reason_code=code(plan.reason),
            price_mtokens=plan.price_mtokens,
            late_ratio=plan.late_ratio,
            because=[(_named(each, who), amount) for who, amount in plan.because],
        ),
        application=each.application or None,
        expires_at_ms=None if held is None or held.expires_at_ms >= FOREVER_MS else held.expires_at_ms,
        lease_ms=desk.lease_ms,
        tags=[deadline_tag(_serve_by_ms(each)), tag_of(each.admission)],
        settings={} if framework is None else _settings(framework, each, desk),
        placement=placement(each, desk),
        changed_at_ms=each.changed_at_ms,
        refunded_mtokens=_refunded_mtokens(each, desk),
    )


def _settings(framework: Framework, each: Admission, desk: AdmissionStatus) -> dict[str, str]:
    """Return what to submit with: of one that was placed also its pool's queue, and what was tuned."""
    plan, given = each.plan, framework.given(each.plan.containers)
    if not plan.kind:
        return given
    path = queue_of(each, desk)
    queue = path if desk.queues is None else desk.queues.submitted(path)
    return given | {framework.QUEUE: queue} | dict(plan.settings)
