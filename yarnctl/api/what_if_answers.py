"""Answers to what-if questions."""

from __future__ import annotations

import msgspec

from yarnctl.api.paged import Count


class SpanOut(msgspec.Struct, frozen=True, kw_only=True):
    """A span from ``at_ms`` on, in ms, with its bounds."""

    least_ms: Count
    expected_ms: Count
    most_ms: Count


class ChosenOut(msgspec.Struct, frozen=True, kw_only=True):
    """A task that yarnctl would stop for ``requester``, the lever, and what it costs (container-ms)."""

    application: str
    attempt: str
    container: str
    node: str
    lever: str
    requester: str
    lost_ms: Count
    overhead_ms: Count


class FallenOut(msgspec.Struct, frozen=True, kw_only=True):
    """A deadline that falls: the job would end at ``before_at_ms``, and then at ``after_at_ms``."""

    application: str
    user: str
    deadline_at_ms: int
    before_at_ms: int
    after_at_ms: int


class WhatIfOut(msgspec.Struct, frozen=True, kw_only=True):
    """What the controller would do. Nothing was changed.

    ``state_hash``: SHA-256 of the ledger and the snapshot that were copied, those of ``at_ms``. ``starts``,
    ``complete``: until the application has its first container, and all; null: not known, see ``waits``.
    ``served``: its containers that would be served, the application master's included.
    """

    at_ms: int
    state_hash: str
    chosen: list[ChosenOut]
    starts: SpanOut | None
    complete: SpanOut | None
    served: Count
    lost_ms: Count
    overhead_ms: Count
    deadlines: list[FallenOut]
    waits: str
