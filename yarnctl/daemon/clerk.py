"""The clerk: asks the history of jobs beside the loop, one question after the other.

Law: the loop never waits for a history server. Questions are few and bounded; an answer is fetched when
it is there. A server that does not answer is said once, and gives no answer, which is one, too.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.errors import BadInput

_LOG = logging.getLogger("yarnctl.daemon")

QUESTIONS_MAX = 64
NOT_YET = "not yet"
"""A reason that begins so means: ask again later."""


class History(Protocol):
    """What the desk needs of :class:`yarnctl.attach.jobs_history.JobsHistory`."""

    capacity: int

    def finished(self, application: str) -> tuple[Finished | None, str]:
        """Return what one ended application teaches, or None and why."""
        ...

    def recent(self, since_ms: int) -> Sequence[Finished]:
        """Return what the jobs since an instant teach."""
        ...

    def estimate(self, name: str, user: str) -> Estimate | None:
        """Return what the last runs of a job needed."""
        ...


class Answer:
    """One answer: ``done`` when it is there; ``problem`` says why ``value`` is none ("": it is one)."""

    def __init__(self) -> None:
        self.done = False
        self.value: object = None
        self.problem = ""


class Clerk:
    """``open_history`` returns the history (called in the clerk's thread, again until it succeeds).

    ``poke`` is called after each answer. ``in_thread`` False: questions are answered where they are asked.
    """

    def __init__(
        self, open_history: Callable[[], History], poke: Callable[[], None], *, in_thread: bool = True
    ) -> None:
        self._open = open_history
        self._poke = poke
        self._history: History | None = None
        self._questions: queue.Queue[tuple[Callable[[History], object], Answer] | None]
        self._questions = queue.Queue(QUESTIONS_MAX)
        self._said = ""
        self._never: BadInput | None = None
        self._in_thread = in_thread
        self._thread: threading.Thread | None = None

    def ask(self, question: Callable[[History], object]) -> Answer:
        """Ask; the answer comes later."""
        answer = Answer()
        if not self._in_thread:
            self._answer(question, answer)
            return answer
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="history", daemon=True)
            self._thread.start()
        try:
            self._questions.put_nowait((question, answer))
        except queue.Full:
            answer.problem, answer.done = f"{NOT_YET}: too many questions", True
        return answer

    def close(self) -> None:
        """Answer no more; a question that is being asked ends by its own bounds."""
        with contextlib.suppress(queue.Full):  # the thread is a daemon: it ends with the process
            self._questions.put_nowait(None)

    def _work(self) -> None:
        while (task := self._questions.get()) is not None:
            self._answer(*task)
            self._poke()

    def _answer(self, question: Callable[[History], object], answer: Answer) -> None:
        """Ask the history; whatever goes wrong there is no fault of ours."""
        try:
            if self._history is None:
                self._history = self._opened()
            answer.value = question(self._history)
            self._say("")
        except Exception as error:
            answer.problem = f"{NOT_YET}: {error}"
            self._say(str(error))
        answer.done = True

    def _opened(self) -> History:
        """Open the history; what is wrong with what we were told will not mend itself."""
        if self._never is not None:
            raise self._never
        try:
            return self._open()
        except BadInput as error:
            self._never = error
            raise

    def _say(self, problem: str) -> None:
        if problem and not self._said:
            _LOG.warning("nothing is learned from finished jobs, all else goes on: %s", problem)
        elif self._said and not problem:
            _LOG.info("the history of jobs answers again")
        self._said = problem
