"""Short ids: the end of a YARN id, begun by a mark, which means the only known id that ends with it."""

from __future__ import annotations

import re
from collections.abc import Iterable

MARK = "…"
STAMP_DIGITS = 4  # Of the ResourceManager's start time: two of its starts rarely agree in it

_FULL = re.compile(
    r"(?<![\w./-])(?:application|attempt|container)(?:_e[0-9]+)?_([0-9]+)((?:_[0-9a-z]+)+)(?![\w/-]|\.\w)"
)
"""An id by itself: as a part of a file's name it is left as it is."""
_SHORT = re.compile(r"(?:…|\.\.\.)?([0-9]+(?:_(?:[0-9]+|[mr]))*_[0-9]+)")


def shortened(text: str) -> str:
    """Return the text with each id of an application, attempt or container in its short form."""
    return _FULL.sub(lambda match: f"{MARK}{match[1][-STAMP_DIGITS:]}{match[2]}", text)


def ending(wanted: str) -> str | None:
    """Return the ending that a short form names; None if ``wanted`` is no short form."""
    match = _SHORT.fullmatch(wanted)
    return None if match is None else match[1]


def resolved(wanted: str, known: Iterable[str]) -> list[str]:
    """Return the known ids that ``wanted`` can mean, sorted; itself where it is no short form."""
    end = ending(wanted)
    if end is None:
        return [wanted]
    return sorted({each for each in known if each.endswith(end)})


def ids_in(text: str) -> Iterable[str]:
    """Return the full ids in a text."""
    return (match[0] for match in _FULL.finditer(text))
