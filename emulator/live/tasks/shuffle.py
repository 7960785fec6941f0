"""Shuffle: map outputs as files, sorted by the bytes of the key; merged for reduces in an order of their own.

Law: a file is complete once it has its final name. What a key is sorted and partitioned by are its bytes and
nothing else. The values of one key come in another order at every attempt of a reduce, as they do in real
Hadoop, where hosts are queried at random; only a job that relies on that order is affected.

A record is a key and a value, neither of which holds a newline; a file holds key and value on a line each,
partition after partition; the index beside it has where each begins. Standard library only: task processes
run this file.
"""

from __future__ import annotations

import heapq
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple
from zlib import crc32

Record = tuple[bytes, bytes]
Combine = Callable[[Iterable[bytes]], Iterable[Record]]
"""Takes ``key TAB value NEWLINE`` blocks in the order of keys, gives records back."""

BLOCK_BYTES = 1 << 17
MOST_SEGMENTS = 64
"""So many files are merged at once; more are merged in rounds."""
PERMUTED_BYTES = 8 << 20
"""So many bytes of one key's values are put in another order at a time."""
RECORD_BYTES = 120
"""What a record costs in memory besides its own bytes, about."""

_key = itemgetter(0)


class Fields(NamedTuple):
    """How many fields of a key decide on its partition (0: the whole key), and what ends a field."""

    number: int = 0
    separator: bytes = b"\t"


def partition_of(key: bytes, partitions: int, fields: Fields) -> int:
    """Return the partition of a key: by its bytes, the same on every machine."""
    if partitions == 1:
        return 0
    if fields.number:
        key = fields.separator.join(key.split(fields.separator, fields.number)[: fields.number])
    return crc32(key) % partitions


class Index(NamedTuple):
    """Where the partitions of a map's output are in its file: (offset, bytes, records) each."""

    data: str
    partitions: tuple[tuple[int, int, int], ...]


def read_index(path: str) -> Index:
    """Return an index; ValueError or OSError if it is not a whole one."""
    with open(path, "rb") as file:
        raw = json.load(file)
    return Index(os.path.join(os.path.dirname(path), raw["data"]), tuple(map(tuple, raw["partitions"])))


class MapOutput:
    """Collects a map's records, spills them sorted, merges the spills into one file with an index.

    ``limit_bytes`` bounds what is held in memory. ``combine`` is applied to every spill and once more where
    three or more are merged (as Hadoop does), so that it must not count on being applied once.
    """

    def __init__(
        self, path: str, partitions: int, fields: Fields, limit_bytes: int, combine: Combine | None = None
    ) -> None:
        self.path = path
        self.fields = fields
        self.limit_bytes = limit_bytes
        self.combine = combine
        self.records = 0
        self.bytes = 0
        self._buffered: list[list[Record]] = [[] for _ in range(partitions)]
        self._buffered_bytes = 0
        self._spills: list[Index] = []

    def add(self, records: Iterable[Record]) -> None:
        """Take records in."""
        held, fields, partitions = self._buffered, self.fields, len(self._buffered)
        for record in records:
            key, value = record
            held[partition_of(key, partitions, fields)].append(record)
            size = len(key) + len(value)
            self.bytes += size
            self.records += 1
            self._buffered_bytes += size + RECORD_BYTES
            if self._buffered_bytes > self.limit_bytes:
                self._spill()
                held = self._buffered

    def _spill(self) -> None:
        held, self._buffered = self._buffered, [[] for _ in self._buffered]
        self._buffered_bytes = 0
        number = len(self._spills)
        parts: list[Iterable[Record]] = []
        for records in held:
            records.sort(key=_key)
            parts.append(self._combined(records))
        self._spills.append(write_segments(f"{self.path}.spill{number}", parts))

    def _combined(self, records: Iterable[Record]) -> Iterable[Record]:
        if self.combine is None:
            return records
        return sorted(self.combine(lines_of(records)), key=_key)

    def finish(self) -> str:
        """Write the output and its index under their final names; return the index's path."""
        if not self._spills or any(self._buffered):
            self._spill()
        spills = self._spills
        if len(spills) == 1:
            os.replace(spills[0].data, self.path)
            index = spills[0]._replace(data=self.path)
        else:
            index = write_segments(self.path, (self._merged(place) for place in range(len(self._buffered))))
            for spill in spills:
                os.unlink(spill.data)
        return write_index(index)

    def _merged(self, place: int) -> Iterable[Record]:
        merged = heapq.merge(*(read_segment(spill, place) for spill in self._spills), key=_key)
        return self._combined(merged) if len(self._spills) > 2 else merged


def write_segments(path: str, parts: Iterable[Iterable[Record]]) -> Index:
    """Write partitions one after the other into a new file."""
    partitions: list[tuple[int, int, int]] = []
    with open(path + ".tmp", "wb", BLOCK_BYTES) as file:
        for records in parts:
            begin, count = file.tell(), 0
            for key, value in records:
                file.write(b"%b\n%b\n" % (key, value))
                count += 1
            partitions.append((begin, file.tell() - begin, count))
    os.replace(path + ".tmp", path)
    return Index(path, tuple(partitions))


def write_index(index: Index) -> str:
    """Write the index beside its data; from then on the output counts. Return its path."""
    path = index.data + ".index"
    text = json.dumps({"data": os.path.basename(index.data), "partitions": index.partitions})
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)
    return path


def read_segment(index: Index, place: int) -> Iterator[Record]:
    """Give the records of one partition of one file."""
    offset, _, records = index.partitions[place]
    if not records:
        return
    with open(index.data, "rb", BLOCK_BYTES) as file:
        file.seek(offset)
        for _ in range(records):
            key, value = file.readline(), file.readline()
            if not value.endswith(b"\n"):
                raise ValueError(f"{index.data}: shorter than its index says")
            yield key[:-1], value[:-1]


def lines_of(records: Iterable[Record], separator: bytes = b"\t") -> Iterator[bytes]:
    """Give records as a command reads them, in blocks."""
    block: list[bytes] = []
    size = 0
    for key, value in records:
        line = b"%b%b%b\n" % (key, separator, value)
        block.append(line)
        size += len(line)
        if size >= BLOCK_BYTES:
            yield b"".join(block)
            block, size = [], 0
    if block:
        yield b"".join(block)


class Merge:
    """Merges one partition of all map outputs for one attempt at a reduce.

    ``seed`` names the attempt: it decides in which order segments and the values of a key come, and which
    segments are combined before they are merged.
    """

    def __init__(self, seed: str, folder: str, combine: Combine | None = None) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.combine = combine
        self.groups = 0
        self.records = 0

    def records_of(self, indexes: list[Index], place: int) -> Iterator[Record]:
        """Give the records in the order of keys, the values of a key in an order of this attempt's own."""
        found = [index for index in indexes if index.partitions[place][2]]
        self.chance.shuffle(found)
        segments = [(index, place) for index in found]
        number = 0
        while len(segments) > MOST_SEGMENTS or (self.combine and number == 0 and len(segments) > 2):
            size = min(MOST_SEGMENTS, max(2, len(segments) // 2))
            chosen, segments = segments[:size], segments[size:]
            segments.append((self._round(chosen, number), 0))
            number += 1
        return self._permuted(self._merge(segments))

    def _merge(self, segments: list[tuple[Index, int]]) -> Iterator[Record]:
        return heapq.merge(*(read_segment(index, place) for index, place in segments), key=_key)

    def _round(self, segments: list[tuple[Index, int]], number: int) -> Index:
        """Merge some segments into one file of this attempt's own, through the combiner if there is one."""
        records: Iterable[Record] = self._merge(segments)
        if self.combine is not None:
            records = sorted(self.combine(lines_of(records)), key=_key)
        return write_segments(os.path.join(self.folder, f"merge-{number}"), [records])

    def _permuted(self, records: Iterator[Record]) -> Iterator[Record]:
        for _, group in groupby(records, _key):
            self.groups += 1
            rest = iter(group)
            first = next(rest)
            second = next(rest, None)
            if second is None:
                self.records += 1
                yield first
                continue
            held, size = [first, second], 0
            for record in rest:
                held.append(record)
                size += len(record[1]) + RECORD_BYTES
                if size > PERMUTED_BYTES:
                    yield from self._shuffled(held)
                    held, size = [], 0
            yield from self._shuffled(held)

    def _shuffled(self, held: list[Record]) -> list[Record]:
        self.chance.shuffle(held)
        self.records += len(held)
        return held


def split_record(line: bytes, separator: bytes, fields: int) -> Record:
    """Split a command's output line after ``fields`` fields; without enough of them it is all key."""
    if fields == 1:
        key, _, value = line.partition(separator)
        return key, value
    at = -1
    for _ in range(fields):
        at = line.find(separator, at + 1)
        if at < 0:
            return line, b""
    return line[:at], line[at + len(separator) :]


class OutputLines:
    """Cuts a stream of bytes into lines as Hadoop's LineReader does: at CR, LF or both."""

    def __init__(self) -> None:
        self._carry: list[bytes] = []

    def take(self, data: bytes) -> list[bytes]:
        """Return the lines that are whole now."""
        cut = data.rfind(b"\n") + 1
        if not cut:
            self._carry.append(data)
            return []
        whole = b"".join((*self._carry, data[:cut]))
        self._carry = [data[cut:]] if cut < len(data) else []
        return whole.splitlines()

    def finish(self) -> list[bytes]:
        """Return what is left at the end."""
        rest, self._carry = b"".join(self._carry), []
        return rest.splitlines()


def read_split(path: str, offset: int, length: int) -> Iterator[bytes]:
    """Give the lines of one split in blocks, each line ending in a newline.

    A line belongs to the split in which it begins; a split that does not begin the file passes over the rest
    of the line before (as TextInputFormat does).
    """
    with open(path, "rb", BLOCK_BYTES) as file:
        if offset:
            file.seek(offset - 1)
            file.readline()
        left = offset + length - file.tell()
        while left > 0:
            data = file.read(min(left, BLOCK_BYTES))
            if not data:
                return
            if len(data) == left or not data.endswith(b"\n"):
                data += b"" if data.endswith(b"\n") else file.readline()
            left = offset + length - file.tell()
            yield _normal(data)


def _normal(data: bytes) -> bytes:
    if b"\r" in data:
        data = b"\n".join(data.splitlines()) + b"\n"
    return data if data.endswith(b"\n") else data + b"\n"
