"""Spans and instants, as a user writes them and as he is told them.

Law: a number without its unit is nobody's span. What is told is rounded so that it promises nothing: a span
up, an instant down to its second, in local time.
"""

from __future__ import annotations

import re
from datetime import datetime

from yarnctl.errors import BadInput

UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
SPAN_MAX_DAYS = 366
"""The longest deadline that the daemon takes."""
SHOWN_MAX = 40

_SPAN = re.compile(r"(?:([0-9]{1,15})d)?(?:([0-9]{1,15})h)?(?:([0-9]{1,15})m)?(?:([0-9]{1,15})s)?")
_AS_IN = "write it like 90s, 15m, 1h30m or 2d"


def span_of(option: str, text: str) -> int:
    """Return a span in ms: ``90s``, ``15m``, ``1h30m``, ``2d``; BadInput for anything else."""
    text = text.strip()
    shown = repr(text[:SHOWN_MAX])
    match = _SPAN.fullmatch(text)
    if match is None or not text:
        raise BadInput(option, f"{shown} {_what_is_wrong(text)}", _AS_IN)
    counts = (int(count or 0) for count in match.groups())
    total_ms = sum(count * unit for count, unit in zip(counts, UNITS_MS.values(), strict=True))
    if not total_ms:
        raise BadInput(option, f"{shown} is no span above 0", _AS_IN)
    return not_too_far(option, shown, total_ms)


def _what_is_wrong(text: str) -> str:
    if re.fullmatch(r"([0-9]+[dhms])*[0-9]+", text):
        return "ends in a number without its unit"
    if re.fullmatch(r"(?:[0-9]+[dhm])*[0-9]*[.,][0-9]+[dhms]", text):
        return "is no whole number of its unit"
    return "is no span"


def not_too_far(option: str, shown: str, span_ms: int) -> int:
    """Return the span, if a daemon takes one that long; else BadInput."""
    if span_ms > SPAN_MAX_DAYS * UNITS_MS["d"]:
        raise BadInput(
            option, f"{shown} is further than {SPAN_MAX_DAYS} days away", "a gate plans no longer ahead"
        )
    return span_ms


def instant_of(option: str, text: str) -> int:
    """Return an instant in ms since 1970: ISO 8601 (local time without a zone), seconds, or 13 digits of
    ms.
    """
    text = text.strip()
    if re.fullmatch(r"[0-9]{9,13}", text):
        return int(text) if len(text) == 13 else int(text) * 1000
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        remedy = "write it like 2030-01-31T18:00, 2030-01-31T17:00Z or 1896195600"
        raise BadInput(option, f"{text[:SHOWN_MAX]!r} is no instant", remedy) from None


def span_words(span_ms: int) -> str:
    """Say a span, rounded up to what a person would write: 45 s, 14 min, 3 h 20 min, 12 days."""
    seconds = -(-span_ms // 1000)
    if seconds < 120:
        return f"{seconds} s"
    minutes = -(-seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{-(-minutes // (24 * 60))} days"


def clock(at_ms: int) -> str:
    """Say an instant of today or another day, in local time."""
    try:
        at = datetime.fromtimestamp(at_ms // 1000)
    except (ValueError, OverflowError, OSError):  # the daemon said it, and no clock shows it
        return str(at_ms)
    is_today = at.date() == datetime.now().date()
    return at.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S")


def containers_words(number: int) -> str:
    """Say how many containers."""
    return "1 container" if number == 1 else f"{number} containers"
