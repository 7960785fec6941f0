"""Rendering: reasons, instants, spans and amounts as English for people.

Nothing reads a sentence back: programs compare the reason's value, or its tag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from yarnctl.deciding.reasons.rooting import Reason

EPOCH_LEAST_MS = 10**11
"""An instant from here on (March 1973) is one since 1970; no virtual run is that long."""


def when(at_ms: int) -> str:
    """Return an instant as local time, or in ms since the beginning of a virtual run."""
    if at_ms < EPOCH_LEAST_MS:
        return f"{at_ms} ms"
    try:
        at = datetime.fromtimestamp(at_ms // 1000)
    except (ValueError, OverflowError, OSError):  # in the journal, but outside any calendar
        return f"{at_ms} ms"
    return f"{at:%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03}"


def instant(at_ms: int) -> str:
    """Return an instant as ``when`` does, after "at"."""
    return f"at {when(at_ms)}"


def span(span_ms: int) -> str:
    """Return a span for people: ``250 ms``, ``1.25 s``, ``12.3 s``, ``5 min 3 s``, ``2 h 5 min``."""
    if span_ms < 0:
        return f"-{span(-span_ms)}"
    if span_ms < 1000:
        return f"{span_ms} ms"
    if span_ms < 120_000:
        return f"{round(span_ms / 1000, 2 if span_ms < 10_000 else 1):g} s"
    large, small, units = (60_000, 1000, "min s") if span_ms < 7_200_000 else (3_600_000, 60_000, "h min")
    rounded = (span_ms + small // 2) // small
    whole, rest = divmod(rounded, large // small)
    names = units.split()
    return f"{whole} {names[0]}" + (f" {rest} {names[1]}" if rest else "")


def containers(number: int) -> str:
    """Return a number of containers: ``1 container``, ``2 containers``."""
    return "1 container" if number == 1 else f"{number} containers"


def tokens_text(mtokens: int) -> str:
    """Return milli-tokens in tokens: ``48.2 tokens``."""
    whole, rest = divmod(mtokens, 1000)
    amount = f"{whole}.{rest:03}".rstrip("0").rstrip(".")
    return f"{amount} token{'' if amount == '1' else 's'}"


UNITS: Mapping[str, Callable[[Any], str]] = {
    "span": span,
    "instant": when,
    "tokens": tokens_text,
    "containers": containers,
    "orders": lambda number: f"{number} order{'' if number == 1 else 's'}",
    "number": lambda values: str(len(values)),
    "list": lambda values: ", ".join(values) or "none",
    "either": " or ".join,
    "counts": lambda rows: ", ".join(f"{name} ({count})" for name, count in rows) or "none",
    "receivers": lambda orders: ", ".join(f"{name} ({other or 'unknown'})" for name, other in orders),
}
"""How a field is formatted in a sentence: ``{limit_ms:span}``."""

SECTION = re.compile(r"\[(\w+)(?:=([\w-]+))?\?([^\[\]|]*)(?:\|([^\[\]|]*))?\]")
FIELD = re.compile(r"\{(\w+)(?::(\w+))?\}")


def filled(template: str, fields: Mapping[str, Any]) -> str:
    """Return a template of a reason with its fields filled in; see ``Reason``."""

    def section(found: re.Match[str]) -> str:
        name, value, shown, other = found.groups()
        holds = bool(fields[name]) if value is None else fields[name] == value
        return shown if holds else other or ""

    def field(found: re.Match[str]) -> str:
        name, unit = found.groups()
        return UNITS[unit](fields[name]) if unit else str(fields[name])

    return FIELD.sub(field, SECTION.sub(section, template))


def sentence_and_remedy(reason: Reason) -> tuple[str, str]:
    """Return the sentence of a reason and its remedy, "" if it has none."""
    fields = msgspec.structs.asdict(reason)
    return filled(reason.sentence, fields), filled(reason.remedy, fields)


def text(reason: Reason) -> str:
    """Return the sentence of a reason, with its remedy if it has one."""
    return "; ".join(filter(None, sentence_and_remedy(reason)))


def on_label(label: str) -> str:
    """Return what follows a sentence that applies to the nodes with a label ("": none)."""
    return f" (on nodes with label {label})" if label else ""


def joined(reasons: Iterable[Reason]) -> str:
    """Return the sentences of several reasons as one line, "" for none."""
    return "; ".join(map(text, reasons))


def said(reason: Reason | None) -> str:
    """Return the sentence of a reason, "" for none."""
    return "" if reason is None else text(reason)
