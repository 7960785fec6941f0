"""Access: which token a request carries, and whether its scopes allow what is asked.

Law: every write asks here, and so does every read where reading is not free. A daemon without tokens takes no
write at all. What is refused says which scope is missing, and never repeats a token.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from yarnctl.service.answers.error_body import ApiProblem
from yarnctl.service.security.tokens import Caller, Scope, Tokens

Credentials = Annotated[
    HTTPAuthorizationCredentials | None,
    Depends(HTTPBearer(auto_error=False, scheme_name="token", description="A token of the daemon's.")),
]

ONLY_USER = "yarnctl.only_user"
"""The key in a request's scope (ASGI's) for the one user whose admissions may be read."""
ADMISSIONS = "/v1/admissions"


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

    Admissions may be read with ``submit``, too: the answer shows those of the caller's user only.
    """
    caller = tokens.caller(token)
    if caller is None:
        told = "reading needs a token here, and it is missing or wrong"
        remedy = "send Authorization: Bearer TOKEN with a token of the daemon's"
        raise ApiProblem(401, "unauthorized", told, remedy)
    own = path == ADMISSIONS or path.startswith(ADMISSIONS + "/")
    if not caller.may("read") and not (own and caller.may("submit")):
        raise missing(caller, "read")
    return caller
