"""The umbilical, a task's end: lines of JSON to the master and from it, on one connection.

Law: without its master a task ends. What the master has not taken (``bye``) did not happen. Standard
library only: task processes run this file.

To the master: ``hello``, ``report``, ``can_commit``, ``done``, ``failed``. From it: ``welcome``, ``map`` (a
map's output can be read), ``commit``, ``bye``, ``die``. See ``emulator.live.wire.umbilical`` for the other
end.
"""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Callable
from typing import Any

CONNECT_TIMEOUT_S = 20.0


class Gone(Exception):
    """The master is not there, or has ended this attempt."""


class Umbilical:
    """One task's connection. ``lost`` is called by another thread when the master is gone."""

    def __init__(self, host: str, port: int, lost: Callable[[str], object]) -> None:
        self._socket = socket.create_connection((host, port), CONNECT_TIMEOUT_S)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lost = lost
        self._lock = threading.Lock()
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.maps: queue.Queue[dict[str, Any]] = queue.Queue()
        self.over = False

    def begin(self, attempt: str, token: str) -> None:
        """Identify this attempt; from then on messages are accepted."""
        self.send({"hello": attempt, "token": token})
        threading.Thread(target=self._hear, name="umbilical", daemon=True).start()
        if "welcome" not in self._answers.get():
            raise Gone("the master does not know this attempt")

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        data = json.dumps(message).encode() + b"\n"
        with self._lock:
            try:
                self._socket.sendall(data)
            except OSError as error:
                raise Gone(f"umbilical: {error}") from error

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and wait for the answer to it."""
        self.send(message)
        return self._answers.get()

    def _hear(self) -> None:
        why = "the master has closed the connection"
        try:
            with self._socket.makefile("rb") as lines:
                for line in lines:
                    message = json.loads(line)
                    if "map" in message:
                        self.maps.put(message["map"])
                    elif "die" in message:
                        why = str(message["die"])
                        break
                    else:
                        self._answers.put(message)
        except (OSError, ValueError) as error:
            why = f"umbilical: {error}"
        if not self.over:
            self._lost(why)
        self._answers.put({})
