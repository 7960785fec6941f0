"""Decide which jobs' checkpoints may be deleted, and why the others stay.

Files may be deleted only if their job has ended by the ResourceManager or the history server, at a known time
that is long enough ago. Unknown is not finished. Files that no runner writes stay.

One exception needs an option (``ForgottenJobs``, ``gc --unknown-after``): files of a job that both servers do
not know. It cannot delete checkpoints of a running job, because:

* the active ResourceManager knows every running application of its cluster, also after a restart (it ends an
  application that it does not recover);
* an id that is younger than this ResourceManager stays, as does a folder that was written to within the span
  of at least a week: it may belong to *another* cluster. The option must not be used where clusters share a
  store, as its help states;
* both servers must have answered that they do not know the job, every file's time must be known, and all of
  this is checked again right before a deletion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from yarnctl.checkpoint.application_ends import ApplicationEnd
from yarnctl.checkpoint.contents import JobCheckpoints, application_of

TERMINAL = ("FINISHED", "FAILED", "KILLED", "SUCCEEDED", "ERROR")  # Final states of applications and jobs
DAY_MS = 24 * 3_600_000  # The least time from a job's end to the deletion of its files
WEEK_MS = 7 * DAY_MS  # The least time from the last write to the deletion of an unknown job's files


class ForgottenJobs(msgspec.Struct, frozen=True):
    """The data to judge jobs that both servers do not know, with the span after which files may be deleted.

    ``epoch_ms``: when the ResourceManager was started (None: not known). ``written_at_ms``: by what and job,
    when the newest of a folder's files was written (0, or not there: not known).
    """

    after_ms: int
    epoch_ms: int | None
    written_at_ms: Mapping[tuple[str, str], int]


class JudgedFolder(msgspec.Struct, frozen=True):
    """One folder below a root, and whether it is deleted. ``what``: checkpoints or requests."""

    what: Literal["checkpoints", "requests"]
    job: str
    delete: bool
    why: str
    bytes: int = 0
    files: int = 0


def why_kept(ending: ApplicationEnd | None, now_ms: int | None, older_than_ms: int) -> str:
    """Return why a job's files must stay; "" if they may be deleted. ``now_ms`` None: not known."""
    if ending is None or not ending.state:
        why = f" ({ending.why})" if ending is not None and ending.why else ""
        return f"the job's state is unknown{why}"
    if ending.state not in TERMINAL:
        return f"the job is {ending.state}"
    if ending.ended_at_ms <= 0:
        return f"the job is {ending.state}, but the time of its end is unknown"
    if now_ms is None:
        return f"the job is {ending.state}, but the cluster's time is unknown (no Date in its answers)"
    age_ms, older_than_ms = now_ms - ending.ended_at_ms, max(older_than_ms, DAY_MS)
    if age_ms < 0:
        return "the job ended in the future by the local clock"
    if age_ms < older_than_ms:
        return f"the job ended {age_ms / 3_600_000:.1f} h ago, less than {older_than_ms / 3_600_000:g} h"
    return ""


def why_unknown_kept(
    what: str, job: str, ending: ApplicationEnd, now_ms: int | None, forgotten: ForgottenJobs
) -> str:
    """Return why the files of an unknown job must stay; "" if they may be deleted."""
    if not ending.is_unknown:
        return f"the job's state is unknown ({ending.why})"
    if forgotten.epoch_ms is None:
        return "unknown job, and the start time of the ResourceManager is unknown"
    if int(job.removeprefix("job_").partition("_")[0]) > forgotten.epoch_ms:
        return "unknown job, and its id is younger than the ResourceManager: it may belong to another cluster"
    if now_ms is None:
        return "unknown job, and the cluster's time is unknown (no Date in its answers)"
    written_at_ms = forgotten.written_at_ms.get((what, job), 0)
    if written_at_ms <= 0:
        return "unknown job, and the time of the last write is unknown"
    age_ms, least_ms = now_ms - written_at_ms, max(forgotten.after_ms, WEEK_MS)
    if age_ms < least_ms:
        span = f"{age_ms / DAY_MS:.1f} d ago, less than {least_ms / DAY_MS:g} d"
        return f"unknown job, last written {span}"
    return ""


def decide(
    checkpoints: Sequence[JobCheckpoints],
    requests: Sequence[JobCheckpoints],
    endings: Mapping[str, ApplicationEnd],
    now_ms: int | None,
    older_than_ms: int = DAY_MS,
    forgotten: ForgottenJobs | None = None,
) -> tuple[JudgedFolder, ...]:
    """Judge each job's folders of checkpoints and of requests, ordered by job; see the law above."""
    rows = [_judge("checkpoints", job, endings, now_ms, older_than_ms, forgotten) for job in checkpoints]
    rows += [_judge("requests", job, endings, now_ms, older_than_ms, forgotten) for job in requests]
    return tuple(sorted(rows, key=lambda row: (row.job, row.what)))


def _judge(
    what: Literal["checkpoints", "requests"],
    job: JobCheckpoints,
    endings: Mapping[str, ApplicationEnd],
    now_ms: int | None,
    older_than_ms: int,
    forgotten: ForgottenJobs | None,
) -> JudgedFolder:
    ending = endings.get(application_of(job.job))
    is_unknown = forgotten is not None and ending is not None and not ending.state
    if is_unknown and forgotten is not None and ending is not None:
        why = why_unknown_kept(what, job.job, ending, now_ms, forgotten)
    else:
        why = why_kept(ending, now_ms, older_than_ms)
    unseen = job.problem or next((task.problem for task in job.tasks if task.problem), "")
    if not why and unseen:
        why = f"the folder cannot be read: {unseen}"
    if not why and job.strange:
        why = f"the folder contains files that no task runner writes: {', '.join(job.strange[:3])}"[:300]
    if why or ending is None or now_ms is None:
        return JudgedFolder(what, job.job, False, why, job.bytes, job.files)
    if is_unknown and forgotten is not None:
        days = (now_ms - forgotten.written_at_ms[(what, job.job)]) / DAY_MS
        return JudgedFolder(
            what, job.job, True, f"unknown job, last written {days:.1f} d ago", job.bytes, job.files
        )
    hours = (now_ms - ending.ended_at_ms) / 3_600_000
    return JudgedFolder(what, job.job, True, f"{ending.state} {hours:.1f} h ago", job.bytes, job.files)
