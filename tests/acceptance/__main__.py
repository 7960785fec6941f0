"""``python -m tests.acceptance [--only ID ...]``: run the rows, write what they show.

Writes ``acceptance.json`` and the table of research/notes. Exit status 1 if a row is absent or does
not run; a missed target is printed and leaves it 0. With ``--only`` the other rows keep what
``acceptance.json`` says of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

from tests.acceptance.rows import ROOT, Row, complaints, expected_ids, load_rows
from tests.acceptance.running import VERDICTS, Commands, Result, run_row
from tests.acceptance.table import lines_in, lines_of, table, with_table
from yarnctl.errors import BadInput, YarnctlError

ACCEPTANCE = ROOT / "acceptance.json"
PAGE = ROOT / "research" / "notes" / "acceptance.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rows and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.acceptance", description="Run the acceptance rows."
    )
    parser.add_argument(
        "--only", nargs="+", metavar="ID", help="run these rows; the others stay as they were"
    )
    only = parser.parse_args(arguments).only
    try:
        rows = load_rows()
        absent = complaints(rows, expected_ids())
        results = run_with_progress(chosen(rows, only))
        write(rows, results)
    except YarnctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    for line in absent:
        print(f"error: {line}", file=sys.stderr)
    print(closing_line(results))
    return 1 if absent or any(result.verdict == "broken" for result in results) else 0


def chosen(rows: list[Row], only: Sequence[str] | None) -> list[Row]:
    """Return the rows to run."""
    unknown = sorted(set(only or ()) - {row.id for row in rows})
    if unknown:
        raise BadInput("--only", f"no row has the id {', '.join(unknown)}")
    return [row for row in rows if not only or row.id in only]


def run_with_progress(rows: list[Row]) -> list[Result]:
    """Run rows, a line each."""
    commands = Commands()
    results = []
    for place, row in enumerate(rows, start=1):
        if row.state == "built":
            print(f"[{place}/{len(rows)}] {row.id}  {row.title} ...", flush=True)
        begun = time.monotonic()
        result = run_row(row, commands)
        taken = f"({time.monotonic() - begun:.0f} s)"
        print(f"[{place}/{len(rows)}] {row.id}  {result.verdict}  {result.measured}  {taken}", flush=True)
        results.append(result)
    return results


def write(rows: list[Row], results: list[Result]) -> None:
    """Write ``acceptance.json`` and the page's table, rows in the order of the targets."""
    if not PAGE.exists():
        raise BadInput(PAGE.name, "there is no such file to write the table into")
    text = PAGE.read_text(encoding="utf-8")
    new = {result.row.id: result.record() for result in results}
    whole, order = len(results) == len(rows), [row.id for row in rows]
    lines = ({} if whole else lines_in(text)) | lines_of(new.values())
    page = with_table(text, table(lines, order), PAGE.name)
    records = ({} if whole else earlier()) | new
    ordered = [records[name] for name in order if name in records]
    ACCEPTANCE.write_text(json.dumps(ordered, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page, encoding="utf-8")


def earlier() -> dict[str, dict[str, object]]:
    """Return what earlier runs wrote."""
    if not ACCEPTANCE.exists():
        return {}
    return {record["id"]: record for record in json.loads(ACCEPTANCE.read_text(encoding="utf-8"))}


def closing_line(results: list[Result]) -> str:
    """Return the counts of all verdicts."""
    verdicts = [result.verdict for result in results]
    counts = (f"{verdicts.count(name)} {name}" for name in VERDICTS)
    return "acceptance: " + ", ".join(counts)


if __name__ == "__main__":
    raise SystemExit(main())
