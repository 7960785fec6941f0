"""The resource vector: components that are missing are 0, and every site without other types is as before."""

from __future__ import annotations

import copy
import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnctl.units import (
    NOTHING,
    Resources,
    at_least,
    at_most,
    decode_vector,
    dominant,
    fits,
    minus,
    plus,
    times,
)

VECTORS = st.lists(st.integers(-4, 4), min_size=2, max_size=5).map(lambda parts: Resources(*parts))


def padded(vector: Resources) -> list[int]:
    return [*vector, 0, 0, 0][:5]


@given(VECTORS, VECTORS, st.integers(-3, 3))
def test_arithmetic_is_that_of_each_component(left, right, count):
    pairs = list(zip(padded(left), padded(right), strict=True))
    assert padded(plus(left, right)) == [one + other for one, other in pairs]
    assert padded(minus(left, right)) == [one - other for one, other in pairs]
    assert padded(at_least(left, right)) == [max(pair) for pair in pairs]
    assert padded(at_most(left, right)) == [min(pair) for pair in pairs]
    assert padded(times(left, count)) == [part * count for part in padded(left)]
    assert fits(left, right) == all(one <= other for one, other in pairs)
    for made in (plus(left, right), minus(left, right), at_least(left, right), times(left, count)):
        assert type(made) is Resources
        assert len(made) == 2 or made[-1] != 0


@pytest.mark.parametrize(
    ("used", "share"),
    [(Resources(1, 0), 0.1), (Resources(1, 2), 0.2), (Resources(1, 2, 3), 0.75), (Resources(1, 2, 0, 1), 0.5),
     (Resources(1, 2, 0, 0, 9), 0.2)],
)  # fmt: skip
def test_the_dominant_share_counts_every_type_of_which_the_cluster_has_some(used, share):
    total = Resources(10, 10, 4, 2)
    assert dominant(used, total) == share * 100
    assert dominant(used, Resources(10, 10)) == max(used[:2]) * 10


@given(VECTORS)
def test_a_vector_is_written_in_its_shortest_form_and_read_back(vector):
    told = msgspec.json.encode(vector)
    assert told == str(list(vector)).replace(" ", "").encode()
    assert msgspec.json.decode(told, type=Resources, dec_hook=decode_vector) == vector
    assert pickle.loads(pickle.dumps(vector)) == copy.deepcopy(vector) == vector


@pytest.mark.parametrize("told", [b"[]", b"[1]", b'[1,"2"]', b"[1,2.5]", b"[true,1]", b'{"a":1}', b"7"])
def test_what_is_no_vector_is_refused(told):
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(told, type=Resources, dec_hook=decode_vector)


def test_zeros_at_the_end_make_no_other_vector():
    assert Resources(0, 0, 0, 0) == NOTHING
    assert minus(Resources(1, 1, 4), Resources(0, 0, 4)) == Resources(1, 1)
    assert hash(Resources(1, 1, 0)) == hash(Resources(1, 1))
