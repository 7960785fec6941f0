"""``budgets.toml``: how much work may be lost of single queues and users.

Law: a file is taken whole or not at all; what is not known, or cannot be, is refused by its line and name.

::

    [queue.research]      # a preemptable queue by any name that --preemptable accepts, instead of --may-lose
    may_lose = "2%"       # of the container time that it held ...
    window = "1h"         # ... over the last hour (else: one hour)

    [user.ann]            # bounds all that is lost of this user's, beside the budgets of queues and jobs
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
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@/-]{0,119}")


def read_budgets(path: Path) -> tuple[LossRule, ...]:
    """Read the budgets, queues by their names as they are written. Raises BadInput naming file and line."""
    where = f"--budgets {path}"
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise BadInput(where, "is larger than 64 KiB", "name a file of [queue.NAME] and [user.NAME]")
        text = path.read_text(encoding="utf-8")
        told = tomllib.loads(text)
    except OSError as error:
        raise BadInput(where, f"cannot be read ({error.strerror})", "name a readable file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(where, f"is no TOML: {error}"[:200], "write [queue.NAME] and [user.NAME]") from None
    found = []
    for kind, entries in told.items():
        if kind not in _KINDS or not isinstance(entries, dict):
            at = _line(text, kind)
            raise BadInput(
                f"{where}{at}", f"{kind[:60]!r} is not known", "write [queue.NAME] and [user.NAME]"
            )
        for name, entry in _tables(entries) if kind == "queue" else entries.items():
            place = f"{where}{_line(text, name)}: {kind} {name[:60]}"
            found.append(_rule(place, "queue" if kind == "queue" else "user", name, entry))
    return tuple(found)


def _tables(entries: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each queue's name and table: without quotes TOML reads the parts of a path as nested tables."""
    for part, entry in entries.items():
        name = f"{above}{part}"
        nested = isinstance(entry, dict) and entry and all(isinstance(one, dict) for one in entry.values())
        if nested:
            yield from _tables(entry, f"{name}.")
        else:
            yield name, entry


def _rule(where: str, kind: Literal["queue", "user"], name: str, entry: Any) -> LossRule:
    if kind == "user" and not _USER.fullmatch(name):
        raise BadInput(where, "is no user's name", "write it as YARN shows it")
    if not isinstance(entry, dict):
        raise BadInput(where, "is no table", 'write may_lose = "2%" below it')
    odd = next((key for key in entry if key not in ("may_lose", "window")), None)
    if odd is not None:
        raise BadInput(where, f"{odd[:60]!r} is not known", "use may_lose and window")
    told = entry.get("may_lose")
    if not isinstance(told, str):
        raise BadInput(where, f"may_lose is {told!r}"[:120], 'write it like may_lose = "2%"')
    return LossRule(
        kind, name, part_of(f"{where}: may_lose", told), _window_ms(where, entry.get("window", "1h"))
    )


def _window_ms(where: str, told: Any) -> int:
    match = _WINDOW.fullmatch(told) if isinstance(told, str) else None
    window_ms = int(match[1]) * _UNITS_MS[match[2]] if match else 0
    if not WINDOW_MIN_MS <= window_ms <= WINDOW_MAX_MS:
        raise BadInput(where, f"window is {told!r}, not 1m to 7d"[:120], 'write it like window = "1h"')
    return window_ms


def _line(text: str, name: str) -> str:
    """Return `` line N`` of a table's header, "" where it is written in another way."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if words.startswith("[") and name in words.strip("[] ").replace('"', "").replace("'", ""):
            return f" line {number}"
    return ""
