"""Feeding: a child is started, its input is handed to it, and how it ends is judged as Hadoop would judge it.

Every byte goes to the child once, in order, and is counted. Only status 0 after reading everything is an end:
a child that closed its input early ends the attempt, with status 0 only where plain Hadoop might have ended
so, too.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import time
from typing import Mapping, NoReturn, Sequence

from yarnctl.task_runner.runner.attempt import STATUS_EVERY_S, AttemptState
from yarnctl.task_runner.runner.child import (
    BLOCK_BYTES,
    PIPE_ATOMIC_BYTES,
    PIPE_USUAL_BYTES,
    Child,
    Leave,
    narrow_pipe,
    run_command,
    unread_bytes,
    widen_pipe,
)
from yarnctl.task_runner.runner.orders import OrderAnswers
from yarnctl.task_runner.runner.protocol.stores import (
    EXIT_UNPROVABLE,
    InvalidCheckpoint,
    Unprovable,
    spool_folder,
)

READ_AHEAD_BYTES = 1 << 20
SLICE_MIN_BYTES = 64
SLICE_LEAST_BYTES = 16
SLICE_FAST_BYTES = PIPE_USUAL_BYTES
SLICE_QUICK_S = 0.05
SLICE_SLOW_S = 0.12
SLICE_GOAL_S = 0.1
SPEED_MEMORY_S = 4.0
NAP_MIN_S = 0.0001
NAP_MAX_S = 0.02


class ChildLife:
    """Starts the reducer, with --load after its state, and waits until it has read and written everything."""

    def __init__(
        self, attempt: AttemptState, argv: Sequence[str], env: Mapping[str, str], answers: OrderAnswers
    ) -> None:
        self._attempt = attempt
        self._argv = argv
        self._env = dict(env)
        self._answers = answers
        self._suspending_path = ""  # the file YARNCTL_SUSPENDING
        if attempt.settings.save:
            name = os.path.join(os.path.abspath(spool_folder()), f"yarnctl-suspending-{os.getpid()}")
            self._suspending_path = self._env["YARNCTL_SUSPENDING"] = name

    def start(self) -> None:
        """Start a child at the border where the input is now."""
        attempt = self._attempt
        self._load()
        self.unmark_suspending()
        try:
            attempt.child = Child(self._argv, self._env, attempt.output, attempt.errors, attempt.wakeup)
        except OSError as error:
            attempt.errors.note(f"{self._argv[0]}: {error.strerror}")
            raise Leave(127 if isinstance(error, FileNotFoundError) else 126) from error
        attempt.child.begins_at = attempt.scanner.bytes
        attempt.child.began_s = time.monotonic()

    def _load(self) -> None:
        attempt = self._attempt
        if attempt.settings.load and attempt.reducer_state is not None:
            status, _ = run_command(attempt.settings.load, attempt.reducer_state)
            if status:
                manifest = attempt.manifest
                is_saved = manifest is not None and manifest.groups_done == attempt.scanner.groups
                kind = InvalidCheckpoint if is_saved else Unprovable
                raise kind(f"--load ended with status {status}")

    def mark_suspending(self) -> None:
        """Make the file by which a reducer with state learns at its end of input that it is suspended."""
        if self._suspending_path:
            with open(self._suspending_path, "wb"):
                pass

    def unmark_suspending(self) -> None:
        """Remove it: a child that finds it at its end of input writes no summary."""
        if self._suspending_path:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._suspending_path)

    def let_read(self, child: Child, late: str = "") -> None:
        """Wait until the child has read all that it was given; it may leave instead.

        Its end of input comes after that. So a child that has read everything and one that has left are told
        apart, whether the child itself reads or a program that it has started. ``late``: what is
        answered meanwhile to orders, if they are answered.
        """
        wakeup = self._attempt.wakeup
        began_s = time.monotonic()
        while unread_bytes(child.input):
            self._answer_late(late)
            nap_s = min(0.01, max(0.0002, (time.monotonic() - began_s) / 8))
            if wakeup.wait(child.input, select.POLLERR, nap_s) or not child.reading:
                self.child_left()
            self._attempt.lines.report(keep_alive=False)
        if wakeup.wait(child.input, select.POLLERR, 0):
            self.child_left()

    def read_out(self, child: Child, late: str = "") -> None:
        """Wait until the child has written everything; ``late``: as above."""
        while child.reading:
            self._answer_late(late)
            self._attempt.wakeup.wait(-1, 0, STATUS_EVERY_S)
            self._attempt.lines.report(keep_alive=False)

    def child_left(self) -> NoReturn:
        """End as the child did: it closed its input early, and Java must observe that as it would."""
        attempt, child = self._attempt, self._attempt.child
        assert child is not None
        position_bytes = child.begins_at + child.fed_bytes - unread_bytes(child.input)
        child.close_input()
        self.read_out(child, "the reducer closed its input")
        status = child.status()
        if not status and attempt.phase == "drain" and attempt.settings.save:
            raise Unprovable("the reducer closed its input while it was suspended, so its summary is lost")
        if not status and not self._could_leave(position_bytes):
            attempt.errors.note(
                f"the reducer ended with status 0 having read {position_bytes} bytes; plain Hadoop, with"
                f" {attempt.input.sender.sent_bytes} to write before its last flush, meets a broken pipe: it"
                " fails"
            )
            status = EXIT_UNPROVABLE
        raise Leave(status)

    def _could_leave(self, position_bytes: int) -> bool:
        """Say whether Java without a runner might have met no broken pipe but at its last flush."""
        task_input = self._attempt.input
        sender = task_input.sender
        while not task_input.ended and sender.pipe_bytes >= 0 and sender.within(position_bytes):
            self._answer_late("the reducer closed its input")
            task_input.drop()
            task_input.fill(STATUS_EVERY_S)
        return sender.within(position_bytes)

    def _answer_late(self, why: str) -> None:
        if why:
            self._answers.completing(why)


class Pacer:
    """Bounds by time how far the child is fed ahead of what it has done; no clock is read here.

    Two slices are under way at once: one in the child's own buffer, one waiting in the pipe. The time a
    waiting slice is unread is the time the child needs for the one before; slices grow while that is
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
        """Adapt to a slice that was read after it had waited in the pipe."""
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
        """Adapt to a child fed at full speed that left a full pipe unread for a while."""
        if waited_s > SLICE_SLOW_S:
            self.fast = False
            self.late_bytes, self.late_s = float(taken_bytes), waited_s
            share = SLICE_GOAL_S / waited_s
            self.slice_bytes = max(SLICE_MIN_BYTES, min(int(taken_bytes * share), SLICE_FAST_BYTES // 2))

    def napped(self, left_bytes: int, pipe_bytes: int) -> None:
        """Adapt to what was left in the pipe after a nap: about half is right."""
        if left_bytes > pipe_bytes * 5 // 8:
            self.nap_s = min(self.nap_s * 1.5, NAP_MAX_S)
        elif left_bytes < pipe_bytes * 3 // 8:
            self.nap_s = max(self.nap_s / 2, NAP_MIN_S)


class Feeder:
    """Hands the input to the child, in slices as its speed allows or all at once up to a border."""

    def __init__(self, attempt: AttemptState, life: ChildLife) -> None:
        self._attempt = attempt
        self._life = life
        self._child: Child | None = None  # the one that is paced
        self._pacer = Pacer()
        self._pipe_bytes = PIPE_USUAL_BYTES
        self._one_slot = False
        self._last_slice_bytes = 0
        self._narrow_pipes_work = True

    # -- paced -----------------------------------------------------------------------------

    def feed_some(self) -> None:
        """Hand the child one slice, as large as its speed allows, and count what it took."""
        child, task_input, pacer = self._paced_child(), self._attempt.input, self._pacer
        if not pacer.fast and not self._pipe_is_empty(child):
            return
        size_bytes = BLOCK_BYTES if pacer.fast else self._slice_bytes()
        if not pacer.fast:
            # narrow for small slices and wide for others, where that can be done
            small = size_bytes <= PIPE_ATOMIC_BYTES
            if small and not self._one_slot:
                self._one_slot = self._narrow_pipes_work and narrow_pipe(child.input)
            elif self._one_slot and not small:
                self._widen(child)
        data = task_input.buffer[task_input.at : task_input.at + size_bytes]
        try:
            taken = os.write(child.input, data)
        except BlockingIOError:
            self._wait_for_room(child)
            return
        except BrokenPipeError:
            self._life.child_left()
        task_input.at += taken
        child.fed_bytes += taken
        self._attempt.account(data if taken == len(data) else data[:taken])
        if not pacer.fast:
            pacer.waiting_since_s = time.monotonic()
            self._last_slice_bytes = taken

    def _paced_child(self) -> Child:
        """Return the child; a new one has a pace of its own."""
        child = self._attempt.child
        assert child is not None
        if child is not self._child:
            self._child, self._pacer, self._pipe_bytes = child, Pacer(), PIPE_USUAL_BYTES
            self._one_slot, self._last_slice_bytes = False, 0
        return child

    def _slice_bytes(self) -> int:
        """Return a slice's size: whole lines if possible, at least one if it is not very long."""
        buffer, at, wanted = self._attempt.input.buffer, self._attempt.input.at, self._pacer.slice_bytes
        end = buffer.rfind(b"\n", at, at + wanted) + 1
        if not end:
            end = buffer.find(b"\n", at, at + SLICE_FAST_BYTES) + 1
        return end - at if end else max(wanted, PIPE_ATOMIC_BYTES)

    def _pipe_is_empty(self, child: Child) -> bool:
        """Say whether the slice before was read; if not wait a little (reading ahead)."""
        task_input = self._attempt.input
        waited_s = time.monotonic() - self._pacer.waiting_since_s
        if unread_bytes(child.input) == 0:
            if self._last_slice_bytes:
                self._pacer.taken(self._last_slice_bytes, waited_s)
                self._last_slice_bytes = 0
                if self._pacer.fast:
                    self._widen(child)
            return True
        if len(task_input.buffer) - task_input.at < READ_AHEAD_BYTES and task_input.fill(0):
            return False
        if self._one_slot:
            self._wait_until_taken(child)
        elif self._attempt.wakeup.wait(child.input, select.POLLERR, min(0.01, max(0.0002, waited_s / 8))):
            self._life.child_left()
        return False

    def _widen(self, child: Child) -> None:
        self._one_slot = False
        self._pipe_bytes = widen_pipe(child.input)

    def _wait_until_taken(self, child: Child) -> None:
        """Wait until a narrow pipe is empty; where that is reported and not so, it is not relied on again."""
        if not self._attempt.wakeup.wait(child.input, select.POLLOUT, STATUS_EVERY_S):
            return
        if self._attempt.wakeup.wait(child.input, select.POLLERR, 0):
            self._life.child_left()
        if unread_bytes(child.input):
            self._one_slot = self._narrow_pipes_work = False

    def _wait_for_room(self, child: Child) -> None:
        """Wait until a child that is fed at full speed takes something."""
        wakeup = self._attempt.wakeup
        before_bytes, since_s = unread_bytes(child.input), time.monotonic()
        if before_bytes == 0 or wakeup.wait(child.input, select.POLLOUT, STATUS_EVERY_S):
            # The kernel wakes us for every page that is read; a pause lets the child empty half the pipe.
            wakeup.wait(-1, 0, self._pacer.nap_s)
        left_bytes = unread_bytes(child.input)
        self._pacer.napped(left_bytes, self._pipe_bytes)
        self._pacer.stalled(before_bytes - left_bytes, time.monotonic() - since_s)

    # -- up to a border --------------------------------------------------------------------

    def feed_all(self, data: bytes) -> None:
        """Hand the child every byte, without pacing: a group has to be finished."""
        child = self._attempt.child
        assert child is not None
        view = memoryview(data)
        while view:
            try:
                taken = os.write(child.input, view)
            except BlockingIOError:
                self._attempt.wakeup.wait(child.input, select.POLLOUT, STATUS_EVERY_S)
                self._attempt.lines.report(keep_alive=False)
                continue
            except BrokenPipeError:
                self._life.child_left()
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
            attempt.check_order()
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
            attempt.account(data)
        return True
