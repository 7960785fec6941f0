"""Prices and accounts over HTTP: quotes, balances, and an operator's grants.

Law: as of admissions: what is read is read from one view, a command is answered once its record is written
and published. A token with an ``account`` spends from that account only, and may read it; granting needs
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
from yarnctl.service.answers.describing import AnswerRoute
from yarnctl.service.answers.error_body import ApiProblem, responses
from yarnctl.service.answers.paging import NoParameters
from yarnctl.service.routes.admissions import (
    DONE_MS,
    STATUS,
    EstimateIn,
    account_of,
    estimate_of,
    gate_off,
    quote_of,
    sender_of,
)
from yarnctl.service.routes.body_fields import CONTAINERS_MAX, NUMBER, PRINTED, Kind, Word
from yarnctl.service.security.middleware import ONLY_ACCOUNT, Credentials, require
from yarnctl.service.security.tokens import Tokens
from yarnctl.submitting import PLAIN_KIND

MTOKENS_MAX = 10**15
POINTS_MAX = 64
ACCOUNT = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
AccountName = Annotated[str, Field(pattern=ACCOUNT)]
AccountId = Annotated[str, PathParameter(pattern=ACCOUNT)]
Tokens_ = Annotated[int, Field(ge=0, le=MTOKENS_MAX), NUMBER]
Source = Callable[[], View]


class QuoteIn(BaseModel):
    """A job whose deadlines are to be priced; without ``account`` the token's pays."""

    model_config = ConfigDict(extra="forbid")

    name: Word
    user: Annotated[str, Field(min_length=1, max_length=100, pattern=PRINTED)]
    queue: Word
    containers: Annotated[int, Field(ge=1, le=CONTAINERS_MAX), NUMBER]
    account: AccountName | None = None
    points: Annotated[int, Field(ge=2, le=POINTS_MAX), NUMBER] = 8
    estimate: EstimateIn | None = None
    kind: Kind = PLAIN_KIND


class AccountIn(BaseModel):
    """An account to open: ``daily_mtokens`` a day, until it holds ``cap_mtokens``."""

    model_config = ConfigDict(extra="forbid")

    name: AccountName
    daily_mtokens: Tokens_ = 0
    cap_mtokens: Tokens_ = 0


class CreditIn(BaseModel):
    """Tokens to give."""

    model_config = ConfigDict(extra="forbid")

    mtokens: Annotated[int, Field(ge=1, le=MTOKENS_MAX), NUMBER]


def market_routes(source: Source, tokens: Tokens, window: RequestQueue | None) -> APIRouter:
    """Make the routes; without ``window`` there is no gate, and its commands are refused."""
    router = APIRouter(tags=["market"], responses=responses(401, 421), route_class=AnswerRoute)
    _add_quotes(router, source, tokens, window)
    _add_accounts(router, source, tokens, window)
    return router


def _add_quotes(router: APIRouter, source: Source, tokens: Tokens, window: RequestQueue | None) -> None:
    @router.post("/v1/quotes", responses=responses(400, 403, 409, 413, 503))
    def quote(given: Credentials, _: Annotated[NoParameters, Query()], request: QuoteIn) -> QuoteOut:
        """Say what each deadline of a job costs as things stand. Nothing is held, nothing is written."""
        caller = require(tokens, given, "submit")
        if not caller.may_touch(request.user):
            told = f"the token {caller.name} is for jobs of {caller.user}, and not of {request.user}"
            raise ApiProblem(403, "other-user", told, "ask as the token's user, or with the scope operate")
        status = source().admission
        priced = status is None or status.priced  # else it is refused whoever asks, by what the gate decides
        wanted = QuoteRequest(
            name=request.name,
            user=request.user,
            queue=request.queue,
            containers=request.containers,
            account=account_of(caller, request.account) if priced else "",
            points=request.points,
            estimate=estimate_of(caller, request.estimate),
            kind=request.kind,
        )
        return _quoted(source, _handed(window, wanted, sender_of(caller)))


def _add_accounts(router: APIRouter, source: Source, tokens: Tokens, window: RequestQueue | None) -> None:
    @router.get("/v1/accounts", responses=responses(403))
    def accounts(asked: Request, _: Annotated[NoParameters, Query()]) -> AccountList:
        """All accounts, by name; of a token that may not read everything, its own alone."""
        view = source()
        found = {} if view.admission is None else view.admission.accounts
        only = asked.scope.get(ONLY_ACCOUNT)
        if only is not None:
            _require_account(asked, only)
        return AccountList(items=[_account(source, name) for name in sorted(found) if only in (None, name)])

    @router.get("/v1/accounts/{account}", responses=responses(403, 404))
    def one(asked: Request, account: AccountId, _: Annotated[NoParameters, Query()]) -> AccountOut:
        """One account; a token that may not read everything reads its own."""
        _require_account(asked, account)
        return _account(source, account)

    @router.post("/v1/accounts", responses=responses(400, 403, 409, 413, 503))
    def add(given: Credentials, _: Annotated[NoParameters, Query()], request: AccountIn) -> AccountOut:
        """Open an account."""
        caller = require(tokens, given, "operate")
        wanted = AccountCommand(
            account=request.name, daily_mtokens=request.daily_mtokens, cap_mtokens=request.cap_mtokens
        )
        return _account(source, _handed(window, wanted, sender_of(caller)))

    @router.post("/v1/accounts/{account}/credit", responses=responses(400, 403, 409, 413, 503))
    def credit(
        account: AccountId, given: Credentials, _: Annotated[NoParameters, Query()], request: CreditIn
    ) -> AccountOut:
        """Give tokens to an account."""
        caller = require(tokens, given, "operate")
        wanted = AccountCommand(account=account, credit_mtokens=request.mtokens)
        return _account(source, _handed(window, wanted, sender_of(caller)))


def _require_account(asked: Request, account: str) -> None:
    """Raise ApiProblem (403) for an account that the caller may not read."""
    only = asked.scope.get(ONLY_ACCOUNT)
    if only == "":
        told, remedy = (
            "the token has no account, and may not read others'",
            'give it account = "NAME" (--tokens)',
        )
    elif only not in (None, account):
        told = f"the token is for the account {only}, and not for {account}"
        remedy = "use that account's token, or one with the scope read"
    else:
        return
    raise ApiProblem(403, "other-account", told, remedy)


def _handed(window: RequestQueue | None, wanted: Command, sender: RequestSender) -> str:
    if window is None:
        raise gate_off()
    answer = window.submit(wanted, DONE_MS, sender)
    if isinstance(answer, str):
        return answer
    raise ApiProblem(STATUS[answer.code], answer.code, answer.problem, answer.remedy)


def _quoted(source: Source, name: str) -> QuoteOut:
    made = quote_of(source, name)
    if made is None:
        raise ApiProblem(409, "quote-moved", f"quote {name} is too old", "quote it anew")
    return made


def _account(source: Source, name: str) -> AccountOut:
    desk = source().admission
    found = None if desk is None else desk.accounts.get(name)
    if found is None:
        raise ApiProblem(404, "not-found", f"there is no account {name}", "GET /v1/accounts lists them")
    return AccountOut(
        name=name,
        balance_mtokens=found.balance_mtokens,
        given_mtokens=found.given_mtokens,
        spent_mtokens=found.spent_mtokens,
        daily_mtokens=found.daily_mtokens,
        cap_mtokens=found.cap_mtokens,
    )
