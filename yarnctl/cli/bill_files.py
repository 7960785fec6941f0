"""The bill as CSV, as Parquet, and as one page of HTML that needs nothing else."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Sequence
from typing import Any, NamedTuple, get_type_hints

import msgspec

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}"
    "table{border-collapse:collapse;margin:.5rem 0 2rem}th,td{padding:.25rem .75rem;text-align:left;"
    "border-bottom:1px solid #8884}td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}"
)


class Shown(NamedTuple):
    """A table for people: its title, columns, and rows of cells (None: not known)."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def flat(
    keys: Sequence[str], rows: Sequence[msgspec.Struct], kind: type[msgspec.Struct]
) -> dict[str, list[Any]]:
    """Return the columns of rows; the values of ``keys`` become columns of their own."""
    names = [name for name in kind.__struct_fields__ if name != "keys"]
    first = {key: [row.keys[place] for row in rows] for place, key in enumerate(keys)}  # type: ignore[attr-defined]
    return {**first, **{name: [getattr(row, name) for row in rows] for name in names}}


def csv_text(keys: Sequence[str], kind: type[msgspec.Struct], rows: Sequence[msgspec.Struct]) -> str:
    """Return the rows as CSV with a heading; work in MiB-seconds."""
    columns = flat(keys, rows, kind)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(
        ["" if cell is None else cell for cell in row] for row in zip(*columns.values(), strict=True)
    )
    return file.getvalue()


def parquet_bytes(keys: Sequence[str], kind: type[msgspec.Struct], rows: Sequence[msgspec.Struct]) -> bytes:
    """Return the rows as a file of Parquet; work in MiB-seconds."""
    from yarnctl.traces.parquet import arrow

    pa, pq = arrow()
    hints = get_type_hints(kind)
    types: dict[Any, Any] = {bool: pa.bool_(), int: pa.int64()}
    types |= dict.fromkeys((float, float | None), pa.float64())
    schema = pa.schema([(name, types.get(hints.get(name), pa.string())) for name in flat(keys, (), kind)])
    file = io.BytesIO()
    pq.write_table(pa.table(flat(keys, rows, kind), schema=schema), file, compression="zstd")
    return file.getvalue()


def page(title: str, tables: Sequence[Shown], notes: Sequence[str]) -> str:
    """Return tables as a page without scripts and without links to other files."""
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>',
        f"<style>{STYLE}</style><h1>{html.escape(title)}</h1>",
    ]
    for shown in tables:
        heads = "".join(f"<th>{html.escape(column)}</th>" for column in shown.columns)
        parts.append(f"<h2>{html.escape(shown.title)}</h2><table><tr>{heads}</tr>")
        parts += [f"<tr>{''.join(map(_cell, row))}</tr>" for row in shown.rows]
        parts.append("</table>")
    parts += [f"<p>{html.escape(note)}</p>" for note in notes]
    return "\n".join(parts) + "\n</html>\n"


def _cell(cell: object) -> str:
    text = "-" if cell is None else str(cell)
    is_number = text[:1].isdigit()
    return f'<td class="n">{html.escape(text)}</td>' if is_number else f"<td>{html.escape(text)}</td>"
