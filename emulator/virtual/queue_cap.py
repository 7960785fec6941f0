"""Victims' queues held back in virtual time, as ``--hold-queue`` does on a cluster.

Law: when to hold is the deciding half's (``yarnctl/deciding/queue_hold.py``); here the emulated scheduler's
configuration is changed, and put back. Both are in the journal first.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from emulator.cluster.cluster import Cluster
from yarnctl.deciding.model import Accepted
from yarnctl.deciding.queue_hold import OVER, QueueHold, QueueLimits, action_of, hold, put_back
from yarnctl.deciding.records import Holding, Record, performed


class VirtualHold:
    """Holds the queues ``victims`` of a cluster while asks are being served."""

    def __init__(self, cluster: Cluster, victims: tuple[str, ...]) -> None:
        self._cluster = cluster
        self._victims = victims
        self._when = QueueHold()
        self.held: dict[str, Holding] = {}

    def follow(self, write: Callable[[tuple[Record, ...]], None], orders: int, waiting: bool) -> None:
        """After a tick: hold, or put back; ``orders`` are open, ``waiting``: somebody hurried waits."""
        now_ms = self._cluster.kernel.now_ms
        if not self._when.wanted(now_ms, orders, waiting):
            for record in put_back(self.held, now_ms, OVER):
                self._do(write, record)
            self.held.clear()
        elif not self.held:
            for name in self._victims:
                config = self._cluster.rm.scheduler.queues[name].config
                found = hold(name, QueueLimits(config.capacity_ratio, config.maximum_ratio), now_ms)
                if found is not None:
                    self.held[name] = found
                    self._do(write, found)

    def _do(self, write: Callable[[tuple[Record, ...]], None], record: Holding) -> None:
        write((record,))
        rm = self._cluster.rm
        queue = rm.scheduler.queues[record.queue]
        queue.config = msgspec.structs.replace(queue.config, maximum_ratio=record.ratio)
        rm.scheduler.resize(*rm.total)
        self._cluster.sweep.begin()
        write((performed(record.at_ms, action_of(record), Accepted()),))
