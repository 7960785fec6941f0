"""What a request may hold, as pydantic models: the bodies of writes, and the filters of admissions.

Law: whatever comes from outside is checked here, and what is not known is refused. Work is in container-ms, a
deadline is asked for as a span. Answers are the structs of :mod:`yarnctl.api`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from yarnctl.deciding.admission.records import State
from yarnctl.service.answers.paging import INSTANT_MAX_MS, ByNumber, Name, Parameters

CONTAINERS_MAX = 1_000_000
SPAN_MAX_MS = 366 * 86_400_000
WAIT_MAX_MS = 30_000


def _number(given: object) -> object:
    """Let only numbers be numbers: no text, no truth."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ValueError("is no number")
    return given


NUMBER = BeforeValidator(_number)
PRINTED = r"^[^\x00-\x1f\x7f-\x9f]+$"
"""Text without control characters: a terminal would obey them."""
Span = Annotated[int, Field(gt=0, le=SPAN_MAX_MS), NUMBER]
Work = Annotated[int, Field(ge=0, le=INSTANT_MAX_MS), NUMBER]
Word = Annotated[str, Field(min_length=1, max_length=200, pattern=PRINTED)]


class PauseRequest(BaseModel):
    """Why the loop is to pause; it is shown with the loop's state."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    why: Annotated[str, Field(max_length=200)] = "paused by request"


class EstimateIn(BaseModel):
    """How much a job computes, in container-ms, and who says so."""

    model_config = ConfigDict(extra="forbid")

    mean_ms: Annotated[int, Field(gt=0, le=INSTANT_MAX_MS), NUMBER]
    stdev_ms: Work = 0
    source: Annotated[str, Field(min_length=1, max_length=100, pattern=PRINTED)] = "request"


class AdmissionRequest(BaseModel):
    """A job that asks to be let in.

    ``containers``: the most it can use at once, its master's included. ``deadline_ms``: a span from now.
    Without ``estimate`` the history of jobs of this name is asked. ``request_key``: made by who asks; the
    same key again gets the same admission, so that a request may be repeated.
    """

    model_config = ConfigDict(extra="forbid")

    name: Word
    user: Annotated[str, Field(min_length=1, max_length=100, pattern=PRINTED)]
    queue: Word
    containers: Annotated[int, Field(ge=1, le=CONTAINERS_MAX), NUMBER]
    deadline_ms: Span
    estimate: EstimateIn | None = None
    kind: Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,40}$")] = "mapreduce"
    request_key: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] | None = None


class AdmissionsQuery(ByNumber):
    """Filters of the admissions."""

    state: Annotated[State | None, Field(description="In this state.")] = None
    user: Annotated[Name | None, Field(description="Of this user.")] = None
    queue: Annotated[Name | None, Field(description="For this queue.")] = None


class WaitQuery(Parameters):
    """How long to wait for an answer that is no longer ``waiting``."""

    wait_ms: Annotated[
        int,
        Field(ge=0, le=WAIT_MAX_MS, description="Answer as soon as the state is not `waiting`, or then."),
    ] = 0
