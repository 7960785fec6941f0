"""The history worker: queries the job history beside the loop, from two queues: estimates, and feedback.

Law: the loop never blocks on a history server, and an estimate for a waiting request never waits for
feedback. Queries are few and bounded, in each queue one after the other; an answer is fetched when it is
there. A server that does not answer is logged once; no answer is a result, too.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.model import ContainerAsk
from yarnctl.deciding.reasons.verdicts import HistoryBusy, HistoryFault, LessonReason
from yarnctl.errors import BadInput

_LOG = logging.getLogger("yarnctl.daemon")

QUESTIONS_MAX = 64


class History(Protocol):
    """What admission needs of :class:`yarnctl.attach.history.histories.Histories`."""

    capacity: int
    container_mib: int

    def finished(
        self, application: str, kind: str = "mapreduce", containers: int = 0
    ) -> tuple[Finished | None, LessonReason | None]:
        """Return what one ended application teaches that was given ``containers``, or None and why."""
        ...

    def recent(self, since_ms: int) -> Sequence[Finished]:
        """Return what the jobs since an instant teach."""
        ...

    def estimate(self, name: str, user: str, kind: str = "mapreduce", most: int = 0) -> Estimate | None:
        """Return what the next run of a job needs, which can use ``most`` containers, by its last runs."""
        ...

    def first_asks(self, name: str, user: str) -> tuple[ContainerAsk, ...]:
        """Return what the last run of a job asked for first."""
        ...

    def latest_first_asks(
        self, since_ms: int, is_preempting: Callable[[str], bool]
    ) -> dict[tuple[str, str], tuple[ContainerAsk, ...]]:
        """Return what the last run of each of the latest jobs in preempting queues asked for first."""
        ...


class Answer:
    """One answer: ``done`` when it is there; ``problem`` is why there is no ``value`` (None: there is one).

    ``never``: nor will there be one, as long as this daemon runs.
    """

    def __init__(self) -> None:
        self.done = False
        self.value: object = None
        self.problem: LessonReason | None = None
        self.never = False


Question = Callable[[History], object]


class _Line:
    """Questions in a row, with the thread that puts them and its own way to the history."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.history: History | None = None
        self.questions: queue.Queue[tuple[Question, Answer] | None] = queue.Queue(QUESTIONS_MAX)
        self.thread: threading.Thread | None = None


class HistoryWorker:
    """``open_history`` returns the history (called in each line's thread, again until it succeeds).

    ``poke`` is called after each answer. ``in_thread`` False: questions are answered by the calling thread.
    """

    def __init__(
        self, open_history: Callable[[], History], poke: Callable[[], None], *, in_thread: bool = True
    ) -> None:
        self._open = open_history
        self._wake = poke
        self._feedback, self._estimates = _Line("history"), _Line("history-estimates")
        self._logged = ""
        self._logged_for_good: set[str] = set()
        self._saying = threading.Lock()
        self._never: BadInput | None = None
        self._in_thread = in_thread

    def ask(self, question: Question, *, of_a_request: bool = False) -> Answer:
        """Queue a question. ``of_a_request``: a client waits for the answer; it precedes all lessons."""
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
        """Answer no more; a question that is being asked ends by its own bounds."""
        for line in (self._feedback, self._estimates):
            with contextlib.suppress(queue.Full):  # the threads are daemons: they end with the process
                line.questions.put_nowait(None)

    def _work(self, line: _Line) -> None:
        while (task := line.questions.get()) is not None:
            self._answer(line, *task)
            self._wake()

    def _answer(self, line: _Line, question: Question, answer: Answer) -> None:
        """Ask the history; whatever goes wrong there is no fault of ours."""
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
        """Log what has changed; what will never change, once."""
        with self._saying:
            if never:
                said = problem if problem in self._logged_for_good else ""
                self._logged_for_good.add(problem)
            else:
                said, self._logged = self._logged, problem
        if problem and not said:
            _LOG.warning("nothing is learned from finished jobs, all else goes on: %s", problem)
        elif said and not problem:
            _LOG.info("the history of jobs answers again")
