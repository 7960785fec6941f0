"""Admission on TR2, beside a SimPy process per job.

Law: both sides answer the same; a bench whose sides disagree stops.
"""

from __future__ import annotations

from yarn_research.admission.event_replay import replay
from yarn_research.admission.traces.generator import TR2, generate
from yarn_research.admission.traces.trace import ReplayOutcome, deadlines_ms
from yarn_research.bench.row import Row, cpu_ms, spread
from yarn_research.bench.simpy_admission import Model
from yarnctl.deciding.admission.mechanisms.pythia import PYTHIA

CAPACITY = 2500
PREFIX = 40_000


def admission_simpy(prefix: int = PREFIX, runs: int = 3) -> Row:
    """PYTHIA by the gate's own round and as a SimPy process per job, turn by turn on the first jobs of TR2."""
    trace = generate(TR2, 0).head(prefix)
    deadline_ms = deadlines_ms(trace, "Fixed2x", CAPACITY)
    columns = (trace.submitted_at_ms, deadline_ms, trace.tasks, trace.work_ms)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    ours: list[float] = []
    theirs: list[float] = []
    found: list[ReplayOutcome] = []
    for _ in range(runs):
        ours.append(cpu_ms(lambda: found.append(replay(trace, deadline_ms, CAPACITY, PYTHIA))))
        model = Model(rows, CAPACITY)
        theirs.append(cpu_ms(model.env.run))
        outcome = found[-1]
        if model.started != outcome.started_at_ms.tolist() or model.containers != outcome.containers.tolist():
            raise SystemExit("admission-simpy: the two sides disagree")
    us, simpy_us = (spread(each)["median"] * 1000 / prefix for each in (ours, theirs))
    return Row(
        name="admission-simpy",
        what="PYTHIA on TR2, processor time per job, beside a SimPy process per job (same answers)",
        ours=us,
        baseline=simpy_us,
        ratio=simpy_us / us,
        target=">= 0.5",
        holds=simpy_us / us >= 0.5,
        unit="us",
        details={"jobs": prefix, "ours_ms": spread(ours), "simpy_ms": spread(theirs)},
    )
