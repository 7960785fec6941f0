"""Replays as results: one trace under several allocators, or over many capacities at once.

Law: results follow from trace, seed and choices alone; only ``wall_s`` is a measured time.

What ``--trace`` names: tr1, tr2, packaged:NAME, swim:PATH, rumen:PATH, alibaba:PATH, parquet:PATH.

Law: whatever it is, it becomes three columns; of a MapReduce job the maps count ("the number of
map tasks as requestedTasks and map time as compTime ... map task count and time dominate",
PYTHIA section IV).

What a user may ask of an admission replay, checked.

Law: names come from the registries; whatever is wrong is one BadInput that lists what is known.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from yarn_research.admission.choices import DEFAULT_CHOICES, Choices
from yarn_research.admission.event_replay import replay
from yarn_research.admission.metrics import Scores, scores
from yarn_research.admission.traces.trace import (
    DEADLINES,
    Optimal,
    Trace,
    checked,
    deadlines_ms,
)
from yarn_research.admission.traces.trace_files import write_trace
from yarnctl.command_line import ProgressBar
from yarnctl.deciding.admission.mechanisms import SIZINGS
from yarnctl.errors import BadInput


class ReplayOptions(NamedTuple):
    """One question: these allocators, on so many containers, with these deadlines."""

    capacity: int
    deadlines: str
    allocators: tuple[str, ...]
    seed: int
    choices: Choices = DEFAULT_CHOICES
    optimal: Optimal = "reachable"


def check_options(
    capacity: int, deadlines: str, allocators: str, seed: int, choose: Sequence[str] = ()
) -> ReplayOptions:
    """Check what was asked; raises BadInput for an unknown name."""
    if deadlines not in DEADLINES:
        raise BadInput("--deadlines", f"{deadlines[:40]!r} is not known", f"one of {', '.join(DEADLINES)}")
    optimal, choices = _choices(choose)
    return ReplayOptions(capacity, deadlines, _names(allocators), seed, choices, optimal)


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


FORMS = "one of tr1, tr2, packaged:fb2009, swim:PATH[@FROM-TO], rumen:PATH, alibaba:PATH, parquet:PATH"


def load_trace(text: str, seed: int = 0) -> Trace:
    """Return the trace that a SPEC names; ``seed`` serves tr1 and tr2. Raises BadInput otherwise."""
    from yarn_research.admission.traces.generator import PUBLISHED

    if text in PUBLISHED:
        from yarn_research.admission.traces.generator import generate

        return generate(PUBLISHED[text], seed)
    kind, _, rest = text.partition(":")
    if rest and kind == "alibaba":
        from yarn_research.admission.traces.trace_files import read_alibaba

        return read_alibaba(Path(rest))
    if rest and kind == "parquet":
        from yarn_research.admission.traces.trace_files import read_trace

        return read_trace(Path(rest))
    if rest and kind in ("swim", "rumen", "packaged"):
        return _of_jobs(text)
    raise BadInput(f"--trace {text[:80]!r}", "not a trace", FORMS)


def _of_jobs(text: str) -> Trace:
    """Return the maps of a workload as a trace."""
    from emulator.workload.spec import load

    loaded = load(text, "production")
    rows = [(job.submitted_at_ms, len(job.map_ms), sum(job.map_ms)) for job in loaded.jobs]
    columns = np.array(rows, dtype=np.int64).T
    return checked(Trace(loaded.source, *(column.copy() for column in columns)))


def admission(spec: str, asked: ReplayOptions, save: Path | None = None) -> dict[str, Any]:
    """Load the trace, replay it under each allocator; return what ``--json`` prints."""
    trace = load_trace(spec, asked.seed)
    if save is not None:
        write_trace(trace, save)
    deadline_ms = deadlines_ms(trace, asked.deadlines, asked.capacity, asked.seed, asked.optimal)
    told, bars = {}, {}
    with ProgressBar("replaying", len(asked.allocators)) as progress:
        for name in progress.counted(asked.allocators):
            begun = time.perf_counter()
            outcome = replay(trace, deadline_ms, asked.capacity, SIZINGS[name], asked.choices)
            wall_s = time.perf_counter() - begun
            found = scores(trace, outcome)
            told[name] = as_printed(found, wall_s)
            bars[name] = {"fairness": found.fairness.bar, "equality": found.equality.bar}
    return {
        "trace": trace.source,
        "jobs": len(trace),
        "capacity": asked.capacity,
        "deadlines": asked.deadlines,
        "seed": asked.seed,
        "allocators": told,
        "bars_95": bars,
    }


def as_printed(found: Scores, wall_s: float) -> dict[str, Any]:
    """Return one allocator's metrics under the names that other tools read."""
    return {
        "sdr": found.sdr,
        "ptr": found.ptr,
        "wtr": found.wtr,
        "fairness": found.fairness.mean,
        "equality": found.equality.mean,
        "utilisation": found.utilisation,
        "jobs": found.jobs,
        "met": found.met,
        "missed": found.missed,
        "dropped": found.dropped,
        "wall_s": round(wall_s, 4),
    }


def one(trace: Trace, name: str, asked: ReplayOptions) -> Scores:
    """Return the metrics of one replay of a trace that is loaded."""
    deadline_ms = deadlines_ms(trace, asked.deadlines, asked.capacity, asked.seed, asked.optimal)
    return scores(trace, replay(trace, deadline_ms, asked.capacity, SIZINGS[name], asked.choices))
