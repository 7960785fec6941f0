"""Instants for people and scripts: ISO 8601 in UTC beside milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS = 253_402_300_799_999  # The end of the year 9999


def instant_name(name: str) -> str | None:
    """Return the name of an instant beside its name in ms; None for what is no instant."""
    return name.removesuffix("_ms") if name in ("at_ms", "now_ms") or name.endswith("_at_ms") else None


def iso(at_ms: int) -> str | None:
    """Return an instant as ISO 8601 in UTC, to the millisecond; None beyond the year 9999."""
    if not 0 <= at_ms <= LAST_MS:
        return None
    return (EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def with_instants(answer: Any) -> Any:
    """Return an answer with each instant in ISO 8601 after the one in ms; null stays null."""
    if isinstance(answer, list | tuple):
        return [with_instants(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    found: dict[str, Any] = {}
    for name, value in answer.items():
        found[name] = with_instants(value)
        beside = instant_name(name) if isinstance(name, str) else None
        if beside is not None and (value is None or isinstance(value, int)):
            found[beside] = None if value is None else iso(value)
    return found
