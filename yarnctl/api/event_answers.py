"""What happened, one event after the other."""

from __future__ import annotations

from typing import Literal

import msgspec

from yarnctl.api.paged import Count, ReasonOut

EventKind = Literal["decision", "refusal", "order", "loop"]


class EventOut(msgspec.Struct, frozen=True, kw_only=True):
    """One event. ``cursor``: its position; a stream continues after it.

    ``kind``: a ``decision`` for ``application``, with its number; a ``refusal``, which frees no container for
    it; an ``order`` for it that reached ``state``, against ``victim``; the ``loop``, which reached ``state``.
    """

    cursor: str
    at_ms: int
    kind: EventKind
    text: str
    application: str | None = None
    victim: str | None = None
    order: str | None = None
    decision: Count | None = None
    state: str | None = None
    reason: ReasonOut | None = None
