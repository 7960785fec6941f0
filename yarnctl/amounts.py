"""Shares and durations as text on a command line or in a file: ``2%``, ``3s``; BadInput names the place."""

from __future__ import annotations

import math
import re

from yarnctl.errors import BadInput

SPAN_MAX_MS = 3_600_000
_DECIMAL = re.compile(r"(?:[0-9]{1,15}(?:\.[0-9]{1,15})?|\.[0-9]{1,15})(?:e-?[0-9]{1,3})?", re.ASCII)
_SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m)", re.ASCII)
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000}


def part_of(where: str, text: str) -> float:
    """Return a share as a ratio from 0 to 1, from ``2%`` or ``0.02``; raises BadInput for any other text."""
    part = ratio_of(text)
    if not 0 <= part <= 1:
        raise BadInput(where, f"{text[:40]!r} is not a share from 0% to 100%", "use for example 2%")
    return part


def ratio_of(text: str) -> float:
    """Return a ratio from ``2%`` or ``0.02`` (digits 0 to 9 and a point); NaN for any other text."""
    digits = text.removesuffix("%")
    if not _DECIMAL.fullmatch(digits):
        return math.nan
    return float(digits) / (1 if digits == text else 100)


def span_ms_of(where: str, text: str) -> int:
    """Return a duration in ms, from 1 ms to 1 h: ``3s``, ``1.5s``, ``250ms``, ``2m``; raises BadInput."""
    match = _SPAN.fullmatch(text)
    span_ms = round(float(match[1]) * _UNITS_MS[match[2]]) if match else 0
    if not 1 <= span_ms <= SPAN_MAX_MS:
        raise BadInput(where, f"{text[:40]!r} is not a duration from 1ms to 60m", "use for example 3s")
    return span_ms
