"""The task attempt: one container and the timetable of what runs in it.

Law: pure arithmetic on integers. A container knows when its keys begin and how long they take;
everything else (how many keys are done now, how much remains, when the current key ends) is
derived, so that time never has to be counted down.
"""

from __future__ import annotations

from emulator.cluster.entities import Container


def key_end_ms(key: int, keys: int, length_ms: int) -> int:
    """Return when key number ``key`` (1-based count of keys done) ends, from the reduce's own zero.

    The ``length_ms`` of a reduce is spread evenly over its ``keys``; rounding never drifts
    because each border is computed from zero.
    """
    return key * length_ms // keys


def keys_done(container: Container, now_ms: int, keys: int) -> int:
    """Return how many keys of the reduce are done at ``now_ms`` (those before ``from_key`` included)."""
    length_ms = container.length_ms
    worked_ms = now_ms - container.work_at_ms
    if worked_ms <= 0:
        return container.from_key
    if not length_ms:
        return keys
    position_ms = container.from_key * length_ms // keys + worked_ms
    # The largest k whose end, k * length // keys, is not after the position (exact, also where many
    # keys end within one millisecond).
    done = ((position_ms + 1) * keys - 1) // length_ms
    return done if done < keys else keys


def remaining_ms(container: Container, now_ms: int, keys: int) -> int:
    """Return the work that remains at ``now_ms``: own keys only, no launch, shuffle or commit."""
    length_ms = container.length_ms
    whole_ms = length_ms - container.from_key * length_ms // keys
    worked_ms = now_ms - container.work_at_ms
    if worked_ms <= 0:
        return whole_ms
    return whole_ms - worked_ms if worked_ms < whole_ms else 0
