"""Figures: pulled out of a command's JSON by a path, reduced to one value, held against a bound.

A path is a chain of steps divided by dots: a ``key``; a number (place in a list); ``*`` (every
element); ``[key=a|b]`` or ``[key!=a|b]`` (the elements of a list whose ``key`` is, or is not, one
of the values; an element without the key is not). ``figures.[figure=4|5].rows.*.ours`` is an example.

Law: what is not found is an error of the row (it "does not run"), never a silent zero.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.acceptance.rows import Figure

STEP = re.compile(r"\[[^]]*\]|[^.]+")
CHOICE = re.compile(r"\[(?P<key>[^!=]+)(?P<not>!?)=(?P<values>[^]]*)\]")


class NotFound(Exception):
    """A path leads nowhere, or to something that cannot be reduced as asked."""


def find(document: object, path: str) -> list[object]:
    """Return everything the path leads to, in the document's order; an empty list leads to nothing."""
    held = [document]
    for step in STEP.findall(path):
        held = [found for item in held for found in follow(item, step, path)]
    return held


def follow(item: object, step: str, path: str) -> Sequence[object]:
    """Take one step of a path from one item."""
    if isinstance(item, dict):
        if step == "*":
            return list(item.values())
        if step in item:
            return [item[step]]
    elif isinstance(item, list):
        if step == "*":
            return item
        if step.isdigit() and int(step) < len(item):
            return [item[int(step)]]
        choice = CHOICE.fullmatch(step)
        if choice is not None:
            return [element for element in item if chosen(element, choice)]
    raise NotFound(f"{path}: nothing at {step!r}")


def chosen(element: object, choice: re.Match[str]) -> bool:
    """Say whether an element of a list is among those that a step chooses."""
    value = str(element[choice["key"]]) if isinstance(element, dict) and choice["key"] in element else None
    return (value in choice["values"].split("|")) != bool(choice["not"])


def value_of(figure: Figure, documents: Sequence[object]) -> float | bool | str:
    """Return the figure's value; with several commands, their outputs are taken together."""
    found = [item for document in documents for item in find(document, figure.path)]
    if not found:
        raise NotFound(f"{figure.path} leads to nothing")
    if figure.reduce == "only":
        if len(found) != 1 or not isinstance(found[0], int | float | str):
            raise NotFound(f"{figure.path} leads to {len(found)} values, one is expected")
        return found[0]
    if figure.reduce in ("count", "held", "undecided"):
        return reduced_claims(figure, found)
    return reduced_numbers(figure, found)


def reduced_claims(figure: Figure, found: list[object]) -> int | float:
    """Count values; of claims, the share that holds, or how many have no answer."""
    if figure.reduce == "count":
        return len(found)
    if figure.reduce == "undecided":
        return sum(not isinstance(item, bool) for item in found)
    return sum(item is True for item in found) / len(found)


def reduced_numbers(figure: Figure, found: list[object]) -> float:
    """Reduce numbers to one; null (not to be compared) is left out."""
    numbers = [float(item) for item in found if isinstance(item, int | float)]
    if not numbers:
        raise NotFound(f"{figure.path} leads to no number")
    sizes = [abs(number) for number in numbers]
    results = {
        "mean-abs": sum(sizes) / len(sizes),
        "max-abs": max(sizes),
        "max": max(numbers),
        "min": min(numbers),
        "sum": sum(numbers),
    }
    return results[figure.reduce]


def holds(figure: Figure, value: float | bool | str) -> bool:
    """Hold a value against the figure's bound; a figure without a rule always holds."""
    if figure.op is None:
        return True
    if figure.op == "==":
        return value == figure.bound
    if isinstance(value, str) or figure.bound is None:
        return False
    if figure.op == "within":
        return abs(value - figure.bound) <= figure.tolerance
    return value <= figure.bound if figure.op == "<=" else value >= figure.bound


def text_of(figure: Figure, value: float | bool | str) -> str:
    """Write a value as a reader wants it."""
    if isinstance(value, bool):
        return f"{figure.says} {'yes' if value else 'no'}"
    if isinstance(value, str):
        return f"{figure.says} {value}"
    if figure.unit == "percent":
        return f"{figure.says} {100 * value:.1f} %"
    suffix = {"times": " x", "ms": " ms", "s": " s"}.get(figure.unit, "")
    return (
        f"{figure.says} {value:,.4g}{suffix}" if abs(value) < 1000 else f"{figure.says} {value:,.0f}{suffix}"
    )
