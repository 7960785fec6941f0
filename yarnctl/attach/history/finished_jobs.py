"""Read finished jobs from the history server, as feedback for admission, and keep them.

Each finished job is read once (``KEPT_MAX`` of them are kept, the least recently used are dropped). A job
that cannot be used, or that yarnctl may not read, is None with its reason.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from yarnctl.attach.history import fitting
from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.model import ContainerRequest
from yarnctl.deciding.reasons.verdicts import HistoryLost, HistoryUnusable, LessonReason, NotInHistoryYet
from yarnctl.frameworks.mapreduce.history_server import HistoryServer, job_of
from yarnctl.frameworks.mapreduce.rest import EndedJob
from yarnctl.hadoop.http.answers import BadAnswer, Missing, Rejected

RUNS_MAX = 10  # The number of latest runs that an estimate uses
TRAINING_MAX = 100  # The number of latest jobs that are feedback at the start
KEPT_MAX = 2_000
FIRST_MAX = 100
ALL_TIMES_MS = 0


class FinishedJobs:
    """Feedback of jobs. ``capacity``: the cluster's containers, may be changed. Methods raise Unreachable."""

    def __init__(self, server: HistoryServer, capacity: int) -> None:
        self.capacity = capacity
        self._server = server
        self._finished_jobs: OrderedDict[str, fitting.FinishedJob | LessonReason] = OrderedDict()

    def finished(self, application: str) -> tuple[Finished | None, LessonReason | None]:
        """Return one ended application's feedback, or None and the reason (also: not in the history yet)."""
        found = self.finished_job(application)
        if not isinstance(found, fitting.FinishedJob):
            return None, found
        return fitting.finished(found, self.capacity), None

    def finished_job(self, application: str) -> fitting.FinishedJob | LessonReason:
        """Return the numbers of one ended application, or why there are none."""
        job = job_of(application)
        try:
            return self._of(self._server.job(job) if job not in self._finished_jobs else None, job)
        except Missing:
            return NotInHistoryYet(self._server.url, job)
        except Rejected as error:
            return HistoryUnusable(str(error))

    def recent(self, since_ms: int) -> Sequence[Finished]:
        """Return the feedback of the latest ``TRAINING_MAX`` jobs since an instant, ordered by their ends."""
        found = [self._listed(row) for row in self._server.jobs(since_ms)[:TRAINING_MAX]]
        usable = [one for one in found if isinstance(one, fitting.FinishedJob)]
        usable.sort(key=lambda one: (one.finished_at_ms, one.application))
        return tuple(fitting.finished(one, self.capacity) for one in usable)

    def estimate(self, name: str, user: str) -> Estimate | None:
        """Return the containers x time for the next run of a user's job, by its last runs; None: no run."""
        return fitting.estimate(name, self.runs(name, user), self.capacity)

    def tasks(self, name: str, user: str) -> int | None:
        """Return the most containers the last run could use at once; None if there is none."""
        return next((one.tasks for one in self.runs(name, user, most=1)), None)

    def first_asks(self, name: str, user: str) -> tuple[ContainerRequest, ...]:
        """Return the first asks of the last run of a user's job, by its counters alone; (): not known."""
        rows = self._server.jobs(ALL_TIMES_MS, user)
        last = next((row for row in rows if _succeeded(row) and fitting.same_name(row.name, name)), None)
        return () if last is None else self._first_asks(last)

    def latest_first_asks(
        self, since_ms: int, is_preempting: Callable[[str], bool]
    ) -> dict[tuple[str, str], tuple[ContainerRequest, ...]]:
        """Return (user, folded name) -> first asks of the latest preempting jobs, without truncated names."""
        last: dict[tuple[str, str], EndedJob] = {}
        for row in self._server.jobs(since_ms):
            ours = _succeeded(row) and is_preempting(row.queue)
            if ours and len(row.name.encode()) < fitting.NAME_MAX and len(last) < FIRST_MAX:
                last.setdefault((row.user, fitting.folded(row.name)), row)
        found = {key: self._first_asks(row) for key, row in last.items()}
        return {key: asks for key, asks in found.items() if asks}

    def _first_asks(self, ended_job: EndedJob) -> tuple[ContainerRequest, ...]:
        try:
            return fitting.first_asks(ended_job, self._server.counters(ended_job.job))
        except (BadAnswer, Rejected):
            return ()  # not readable for us, or gone: then nothing is predicted

    def runs(self, name: str, user: str, most: int = RUNS_MAX) -> Sequence[fitting.FinishedJob]:
        """Return the last usable runs of a job, the latest first; at most twice ``most`` are read."""
        rows = [row for row in self._server.jobs(ALL_TIMES_MS, user) if fitting.same_name(row.name, name)]
        found: list[fitting.FinishedJob] = []
        for row in [row for row in rows if _succeeded(row)][: 2 * most]:
            one = self._listed(row)
            if isinstance(one, fitting.FinishedJob) and fitting.folded(one.name) == fitting.folded(name):
                found.append(one)
            if len(found) == most:
                break
        return found

    def _listed(self, ended_job: EndedJob) -> fitting.FinishedJob | LessonReason:
        whole = ended_job
        if ended_job.job not in self._finished_jobs and len(ended_job.name.encode()) >= fitting.NAME_MAX:
            try:
                whole = self._server.job(ended_job.job)
            except Missing:
                return HistoryLost(ended_job.job)
            except (BadAnswer, Rejected) as error:
                return HistoryUnusable(str(error))
        try:
            return self._of(whole, ended_job.job)
        except Missing:
            return HistoryLost(ended_job.job)

    def _of(self, ended_job: EndedJob | None, job: str) -> fitting.FinishedJob | LessonReason:
        if job in self._finished_jobs:
            self._finished_jobs.move_to_end(job)
            return self._finished_jobs[job]
        assert ended_job is not None
        found: fitting.FinishedJob | LessonReason
        try:
            settings = self._server.configuration(job) if _succeeded(ended_job) else {}
            counters = self._server.counters(job) if _succeeded(ended_job) else {}
            found = fitting.finished_job(ended_job, counters, settings)
        except Missing:
            raise
        except (BadAnswer, Rejected) as error:
            return HistoryUnusable(str(error))
        self._finished_jobs[job] = found
        if len(self._finished_jobs) > KEPT_MAX:
            self._finished_jobs.popitem(last=False)
        return found


def _succeeded(ended_job: EndedJob) -> bool:
    return ended_job.state == "SUCCEEDED"
