"""The hours of a queue: against the time zones themselves, and what the controller decides with them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest

from yarnctl.daemon.budget_files import read_budgets
from yarnctl.deciding.open_hours import OpenHours, outside_hours
from yarnctl.deciding.reasons.demand import OutsideHours
from yarnctl.journal.rendering import text

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Africa/Casablanca",
    "UTC",
)
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def hours(folder: Path, *windows: str, zone: str = "Europe/Berlin") -> OpenHours:
    file = folder / "budgets.toml"
    file.write_text(f'[queue.research]\nhours = {list(windows)!r}\nzone = "{zone}"\n')
    (found,) = read_budgets(file).hours
    return found


def at_ms(words: str, zone: str = "Europe/Berlin", fold: int = 0) -> int:
    at = datetime.fromisoformat(words).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return int(at.timestamp() * 1000)


@pytest.mark.parametrize(
    ("windows", "when", "open_now", "opens"),
    [
        # 2027-03-08 is a Monday
        (["Mon-Fri 19:00-07:00"], "2027-03-08T18:59:59", False, "2027-03-08T19:00"),
        (["Mon-Fri 19:00-07:00"], "2027-03-08T19:00:00", True, "2027-03-08T19:00"),
        (["Mon-Fri 19:00-07:00"], "2027-03-08T06:00:00", False, "2027-03-08T19:00"),  # Sunday's night is none
        (["Mon-Fri 19:00-07:00"], "2027-03-13T06:59:59", True, "2027-03-13T06:59:59"),  # Friday's night
        (["Mon-Fri 19:00-07:00"], "2027-03-13T07:00:00", False, "2027-03-15T19:00"),
        (["Sun 22:00-02:00"], "2027-03-08T01:00:00", True, "2027-03-08T01:00"),  # over the end of the week
        (["Fri-Mon 00:00-24:00"], "2027-03-09T00:00:00", False, "2027-03-12T00:00"),
        (["12:00-12:30"], "2027-03-10T12:30:00", False, "2027-03-11T12:00"),
        # clocks go from 02:00 to 03:00 on 2027-03-28: a window in that hour is not in that week
        (["Sun 02:30-02:45"], "2027-03-27T12:00:00", False, "2027-04-04T02:30"),
        # ... and one that is longer begins when they have
        (["Sun 02:30-04:00"], "2027-03-28T01:59:59", False, "2027-03-28T03:00"),
        (["02:30-04:00", "12:00-13:00"], "2027-03-28T01:00:00", False, "2027-03-28T03:00"),
    ],
)  # fmt: skip
def test_hours_by_the_local_clock(
    tmp_path: Path, windows: list[str], when: str, open_now: bool, opens: str
) -> None:
    found = hours(tmp_path, *windows)
    assert found.is_open(at_ms(when)) is open_now
    assert found.opens_at_ms(at_ms(when)) == at_ms(opens)


def test_an_hour_that_clocks_repeat_is_open_twice(tmp_path: Path) -> None:
    found = hours(tmp_path, "02:30-02:45")
    first, second = at_ms("2027-10-31T02:30"), at_ms("2027-10-31T02:30", fold=1)
    assert second - first == 3_600_000
    assert found.is_open(first)
    assert found.is_open(second)
    assert found.opens_at_ms(first + 15 * 60_000) == second


@pytest.mark.parametrize("zone", ZONES)
def test_random_windows_and_instants_are_those_of_the_zone(tmp_path: Path, zone: str) -> None:
    """The other way: local weekday and time by the zone's own clock, minute by minute to the next opening."""
    draws = random.Random(zone)
    for _ in range(12):
        first, last = draws.randrange(7), draws.randrange(7)
        begin, length = draws.randrange(0, 1440, 5), draws.randrange(5, 1440, 5)
        end = (begin + length) % 1440
        words = f"{DAYS[first]}-{DAYS[last]} {begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}"
        found = hours(tmp_path, words, zone=zone)
        days = {(first + each) % 7 for each in range((last - first) % 7 + 1)}
        to = UTC if zone == "UTC" else ZoneInfo(zone)

        def is_open(at: datetime, days: set[int] = days, begin: int = begin, length: int = length) -> bool:
            local = at.astimezone(to)  # noqa: B023
            minute = local.hour * 60 + local.minute
            today = local.weekday() in days and begin <= minute < begin + length
            return today or ((local.weekday() - 1) % 7 in days and minute + 1440 < begin + length)

        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=draws.randrange(19 * 525_600))
        if draws.random() < 0.5 and len(found.offsets) > 1:  # near a change of the clocks
            at = datetime.fromtimestamp(draws.choice(found.offsets[1:])[0] / 1000, UTC)
            at += timedelta(minutes=draws.randrange(-300, 300))
        expected, now_ms = at, int(at.timestamp() * 1000)
        while not is_open(expected):
            expected += timedelta(minutes=1)
        assert found.is_open(now_ms) is is_open(at), (words, at)
        assert found.opens_at_ms(now_ms) == int(expected.timestamp() * 1000), (words, at)


def test_hours_in_a_journal_have_the_offsets_of_their_zone(tmp_path: Path) -> None:
    found = hours(tmp_path, "Mon-Fri 19:00-07:00")
    again = msgspec.json.decode(msgspec.json.encode(found), type=OpenHours)
    assert again == found
    assert again.opens_at_ms(at_ms_utc("2027-07-08T12:00")) == at_ms_utc("2027-07-08T17:00")
    other = msgspec.structs.replace(found, zone="Mars/Olympus")  # a name for people alone
    assert other.opens_at_ms(at_ms_utc("2027-07-08T12:00")) == at_ms_utc("2027-07-08T17:00")


def at_ms_utc(words: str) -> int:
    return int(datetime.fromisoformat(words).replace(tzinfo=UTC).timestamp() * 1000)


def test_the_reason_names_the_queue_and_when_it_opens(tmp_path: Path) -> None:
    found = hours(tmp_path, "19:00-07:00", zone="UTC")
    now_ms = at_ms_utc("2027-07-08T12:00")
    why = outside_hours([found], ["research", "other"], now_ms)
    assert why == {"research": OutsideHours("research", at_ms_utc("2027-07-08T19:00"), "UTC")}
    assert outside_hours([found], ["other"], now_ms) == {}
    assert outside_hours([found], ["research"], at_ms_utc("2027-07-08T20:00")) == {}
    assert "containers of queue research may not be taken at this hour (hours in UTC)" in text(
        why["research"]
    )
