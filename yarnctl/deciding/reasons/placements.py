"""Reasons of placement: why an option at a start was not taken, and why none is.

Law: see ``rooting``; the sentences are in docs/design-notes.md.
"""

from __future__ import annotations

from yarnctl.deciding.reasons.rooting import Reason


class EndsTooLate(Reason, frozen=True):
    """Its upper bound ends after the deadline; both instants in ms."""

    finish_at_ms: int
    deadline_at_ms: int


class NoRoomThroughout(Reason, frozen=True):
    """Fewer containers of its pool are free all through its run than it needs."""

    containers: int
    free: int


class OverHourlyBudget(Reason, frozen=True):
    """With it the pool would cost more an hour than it may, in milli-tokens."""

    needed_mtokens: int
    hourly_mtokens: int


class CostsMoreThanChosen(Reason, frozen=True):
    """It would do, and costs more than what was chosen (or starts later, or takes more containers)."""

    cost_mtokens: int
    chosen_mtokens: int


class NoSuchPool(Reason, frozen=True):
    """No pool takes its framework."""

    kind: str


class NothingFits(Reason, frozen=True):
    """No option meets the deadline; when the first would end, if any would at all.

    ``would_do``: so many containers would do now, were they free (None: no number would). ``lacking``: kinds
    of which too few runs are known.
    """

    first_finish_at_ms: int | None
    would_do: int | None = None
    lacking: tuple[str, ...] = ()


PlacementReason = (
    EndsTooLate | NoRoomThroughout | OverHourlyBudget | CostsMoreThanChosen | NoSuchPool | NothingFits
)
"""Why an option is not taken, or none is."""
