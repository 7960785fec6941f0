"""The task attempt: one container and the timetable of what runs in it.

Law: pure arithmetic on integers. A container knows when its keys begin and how long they take;
everything else (how many keys are done now, how much remains, when the current key ends) is
derived, so that time never has to be counted down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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


class Container:
    """A granted container, and the attempt that runs in it.

    ``work_at_ms`` is when the attempt begins with new keys (after launch, shuffle, skip and
    replay), ``finish_at_ms`` when it is done, commit included; NEVER while that is unknown.
    ``from_key`` is the key the timetable starts at, ``log_from_key`` the first key this attempt
    has not saved yet, ``to_key`` where a suspend stops it; ``length_ms`` the time all keys of its
    task take on this node (longer on a slow one).
    """

    # Fields that most containers never touch stand here: an instance holds only what was set.
    state = GRANTED
    kind = MAP
    task = -1
    attempt = 0
    launched_at_ms = NEVER
    work_at_ms = NEVER
    finish_at_ms = NEVER
    exit_at_ms = NEVER
    released_at_ms = NEVER
    length_ms = 0
    from_key = 0
    log_from_key = 0
    to_key = 0
    resumed = False
    order = ""
    stage = NOT_ASKED
    hold_token = 0
    ending = ""

    def __init__(
        self,
        number: int,
        app: Application,
        node: Node,
        memory_mib: int,
        vcores: int,
        priority: int,
        granted_at_ms: int,
    ) -> None:
        self.number = number
        self.app = app
        self.node = node
        self.memory_mib = memory_mib
        self.vcores = vcores
        self.priority = priority
        self.granted_at_ms = granted_at_ms


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
    position_ms = key_end_ms(container.from_key, keys, length_ms) + worked_ms
    done = (position_ms * keys) // length_ms if length_ms else keys
    # The division above may be one short at a border: key k is done once position >= its end.
    if done < keys and key_end_ms(done + 1, keys, length_ms) <= position_ms:
        done += 1
    return min(done, keys)


def remaining_ms(container: Container, now_ms: int, keys: int) -> int:
    """Return the work that remains at ``now_ms``: own keys only, no launch, shuffle or commit."""
    length_ms = container.length_ms
    whole_ms = length_ms - key_end_ms(container.from_key, keys, length_ms)
    return whole_ms - max(0, min(whole_ms, now_ms - container.work_at_ms))
