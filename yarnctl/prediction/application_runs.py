"""Runs of applications: what ran, with how many containers and which settings, and how long it took.

A row that cannot be a run is refused with its line, and then none of its file is taken. The same run read
twice is one run.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from yarnctl.errors import BadInput

ELAPSED_MAX_MS = 366 * 86_400_000
CONTAINERS_MAX = 1_000_000
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
KIND = re.compile(r"[a-z0-9_-]{1,40}")


class KnownRun(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """One run of an application that succeeded.

    ``kind`` is its framework, ``containers`` include its master's; ``features`` are numbers known beforehand
    (the size of its input), ``settings`` as they were said; ``source`` tells where the run is known from.
    """

    application: str
    kind: str
    features: dict[str, float]
    settings: dict[str, str]
    containers: int
    elapsed_ms: int
    source: str


class RunColumns(NamedTuple):
    """Which columns of a table make a run: ``elapsed`` in ``unit_ms``, rows with the values in ``only``."""

    application: str
    kind: str
    containers: str
    elapsed: str
    unit_ms: int
    features: Sequence[str] = ()
    settings: Sequence[str] = ()
    only: Mapping[str, str] = {}


def identity(run: KnownRun) -> bytes:
    """Return what makes a run itself: all of it, whatever the order of its names."""
    return msgspec.json.encode(run, order="deterministic")


def merged(known: Iterable[KnownRun], new: Iterable[KnownRun]) -> tuple[KnownRun, ...]:
    """Return all runs, each once, in the order in which they came."""
    return tuple({identity(run): run for run in (*known, *new)}.values())


def checked(run: KnownRun, where: str) -> KnownRun:
    """Return a run that can be one; BadInput names what cannot be, at ``where``."""
    wrong = ""
    if not NAME.fullmatch(run.application):
        wrong = f"application {run.application[:40]!r} is not a name of 1 to 200 characters"
    elif not KIND.fullmatch(run.kind):
        wrong = f"kind {run.kind[:40]!r} is not a word of lower-case letters"
    elif not 1 <= run.containers <= CONTAINERS_MAX:
        wrong = f"containers {run.containers} is not from 1 to {CONTAINERS_MAX:,}"
    elif not 0 < run.elapsed_ms <= ELAPSED_MAX_MS:
        wrong = f"elapsed_ms {run.elapsed_ms} is not above 0 and at most 366 days"
    if wrong:
        raise BadInput(where, wrong, "correct the file; nothing was imported")
    for name, value in run.features.items():
        if not math.isfinite(value):
            raise BadInput(where, f"feature {name[:40]} is {value}", "use a finite number")
    return run


def runs_in_lines(text: str, where: str) -> tuple[KnownRun, ...]:
    """Read runs that are written one a line as JSON objects; blank lines count for nothing."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{where}: line {number}"
        try:
            run = msgspec.json.decode(line, type=KnownRun)
        except msgspec.DecodeError as error:
            remedy = "use one JSON object per line, with the fields of yarnctl runs --json"
            raise BadInput(place, str(error)[:200], remedy) from None
        found.append(checked(run, place))
    return tuple(found)


def runs_in_table(text: str, where: str, columns: RunColumns) -> tuple[KnownRun, ...]:
    """Read a table of comma or tab separated columns, whose first line names them."""
    first = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if "\t" in first else ",")
    named = [name.strip() for name in reader.fieldnames or ()]
    reader.fieldnames = named
    wanted = (columns.containers, columns.elapsed, *columns.features, *columns.settings, *columns.only)
    missing = next((name for name in wanted if name not in named), None)
    if missing is not None:
        raise BadInput(
            f"{where}: line 1", f"column {missing!r} does not exist", f"use one of {', '.join(named)}"[:300]
        )
    found = []
    for row in reader:
        place = f"{where}: line {reader.line_num}"
        if None in row or None in row.values():
            problem = f"has {'more' if None in row else 'fewer'} columns than line 1"
            raise BadInput(place, problem, "write all columns in each row")
        cells = {name: value.strip() for name, value in row.items()}
        if all(cells[name] == value for name, value in columns.only.items()):
            source = f"{where.rpartition('/')[2]}:{reader.line_num}"
            found.append(checked(_run(cells, columns, place, source), place))
    return tuple(found)


def _run(cells: Mapping[str, str], columns: RunColumns, place: str, source: str) -> KnownRun:
    containers = _number(cells, columns.containers, place)
    if containers != int(containers):
        raise BadInput(place, f"{columns.containers} is {containers:g}", "use whole numbers of containers")
    return KnownRun(
        application=columns.application,
        kind=columns.kind,
        features={name: _number(cells, name, place) for name in columns.features},
        settings={name: cells[name] for name in columns.settings},
        containers=int(containers),
        elapsed_ms=round(_number(cells, columns.elapsed, place) * columns.unit_ms),
        source=source,
    )


def _number(cells: Mapping[str, str], name: str, place: str) -> float:
    found = float(cells[name]) if _NUMBER.fullmatch(cells[name]) else math.nan
    if not math.isfinite(found):
        raise BadInput(place, f"{name} is {cells[name][:40]!r}", "use a finite number")
    return found
