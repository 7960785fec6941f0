"""Options of the scheme ``mix``: what may be lost, and how soon a lever must give room.

Law: text in, numbers out; what cannot be is refused under the option's own name.
"""

from __future__ import annotations

import math
import re

import click

from yarnctl.errors import BadInput

SPAN_MAX_MS = 3_600_000
_SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m)", re.ASCII)
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000}

may_lose_option = click.option(
    "--may-lose",
    default="0%",
    show_default=True,
    metavar="P",
    help="Of mix: how much of research's container time of the last hour may be lost, like 2%.",
)
room_within_option = click.option(
    "--room-within",
    metavar="SPAN",
    help="Of mix: how soon a lever must give room, like 3s.  [default: as a suspension does]",
)


def part_of(option: str, text: str) -> float:
    """Return a part of the whole: ``2%`` or ``0.02``; BadInput outside 0 to 100 %."""
    try:
        part = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        part = math.nan
    if not 0 <= part <= 1:
        raise BadInput(option, f"{text[:40]!r} is no part from 0% to 100%", "write it like 2%")
    return part


def span_ms_of(option: str, text: str) -> int:
    """Return a span in ms: ``3s``, ``1.5s``, ``250ms``, ``2m``; else BadInput, also above an hour."""
    match = _SPAN.fullmatch(text)
    span_ms = round(float(match[1]) * _UNITS_MS[match[2]]) if match else 0
    if not 1 <= span_ms <= SPAN_MAX_MS:
        raise BadInput(option, f"{text[:40]!r} is no span from 1ms to 60m", "write it like 3s")
    return span_ms
