"""The table by which the lengths of a job's tasks differ, as the Natjam workload generator draws it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_MASK = (1 << 48) - 1

TABLE_SEED = 3
TABLE_LENGTH = 100


def next_doubles(seed: int) -> Iterator[float]:
    """Yield the endless ``nextDouble()`` sequence of ``new java.util.Random(seed)``, in [0, 1)."""
    state = (seed ^ _MULTIPLIER) & _MASK
    while True:
        state = (state * _MULTIPLIER + _INCREMENT) & _MASK
        high = state >> (48 - 26)
        state = (state * _MULTIPLIER + _INCREMENT) & _MASK
        low = state >> (48 - 27)
        yield ((high << 27) + low) / (1 << 53)


@lru_cache(maxsize=1)
def length_table() -> tuple[float, ...]:
    """Return the 100 length factors in (0.5, 1.0]: entry 0 is 1.0, entry i is (1 + U_i) / 2.

    U_i is the i-th ``nextDouble()`` of ``Random(3)``, counted from 1. Task i takes entry
    ``i mod 100``, so the longest task of a job is its first. Source: the constants of the
    Natjam workload generator.
    """
    draws = next_doubles(TABLE_SEED)
    return (1.0, *((1.0 + next(draws)) / 2.0 for _ in range(TABLE_LENGTH - 1)))
