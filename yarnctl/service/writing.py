"""The two things that can be done to the loop: pause it and let it go on.

Law: only with the token, compared in constant time and never logged or repeated. Without a token in the
daemon's configuration every write is refused, whatever comes with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Query
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from yarnctl.daemon.view import Control, View
from yarnctl.service import models
from yarnctl.service.paging import NoParameters
from yarnctl.service.problems import ApiProblem, responses
from yarnctl.service.secret import is_same
from yarnctl.service.showing import loop

Credentials = Annotated[
    HTTPAuthorizationCredentials | None,
    Depends(HTTPBearer(auto_error=False, scheme_name="token", description="The daemon's token.")),
]


def require_token(given: HTTPAuthorizationCredentials | None, token: str | None) -> None:
    """Let only those on who send the daemon's token; raises ApiProblem (403: it has none, 401)."""
    if not token:
        told = "this daemon takes no orders: it was started without a token"
        raise ApiProblem(403, "writes-off", told, "start it with a token; see yarnctl run --help")
    if given is None or not is_same(given.credentials, token):
        told = "the token is missing or wrong"
        remedy = "send Authorization: Bearer TOKEN with the daemon's token"
        raise ApiProblem(401, "unauthorized", told, remedy, {"WWW-Authenticate": "Bearer"})


def writing_routes(source: Callable[[], View], token: str | None, control: Control | None) -> APIRouter:
    """Make the routes that change the loop's state."""
    router = APIRouter(prefix="/v1/loop", tags=["writing"], responses=responses(400, 401, 403, 413, 421))

    def allowed(given: HTTPAuthorizationCredentials | None) -> Control:
        require_token(given, token if control is not None else None)
        assert control is not None
        return control

    @router.post("/pause", status_code=202)
    def pause(
        given: Credentials,
        _: Annotated[NoParameters, Query()],
        request: Annotated[models.PauseRequest | None, Body()] = None,
    ) -> models.Commanded:
        """Let the loop stop deciding and acting after the tick that runs now."""
        allowed(given).pause((request or models.PauseRequest()).why)
        return models.Commanded(accepted="pause", loop=loop(source().loop))

    @router.post("/continue", status_code=202)
    def go_on(given: Credentials, _: Annotated[NoParameters, Query()]) -> models.Commanded:
        """Take a pause back."""
        allowed(given).go_on()
        return models.Commanded(accepted="continue", loop=loop(source().loop))

    return router
