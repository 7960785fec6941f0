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

    __slots__ = (
        "app",
        "attempt",
        "ending",
        "exit_at_ms",
        "finish_at_ms",
        "from_key",
        "granted_at_ms",
        "hold_token",
        "kind",
        "launched_at_ms",
        "length_ms",
        "log_from_key",
        "memory_mib",
        "node",
        "number",
        "order",
        "priority",
        "released_at_ms",
        "resumed",
        "stage",
        "state",
        "task",
        "to_key",
        "vcores",
        "work_at_ms",
    )

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
        self.state = GRANTED
        self.kind = MAP
        self.task = -1
        self.attempt = self.length_ms = self.from_key = self.log_from_key = self.to_key = 0
        self.launched_at_ms = self.work_at_ms = self.finish_at_ms = NEVER
        self.exit_at_ms = self.released_at_ms = NEVER
        self.resumed = False
        self.order = self.ending = ""
        self.stage = NOT_ASKED
        self.hold_token = 0


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
    # The largest k whose end, k * length // keys, is not after the position (exact, also where many
    # keys end within one millisecond).
    return min(keys, ((position_ms + 1) * keys - 1) // length_ms) if length_ms else keys


def remaining_ms(container: Container, now_ms: int, keys: int) -> int:
    """Return the work that remains at ``now_ms``: own keys only, no launch, shuffle or commit."""
    length_ms = container.length_ms
    whole_ms = length_ms - key_end_ms(container.from_key, keys, length_ms)
    return whole_ms - max(0, min(whole_ms, now_ms - container.work_at_ms))
