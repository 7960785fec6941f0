"""Draws: chance as a function of its arguments.

Law: there is no generator and no state. A draw is named by the seed and a row of integers
(decision, job or task, pick), so that re-deciding one decision, or part of it, draws the same
numbers in any order and on any machine.
"""

from __future__ import annotations

import math
import zlib

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
UNIT = 1 << 40
"""Fixed point of :func:`exponential`: this integer stands for 1.0."""


def uniform(seed: int, *names: int) -> int:
    """Return an integer, uniform in 0 .. 2**64 - 1, that depends on nothing but the arguments.

    The seed and each name are mixed in by one round of splitmix64 (Steele, Lea and Flood, "Fast
    splittable pseudorandom number generators", OOPSLA 2014).
    """
    state = 0
    for name in (seed, *names):
        state = (state + _GOLDEN + (name & _MASK)) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


def named(text: str) -> int:
    """Return a 64-bit number for an id, the same under any hash seed."""
    raw = text.encode()
    return zlib.crc32(raw) << 32 | zlib.adler32(raw)


def exponential(draw: int) -> int:
    """Turn a uniform 64-bit draw into an Exp(1) variate in fixed point (see :data:`UNIT`).

    Rounded to 2**-40, so that a last bit which differs between two mathematical libraries does
    not reach the journal.
    """
    return int(-math.log(((draw >> 11) + 0.5) * 2.0**-53) * UNIT)
