"""Field types of request bodies: strict numbers, printable words, bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from yarnctl.service.answers.paging import INSTANT_MAX_MS

CONTAINERS_MAX = 1_000_000
SPAN_MAX_MS = 366 * 86_400_000


def _number(value: object) -> object:
    """Return a number; raises ValueError for text and booleans, which pydantic would convert."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")
    return value


NUMBER = BeforeValidator(_number)
PRINTED = r"^[^\x00-\x1f\x7f-\x9f]+$"
"""Text without control characters, which a terminal would execute."""
Span = Annotated[int, Field(gt=0, le=SPAN_MAX_MS), NUMBER]
Work = Annotated[int, Field(ge=0, le=INSTANT_MAX_MS), NUMBER]
Kind = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,40}$")]
Word = Annotated[str, Field(min_length=1, max_length=200, pattern=PRINTED)]
