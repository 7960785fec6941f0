"""Which hours of a trace have work, and how they are paired, as research/notes/levers.md has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from emulator.workload.spec import load
from yarn_research.studies.hour_pairs import hours_of, next_but_eleven, pairs_of
from yarnctl.traces.job import Job
from yarnctl.traces.swim import HOUR_MS

ROOT = Path(__file__).parents[2]
FB_2009 = (
    *((0, 13), (1, 14), (2, 15), (3, 16), (4, 17), (5, 18), (6, 19), (7, 20), (8, 21), (9, 22), (10, 23)),
    *((12, 0), (13, 1), (14, 2), (15, 3), (16, 4), (17, 5), (18, 6), (19, 7), (20, 8), (21, 9), (22, 10)),
    (23, 12),
)
"""The pairs of FB-2009 ``_0``: hour 11 is empty, and the two jobs of hour 24 are no hour of work."""


def test_the_pairs_of_fb_2009():
    hours = tuple(hours_of(load("packaged:fb2009-day", "production").jobs))
    assert hours == (*range(11), *range(12, 24))
    pairs = pairs_of(hours, hours)
    assert pairs == FB_2009
    assert len(pairs) == 23
    assert sorted(pair.research for pair in pairs) == list(hours)


def test_the_page_names_the_same_pairs():
    page = (ROOT / "research/notes/levers.md").read_text()
    page = page.partition("pairs of FB-2009 `_0`, production / research:")[2]
    page = page.partition('\n\n"The next but one"')[0]
    named = tuple((int(p), int(r)) for p, r in re.findall(r"\b(\d+)/(\d+)(?=[,.])", page))
    assert named == FB_2009


@pytest.mark.parametrize(
    ("hours", "beside"),
    [
        ((5,), None),
        ((5, 9), 9),
        ((4, 5, 9), 4),  # two others, 9 and 4: the twelfth of 9, 4, 9, 4, ... is 4
        ((5, *range(6, 18)), 17),  # twelve others: the last of them
        (range(24), 17),
        (range(13), 4),
        ((0, 1), 1),  # an hour that this trace does not have
    ],
)
def test_eleven_hours_are_left_out(hours, beside):
    assert next_but_eleven(5, tuple(hours)) == beside


def test_each_hour_is_research_once():
    for count in range(2, 40):
        hours = tuple(range(0, 3 * count, 3))
        pairs = pairs_of(hours, hours)
        assert [pair.production for pair in pairs] == list(hours)
        assert sorted(pair.research for pair in pairs) == list(hours)
        assert all(pair.production != pair.research for pair in pairs)


def job(name: str, at_ms: int, deadline_at_ms: int | None = None) -> Job:
    return Job(
        name=name, job_class="research", submitted_at_ms=at_ms, map_ms=(1000,), deadline_at_ms=deadline_at_ms
    )


def test_times_count_from_the_hour():
    hours = hours_of((job("a", 0), job("b", 2 * HOUR_MS, 2 * HOUR_MS + 5), job("c", 3 * HOUR_MS - 1)))
    assert list(hours) == [0, 2]
    assert hours[2] == (job("b", 0, 5), job("c", HOUR_MS - 1))


def test_an_hour_is_the_window_that_a_spec_names():
    hours = hours_of(load("packaged:fb2009-day", "research").jobs)
    for hour in (0, 6, 23):
        assert hours[hour] == load(f"packaged:fb2009-day@{hour}-{hour + 1}", "research").jobs


@pytest.mark.parametrize(("last_ms", "hours"), [(59_999, [0]), (60_000, [0, 1])])
def test_a_last_hour_that_has_only_begun_is_none(last_ms, hours):
    assert list(hours_of((job("a", 7), job("b", HOUR_MS), job("c", HOUR_MS + last_ms)))) == hours


def test_a_trace_of_seconds_is_an_hour():
    assert list(hours_of((job("a", 7),))) == [0]
    assert hours_of(()) == {}
