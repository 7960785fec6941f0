"""Whatever the pieces, the keys and the cuts are: groups, digest and border come out the same."""

from __future__ import annotations

import contextlib
import hashlib
from itertools import groupby, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from yarnctl.task_runner.runner.protocol import key_rule
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule, Scanner
from yarnctl.task_runner.runner.protocol.manifests import parse_manifest, sealed
from yarnctl.task_runner.runner.protocol.stores import Unusable

FIELD = st.binary(max_size=3).map(lambda data: data.translate(None, b"\n.\t"))


def rules(possessive: bool) -> list[KeyRule]:
    """Return rules of every kind, as Python 3.11 or as an older one compiles them."""
    before, key_rule.POSSESSIVE = key_rule.POSSESSIVE, possessive
    made = [
        KeyRule(1, b"\t", b"\t", 1),
        KeyRule(1, b"\t", b"\t", 2),
        KeyRule(2, b"\t", b"\t", 2),
        KeyRule(1, b".", b"\t", 2),
        KeyRule(2, b".", b"\t", 2),
    ]
    key_rule.POSSESSIVE = before
    return made


RULES = st.sampled_from(rules(possessive=False) + (rules(possessive=True) if key_rule.POSSESSIVE else []))
LINES = st.lists(st.lists(FIELD, min_size=1, max_size=4), max_size=30)
JOINS = st.lists(st.sampled_from([b".", b"\t"]), min_size=3, max_size=3)
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=20)

quick = settings(derandomize=True, max_examples=examples(150), database=None)


def slow_key(rule: KeyRule, line: bytes) -> bytes:
    """Return a line's key, byte by byte, as the documentation says it."""
    fields = 0
    for at, byte in enumerate(line):
        one = bytes([byte])
        if one == rule.map_separator:
            fields += 1
            if fields == rule.fields:
                return line[:at]
        elif one == rule.reduce_separator:
            return line[:at]
    return line


def pieces(data: bytes, sizes: list[int]):
    """Cut data into pieces of these sizes, again and again."""
    at = turn = 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        yield data[at : at + size]
        at, turn = at + size, turn + 1


def text(lines: list[list[bytes]], joins: list[bytes], end: bool) -> bytes:
    """Return input made of these lines, as they come or without the last line's end."""
    made = [b"".join(field + joins[at % 3] for at, field in enumerate(line)) for line in sorted(lines)]
    return b"\n".join(made) + (b"\n" if end and made else b"")


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines; an end without a line after it is none."""
    found = data.split(b"\n")
    return found[:-1] if not found[-1] else found


@quick
@given(RULES, LINES, JOINS, SIZES, st.booleans())
def test_groups_and_digest_do_not_depend_on_the_pieces(rule, lines, joins, sizes, end):
    data = text(lines, joins, end)
    runs = [key for key, _ in groupby(slow_key(rule, line) for line in lines_of(data))]
    scanner = Scanner(rule)
    for piece in pieces(data, sizes):
        scanner.take(piece)
    scanner.finish()
    assert scanner.groups == len(runs)
    assert scanner.digest() == hashlib.sha256(b"".join(key + b"\n" for key in runs)).hexdigest()
    assert scanner.bytes == len(data)
    assert not scanner.sorted or all(rule.in_order([one, other]) for one, other in pairwise(runs))


@quick
@given(RULES, LINES, JOINS, SIZES, st.booleans(), st.integers(0, 12), st.sampled_from([1, 4, 1 << 18]))
def test_the_border_is_where_the_next_group_begins(rule, lines, joins, sizes, end, limit, long_line_bytes):
    data = text(lines, joins, end)
    runs = [(key, list(group)) for key, group in groupby(lines_of(data), lambda line: slow_key(rule, line))]
    before, key_rule.LONG_LINE_BYTES = key_rule.LONG_LINE_BYTES, long_line_bytes
    try:
        taken, found = taken_until(Scanner(rule), data, sizes, limit)
    finally:
        key_rule.LONG_LINE_BYTES = before
    assert found is (len(runs) > limit)
    whole = sum(len(line) + 1 for _, group in runs[:limit] for line in group)
    assert taken == min(whole, len(data))


def taken_until(scanner: Scanner, data: bytes, sizes: list[int], limit: int) -> tuple[int, bool]:
    """Show data piece by piece, what was not taken again, as the runner does."""
    taken, rest = 0, b""
    for piece in pieces(data, sizes):
        rest += piece
        size, found = scanner.take_groups(rest, limit)
        taken, rest = taken + size, rest[size:]
        if found:
            return taken, True
    size, found = scanner.take_groups(rest, limit, final=True)
    return taken + size, found


@quick
@given(st.data())
def test_no_torn_or_changed_manifest_is_read(data):
    fields = {
        "schema": 1, "generation": 1, "attempt": "attempt_1_1_r_0_0", "groups_done": 3, "keys_digest": "00",
        "last_key": "YQ==", "output_bytes": 0, "parts": [], "state": None, "counters": {},
        "past_containers": [], "order": "o",
    }  # fmt: skip
    whole = sealed(fields)
    assert parse_manifest(whole).groups_done == 3
    at = data.draw(st.integers(0, len(whole) - 1))
    other = whole[:at] + data.draw(st.binary(max_size=3)) + whole[at + data.draw(st.integers(1, 5)) :]
    with contextlib.suppress(Unusable):
        assert parse_manifest(other).raw == fields  # nothing but spelling may have changed
