"""The acceptance rows: every id, and what each figure is held against.

Law: a bound may not be loosened unseen. Commands of pytest are left out: a test may move within the
repository; programs and ``python -m`` are what others call.
"""

from __future__ import annotations

from typing import Any

from tests.acceptance.rows import Figure, Row, load_rows

PASSED = ("pytest",)
FROZEN_BELOW = 15
"""Rows of this issue and later ones are still being made."""


def rows() -> dict[str, Any]:
    """Return every row that is frozen, by its id."""
    return {row.id: _row(row) for row in load_rows() if row.issue < FROZEN_BELOW}


def _row(row: Row) -> dict[str, Any]:
    return {
        "state": row.state,
        "recorded": row.recorded is not None,
        "commands": {" ".join(words): True for words in row.commands if words[0] not in PASSED},
        "figures": {_name(each): _figure(each) for each in row.figure},
    }


def _name(figure: Figure) -> str:
    source = figure.of or (f"answer {figure.answer}" if figure.answer else "answers")
    return f"{source}: {figure.path} ({figure.reduce}) {figure.op or 'shown'}"


def _figure(figure: Figure) -> dict[str, Any]:
    return {"unit": figure.unit, "bound": figure.bound, "tolerance": figure.tolerance}
