"""Anybody's table of run times: a file of comma or tab separated columns, words as one column for each.

Law: a row that cannot be read is refused with its line and column, never left out.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from yarnctl.errors import BadInput
from yarnctl.prediction.bounded_times import RunTable

ROWS_LEAST = 3
FILE_BYTES_MAX = 64 << 20
TRUTH = {"true": 1.0, "false": 0.0}


def read_table(path: Path, target: str, features: Sequence[str], split_by: Sequence[str] = ()) -> RunTable:
    """Read a table; rows alike in ``split_by`` (else in all features) are of one configuration.

    Raises BadInput naming file, line and column.
    """
    rows = _rows(path)
    for name in (target, *features, *split_by):
        if name not in rows[0]:
            known = ", ".join(rows[0])
            raise BadInput(f"{path}: line 1", f"column {name!r} not found", f"the columns are {known}")
    durations = [_duration(path, line, target, row[target]) for line, row in enumerate(rows, 2)]
    columns = [column for name in features for column in _columns(path, name, [row[name] for row in rows])]
    numbers: dict[tuple[str, ...], int] = {}
    alike = [tuple(row[name] for name in (split_by or features)) for row in rows]
    configuration = [numbers.setdefault(each, len(numbers)) for each in alike]
    return RunTable(np.column_stack(columns), np.array(durations), np.array(configuration))


def _rows(path: Path) -> list[dict[str, str]]:
    text = _text(path)
    first = text.partition("\n")[0]
    reader = csv.DictReader(text.splitlines(), delimiter="\t" if "\t" in first else ",")
    rows: list[dict[str, str]] = []
    for row in reader:
        if None in row or None in row.values():
            told = f"has {'more' if None in row else 'fewer'} columns than line 1"
            raise BadInput(f"{path}: line {reader.line_num}", told, "give each row all columns")
        rows.append({name.strip(): value.strip() for name, value in row.items()})
    if len(rows) < ROWS_LEAST:
        raise BadInput(str(path), f"has {len(rows)} rows", f"give at least {ROWS_LEAST} runs")
    return rows


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise BadInput(str(path), "is larger than 64 MiB", "give the rows of one application")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(
            str(path), f"cannot be read ({type(error).__name__})", "name a readable file"
        ) from None
    except UnicodeDecodeError:
        raise BadInput(
            str(path), "is not UTF-8 text", "give a table of comma or tab separated columns"
        ) from None


def _duration(path: Path, line: int, name: str, text: str) -> float:
    number = _number(text)
    if number is None or not math.isfinite(number) or number <= 0:
        raise BadInput(f"{path}: line {line}", f"{name} is {text[:40]!r}", "a time is a number above 0")
    return number


def _columns(path: Path, name: str, texts: Sequence[str]) -> list[list[float]]:
    """Return a number's column, or one column for each word of a column of words."""
    numbers = [_number(text) for text in texts]
    words_of = {text for number, text in zip(numbers, texts, strict=True) if number is None}
    if words_of == {""}:
        line = texts.index("") + 2
        raise BadInput(f"{path}: line {line}", f"{name} is empty", "give a number, or leave the row out")
    if any(number is None for number in numbers):
        words = sorted(set(texts))
        if len(words) == len(texts):
            told = "has another word in each row"
            raise BadInput(f"{path}: column {name}", told, "leave it out of --features")
        return [[float(text == word) for text in texts] for word in words]
    for line, number in enumerate(numbers, 2):
        if number is None or not math.isfinite(number):
            raise BadInput(f"{path}: line {line}", f"{name} is not finite", "correct it or leave the row out")
    return [[number for number in numbers if number is not None]]


def _number(text: str) -> float | None:
    """Return a number, or a truth value as one; None for a word."""
    if text.lower() in TRUTH:
        return TRUTH[text.lower()]
    try:
        return float(text)
    except ValueError:
        return None
