"""Pages: a bounded piece of an ordered list, and where the next one begins.

Law: a cursor is the key of the last item that was shown, never an offset: what is added at the front
meanwhile neither repeats nor hides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from yarnctl.deciding.lifecycle import State

LIMIT_MAX = 500
LIMIT = 100
INSTANT_MAX_MS = 2**53 - 1
"""The largest integer that a client in JavaScript reads exactly."""

Name = Annotated[str, Field(min_length=1, max_length=200)]
Instant = Annotated[int, Field(ge=0, le=INSTANT_MAX_MS)]
Item = TypeVar("Item")


class Parameters(BaseModel):
    """Query parameters; one that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class NoParameters(Parameters):
    """This address takes none."""


class ByName(Parameters):
    """A page of a list ordered by name."""

    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX, description="How many items at most.")] = LIMIT
    cursor: Annotated[Name | None, Field(description="The `next` of the page before.")] = None


class ByNumber(Parameters):
    """A page of a list ordered by number."""

    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX, description="How many items at most.")] = LIMIT
    cursor: Annotated[Instant | None, Field(description="The `next` of the page before.")] = None


class ReclaimsQuery(ByName):
    """Filters of the reclaim lists; those of entries leave out lists in which nothing matches."""

    queue: Annotated[Name | None, Field(description="The application's queue, by path or name.")] = None
    victim: Annotated[Name | None, Field(description="Entries against this application.")] = None
    state: Annotated[State | None, Field(description="Entries in this state.")] = None
    since_ms: Annotated[Instant | None, Field(description="Entries asked for at or after.")] = None
    until_ms: Annotated[Instant | None, Field(description="Entries asked for before.")] = None
    retired: Annotated[bool, Field(description="Also entries that have left their list.")] = False


class EntriesQuery(Parameters):
    """Filters of one reclaim list."""

    victim: Annotated[Name | None, Field(description="Entries against this application.")] = None
    state: Annotated[State | None, Field(description="Entries in this state.")] = None
    since_ms: Annotated[Instant | None, Field(description="Entries asked for at or after.")] = None
    until_ms: Annotated[Instant | None, Field(description="Entries asked for before.")] = None
    retired: Annotated[bool, Field(description="Also entries that have left the list.")] = True


class DecisionsQuery(ByNumber):
    """Filters of the decisions."""

    application: Annotated[Name | None, Field(description="On behalf of this application.")] = None
    queue: Annotated[Name | None, Field(description="On behalf of this queue, by path or name.")] = None
    victim: Annotated[Name | None, Field(description="That chose from this application.")] = None
    state: Annotated[State | None, Field(description="With an order in this state.")] = None
    since_ms: Annotated[Instant | None, Field(description="Taken at or after.")] = None
    until_ms: Annotated[Instant | None, Field(description="Taken before.")] = None


class RefusalsQuery(ByNumber):
    """Filters of the refusals."""

    application: Annotated[Name | None, Field(description="That asked in vain.")] = None
    queue: Annotated[Name | None, Field(description="Of this queue, by path or name.")] = None
    since_ms: Annotated[Instant | None, Field(description="At or after.")] = None
    until_ms: Annotated[Instant | None, Field(description="Before.")] = None


class ApplicationsQuery(ByName):
    """Filters of the applications."""

    queue: Annotated[Name | None, Field(description="In this queue, by path or name.")] = None
    user: Annotated[Name | None, Field(description="Of this user.")] = None
    waiting: Annotated[bool | None, Field(description="That wait for containers, or do not.")] = None


class CheckpointsQuery(ByNumber):
    """Filters of the checkpoints."""

    application: Annotated[Name | None, Field(description="Of this application.")] = None
    attempt: Annotated[Name | None, Field(description="Of this attempt.")] = None
    since_ms: Annotated[Instant | None, Field(description="Seen at or after.")] = None
    until_ms: Annotated[Instant | None, Field(description="Seen before.")] = None


class BudgetsQuery(ByName):
    """Which budgets; they are in the order of their owners' kinds and names."""


class OccupancyQuery(ByNumber):
    """Which samples; their number is bounded, so one page may hold them all."""

    limit: Annotated[int, Field(ge=1, le=4096, description="How many samples at most.")] = 4096
    since_ms: Annotated[Instant | None, Field(description="At or after.")] = None
    until_ms: Annotated[Instant | None, Field(description="Before.")] = None


def within(at_ms: int, since_ms: int | None, until_ms: int | None) -> bool:
    """Say whether an instant is in a half-open span; None is no bound."""
    return (since_ms is None or at_ms >= since_ms) and (until_ms is None or at_ms < until_ms)


def by_name(
    items: Sequence[Item], name: Callable[[Item], str], asked: ByName
) -> tuple[list[Item], str | None]:
    """Return the page of items in the order of their names, and the next cursor."""
    after = [item for item in items if asked.cursor is None or name(item) > asked.cursor]
    shown = after[: asked.limit]
    return shown, name(shown[-1]) if len(after) > len(shown) else None


def by_number(
    items: Sequence[Item], number: Callable[[Item], int], asked: ByNumber, *, rising: bool = False
) -> tuple[list[Item], str | None]:
    """Return the page of items in the order of falling (rising) numbers, and the next cursor."""
    cursor = asked.cursor
    after = (
        item
        for item in items
        if cursor is None or (number(item) > cursor if rising else number(item) < cursor)
    )
    shown = list(islice(after, asked.limit + 1))
    more, shown = len(shown) > asked.limit, shown[: asked.limit]
    return shown, str(number(shown[-1])) if more else None
