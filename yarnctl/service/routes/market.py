"""Prices and accounts over HTTP: quotes, balances, and an operator's credits.

A token with an ``account`` pays from that account only, and can read it; opening and crediting need
``operate``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from pydantic import BaseModel, ConfigDict, Field

from yarnctl.api.market_answers import AccountList, AccountOut, QuoteOut
from yarnctl.daemon.admission.request_queue import (
    AccountCommand,
    Command,
    QuoteRequest,
    RequestQueue,
    RequestSender,
)
from yarnctl.daemon.view.published import View
from yarnctl.frameworks.submissions import PLAIN_KIND
from yarnctl.service.answers.describing import AnswerRoute
from yarnctl.service.answers.error_body import ApiProblem, responses
from yarnctl.service.answers.from_view import read_off
from yarnctl.service.answers.paging import NoParameters
from yarnctl.service.routes.admissions import (
    DONE_MS,
    STATUS,
    EstimateIn,
    account_of,
    estimate_of,
    gate_off,
    other_user,
    quote_of,
    sender_of,
)
from yarnctl.service.routes.placement import CONTAINERS_MAX, NUMBER, PRINTED, Kind, Word
from yarnctl.service.security.middleware import ONLY_ACCOUNT, Credentials, require
from yarnctl.service.security.tokens import Tokens

MTOKENS_MAX = 10**15
POINTS_MAX = 64
ACCOUNT = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
AccountName = Annotated[str, Field(pattern=ACCOUNT)]
AccountId = Annotated[str, PathParameter(pattern=ACCOUNT, examples=["analytics"])]
Tokens_ = Annotated[int, Field(ge=0, le=MTOKENS_MAX), NUMBER]
Source = Callable[[], View]


class QuoteIn(BaseModel):
    """A job to price deadlines for; without ``account`` the token's account pays."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"name": "daily", "user": "ann", "queue": "root.production", "containers": 6}]
        },
    )

    name: Word
    user: Annotated[str, Field(min_length=1, max_length=100, pattern=PRINTED)]
    queue: Word
    containers: Annotated[int, Field(ge=1, le=CONTAINERS_MAX), NUMBER]
    account: AccountName | None = None
    points: Annotated[int, Field(ge=2, le=POINTS_MAX), NUMBER] = 8
    estimate: EstimateIn | None = None
    kind: Kind = PLAIN_KIND


class AccountIn(BaseModel):
    """An account to open; it receives ``daily_mtokens`` a day until it holds ``cap_mtokens``."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"name": "analytics", "daily_mtokens": 100_000, "cap_mtokens": 900_000}]
        },
    )

    name: AccountName
    daily_mtokens: Tokens_ = 0
    cap_mtokens: Tokens_ = 0


class CreditIn(BaseModel):
    """The amount of a credit."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"mtokens": 900_000}]})

    mtokens: Annotated[int, Field(ge=1, le=MTOKENS_MAX), NUMBER]


def market_routes(source: Source, tokens: Tokens, request_queue: RequestQueue | None) -> APIRouter:
    """Return the routes; ``request_queue`` None: admission is disabled, and its commands are errors."""
    router = APIRouter(tags=["market"], responses=responses(401, 421), route_class=AnswerRoute)
    _add_quotes(router, source, tokens, request_queue)
    _add_accounts(router, source, tokens, request_queue)
    return router


def _add_quotes(
    router: APIRouter, source: Source, tokens: Tokens, request_queue: RequestQueue | None
) -> None:
    @router.post("/v1/quotes", responses=responses(400, 403, 409, 413, 503))
    def quote(credentials: Credentials, _: Annotated[NoParameters, Query()], quote_body: QuoteIn) -> QuoteOut:
        """Price deadlines of a job now. A quote reserves nothing and is not in the journal."""
        caller = require(tokens, credentials, "submit")
        if not caller.may_touch(quote_body.user):
            raise other_user(caller, quote_body.user)
        status = source().admission
        priced = status is None or status.priced  # else the gate rejects it for every account
        wanted = QuoteRequest(
            name=quote_body.name,
            user=quote_body.user,
            queue=quote_body.queue,
            containers=quote_body.containers,
            account=account_of(caller, quote_body.account) if priced else "",
            points=quote_body.points,
            estimate=estimate_of(caller, quote_body.estimate),
            kind=quote_body.kind,
        )
        name = _handed(request_queue, wanted, sender_of(caller))
        made = quote_of(source, name)
        if made is None:
            raise ApiProblem(409, "quote-moved", f"quote {name} has expired", "request a new quote")
        return made


def _add_accounts(
    router: APIRouter, source: Source, tokens: Tokens, request_queue: RequestQueue | None
) -> None:
    @router.get("/v1/accounts", responses=responses(403))
    def accounts(http_request: Request, _: Annotated[NoParameters, Query()]) -> AccountList:
        """All accounts, by name; a token without the scope `read` gets its own account only."""
        view = source()
        found = {} if view.admission is None else view.admission.accounts
        only = http_request.scope.get(ONLY_ACCOUNT)
        if only is not None:
            _require_account(http_request, only)
        return AccountList(items=[_account(source, name) for name in sorted(found) if only in (None, name)])

    @router.get("/v1/accounts/{account}", responses=responses(403, 404))
    def get_account(
        http_request: Request, account: AccountId, _: Annotated[NoParameters, Query()]
    ) -> AccountOut:
        """One account; a token without the scope `read` reads its own account only."""
        _require_account(http_request, account)
        return _account(source, account)

    @router.post("/v1/accounts", responses=responses(400, 403, 409, 413, 503))
    def open_account(
        credentials: Credentials, _: Annotated[NoParameters, Query()], account_body: AccountIn
    ) -> AccountOut:
        """Open an account."""
        caller = require(tokens, credentials, "operate")
        wanted = AccountCommand(
            account=account_body.name,
            daily_mtokens=account_body.daily_mtokens,
            cap_mtokens=account_body.cap_mtokens,
        )
        return _account(source, _handed(request_queue, wanted, sender_of(caller)))

    @router.post("/v1/accounts/{account}/credit", responses=responses(400, 403, 409, 413, 503))
    def credit_account(
        account: AccountId,
        credentials: Credentials,
        _: Annotated[NoParameters, Query()],
        credit_body: CreditIn,
    ) -> AccountOut:
        """Credit tokens to an account."""
        caller = require(tokens, credentials, "operate")
        wanted = AccountCommand(account=account, credit_mtokens=credit_body.mtokens)
        return _account(source, _handed(request_queue, wanted, sender_of(caller)))


def _require_account(http_request: Request, account: str) -> None:
    only = http_request.scope.get(ONLY_ACCOUNT)
    if only == "":
        message, remedy = "the token has no account to read", 'set account = "NAME" for it (--tokens)'
    elif only not in (None, account):
        message = f"the token is for account {only}, not for {account}"
        remedy = "use a token of that account, or one with the scope read"
    else:
        return
    raise ApiProblem(403, "other-account", message, remedy)


def _handed(request_queue: RequestQueue | None, wanted: Command, sender: RequestSender) -> str:
    if request_queue is None:
        raise gate_off()
    answer = request_queue.submit(wanted, DONE_MS, sender)
    if isinstance(answer, str):
        return answer
    raise ApiProblem(STATUS[answer.code], answer.code, answer.problem, answer.remedy)


def _account(source: Source, name: str) -> AccountOut:
    status = source().admission
    found = None if status is None else status.accounts.get(name)
    if found is None:
        raise ApiProblem(
            404, "not-found", f"account {name} does not exist", "GET /v1/accounts lists the accounts"
        )
    return read_off(AccountOut, found, name=name)
