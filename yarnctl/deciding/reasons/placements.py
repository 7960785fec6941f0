"""Reasons of placement: why an option at a start was not chosen, and why none is."""

from __future__ import annotations

from yarnctl.deciding.reasons.rooting import Reason


class EndsTooLate(Reason, frozen=True):
    """By its upper bound."""

    sentence = "would end at {finish_at_ms:instant}, after the deadline at {deadline_at_ms:instant}"
    finish_at_ms: int
    deadline_at_ms: int


class NoRoomThroughout(Reason, frozen=True):
    sentence = "needs {containers:containers}, and only {free} are free during the whole run"
    containers: int
    free: int


class OverHourlyBudget(Reason, frozen=True):
    sentence = (
        "would raise the pool's cost to {needed_mtokens:tokens} an hour,"
        " above its limit of {hourly_mtokens:tokens}"
    )
    needed_mtokens: int
    hourly_mtokens: int


class CostsMoreThanChosen(Reason, frozen=True):
    """At equal costs the chosen option starts sooner, or uses fewer containers."""

    sentence = "costs {cost_mtokens:tokens}; the chosen option costs {chosen_mtokens:tokens}"
    cost_mtokens: int
    chosen_mtokens: int


class NoSuchPool(Reason, frozen=True):
    sentence = "no pool accepts {kind} applications"
    kind: str


class NothingFits(Reason, frozen=True):
    """``first_finish_at_ms``: the earliest end of an option, None if none fits at any time.

    ``would_do``: the fewest containers that would suffice if they were free now (None: no number would).
    ``lacking``: kinds with too few known runs.
    """

    sentence = (
        "[first_finish_at_ms?no option meets the deadline; the earliest possible end is"
        " {first_finish_at_ms:instant}|no option fits at any time: each needs more containers or money than"
        " available][would_do?; {would_do:containers} would suffice if free now]"
        "[lacking?; too few known runs on {lacking:list}]"
    )
    first_finish_at_ms: int | None
    would_do: int | None = None
    lacking: tuple[str, ...] = ()


PlacementReason = (
    EndsTooLate | NoRoomThroughout | OverHourlyBudget | CostsMoreThanChosen | NoSuchPool | NothingFits
)
"""Why an option was not chosen, or none was (``refused`` of plans in ``admission-round``)."""
