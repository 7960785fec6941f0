"""Read ended applications of any framework but MapReduce from the ResourceManager, one request each.

It keeps a bounded number of applications, and none over a restart without a store.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarnctl.attach.history import application_fitting as fitting
from yarnctl.attach.history.fitting import folded
from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.reasons.verdicts import HistoryLost, HistoryUnusable, LessonReason
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.hadoop.http.answers import Missing, Rejected
from yarnctl.hadoop.resource_manager import ResourceManager

TAUGHT = ("SPARK", "Apache Flink")  # Give feedback also without an admission: they run once and end
RUNS_MAX = 10  # The number of latest runs that an estimate uses
TRAINING_MAX = 100  # The number of latest applications that are feedback at the start


class FinishedApplications:
    """Feedback of applications; ``capacity`` in containers of ``container_mib``. Raises Unreachable."""

    def __init__(self, manager: ResourceManager, capacity: int = 1, container_mib: int = 0) -> None:
        self.capacity = capacity
        self.container_mib = container_mib
        self._manager = manager

    def finished(self, application: str, containers: int = 0) -> tuple[Finished | None, LessonReason | None]:
        """Return the feedback of one ended application that had ``containers``, or None and why."""
        try:
            row = self._manager.ended_application(application)
        except Missing:
            return None, HistoryLost(application)
        except Rejected as error:
            return None, HistoryUnusable(str(error))
        run = fitting.application_run(row, self.container_mib, containers)
        if not isinstance(run, fitting.ApplicationRun):
            return None, run
        return fitting.finished_run(run, self.capacity), None

    def recent(self, since_ms: int) -> Sequence[Finished]:
        """Return the feedback of the latest ``TRAINING_MAX`` applications since a time, ordered by ends."""
        rows = [row for row in self._manager.ended_applications(since_ms) if row.kind in TAUGHT]
        found = [fitting.application_run(row, self.container_mib) for row in rows[:TRAINING_MAX]]
        runs = [run for run in found if isinstance(run, fitting.ApplicationRun)]
        runs.sort(key=lambda run: (run.ended_at_ms, run.application))
        return tuple(fitting.finished_run(run, self.capacity) for run in runs)

    def runs(self, name: str, user: str) -> Sequence[fitting.ApplicationRun]:
        """Return the last usable runs of a user's application, the latest first."""
        rows = self._manager.ended_applications(0, user)
        same = [row for row in rows if row.kind != KIND and folded(row.name) == folded(name)]
        found = [fitting.application_run(row, self.container_mib) for row in same]
        return [run for run in found if isinstance(run, fitting.ApplicationRun)][:RUNS_MAX]

    def estimate(self, name: str, user: str, most: int) -> Estimate | None:
        """Return the containers x time for the next run, which can use ``most``; None: no run is known."""
        return fitting.estimate_of_runs(name, self.runs(name, user), most, self.capacity)
