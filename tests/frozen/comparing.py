"""Comparing: two JSON values as lines, one for each leaf, and the lines that differ.

Law: a difference is told by its place and by both values, never by two whole documents. ``kept`` allows what
is new and nothing else: what was there is still there, with the same value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

Rule = Literal["same", "kept"]
SHOWN_MAX = 40
EMPTY = ("{}", "[]")


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the place and the JSON of every leaf; an empty object or list is a leaf."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value):
            yield from leaves(value[key], place + _step(key))
    elif isinstance(value, list) and value:
        for number, each in enumerate(value):
            yield from leaves(each, f"{place}[{number}]")
    else:
        yield place or ".", json.dumps(value, ensure_ascii=False)


def _step(key: str) -> str:
    return f".{key}" if re.fullmatch(r"[\w-]+", key) else f"[{json.dumps(key, ensure_ascii=False)}]"


def differences(frozen: Any, now: Any, rule: Rule = "same") -> list[str]:
    """Return ``- place = value`` for what is gone, and ``+ place = value`` for what is there instead."""
    old, new = dict(leaves(frozen)), dict(leaves(now))
    lines: list[str] = []
    for place, was in old.items():
        if new.get(place) == was or (rule == "kept" and was in EMPTY and _is_filled(place, new)):
            continue
        lines.append(f"- {place} = {was}")
        if place in new:
            lines.append(f"+ {place} = {new[place]}")
    if rule == "same":
        lines += [f"+ {place} = {value}" for place, value in new.items() if place not in old]
    return lines


def _is_filled(place: str, new: Mapping[str, str]) -> bool:
    """Say whether something stands now where nothing stood."""
    above = place.removesuffix(".")
    return any(other.startswith((f"{above}.", f"{above}[")) for other in new)


def shown(lines: list[str], most: int = SHOWN_MAX) -> str:
    """Return differences as text, the first of them if they are many."""
    more = [f"  ... and {len(lines) - most} lines more"] if len(lines) > most else []
    return "\n".join([*(f"  {line}" for line in lines[:most]), *more])
