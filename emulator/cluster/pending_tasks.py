"""The tasks of one job that have no container yet, by request priority.

Law: every task that is added has its ask, so that none waits without one. Asks follow Hadoop's
RMContainerAllocator: maps first (20, a failed one 5), reduces at 10, a resuming one at
``resume_priority``. While a map must run again, reduces that have ended are deferred.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable

from emulator.cluster.entities import NEVER

FAILED_MAP, REDUCE_PRIORITY, MAP_PRIORITY = 5, 10, 20


class PendingTasks:
    """``unassigned`` by priority; ``deferred`` reduces wait until no map does; ``saved`` ones resume."""

    def __init__(
        self, ask: Callable[[int, int], object], resume_priority: int, saved: Container[int]
    ) -> None:
        self._ask = ask
        self._resume_priority = resume_priority
        self.saved = saved
        self.unassigned: dict[int, deque[int]] = {}
        self.deferred: list[int] = []
        self.map_attempts: dict[int, int] = {}
        self.map_wait_since_ms = NEVER

    def begin(self, maps: list[int]) -> None:
        """Ask for the maps that are not done; nothing else waits."""
        self.unassigned = {MAP_PRIORITY: deque(maps), FAILED_MAP: deque(), REDUCE_PRIORITY: deque()}
        self.unassigned.setdefault(self._resume_priority, deque())
        if maps:
            self._ask(MAP_PRIORITY, len(maps))

    def add_reduces(self, tasks: Iterable[int]) -> None:
        """Ask for these reduces, all at once."""
        unassigned, resume = self.unassigned, self._resume_priority
        for task in tasks:
            unassigned[resume if task in self.saved else REDUCE_PRIORITY].append(task)
        for priority in {REDUCE_PRIORITY: 0, resume: 0}:
            if unassigned[priority]:
                self._ask(priority, len(unassigned[priority]))

    def add_reduce(self, task: int) -> None:
        """Ask for a reduce whose attempt has ended."""
        priority = self._resume_priority if task in self.saved else REDUCE_PRIORITY
        self.unassigned[priority].append(task)
        self._ask(priority, 1)

    def add_map(self, task: int, now_ms: int) -> None:
        """Ask for a map that must run again."""
        self.map_attempts[task] = self.map_attempts.get(task, 0) + 1
        self.unassigned[FAILED_MAP].append(task)
        if self.map_wait_since_ms == NEVER:
            self.map_wait_since_ms = now_ms
        self._ask(FAILED_MAP, 1)

    def defer(self, task: int) -> bool:
        """Put an ended reduce off while a map must run again; return whether that is so."""
        if self.deferred or self.unassigned[FAILED_MAP]:
            self.deferred.append(task)
            return True
        return False

    def add_deferred(self) -> None:
        """Ask for the reduces that were deferred: no map must run again any more."""
        self.map_wait_since_ms = NEVER
        deferred, self.deferred = self.deferred, []
        for task in deferred:
            self.add_reduce(task)
