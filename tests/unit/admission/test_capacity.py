"""Capacity over time: what is free, and the least of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yarnctl.deciding.admission.capacity import Load, profile

LOADS = (Load("a", 4, 0, 10), Load("came past the gate", 3, 5), Load("reserved", 5, 20, 30))


def test_steps_by_hand():
    found = profile(10, LOADS)
    assert (found.at_ms, found.free) == ((0, 5, 10, 20, 30), (6, 3, 7, 2, 7))
    assert [found.free_at(now) for now in (0, 9, 10, 29, 1000)] == [6, 3, 7, 2, 7]
    assert found.least_free(6, 21) == 2
    assert found.least_free(10, 20) == 7, "the end is not within"


def test_what_is_over_is_left_out_and_what_changes_nothing_makes_no_step():
    assert profile(10, LOADS, 30) == ((30,), (7,))
    assert profile(10, (Load("a", 2, 0, 5), Load("b", 2, 5, 9))).at_ms == (0, 9)


loads = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 30), st.integers(1, 30)).map(
        lambda drawn: Load("x", drawn[0], drawn[1], drawn[1] + drawn[2])
    ),
    max_size=6,
)


@given(loads, st.integers(0, 40), st.integers(1, 20))
def test_against_counting_every_millisecond(held, start, span):
    free = [
        9 - sum(each.containers for each in held if each.from_ms <= now < each.until_ms) for now in range(150)
    ]
    found = profile(9, held)
    assert [found.free_at(now) for now in range(150)] == free
    assert found.least_free(start, start + span) == min(free[start : start + span])
    assert found.least_free(start, start) == free[start], "an empty span is an instant"
