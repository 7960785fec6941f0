"""The umbilical, the master's end: one connection per running task, lines of JSON both ways.

Law: only a client with the job's token is served, and only for an attempt that was started. A line is
bounded; what cannot be understood ends the connection, and with it the task. Nothing here decides.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import socket
from typing import Any, Protocol

import msgspec

LARGEST_LINE = 1 << 20


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt's position. ``alive`` rises while something happens; ``index`` is a finished map's."""

    phase: str = ""
    progress: float = 0.0
    status: str = ""
    counters: dict[str, dict[str, int]] = {}
    alive: int = 0
    index: str = ""


class TaskMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One line from a task: one of these is there."""

    report: Report | None = None
    can_commit: bool = False
    done: Report | None = None
    failed: str | None = None


class _Hello(msgspec.Struct, frozen=True):
    hello: str
    token: str


class Listener(Protocol):
    """The master's interface for tasks; every call runs on its event loop."""

    def task_hello(self, attempt: str, line: TaskLine) -> bool:
        """A task is up; False ends it."""

    def task_reported(self, attempt: str, message: TaskMessage, line: TaskLine) -> None:
        """A line of a task."""


class TaskLine:
    """One task's connection, for sending."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def send(self, message: dict[str, Any]) -> None:
        """Send one message; nothing happens if the task is gone."""
        if not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        """Hang up: the task ends by itself."""
        self._writer.close()


class UmbilicalServer:
    """Listens for the tasks of one master."""

    def __init__(self, listener: Listener, token: str) -> None:
        self._listener = listener
        self._token = token
        self._server: asyncio.Server | None = None
        self._starting: asyncio.Task[None] | None = None
        self._lines: set[TaskLine] = set()

    def start(self, host: str) -> int:
        """Listen on a port of its own; return it. Call on the running event loop."""
        listener = socket.create_server((host, 0), backlog=1024)
        self._starting = asyncio.get_running_loop().create_task(self._listen(listener))
        return int(listener.getsockname()[1])

    async def _listen(self, listener: socket.socket) -> None:
        self._server = await asyncio.start_server(self._serve, sock=listener, limit=LARGEST_LINE)

    def close(self) -> None:
        """Hang up on every task."""
        if self._server is not None:
            self._server.close()
        elif self._starting is not None:
            self._starting.cancel()
        for line in list(self._lines):
            line.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = TaskLine(writer)
        self._lines.add(line)
        try:
            hello = msgspec.json.decode(await reader.readline(), type=_Hello)
            known = hmac.compare_digest(hello.token.encode(), self._token.encode())
            if not known or not self._listener.task_hello(hello.hello, line):
                line.send({"die": "this attempt is over"})
                return
            while data := await reader.readline():
                self._listener.task_reported(hello.hello, msgspec.json.decode(data, type=TaskMessage), line)
        except (OSError, ValueError, msgspec.DecodeError):
            return  # torn, too long or not ours
        finally:
            self._lines.discard(line)
            with contextlib.suppress(OSError):
                writer.close()
