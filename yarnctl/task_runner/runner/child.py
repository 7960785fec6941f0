"""The child: the original reducer as a process, the pipes to and from it, and what it writes.

What the child has started ends with this process. An end with status 0 counts only if all that the child
wrote was passed on.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import stat
import subprocess
import sys
import threading
from typing import IO, Callable, Iterator, Mapping, Sequence

from yarnctl.task_runner.runner.protocol.stores import (
    EXIT_UNPROVABLE,
    Spool,
    Unusable,
    close_quietly,
    write_all,
)
from yarnctl.task_runner.runner.reports import Errors

try:
    import fcntl
    import termios
except ImportError:  # not a POSIX system: the original reducer runs untouched
    fcntl = termios = None  # type: ignore[assignment]


BLOCK_BYTES = 1 << 18
PIPE_BYTES = 1 << 18
PIPE_USUAL_BYTES = 1 << 16
F_SETPIPE_SZ, F_GETPIPE_SZ = 1031, 1032  # Linux; Python names them from 3.10 on
PIPE_ATOMIC_BYTES = 4096  # a pipe that polls writable takes this much without blocking


class Leave(Exception):
    """The attempt ends with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Wakeup:
    """A pipe that ends every wait of the main thread; any thread may write to it."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        for end in (self._reading, self._writing):
            os.set_blocking(end, False)

    def wake(self) -> None:
        """End the main thread's wait; called from any thread."""
        try:
            os.write(self._writing, b"!")
        except OSError:  # full, so the wait ends; or it failed, and every wait has a time limit
            return

    def wait(self, handle: int, events: int, timeout_s: float | None) -> bool:
        """Wait until a handle is ready (-1: none), ``wake`` is called, or time is over; say if ready."""
        waiting = select.poll()
        waiting.register(self._reading, select.POLLIN)
        if handle >= 0:
            waiting.register(handle, events)
        found = dict(waiting.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000))
        if self._reading in found:
            os.read(self._reading, 4096)  # only this thread reads it, so something is there
        return handle in found


class Child:
    """One run of the original reducer, in a process group of its own, and its two readers."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], output: Spool, errors: Errors, wakeup: Wakeup
    ) -> None:
        self.output = output
        self.errors = errors
        self.wakeup = wakeup
        self.broken = ""  # why what it wrote is not complete
        pipe = subprocess.PIPE
        self.process, self.lifeline = start_process(argv, env, pipe, pipe, pipe)
        assert self.process.stdin
        assert self.process.stdout
        self.input = self.process.stdin.fileno()
        try:
            os.set_blocking(self.input, False)
        except OSError:
            self.kill(signal.SIGKILL)
            raise
        widen_pipe(self.process.stdout.fileno())
        self.begins_at = 0  # where in the task's input
        self.began_s = 0.0
        self.fed_bytes = 0
        self.finished: list[str] = []
        for take, source in ((self._copy_output, self.process.stdout), (errors.pass_on, self.process.stderr)):
            threading.Thread(target=self._read, args=(take, source), daemon=True).start()

    def _read(self, copy: Callable[[int], None], source: IO[bytes]) -> None:
        try:
            copy(source.fileno())
        except Exception as error:  # whatever it is, this is not all: the attempt must not succeed
            what = "output" if source is self.process.stdout else "standard error"
            self.broken = f"the reducer's {what} was not forwarded: {error!r}"
            close_quietly(source)  # the child meets a broken pipe, as without a runner
        finally:
            self.finished.append(source.name)
            self.wakeup.wake()

    def _copy_output(self, source: int) -> None:
        for data in iter(lambda: os.read(source, BLOCK_BYTES), b""):
            write_all(1, data)
            self.output.add(data)

    @property
    def reading(self) -> bool:
        """Say whether output may still come."""
        return len(self.finished) < 2

    def close_input(self) -> None:
        """Close the child's input."""
        assert self.process.stdin
        self.process.stdin.close()

    def kill(self, number: int) -> None:
        """Send a signal to the child and all it started."""
        try:
            os.killpg(self.process.pid, number)
        except OSError:
            return

    def status(self) -> int:
        """Wait for the end; return a shell's status, never 0 if some output was not passed on."""
        code = self.process.wait()
        self.kill(signal.SIGKILL)  # processes that it left are in no group that YARN kills
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                close_quietly(stream)
        os.close(self.lifeline)
        lost = self.broken or self.errors.lost
        if lost and not code:
            self.errors.note(f"this attempt fails: {lost}")
            return EXIT_UNPROVABLE
        return code if code >= 0 else 128 - code


def start_process(
    argv: Sequence[str], env: Mapping[str, str], stdin: int, stdout: int, stderr: int | None
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a program and return it with its lifeline: when that is closed the kernel ends its group.

    A session, so a process group, of its own: a JVM prints thread dumps to stdout on SIGQUIT, SIGQUIT ends
    Node. It ends with us, because YARN's kill no longer reaches it. No code of Python runs between fork and
    exec, where other threads might hold a lock: the lifeline's reading end is given to the child (as one more
    open file, never used) and set here so that the kernel sends SIGKILL to the group when the writing end,
    which only this process has, is closed. Until that is set the child has been given no input.
    """
    reading, writing = os.pipe()
    try:
        with quit_blocked():
            process = subprocess.Popen(
                list(argv),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=dict(env),
                start_new_session=True,
                pass_fds=(reading,),
            )
        try:
            signal_when_closed(reading, process.pid, signal.SIGKILL)
        except OSError:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process, writing
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)


def signal_when_closed(reading: int, group: int, number: int) -> None:
    """Have the kernel send a signal to a process group when a pipe's last writing end is closed."""
    fcntl.fcntl(reading, fcntl.F_SETOWN, -group)
    fcntl.fcntl(reading, fcntl.F_SETSIG, number)
    fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | fcntl.FASYNC)


def run_command(command: str, given: bytes | None = None) -> tuple[int, bytes]:
    """Run --save or --load by sh with a lifeline; return its status and, if nothing is given, output."""
    stdin, stdout = (subprocess.DEVNULL, subprocess.PIPE) if given is None else (subprocess.PIPE, 2)
    process, _ = start_process(["/bin/sh", "-c", command], os.environ, stdin, stdout, None)
    try:
        said, _ = process.communicate(given)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, said or b""


@contextlib.contextmanager
def quit_blocked() -> Iterator[None]:
    """Start programs inside: SIGQUIT, the doorbell of a whole group, is blocked there as Java has it blocked.

    So until they have a session of their own: a shell unblocks it. Meanwhile another thread gets the signal.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGQUIT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def widen_pipe(handle: int) -> int:
    """Let a pipe hold more, so that both sides run longer; return what it holds (64 KiB if unknown)."""
    for command, argument in ((F_SETPIPE_SZ, PIPE_BYTES), (F_GETPIPE_SZ, 0)):
        try:
            return fcntl.fcntl(handle, command, argument)
        except OSError:  # not allowed, or no pipe
            continue
    return PIPE_USUAL_BYTES


def narrow_pipe(handle: int) -> bool:
    """Let an empty pipe hold one page: it is then writable exactly when it is empty; say if that worked.

    Linux counts a pipe's pages, not its bytes (pipe(7), F_SETPIPE_SZ). So a writer of less than a page
    at a time is woken when that was read, and need not poll.
    """
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    try:
        return fcntl.fcntl(handle, F_SETPIPE_SZ, page_bytes) == page_bytes
    except OSError:  # not allowed, or no pipe
        return False


def pipe_capacity(handle: int) -> int:
    """Return how many bytes a pipe holds, -1 where it is none; 64 KiB if that is unknown."""
    try:
        if not stat.S_ISFIFO(os.fstat(handle).st_mode):
            return -1
        return fcntl.fcntl(handle, F_GETPIPE_SZ, 0)
    except OSError:
        return PIPE_USUAL_BYTES


def check_pipes() -> None:
    """Refuse a system where a writer cannot find what was not read: nothing could be proven there."""
    reading, writing = os.pipe()
    try:
        os.write(writing, b"12345")
        if unread_bytes(writing) != 5:
            raise Unusable("this system does not report how much of a pipe is unread")
        signal_when_closed(reading, os.getpgrp(), signal.SIGURG)  # a trial; the pipe is closed below
    finally:
        for end in (reading, writing):
            os.close(end)


def unread_bytes(handle: int) -> int:
    """Return how many bytes of a pipe are unread (Linux answers at either end)."""
    answer = fcntl.ioctl(handle, termios.FIONREAD, b"\0" * 8)
    return int.from_bytes(answer[:4], sys.byteorder)


def waiting_bytes(handle: int) -> int:
    """Return how many bytes may be read at once, 0 where that is unknown: for reports only."""
    try:
        return unread_bytes(handle)
    except OSError:
        return 0


def resolve(argv: Sequence[str]) -> list[str]:
    """Find the program as streaming does: the working folder first, then PATH."""
    name = argv[0]
    folders = [] if "/" in name else [".", *os.get_exec_path()]
    paths = (os.path.join(folder, name) for folder in folders)
    found = next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), name)
    return [found, *argv[1:]]
