"""The task's input: read from Java into a buffer, and how far Java must have written.

Law: every byte that was read is given once, in order; after a skip that was of no use the skipped bytes
come again before the rest.
"""

from __future__ import annotations

import os
import select
from typing import Iterator

from yarnctl.task_runner.runner.child import BLOCK_BYTES, PIPE_ATOMIC_BYTES, Wakeup
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule
from yarnctl.task_runner.runner.protocol.stores import Spool

JAVA_BUFFER_BYTES = 1 << 17  # streaming's PipeMapRed.BUFFER_SIZE


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
        """Count what was read from Java; this takes no time but at the borders of its buffer."""
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
        """Say whether Java could have written so far to a reducer without a runner that read up to here.

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


class TaskInput:
    """What was read from Java and not yet taken: ``buffer`` from ``at`` on."""

    def __init__(self, sender: Sender, wakeup: Wakeup) -> None:
        self.sender = sender
        self.buffer = b""
        self.at = 0
        self.ended = False
        self.read_bytes = 0
        self._wakeup = wakeup
        self._again: Iterator[bytes] = iter(())

    @property
    def is_taken(self) -> bool:
        """Say whether all that was read was taken."""
        return self.at == len(self.buffer)

    def fill(self, wait_s: float | None) -> bool:
        """Read input if there is some, into the buffer; return whether anything changed."""
        piece = next(self._again, None)
        if piece is not None:
            self._append(piece)
            return True
        if self.ended or not self._wakeup.wait(0, select.POLLIN, wait_s):
            return False
        data = os.read(0, BLOCK_BYTES)
        self.read_bytes += len(data)
        self.ended = not data
        self.sender.take(data)
        self._append(data)
        return True

    def drop(self) -> None:
        """Drop what was read and not taken."""
        self.at = len(self.buffer)

    def begin_again(self, skipped: Spool) -> None:
        """Have the skipped input come again before the rest."""
        rest, self.buffer, self.at = self.buffer[self.at :], b"", 0
        self.ended = False  # if it was the end, the end will be read once more

        def again() -> Iterator[bytes]:
            yield from skipped.pieces()
            skipped.clear()
            if rest:
                yield rest

        self._again = again()

    def _append(self, data: bytes) -> None:
        self.buffer = self.buffer[self.at :] + data if self.at < len(self.buffer) else data
        self.at = 0
