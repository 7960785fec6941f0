"""The attempt: what its parts share, whether it can still be suspended, and the status lines that report it.

Only the main thread changes what is kept here; the watcher adds requests and withdrawals. A task whose child
works is kept alive only while input or output moves. Of its input every byte is given once, in order; after a
skip that was of no use the skipped bytes come again before the rest.
"""

from __future__ import annotations

import collections
import os
import select
import time
from typing import Iterator, Sequence

from yarnctl.task_runner.runner.child import (
    BLOCK_BYTES,
    PIPE_ATOMIC_BYTES,
    Child,
    Wakeup,
    pipe_capacity,
    waiting_bytes,
)
from yarnctl.task_runner.runner.protocol.job_conf import Settings
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule, Scanner
from yarnctl.task_runner.runner.protocol.manifests import Counters, Manifest, Request, TaskId, printable
from yarnctl.task_runner.runner.protocol.stores import InvalidCheckpoint, Spool, Store
from yarnctl.task_runner.runner.reports import Errors

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
        self._line = b""  # what was read of a line that has no end yet
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
        """Say whether Java could have written so far without a runner that read whole pages up to here."""
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

    def begin_again(self, spool: Spool) -> None:
        """Have the skipped input come again before the rest."""
        rest, self.buffer, self.at = self.buffer[self.at :], b"", 0
        self.ended = False  # if it was the end, the end will be read once more

        def again() -> Iterator[bytes]:
            yield from spool.pieces()
            spool.clear()
            if rest:
                yield rest

        self._again = again()

    def _append(self, data: bytes) -> None:
        self.buffer = self.buffer[self.at :] + data if self.at < len(self.buffer) else data
        self.at = 0


STATUS_EVERY_S = 2.0


class AttemptState:
    """What an attempt works with, and its state.

    ``phase`` is one of ``fetch``, ``skip``, ``replay``, ``run``, ``finish`` (a group), ``drain``, ``save``,
    ``hold``, ``end``; ``why_not`` is why it cannot be suspended any more, empty while it can.
    """

    def __init__(
        self, settings: Settings, task: TaskId, words: Sequence[str], store: Store, errors: Errors
    ) -> None:
        self.settings = settings
        self.task = task
        self.words = printable(words)  # as given: the program's path differs between nodes
        self.store = store
        self.errors = errors
        self.wakeup = Wakeup()
        self.lines = StatusLines(self)
        self.scanner = Scanner(settings.rule)
        self.input = TaskInput(Sender(settings.rule, pipe_capacity(0)), self.wakeup)
        self.output = Spool(settings.spool_limit_bytes)
        self.phase = "start"
        self.why_not = ""
        self.child: Child | None = None
        self.manifest: Manifest | None = None  # the generation that is valid now
        self.highest_generation = 0
        self.reducer_state: bytes | None = None  # what --save gave at the border where the child begins
        self.past_counters: Counters = {}
        self.requests: collections.deque[Request] = collections.deque()  # they wait for the main thread
        self.withdrawn: set[str] = set()  # names of orders; both are added to by the watcher
        self.holders: dict[str, float] = {}  # orders that hold, and until when
        self.resumed = False
        self.back_ms = -1
        self.bell = ""  # where a datagram wakes the watcher, empty: nowhere

    @property
    def generation(self) -> int:
        """Return the generation that is valid now, 0 if none."""
        return self.manifest.generation if self.manifest else 0

    def done_bytes(self) -> int:
        """Return how much input the child has read."""
        unread = waiting_bytes(self.child.input) if self.child and self.phase in ("run", "finish") else 0
        return self.scanner.bytes - unread

    # -- can it still be suspended? --------------------------------------------------------

    def account(self, data: bytes) -> None:
        """Count what the child was given, and check whether the attempt can still be suspended."""
        if self.why_not:
            self.scanner.bytes += len(data)
            return
        self.scanner.take(data)
        self.check_order()
        self.check_output()

    def check_order(self) -> None:
        """Refuse suspensions from the first key on that is out of order; nothing may rest on such groups."""
        if not self.scanner.sorted and not self.why_not:
            if self.resumed:
                raise InvalidCheckpoint(
                    "keys are not sorted by bytes, but a checkpoint depends on their order"
                )
            self.cannot("keys are not sorted by bytes")

    def check_output(self) -> bool:
        """Say whether the output is kept; without it the attempt cannot be suspended."""
        if self.output.failed:
            self.cannot(f"the output cannot be stored: {self.output.failed}")
        return not self.output.failed

    def check_counters(self) -> None:
        """Refuse suspensions where it is not certain what Hadoop has counted."""
        if self.errors.doubt and not self.why_not:
            self.cannot(self.errors.doubt)

    def cannot(self, why: str) -> None:
        """Only pass bytes through from now on."""
        self.why_not = why
        self.lines.report_next()  # at once
        self.output.limit_bytes = -1  # the thread that reads the output drops what is kept
        self.errors.note(f"can no longer be suspended: {why}")


class StatusLines:
    """Reports to the application master how far the attempt is; each line replaces the one before."""

    def __init__(self, attempt: AttemptState) -> None:
        self._attempt = attempt
        self._errors = attempt.errors
        self._next_s = 0.0
        self._last_position = (-1, -1)

    @property
    def every_s(self) -> float:
        """Return how often the position is reported; YARN must not take the task for a hung one."""
        return min(STATUS_EVERY_S, self._attempt.settings.task_timeout_ms / 6000)

    def report(self, keep_alive: bool) -> None:
        """Report the position if it is time, and it has changed: a child that hangs must time out."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        position = (self._attempt.done_bytes(), self._attempt.output.bytes)
        if not keep_alive and position == self._last_position and not self._errors.news:
            return
        self._last_position = position
        self._next_s = now_s + self.every_s
        self.report_position()

    def keep_alive(self) -> None:
        """Keep the task alive while bytes go to or come from the store."""
        self.report(keep_alive=True)

    def report_next(self) -> None:
        """Have the next call of ``report`` write a line, whatever was reported before."""
        self._next_s, self._last_position = 0.0, (-1, -1)

    def enter(self, phase: str, more: str = "") -> None:
        """Begin a phase and report it."""
        attempt = self._attempt
        attempt.phase = phase
        self._errors.status(
            f"phase={phase} groups={attempt.scanner.groups} gen={attempt.generation}{more}"
            f"{' can=0' if attempt.why_not else ''}{self._reason()}"
        )
        self._next_s = time.monotonic() + self.every_s

    def report_position(self) -> None:
        """Write the position: groups, bytes done by the child, bytes known of, whether that is all."""
        attempt, task_input = self._attempt, self._attempt.input
        known = task_input.read_bytes + (0 if task_input.ended else waiting_bytes(0))
        self._errors.status(
            f"phase={attempt.phase} groups={attempt.scanner.groups} done={attempt.done_bytes()} known={known}"
            f" all={int(task_input.ended)} gen={attempt.generation} can={int(not attempt.why_not)}"
            f"{self._speed()}{self.came_back()}{self.for_bell()}{self.for_order()}{self._reason()}"
        )

    def report_waiting(self, why: str) -> None:
        """Report that the attempt waits for its store."""
        self._errors.status(f"phase=fetch groups=0 gen={self._attempt.generation} waits for its store: {why}")

    def came_back(self) -> str:
        """Return how long a resumed attempt took until it was at new keys."""
        return f" back={self._attempt.back_ms}" if self._attempt.back_ms >= 0 else ""

    def for_bell(self) -> str:
        """Return where a datagram wakes this attempt."""
        return f" bell={self._attempt.bell}" if self._attempt.bell else ""

    def for_order(self) -> str:
        """Return which order holds: of several the last that came."""
        return f" order={list(self._attempt.holders)[-1]}" if self._attempt.holders else ""

    def _speed(self) -> str:
        """Return how long the child has worked and from which byte on: its speed follows from that."""
        child = self._attempt.child
        if child is None or self._attempt.phase not in ("run", "finish"):
            return ""
        ran_ms = int((time.monotonic() - child.began_s) * 1000)
        return f" ran={ran_ms} base={child.begins_at}"

    def _reason(self) -> str:
        """Return why this attempt cannot be suspended any more, to the end of the runner's words."""
        return f" why={self._attempt.why_not}" if self._attempt.why_not else ""
