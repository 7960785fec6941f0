"""Read the budgets file: what single queues and users may lose, when, and which of them are left alone.

Law: a file is used completely or not at all; an unknown key or an invalid value is an error with line and
name.

::

    [queue.research]      # a preemptable queue by any name that --preemptable accepts
    may_lose = "2%"       # of its container time, instead of --may-lose ...
    window = "1h"         # ... in the last hour (default: one hour)
    hours = ["Mon-Fri 19:00-07:00", "Sat-Sun 00:00-24:00"]  # when its containers may be taken; else always
    zone = "Europe/Berlin"                                  # of these hours; or "UTC"

    [queue.etl]
    leave_alone = true    # no lever is used on its applications

    [user.ann]            # bounds the lost work of this user, in addition to the budgets of queues and jobs
    may_lose = "1%"       # or leave_alone = true
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from yarnctl.amounts import part_of
from yarnctl.deciding.open_hours import DAY_MINUTES, OpenHours
from yarnctl.deciding.settings import LossRule
from yarnctl.errors import BadInput, nearest

FILE_BYTES_MAX = 64 << 10
WINDOW_MIN_MS, WINDOW_MAX_MS = 60_000, 7 * 86_400_000
WINDOWS_MAX = 50
PARTS_MAX = 100  # Of the path of a queue
OFFSETS_FROM = datetime(2026, 1, 1, tzinfo=UTC)  # The clock changes that a daemon knows, ...
OFFSETS_UNTIL = datetime(2046, 1, 1, tzinfo=UTC)  # ... as the rules of the zone are today
_WINDOW = re.compile(r"([0-9]{1,6})(s|m|h|d)", re.ASCII)
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_KINDS: tuple[Literal["queue", "user"], ...] = ("queue", "user")
_KEYS = {
    "queue": ("may_lose", "window", "hours", "zone", "leave_alone"),
    "user": ("may_lose", "window", "leave_alone"),
}
TABLES = "[queue.NAME] and [user.NAME]"
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@/-]{0,119}")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS = re.compile(
    r"(?:([a-z]{3})(?:-([a-z]{3}))? )?([0-9]{2}):([0-5][0-9])-([0-9]{2}):([0-5][0-9])",
    re.ASCII | re.IGNORECASE,
)
_HOURS_FORM = 'use the form hours = ["Mon-Fri 19:00-07:00", "Sat-Sun 00:00-24:00"]'


class BudgetsFile(NamedTuple):
    """What a budgets file has, with queues by their names in it."""

    rules: tuple[LossRule, ...] = ()
    hours: tuple[OpenHours, ...] = ()
    queues_left_alone: tuple[str, ...] = ()
    users_left_alone: tuple[str, ...] = ()

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that the file names, each once."""
        ruled = [rule.name for rule in self.rules if rule.kind == "queue"]
        timed = [each.queue for each in self.hours]
        return tuple(dict.fromkeys((*ruled, *timed, *self.queues_left_alone)))


def read_budgets(path: Path) -> BudgetsFile:
    """Read the file. Raises BadInput with file and line."""
    where = f"--budgets {path}"
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise BadInput(where, "the file exceeds 64 KiB", f"use a file with {TABLES} tables")
        text = path.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except OSError as error:
        raise BadInput(where, f"cannot be read ({error.strerror})", "use a readable file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(where, f"invalid TOML: {error}"[:200], f"use {TABLES} tables") from None
    rules, hours = [], []
    left_alone: dict[str, list[str]] = {"queue": [], "user": []}
    for table, entries in tables.items():
        kind = next((each for each in _KINDS if each == table), None)
        if kind is None or not isinstance(entries, dict):
            at = _line(text, table)
            raise BadInput(f"{where}{at}", f"unknown table {table[:60]!r}", f"use {TABLES} tables")
        for name, entry in _tables(entries) if kind == "queue" else entries.items():
            line = _line(text, name)
            place = f"{where}{line}: {kind} {name[:60]}"
            _require_keys(place, kind, name, entry)
            if _is_left_alone(place, entry):
                left_alone[kind].append(name)
            if "may_lose" in entry:
                rules.append(_rule(place, kind, name, entry))
            if "hours" in entry or "zone" in entry:
                hours.append(_open_hours(place, name, entry))
    return BudgetsFile(tuple(rules), tuple(hours), tuple(left_alone["queue"]), tuple(left_alone["user"]))


def _tables(entries: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for part, entry in entries.items():
        name = f"{above}{part}"
        is_table = isinstance(entry, dict) and entry and above.count(".") < PARTS_MAX
        nested = is_table and all(isinstance(one, dict) for one in entry.values())
        if nested:
            yield from _tables(entry, f"{name}.")
        else:
            yield name, entry


def _require_keys(where: str, kind: Literal["queue", "user"], name: str, entry: Any) -> None:
    if kind == "user" and not _USER.fullmatch(name):
        raise BadInput(where, "invalid user name", "use the name that YARN shows")
    if not isinstance(entry, dict):
        raise BadInput(where, "not a table", 'set may_lose = "2%" below it')
    known = _KEYS[kind]
    for key in entry:
        if key not in known:
            raise BadInput(where, f"unknown key {key[:60]!r}", nearest(key, known, f"use {', '.join(known)}"))
    if not entry:
        raise BadInput(where, "empty table", f"set {' or '.join(key for key in known if key != 'window')}")
    if "window" in entry and "may_lose" not in entry:
        raise BadInput(where, "window without may_lose", 'set may_lose = "2%"')


def _is_left_alone(where: str, entry: Mapping[str, Any]) -> bool:
    found = entry.get("leave_alone", False)
    if not isinstance(found, bool):
        raise BadInput(where, f"invalid leave_alone {found!r}"[:120], "use leave_alone = true")
    if found and len(entry) > 1:
        other = next(key for key in entry if key != "leave_alone")
        raise BadInput(where, f"{other} beside leave_alone = true", "remove one of the two")
    return found


def _rule(where: str, kind: Literal["queue", "user"], name: str, entry: Mapping[str, Any]) -> LossRule:
    may_lose = entry["may_lose"]
    if not isinstance(may_lose, str):
        raise BadInput(where, f"invalid may_lose {may_lose!r}"[:120], 'use the form may_lose = "2%"')
    return LossRule(
        kind, name, part_of(f"{where}: may_lose", may_lose), _window_ms(where, entry.get("window", "1h"))
    )


def _window_ms(where: str, window: Any) -> int:
    match = _WINDOW.fullmatch(window) if isinstance(window, str) else None
    window_ms = int(match[1]) * _UNITS_MS[match[2]] if match else 0
    if not WINDOW_MIN_MS <= window_ms <= WINDOW_MAX_MS:
        raise BadInput(where, f"window {window!r} is outside of 1m to 7d"[:120], 'use the form window = "1h"')
    return window_ms


# --- hours --------------------------------------------------------------------------------------


def _open_hours(where: str, queue: str, entry: Mapping[str, Any]) -> OpenHours:
    for key, other, remedy in (
        ("hours", "zone", _HOURS_FORM),
        ("zone", "hours", 'set the time zone of the hours: zone = "Europe/Berlin", or zone = "UTC"'),
    ):
        if key not in entry:
            raise BadInput(where, f"{other} without {key}", remedy)
    written = entry["hours"]
    if not isinstance(written, list) or not 1 <= len(written) <= WINDOWS_MAX:
        raise BadInput(where, f"hours {written!r} is not a list of 1 to {WINDOWS_MAX}"[:160], _HOURS_FORM)
    windows = tuple(dict.fromkeys(window for each in written for window in _windows(where, each)))
    return OpenHours(queue, str(entry["zone"]), windows, _offsets(_zone(where, entry["zone"])))


def _windows(where: str, written: Any) -> Iterator[tuple[int, int]]:
    """Yield first minute and length of what ``Mon-Fri 19:00-07:00`` means; it begins on these days."""
    match = _HOURS.fullmatch(written) if isinstance(written, str) else None
    if match is None:
        raise BadInput(where, f"invalid hours {written!r}"[:120], _HOURS_FORM)
    first_day, last_day = ((day or "").lower() for day in match.group(1, 2))
    for day in (first_day, last_day):
        if day and day not in _DAYS:
            remedy = nearest(day, _DAYS, f"use {', '.join(_DAYS)}")
            raise BadInput(where, f"unknown day {day!r} in hours {written!r}", remedy)
    from_minute, to_minute = (int(match[at]) * 60 + int(match[at + 1]) for at in (3, 5))
    if from_minute >= DAY_MINUTES or to_minute > DAY_MINUTES or from_minute == to_minute:
        problem = f"hours {written!r} are not between 00:00 and 24:00"
        if from_minute == to_minute:
            problem = f"hours {written!r} begin where they end"
        raise BadInput(where, problem, "for a whole day write 00:00-24:00")
    length = to_minute - from_minute + (0 if to_minute > from_minute else DAY_MINUTES)
    first = _DAYS.index(first_day) if first_day else 0
    days = (_DAYS.index(last_day or first_day) - first) % 7 + 1 if first_day else 7
    for day in range(first, first + days):
        yield day % 7 * DAY_MINUTES + from_minute, length


def _zone(where: str, name: Any) -> tzinfo:
    if name == "UTC":
        return UTC  # Known without a database of time zones
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, TypeError, LookupError):
        zones = available_timezones()
        remedy = 'use a name like "Europe/Berlin", or "UTC"'
        if not zones:
            remedy = "this host has no database of time zones: pip install tzdata, or use UTC"
        raise BadInput(where, f"unknown zone {name!r}"[:120], nearest(str(name), zones, remedy)) from None


def _offsets(zone: tzinfo) -> tuple[tuple[int, int], ...]:
    """Return from when (ms since the epoch) a zone's clocks are ahead of UTC by so many minutes."""

    def offset(at: datetime) -> int:
        found = zone.utcoffset(at.astimezone(zone))
        return 0 if found is None else int(found.total_seconds()) // 60

    found = [(int(OFFSETS_FROM.timestamp() * 1000), offset(OFFSETS_FROM))]
    day = timedelta(days=1)
    at = OFFSETS_FROM
    while at < OFFSETS_UNTIL:
        if offset(at + day) != found[-1][1]:
            before, changed = at, at + day
            while changed - before > timedelta(minutes=1):
                middle = before + timedelta(minutes=(changed - before) // timedelta(minutes=1) // 2)
                if offset(middle) == found[-1][1]:
                    before = middle
                else:
                    changed = middle
            found.append((int(changed.timestamp() * 1000), offset(changed)))
        at += day
    return tuple(found)


def _line(text: str, name: str) -> str:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if words.startswith("[") and name in words.strip("[] ").replace('"', "").replace("'", ""):
            return f" line {number}"
    return ""
