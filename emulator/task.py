"""The task attempt: one container and the timetable of what runs in it.

Law: pure arithmetic on integers. A container knows when its keys begin and how long they take;
everything else (how many keys are done now, how much remains, when the current key ends) is
derived, so that time never has to be counted down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from emulator.node_manager import Node
    from emulator.resource_manager import Application

AM, MAP, REDUCE = 0, 1, 2
KIND_NAMES = ("am", "map", "reduce")

GRANTED, RUNNING, ENDED, RELEASED = 0, 1, 2, 3
"""Granted: the AM has not launched it. Ended: the process is gone. Released: the RM knows."""

NOT_ASKED, ASKED, DRAINING, HOLDING = 0, 1, 2, 3
"""How far a suspend has come in this container."""

NEVER = 1 << 62
"""An instant that does not come: the phase has no end yet."""


class Container(msgspec.Struct, eq=False):
    """A granted container, and the attempt that runs in it.

    ``work_at_ms`` is when the attempt begins with new keys (after launch, shuffle, skip and
    replay), ``finish_at_ms`` when it is done, commit included; NEVER while that is unknown.
    ``from_key`` is the key the timetable starts at, ``log_from_key`` the first key this attempt
    has not saved yet, ``to_key`` where a suspend stops it; ``length_ms`` the time all keys of its
    task take on this node (longer on a slow one).
    """

    number: int
    app: Application
    node: Node
    memory_mib: int
    vcores: int
    priority: int
    granted_at_ms: int
    kind: int = MAP
    state: int = GRANTED
    task: int = -1
    attempt: int = 0
    length_ms: int = 0
    from_key: int = 0
    log_from_key: int = 0
    to_key: int = 0
    launched_at_ms: int = NEVER
    work_at_ms: int = NEVER
    finish_at_ms: int = NEVER
    exit_at_ms: int = NEVER
    released_at_ms: int = NEVER
    resumed: bool = False
    order: str = ""
    ending: str = ""
    stage: int = NOT_ASKED
    hold_token: int = 0


# A struct is made in half the time of a class. Its own way of setting a field looks each time for the first
# value that garbage collection must know of; a container has one from the start (its application), so that
# plain setting, three times as fast, does the same. All of it runs once for every task.
Container.__setattr__ = object.__setattr__  # type: ignore[method-assign]
Container.__delattr__ = object.__delattr__  # type: ignore[method-assign]


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
