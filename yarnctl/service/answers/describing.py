"""How an answer is encoded, and how the OpenAPI document describes it: both from one struct.

``CORE`` and ``PAGES`` name the records of the core that are in answers unchanged, and the pages. The pydantic
models made here only describe; no answer is put into one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache, reduce, wraps
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from fastapi import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, create_model

from yarnctl.api.cluster_answers import Application, OccupancySample
from yarnctl.api.decision_answers import Explained, RefusalOut
from yarnctl.api.order_answers import BudgetOut, CheckpointOut, DecisionSummary, ReclaimList, TimeLostOut
from yarnctl.api.paged import Count, Page
from yarnctl.deciding.admission.records import Estimate, Phase, Phases
from yarnctl.deciding.levers import Lever
from yarnctl.journal.explaining.story import (
    AdmissionStory,
    CameBackStory,
    OrderStory,
    PriorityStory,
    Ran,
    RefusalStory,
    SavedLostStory,
    Tally,
)
from yarnctl.service.answers.instants import instant_name, with_instants
from yarnctl.service.answers.paging import ViewQuery
from yarnctl.units import Resources


class Description(NamedTuple):
    """A class's name and text in the document, and the types of fields that differ there."""

    name: str
    text: str | None
    fields: Mapping[str, Any] = {}


CORE: dict[type, Description] = {
    Estimate: Description(
        "EstimateOut",
        "The work of a job in container-ms: mean, standard deviation, and the source of the estimate.",
        {"phases": Phases | None, "given_by": Literal["operator", "user"]},
    ),
    Phases: Description(
        "PhasesOut", "A job's phases in order, and the time that its application master and client need."
    ),
    Phase: Description(
        "PhaseOut", "Tasks of one kind: their number, and how long each holds its container (ms)."
    ),
    Ran: Description("RanOut", "Which attempt of which application ran in a container, and on which node."),
    Tally: Description(
        "TallyOut",
        "An application's orders in sum: those made for it (`requester`), or those against it (`victim`).",
        {"orders": Count},
    ),
    CameBackStory: Description(
        "ResumeCostOut", "The measured resume cost of a suspended task: the sum and its parts, in ms."
    ),
    SavedLostStory: Description(
        "LostCheckpointOut",
        "A checkpoint that a later attempt did not use;"
        " ``generation_found``: the generation that it started from, 0 if none.",
    ),
    OrderStory: Description(
        "OrderOut",
        """One order from decision to end. Keys: the smallest is chosen first; null: unknown.

        ``total``: the cluster's size (MiB, vcores, other types), for keys that are shares of it.
        ``next_jobs``, ``next_tasks``: not chosen, as (application, [attempt,] key, reason).
        """,
        {"decision": Count, "generation": Count, "verb": str, "lever": Lever | None},
    ),
    Lever: Description(
        "LeverOut", "A way to free a container: when, the work lost, the overhead, and how it is undone (ms)."
    ),
    RefusalStory: Description(
        "NotChosenOut",
        "One occasion on which the id was not chosen, or was the application that got no container.",
    ),
    PriorityStory: Description(
        "PriorityOut", "A priority given to an application as the ``place``-th most urgent (from 1)."
    ),
    AdmissionStory: Description("AdmissionEventOut", "One change of an admission."),
}
"""The records of the core that are in answers unchanged."""

PAGES: dict[type, Description] = {
    Application: Description("ApplicationPage", "Applications, by id."),
    BudgetOut: Description("BudgetPage", "Loss budgets, by kind and name of their owners."),
    CheckpointOut: Description("CheckpointPage", "Checkpoints, newest first."),
    DecisionSummary: Description("DecisionPage", "Decisions, newest first."),
    OccupancySample: Description("OccupancyPage", "Samples, oldest first."),
    ReclaimList: Description("ReclaimPage", "Reclaim lists, by application id."),
    RefusalOut: Description("RefusalPage", "Refusals, newest first."),
    TimeLostOut: Description("TimeLostPage", "Where production's time went, by cause."),
}
"""The pages' items, and their order."""

GROWING = frozenset({Explained, *CORE} - {Estimate})  # A later version may add fields to these


class AnswerRoute(APIRoute):
    """A route with a function that returns a struct: described by it, and encoded from it."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        # ``options``: the forty of FastAPI's own constructor; its router calls this one with all of them.
        kind = get_type_hints(endpoint, include_extras=True).get("return")
        if _is_struct(kind):
            options["response_model"] = described(kind)
            endpoint = _encoding(endpoint, options.get("status_code") or 200)
        super().__init__(path, endpoint, **options)


def _encoding(function: Callable[..., Any], status: int) -> Callable[..., Any]:

    def answer(found: object, arguments: Mapping[str, Any]) -> Response:
        if isinstance(found, Response):
            return found
        if any(isinstance(each, ViewQuery) and each.iso for each in arguments.values()):
            found = with_instants(msgspec.to_builtins(found))
        return Response(msgspec.json.encode(found), status, media_type="application/json")

    @wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Response:
        return answer(await function(*args, **kwargs), kwargs)

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Response:
        return answer(function(*args, **kwargs), kwargs)

    return awaited if inspect.iscoroutinefunction(function) else called


@cache
def described(kind: Any) -> type[BaseModel]:
    """Return the pydantic model by which the OpenAPI document describes a struct."""
    origin = get_origin(kind) or kind
    about = _description(kind, origin)
    fields: dict[str, Any] = {}
    for each in msgspec.structs.fields(kind):
        shown = _type_of(about.fields.get(each.name, each.type))
        is_optional = may_lack(kind, each)
        fields[each.encode_name] = (shown, None if is_optional else ...)
        if (instant := instant_name(each.encode_name)) is not None:
            fields[instant] = (datetime | None, None)  # with ``iso`` only
    closed = ConfigDict(extra="ignore" if origin in GROWING else "forbid")
    return create_model(about.name, __config__=closed, __doc__=about.text, **fields)


def may_lack(kind: Any, field: msgspec.structs.FieldInfo) -> bool:
    """Return whether an answer leaves a field out that has its default."""
    leaves_out = (get_origin(kind) or kind).__struct_config__.omit_defaults
    return field.default is msgspec.UNSET or (leaves_out and field.default is not msgspec.NODEFAULT)


def _description(kind: Any, origin: type) -> Description:
    if origin is Page:
        return PAGES[get_args(kind)[0]]
    return CORE.get(origin) or Description(origin.__name__, origin.__doc__)


def _is_struct(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, msgspec.Struct)


def _type_of(kind: Any) -> Any:
    origin = get_origin(kind)
    if _is_struct(kind):
        return described(kind)
    if kind is Resources:
        return Annotated[tuple[int, ...], Field(min_length=2)]
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return tuple.__class_getitem__(tuple(map(_type_of, get_type_hints(kind).values())))
    if origin is None or origin is Literal:
        return kind
    if origin is Annotated:
        bare, meta = get_args(kind)
        return Annotated[_type_of(bare), Field(ge=meta.ge)]
    known = [part for part in get_args(kind) if part is not msgspec.UnsetType]  # such a field may be absent
    parts = tuple(part if part is ... else _type_of(part) for part in known)
    return reduce(or_, parts) if origin in (Union, UnionType) else origin[parts]
