"""Queues: a victim queue's configured share and maximum, as the ResourceManager has them now.

Law: reading only, and never raising for a fault of the cluster; what cannot be known is answered by the
reason.
"""

from __future__ import annotations

from yarnctl.attach.connection.connection import Connection
from yarnctl.deciding.queue_hold import QueueLimits
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.resource_manager import same_queue


class Queues:
    """Reads queues' settings."""

    def __init__(self, link: Connection) -> None:
        self._link = link

    def limits(self, queue: str) -> tuple[str, QueueLimits] | str:
        """Return a victim queue's path and configured limits, or why they cannot be known or changed."""
        leaf = next((one for one in self._link.leaves if same_queue(one.path, queue)), None)
        if leaf is None:
            return f"there is no leaf queue {queue}"
        try:
            return leaf.path, QueueLimits(*self._link.manager.queue_share(leaf.path))
        except YarnctlError as problem:
            return str(problem)

    def maximum(self, path: str) -> float | str | None:
        """Return a queue's configured maximum, None if there is no such queue, or why it cannot be known."""
        try:
            return self._link.manager.queue_maximum(path)
        except YarnctlError as problem:
            return str(problem)
