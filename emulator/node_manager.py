"""The NodeManager: a node's room, its heartbeat, and the containers whose processes are gone.

Law: a node tells the ResourceManager what ended only on its heartbeat, at ``phase + k x
interval``. Heartbeats that would tell nothing and offer nothing are not simulated; the host
asks ``next_beat_ms`` for those that matter.
"""

from __future__ import annotations

from emulator.task import Container


class Node:
    """One node. ``free_mib`` and ``free_vcores`` are the scheduler's view of its room.

    ``dead``: it has died; the ResourceManager learns it when the node expires, and it is ``lost``.
    ``live`` are the scheduler's containers, those of all nodes, once the node is registered.
    """

    __slots__ = (
        "beat_at_ms",
        "dead",
        "exited",
        "free_mib",
        "free_vcores",
        "index",
        "live",
        "lost",
        "name",
        "open",
        "phase_ms",
        "reserved",
        "silent_until_ms",
        "slow_ratio",
        "total_mib",
        "total_vcores",
        "watched",
    )

    def __init__(self, index: int, total_mib: int, total_vcores: int, phase_ms: int) -> None:
        self.index = index
        self.name = f"node{index:05d}:8041"
        self.total_mib = total_mib
        self.total_vcores = total_vcores
        self.free_mib = total_mib
        self.free_vcores = total_vcores
        self.phase_ms = phase_ms
        self.beat_at_ms = -1
        self.open = False
        self.dead = False
        self.lost = False
        self.silent_until_ms = 0
        self.slow_ratio = 1.0
        self.watched = False
        self.reserved: object | None = None
        self.exited: tuple[Container, ...] = ()
        self.live: dict[int, Container] = {}

    @property
    def containers(self) -> dict[int, Container]:
        """The containers that hold room here, by number and in the order of their grants.

        Looked up when asked for: a table for each node would cost every task what few ever ask.
        """
        return {number: container for number, container in self.live.items() if container.node is self}

    def next_beat_ms(self, from_ms: int, interval_ms: int) -> int:
        """Return the first heartbeat at or after ``from_ms``; a silent node skips some."""
        from_ms = max(from_ms, self.silent_until_ms)
        return from_ms + (self.phase_ms - from_ms) % interval_ms

    def take_exited(self, now_ms: int) -> tuple[Container, ...]:
        """Hand over the containers whose processes are gone by ``now_ms``, in order of ending."""
        exited = self.exited
        self.exited = tuple([container for container in exited if container.exit_at_ms > now_ms])
        return tuple([container for container in exited if container.exit_at_ms <= now_ms])
