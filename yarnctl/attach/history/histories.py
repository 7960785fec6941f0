"""Feedback of ended jobs: MapReduce's from the history server, others from the ResourceManager."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from yarnctl.attach.history.finished_applications import FinishedApplications
from yarnctl.attach.history.finished_jobs import FinishedJobs
from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.model import ContainerRequest
from yarnctl.deciding.reasons.verdicts import LessonReason
from yarnctl.errors import BadInput

MAPREDUCE = "mapreduce"  # The kind of jobs in the history server


UnseenEstimate = Callable[[Sequence[Finished], int], Estimate | None]
"""Returns the estimate of a job that has never run, by all finished jobs and the containers it can use."""


class Histories:
    """Asks one of two histories; ``open_jobs`` is called until it succeeds, but not after BadInput.

    ``unseen`` estimates jobs that have never run (None: they have no estimate).
    """

    def __init__(
        self,
        open_jobs: Callable[[], FinishedJobs],
        applications: FinishedApplications,
        unseen: UnseenEstimate | None = None,
    ) -> None:
        self.capacity = 1
        self.container_mib = 0
        self._open_jobs = open_jobs
        self._applications = applications
        self._unseen = unseen
        self._opened: FinishedJobs | None = None
        self._never: BadInput | None = None

    def finished(
        self, application: str, kind: str = MAPREDUCE, containers: int = 0
    ) -> tuple[Finished | None, LessonReason | None]:
        """Return the feedback of one ended application that had ``containers``, or None and why."""
        if kind == MAPREDUCE:
            return self._jobs().finished(application)
        return self._sized_applications().finished(application, containers)

    def recent(self, since_ms: int) -> Sequence[Finished]:
        """Return the feedback of jobs of all kinds since a time, ordered by their ends."""
        found = list(self._sized_applications().recent(since_ms))
        try:
            found += self._jobs().recent(since_ms)
        except BadInput:
            if not found:
                raise
        return tuple(sorted(found, key=lambda one: one.ended_at_ms or 0))

    def estimate(self, name: str, user: str, kind: str = MAPREDUCE, most: int = 0) -> Estimate | None:
        """Return the estimate for the next run of a job; ``most``: the containers that it can use."""
        if kind == MAPREDUCE:
            found = self._jobs().estimate(name, user)
        else:
            found = self._sized_applications().estimate(name, user, most)
        if found is not None or self._unseen is None:
            return found
        return self._unseen(self.recent(0), max(1, most))

    def first_asks(self, name: str, user: str) -> tuple[ContainerRequest, ...]:
        """Return the first requests of the last run of a MapReduce job."""
        return self._jobs().first_asks(name, user)

    def latest_first_asks(
        self, since_ms: int, is_preempting: Callable[[str], bool]
    ) -> dict[tuple[str, str], tuple[ContainerRequest, ...]]:
        """Return the first requests of the last run of each of the latest MapReduce jobs."""
        return self._jobs().latest_first_asks(since_ms, is_preempting)

    def _jobs(self) -> FinishedJobs:
        if self._never is not None:
            raise self._never
        if self._opened is None:
            try:
                self._opened = self._open_jobs()
            except BadInput as error:
                self._never = error
                raise
        self._opened.capacity = self.capacity
        return self._opened

    def _sized_applications(self) -> FinishedApplications:
        self._applications.capacity, self._applications.container_mib = self.capacity, self.container_mib
        return self._applications
