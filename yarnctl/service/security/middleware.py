"""Checks before every request: which callers are answered, how large a body may be; headers of answers.

Law: only names that are ours are answered (a page on a foreign name that is pointed at this address reads
nothing), on loopback those of loopback only, and no page of another origin. Where reading needs a token,
all but the page's own files and the health checks needs one. Bodies are bounded; no answer may be kept,
framed, or guessed at. There is no CORS: other origins read nothing.
Every write needs a token with a scope; a refusal names the scope that is missing and never repeats a token.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Annotated, Any

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from yarnctl.listening.names import BAD_HOST, Answered
from yarnctl.service.answers.error_body import ApiProblem, body
from yarnctl.service.security.tokens import Caller, Scope, Tokens, bearer_of

Credentials = Annotated[
    HTTPAuthorizationCredentials | None,
    Depends(HTTPBearer(auto_error=False, scheme_name="token", description="A token of the daemon's.")),
]

ONLY_USER = "yarnctl.only_user"
"""The key in a request's scope (ASGI's) for the one user whose admissions may be read."""
ONLY_ACCOUNT = "yarnctl.only_account"
"""The key in a request's scope for the one account that may be read ("": none may)."""
ADMISSIONS = "/v1/admissions"
ACCOUNTS = "/v1/accounts"
RUNS = "/v1/runs"


def require(tokens: Tokens, given: HTTPAuthorizationCredentials | None, scope: Scope) -> Caller:
    """Return the token's caller if it has the scope; raises ApiProblem (401, 403)."""
    if not len(tokens):
        told = "this daemon takes no orders: it was started without a token"
        raise ApiProblem(403, "writes-off", told, "start it with a token; see yarnctl run --help")
    caller = tokens.caller(given.credentials) if given is not None else None
    if caller is None:
        told = "the token is missing or wrong"
        remedy = "send Authorization: Bearer TOKEN with a token of the daemon's"
        raise ApiProblem(401, "unauthorized", told, remedy, {"WWW-Authenticate": "Bearer"})
    if not caller.may(scope):
        raise missing(caller, scope)
    return caller


def missing(caller: Caller, scope: Scope) -> ApiProblem:
    """Return the no to a token without the scope."""
    has = ", ".join(sorted(caller.scopes))
    told = f"this needs the scope {scope}, and the token {caller.name} has {has}"
    return ApiProblem(
        403, "missing-scope", told, f"use a token with the scope {scope}; see yarnctl run --tokens"
    )


def require_own(caller: Caller, user: str) -> None:
    """Raise ApiProblem (403) for another user's admission, unless the caller has the scope operate."""
    if not caller.may_touch(user):
        told = f"the token {caller.name} is for admissions of {caller.user}, and this one is another user's"
        raise ApiProblem(403, "not-own", told, "use that user's token, or one with the scope operate")


def reader(tokens: Tokens, token: str, path: str) -> Caller:
    """Return the caller where reading needs a token; raises ApiProblem (401, 403).

    Admissions, runs and accounts may be read with ``submit``, too: the answer shows admissions and runs of
    the caller's user, or the caller's account, only.
    """
    caller = tokens.caller(token)
    if caller is None:
        told = "reading needs a token here, and it is missing or wrong"
        remedy = "send Authorization: Bearer TOKEN with a token of the daemon's"
        raise ApiProblem(401, "unauthorized", told, remedy)
    own = any(path == each or path.startswith(each + "/") for each in (ADMISSIONS, ACCOUNTS, RUNS))
    if not caller.may("read") and not (own and caller.may("submit")):
        raise missing(caller, "read")
    return caller


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

FREE = frozenset({"/healthz", "/readyz", "/", "/page.js", "/page.css", "/docs", "/docs.js", "/openapi.json"})
"""Addresses without information about the cluster, answered without the token where reading needs it."""

BODY_MAX_BYTES = 16_384
HOST_REMEDY = "use http://127.0.0.1 or http://localhost, or start yarnctl run with --allow-host NAME"
ORIGIN_REMEDY = (
    "ask without an Origin header, or from a page of this address (--allow-host NAME: of that name, too)"
)

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
        b" base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
)


class Guards:
    """ASGI middleware. ``names`` are the host names that are answered.

    ``readers``: reading needs one of these tokens (None: it needs none).
    """

    def __init__(self, app: App, names: frozenset[str], readers: Tokens | None = None) -> None:
        self.app = app
        self.answered = Answered(names)
        self.readers = readers

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Check, bound, pass on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        refused = self.answered.why_not(scope["headers"])
        if refused is not None:
            remedy = HOST_REMEDY if refused is BAD_HOST else ORIGIN_REMEDY
            await _refuse(dressed, refused.status, refused.code, refused.problem, remedy)
            return
        try:
            self._require_reader(scope)
        except ApiProblem as no:
            await _refuse(dressed, no.status_code, no.code, no.detail, no.remedy)
            return
        whole = await _whole_body(receive)
        if whole is None:
            told = f"the body is larger than {BODY_MAX_BYTES} bytes"
            await _refuse(dressed, 413, "body-too-large", told, "send less; see /docs")
            return
        await self.app(scope, _replay(whole, receive), dressed)

    def _require_reader(self, scope: MutableMapping[str, Any]) -> None:
        """Raise ApiProblem if the caller may not read this; writes are checked by their routes."""
        if self.readers is None or scope["path"] in FREE or scope["method"] not in ("GET", "HEAD"):
            return
        caller = reader(self.readers, bearer_of(scope["headers"]), scope["path"])
        if not caller.may("read"):
            scope[ONLY_USER] = caller.user
            scope[ONLY_ACCOUNT] = caller.account


async def _whole_body(receive: Receive) -> list[Message] | None:
    """Read the body's messages; None if it is too large."""
    messages: list[Message] = []
    size = 0
    while True:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        if size > BODY_MAX_BYTES:
            return None
        if message["type"] != "http.request" or not message.get("more_body", False):
            return messages


def _replay(messages: list[Message], receive: Receive) -> Receive:
    """Yield messages that were read already, then what comes."""
    waiting = iter(messages)

    async def again() -> Message:
        for message in waiting:
            return message
        return await receive()

    return again


async def _refuse(send: Send, status: int, code: str, told: str, remedy: str) -> None:
    content = json.dumps(body(code, told, remedy)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
