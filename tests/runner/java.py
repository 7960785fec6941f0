"""Java as it feeds a streaming reducer: a buffer of 128 KiB, and what it makes of a broken pipe.

Law: PipeMapRed's, seen on Hadoop 3.4.2: a write that breaks during reduce() fails the attempt; the last
flush, when the input is at its end, may break and only leaves a warning.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from typing import IO

BUFFER_BYTES = 128 << 10


def pieces(data: bytes, separator: bytes = b"\t") -> Iterator[bytes]:
    """Return what TextInputWriter writes, write by write."""
    for line in data.split(b"\n")[:-1]:
        key, _, value = line.partition(separator)
        yield from (key, separator, value, b"\n")


def flushes(data: bytes) -> Iterator[tuple[bytes, bool]]:
    """Return what BufferedOutputStream writes, and whether that is the last flush."""
    held = b""
    for piece in pieces(data):
        if len(held) + len(piece) > BUFFER_BYTES or len(piece) >= BUFFER_BYTES:
            yield held, False
            held = b""
        if len(piece) >= BUFFER_BYTES:
            yield piece, False
        else:
            held += piece
    yield held, True


class Java(threading.Thread):
    """Feeds one process; ``failed`` says whether a write broke that counts."""

    def __init__(self, process: subprocess.Popen[bytes], data: bytes) -> None:
        super().__init__(daemon=True)
        assert process.stdin
        self.stream: IO[bytes] = process.stdin
        process.stdin = None
        self.data = data
        self.failed = False
        self.start()

    def run(self) -> None:
        try:
            for block, is_last in flushes(self.data):
                self.is_last = is_last
                view = memoryview(block)
                while view:
                    view = view[self.stream.write(view) :]
        except BrokenPipeError:
            self.failed = not self.is_last
        self.stream.close()

    is_last = False
