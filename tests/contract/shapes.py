"""Shapes: the keys and JSON types of two answers to one question, compared.

Law: a key that one side lacks, or that has another type, is a difference, unless ``OTHERWISE`` says why the
emulator leaves it out. Numbers are one type: 0 and 0.0 are both written as YARN pleases. Of a list all
elements count as one.
"""

from __future__ import annotations

import re
from typing import Any

OTHERWISE: dict[str, str] = {
    r"am-.*ounterGroup(\[\])?": "tasks that are timetables count nothing; those that are processes do",
    r"driver-.*taskMetrics": "a task that is a timetable reports nothing before its end",
    r"history-jobs\.jobs\.job": "how many there are decides the form in 3.5 (a list of one is its element)",
    r"(conf|am-job-conf|scheduler-conf)\b.*\[\]": "which settings there are is no question of form",
}
"""A key's path (a pattern) -> why the emulator says it otherwise, or not at all."""


def otherwise(where: str) -> bool:
    """Whether there is a reason to leave this path out."""
    return any(re.fullmatch(pattern, where) for pattern in OTHERWISE)


def kind(value: Any) -> str:
    """Return a JSON type's name."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return {dict: "object", list: "list", str: "text", type(None): "null"}[type(value)]


def differences(where: str, real: Any, other: Any) -> list[str]:
    """Return where the form of ``other`` is not that of ``real``, one line each."""
    if otherwise(where):
        return []
    if kind(real) != kind(other):
        return [f"{where}: {kind(real)} became {kind(other)} ({str(other)[:60]!r})"]
    if isinstance(real, dict):
        return _of_objects(where, real, other)
    if isinstance(real, list) and real:
        return differences(f"{where}[]", merged(real), merged(other)) if other else [f"{where}[]: none"]
    return []


def _of_objects(where: str, real: dict[str, Any], other: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for key in [*real, *(key for key in other if key not in real)]:
        path = f"{where}.{key}"
        if key in real and key in other:
            found += differences(path, real[key], other[key])
        elif not otherwise(path):
            found.append(f"{path}: {'missing' if key in real else 'not in Hadoop'}")
    return found


def merged(rows: list[Any]) -> Any:
    """Return one value with the form of all elements of a list."""
    if all(isinstance(row, dict) for row in rows):
        whole: dict[str, Any] = {}
        for row in rows:
            for key, value in row.items():
                whole[key] = merged([whole[key], value]) if isinstance(whole.get(key), dict) else value
        return whole
    return rows[0]
