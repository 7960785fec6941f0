"""Predict the first requests of starting jobs from their last runs (``--predicted-demand``).

The loop never waits for it: the history worker reads the last day's runs at the start and again when they are
older than ``LEARNED_FOR_MS``, any other job once, when it starts. An answer counts from the next observation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from yarnctl.attach.history.fitting import folded
from yarnctl.attach.observing.cluster_state import StartingJob
from yarnctl.daemon.admission.history_worker import Answer, History, HistoryWorker
from yarnctl.deciding.model import ContainerRequest

KEPT_MAX = 1_000  # Kept answers; the oldest is dropped first. A job starts within a minute
LEARNED_BACK_MS = 86_400_000
LEARNED_FOR_MS = 600_000

Runs = Mapping[tuple[str, str], tuple[ContainerRequest, ...]]
"""(user, folded name) -> the first requests of the last run."""


class FirstAsks:
    """Reads the last runs of jobs in preempting queues; predicts only while ``may_predict`` is true."""

    def __init__(
        self,
        history_worker: HistoryWorker,
        clock_ms: Callable[[], int],
        is_preempting: Callable[[str], bool],
        may_foresee: Callable[[], bool] = lambda: True,
    ) -> None:
        self._history_worker = history_worker
        self._clock_ms = clock_ms
        self._is_preempting = is_preempting
        self._runs: Runs = {}
        self._learning: Answer | None = None
        self._learned_at_ms: int | None = None
        self._answers: dict[str, Answer] = {}
        self.may_predict = may_foresee

    def learn(self) -> None:
        """Queue a query for the latest runs, unless one was made recently; keep a finished one's result."""
        if self._learning is not None and self._learning.done:
            found, self._learning = self._learning.value, None
            self._runs = found if isinstance(found, dict) else self._runs
        now_ms = self._clock_ms()
        if self._learned_at_ms is None or now_ms - self._learned_at_ms >= LEARNED_FOR_MS:
            self._learned_at_ms = now_ms
            self._learning = self._history_worker.ask(_latest(now_ms - LEARNED_BACK_MS, self._is_preempting))

    def of(self, job: StartingJob) -> tuple[ContainerRequest, ...]:
        """Return a job's predicted first requests; () while they are unknown or prediction is off."""
        if not self.may_predict():
            return ()
        self.learn()
        return self._runs.get((job.user, folded(job.name))) or self._asked(job)

    def _asked(self, job: StartingJob) -> tuple[ContainerRequest, ...]:
        if job.application not in self._answers:
            if len(self._answers) >= KEPT_MAX:
                del self._answers[next(iter(self._answers))]
            question = _last_run(job.name, job.user)
            self._answers[job.application] = self._history_worker.ask(question, of_a_request=True)
        value = self._answers[job.application].value
        return value if isinstance(value, tuple) else ()

    def close(self) -> None:
        """Stop the history worker."""
        self._history_worker.close()


def _latest(since_ms: int, is_preempting: Callable[[str], bool]) -> Callable[[History], object]:
    return lambda history: history.latest_first_asks(since_ms, is_preempting)


def _last_run(name: str, user: str) -> Callable[[History], object]:
    return lambda history: history.first_asks(name, user)
