"""Shuffle files: nothing is lost, keys are sorted, values come in another order at every attempt."""

from __future__ import annotations

import random
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

from emulator.live.tasks import shuffle

SOME = [(b"k%03d" % (n * 7 % 50), b"v%d" % n) for n in range(500)]


def write(
    tmp_path: Path, name: str, records: list[shuffle.Record], partitions: int = 3, **more
) -> shuffle.Index:
    output = shuffle.MapOutput(
        str(tmp_path / name),
        partitions,
        more.get("fields", shuffle.Fields()),
        more.get("limit", 1 << 20),
        more.get("combine"),
    )
    output.add(records)
    return shuffle.read_index(output.finish())


def summed(blocks) -> list[shuffle.Record]:
    lines = b"".join(blocks).splitlines()
    keys = groupby((line.split(b"\t") for line in lines), lambda each: each[0])
    return [(key, b"%d" % sum(int(value) for _, value in group)) for key, group in keys]


@pytest.mark.parametrize("limit", [1, 5000, 1 << 20])
def test_every_record_comes_back_once_sorted_by_its_key(tmp_path: Path, limit: int) -> None:
    indexes = [write(tmp_path, f"m{n}", SOME[n::4], limit=limit) for n in range(4)]
    found: list[shuffle.Record] = []
    for place in range(3):
        records = list(shuffle.Merge(f"a{limit}", str(tmp_path)).records_of(indexes, place))
        assert [key for key, _ in records] == sorted(key for key, _ in records)
        assert {shuffle.partition_of(key, 3, shuffle.Fields()) for key, _ in records} <= {place}
        found += records
    assert Counter(found) == Counter(SOME)
    assert not list(tmp_path.glob("*.spill*"))
    assert not list(tmp_path.glob("*.tmp"))


def test_values_of_a_key_come_in_another_order_at_another_attempt_even_from_one_map(tmp_path: Path) -> None:
    index = write(tmp_path, "m", [(b"k", b"%d" % n) for n in range(100)], 1)
    first, again, other = (
        list(shuffle.Merge(seed, str(tmp_path)).records_of([index], 0)) for seed in ("a_0", "a_0", "a_1")
    )
    assert first == again
    assert first != other
    assert sorted(first) == sorted(other)


def test_a_combiner_is_applied_to_spills_and_again_at_the_reduce(tmp_path: Path) -> None:
    calls: list[int] = []

    def combine(blocks) -> list[shuffle.Record]:
        calls.append(1)
        return summed(blocks)

    ones = [(b"k%d" % (n % 5), b"1") for n in range(200)]
    indexes = [write(tmp_path, f"m{n}", ones, 1, combine=combine) for n in range(4)]
    assert all(index.partitions[0][2] == 5 for index in indexes)
    before = len(calls)
    records = list(shuffle.Merge("a", str(tmp_path), combine).records_of(indexes, 0))
    assert len(calls) > before
    assert summed(shuffle.lines_of(records)) == [(b"k%d" % n, b"160") for n in range(5)]


def test_more_segments_than_may_be_open_are_merged_in_rounds(tmp_path: Path) -> None:
    indexes = [write(tmp_path, f"m{n}", SOME[n::150], 1) for n in range(150)]
    assert Counter(shuffle.Merge("a", str(tmp_path)).records_of(indexes, 0)) == Counter(SOME)


def test_secondary_sort_partitions_by_the_first_field_only(tmp_path: Path) -> None:
    rows = [(b"a%d,%d" % (n % 9, n), b"v") for n in range(90)]
    fields = shuffle.Fields(1, b",")
    index = write(tmp_path, "m", rows, 4, fields=fields)
    homes: dict[bytes, set[int]] = {}
    for place in range(4):
        for key, _ in shuffle.read_segment(index, place):
            homes.setdefault(key.split(b",")[0], set()).add(place)
    assert all(len(places) == 1 for places in homes.values())
    assert len(set.union(*homes.values())) > 1


def test_an_output_shorter_than_its_index_is_an_error(tmp_path: Path) -> None:
    index = write(tmp_path, "m", SOME, 1)
    Path(index.data).write_bytes(Path(index.data).read_bytes()[:-20])
    with pytest.raises(ValueError, match="shorter"):
        list(shuffle.read_segment(index, 0))


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("last", [b"", b"last"])
def test_splits_give_every_line_once_wherever_they_are_cut(
    tmp_path: Path, ending: bytes, last: bytes
) -> None:
    chance = random.Random(7)
    lines = [bytes(chance.choices(b"abc\t\x00\xff", k=chance.randrange(40))) for _ in range(60)]
    data = ending.join([*lines, last])
    path = tmp_path / "in"
    path.write_bytes(data)
    expected = data.splitlines()
    for size in (1, 7, 50, len(data)):
        if ending == b"\r" and size != len(data):
            continue  # lines are sought by LF when a split begins in the middle
        found: list[bytes] = []
        for offset in range(0, len(data), size):
            for block in shuffle.read_split(str(path), offset, min(size, len(data) - offset)):
                assert block.endswith(b"\n")
                found += block.split(b"\n")[:-1]
        assert found == expected, size


def test_lines_are_cut_the_same_however_the_stream_is() -> None:
    data = b"a\r\nb\rc\n\n" + b"x" * 300_000 + b"\nlast"
    for size in (1, 2, 3, 1000, len(data)):
        lines = shuffle.OutputLines()
        found = [line for at in range(0, len(data), size) for line in lines.take(data[at : at + size])]
        assert found + lines.finish() == data.splitlines()
        if size == 1:
            data = data.replace(b"x" * 299_000, b"")


@pytest.mark.parametrize(
    ("line", "fields", "record"),
    [(b"k\tv\tw", 1, (b"k", b"v\tw")), (b"k", 1, (b"k", b"")), (b"\tv", 1, (b"", b"v")),
     (b"a\tb\tc", 2, (b"a\tb", b"c")), (b"a\tb", 2, (b"a\tb", b"")), (b"", 2, (b"", b""))],
)  # fmt: skip
def test_a_line_is_split_after_so_many_fields(line: bytes, fields: int, record: shuffle.Record) -> None:
    assert shuffle.split_record(line, b"\t", fields) == record
