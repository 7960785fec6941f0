"""Where ORiON's Alg 2 has nothing or two things: ours first, the others by NAME=VALUE (research/notes/paper.md)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yarnctl.deciding.admission.mechanisms.orion import OURS, OrionChoices
from yarnctl.errors import BadInput

READINGS: dict[str, OrionChoices] = {
    "ours": OURS,
    "capacity=none": OrionChoices(capacity="none"),
    "waiting=never": OrionChoices(waiting="never"),
    "ends=before": OrionChoices(ends="before"),
    "budget=application": OrionChoices(budget="application"),
    "unplaceable=best_effort": OrionChoices(unplaceable="best_effort"),
}
"""Ours, and each other one by itself, by what chooses it."""


def orion_choices(chosen: Sequence[str]) -> OrionChoices:
    """Read NAME=VALUE; raises BadInput for what is not known."""
    names = OrionChoices.__struct_fields__
    known = f"one of {', '.join(names)}; see research/notes/paper.md, section ORiON"
    given = {}
    for each in chosen:
        name, equals, value = each.partition("=")
        if not equals or name not in names:
            raise BadInput(f"--choose {each[:40]!r}", "is not NAME=VALUE with a known name", known)
        given[name] = value
    try:
        return msgspec.convert({**msgspec.to_builtins(OURS), **given}, OrionChoices)
    except msgspec.ValidationError as error:
        raise BadInput("--choose", str(error), known) from None
