"""Rows of a study: the schemes that are played, the scheme ``mix`` once for each loss budget.

Law: a row is a scheme with its options. ``with_options`` is the only place where options reach a run, so that
the identity of a run has them. A row without options runs what ``yarn-emulator compare`` runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from emulator.virtual.run import Setup
from emulator.virtual.schemes import SCHEMES, Scheme

BUDGETED = "mix"
"""The scheme that takes a loss budget."""


class SchemeRow(NamedTuple):
    """One row: its name in the results, its scheme, and the options of ``mix`` (None: not given)."""

    name: str
    scheme: Scheme
    may_lose_ratio: float | None = None
    room_within_ms: int | None = None
    second_worth_ratio: float = 0.0
    kills_max: int = 1


def rows_of(
    schemes: Sequence[str],
    may_lose_ratios: Sequence[float],
    room_within_ms: int | None,
    second_worth_ratio: float = 0.0,
    kills_max: int = 1,
) -> tuple[SchemeRow, ...]:
    """Return a row for each scheme, of ``mix`` one for each budget: ``mix-2`` may lose 2 %."""
    rows = []
    for name in schemes:
        if name != BUDGETED:
            rows.append(SchemeRow(name, SCHEMES[name]))
            continue
        rows += [
            SchemeRow(
                f"{name}-{100 * ratio:g}", SCHEMES[name], ratio, room_within_ms, second_worth_ratio, kills_max
            )
            for ratio in may_lose_ratios
        ]
    return tuple(rows)


def with_options(setup: Setup, row: SchemeRow) -> Setup:
    """Return the setup with a row's options."""
    if row.may_lose_ratio is None:
        return setup
    return msgspec.structs.replace(
        setup,
        may_lose_ratio=row.may_lose_ratio,
        room_within_ms=row.room_within_ms,
        second_worth_ratio=row.second_worth_ratio or msgspec.UNSET,
        kills_max=msgspec.UNSET if row.kills_max == 1 else row.kills_max,
    )
