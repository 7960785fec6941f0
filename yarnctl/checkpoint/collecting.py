"""Collecting: which jobs' checkpoints may be deleted, and why each other one stays.

Law: pure. Only files of a job that has ended by the ResourceManager or the history server, with an end that
is known and long enough ago, may be deleted. Unknown is not finished; what no runner would have written
stays.

The one exception needs an option (``ForgottenJobs``, ``gc --unknown-after``). Why no running job loses its
checkpoints by it: an application that runs is known to the active ResourceManager of its cluster, restarted
or not (what it does not recover, it ends); one that answers and does not know it does not run it. A job of
*another* cluster is unknown here too: therefore an id that is younger than this ResourceManager stays, and so
does everything that was written to within the span, which is a week at least; the option must not be used
where clusters share a store, as its help says. Both servers must have answered that they do not know the job
(no answer is not enough), every file's time must be known, and all is checked again right before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from yarnctl.checkpoint.application_ends import ApplicationEnd
from yarnctl.checkpoint.contents import JobCheckpoints, application_of

TERMINAL = ("FINISHED", "FAILED", "KILLED", "SUCCEEDED", "ERROR")
"""YARN's states of an application and the history server's of a job that are final."""
DAY_MS = 24 * 3_600_000
"""Nothing is deleted sooner after its job's end."""
WEEK_MS = 7 * DAY_MS
"""Nothing of an unknown job is deleted sooner after it was written to."""


class ForgottenJobs(msgspec.Struct, frozen=True):
    """What is needed to judge jobs unknown to both servers: after which span their files may be deleted.

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


def why_unknown_kept(
    what: str, job: str, ending: ApplicationEnd, now_ms: int | None, forgotten: ForgottenJobs
) -> str:
    """Return why the files of an unknown job must stay; "" if they may be deleted."""
    if not ending.is_unknown:
        return f"its state is unknown ({ending.why})"
    if forgotten.epoch_ms is None:
        return "nobody knows it, and when the ResourceManager was started is not known"
    if int(job.removeprefix("job_").partition("_")[0]) > forgotten.epoch_ms:
        return "nobody knows it, and its id is younger than the ResourceManager: another cluster's?"
    if now_ms is None:
        return "nobody knows it, and the cluster does not tell its time (no Date in its answers)"
    written_at_ms = forgotten.written_at_ms.get((what, job), 0)
    if written_at_ms <= 0:
        return "nobody knows it, and when it was written to is not known"
    age_ms, least_ms = now_ms - written_at_ms, max(forgotten.after_ms, WEEK_MS)
    if age_ms < least_ms:
        span = f"{age_ms / DAY_MS:.1f} d ago, less than {least_ms / DAY_MS:g} d"
        return f"nobody knows it; it was written to {span}"
    return ""


def decide(
    checkpoints: Sequence[JobCheckpoints],
    requests: Sequence[JobCheckpoints],
    endings: Mapping[str, ApplicationEnd],
    now_ms: int | None,
    older_than_ms: int = DAY_MS,
    forgotten: ForgottenJobs | None = None,
) -> tuple[JudgedFolder, ...]:
    """Judge each job's folder of checkpoints and of requests, ordered by job; see the law above."""
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
        why = f"what is in it cannot be seen: {unseen}"
    if not why and job.strange:
        why = f"it holds what no runner writes: {', '.join(job.strange[:3])}"[:300]
    if why or ending is None or now_ms is None:
        return JudgedFolder(what, job.job, False, why, job.bytes, job.files)
    if is_unknown and forgotten is not None:
        days = (now_ms - forgotten.written_at_ms[(what, job.job)]) / DAY_MS
        return JudgedFolder(
            what, job.job, True, f"nobody knows it, written to {days:.1f} d ago", job.bytes, job.files
        )
    hours = (now_ms - ending.ended_at_ms) / 3_600_000
    return JudgedFolder(what, job.job, True, f"{ending.state} {hours:.1f} h ago", job.bytes, job.files)
