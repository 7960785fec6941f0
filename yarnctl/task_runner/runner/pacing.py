"""Pacing: how large the slices are in which a child is fed, by the time that it takes for them.

Law: nothing is read or written here and no clock is asked: what is learned is given as arguments.
"""

from __future__ import annotations

import math

SLICE_MIN_BYTES = 64
SLICE_LEAST_BYTES = 16
SLICE_FAST_BYTES = 1 << 16
SLICE_QUICK_S = 0.05
SLICE_SLOW_S = 0.12
SLICE_GOAL_S = 0.1
SPEED_MEMORY_S = 4.0
NAP_MIN_S = 0.0001
NAP_MAX_S = 0.02


class Pacer:
    """Bounds by time how far the child is fed ahead of what it has done.

    Two slices are out at once: one in the child's own buffer, one waiting in the pipe. The time a
    waiting slice lies unread is the time the child needs for the one before; slices grow while that is
    short and shrink when it is long. A child that waits for a full buffer takes many slices in no time
    and then none for long: so a slice is also no more than the child does in a tenth of a second by its
    mean speed of late. A child that takes a full pipe in no time is fed without any waiting.
    """

    def __init__(self) -> None:
        self.slice_bytes = SLICE_MIN_BYTES
        self.fast = False
        self.waiting_since_s = 0.0
        self.nap_s = NAP_MIN_S
        self.late_bytes = 0.0
        self.late_s = 0.0

    def taken(self, size_bytes: int, waited_s: float) -> None:
        """Learn from a slice that was taken after lying unread for a while."""
        kept = math.exp(-waited_s / SPEED_MEMORY_S)
        self.late_bytes = self.late_bytes * kept + size_bytes
        self.late_s = self.late_s * kept + waited_s
        if waited_s < SLICE_QUICK_S:
            if size_bytes >= self.slice_bytes // 2:
                self.slice_bytes = min(self.slice_bytes * 5 // 4 + 1, SLICE_FAST_BYTES)
        elif waited_s > SLICE_SLOW_S:
            self.slice_bytes = int(size_bytes * SLICE_GOAL_S / waited_s)
        mean_bytes = self.late_bytes * SLICE_GOAL_S / max(self.late_s, 1e-6)
        self.slice_bytes = max(SLICE_LEAST_BYTES, int(min(self.slice_bytes, mean_bytes)))
        self.fast = self.slice_bytes >= SLICE_FAST_BYTES

    def stalled(self, taken_bytes: int, waited_s: float) -> None:
        """Learn that a child fed at full speed let a full pipe lie for a while."""
        if waited_s > SLICE_SLOW_S:
            self.fast = False
            self.late_bytes, self.late_s = float(taken_bytes), waited_s
            share = SLICE_GOAL_S / waited_s
            self.slice_bytes = max(SLICE_MIN_BYTES, min(int(taken_bytes * share), SLICE_FAST_BYTES // 2))

    def napped(self, left_bytes: int, pipe_bytes: int) -> None:
        """Learn from what was left in the pipe after a nap: about half is right."""
        if left_bytes > pipe_bytes * 5 // 8:
            self.nap_s = min(self.nap_s * 1.5, NAP_MAX_S)
        elif left_bytes < pipe_bytes * 3 // 8:
            self.nap_s = max(self.nap_s / 2, NAP_MIN_S)
