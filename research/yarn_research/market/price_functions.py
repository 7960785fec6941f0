"""MRM's prices one deadline at a time, as its equations are printed: the reference of the product's curve."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from yarnctl.deciding.admission.pricing.prices import ITSELF, Standing


def potential(state: Standing) -> float:
    """Return Phi(S)."""
    return math.fsum(
        weight / (free / state.mean_ms + 1)
        for weight, free in zip(state.weights_ms, state.free_ms, strict=True)
    )


class Offered(NamedTuple):
    """The inputs of a price: the job's work, its deadline, kappa, and the least it pays (r_j)."""

    work_ms: int
    deadline_at_ms: int
    kappa: float = 1.0
    least: float = 0.0


Price = Callable[[Standing, Offered], float]


def because(state: Standing, offered: Offered) -> tuple[tuple[str, float], ...]:
    """Return Eq 13 term by term: the job itself, then the jobs whose slack becomes less, by deadline."""
    mean, work = state.mean_ms, offered.work_ms
    slack_ms = max(0, state.slack_ms(work, offered.deadline_at_ms))
    place = state.place(offered.deadline_at_ms)
    terms = [(ITSELF, offered.kappa * (work / (slack_ms / mean + 1)))]
    for each, (weight, free) in enumerate(zip(state.weights_ms, state.free_ms, strict=True)):
        after = max(0, free - work) if each >= place else min(free, slack_ms)
        if weight and after < free:
            change = weight / (after / mean + 1) - weight / (free / mean + 1)
            terms.append((state.who[each], offered.kappa * change))
    return tuple(terms)


def slack(state: Standing, offered: Offered) -> float:
    """Eq 13: the slack that is left to the job, and the slack that others lose."""
    return max(offered.least, math.fsum(amount for _, amount in because(state, offered)))


def exponential(state: Standing, offered: Offered) -> float:
    """Eq 14: a fixed premium that decays with slack over processing time."""
    slack_ms = max(0, state.slack_ms(offered.work_ms, offered.deadline_at_ms))
    floor = offered.least or offered.work_ms
    return max(floor, offered.kappa * floor * math.exp(-slack_ms / offered.work_ms))


def quadratic(state: Standing, offered: Offered) -> float:
    """Eq 15: a fixed premium less the square of slack over processing time (in milliseconds)."""
    slack_ms = max(0, state.slack_ms(offered.work_ms, offered.deadline_at_ms))
    floor = offered.least or offered.work_ms
    return max(floor, offered.kappa * floor - slack_ms**2 / offered.work_ms)


def load_aware(state: Standing, offered: Offered) -> float:
    """Eq 16: more under load until the deadline; rho is 1 at the earliest finish."""
    place = state.place(offered.deadline_at_ms)
    rest_ms = state.supply.until(offered.deadline_at_ms) - state.behind_ms[place] - offered.work_ms
    rho = max(0.0, 1 - max(0, rest_ms) / offered.work_ms)
    floor = offered.least or offered.work_ms
    return max(floor, floor * math.exp(rho * offered.work_ms / state.mean_ms))


PRICES: dict[str, Price] = {
    "slack": slack,  # Eq 13
    "exponential": exponential,  # Eq 14
    "quadratic": quadratic,  # Eq 15
    "load": load_aware,  # Eq 16
}
"""Every price function by name, with the equation of MRM section 4.2."""
