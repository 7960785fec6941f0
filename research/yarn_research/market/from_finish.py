"""The other reading of Eq 13's slack: what is free between i's earliest finish and its deadline.

Law: as :mod:`yarnctl.deciding.admission.pricing.prices`, term by term, with F(d_i) - F(f_i) for F(d_i).
The price is no difference of a potential then and may rise with the deadline, so deadlines are tried one
by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarnctl.deciding.admission.pricing.prices import Point, Standing, earliest_finish

STEP_MS = 100


def price(
    state: Standing, finishes_ms: Sequence[int], work_ms: int, kappa: float, deadline_at_ms: int
) -> float:
    """Return the price of a deadline; ``finishes_ms`` are the earliest finishes of the promised jobs."""
    mean = state.mean_ms
    own_ms = max(0, state.slack_ms(work_ms, deadline_at_ms))
    total = work_ms / (own_ms / mean + 1)
    for weight, due, finish in zip(state.weights_ms, state.due_at_ms, finishes_ms, strict=True):
        if not weight:
            continue
        before = _free(state, due) - _free(state, finish)
        after = _after(state, due, deadline_at_ms, own_ms, work_ms)
        after -= _after(state, finish, deadline_at_ms, own_ms, work_ms)
        total += weight / (max(0, after) / mean + 1) - weight / (max(0, before) / mean + 1)
    return kappa * total


def _free(state: Standing, at_ms: int) -> int:
    return max(0, state.slack_ms(0, at_ms))


def _after(state: Standing, at_ms: int, deadline_at_ms: int, own_ms: int, work_ms: int) -> int:
    """Return what is free until an instant once the job is laid."""
    if at_ms >= deadline_at_ms:
        return max(0, _free(state, at_ms) - work_ms)
    return min(_free(state, at_ms), own_ms)


def within(state: Standing, finishes_ms: Sequence[int], work_ms: int, kappa: float, budget: float) -> Point:
    """Return the first deadline tried that costs at most ``budget``."""
    at_ms = earliest_finish(state, work_ms)
    while True:
        paid = price(state, finishes_ms, work_ms, kappa, at_ms)
        if paid <= budget * (1 + 1e-12):
            return Point(at_ms, paid, max(0, state.slack_ms(work_ms, at_ms)))
        at_ms += STEP_MS
