"""Pages: a bounded part of an ordered list, and the cursor of the next one.

A cursor is the key of the last item of a page, never an offset: items added at the front meanwhile neither
repeat nor hide other items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from yarnctl.deciding.lifecycle import State

LIMIT_MAX = 500
LIMIT = 100
WAIT_MAX_MS = 30_000
INSTANT_MAX_MS = 2**53 - 1  # The largest integer that a client in JavaScript reads exactly

Name = Annotated[str, Field(min_length=1, max_length=200)]
Instant = Annotated[int, Field(ge=0, le=INSTANT_MAX_MS)]
Item = TypeVar("Item")


class Parameters(BaseModel):
    """Query parameters; an unknown one is an error."""

    model_config = ConfigDict(extra="forbid")


class NoParameters(Parameters):
    """No query parameters."""


class ViewQuery(Parameters):
    """What every address that reads the view accepts."""

    since: Annotated[int | None, Field(ge=0, le=INSTANT_MAX_MS, description="The `version` you have.")] = None
    wait_ms: Annotated[
        int | None,
        Field(ge=0, le=WAIT_MAX_MS, description="With `since`: wait this long for a newer version."),
    ] = None
    iso: Annotated[bool, Field(description="Add each `..._at_ms` as ISO 8601 in UTC, as `..._at`.")] = False


class NameQuery(ViewQuery):
    """A page of a list in the order of names."""

    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX, description="Maximum number of items.")] = LIMIT
    cursor: Annotated[Name | None, Field(description="The `next` of the previous page.")] = None


class NumberQuery(ViewQuery):
    """A page of a list in the order of numbers."""

    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX, description="Maximum number of items.")] = LIMIT
    cursor: Annotated[Instant | None, Field(description="The `next` of the previous page.")] = None


class ReclaimsQuery(NameQuery):
    """Filters of the reclaim lists; a list without a matching entry is not in the answer."""

    queue: Annotated[Name | None, Field(description="The application's queue, by path or name.")] = None
    victim: Annotated[Name | None, Field(description="Entries against this application.")] = None
    state: Annotated[State | None, Field(description="Entries in this state.")] = None
    since_ms: Annotated[Instant | None, Field(description="Entries ordered at or after.")] = None
    until_ms: Annotated[Instant | None, Field(description="Entries ordered before.")] = None
    retired: Annotated[bool, Field(description="Also retired entries.")] = False


class EntriesQuery(ViewQuery):
    """Filters of one reclaim list."""

    victim: Annotated[Name | None, Field(description="Entries against this application.")] = None
    state: Annotated[State | None, Field(description="Entries in this state.")] = None
    since_ms: Annotated[Instant | None, Field(description="Entries ordered at or after.")] = None
    until_ms: Annotated[Instant | None, Field(description="Entries ordered before.")] = None
    retired: Annotated[bool, Field(description="Also retired entries.")] = True


class DecisionsQuery(NumberQuery):
    """Filters of the decisions."""

    application: Annotated[Name | None, Field(description="For this application.")] = None
    queue: Annotated[Name | None, Field(description="For this queue, by path or name.")] = None
    victim: Annotated[Name | None, Field(description="With a chosen task of this application.")] = None
    state: Annotated[State | None, Field(description="With an order in this state.")] = None
    since_ms: Annotated[Instant | None, Field(description="Made at or after.")] = None
    until_ms: Annotated[Instant | None, Field(description="Made before.")] = None


class RefusalsQuery(NumberQuery):
    """Filters of the refusals."""

    application: Annotated[Name | None, Field(description="Of this application.")] = None
    queue: Annotated[Name | None, Field(description="Of this queue, by path or name.")] = None
    since_ms: Annotated[Instant | None, Field(description="At or after.")] = None
    until_ms: Annotated[Instant | None, Field(description="Before.")] = None


class ApplicationsQuery(NameQuery):
    """Filters of the applications."""

    queue: Annotated[Name | None, Field(description="In this queue, by path or name.")] = None
    user: Annotated[Name | None, Field(description="Of this user.")] = None
    waiting: Annotated[bool | None, Field(description="With pending requests, or without.")] = None


class CheckpointsQuery(NumberQuery):
    """Filters of the checkpoints."""

    application: Annotated[Name | None, Field(description="Of this application.")] = None
    attempt: Annotated[Name | None, Field(description="Of this attempt.")] = None
    since_ms: Annotated[Instant | None, Field(description="Seen at or after.")] = None
    until_ms: Annotated[Instant | None, Field(description="Seen before.")] = None


class BudgetsQuery(NameQuery):
    """A page of the budgets, in the order of their owners' kinds and names."""


class TimeLostQuery(NameQuery):
    """A page of the causes for which production waited, by name."""


class ReportQuery(ViewQuery):
    """The span of the report."""

    since_ms: Annotated[Instant | None, Field(description="At or after; a day before now by default.")] = None


class OccupancyQuery(NumberQuery):
    """Filters of the samples; one page can hold all of them."""

    limit: Annotated[int, Field(ge=1, le=4096, description="Maximum number of samples.")] = 4096
    since_ms: Annotated[Instant | None, Field(description="At or after.")] = None
    until_ms: Annotated[Instant | None, Field(description="Before.")] = None


def matches(parameters: Parameters, **seen: object) -> bool:
    """Return whether each of these filters of a query is not set, or is the value that was seen."""
    return all(getattr(parameters, name) in (None, value) for name, value in seen.items())


def within(at_ms: int, since_ms: int | None, until_ms: int | None) -> bool:
    """Return whether an instant is in a half-open interval; None: no bound."""
    return (since_ms is None or at_ms >= since_ms) and (until_ms is None or at_ms < until_ms)


def by_name(
    items: Sequence[Item], name: Callable[[Item], str], query: NameQuery
) -> tuple[list[Item], str | None]:
    """Return the page of items in the order of their names, and the next cursor."""
    after = [item for item in items if query.cursor is None or name(item) > query.cursor]
    shown = after[: query.limit]
    return shown, name(shown[-1]) if len(after) > len(shown) else None


def by_number(
    items: Sequence[Item], number: Callable[[Item], int], query: NumberQuery, *, rising: bool = False
) -> tuple[list[Item], str | None]:
    """Return the page of items in the order of falling (rising) numbers, and the next cursor."""
    cursor = query.cursor
    after = (
        item
        for item in items
        if cursor is None or (number(item) > cursor if rising else number(item) < cursor)
    )
    shown = list(islice(after, query.limit + 1))
    more, shown = len(shown) > query.limit, shown[: query.limit]
    return shown, str(number(shown[-1])) if more else None
