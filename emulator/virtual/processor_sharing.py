"""Launches that share a machine's cores: egalitarian processor sharing, exact in whole milliseconds.

Law: n launches at one moment are served at the same speed, and a machine's cores are all it has to give:
each gets min(width, cores / n) ms of CPU per ms (Kleinrock, "Time-shared systems: a theoretical treatment",
Journal of the ACM 14(2), 1967). Since all are served alike, one sum tells what each has been given: a
launch is done when the sum has grown by its demand since it came.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from emulator.cluster.kernel import Kernel

Launch = TypeVar("Launch")

UNIT = 1 << 40
"""Parts of a millisecond in which service is counted; sharing them out loses less than one a change."""

SLACK = 1 << 20
"""So few parts, a millionth of a millisecond, are what rounding has lost: whoever lacks them is done."""


class LaunchCrowd(Generic[Launch]):
    """The launches in progress on one machine of ``cores``, of which one can use ``width`` at most."""

    def __init__(self, kernel: Kernel, cores: int, width: int) -> None:
        self._kernel = kernel
        self._cores = cores
        self._width = width
        self._served = 0
        self._since_ms = 0
        self._turn = 0
        self._joined = 0
        self._waiting: list[tuple[int, int, Launch, Callable[[Launch], object]]] = []
        self._done: list[tuple[int, int, Launch, Callable[[Launch], object]]] = []

    def __len__(self) -> int:
        """Return how many launches are in progress."""
        return len(self._waiting) + len(self._done)

    def join(self, launch: Launch, cpu_ms: int, up: Callable[[Launch], object]) -> None:
        """Begin a launch that needs ``cpu_ms`` of CPU; ``up(launch)`` is called when it has had them."""
        self._serve()
        self._joined += 1
        heappush(self._waiting, (self._served + cpu_ms * UNIT, self._joined, launch, up))
        self._plan()

    def leave(self, launch: Launch) -> None:
        """A process that was being launched is gone: its share is the others' from now on."""
        self._serve()
        self._waiting = [each for each in self._waiting if each[2] != launch]
        self._done = [each for each in self._done if each[2] != launch]
        heapify(self._waiting)
        self._plan()

    def _serve(self) -> None:
        """Count what each has been given since the last change: whoever was done on the way left it then."""
        left = (self._kernel.now_ms - self._since_ms) * UNIT
        self._since_ms = self._kernel.now_ms
        waiting = self._waiting
        while waiting:
            given, among = self._speed()
            short = waiting[0][0] - self._served
            takes = -(-short * among // given)
            if takes > left + SLACK:
                self._served += left * given // among
                return
            left = max(0, left - takes)
            self._served += short
            self._done.append(heappop(waiting))

    def _speed(self) -> tuple[int, int]:
        """Return what each launch is given in a millisecond, as a fraction: so many ms among so many."""
        crowd = len(self._waiting)
        return (self._width, 1) if self._width * crowd < self._cores else (self._cores, crowd)

    def _plan(self) -> None:
        """Look again in the millisecond in which the next launch is done; an earlier plan is void."""
        self._turn += 1
        span_ms = 0
        if not self._done:
            if not self._waiting:
                return
            given, among = self._speed()
            takes = -(-(self._waiting[0][0] - self._served) * among // given)
            span_ms = -(-max(0, takes - SLACK) // UNIT)
        self._kernel.at(self._kernel.now_ms + span_ms, self._look, self._turn)

    def _look(self, turn: int) -> None:
        if turn == self._turn:
            self._serve()
            done, self._done = self._done, []
            self._plan()
            for _, _, launch, up in done:
                up(launch)
