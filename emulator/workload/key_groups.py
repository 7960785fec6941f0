"""How many key groups a reduce has, when only its running time is known.

Law: one rule for every source. The paper's generator spends 8 ms on a key; we group ten of
them, so that a reduce can be suspended every 80 ms while a day's trace stays small.
"""

from __future__ import annotations

from collections.abc import Iterable

KEY_GROUP_MS = 80
"""Time a reduce spends on one key group (ten of the generator's 8 ms keys)."""


def key_groups(reduce_ms: Iterable[int], key_group_ms: int = KEY_GROUP_MS) -> tuple[int, ...]:
    """Return the number of key groups of each reduce, at least 1 (same length as ``reduce_ms``)."""
    return tuple(max(1, length_ms // key_group_ms) for length_ms in reduce_ms)
