"""What all answers share: vectors, errors, and the page of a list."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]
Item = TypeVar("Item")


class ReasonOut(msgspec.Struct, frozen=True, kw_only=True):
    """A reason: ``code`` for programs (docs/reference/reasons.md lists them), ``text`` for people."""

    code: str
    text: str


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """A vector of memory (MiB) and virtual cores (of a capacity that these do not limit: 0)."""

    memory_mib: int
    vcores: int


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error: a fixed ``code``, a sentence, and what to do next."""

    code: str
    message: str
    next: str


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of every answer of 4xx and 5xx."""

    error: Problem


class Paged(msgspec.Struct, frozen=True, kw_only=True):
    """What every page has besides its items.

    ``total``: items that match the filters now. ``next``: the cursor of the next page, null at the end.
    ``now_ms`` and ``version`` are those of the view.
    """

    now_ms: int
    version: Count
    total: Count
    next: str | None


class Page(Paged, Generic[Item], frozen=True, kw_only=True):
    """One page of a list."""

    items: list[Item]
