"""Collecting: which jobs' checkpoints may go, and why each other one stays.

Law: pure. Only what the ResourceManager or the history server calls ended, with an end that is known and
long enough ago, may go. Unknown is not finished; what no runner would have written is not ours to delete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from yarnctl.checkpoint.endings import Ending
from yarnctl.checkpoint.holding import JobHeld, application_of
from yarnctl.hadoop.ends import TERMINAL

DAY_MS = 24 * 3_600_000
"""Nothing goes sooner after its job's end."""


class Kept(msgspec.Struct, frozen=True):
    """One folder below a root, and what is to become of it. ``what``: checkpoints or requests."""

    what: Literal["checkpoints", "requests"]
    job: str
    delete: bool
    why: str
    bytes: int = 0
    files: int = 0


def why_kept(ending: Ending | None, now_ms: int | None, older_than_ms: int) -> str:
    """Return why a job's files must stay; "" if they may go. ``now_ms`` None: not known."""
    if ending is None or not ending.state:
        why = f" ({ending.why})" if ending is not None and ending.why else ""
        return f"its state is unknown{why}"
    if ending.state not in TERMINAL:
        return f"it is {ending.state}"
    if ending.ended_at_ms <= 0:
        return f"it is {ending.state}, but when it ended is not known"
    if now_ms is None:
        return f"it is {ending.state}, but the cluster does not tell its time (no Date in its answers)"
    age_ms, older_than_ms = now_ms - ending.ended_at_ms, max(older_than_ms, DAY_MS)
    if age_ms < 0:
        return "it ended in the future by our clock"
    if age_ms < older_than_ms:
        return f"it ended {age_ms / 3_600_000:.1f} h ago, less than {older_than_ms / 3_600_000:g} h"
    return ""


def decide(
    checkpoints: Sequence[JobHeld],
    requests: Sequence[JobHeld],
    endings: Mapping[str, Ending],
    now_ms: int | None,
    older_than_ms: int = DAY_MS,
) -> tuple[Kept, ...]:
    """Judge each job's folder of checkpoints and of requests, ordered by job; see the law above."""
    rows = [_judge("checkpoints", job, endings, now_ms, older_than_ms) for job in checkpoints]
    rows += [_judge("requests", job, endings, now_ms, older_than_ms) for job in requests]
    return tuple(sorted(rows, key=lambda row: (row.job, row.what)))


def _judge(
    what: Literal["checkpoints", "requests"],
    job: JobHeld,
    endings: Mapping[str, Ending],
    now_ms: int | None,
    older_than_ms: int,
) -> Kept:
    ending = endings.get(application_of(job.job))
    why = why_kept(ending, now_ms, older_than_ms)
    unseen = job.problem or next((task.problem for task in job.tasks if task.problem), "")
    if not why and unseen:
        why = f"what is in it cannot be seen: {unseen}"
    if not why and job.strange:
        why = f"it holds what no runner writes: {', '.join(job.strange[:3])}"[:300]
    if why or ending is None or now_ms is None:
        return Kept(what, job.job, False, why, job.bytes, job.files)
    hours = (now_ms - ending.ended_at_ms) / 3_600_000
    return Kept(what, job.job, True, f"{ending.state} {hours:.1f} h ago", job.bytes, job.files)
