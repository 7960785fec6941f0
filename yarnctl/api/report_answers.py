"""The report: what yarnctl gained and what it cost, by queue and user."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from yarnctl.api.paged import Count


class WaitedLess(msgspec.Struct, frozen=True, kw_only=True):
    """How much less production waited, in container time: an estimate and its 90 % interval.

    ``estimated``: the containers that it is of. Of others no research task with a known end was running.
    """

    least_ms: int
    estimate_ms: int
    most_ms: int
    estimated: Count


class GainOut(msgspec.Struct, frozen=True, kw_only=True):
    """What the orders for one production queue and user brought; ``unmet``: containers not found."""

    queue: str
    user: str
    decisions: Count
    needed: Count
    ordered: Count
    received: Count
    unmet: Count
    waited_less: WaitedLess


class LossOut(msgspec.Struct, frozen=True, kw_only=True):
    """What one research queue and user gave: containers by verb, and work in MiB-ms.

    ``kept_mib_ms``: work that the tasks had done and kept. ``unknown``: containers of which it is not known.
    """

    queue: str
    user: str
    containers: Count
    verbs: Mapping[str, int]
    kept_mib_ms: Count
    lost_mib_ms: Count
    unknown: Count


class NotTakenOut(msgspec.Struct, frozen=True, kw_only=True):
    """Why containers were not taken for a user's requests: ``code`` of a request, job or task, how often."""

    queue: str
    user: str
    kind: str
    code: str
    times: Count


class ReportOut(msgspec.Struct, frozen=True, kw_only=True):
    """The report from ``since_ms`` to ``until_ms``. ``would``: a daemon that only observes made it."""

    since_ms: int
    until_ms: int
    would: bool
    waited_less: WaitedLess
    gains: list[GainOut]
    losses: list[LossOut]
    not_taken: list[NotTakenOut]
