"""Checks before every request: host name, origin, token, size of the body; headers of every answer.

* Only the daemon's own host names are answered, so that a page on another name that resolves to this address
  reads nothing. On loopback only the names of loopback are answered. Pages of other origins get no answer.
* Where reading needs a token, only the page's own files and the health checks are free.
* A token that another host sends without TLS is rejected, whatever it is.
* Bodies are bounded. No answer may be cached or framed.
* Every write needs a token with a scope. An error names the missing scope and never repeats a token.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from yarnctl.listening.connections import PEER
from yarnctl.listening.names import BAD_HOST, Answered
from yarnctl.service.answers.error_body import ApiProblem, body
from yarnctl.service.security import asgi
from yarnctl.service.security.proxies import is_private
from yarnctl.service.security.tls import common_name
from yarnctl.service.security.tokens import Caller, Credential, Scope, Tokens, bearer_of

_Bearer = Annotated[
    HTTPAuthorizationCredentials | None,
    Depends(HTTPBearer(auto_error=False, scheme_name="token", description="A token of the daemon.")),
]


def _sent(request: Request, bearer: _Bearer) -> Credential:  # ``bearer`` puts it into the OpenAPI document
    return sent_by(request.scope)


Credentials = Annotated[Credential, Depends(_sent)]

ONLY_USER = "yarnctl.only_user"  # In the ASGI scope: the one user with readable admissions
ONLY_ACCOUNT = "yarnctl.only_account"  # In the ASGI scope: the one readable account ("": none)
ADMISSIONS = "/v1/admissions"
ACCOUNTS = "/v1/accounts"
RUNS = "/v1/runs"
OWN = (
    "/v1/applications",
    "/v1/budgets",
    "/v1/checkpoints",
    "/v1/events",
    "/v1/explanations",
    "/v1/reclaims",
    "/v1/refusals",
    "/v1/snapshot",
)
"""What the scope ``own`` reads of its user's applications."""

READER: ContextVar[str | None] = ContextVar("reader", default=None)
"""The user for whose applications alone a request is answered (None: for all)."""

HOW_TO_SEND = "send the header Authorization: Bearer TOKEN with a token of the daemon"
TLS_REMEDY = "replace the token, because others can have read it; use https (yarnctl run --tls-certificate)"


def sent_by(scope: asgi.Scope) -> Credential:
    """Return the token and the name in the verified certificate that a request comes with."""
    return Credential(bearer_of(scope["headers"]), common_name(scope.get("extensions", {}).get(PEER)))


def require(tokens: Tokens, credentials: Credential, scope: Scope) -> Caller:
    """Return the caller if it has the scope; raises ApiProblem (401, 403)."""
    if not len(tokens):
        message = "the daemon accepts no commands, because it was started without tokens"
        raise ApiProblem(403, "writes-off", message, "restart it with --token-file or --tokens")
    caller = tokens.caller(credentials)
    if caller is None:
        message = "the token is missing or wrong"
        raise ApiProblem(401, "unauthorized", message, HOW_TO_SEND, {"WWW-Authenticate": "Bearer"})
    if not caller.may(scope):
        raise missing(caller, scope)
    return caller


def missing(caller: Caller, scope: Scope) -> ApiProblem:
    """Return the error for a token without the scope."""
    scopes = ", ".join(sorted(caller.scopes))
    return ApiProblem(
        403,
        "missing-scope",
        f"the scope {scope} is required, the token {caller.name} has {scopes}",
        f"use a token with the scope {scope}; see yarnctl run --tokens",
    )


def require_own(caller: Caller, user: str) -> None:
    """Raise ApiProblem (403) for another user's admission, unless the caller has the scope operate."""
    if not caller.may_touch(user):
        raise ApiProblem(
            403,
            "not-own",
            f"the token {caller.name} is for user {caller.user}, the admission belongs to another user",
            "use a token of that user, or one with the scope operate",
        )


def reader(tokens: Tokens, credentials: Credential, path: str) -> Caller:
    """Return the caller where reading needs a token; raises ApiProblem (401, 403)."""
    caller = tokens.caller(credentials)
    if caller is None:
        raise ApiProblem(401, "unauthorized", "reading needs a token; it is missing or wrong", HOW_TO_SEND)
    if caller.may("read") or (caller.may("submit") and _is_below(path, (ADMISSIONS, ACCOUNTS, RUNS))):
        return caller
    if caller.may("own") and _is_below(path, OWN):
        return caller
    raise missing(caller, "read")


def _is_below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == each or path.startswith(each + "/") for each in places)


PAGE_FILES = {
    "/": "index.html",
    "/page.js": "page.js",
    "/sections.js": "sections.js",
    "/chart.js": "chart.js",
    "/elements.js": "elements.js",
    "/page.css": "page.css",
    "/uPlot.iife.min.js": "uPlot.iife.min.js",
    "/uPlot.min.css": "uPlot.min.css",
    "/docs": "docs.html",
    "/docs.js": "docs.js",
}
"""The page and the API's description: files of this package, nothing from other hosts."""
FREE = frozenset({"/healthz", "/readyz", "/openapi.json", *PAGE_FILES})
"""Addresses without information about the cluster; they never need a token."""

QUESTIONS = frozenset({"/v1/what-if"})
"""Addresses that are read by POST: they change nothing."""

BODY_MAX_BYTES = 16_384
HOST_REMEDY = "use http://127.0.0.1 or http://localhost, or restart yarnctl run with --allow-host NAME"
ORIGIN_REMEDY = "send no Origin header, or open the page at this address or at a name given with --allow-host"

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
    """ASGI middleware. ``names``: the host names that are answered.

    ``readers``: reading needs one of these tokens (None: reading is free).
    """

    def __init__(self, app: asgi.App, names: frozenset[str], tokens: Tokens | None = None) -> None:
        self.app = app
        self.answered = Answered(names)
        self.readers = tokens

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Check a request, read its body up to the bound, and pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: asgi.Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        refused = self.answered.why_not(scope["headers"])
        if refused is not None:
            remedy = HOST_REMEDY if refused is BAD_HOST else ORIGIN_REMEDY
            await _refuse(send_with_headers, refused.status, refused.code, refused.problem, remedy)
            return
        if not is_private(scope) and any(name == b"authorization" for name, _ in scope["headers"]):
            message = "a token was sent without TLS from another host"
            await _refuse(send_with_headers, 403, "tls-required", message, TLS_REMEDY)
            return
        try:
            self._require_reader(scope)
        except ApiProblem as error:
            await _refuse(send_with_headers, error.status_code, error.code, error.detail, error.remedy)
            return
        whole = await _whole_body(receive)
        if whole is None:
            message = f"the body exceeds the maximum of {BODY_MAX_BYTES} bytes"
            await _refuse(send_with_headers, 413, "body-too-large", message, "send less; see /docs")
            return
        await self.app(scope, _replay(whole, receive), send_with_headers)

    def _require_reader(self, scope: asgi.Scope) -> None:
        """Raise ApiProblem if the caller may not read the address; the routes check writes."""
        READER.set(None)
        reads = scope["method"] in ("GET", "HEAD") or scope["path"] in QUESTIONS
        if self.readers is None or scope["path"] in FREE or not reads:
            return
        caller = reader(self.readers, sent_by(scope), scope["path"])
        if not caller.may("read"):
            READER.set(caller.user)
            scope[ONLY_USER] = caller.user
            scope[ONLY_ACCOUNT] = caller.account


async def _whole_body(receive: asgi.Receive) -> list[asgi.Message] | None:
    messages: list[asgi.Message] = []
    size = 0
    while True:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        if size > BODY_MAX_BYTES:
            return None
        if message["type"] != "http.request" or not message.get("more_body", False):
            return messages


def _replay(messages: list[asgi.Message], receive: asgi.Receive) -> asgi.Receive:
    waiting = iter(messages)

    async def again() -> asgi.Message:
        for message in waiting:
            return message
        return await receive()

    return again


async def _refuse(send: asgi.Send, status: int, code: str, message: str, remedy: str) -> None:
    content = json.dumps(body(code, message, remedy)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
