"""What ``--trace`` names: tr1, tr2, packaged:NAME, swim:PATH, rumen:PATH, alibaba:PATH, parquet:PATH.

Law: whatever it is, it becomes three columns; of a MapReduce job the maps count ("the number of
map tasks as requestedTasks and map time as compTime ... map task count and time dominate",
PYTHIA section IV).
"""

from __future__ import annotations

from pathlib import Path

from emulator.admission.traces.trace import Trace, checked
from yarnctl.errors import BadInput

FORMS = "one of tr1, tr2, packaged:fb2009, swim:PATH[@FROM-TO], rumen:PATH, alibaba:PATH, parquet:PATH"


def load_trace(text: str, seed: int = 0) -> Trace:
    """Return the trace that a SPEC names; ``seed`` serves tr1 and tr2. Raises BadInput otherwise."""
    from emulator.admission.traces.marginals import PUBLISHED

    if text in PUBLISHED:
        from emulator.admission.traces.generator import generate

        return generate(PUBLISHED[text], seed)
    kind, _, rest = text.partition(":")
    if rest and kind == "alibaba":
        from emulator.admission.traces.alibaba import read_alibaba

        return read_alibaba(Path(rest))
    if rest and kind == "parquet":
        from emulator.admission.traces.columns import read_trace

        return read_trace(Path(rest))
    if rest and kind in ("swim", "rumen", "packaged"):
        return _of_jobs(text)
    raise BadInput(f"--trace {text[:80]!r}", "not a trace", FORMS)


def _of_jobs(text: str) -> Trace:
    """Return the maps of a workload as a trace."""
    import numpy as np

    from emulator.workload.spec import load

    loaded = load(text, "production")
    rows = [(job.submitted_at_ms, len(job.map_ms), sum(job.map_ms)) for job in loaded.jobs]
    columns = np.array(rows, dtype=np.int64).T
    return checked(Trace(loaded.source, *(column.copy() for column in columns)))
