"""Processes: real containers, each in a session of its own, run by one supervisor per NodeManager process.

No shell is involved, and a process has the environment it is given and nothing of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from emulator.live.wire.messages import EXIT_ABORTED, Signal

SIGNALS: dict[Signal, int] = {
    "OUTPUT_THREAD_DUMP": signal.SIGQUIT,
    "GRACEFUL_SHUTDOWN": signal.SIGTERM,
    "FORCEFUL_SHUTDOWN": signal.SIGKILL,
}
"""What a container signal of YARN's REST is on a POSIX system."""

Gone = Callable[[int, str], None]
"""Called once with the exit status (128 + N if signal N ended it) and diagnostics."""


class _Order(msgspec.Struct, omit_defaults=True):
    start: str = ""
    argv: Sequence[str] = ()
    env: Mapping[str, str] = {}
    folder: str = ""
    signal: str = ""
    number: int = 0
    end: str = ""


class _Answer(msgspec.Struct):
    started: str = ""
    pid: int = 0
    ended: str = ""
    status: int = 0
    diagnostics: str = ""


class Process:
    """A container's process group; ``pid`` is 0 until it runs."""

    __slots__ = ("_name", "_processes", "gone", "pid")

    def __init__(self, processes: Processes, name: str, gone: Gone) -> None:
        self._processes = processes
        self._name = name
        self.gone = gone
        self.pid = 0

    def notify(self, signal_name: Signal) -> None:
        """Send a signal to the whole group."""
        self._processes.order(_Order(signal=self._name, number=int(SIGNALS[signal_name])))

    def end(self) -> None:
        """SIGTERM to the group, 250 ms later SIGKILL; ``gone`` is called when no process is left."""
        self._processes.order(_Order(end=self._name))


class Processes(asyncio.Protocol):
    """All processes of one NodeManager process; made by ``open_processes``, ended by ``close``."""

    def __init__(self) -> None:
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._opening: asyncio.Task[None] | None = None
        self._processes: dict[str, Process] = {}
        self._unsent: list[bytes] = []
        self._unread = b""
        self._empty = asyncio.Event()
        self._empty.set()
        self._closed = False

    @property
    def supervisor_pid(self) -> int:
        """The pid of the supervisor that runs now, 0 if there is none."""
        return 0 if self._supervisor is None else self._supervisor.pid

    async def open(self) -> None:
        """Start a supervisor in a session of its own (a terminal's Ctrl-C is the owner's business)."""
        ours, theirs = socket.socketpair()
        with theirs:
            program = Path(__file__).with_name("process_supervisor.py")
            self._supervisor = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-I", "-S", str(program)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                env=clean_environment({}),
            )
        ours.setblocking(False)
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)

    def start(
        self, name: str, argv: Sequence[str], environment: Mapping[str, str], folder: Path, gone: Gone
    ) -> Process:
        """Start a process under a name of its own; output goes to ``stdout`` and ``stderr`` in ``folder``.

        A program that cannot be started ends with status 127 and the reason on stderr.
        """
        process = Process(self, name, gone)
        self._processes[name] = process
        self._empty.clear()
        self.order(_Order(start=name, argv=tuple(argv), env=environment, folder=str(folder)))
        return process

    def order(self, order: _Order) -> None:
        """Pass an order on to the supervisor, as soon as there is one."""
        line = msgspec.json.encode(order) + b"\n"
        if self._transport is None:
            self._unsent.append(line)
        else:
            self._transport.write(line)

    async def close(self) -> None:
        """End all processes as a NodeManager does when it stops; return when none is left."""
        for process in list(self._processes.values()):
            process.end()
        await self._empty.wait()
        self._closed = True
        if self._opening is not None:
            await self._opening
        if self._transport is not None:
            self._transport.close()
        if self._supervisor is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._supervisor.wait)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection to the supervisor; send it what was queued."""
        self._transport = transport  # type: ignore[assignment]
        unsent, self._unsent = self._unsent, []
        transport.writelines(unsent)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Read from the supervisor."""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            answer = msgspec.json.decode(line, type=_Answer)
            if answer.started:
                self._processes[answer.started].pid = answer.pid
            else:
                self._end(answer.ended, answer.status, answer.diagnostics)

    def connection_lost(self, exc: Exception | None) -> None:
        """The supervisor was killed, and the leaders with it: kill what they left behind, start another."""
        self._transport, self._unread = None, b""
        if self._closed:
            return
        if self._supervisor is not None:
            self._supervisor.kill()  # it closed the socket and cannot go on
            self._supervisor.wait()
        for name, process in list(self._processes.items()):
            if process.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            self._end(name, EXIT_ABORTED, "the process supervisor of this node's processes was killed")
        self._opening = asyncio.get_running_loop().create_task(self.open())

    def _end(self, name: str, status: int, diagnostics: str) -> None:
        process = self._processes.pop(name)
        if not self._processes:
            self._empty.set()
        process.gone(status, diagnostics)


async def open_processes() -> Processes:
    """Return what runs processes, its supervisor at work."""
    processes = Processes()
    await processes.open()
    return processes


def clean_environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a container: a base that names no secret of ours, and what is given."""
    base = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "HOME": os.environ.get("HOME", "/"),
    }
    return {**base, **more}
