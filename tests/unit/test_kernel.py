"""The kernel: events run in the order (time, sequence), and in no other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.cluster.kernel import SPAN_BITS, Kernel
from tests.thoroughness import examples

SPAN_MS = 1 << SPAN_BITS


def told(kernel: Kernel, *instants: int) -> list[tuple[int, int]]:
    """Put in one event per instant; return the list that fills with (now, which) as they run."""
    heard: list[tuple[int, int]] = []
    for number, at_ms in enumerate(instants):
        kernel.at(at_ms, lambda number: heard.append((kernel.now_ms, number)), number)
    return heard


def test_earlier_runs_first_and_of_one_instant_the_first_put_in():
    kernel = Kernel()
    heard = told(kernel, 30, 10, 20, 10, 0)
    kernel.run()
    assert heard == [(0, 4), (10, 1), (10, 3), (20, 2), (30, 0)]
    assert kernel.events == 5
    assert kernel.next_at_ms() is None


def test_what_is_put_in_for_now_runs_now_behind_what_is_there():
    kernel = Kernel()
    heard: list[str] = []
    kernel.at(5, lambda _: kernel.at(5, heard.append, "third"), None)
    kernel.at(5, heard.append, "second")
    kernel.at(6, heard.append, "fourth")
    kernel.run()
    assert heard == ["second", "third", "fourth"]


def test_the_past_is_refused():
    kernel = Kernel()
    kernel.at(100, lambda _: kernel.at(99, print, None), None)
    with pytest.raises(ValueError, match="an event for 99 ms was put in at 100 ms"):
        kernel.run()


@pytest.mark.parametrize("until_ms", [4, 5, 3 * SPAN_MS - 2])
def test_run_until_stops_the_clock_there_and_goes_on_later(until_ms):
    kernel = Kernel()
    heard = told(kernel, 4, 3 * SPAN_MS)
    kernel.run(until_ms)
    assert heard == [(4, 0)]
    assert kernel.now_ms == until_ms
    assert kernel.next_at_ms() == 3 * SPAN_MS
    kernel.at(until_ms + 1, lambda _: heard.append((kernel.now_ms, 9)), None)
    kernel.run()
    assert heard == sorted([(4, 0), (until_ms + 1, 9), (3 * SPAN_MS, 1)])


def test_until_is_included():
    kernel = Kernel()
    heard = told(kernel, 7)
    kernel.run(7)
    assert heard == [(7, 0)]


def test_stop_leaves_after_the_instant():
    kernel = Kernel()
    kernel.at(1, lambda _: kernel.stop(), None)
    heard = told(kernel, 1, 2)
    kernel.run()
    assert heard == [(1, 0)]
    kernel.run()
    assert heard == [(1, 0), (2, 1)]


def test_after_each_is_called_once_an_event():
    kernel = Kernel()
    heard = told(kernel, 1, 1, 2)
    seen: list[int] = []
    kernel.run(None, lambda: seen.append(len(heard)))
    assert seen == [1, 2, 3]


delays = st.lists(st.integers(0, 3 * SPAN_MS), min_size=1, max_size=4)


@settings(max_examples=examples(200), derandomize=True, database=None)
@given(st.lists(delays, min_size=1, max_size=12), st.integers(0, 4 * SPAN_MS))
def test_any_events_run_as_a_stable_sort_by_time_would_have_them(trees, pause_ms):
    """Each event puts in the next of its row, ``delay`` later; the reference sorts (time, sequence)."""
    kernel = Kernel()
    put_in: list[tuple[int, int]] = []
    ran: list[tuple[int, int]] = []

    def put(delay_ms: int, rest: tuple[int, ...]) -> None:
        entry = (kernel.now_ms + delay_ms, len(put_in))
        put_in.append(entry)
        kernel.at(entry[0], happen, (entry, rest))

    def happen(what: tuple[tuple[int, int], tuple[int, ...]]) -> None:
        entry, rest = what
        assert kernel.now_ms == entry[0]
        ran.append(entry)
        if rest:
            put(rest[0], rest[1:])

    for row in trees:
        put(row[0], tuple(row[1:]))
    kernel.run(pause_ms)
    assert all(at_ms <= pause_ms for at_ms, _ in ran)
    kernel.run()
    assert ran == sorted(put_in)
    assert kernel.events == len(put_in) == sum(map(len, trees))
