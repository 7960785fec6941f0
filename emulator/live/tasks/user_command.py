r"""A user's command on pipes, as Hadoop streaming runs it.

Law: whatever the command does is visible to the task and nothing is hidden: its standard output is read to
the end, its standard error goes to the task's log line by line, its status decides. The command is never
given to a shell. Standard library only: task processes run this file.

A command that ends with status 0 while input is still being written has not read it all: that is a failure
(a broken pipe in Java), never a short output.

Its standard error is read as Hadoop's LineReader and PipeMapRed do. A line ends at ``\n``, ``\r`` or
``\r\n``; a counter's line is trimmed, split at commas without empty fields at its end, and its number is what
``Long.parseLong`` takes; sums wrap around.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO

BLOCK_BYTES = 1 << 17
LONG_RANGE = range(-(1 << 63), 1 << 63)
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_BLANKS = "".join(chr(code) for code in range(0x21))


class CommandFailed(Exception):
    """The command failed; the text is the attempt's diagnostics."""


class Reporter:
    """What commands say on standard error: status and counters; thread safe."""

    def __init__(self, prefix: str = "reporter:") -> None:
        self.status = ""
        self.counters: dict[str, dict[str, int]] = {}
        self.changed = threading.Event()
        self.progress = 0
        self._status = f"{prefix}status:".encode()
        self._counter = f"{prefix}counter:".encode()
        self._lock = threading.Lock()

    def line(self, line: bytes) -> None:
        """Take one line; what is no reporter's line goes to the log."""
        self.progress += 1
        if line.startswith(self._status):
            self.status = line[len(self._status) :].decode("utf-8", "replace").strip()
            self.changed.set()
        elif line.startswith(self._counter):
            found = counted(java_text(line[len(self._counter) :]))
            if found:
                self.count(*found)
                return
            sys.stderr.buffer.write(b"unparsable counter line: " + line + b"\n")
        else:
            sys.stderr.buffer.write(line + b"\n")
            sys.stderr.buffer.flush()

    def count(self, group: str, name: str, amount: int) -> None:
        """Add to a counter."""
        with self._lock:
            inside = self.counters.setdefault(group, {})
            inside[name] = wrapped(inside.get(name, 0) + amount)

    def snapshot(self) -> dict[str, dict[str, int]]:
        """Return the counters as they are now."""
        with self._lock:
            return {group: dict(inside) for group, inside in self.counters.items()}


class Piped:
    """One running command. ``take`` is given its standard output in blocks, by a thread of its own."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], reporter: Reporter, take: Callable[[bytes], object]
    ) -> None:
        self.argv = argv
        self.reporter = reporter
        self.process = _start(argv, env)
        self.fed_bytes = 0
        self._take = take
        self._problem: BaseException | None = None
        self._readers = [
            threading.Thread(target=self._read_output, name="output", daemon=True),
            threading.Thread(target=self._read_errors, name="errors", daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_output(self) -> None:
        handle = _handle(self.process.stdout)
        try:
            while data := os.read(handle, BLOCK_BYTES):
                self.reporter.progress += 1
                if self._problem is None:
                    self._take(data)
        except Exception as problem:  # raised by finish(), in the thread that waits
            self._problem = problem
            while os.read(handle, BLOCK_BYTES):
                pass

    def _read_errors(self) -> None:
        handle, lines = _handle(self.process.stderr), LineReader()
        while data := os.read(handle, BLOCK_BYTES):
            for line in lines.feed(data):
                self.reporter.line(line)
        for line in lines.finish():
            self.reporter.line(line)

    def feed(self, blocks: Iterable[bytes]) -> None:
        """Write the whole input; Failed if the command closes it early."""
        handle = _handle(self.process.stdin)
        try:
            for block in blocks:
                view = memoryview(block)
                while view:
                    written = os.write(handle, view)
                    view = view[written:]
                    self.fed_bytes += written
                self.reporter.progress += 1
        except BrokenPipeError:
            status = self._end()
            what = f"subprocess failed with code {status}" if status else "Broken pipe"
            raise CommandFailed(
                f"PipeMapRed: {what}: {self._name()} ended before all its input was read"
            ) from None

    def finish(self) -> None:
        """Close the input, read the output to its end; Failed unless the command ends with status 0."""
        status = self._end()
        if status:
            raise CommandFailed(
                f"PipeMapRed.waitOutputThreads(): subprocess failed with code {status}: {self._name()}"
            )
        if self._problem is not None:
            raise self._problem

    def _end(self) -> int:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        for reader in self._readers:
            reader.join()
        status = self.process.wait()
        return 128 - status if status < 0 else status

    def _name(self) -> str:
        return " ".join(self.argv)[:200]

    def kill(self) -> None:
        """End the command: SIGTERM, and SIGKILL if that is not enough."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(0.2)
            except subprocess.TimeoutExpired:
                self.process.kill()


def _start(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # What Java starts inherits SIGQUIT blocked (facts, section 4.3); ours has it blocked already.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGQUIT})
    try:
        return subprocess.Popen(  # noqa: S603 - the user's own command, as in Hadoop
            list(argv),
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
    except OSError as error:
        raise CommandFailed(f"Cannot run program {argv[0]!r}: {error.strerror}") from error


def _handle(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    return pipe.fileno()


# --- what the command writes to standard error -------------------------------------------------


class LineReader:
    """Cuts bytes that come in pieces into lines without their ends."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._after_return = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are known to have ended."""
        if self._after_return and data:
            data = data.removeprefix(b"\n")
            self._after_return = False
        self._after_return = data.endswith(b"\r") or (self._after_return and not data)
        found = data.splitlines(keepends=True)
        lines: list[bytes] = []
        for line in found:
            self._rest += line.rstrip(b"\r\n")
            if line.endswith((b"\r", b"\n")):
                lines.append(bytes(self._rest))
                self._rest.clear()
        return lines

    def finish(self) -> list[bytes]:
        """Return the last line, if it has no end."""
        return [bytes(self._rest)] if self._rest else []


def java_text(data: bytes) -> str:
    """Return bytes as Hadoop's Text shows them: a surrogate in UTF-8 is one U+FFFD (three in Python)."""
    return _SURROGATE.sub(b"\xef\xbf\xbd", data).decode("utf-8", "replace")


def counted(text: str) -> tuple[str, str, int] | None:
    """Return group, name and amount of what follows ``reporter:counter:``, None if nothing is counted."""
    fields = text.strip(_BLANKS).split(",")
    while fields and not fields[-1]:
        fields.pop()
    if len(fields) != 3:
        return None
    amount = parse_long(fields[2])
    return None if amount is None else (fields[0], fields[1], amount)


def parse_long(text: str) -> int | None:
    """Return what ``Long.parseLong`` makes of a text, None where it raises."""
    sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    values = [unicodedata.decimal(char, -1) if char <= "\uffff" else -1 for char in digits]
    if not values or -1 in values:
        return None
    plain = "".join(map(str, values)).lstrip("0")
    if len(plain) > 19:
        return None
    amount = int(f"{sign}{plain or 0}")
    return amount if amount in LONG_RANGE else None


def wrapped(value: int) -> int:
    """Return a sum as a Java long holds it."""
    return (value - LONG_RANGE.start) % (1 << 64) + LONG_RANGE.start
