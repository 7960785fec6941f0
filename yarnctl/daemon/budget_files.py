"""Read ``budgets.toml``: the work that single queues and users may lose.

Law: a file is used completely or not at all; an unknown key or an invalid value is an error with line and
name.

::

    [queue.research]      # a preemptable queue by any name that --preemptable accepts, instead of --may-lose
    may_lose = "2%"       # of its container time ...
    window = "1h"         # ... in the last hour (default: one hour)

    [user.ann]            # bounds the lost work of this user, in addition to the budgets of queues and jobs
    may_lose = "1%"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from yarnctl.amounts import part_of
from yarnctl.deciding.settings import LossRule
from yarnctl.errors import BadInput

FILE_BYTES_MAX = 64 << 10
WINDOW_MIN_MS, WINDOW_MAX_MS = 60_000, 7 * 86_400_000
_WINDOW = re.compile(r"([0-9]{1,6})(s|m|h|d)", re.ASCII)
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_KINDS: tuple[Literal["queue", "user"], ...] = ("queue", "user")
TABLES = "[queue.NAME] and [user.NAME]"
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@/-]{0,119}")


def read_budgets(path: Path) -> tuple[LossRule, ...]:
    """Read the budgets, with queues by their names in the file. Raises BadInput with file and line."""
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
    found = []
    for kind, entries in tables.items():
        if kind not in _KINDS or not isinstance(entries, dict):
            at = _line(text, kind)
            raise BadInput(f"{where}{at}", f"unknown table {kind[:60]!r}", f"use {TABLES} tables")
        for name, entry in _tables(entries) if kind == "queue" else entries.items():
            place = f"{where}{_line(text, name)}: {kind} {name[:60]}"
            found.append(_rule(place, "queue" if kind == "queue" else "user", name, entry))
    return tuple(found)


def _tables(entries: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for part, entry in entries.items():
        name = f"{above}{part}"
        nested = isinstance(entry, dict) and entry and all(isinstance(one, dict) for one in entry.values())
        if nested:
            yield from _tables(entry, f"{name}.")
        else:
            yield name, entry


def _rule(where: str, kind: Literal["queue", "user"], name: str, entry: Any) -> LossRule:
    if kind == "user" and not _USER.fullmatch(name):
        raise BadInput(where, "invalid user name", "use the name that YARN shows")
    if not isinstance(entry, dict):
        raise BadInput(where, "not a table", 'set may_lose = "2%" below it')
    odd = next((key for key in entry if key not in ("may_lose", "window")), None)
    if odd is not None:
        raise BadInput(where, f"unknown key {odd[:60]!r}", "use may_lose and window")
    may_lose = entry.get("may_lose")
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


def _line(text: str, name: str) -> str:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if words.startswith("[") and name in words.strip("[] ").replace('"', "").replace("'", ""):
            return f" line {number}"
    return ""
