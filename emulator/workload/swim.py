"""Reader for SWIM traces: tab-separated rows of bytes and seconds, plain or gzip.

Law: a row is taken as it stands or refused by file, line and field; nothing is guessed and
nothing is dropped. Format: github.com/SWIMProjectUCB/SWIM, ``workloadSuite``, no header:
job id, submit time (s), gap to the job before (s), map input bytes, shuffle bytes, reduce
output bytes. Cite Chen, Ganapathi, Griffith, Katz (MASCOTS'11).
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from emulator.workload.limits import LONGEST_MS, LONGEST_SAID
from emulator.workload.trace_file import is_name, read_text, unique_names
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIELDS = ("job_id", "submitted_at_s", "gap_s", "input_bytes", "shuffle_bytes", "output_bytes")
HOUR_MS = 3_600_000

_ROW = re.compile(r"[^\x00-\x20\x7f\ud800-\udfff]{1,200}\t\d{1,15}\t-?\d{1,15}(?:\t\d{1,15}){3}", re.ASCII)
_INTEGER = re.compile(r"-?\d+", re.ASCII)
_REMEDY = "expected six columns: id, submit s, gap s, input, shuffle and output bytes"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SwimRows:
    """The rows of a trace as columns of equal length, in stable order of submission.

    ``names`` are the job ids, made unique; the other columns are int64. ``repeated_names``
    counts the rows whose id had been used before (they are kept, as ``id~2``).
    """

    names: list[str]
    submitted_at_ms: NDArray[np.int64]
    gap_s: NDArray[np.int64]
    input_bytes: NDArray[np.int64]
    shuffle_bytes: NDArray[np.int64]
    output_bytes: NDArray[np.int64]
    repeated_names: int = 0
    out_of_order: int = 0


class Hours(NamedTuple):
    """A half-open window [from, to) of a trace, in milliseconds since its start."""

    from_ms: int
    to_ms: int


def read_swim(path: Path, where: str | None = None) -> SwimRows:
    """Read a SWIM trace, plain or gzip; ``where`` names it in errors (default: the path).

    Rows out of order are sorted stably by submit time. Raises BadInput at ``where:line`` for a
    torn row, a wrong number of columns, a negative size or time, or a number that is no integer
    below 10^15.
    """
    return parse_swim(read_text(path, where or str(path)), where or str(path))


def parse_swim(text: str, where: str) -> SwimRows:
    """Turn the text of a SWIM trace into columns; see ``read_swim`` for the checks."""
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    if lines == [""]:
        raise BadInput(where, "the trace has no rows", _REMEDY)
    for number, line in enumerate(lines, 1):
        if _ROW.fullmatch(line) is None:
            raise BadInput(f"{where}:{number}", _what_is_wrong(line), _REMEDY)
    rows = _columns("\t".join(lines).split("\t"))
    if int(rows.submitted_at_ms[-1]) > LONGEST_MS:
        raise _too_late(lines, where)
    return rows


def format_swim(rows: SwimRows) -> str:
    """Print rows as SWIM text (the inverse of ``parse_swim`` for rows in order, whole seconds)."""
    columns = zip(
        rows.names,
        (rows.submitted_at_ms // 1000).tolist(),
        rows.gap_s.tolist(),
        rows.input_bytes.tolist(),
        rows.shuffle_bytes.tolist(),
        rows.output_bytes.tolist(),
        strict=True,
    )
    return "".join("\t".join(map(str, row)) + "\n" for row in columns)


def slice_hours(rows: SwimRows, hours: Hours, where: str, held: str = "") -> SwimRows:
    """Return the rows submitted in [from, to), their times shifted so that ``from`` is 0.

    Raises BadInput if no row lies in the window; ``held`` then says which hours there are.
    """
    inside = (rows.submitted_at_ms >= hours.from_ms) & (rows.submitted_at_ms < hours.to_ms)
    if not inside.any():
        last_h = int(rows.submitted_at_ms[-1]) / HOUR_MS
        remedy = held or f"the trace ends at hour {last_h:.2f}"
        raise BadInput(where, "no job is submitted in these hours", remedy)
    return SwimRows(
        names=[name for name, keep in zip(rows.names, inside.tolist(), strict=True) if keep],
        submitted_at_ms=rows.submitted_at_ms[inside] - hours.from_ms,
        gap_s=rows.gap_s[inside],
        input_bytes=rows.input_bytes[inside],
        shuffle_bytes=rows.shuffle_bytes[inside],
        output_bytes=rows.output_bytes[inside],
        repeated_names=rows.repeated_names,
        out_of_order=rows.out_of_order,
    )


def _too_late(lines: list[str], where: str) -> BadInput:
    times = ((number, line.split("\t")[1]) for number, line in enumerate(lines, 1))
    number, text = next((number, text) for number, text in times if int(text) * 1000 > LONGEST_MS)
    problem = f"field submitted_at_s: {text} is more than {LONGEST_SAID} after the start"
    return BadInput(f"{where}:{number}", problem, "give seconds since the start of the trace")


def _columns(cells: list[str]) -> SwimRows:
    import numpy as np

    width = len(FIELDS)
    numbers = np.array([list(map(int, cells[i::width])) for i in range(1, width)], dtype=np.int64)
    order = np.argsort(numbers[0], kind="stable")
    out_of_order = int((np.diff(numbers[0]) < 0).sum())
    names, repeated = unique_names(cells[0::width])
    if out_of_order:
        names = [names[i] for i in order.tolist()]
        numbers = numbers[:, order]
    return SwimRows(
        names=names,
        submitted_at_ms=numbers[0] * 1000,
        gap_s=numbers[1],
        input_bytes=numbers[2],
        shuffle_bytes=numbers[3],
        output_bytes=numbers[4],
        repeated_names=repeated,
        out_of_order=out_of_order,
    )


def _what_is_wrong(line: str) -> str:
    cells = line.split("\t")
    if len(cells) != len(FIELDS):
        near = FIELDS[min(len(cells), len(FIELDS)) - 1]
        return f"field {near}: the row is torn, {len(cells)} columns instead of {len(FIELDS)}"
    if not is_name(cells[0]):
        return "field job_id: empty, too long, or with blanks or control characters"
    for field, cell in zip(FIELDS[1:], cells[1:], strict=True):
        if _INTEGER.fullmatch(cell) is None:
            return f"field {field}: {cell[:40]!r} is not an integer"
        if cell.startswith("-") and field != "gap_s":
            return f"field {field}: {cell[:40]} is negative"
        if len(cell.lstrip("-")) > 15:
            return f"field {field}: {cell[:40]} is not below 10^15"
    return "field job_id: the row cannot be read"
