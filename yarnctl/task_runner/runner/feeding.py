"""Feeding: the input is handed to the child, in slices as its speed allows or all at once up to a border.

Law: every byte goes to the child once, in order, and is accounted for. From the first key on that is out of
order nothing may rest on the groups that were counted.
"""

from __future__ import annotations

import os
import select
import time

from yarnctl.task_runner.runner.attempt import STATUS_EVERY_S, AttemptState, StatusLines
from yarnctl.task_runner.runner.child import (
    BLOCK_BYTES,
    PIPE_ATOMIC_BYTES,
    Child,
    narrow_pipe,
    unread_bytes,
    widen_pipe,
)
from yarnctl.task_runner.runner.child_life import ChildEnding
from yarnctl.task_runner.runner.pacing import SLICE_FAST_BYTES
from yarnctl.task_runner.runner.protocol.failures import Discredited

READ_AHEAD_BYTES = 1 << 20


class Accounting:
    """Counts what the child was given, and says when the attempt cannot be suspended any more."""

    def __init__(self, attempt: AttemptState, lines: StatusLines) -> None:
        self._attempt = attempt
        self._lines = lines

    def account(self, data: bytes) -> None:
        """Note what the child was given, and whether the attempt can still be suspended."""
        attempt = self._attempt
        if attempt.why_not:
            attempt.scanner.bytes += len(data)
            return
        attempt.scanner.take(data)
        self.check_order()
        self.check_output()

    def check_order(self) -> None:
        """Stop trusting keys that are not in order; nothing may rest on them."""
        if not self._attempt.scanner.sorted and not self._attempt.why_not:
            if self._attempt.resumed:
                raise Discredited("keys are not in the order of their bytes, and a checkpoint was relied on")
            self.cannot("keys are not in the order of their bytes")

    def check_output(self) -> bool:
        """Say whether the output is kept; without it the attempt cannot be suspended."""
        failed = self._attempt.output.failed
        if failed:
            self.cannot(f"the output cannot be kept: {failed}")
        return not failed

    def check_counters(self) -> None:
        """Refuse suspensions where it is not certain what Hadoop has counted."""
        if self._attempt.errors.doubt and not self._attempt.why_not:
            self.cannot(self._attempt.errors.doubt)

    def cannot(self, why: str) -> None:
        """From now on this attempt only passes bytes through."""
        self._attempt.why_not = why
        self._lines.tell_next()  # it is told at once
        self._attempt.output.limit_bytes = -1  # its reader lets go of what is held
        self._attempt.errors.note(f"cannot be suspended any more: {why}")


class Feeder:
    """Hands the input to the child."""

    def __init__(
        self, attempt: AttemptState, accounting: Accounting, ending: ChildEnding, lines: StatusLines
    ) -> None:
        self._attempt = attempt
        self._accounting = accounting
        self._ending = ending
        self._lines = lines
        self._last_slice_bytes = 0
        self._tells_when_taken = True

    # -- paced -----------------------------------------------------------------------------

    def feed_some(self) -> None:
        """Hand the child one slice, as large as its speed allows, and account for what it took."""
        child, task_input = self._child, self._attempt.input
        if not child.pacer.fast and not self._pipe_is_empty(child):
            return
        size_bytes = BLOCK_BYTES if child.pacer.fast else self._slice_bytes(child)
        if not child.pacer.fast:
            self._fit_pipe(child, size_bytes)
        data = task_input.buffer[task_input.at : task_input.at + size_bytes]
        try:
            taken = os.write(child.input, data)
        except BlockingIOError:
            self._wait_for_room(child)
            return
        except BrokenPipeError:
            self._ending.child_left()
        task_input.at += taken
        child.fed_bytes += taken
        self._accounting.account(data if taken == len(data) else data[:taken])
        if not child.pacer.fast:
            child.pacer.waiting_since_s = time.monotonic()
            self._last_slice_bytes = taken

    @property
    def _child(self) -> Child:
        child = self._attempt.child
        assert child is not None
        return child

    def _slice_bytes(self, child: Child) -> int:
        """Return a slice's size: whole lines if possible, at least one if it is not very long."""
        buffer, at, wanted = self._attempt.input.buffer, self._attempt.input.at, child.pacer.slice_bytes
        end = buffer.rfind(b"\n", at, at + wanted) + 1
        if not end:
            end = buffer.find(b"\n", at, at + SLICE_FAST_BYTES) + 1
        return end - at if end else max(wanted, PIPE_ATOMIC_BYTES)

    def _pipe_is_empty(self, child: Child) -> bool:
        """Look whether the slice before was taken; if not wait a little (reading ahead) and say no."""
        task_input = self._attempt.input
        waited_s = time.monotonic() - child.pacer.waiting_since_s
        if unread_bytes(child.input) == 0:
            self._slice_was_taken(child, waited_s)
            return True
        if len(task_input.buffer) - task_input.at < READ_AHEAD_BYTES and task_input.fill(0):
            return False
        if child.one_slot:
            self._wait_until_taken(child)
        elif self._attempt.wakeup.wait(child.input, select.POLLERR, min(0.01, max(0.0002, waited_s / 8))):
            self._ending.child_left()
        return False

    def _slice_was_taken(self, child: Child, waited_s: float) -> None:
        if self._last_slice_bytes:
            child.pacer.taken(self._last_slice_bytes, waited_s)
            self._last_slice_bytes = 0
            if child.pacer.fast:
                child.one_slot = False
                child.pipe_bytes = widen_pipe(child.input)

    def _fit_pipe(self, child: Child, size_bytes: int) -> None:
        """Make the (empty) pipe narrow for small slices and wide for others, where that can be done."""
        small = size_bytes <= PIPE_ATOMIC_BYTES
        if small and not child.one_slot:
            child.one_slot = self._tells_when_taken and narrow_pipe(child.input)
        elif child.one_slot and not small:
            child.one_slot = False
            child.pipe_bytes = widen_pipe(child.input)

    def _wait_until_taken(self, child: Child) -> None:
        """Wait until a narrow pipe is empty; one that is said to be although it is not is not relied on."""
        if not self._attempt.wakeup.wait(child.input, select.POLLOUT, STATUS_EVERY_S):
            return
        if self._attempt.wakeup.wait(child.input, select.POLLERR, 0):
            self._ending.child_left()
        if unread_bytes(child.input):
            child.one_slot = self._tells_when_taken = False

    def _wait_for_room(self, child: Child) -> None:
        """Wait until a child that is fed at full speed takes something."""
        wakeup = self._attempt.wakeup
        before_bytes, since_s = unread_bytes(child.input), time.monotonic()
        if before_bytes == 0 or wakeup.wait(child.input, select.POLLOUT, STATUS_EVERY_S):
            # The kernel wakes us for every page that is read; a nap lets the child empty half the pipe.
            wakeup.wait(-1, 0, child.pacer.nap_s)
        left_bytes = unread_bytes(child.input)
        child.pacer.napped(left_bytes, child.pipe_bytes)
        child.pacer.stalled(before_bytes - left_bytes, time.monotonic() - since_s)

    # -- up to a border --------------------------------------------------------------------

    def feed_all(self, data: bytes) -> None:
        """Hand the child every byte, without pacing: a group has to be finished."""
        child = self._child
        view = memoryview(data)
        while view:
            try:
                taken = os.write(child.input, view)
            except BlockingIOError:
                self._attempt.wakeup.wait(child.input, select.POLLOUT, STATUS_EVERY_S)
                self._lines.tell(keep_alive=False)
                continue
            except BrokenPipeError:
                self._ending.child_left()
            child.fed_bytes += taken
            view = view[taken:]

    def feed_groups(self, limit: int) -> bool:
        """Feed what is there of the first ``limit`` groups; say whether the next one was met."""
        attempt, task_input = self._attempt, self._attempt.input
        if not task_input.is_taken:
            rest = task_input.buffer[task_input.at :]
            taken, found = attempt.scanner.take_groups(rest, limit, final=task_input.ended)
            task_input.at += taken
            self.feed_all(rest[:taken])
            self._accounting.check_order()
            if found or attempt.why_not:
                return found and not attempt.why_not
        if not task_input.ended:
            task_input.fill(STATUS_EVERY_S)
        return False

    def finish_group(self) -> bool:
        """Feed the rest of the current key group; say whether a border was reached before the end."""
        attempt, task_input = self._attempt, self._attempt.input
        if not self._finish_line():
            return False
        limit = attempt.scanner.groups
        while not attempt.why_not:
            if self.feed_groups(limit):
                return True
            if task_input.ended and task_input.is_taken:
                return False
        return False

    def _finish_line(self) -> bool:
        """Feed up to where the key of every byte is known; return False at the end of the input."""
        attempt, task_input = self._attempt, self._attempt.input
        while not attempt.scanner.settled and not attempt.why_not:
            if task_input.is_taken:
                if task_input.ended:
                    return False
                task_input.fill(STATUS_EVERY_S)
                continue
            end = task_input.buffer.find(b"\n", task_input.at) + 1 or len(task_input.buffer)
            data = task_input.buffer[task_input.at : end]
            task_input.at = end
            self.feed_all(data)
            self._accounting.account(data)
        return True
