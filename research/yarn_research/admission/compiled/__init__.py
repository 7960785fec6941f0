"""The compiled twins of the named allocators: the same answers as the plain kernel, job by job.

Law: this package is imported only when the compiled engine is requested; tests compare
both engines on random traces and on all of TR1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from yarn_research.admission.compiled import kernels
from yarn_research.admission.traces.trace import NEVER, ReplayOutcome
from yarnctl.deciding.admission.mechanisms import SIZINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from yarn_research.admission.choices import Choices
    from yarn_research.admission.traces.trace import Trace

ORDERS = {"tasks": kernels.BY_TASKS, "ratio": kernels.BY_RATIO, "earliest": kernels.BY_DEADLINE}
SIZED = {"oracle": kernels.ORACLE, "pythia": kernels.PYTHIA, "justice": kernels.JUSTICE}


def replay_compiled(
    trace: Trace, deadline_ms: NDArray[np.int64], capacity: int, name: str, choices: Choices
) -> ReplayOutcome:
    """Replay as ``yarn_research.admission.plain.event_replay.replay`` does; runs without the interpreter's
    lock.
    """
    if name not in SIZED and choices.sharing == "rebalanced":
        return _rebalanced(trace, deadline_ms, capacity, SIZINGS[name].drops_late)
    jobs = len(trace)
    started, ended = np.full(jobs, NEVER, dtype=np.int64), np.full(jobs, NEVER, dtype=np.int64)
    containers, met = np.zeros(jobs, dtype=np.int64), np.zeros(jobs, dtype=np.bool_)
    told = kernels.Results(started, ended, containers, met)
    due_ms = trace.submitted_at_ms + deadline_ms
    columns = kernels.Jobs(trace.submitted_at_ms, deadline_ms, due_ms, trace.tasks, trace.work_ms)
    if name in SIZED:
        kernels.sized(_rules(name, capacity, choices), *columns, *told)
    else:
        kernels.shared(capacity, SIZINGS[name].drops_late, columns, told)
    return ReplayOutcome(capacity, deadline_ms, *told)


def _rules(name: str, capacity: int, choices: Choices) -> kernels.Rules:
    order = SIZINGS[name].order if choices.order == "papers" else choices.order
    return kernels.Rules(
        capacity=capacity,
        kind=SIZED[name],
        order=ORDERS[order],
        requested=choices.reach == "requested",
        stretched=choices.queue_time == "stretched",
        surplus=choices.errors == "surplus",
        observed=choices.fraction == "observed",
        equal=choices.weighting == "equal",
        smoothing=choices.smoothing_ratio,
        threshold=-1 if choices.drop_above_tasks is None else choices.drop_above_tasks,
    )


def _rebalanced(trace: Trace, deadline_ms: NDArray[np.int64], capacity: int, reactive: bool) -> ReplayOutcome:
    from yarn_research.admission.compiled.rebalancing import Columns, Ends, rebalanced
    from yarn_research.admission.plain.event_replay import averaged, require_small

    require_small(trace, capacity)
    jobs = len(trace)
    due = trace.submitted_at_ms + deadline_ms
    started, ended = np.full(jobs, NEVER, dtype=np.int64), np.full(jobs, NEVER, dtype=np.int64)
    rest, met = np.zeros(jobs, dtype=np.int64), np.zeros(jobs, dtype=np.bool_)
    order = np.argsort(due, kind="stable")
    columns = Columns(trace.submitted_at_ms, due, trace.tasks, trace.work_ms, order)
    rebalanced(capacity, reactive, columns, Ends(started, ended, rest, met))
    return averaged(trace, deadline_ms, capacity, started, ended, rest, met)
