"""Tables as text: under columns where they fit, else one block a row; nothing is cut off.

A word (an id, a path, an address) is never broken: cells are folded between words; where the words themselves
are too wide, ids are given by their end (:mod:`yarnctl.short_ids`); where that does not suffice either, each
row is a block of lines. What is not printed on a terminal has no width: every id in full, one line a row.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from yarnctl.short_ids import ids_in, shortened

UNFOLDED = 16  # A cell of up to this many characters is not folded: ``45.2 s`` stays on one line
PROSE_MIN = 24  # What is folded gets at least this many characters a line, or the table becomes a tower
BLOCK_MIN = 40  # A value in a block gets at least this many characters a line, however narrow the terminal is

Cells = list[list[str]]


def table_text(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None, width: int | None
) -> str:
    """Return rows under columns as text for ``width`` characters a line; None: no limit."""
    held = [list(row) for row in rows]
    cells = [["-" if cell is None else str(cell) for cell in row] for row in held]
    numbers = [bool(held) and all(_is_number(row[place]) for row in held) for place in range(len(columns))]
    head = "" if title is None else f"{title}\n"
    if width is None:
        return head + _under_columns(columns, cells, numbers, _natural(columns, cells))
    for tried, note in ((cells, ""), _with_short_ids(cells)):
        widths = _widths(columns, tried, width)
        if widths is not None:
            return head + _under_columns(columns, tried, numbers, widths) + note
    return head + _blocks(columns, cells, width)


def _is_number(cell: object) -> bool:
    return cell is None or isinstance(cell, int | float)


def _with_short_ids(cells: Cells) -> tuple[Cells, str]:
    """Return the cells with short ids, and the line that explains it."""
    full = next((each for row in cells for cell in row for each in ids_in(cell)), None)
    if full is None:
        return cells, ""
    note = f"{shortened(full)} is short for {full}; commands take both\n"
    return [[shortened(cell) for cell in row] for row in cells], note


def _longest(lines: Iterable[str]) -> int:
    from rich.cells import cell_len

    return max((cell_len(line) for line in lines), default=0)


def _natural(columns: Sequence[str], cells: Cells) -> list[int]:
    return [
        max(_longest([column]), *(_longest(row[place].splitlines()) for row in cells), 0)
        for place, column in enumerate(columns)
    ]


def _least(column: str, cells: Sequence[str]) -> int:
    """Return the smallest width at which no word of a column is broken and its prose can be read."""
    longest = _longest(line for cell in cells for line in cell.splitlines())
    words = _longest(word for text in (column, *cells) for word in text.split())
    return max(words, longest if longest <= UNFOLDED else min(longest, PROSE_MIN))


def _widths(columns: Sequence[str], cells: Cells, width: int) -> list[int] | None:
    wanted = _natural(columns, cells)
    widths = [_least(column, [row[place] for row in cells]) for place, column in enumerate(columns)]
    left = width - _frame(len(columns)) - sum(widths)
    if left < 0:
        return None
    while left and widths != wanted:
        for place, most in enumerate(wanted):
            if left and widths[place] < most:
                widths[place] += 1
                left -= 1
    return widths


def _frame(columns: int) -> int:
    return 3 * columns + 1


def _folded(text: str, width: int) -> str:
    """Return the text with line ends between its words, so that lines have ``width`` characters at most."""
    return "\n".join(
        "\n".join(textwrap.wrap(line, max(1, width), break_long_words=False, break_on_hyphens=False))
        if _longest([line]) > width
        else line
        for line in text.splitlines()
    )


def _under_columns(
    columns: Sequence[str], cells: Cells, numbers: Sequence[bool], widths: Sequence[int]
) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column, is_number, width in zip(columns, numbers, widths, strict=True):
        header = _folded(column, width)
        table.add_column(
            header, justify="right" if is_number else "left", width=max(1, width), overflow="fold"
        )
    for row in cells:
        table.add_row(*(Text(_folded(cell, width)) for cell, width in zip(row, widths, strict=True)))
    console = Console(width=max(1, sum(max(1, width) for width in widths) + _frame(len(columns))))
    with console.capture() as captured:  # rich would exit by itself where the reader is gone
        console.print(table)
    return captured.get()


def _blocks(columns: Sequence[str], cells: Cells, width: int) -> str:
    indent = max(map(len, columns), default=0) + 2
    room = max(BLOCK_MIN, width - indent)
    return "\n".join(
        "".join(
            f"{name:<{indent}}{line}".rstrip() + "\n"
            for column, cell in zip(columns, row, strict=True)
            for name, line in zip_longest([column], _folded(_joined(cell), room).splitlines(), fillvalue="")
        )
        for row in cells
    )


def _joined(cell: str) -> str:
    return re.sub(r"\s*\n\s*", " ", cell)
