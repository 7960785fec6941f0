"""Units: the resource vector, and the names of quantities.

* Every name ends in its unit: instants ``*_at_ms``, durations ``*_ms`` (integer milliseconds), memory
  ``*_mib``, processors ``*_vcores``.
* A resource is a vector and is compared component by component: a container fits only if every component
  does.
"""

from __future__ import annotations

from typing import NamedTuple


class Resources(NamedTuple):
    """A vector of memory (MiB) and virtual cores, as YARN's class Resource."""

    memory_mib: int
    vcores: int


NOTHING = Resources(0, 0)  # The empty vector


def plus(left: Resources, right: Resources) -> Resources:
    """Return the sum, component by component."""
    return Resources(left[0] + right[0], left[1] + right[1])


def minus(left: Resources, right: Resources) -> Resources:
    """Return the difference, component by component (it may be negative)."""
    return Resources(left[0] - right[0], left[1] - right[1])


def times(size: Resources, count: int) -> Resources:
    """Return ``count`` times ``size``."""
    return Resources(size[0] * count, size[1] * count)


def at_least(left: Resources, right: Resources) -> Resources:
    """Return the larger value of each component."""
    return Resources(max(left[0], right[0]), max(left[1], right[1]))


def fits(size: Resources, free: Resources) -> bool:
    """Return whether ``size`` fits into ``free`` in every component."""
    return size[0] <= free[0] and size[1] <= free[1]


def dominant(used: Resources, total: Resources) -> int:
    """Return the dominant share of ``used`` in ``total`` as an exact integer key.

    The shares are memory/total memory and vcores/total vcores; multiplied by both totals they stay integers,
    so that equal shares compare equal on every machine (Hadoop's DominantResourceCalculator does the same in
    floats). Only keys made with the same ``total`` may be compared.
    """
    return max(used[0] * total[1], used[1] * total[0])
