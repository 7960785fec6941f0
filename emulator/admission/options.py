"""What a user may ask of an admission replay, checked.

Law: names come from the registries; whatever is wrong is one BadInput that lists what is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from emulator.admission.engines import ENGINES, Engine, chosen
from emulator.admission.traces.trace_deadlines import DEADLINES, Optimal
from yarnctl.deciding.admission.mechanisms import SIZINGS
from yarnctl.deciding.admission.records import DEFAULT_CHOICES, Choices
from yarnctl.errors import BadInput


class Asked(NamedTuple):
    """One question: these allocators, on so many containers, with these deadlines."""

    capacity: int
    deadlines: str
    allocators: tuple[str, ...]
    engine: Engine
    seed: int
    choices: Choices = DEFAULT_CHOICES
    optimal: Optimal = "reachable"


def ask(
    capacity: int, deadlines: str, allocators: str, engine: str | None, seed: int, choose: Sequence[str] = ()
) -> Asked:
    """Check what was asked; raises BadInput for an unknown name."""
    if deadlines not in DEADLINES:
        raise BadInput("--deadlines", f"{deadlines[:40]!r} is not known", f"one of {', '.join(DEADLINES)}")
    if engine is not None and engine not in ENGINES:
        raise BadInput("--engine", f"{engine[:40]!r} is not known", f"one of {', '.join(ENGINES)}")
    optimal, choices = _choices(choose)
    return Asked(capacity, deadlines, _names(allocators), chosen(engine), seed, choices, optimal)


def _names(allocators: str) -> tuple[str, ...]:
    if allocators == "all":
        return tuple(SIZINGS)
    names = tuple(dict.fromkeys(name.strip() for name in allocators.split(",")))
    for name in names:
        if name not in SIZINGS:
            raise BadInput("--allocators", f"{name[:40]!r} is not known", f"one of {', '.join(SIZINGS)}, all")
    return names


def _choices(choose: Sequence[str]) -> tuple[Optimal, Choices]:
    """Read NAME=VALUE; ``optimal`` is the deadlines', the others are the allocators' ``Choices``."""
    given: dict[str, object] = {}
    for each in choose:
        name, equals, value = each.partition("=")
        if not equals:
            raise BadInput(f"--choose {each[:40]!r}", "is not NAME=VALUE", _known())
        try:
            given[name] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            given[name] = value
    optimal = given.pop("optimal", "reachable")
    try:
        checked: Optimal = msgspec.convert(optimal, Optimal)
        return checked, msgspec.convert(
            {**msgspec.to_builtins(DEFAULT_CHOICES), **_all_known(given)}, Choices
        )
    except msgspec.ValidationError as error:
        raise BadInput("--choose", str(error), _known()) from None


def _all_known(given: dict[str, object]) -> dict[str, object]:
    for name in given:
        if name not in Choices.__struct_fields__:
            raise BadInput("--choose", f"{name[:40]!r} is not known", _known())
    return given


def _known() -> str:
    return f"one of {', '.join(Choices.__struct_fields__)}, optimal; see docs/admission.md"
