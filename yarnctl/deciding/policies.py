"""Eviction policies: which job gives the next container, and which of its tasks (Natjam, sections 2 and 4).

A policy is a pure key function; the job, or task, with the smallest key is picked first, and the selector
ends every key in the id. Command lines, scenarios, replay and property tests read the dictionaries and
nothing else. CONTRIBUTING.md lists the places of a new policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from yarnctl.deciding.draws import exponential
from yarnctl.deciding.model import TaskView

FOREVER_MS = (1 << 53) - 1
"""Means "no deadline": later than any deadline, larger than any laxity; exact in JSON."""

PPM = 1_000_000


class JobUsage(NamedTuple):
    """What the policies may read of a running job, after the picks made so far.

    ``share`` is the dominant share as an exact integer (:func:`yarnctl.units.dominant`), the
    AM's container included. ``releasable`` counts the containers other than the AM's that are
    left. ``clock`` is the first component of the job's previous key, 0 before its first pick.
    """

    application: str
    share: int
    containers: int
    releasable: int
    submitted_at_ms: int
    deadline_at_ms: int | None
    laxity_ms: int
    clock: int


JobKey = Callable[[JobUsage, int, int], tuple[int, ...]]


class JobPolicy(NamedTuple):
    """A key function and what the selector may exploit of it.

    ``draws``: the key depends on its draw. ``share_sign``: the key is exactly
    ``(share_sign * share,)`` and may be computed in bulk (0: it is not).
    """

    key: JobKey
    draws: bool = False
    share_sign: int = 0


def most_resources(usage: JobUsage, now_ms: int, draw: int) -> tuple[int, ...]:
    """MR, section 2.1: the job with the most resources, re-evaluated after each pick (worst fit)."""
    return (-usage.share,)


def most_resources_once(usage: JobUsage, now_ms: int, draw: int) -> tuple[int, ...]:
    """MR as in Natjam's published code, against section 2.1: not re-evaluated, one job gives all."""
    return (usage.clock or -usage.share,)


def least_resources(usage: JobUsage, now_ms: int, draw: int) -> tuple[int, ...]:
    """LR, section 2.1: the job with the least resources; it stays with that job until it is empty."""
    return (usage.share,)


def probabilistic(usage: JobUsage, now_ms: int, draw: int) -> tuple[int, ...]:
    """PR, section 2.1: probability proportional to the containers left, without replacement.

    An exponential race: job *j* finishes after Exp(1)/releasable(j), and the earliest finish wins with
    probability releasable(j)/sum. The exponential distribution has no memory, so after a pick only the winner
    draws again, added to its own finish time and at its new rate; all other finish times stay valid.
    """
    return (usage.clock + exponential(draw) // max(1, usage.releasable),)


def maximum_deadline(usage: JobUsage, now_ms: int, draw: int) -> tuple[int, ...]:
    """MDF, section 4: the latest deadline first; ties: the latest submitted (facts 2.3)."""
    deadline = FOREVER_MS if usage.deadline_at_ms is None else usage.deadline_at_ms
    return (-deadline, -usage.submitted_at_ms)


def maximum_laxity(usage: JobUsage, now_ms: int, draw: int) -> tuple[int, ...]:
    """MLF, section 4: the largest laxity first; ties as MDF's."""
    return (-usage.laxity_ms, -usage.submitted_at_ms)


def laxity_ms(deadline_at_ms: int | None, submitted_at_ms: int, progress_ratio: float, now_ms: int) -> int:
    """Return deadline - projected completion (section 4), in ms; negative: it will be late.

    Projected completion = now + elapsed x (1 - progress)/progress. At progress 0 the job's speed is
    not known and nothing is charged: laxity = deadline - now. (The original divided by
    zero and overflowed, which made jobs without progress look most urgent: facts 5, no. 8.)
    """
    if deadline_at_ms is None:
        return FOREVER_MS
    done_ppm = min(PPM, max(0, round(progress_ratio * PPM)))
    if done_ppm == 0:
        return deadline_at_ms - now_ms
    elapsed_ms = max(0, now_ms - submitted_at_ms)
    return deadline_at_ms - (now_ms + elapsed_ms * (PPM - done_ppm) // done_ppm)


JOB_POLICIES: dict[str, JobPolicy] = {
    "MR": JobPolicy(most_resources, share_sign=-1),
    "LR": JobPolicy(least_resources, share_sign=1),
    "PR": JobPolicy(probabilistic, draws=True),
    "MDF": JobPolicy(maximum_deadline),
    "MLF": JobPolicy(maximum_laxity),
}

COMPARED_JOB_POLICIES: dict[str, JobPolicy] = {"MR-once": JobPolicy(most_resources_once)}
"""What the paper's experiments compare with; no command line, API or property test offers it."""


# --- tasks ------------------------------------------------------------------------------------------

TaskKey = Callable[[TaskView, int, int], tuple[int, ...]]


class TaskPolicy(NamedTuple):
    """A key function and what the selector may exploit of it.

    ``draws``: the key depends on its draw. ``remaining_sign``: where every remaining time is
    known, the key is exactly ``(remaining_sign * remaining_ms,)`` and may be computed in bulk.
    """

    key: TaskKey
    draws: bool = False
    remaining_sign: int = 0


def _remaining_ms(task: TaskView) -> int:
    """An unknown remaining time counts as endless, as in the original (facts section 3)."""
    return task.remaining_ms if task.remaining_ms >= 0 else FOREVER_MS


def shortest_remaining(task: TaskView, now_ms: int, draw: int) -> tuple[int, ...]:
    """SRT, section 2.2 and theorem 2.1: shortens the job's tail."""
    return (_remaining_ms(task),)


def longest_remaining(task: TaskView, now_ms: int, draw: int) -> tuple[int, ...]:
    """LRT, section 2.2: a task that is nearly done frees its container by itself."""
    return (-_remaining_ms(task),)


def at_random(task: TaskView, now_ms: int, draw: int) -> tuple[int, ...]:
    """Random, section 5 (Fig 5): all tasks equally likely."""
    return (draw,)


TASK_POLICIES: dict[str, TaskPolicy] = {
    "SRT": TaskPolicy(shortest_remaining, remaining_sign=1),
    "LRT": TaskPolicy(longest_remaining, remaining_sign=-1),
    "random": TaskPolicy(at_random, draws=True),
}
