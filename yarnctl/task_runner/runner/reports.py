"""Standard error: whole lines to Hadoop and to the log, and the counters of the child.

Lines and counters are what Hadoop's PipeMapRed and Java make of them. A counter that did not reach Hadoop
fails the attempt; text for the log alone may be lost.
"""

from __future__ import annotations

import os
import threading

from yarnctl.task_runner.runner.protocol.key_rule import LONG_LINE_BYTES
from yarnctl.task_runner.runner.protocol.manifests import Counters
from yarnctl.task_runner.runner.protocol.stores import SMALL_FILE_BYTES, write_all


class Errors:
    """Standard error, shared by the child and the runner: whole lines only, counters noted.

    The child's status lines are not passed on: the task has one status, and the runner needs it. The last of
    them follows the runner's own text there, after BAR. ``doubt``: why it is not certain what Hadoop has
    counted, empty if it is. ``lost``: why counters did not reach Hadoop, empty if they did; such an attempt
    must not succeed.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix.encode()
        self.counters: Counters = {}
        self.said = ""
        self.news = False
        self.doubt = ""
        self.lost = ""
        self._lock = threading.Lock()
        self._torn = False  # a write failed, perhaps in the middle of a line
        self._at = "start"
        """Where the output is: at a line's ``start``, within the child's line (``open``), in one that the
        child will not continue with (``ended``), or at a start while the child's line does (``broken``)."""

    def note(self, text: str) -> None:
        """Write a line to the task's log."""
        self._line(f"yarnctl: {text}")

    def status(self, text: str) -> None:
        """Write a status line to the master; it also keeps a waiting task alive."""
        self.news = False
        ours = text.replace(BAR, " / ")
        self._line(f"{self.prefix.decode()}status:yarnctl {ours}{BAR + self.said if self.said else ''}")

    def count(self, group: str, name: str, amount: int) -> None:
        """Report a counter to the master."""
        line = f"{self.prefix.decode()}counter:{group},{name},{amount}"
        self._write(line.encode("utf-8", "surrogateescape") + b"\n")

    def pass_on(self, source: int) -> None:
        """Copy a child's standard error line by line until it ends."""
        carry, inside = b"", False  # inside: in a line whose beginning was passed on
        for data in iter(lambda: os.read(source, 1 << 16), b""):
            carry += data
            cut, reports = whole_lines(carry), not inside and carry.startswith(self.prefix[: len(carry)])
            if not cut:
                if len(carry) < (SMALL_FILE_BYTES if reports else LONG_LINE_BYTES):
                    continue
                if reports:
                    self.doubt = f"a line to Hadoop is longer than {SMALL_FILE_BYTES} bytes"
            size = cut or len(carry) - carry.endswith(b"\r")
            self._take(carry[:size], inside)
            carry, inside = carry[size:], not cut
        self._take(carry, inside)
        with self._lock:
            self._at = "ended" if self._at == "open" else "start" if self._at == "broken" else self._at

    def _take(self, lines: bytes, inside: bool) -> None:
        """Read whole lines (the first may be the rest of one) and pass on what is no status line."""
        if self.prefix not in lines:
            self._write(lines, own_line=False)
            return
        kept = []
        for line in lines.splitlines(keepends=True):  # of bytes: at \n, \r and \r\n only, as LineReader
            if inside or not self._read_report(line.rstrip(b"\r\n")):
                kept.append(line)
            inside = False
        self._write(b"".join(kept), own_line=False)

    def _read_report(self, line: bytes) -> bool:
        """Add a counter; keep a status line and return True for it."""
        for kind in (b"counter:", b"status:"):
            if line.startswith(self.prefix + kind):
                text = line[len(self.prefix) + len(kind) :].decode("utf-8", "surrogateescape").strip(TRIMMED)
                if kind == b"status:":
                    self.said = (
                        text[:STATUS_TEXT_MAX].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                    )
                    self.news = True
                    return True
                self._count(text)
        return False

    def _count(self, text: str) -> None:
        columns = text.rstrip(",").split(",")  # as Java: empty fields at the end are none
        if len(columns) != 3:
            return
        if any(digit in DOUBTFUL_DIGITS for digit in columns[2]):
            self.doubt = "a counter's number has digits that some versions of Java do not accept"
        amount = java_long(columns[2])
        if amount is not None:
            add_counter(self.counters, columns[0], columns[1], amount)

    def _line(self, text: str) -> None:
        self._write(" ".join(text.splitlines()).encode("utf-8", "backslashreplace") + b"\n")

    def _write(self, data: bytes, own_line: bool = True) -> None:
        if not data:
            return
        with self._lock:
            if self._at == "ended" or (self._at == "open" and own_line):
                data, self._at = b"\n" + data, "broken" if self._at == "open" else "start"
            elif self._at == "broken" and not own_line:
                # The rest of a broken line must not be read as a line to Hadoop of its own.
                data = (b"." if self.prefix.startswith(b" ") else b" ") + data
            if not own_line:
                self._at = "start" if data.endswith((b"\n", b"\r")) else "open"
            if self._torn:
                data, self._torn = b"\n" + data, False
            try:
                write_all(2, data)
            except BrokenPipeError:
                return  # the log is not read: no reason to stop the work
            except OSError as error:
                self._torn = True
                if self.prefix + b"counter:" in data:
                    self.lost = f"counters were not sent: {error.strerror}"


BAR = " | "  # separates the runner's own text from the child's in a status

STATUS_TEXT_MAX = 512  # the length of a status that Hadoop keeps (mapreduce.task.max.status.length)

TRIMMED = "".join(map(chr, range(33)))  # what Java's String.trim removes

ZEROS = (
    0x0030, 0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66,
    0x0DE6, 0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50,
    0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
)  # fmt: skip
"""Where ten digits of a script begin: what Java's Character.digit takes for a digit, among its chars."""

DIGITS = {chr(zero + value): value for zero in ZEROS for value in range(10)}

DOUBTFUL_DIGITS = frozenset(chr(zero + value) for zero in (0x0DE6, 0xA9F0) for value in range(10))
"""Digits since Unicode 7: Java 8 does not have them, later ones do."""


def whole_lines(data: bytes) -> int:
    """Return where the last line ends that is known to end: a return at the very end may be half an end."""
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, max(0, len(data) - 1))) + 1


def java_long(text: str) -> int | None:
    """Return what Java's Long.parseLong makes of a text, None where it raises."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or any(digit not in DIGITS for digit in digits):
        return None
    plain = "".join(str(DIGITS[digit]) for digit in digits).lstrip("0") or "0"
    if len(plain) > 19:
        return None
    value = -int(plain) if text[0] == "-" else int(plain)
    return value if -(1 << 63) <= value < 1 << 63 else None


def add_counter(counters: Counters, group: str, name: str, amount: int) -> None:
    """Add to one counter; sums wrap around as Java's do."""
    inside = counters.setdefault(group, {})
    inside[name] = (inside.get(name, 0) + amount + (1 << 63)) % (1 << 64) - (1 << 63)
