"""The loop's state over HTTP: liveness, readiness, status; pausing and continuing.

Law: ``/healthz`` is about the process and its loop, never about the cluster: a restart of yarnctl does not
repair a cluster. ``/readyz`` reports whether the view is true now. Both are answered on the event loop
itself: they wait for none of the service's threads. The loop is paused and continued only with a token that
has the scope ``operate`` (:mod:`yarnctl.service.security.middleware`). Without a token in the daemon's
configuration every write is refused, whatever is sent with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Body, Query
from fastapi.responses import PlainTextResponse

from yarnctl.api.cluster_answers import Commanded, Health, Readiness
from yarnctl.daemon.view.published import Control, View
from yarnctl.journal.rendering import joined, said, sentence_and_remedy
from yarnctl.service.answers.describing import AnswerRoute
from yarnctl.service.answers.error_body import ApiProblem, responses
from yarnctl.service.answers.from_view import loop, loop_state
from yarnctl.service.answers.paging import NoParameters
from yarnctl.service.routes import prometheus as metrics
from yarnctl.service.routes.admissions import PauseRequest
from yarnctl.service.security.middleware import Credentials, require
from yarnctl.service.security.tokens import Tokens


def state_routes(source: Callable[[], View], clock: Callable[[], int], stuck_ms: int) -> APIRouter:
    """Make the routes for watchers."""
    router = APIRouter(tags=["state"], responses=responses(421), route_class=AnswerRoute)
    _add_alive(router, source, clock, stuck_ms)
    _add_ready(router, source)

    @router.get(
        "/metrics",
        response_class=PlainTextResponse,
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
            **responses(401),
        },
    )
    def prometheus(_: Annotated[NoParameters, Query()]) -> PlainTextResponse:
        """Metrics in Prometheus' text format."""
        return PlainTextResponse(metrics.text(source()), media_type=metrics.CONTENT_TYPE)

    return router


def _add_alive(
    router: APIRouter, source: Callable[[], View], clock: Callable[[], int], stuck_ms: int
) -> None:
    @router.get("/healthz", responses=responses(503))
    async def healthz(_: Annotated[NoParameters, Query()]) -> Health:
        """200 while the process lives and its loop publishes; 503 when the loop is stuck or has stopped."""
        view = source()
        age_ms = max(0, clock() - view.now_ms)
        if view.loop.state == "stopped":
            told = f"the loop has stopped: {joined(view.loop.why) or 'no reason given'}"
            raise ApiProblem(503, "stopped", told, "start yarnctl again")
        if age_ms > stuck_ms:
            told = f"the loop has published nothing for {age_ms} ms"
            raise ApiProblem(503, "stuck", told, "see the daemon's log, then restart it")
        return Health(status="ok", loop_state=loop_state(view.loop.state), age_ms=age_ms)


def _add_ready(router: APIRouter, source: Callable[[], View]) -> None:
    @router.get("/readyz", responses=responses(503))
    async def readyz(_: Annotated[NoParameters, Query()]) -> Readiness:
        """200 once the first tick is done, while the ResourceManager answers and HDFS can be written (which
        only a daemon that acts needs); 503 otherwise.
        """
        status = source().loop
        if not status.ticks:
            told = f"no tick yet: {status.state}{': ' + joined(status.why) if status.why else ''}"
            raise ApiProblem(503, "no-tick-yet", told, "wait, or see the daemon's log")
        if not status.reachable:
            seen = said(status.problem) or joined(status.why)
            why = seen or status.last_error or "no reason given"
            told = f"the ResourceManager does not answer: {why}"
            raise ApiProblem(503, "cluster-unreachable", told, "check the addresses given with --rm")
        if status.store_problem:
            raise ApiProblem(503, "store-unavailable", *sentence_and_remedy(status.store_problem))
        return Readiness(status="ready", loop_state=loop_state(status.state), ticks=status.ticks)


# --- pausing ------------------------------------------------------------------------------------------


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
