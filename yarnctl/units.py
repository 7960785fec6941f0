"""Units: the resource vector, and the names of quantities.

* Every name ends in its unit: instants ``*_at_ms``, durations ``*_ms`` (integer milliseconds), memory
  ``*_mib``, processors ``*_vcores``.
* A resource is a vector and is compared component by component: a container fits only if every component
  does.
"""

from __future__ import annotations

from itertools import zip_longest
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Self


class Resources(tuple[int, ...]):
    """A vector of memory (MiB), virtual cores and the cluster's other countable types, as YARN's Resource.

    The others (GPUs, ...) have no name here: their order is that in which the cluster was observed to have
    them. A missing component is 0, and no vector ends in a 0 of these, so equal vectors compare equal.
    """

    __slots__ = ()

    def __new__(cls, memory_mib: int, vcores: int, *others: int) -> Self:
        """Return the vector in its shortest form."""
        while others and not others[-1]:
            others = others[:-1]
        return _NEW(cls, (memory_mib, vcores, *others))

    def __getnewargs__(self) -> tuple[int, ...]:
        """Return the components, for copies."""
        return tuple(self)

    def __repr__(self) -> str:
        """Return the vector as it is made."""
        return f"Resources{tuple(self)}"

    if TYPE_CHECKING:

        @property
        def memory_mib(self) -> int:
            """The first component."""

        @property
        def vcores(self) -> int:
            """The second component."""

    else:  # read for each container: without a frame of Python, three times as fast
        memory_mib = property(itemgetter(0), doc="The first component.")
        vcores = property(itemgetter(1), doc="The second component.")


_NEW = tuple.__new__

NOTHING = Resources(0, 0)  # The empty vector

VCORES_A_MIB = 1 << 20
"""The vcores of each MiB of a capacity, if the scheduler counts memory alone: they limit nothing."""


def by_memory(capacity_resources: Resources) -> Resources:
    """Return a capacity whose vcores limit nothing."""
    memory_mib = capacity_resources[0]
    return Resources(memory_mib, memory_mib * VCORES_A_MIB, *capacity_resources[2:])


def is_by_memory(capacity_resources: Resources) -> bool:
    """Return whether the vcores of a capacity limit nothing."""
    return 0 < capacity_resources[0] * VCORES_A_MIB <= capacity_resources[1]


def decode_vector(kind: type, value: object) -> object:
    """Return a resource vector of its components; raises TypeError, which msgspec turns into its own."""
    if kind is not Resources or not isinstance(value, list) or len(value) < 2:
        raise TypeError("a resource vector has at least two components")
    if any(type(part) is not int for part in value):
        raise TypeError("the components of a resource vector are whole numbers")
    return Resources(*value)


def plus(left: Resources, right: Resources) -> Resources:
    """Return the sum, component by component."""
    if len(left) == 2 == len(right):
        return _NEW(Resources, (left[0] + right[0], left[1] + right[1]))
    return Resources(*[one + other for one, other in zip_longest(left, right, fillvalue=0)])


def minus(left: Resources, right: Resources) -> Resources:
    """Return the difference, component by component (it may be negative)."""
    if len(left) == 2 == len(right):
        return _NEW(Resources, (left[0] - right[0], left[1] - right[1]))
    return Resources(*[one - other for one, other in zip_longest(left, right, fillvalue=0)])


def times(size: Resources, count: int) -> Resources:
    """Return ``count`` times ``size``."""
    if len(size) == 2:
        return _NEW(Resources, (size[0] * count, size[1] * count))
    return Resources(*[part * count for part in size])


def at_least(left: Resources, right: Resources) -> Resources:
    """Return the larger value of each component."""
    if len(left) == 2 == len(right):
        return _NEW(Resources, (max(left[0], right[0]), max(left[1], right[1])))
    return Resources(*map(max, zip_longest(left, right, fillvalue=0)))


def at_most(left: Resources, right: Resources) -> Resources:
    """Return the smaller value of each component."""
    if len(left) == 2 == len(right):
        return _NEW(Resources, (min(left[0], right[0]), min(left[1], right[1])))
    return Resources(*map(min, zip_longest(left, right, fillvalue=0)))


def fits(size: Resources, free: Resources) -> bool:
    """Return whether ``size`` fits into ``free`` in every component."""
    if len(size) == 2 == len(free):
        return size[0] <= free[0] and size[1] <= free[1]
    return all(part <= whole for part, whole in zip_longest(size, free, fillvalue=0))


def dominant(used: Resources, total: Resources) -> int:
    """Return the dominant share of ``used`` in ``total`` as an exact integer key.

    The shares are memory/total memory and vcores/total vcores; multiplied by both totals they stay integers,
    so that equal shares compare equal on every machine (Hadoop's DominantResourceCalculator does the same in
    floats). Those of other types are multiplied alike and cut off. Only keys made with the same ``total`` may
    be compared.
    """
    key = max(used[0] * total[1], used[1] * total[0])
    if len(used) == 2:
        return key
    others = zip(used[2:], total[2:], strict=False)
    return max([key, *(part * total[0] * total[1] // whole for part, whole in others if whole > 0)])


def shares(size: Resources, total: Resources) -> tuple[int, ...]:
    """Return the shares of ``size`` in ``total``, the largest first, as exact integers in a common unit.

    Compared as tuples they are in the order of Hadoop's DominantResourceCalculator; where the vcores of the
    total limit nothing, in that of the DefaultResourceCalculator. Only those made with the same ``total`` may
    be compared.
    """
    if is_by_memory(total):
        return (size[0],)
    if len(size) == 2 == len(total):
        first, second = size[0] * total[1], size[1] * total[0]
        return (first, second) if first >= second else (second, first)
    whole = prod(part for part in total if part > 0)
    pairs = zip_longest(size, total, fillvalue=0)
    return tuple(sorted((part * (whole // each) if each > 0 else 0 for part, each in pairs), reverse=True))
