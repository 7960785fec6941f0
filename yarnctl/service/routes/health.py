"""The loop's state over HTTP: liveness, readiness, status; pausing and resuming, of the loop or one queue.

``/healthz`` is about the process and its loop, never about the cluster: a restart of yarnctl does not repair
a cluster. ``/readyz`` reports whether the view is up to date. Both are answered on the event loop itself and
wait for no thread. They need no token, so they quote nothing that a job, a person or an exception said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

from fastapi import APIRouter, Body, Path, Query
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from yarnctl.api.cluster_answers import Commanded, Health, Readiness
from yarnctl.daemon.view.published import Control, View
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.deciding.reasons.modes import (
    ClusterFault,
    FoldersUnfit,
    FoldersUnreachable,
    HdfsUnwritable,
    LoopFailed,
    ModeReason,
    Paused,
)
from yarnctl.deciding.reasons.queue_naming import NoLeafQueue
from yarnctl.deciding.reasons.rooting import code
from yarnctl.journal.rendering import sentence_and_remedy, span, text
from yarnctl.service.answers.describing import AnswerRoute
from yarnctl.service.answers.error_body import ApiProblem, responses
from yarnctl.service.answers.from_view import loop
from yarnctl.service.answers.paging import NoParameters
from yarnctl.service.routes import prometheus as metrics
from yarnctl.service.security.middleware import Credentials, require
from yarnctl.service.security.tokens import Tokens

PAUSE_MAX_MS = 30 * 86_400_000
QUOTING = ClusterFault | FoldersUnfit | FoldersUnreachable | HdfsUnwritable | LoopFailed | Paused
"""Reasons with the words of a person, an exception or another program."""
SEE_MORE = "run yarnctl status, or see the daemon's log"


class PauseRequest(BaseModel):
    """A pause: the reason, shown with the loop's state, and how long it lasts (null: until it is ended)."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"why": "maintenance of the cluster"}]}
    )

    why: Annotated[str, Field(max_length=200)] = "paused by request"
    for_ms: Annotated[int, Field(ge=1_000, le=PAUSE_MAX_MS)] | None = None


def state_routes(source: Callable[[], View], clock: Callable[[], int], stuck_ms: int) -> APIRouter:
    """Return the routes for monitoring."""
    router = APIRouter(tags=["state"], responses=responses(421), route_class=AnswerRoute)
    _add_alive(router, source, clock, stuck_ms)
    _add_ready(router, source)

    @router.get(
        "/metrics",
        response_class=PlainTextResponse,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **responses(401)},
    )
    def get_metrics(_: Annotated[NoParameters, Query()]) -> PlainTextResponse:
        """Metrics in Prometheus' text format."""
        return PlainTextResponse(metrics.text(source()), media_type=metrics.CONTENT_TYPE)

    return router


def _for_all(reasons: Iterable[ModeReason]) -> str:
    """Return reasons in words for callers without a token: what others have said is left out."""
    return "; ".join(code(each) if isinstance(each, QUOTING) else text(each) for each in reasons)


def _add_alive(
    router: APIRouter, source: Callable[[], View], clock: Callable[[], int], stuck_ms: int
) -> None:
    @router.get("/healthz", responses=responses(503))
    async def healthz(_: Annotated[NoParameters, Query()]) -> Health:
        """200 while the loop publishes; 503 when it is stuck or has stopped."""
        view = source()
        age_ms = max(0, clock() - view.now_ms)
        if view.loop.state == "stopped":
            message = f"the loop has stopped: {_for_all(view.loop.why) or 'no reason given'}"
            raise ApiProblem(503, "stopped", message, "start yarnctl again")
        if age_ms > stuck_ms:
            message = f"the loop has published nothing for {span(age_ms)}"
            raise ApiProblem(503, "stuck", message, "see the daemon's log, then restart it")
        return Health(status="ok", loop_state=view.loop.state, age_ms=age_ms)


def _add_ready(router: APIRouter, source: Callable[[], View]) -> None:
    @router.get("/readyz", responses=responses(503))
    async def readyz(_: Annotated[NoParameters, Query()]) -> Readiness:
        """200 after the first tick, while the ResourceManager answers and HDFS can be written (an observing
        daemon does not need HDFS); 503 otherwise, also while a new ResourceManager's nodes still change.
        """
        status = source().loop
        if not status.ticks:
            message = f"no tick yet: {status.state}{': ' + _for_all(status.why) if status.why else ''}"
            raise ApiProblem(503, "no-tick-yet", message, "wait, or see the daemon's log")
        if not status.reachable:
            why = status.why if status.problem is None else (status.problem,)
            message = f"the ResourceManager does not answer: {_for_all(why) or 'no reason given'}"
            raise ApiProblem(503, "cluster-unreachable", message, SEE_MORE)
        if status.store_problem:
            raise ApiProblem(503, "store-unavailable", "HDFS cannot be written", SEE_MORE)
        return Readiness(status="ready", loop_state=status.state, ticks=status.ticks)


def _leaf(name: str, view: View) -> str:
    """Return the path of the leaf queue that a name stands for; raises ApiProblem 400 if there is none."""
    leaves = () if view.snapshot is None else tuple(each.queue for each in view.snapshot.queues)
    found = QueueTree(dict.fromkeys((*leaves, *(why.queue for why in view.loop.aside)))).resolve(name)
    if isinstance(found, str):
        return found
    sentence, remedy = sentence_and_remedy(found)
    if isinstance(found, NoLeafQueue) and found.nearest:
        remedy = f"did you mean {found.nearest[0]}?"
    raise ApiProblem(400, "unknown-queue", sentence, remedy or "run yarnctl snapshot to list the queues")


def writing_routes(source: Callable[[], View], tokens: Tokens, control: Control | None) -> APIRouter:
    """Return the routes that change the loop's state."""
    router = APIRouter(
        prefix="/v1",
        tags=["writing"],
        responses=responses(400, 401, 403, 413, 421),
        route_class=AnswerRoute,
    )

    def allowed(credentials: Credentials) -> Control:
        require(tokens if control is not None else Tokens(), credentials, "operate")
        assert control is not None
        return control

    @router.post("/loop/pause", status_code=202)
    def pause_loop(
        credentials: Credentials,
        _: Annotated[NoParameters, Query()],
        request: Annotated[PauseRequest | None, Body()] = None,
    ) -> Commanded:
        """Pause the loop: it neither decides nor acts after the current tick. A restart does not end it."""
        wanted = request or PauseRequest()
        allowed(credentials).pause(wanted.why, wanted.for_ms)
        return Commanded(accepted="pause", loop=loop(source().loop))

    @router.post("/loop/continue", status_code=202)
    def continue_loop(credentials: Credentials, _: Annotated[NoParameters, Query()]) -> Commanded:
        """End an operator's pause, and the pauses of all queues that misdirected containers caused."""
        allowed(credentials).go_on()
        return Commanded(accepted="continue", loop=loop(source().loop))

    @router.post("/queues/{queue}/resume", status_code=202)
    def resume_queue(
        queue: Annotated[str, Path(max_length=1000, examples=["root.production"])],
        credentials: Credentials,
        _: Annotated[NoParameters, Query()],
    ) -> Commanded:
        """End the pause of one queue, named by its path or by the end of its path; others are unchanged."""
        loop_control, view = allowed(credentials), source()
        path = _leaf(queue, view)
        loop_control.resume(path)
        return Commanded(accepted="resume", loop=loop(view.loop), queue=path)

    return router
