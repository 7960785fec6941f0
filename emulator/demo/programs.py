"""Programs: our own two command lines, started as a user would start them, and all ended at the end.

Law: a program has a session of its own, so that Ctrl-C reaches the demo alone, which then ends them in
the opposite order of their starts. None outlives the demo's block.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import IO, Literal

from yarnctl.errors import YarnctlError

MODULES = {"yarnctl": "yarnctl.cli", "yarn-emulator": "emulator.cli"}
WAIT_MAX_S = 15.0
"""How long a program may take to end in order before it is killed."""

TAIL_BYTES = 4000
Handler = Callable[[int, FrameType | None], object] | signal.Handlers


class DemoFailed(YarnctlError):
    """A program of the demo ended as it should not, or not at all."""


class Program:
    """One running program. ``output`` is the file with its stderr."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, number: int) -> None:
        name = arguments[0]
        self.title = " ".join(arguments[:2])
        self.output = folder / f"{number}-{arguments[1]}.log"
        start = f"from {MODULES[name]} import main; main()"
        with self.output.open("wb") as said:
            self.process = subprocess.Popen(  # noqa: S603 - our own programs, no shell
                (sys.executable, "-c", start, *arguments[1:]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                start_new_session=True,
                env=environment(os.environ),
            )

    @property
    def stdout(self) -> IO[str]:
        """The program's stdout."""
        assert self.process.stdout is not None
        return self.process.stdout

    def first_line(self) -> str:
        """Wait for its first line; raises Failed if it ends without one."""
        line = self.stdout.readline()
        if not line:
            raise DemoFailed(f"{self.title} ended before it was ready: {self.last_lines()}")
        return line

    def over(self) -> bool:
        """Say whether it has ended well; raises Failed if it has ended otherwise."""
        status = self.process.poll()
        if status:
            raise DemoFailed(f"{self.title} ended with {status}: {self.last_lines()}")
        return status == 0

    def last_lines(self) -> str:
        """Return the last line of its stderr."""
        lines = self.output.read_bytes()[-TAIL_BYTES:].decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "no output")

    def end(self) -> None:
        """End it in order, and by force if that takes too long."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(WAIT_MAX_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.stdout.close()


class Programs:
    """All programs of one act. Use ``with``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Program] = []

    def start(self, name: Literal["yarnctl", "yarn-emulator"], *arguments: str) -> Program:
        """Start a program."""
        program = Program((name, *arguments), self._folder, len(self._started))
        self._started.append(program)
        return program

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        with undisturbed():
            for program in reversed(self._started):
                program.end()


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program: ours without what would point it at another cluster."""
    return {
        name: value
        for name, value in ours.items()
        if name != "HADOOP_CONF_DIR" and not name.startswith("YARNCTL_")
    }


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let a second Ctrl-C wait until everything has ended."""
    with _answered_by(signal.SIG_IGN, signal.SIGINT):
        yield


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end the block as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _answered_by(interrupt, signal.SIGTERM, signal.SIGHUP):
        yield


@contextlib.contextmanager
def _answered_by(handler: Handler, *signals: signal.Signals) -> Iterator[None]:
    """Answer signals in another way for a while; only the main thread may, for others nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {one: signal.signal(one, handler) for one in signals}
    try:
        yield
    finally:
        for one, before in kept.items():
            signal.signal(one, before)
