"""SPEC: one argument that names a workload, as given to ``--production`` and ``--research``.

::

    swim:PATH[@FROM-TO]        a SWIM trace; hours FROM <= h < TO of it (7-8, 7.5-8)
    rumen:PATH                 a Rumen trace
    synthetic:NAME             a workload of the paper, or a steady one
    parquet:PATH               jobs converted before
    packaged:NAME[@FROM-TO]    a SWIM slice that comes with the program (fb2009)
    week:DIR                   what yarnctl history import wrote

Law: a SPEC yields jobs by (submitted_at_ms, name), the start of the source or window at 0;
anything else is one BadInput. Two sources are overlaid from t = 0, as in section 6 of the
paper. Of a path, only the last name enters ``source``: results carry no folders.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

import msgspec

from emulator.workload.synthetic import synthetic
from emulator.workload.week_jobs import week_jobs
from yarnctl.errors import BadInput
from yarnctl.traces.job import LONGEST_MS, LONGEST_SHOWN, Job, JobClass
from yarnctl.traces.parquet import read_parquet
from yarnctl.traces.rumen import read_rumen
from yarnctl.traces.swim import HOUR_MS, Hours, TaskModel, jobs_from_swim, read_swim, slice_hours
from yarnctl.traces.trace_file import CountedRows
from yarnctl.traces.week.week_folder import read_week

Kind = Literal["swim", "rumen", "synthetic", "parquet", "packaged", "week"]

PACKAGED: dict[str, str] = {
    "fb2009": "fb2009/FB-2009_samples_24_times_1hr_0.hours-18-and-21.tsv",
    "fb2009-day": "fb2009/FB-2009_samples_24_times_1hr_0.tsv.gz",
}
"""Slices that come with the program, below ``emulator/data``; hours are those of the original."""

HELD = {"fb2009": "it holds hours 18 and 21 only; packaged:fb2009-day holds the whole day"}
"""What an error adds for a packaged slice that has no jobs in the named hours."""

_HOURS = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)-(\d{1,6}(?:\.\d{1,6})?)", re.ASCII)
_FORMS = (
    "use one of swim:PATH[@FROM-TO], rumen:PATH, synthetic:NAME, parquet:PATH, packaged:NAME[@FROM-TO],"
    " week:DIR"
)


class Spec(NamedTuple):
    """A parsed SPEC: what kind, which path or name, which hours (None: all)."""

    kind: Kind
    name: str
    hours: Hours | None
    text: str


class Loaded(NamedTuple):
    """Jobs by (submitted_at_ms, name), notes on what was cut or renamed, and the source without folders."""

    jobs: tuple[Job, ...]
    notes: tuple[str, ...]
    source: str


def parse_spec(text: str) -> Spec:
    """Parse a SPEC without looking at files; raises BadInput for an unknown form or bad hours.

    In ``swim:`` and ``packaged:``, what follows the last ``@`` after the last ``/`` is a slice.
    """
    kind, colon, rest = text.partition(":")
    if not colon or kind not in get_args(Kind) or not rest:
        raise BadInput(f"SPEC {text[:80]!r}", "not a workload", _FORMS)
    head, at, tail = rest.rpartition("@")
    if kind not in ("swim", "packaged") or not at or "/" in tail:
        return Spec(cast(Kind, kind), rest, None, text)
    if not head:
        raise BadInput(f"SPEC {text[:80]!r}", "no path before '@'", _FORMS)
    return Spec(cast(Kind, kind), head, _parse_hours(tail, text), text)


def load(text: str, job_class: JobClass, *, seed: int = 0, counted: CountedRows = iter) -> Loaded:
    """Load the jobs that a SPEC names, all of ``job_class``.

    ``counted`` is called with every row, ``seed`` is for synthetic ones. Raises BadInput naming file, line
    and field.
    """
    spec = parse_spec(text)
    notes: Sequence[str] = ()
    if spec.kind == "synthetic":
        jobs = synthetic(spec.name, job_class, seed=seed)
    elif spec.kind == "rumen":
        jobs, notes = read_rumen(Path(spec.name), job_class, counted=counted)
    elif spec.kind == "week":
        jobs, notes = week_jobs(read_week(Path(spec.name)), lambda _: job_class)
    elif spec.kind == "parquet":
        stored = read_parquet(Path(spec.name), counted=counted)
        jobs = tuple(msgspec.structs.replace(job, job_class=job_class) for job in stored)
    else:
        jobs, notes = _load_swim(spec, job_class, counted)
    ordered = tuple(sorted(jobs, key=lambda job: (job.submitted_at_ms, job.name)))
    return Loaded(ordered, tuple(notes), _source(spec))


def merge(production: Sequence[Job], research: Sequence[Job]) -> tuple[Job, ...]:
    """Overlay two workloads from t = 0: names get ``p-`` or ``r-``, order (submitted_at_ms, name).

    The class of each job becomes that of its side. Raises BadInput if a name repeats in a side.
    """
    sides: tuple[tuple[JobClass, Sequence[Job]], ...] = (("production", production), ("research", research))
    merged = [
        msgspec.structs.replace(job, name=f"{job_class[0]}-{job.name}", job_class=job_class)
        for job_class, jobs in sides
        for job in jobs
    ]
    merged.sort(key=lambda job: (job.submitted_at_ms, job.name))
    names = sorted(job.name for job in merged)
    for left, right in pairwise(names):
        if left == right:
            raise BadInput(f"job {left}", "two jobs of one workload have this name", "rename one of them")
    return tuple(merged)


def with_load(jobs: Sequence[Job], factor: float) -> tuple[Job, ...]:
    """Multiply the arrival rate by ``factor``: inter-arrival times are divided by it.

    Deadlines keep their distance from submission. Raises BadInput unless 0 < factor < infinity,
    and for a job that would come later than any may.
    """
    if not 0 < factor < math.inf:
        raise BadInput("--load", f"{factor} is not a positive number", "1.0 keeps the trace as it is")
    moved = []
    for job in jobs:
        at_ms = round(Fraction(job.submitted_at_ms) / Fraction(factor))
        if at_ms > LONGEST_MS:
            problem = f"{factor} makes job {job.name} start more than {LONGEST_SHOWN} after the first"
            raise BadInput("--load", problem, "use a larger factor")
        deadline = job.deadline_at_ms
        later = None if deadline is None else deadline - job.submitted_at_ms + at_ms
        moved.append(msgspec.structs.replace(job, submitted_at_ms=at_ms, deadline_at_ms=later))
    return tuple(sorted(moved, key=lambda job: (job.submitted_at_ms, job.name)))


def _load_swim(spec: Spec, job_class: JobClass, counted: CountedRows) -> tuple[tuple[Job, ...], list[str]]:
    path, where = Path(spec.name), spec.name
    if spec.kind == "packaged":
        if spec.name not in PACKAGED:
            raise BadInput(
                f"SPEC {spec.text[:80]!r}", "no such packaged trace", f"use one of {', '.join(PACKAGED)}"
            )
        path, where = Path(__file__).parent.parent / "data" / PACKAGED[spec.name], f"packaged:{spec.name}"
    held = HELD.get(spec.name, "") if spec.kind == "packaged" else ""
    rows = read_swim(path, where)
    if spec.hours is not None:
        rows = slice_hours(rows, spec.hours, spec.text, held)
    return jobs_from_swim(rows, job_class, TaskModel(), counted)


def _parse_hours(text: str, spec: str) -> Hours:
    match = _HOURS.fullmatch(text)
    if match is None:
        raise BadInput(f"SPEC {spec[:80]!r}", f"the hours {text[:40]!r} are not FROM-TO", "for example @7-8")
    first, last = (math.ceil(Fraction(hours) * HOUR_MS) for hours in match.groups())
    if first >= last:
        raise BadInput(f"SPEC {spec[:80]!r}", f"the hours {text[:40]} are empty", "FROM must be below TO")
    return Hours(first, last)


def _source(spec: Spec) -> str:
    if spec.kind == "synthetic":
        return spec.text
    return f"{spec.kind}:{spec.text[spec.text.rfind('/') + 1 :].removeprefix(spec.kind + ':')}"
