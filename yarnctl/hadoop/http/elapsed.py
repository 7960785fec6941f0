"""Elapsed time: what has really passed, also while the machine slept.

Law: for whatever is judged against the world outside this process: a lease, an order's deadline, the age of a
token. ``time.monotonic`` stands still while a machine is suspended, so that who wakes takes a lease that
others have seen run out for its own. Where a system knows no other clock, that one counts.
"""

from __future__ import annotations

import time


def passed_ns() -> int:
    """Return ns that have passed since some instant, also while the machine slept where that is known."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return time.monotonic_ns()


def passed_s() -> float:
    """Return the same in seconds."""
    return passed_ns() / 1_000_000_000
