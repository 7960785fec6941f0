"""What the API takes and answers about admissions, as pydantic models.

Law: as in :mod:`yarnctl.service.models`. Work is in container-ms, a deadline is asked for as a span and told
as an instant on the daemon's clock. Nothing is done for who asks: what is told is what to submit with.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from yarnctl.deciding.admission.book import State
from yarnctl.service.models import Count, Model, Paged
from yarnctl.service.paging import INSTANT_MAX_MS, ByNumber, Name, Parameters

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


class EstimateOut(Model):
    """How much a job computes, in container-ms: mean, standard deviation, and who says so."""

    mean_ms: int
    stdev_ms: int
    source: str


class AskedOut(Model):
    """What was asked for."""

    name: str
    user: str
    queue: str
    containers: Count
    deadline_ms: int
    submitted_at_ms: int
    estimate: EstimateOut | None
    kind: str


class PlanOut(Model):
    """The newest verdict with what follows from it; where nobody can tell, instants are null."""

    verdict: Literal["admit", "defer", "reject"]
    containers: Count
    deadline_at_ms: int
    start_at_ms: int | None
    finish_at_ms: int | None
    reason: str


class AdmissionOut(Model):
    """One admission.

    ``tags`` and ``settings`` are what to submit with once ``state`` is ``admitted`` (before, and for what is
    no MapReduce job, ``settings`` are empty); it must have been seen by ``expires_at_ms``. ``lease_ms``: who
    waits and does not renew for so long is withdrawn. ``why`` says why it is over, or is empty.
    """

    id: str
    state: State
    why: str
    request: AskedOut
    plan: PlanOut
    application: str | None
    expires_at_ms: int | None
    lease_ms: int
    tags: list[str]
    settings: dict[str, str]


class GateOut(Model):
    """The gate. ``capacity`` in containers of ``container_mib``, null until the cluster has been seen."""

    allocator: str
    capacity: Count | None
    container_mib: Count | None
    waiting: Count
    reserved: Count
    learned: Count
    problem: str


class AdmissionPage(Paged):
    """Admissions, newest first; ``gate`` is null if the daemon runs without one."""

    gate: GateOut | None
    items: list[AdmissionOut]
