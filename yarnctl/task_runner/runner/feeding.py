"""Feeding: how far the child is fed ahead of what it has done, and how far Java has written.

Law: every byte that was read goes to the child once, in order.
"""

from __future__ import annotations

import math

from yarnctl.task_runner.runner.child import PIPE_ATOMIC_BYTES, SLICE_FAST_BYTES
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule

READ_AHEAD_BYTES = 1 << 20
JAVA_BUFFER_BYTES = 1 << 17  # streaming's PipeMapRed.BUFFER_SIZE
SLICE_MIN_BYTES = 64
SLICE_LEAST_BYTES = 16
SLICE_QUICK_S = 0.05
SLICE_SLOW_S = 0.12
SLICE_GOAL_S = 0.1
SPEED_MEMORY_S = 4.0
NAP_MIN_S = 0.0001
NAP_MAX_S = 0.02


class Sender:
    r"""How far Java must have got before its last flush, by what it has written so far.

    Java writes a line as key, separator, value and ``\n`` into a buffer; a piece that does not fit any
    more has the buffer flushed first, one as large as the buffer goes out alone. ``sent_bytes`` is where
    the buffer's content begins: all before it was written while reduce() ran. A long key is taken for a
    value. ``pipe_bytes`` is what Java's own pipe held at our start, -1 where it is no pipe.
    """

    def __init__(self, rule: KeyRule, pipe_bytes: int) -> None:
        self.pipe_bytes = pipe_bytes
        self.sent_bytes = 0
        self.seen_bytes = 0
        same = rule.fields == rule.key_fields
        self._rule = rule if same else KeyRule(rule.key_fields, rule.map_separator, rule.reduce_separator)
        self._line = b""  # what was seen of a line that has no end yet
        self._in_piece = False  # inside one that is larger than the buffer

    def take(self, data: bytes) -> None:
        """Learn what was read from Java; costs nothing but at the borders of its buffer."""
        base = self.seen_bytes
        self.seen_bytes += len(data)
        if self._in_piece:
            self._end_of_piece(data, base)
        while not self._in_piece and self.seen_bytes > self.sent_bytes + JAVA_BUFFER_BYTES:
            self._flush(data, base)
        start = data.rfind(b"\n") + 1
        line = data[start:] if start else self._line + data
        self._line = b"" if self._in_piece else line

    def within(self, position_bytes: int) -> bool:
        """Say whether Java could have written so far without us to a reducer that read up to here.

        The kernel frees a pipe by whole pages.
        """
        if self.pipe_bytes < 0:
            return True
        return self.sent_bytes <= position_bytes - position_bytes % PIPE_ATOMIC_BYTES + self.pipe_bytes

    def _flush(self, data: bytes, base: int) -> None:
        """Put ``sent_bytes`` at the last border between pieces that the full buffer reaches."""
        full = self.sent_bytes + JAVA_BUFFER_BYTES - base  # the first byte that does not fit
        start = data.rfind(b"\n", 0, full) + 1
        line = (b"" if start else self._line) + data[start : full + 1]
        at = base + full + 1 - len(line)
        key = self._rule.key_of_start(line)
        borders = [at] if key is None else [at, at + len(key), at + len(key) + 1]
        if line.endswith(b"\n"):
            borders.append(base + full)
        border = max(each for each in borders if each <= base + full)
        if border > self.sent_bytes:
            self.sent_bytes = border
        else:
            self._in_piece = True
            self._end_of_piece(data, base)

    def _end_of_piece(self, data: bytes, base: int) -> None:
        end = data.find(b"\n", max(0, self.sent_bytes - base))
        self._in_piece = end < 0
        self.sent_bytes = self.seen_bytes if end < 0 else base + end


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
