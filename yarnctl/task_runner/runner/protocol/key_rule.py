"""Keys: what a key of a job is, where its groups begin, and their digest.

The same groups, digest and borders wherever the pieces of the input end, and under every Python from 3.8 on.
"""

from __future__ import annotations

import hashlib
import re
import sys
from typing import Any, Iterator

POSSESSIVE = sys.version_info >= (3, 11, 5)
"""Expressions that never give back what they took are a fifth faster where Python has them, and has them
right: 3.11.0 to 3.11.4 (Debian 12) match what they must not (CPython issue 106052)."""

LONG_LINE_BYTES = 1 << 18


class KeyRule:
    """Finds keys in whole lines: the reducer groups by ``fields``, Hadoop sorts by ``key_fields``."""

    def __init__(
        self,
        fields: int = 1,
        map_separator: bytes = b"\t",
        reduce_separator: bytes = b"\t",
        key_fields: int = 0,
    ) -> None:
        self.fields = fields
        self.key_fields = key_fields or fields
        self.map_separator = map_separator
        self.reduce_separator = reduce_separator
        ends = b"".join(b"\\x%02x" % byte for byte in sorted(set(map_separator + reduce_separator)))
        hold = b"+" if POSSESSIVE else b""
        field = b"[^%s\\n]*%s" % (ends, hold)
        more = b"(?:%s%s){0,%d}%s" % (re.escape(map_separator), field, fields - 1, hold)
        key = field + (more if fields > 1 else b"")
        self._key = re.compile(key)
        self._line = re.compile(b"(%s)[^\\n]*%s\\n" % (key, hold))
        # With one field a key ends wherever a separator or the line does, so lines that repeat the
        # key of the line before can be passed over inside the expression: two to three times faster.
        self._group = re.compile(
            b"(%s)[^\\n]*%s\\n(?:\\1(?=[%s\\n])[^\\n]*%s\\n)*%s" % (key, hold, ends, hold, hold)
        )

    def keys(self, lines: bytes) -> list[bytes]:
        """Return the keys of whole lines in order; of equal neighbours at least the first."""
        return (self._group if self.fields == 1 else self._line).findall(lines)

    def lines(self, lines: bytes) -> Iterator[tuple[int, bytes]]:
        """Give each line's place and key."""
        for match in self._line.finditer(lines):
            yield match.start(), match.group(1)

    def key_of_start(self, data: bytes, final: bool = False) -> bytes | None:
        """Return the key of a line that has no end yet, None while the key may go on."""
        match = self._key.match(data)
        if match is None:
            return None
        return match.group() if final or match.end() < len(data) else None

    def all_of(self, key: bytes, lines: bytes) -> bool:
        """Say whether every line has this key, quickly for large groups; False may also mean "unknown"."""
        end = lines[len(key) : len(key) + 1]
        start = key + end
        last = lines.rfind(b"\n", 0, -1) + 1
        if not (lines.startswith(start) and lines.startswith(start, last)):
            return False
        if end == self.map_separator:  # a short key is another one when a field follows
            if key.count(end) < self.fields - 1:
                return False
        elif end != self.reduce_separator:
            return False
        return lines.count(b"\n") == lines.count(b"\n" + start) + 1

    def in_order(self, keys: list[bytes]) -> bool:
        """Say whether keys rise as Hadoop's default comparator leaves them: by their bytes.

        The first fields of a longer key are compared with the separator that ended them. A key with
        fewer fields may then seem out of order beside one that continues with a lower byte: not proven.
        """
        if self.fields < self.key_fields:
            keys = [key + self.map_separator for key in keys]
        return keys == sorted(keys)

    def as_json(self) -> dict[str, Any]:
        """Return its form in the manifest."""
        return {
            "fields": self.fields,
            "key_fields": self.key_fields,
            "map_separator": self.map_separator.hex(),
            "reduce_separator": self.reduce_separator.hex(),
        }


class Scanner:
    """Counts key groups and digests their keys while bytes go by, in pieces of any size.

    ``groups`` counts groups begun. Nothing is kept but the beginning of an unfinished line whose
    key is not known yet, so the cost is that of one regular expression over the input.
    """

    def __init__(self, rule: KeyRule) -> None:
        self.rule = rule
        self.groups = 0
        self.key: bytes | None = None
        self.bytes = 0
        self.sorted = True
        self._digest = hashlib.sha256()
        self._carry = b""
        self._in_line = False  # inside a line whose key is accounted for

    @property
    def settled(self) -> bool:
        """Say whether the key of every byte taken is known."""
        return not self._carry

    def digest(self) -> str:
        """Return the digest of the distinct keys so far."""
        return self._digest.hexdigest()

    def take(self, data: bytes) -> None:
        """Account for bytes that were handed on, wherever they end."""
        self.bytes += len(data)
        data = self._carry + data
        at, _ = self._advance(data, sys.maxsize, final=False)
        self._carry = data[at:]

    def take_groups(self, data: bytes, limit: int, final: bool = False) -> tuple[int, bool]:
        """Account for bytes as long as no more than ``limit`` groups are begun.

        Return how many bytes were taken and whether the next line begins group ``limit`` + 1;
        if not, show the rest again with more after it. ``final``: nothing comes after ``data``.
        """
        at, found = self._advance(data, limit, final)
        self.bytes += at
        return at, found

    def _advance(self, data: bytes, limit: int, final: bool) -> tuple[int, bool]:
        """Account for whole lines and long beginnings; return as :meth:`take_groups`."""
        at = self._end_of_line(data)
        end = data.rfind(b"\n") + 1
        if end > at:
            lines = data[at:end]
            keys = self._new_keys(lines)
            if self.groups + len(keys) > limit:
                return at + self._walk(lines, limit), True
            self._account(keys)
            at = end
        return self._take_start(data, at, limit, final) if at < len(data) else (at, False)

    def finish(self) -> None:
        """Account for a last line without an end."""
        if self._carry:
            self._account(self._new_keys(self._carry + b"\n"))
            self._carry = b""

    def _end_of_line(self, data: bytes) -> int:
        if not self._in_line:
            return 0
        end = data.find(b"\n")
        if end < 0:
            return len(data)
        self._in_line = False
        return end + 1

    def _take_start(self, data: bytes, at: int, limit: int, final: bool) -> tuple[int, bool]:
        rest = data[at:]
        key = self.rule.key_of_start(rest, final)
        if key is None:
            return at, False
        if key != self.key and self.groups >= limit:
            return at, True
        if final or len(rest) > LONG_LINE_BYTES:
            self._account([key])
            self._in_line = not final
            return len(data), False
        return at, False

    def _walk(self, lines: bytes, limit: int) -> int:
        for at, key in self.rule.lines(lines):
            if key != self.key:
                if self.groups >= limit:
                    return at
                self._account([key])
        raise AssertionError("no border where one was counted")

    def _new_keys(self, lines: bytes) -> list[bytes]:
        """Return the keys of groups that begin in these lines."""
        if self.key is not None and self.rule.all_of(self.key, lines):
            return []
        keys = self.rule.keys(lines)
        if self.rule.fields > 1:
            keys = [key for at, key in enumerate(keys) if not at or key != keys[at - 1]]
        if keys and keys[0] == self.key:
            del keys[0]
        return keys

    def _account(self, keys: list[bytes]) -> None:
        if keys and keys[0] == self.key:
            keys = keys[1:]
        if not keys:
            return
        if not self.rule.in_order(keys) or (
            self.key is not None and not self.rule.in_order([self.key, keys[0]])
        ):
            self.sorted = False
        keys.append(b"")
        self._digest.update(b"\n".join(keys))
        self.groups += len(keys) - 1
        self.key = keys[-2]
