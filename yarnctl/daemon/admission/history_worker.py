"""Query the job history in two threads, one for estimates and one for feedback.

The loop never blocks on a history server, and an estimate for a waiting request never waits for feedback. A
server that does not answer is logged once; no answer is a result, too.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.model import ContainerRequest
from yarnctl.deciding.reasons.verdicts import HistoryBusy, HistoryFault, LessonReason
from yarnctl.errors import BadInput

_LOG = logging.getLogger("yarnctl.daemon")

QUESTIONS_MAX = 64


class History(Protocol):
    """The part of :class:`yarnctl.attach.history.histories.Histories` that admission needs."""

    capacity: int
    container_mib: int

    def finished(
        self, application: str, kind: str = "mapreduce", containers: int = 0
    ) -> tuple[Finished | None, LessonReason | None]:
        """Return the feedback of one ended application that had ``containers``, or None and why."""

    def recent(self, since_ms: int) -> Sequence[Finished]:
        """Return the feedback of jobs since a time."""

    def estimate(self, name: str, user: str, kind: str = "mapreduce", most: int = 0) -> Estimate | None:
        """Return the estimate for the next run of a job, which can use ``most`` containers."""

    def first_asks(self, name: str, user: str) -> tuple[ContainerRequest, ...]:
        """Return the first requests of the last run of a job."""

    def latest_first_asks(
        self, since_ms: int, is_preempting: Callable[[str], bool]
    ) -> dict[tuple[str, str], tuple[ContainerRequest, ...]]:
        """Return the first requests of the last run of each of the latest jobs in preempting queues."""


class Answer:
    """An answer: ``done`` when ready; ``problem``: why no ``value``; ``never``: none until a restart."""

    def __init__(self) -> None:
        self.done = False
        self.value: object = None
        self.problem: LessonReason | None = None
        self.never = False


Question = Callable[[History], object]


class _Line:
    """A queue of questions, with its thread and its own client of the history."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.history: History | None = None
        self.questions: queue.Queue[tuple[Question, Answer] | None] = queue.Queue(QUESTIONS_MAX)
        self.thread: threading.Thread | None = None


class HistoryWorker:
    """Answers questions about the job history in threads of its own.

    ``open_history`` is called in each thread until it succeeds, ``wake`` after each answer. ``in_thread``
    False: the calling thread answers.
    """

    def __init__(
        self, open_history: Callable[[], History], wake: Callable[[], None], *, in_thread: bool = True
    ) -> None:
        self._open = open_history
        self._wake = wake
        self._feedback, self._estimates = _Line("history"), _Line("history-estimates")
        self._logged = ""
        self._logged_for_good: set[str] = set()
        self._saying = threading.Lock()
        self._never: BadInput | None = None
        self._in_thread = in_thread

    def ask(self, question: Question, *, of_a_request: bool = False) -> Answer:
        """Queue a question. ``of_a_request``: a client waits for the answer, so it precedes all feedback."""
        answer = Answer()
        line = self._estimates if of_a_request else self._feedback
        if not self._in_thread:
            self._answer(line, question, answer)
            return answer
        if line.thread is None:
            line.thread = threading.Thread(target=self._work, args=(line,), name=line.name, daemon=True)
            line.thread.start()
        try:
            line.questions.put_nowait((question, answer))
        except queue.Full:
            answer.problem, answer.done = HistoryBusy(), True
        return answer

    def close(self) -> None:
        """Stop answering; a running question ends by its own bounds."""
        for line in (self._feedback, self._estimates):
            with contextlib.suppress(queue.Full):  # the threads are daemons: they end with the process
                line.questions.put_nowait(None)

    def _work(self, line: _Line) -> None:
        while (task := line.questions.get()) is not None:
            question, answer = task
            self._answer(line, question, answer)
            self._wake()

    def _answer(self, line: _Line, question: Question, answer: Answer) -> None:
        try:
            if line.history is None:
                line.history = self._opened()
            answer.value = question(line.history)
            self._log_once("")
        except Exception as error:
            answer.problem, answer.never = HistoryFault(str(error)), isinstance(error, BadInput)
            self._log_once(str(error), never=answer.never)
        answer.done = True

    def _opened(self) -> History:
        """Open the history; a wrong setting is not tried again."""
        if self._never is not None:
            raise self._never
        try:
            return self._open()
        except BadInput as error:
            self._never = error
            raise

    def _log_once(self, problem: str, *, never: bool = False) -> None:
        """Log a problem when it is new, and its end; a permanent problem once."""
        with self._saying:
            if never:
                said = problem if problem in self._logged_for_good else ""
                self._logged_for_good.add(problem)
            else:
                said, self._logged = self._logged, problem
        if problem and not said:
            _LOG.warning("history server unavailable; estimates are not updated: %s", problem)
        elif said and not problem:
            _LOG.info("history server available again")
