"""What-if questions over HTTP: read by POST, because a question is longer than an address."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from yarnctl.api.what_if_answers import WhatIfOut
from yarnctl.daemon.questions.what_if_desk import Question, WhatIfDesk
from yarnctl.deciding.what_if.supposed import NewApplication
from yarnctl.errors import BadInput, Unreachable
from yarnctl.service.answers.describing import AnswerRoute
from yarnctl.service.answers.error_body import ApiProblem, responses
from yarnctl.service.answers.paging import NoParameters
from yarnctl.service.routes.placement import NUMBER, PRINTED, Word
from yarnctl.service.security.middleware import reader, sent_by
from yarnctl.service.security.tokens import Tokens
from yarnctl.units import Resources

MIB_MAX, VCORES_MAX = 2**30, 2**20
GUARANTEES_MAX = 16
CONTAINERS_MAX = 20_000
"""The loop does nothing else while it serves them: about 10 µs each in each round of the play."""
Mib = Annotated[int, Field(ge=1, le=MIB_MAX), NUMBER]
Vcores = Annotated[int, Field(ge=1, le=VCORES_MAX), NUMBER]


EXAMPLE: dict[str, JsonValue] = {
    "application": {"queue": "root.production", "containers": 10},
    "without_node": "node1:8041",
}


class SupposedApplication(BaseModel):
    """An application that is submitted now: its containers beside the application master's."""

    model_config = ConfigDict(extra="forbid")

    queue: Word
    user: Annotated[str, Field(max_length=100, pattern=PRINTED)] = "what-if"
    containers: Annotated[int, Field(ge=1, le=CONTAINERS_MAX), NUMBER]
    container_mib: Mib = 1024
    container_vcores: Vcores = 1
    master_mib: Mib = 1024
    master_vcores: Vcores = 1


class WhatIfQuestion(BaseModel):
    """What is supposed; ``guarantees``: queue -> its part of its parent (0 to 1)."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [EXAMPLE]})

    application: SupposedApplication | None = None
    guarantees: Annotated[
        dict[Word, Annotated[float, Field(ge=0, le=1)]], Field(max_length=GUARANTEES_MAX)
    ] = {}
    without_node: Annotated[str, Field(max_length=200, pattern=PRINTED)] | None = None


WHAT_IF = "/v1/what-if"


def question_routes(desk: WhatIfDesk | None, tokens: Tokens | None = None) -> APIRouter:
    """Return the routes; ``desk`` None: no loop answers. ``tokens`` None: reading is free."""
    router = APIRouter(tags=["reading"], responses=responses(401, 421), route_class=AnswerRoute)

    @router.post(WHAT_IF, responses=responses(400, 413, 503))
    def what_if(request: Request, _: Annotated[NoParameters, Query()], question: WhatIfQuestion) -> WhatIfOut:
        """Return what the controller would do. A copy of it decides; nothing changes."""
        if tokens is not None:
            reader(tokens, sent_by(request.scope), WHAT_IF)
        wanted = question_of(question)
        if desk is None:
            raise ApiProblem(503, "no-answer", "no loop answers questions", "start yarnctl run")
        try:
            return desk.ask(wanted)
        except BadInput as problem:
            message = f"{problem.where}: {problem.problem}"
            raise ApiProblem(400, "bad-question", message, problem.remedy or "see yarnctl snapshot") from None
        except Unreachable as problem:
            raise ApiProblem(503, "no-answer", str(problem), "retry in a few seconds") from None

    return router


def question_of(question: WhatIfQuestion) -> Question:
    """Return what the loop is asked; raises ApiProblem (400) if nothing is supposed."""
    if question.application is None and not question.guarantees and not question.without_node:
        remedy = "set application, guarantees or without_node"
        raise ApiProblem(400, "bad-question", "the question supposes nothing", remedy)
    wanted = question.application
    new = None
    if wanted is not None:
        new = NewApplication(
            queue=wanted.queue,
            user=wanted.user,
            containers=wanted.containers,
            size=Resources(wanted.container_mib, wanted.container_vcores),
            master_size=Resources(wanted.master_mib, wanted.master_vcores),
        )
    return Question(application=new, guarantees=question.guarantees, node=question.without_node or "")
