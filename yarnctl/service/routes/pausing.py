"""The two things that can be done to the loop: pause it and let it go on.

Law: only with a token that has the scope ``operate`` (:mod:`yarnctl.service.security.access`). Without a
token in the daemon's configuration every write is refused, whatever comes with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Body, Query

from yarnctl.api.cluster_answers import Commanded
from yarnctl.daemon.view.published import Control, View
from yarnctl.service.answers.describing import AnswerRoute
from yarnctl.service.answers.error_body import responses
from yarnctl.service.answers.from_view import loop
from yarnctl.service.answers.paging import NoParameters
from yarnctl.service.routes.request_models import PauseRequest
from yarnctl.service.security.access import Credentials, require
from yarnctl.service.security.tokens import Tokens


def writing_routes(source: Callable[[], View], tokens: Tokens, control: Control | None) -> APIRouter:
    """Make the routes that change the loop's state."""
    router = APIRouter(
        prefix="/v1/loop",
        tags=["writing"],
        responses=responses(400, 401, 403, 413, 421),
        route_class=AnswerRoute,
    )

    def allowed(given: Credentials) -> Control:
        require(tokens if control is not None else Tokens(), given, "operate")
        assert control is not None
        return control

    @router.post("/pause", status_code=202)
    def pause(
        given: Credentials,
        _: Annotated[NoParameters, Query()],
        request: Annotated[PauseRequest | None, Body()] = None,
    ) -> Commanded:
        """Let the loop stop deciding and acting after the tick that runs now."""
        allowed(given).pause((request or PauseRequest()).why)
        return Commanded(accepted="pause", loop=loop(source().loop))

    @router.post("/continue", status_code=202)
    def go_on(given: Credentials, _: Annotated[NoParameters, Query()]) -> Commanded:
        """Take a pause back."""
        allowed(given).go_on()
        return Commanded(accepted="continue", loop=loop(source().loop))

    return router
