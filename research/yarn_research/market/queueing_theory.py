"""MRM section 3.1: what predictable finish times cost in earliness, by queueing theory (Figs 2, 2b, 3).

Law: pure arithmetic on the paper's equations; the unit of time is a mean service time (mu = 1). Eq 10 as
printed has lost an x in an exponent; it is not used: E[x - T | T <= x] is integrated from the law of T.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

NEGLIGIBLE = 1e-10


def erlang_tail(stages: int, x: float) -> float:
    """Return P(T > x) for a sum of so many exponentials of mean 1 (Eq 5)."""
    term = total = math.exp(-x)
    for each in range(1, stages):
        term *= x / each
        total += term
    return total


def erlang_bound(stages: int, beta: float) -> float:
    """Return the x that a sum of so many exponentials exceeds with probability beta."""
    low, high = 0.0, stages + 10 * math.sqrt(stages) + 40
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if erlang_tail(stages, middle) > beta else (low, middle)
    return (low + high) / 2


class Fit(NamedTuple):
    """x_k(beta) = (b0 beta + b1) (k + 1), by least squares over the points."""

    b0: float
    b1: float
    r2: float


def fit(betas: Sequence[float], most: int) -> Fit:
    """Fit Fig 2's linear function for k = 0 to ``most``."""
    found = [(beta, k + 1, erlang_bound(k + 1, beta)) for beta in betas for k in range(most + 1)]
    a = math.fsum((beta * k) ** 2 for beta, k, _ in found)
    b = math.fsum(beta * k * k for beta, k, _ in found)
    c = math.fsum(k * k for _, k, _ in found)
    d = math.fsum(beta * k * x for beta, k, x in found)
    e = math.fsum(k * x for _, k, x in found)
    b0 = (d * c - b * e) / (a * c - b * b)
    b1 = (a * e - b * d) / (a * c - b * b)
    mean = math.fsum(x for *_, x in found) / len(found)
    rest = math.fsum((x - (b0 * beta + b1) * k) ** 2 for beta, k, x in found)
    return Fit(b0, b1, 1 - rest / math.fsum((x - mean) ** 2 for *_, x in found))


def erlang_earliness(stages: int, beta: float) -> float:
    """Return E[x - T | T <= x] where T exceeds x with probability beta (Eq 7)."""
    x = erlang_bound(stages, beta)
    return x - stages * (1 - erlang_tail(stages + 1, x)) / (1 - beta)


def fixed_single(rate: float, beta: float) -> float:
    """Eq 4: the least earliness with one estimate for all jobs."""
    return (math.log(beta) / (beta - 1) - 1) / (1 - rate)


def occupied_single(rate: float, beta: float) -> float:
    """Eq 6: the earliness where the estimate has how many are ahead."""
    return _weighted([rate], beta, 1)


def fixed_tandem(rate: float, beta: float, reduce_ratio: float) -> float:
    """Eqs 9, 10: one estimate for all jobs with a reduce phase; a sum of two exponentials."""
    first, second = 1 - rate, 1 - reduce_ratio * rate
    low, high = 0.0, 100 / min(first, second)
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        tail = first * math.exp(-second * middle) - second * math.exp(-first * middle)
        low, high = (middle, high) if tail / (first - second) > beta else (low, middle)
    x = (low + high) / 2
    # E[(x - T)+] / P(T <= x); the integral of P(T <= t) over [0, x], term by term
    first_part = first * -math.expm1(-second * x) / second
    tails = (first_part - second * -math.expm1(-first * x) / first) / (first - second)
    return (x - tails) / (1 - beta)


def occupied_tandem(rate: float, beta: float, reduce_ratio: float) -> float:
    """Return the earliness of jobs with a reduce phase whose estimate has both queues (Jackson)."""
    return _weighted([rate, reduce_ratio * rate], beta, 2)


def _weighted(rates: Sequence[float], beta: float, stages: int) -> float:
    """Average over how many are ahead: geometric in each queue, added up."""
    chances = [1.0]
    for rate in rates:
        last: list[float] = []
        before = 0.0
        k = 0
        while k < len(chances) or before > NEGLIGIBLE:
            before = rate * before + (1 - rate) * (chances[k] if k < len(chances) else 0.0)
            last.append(before)
            k += 1
        chances = last
    return math.fsum(each * erlang_earliness(k + stages, beta) for k, each in enumerate(chances))
