"""Feedback: what the gate learns from finished jobs, one query after the other.

Law: a query that has ended is a record, also one without a result; an unanswered one is repeated for a
limited time. A deadline that nothing could have met is not learned from: one such job would make the gate
request too many containers for all others. What only the gate has of a job (its request and its containers)
is added here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from yarnctl.daemon.admission.history_worker import Answer, History, HistoryWorker
from yarnctl.deciding.admission.book import AdmissionStore
from yarnctl.deciding.admission.entries import GateLearned
from yarnctl.deciding.admission.mechanisms import MECHANISMS
from yarnctl.deciding.admission.records import Finished
from yarnctl.deciding.reasons.verdicts import ASK_AGAIN, LessonReason, NoneWouldDo, NumbersImpossible
from yarnctl.deciding.records import Record

FRESH_MS = 5_000
"""So long an answer counts from its first use, ..."""
OLD_MS = 300_000
"""... if its question is not so old."""


class _Question:
    """A question of an instant; ``seen_at_ms``: when its answer was used first (None: not yet)."""

    def __init__(self, answer: Answer, at_ms: int) -> None:
        self.answer = answer
        self.at_ms = at_ms
        self.seen_at_ms: int | None = None

    def counts(self, now_ms: int) -> bool:
        """Say whether its answer is on its way, or still counts."""
        if not self.answer.done:
            return True
        if self.seen_at_ms is None:
            self.seen_at_ms = now_ms
        fresh = now_ms - self.seen_at_ms < FRESH_MS and now_ms - self.at_ms < OLD_MS
        return fresh and not self.answer.problem


class ClusterCapacity(NamedTuple):
    """The cluster as histories are read: ``capacity`` containers of ``container_mib``."""

    capacity: int
    container_mib: int


class WantedJob(NamedTuple):
    """What an estimate is made for: a job's name, its user, its kind, the containers that it can use."""

    name: str
    user: str
    kind: str
    containers: int


class Estimates:
    """Queries ``clerk``; each job of a name, user and kind, for so many containers, is queried once."""

    def __init__(self, clerk: HistoryWorker) -> None:
        self._history_worker = clerk
        self._asked: dict[WantedJob, _Question] = {}

    def of(self, job: WantedJob, size: ClusterCapacity, now_ms: int) -> Answer:
        """Return the answer for a job, which may be on its way; ``size`` is the cluster's."""
        self._asked = {each: asked for each, asked in self._asked.items() if asked.counts(now_ms)}
        found = self._asked.get(job)
        if found is None or found.at_ms > now_ms:  # else asked, by a clock that has been set back
            answer = self._history_worker.ask(
                lambda history: sized(history, size).estimate(*job), of_a_request=True
            )
            found = self._asked[job] = _Question(answer, now_ms)
        return found.answer

    def __len__(self) -> int:
        """Return how many are remembered."""
        return len(self._asked)


YARN = "yarn"
"""The kind by which the ResourceManager's own times are asked for, whatever the framework."""
EVERY_MS = 5_000
EVERY_MAX_MS = 60_000
TRAIN_MS = 10_000
"""So long a round waits for what the past teaches."""
LEARN_FOR_MS = 15 * 60_000
"""So long the history is queried for the feedback of an ended application."""
TRAINED_BACK_MS = 7 * 86_400_000


class Feedback:
    """Queries ``clerk`` for what ``book`` has not learned yet."""

    def __init__(self, clerk: HistoryWorker, book: AdmissionStore) -> None:
        self._history_worker = clerk
        self._store = book
        self._asked: tuple[str, Answer] | None = None
        self._asked_at_ms = 0
        self._again_at_ms = 0
        self._pause_ms = EVERY_MS
        self._tried = False
        self._tried_at_ms: dict[str, int] = {}

    def is_training(self, now_ms: int) -> bool:
        """Say whether to wait for what the past teaches, a little, before anybody is judged."""
        if self._store.trained or self._tried or not self._learns:
            return False
        return self._asked is None or now_ms - self._asked_at_ms < TRAIN_MS

    def begin_anew(self, now_ms: int) -> None:
        """Query at the next call: the clock that told when the last one was has been set back."""
        self._asked_at_ms = min(self._asked_at_ms, now_ms)
        self._again_at_ms, self._tried_at_ms = 0, {}

    @property
    def _learns(self) -> bool:
        gate = self._store.gate
        return gate is not None and MECHANISMS[gate.mechanism].learns

    def reconcile(self, note: Callable[[Record], None], now_ms: int) -> None:
        """Apply the answers of the history worker, or query the next; ``note`` writes records."""
        gate = self._store.gate
        if gate is None:
            return
        if self._asked is not None:
            application, answer = self._asked
            if answer.done:
                self._asked = None
                self._apply(note, now_ms, application, answer)
        elif now_ms >= self._again_at_ms:
            self._ask(now_ms, ClusterCapacity(gate.capacity, self._store.container_mib))

    def _ask(self, now_ms: int, size: ClusterCapacity) -> None:
        book = self._store
        if not book.trained and self._learns:
            since_ms = max(0, now_ms - TRAINED_BACK_MS)
            self._begin("", now_ms, lambda history: sized(history, size).recent(since_ms))
        elif book.unlearned:
            name = min(book.unlearned, key=lambda one: (self._tried_at_ms.get(one, 0), one))
            kind, containers = self._given(name)
            self._begin(name, now_ms, lambda history: sized(history, size).finished(name, kind, containers))

    def _given(self, application: str) -> tuple[str, int]:
        """Return the kind of an admitted application, and how many containers it was given (0: not known)."""
        found = self._store.by_application(application)
        if found is None:
            return "mapreduce", 0
        if found.plan.kind:
            return YARN, found.plan.containers
        return found.request.kind, 0 if found.reservation is None else found.reservation.containers

    def _begin(self, application: str, now_ms: int, question: Callable[[History], object]) -> None:
        self._asked_at_ms = now_ms
        self._asked = (application, self._history_worker.ask(question))

    def _apply(self, note: Callable[[Record], None], now_ms: int, application: str, answer: Answer) -> None:
        if not application:
            self._apply_past(note, now_ms, answer)
            return
        finished, why = answer.value if isinstance(answer.value, tuple) else (None, answer.problem)
        if (
            finished is None
            and isinstance(why, ASK_AGAIN)
            and now_ms - self._ended_at_ms(application) < LEARN_FOR_MS
        ):
            self._again_at_ms = now_ms + EVERY_MS
            self._tried_at_ms[application] = now_ms  # others first
            return
        self._tried_at_ms.pop(application, None)
        if application not in self._store.unlearned:
            return  # too many have ended since: the book has let it go
        if finished is not None:
            finished = self._as_admitted(application, finished)
            why = None if self._is_placed(application) else unusable(finished)
        note(
            GateLearned(now_ms, application, () if finished is None or why is not None else (finished,), why)
        )

    def _apply_past(self, note: Callable[[Record], None], now_ms: int, answer: Answer) -> None:
        self._tried = True
        if answer.problem is not None:
            self._again_at_ms = now_ms + self._pause_ms
            self._pause_ms = min(2 * self._pause_ms, EVERY_MAX_MS)
            return
        self._pause_ms = EVERY_MS
        found = answer.value if isinstance(answer.value, Sequence) else ()
        past = tuple(one for one in found if isinstance(one, Finished) and unusable(one) is None)
        note(GateLearned(now_ms, "", past))

    def _is_placed(self, application: str) -> bool:
        """Say whether an application was placed: how long it took counts, and no deadline is learned from."""
        found = self._store.by_application(application)
        return found is not None and bool(found.plan.kind)

    def _ended_at_ms(self, application: str) -> int:
        found = self._store.by_application(application)
        return 0 if found is None else found.changed_at_ms

    def _as_admitted(self, application: str, finished: Finished) -> Finished:
        found, gate = self._store.by_application(application), self._store.gate
        if found is None or found.reservation is None or gate is None:
            return finished
        ended = self._store.outcomes.get(found.admission)
        if ended is not None:  # paid: its tag says by when YARN is to serve it, and not what was sold
            finished = msgspec.structs.replace(finished, met=ended.outcome != "late")
        return msgspec.structs.replace(
            finished,
            tasks=found.request.tasks,
            deadline_ms=found.request.span_ms,
            containers=found.reservation.containers,
            ratio=found.reservation.ratio,
            capacity=gate.capacity,
        )


def unusable(finished: Finished) -> LessonReason | None:
    """Say why a job's numbers teach nothing, None if they do.

    They must be above 0 and finite; and some number of containers must have been enough (else the ratio that
    it needed is above 1, and a gate that learns it admits nothing).
    """
    least = min(
        finished.work_ms, finished.tasks, finished.deadline_ms, finished.containers, finished.capacity
    )
    if least <= 0 or not 0.0 <= finished.ratio < float("inf"):
        return NumbersImpossible()
    most = min(finished.tasks, finished.capacity)
    if finished.work_ms > finished.deadline_ms * most:
        return NoneWouldDo(finished.work_ms, finished.deadline_ms, most)
    return None


def sized(history: History, size: ClusterCapacity) -> History:
    """Set the cluster's size of now for the history."""
    history.capacity, history.container_mib = size
    return history
