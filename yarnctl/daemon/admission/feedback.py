"""Feed finished jobs back to admission, one query after the other.

A query that has ended is a record, also one without a result; an unanswered one is repeated for a limited
time. A job with an impossible deadline is not used: it would make admission request too many containers for
all.
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

FRESH_MS = 5_000  # The time for which an answer is valid from its first use, ..
OLD_MS = 300_000  # ... if its question is not older than this.


class _Question:
    """A question with its time; ``seen_at_ms``: when its answer was used first (None: not yet)."""

    def __init__(self, answer: Answer, at_ms: int) -> None:
        self.answer = answer
        self.at_ms = at_ms
        self.seen_at_ms: int | None = None

    def counts(self, now_ms: int) -> bool:
        """Return whether its answer is pending or still valid."""
        if not self.answer.done:
            return True
        if self.seen_at_ms is None:
            self.seen_at_ms = now_ms
        fresh = now_ms - self.seen_at_ms < FRESH_MS and now_ms - self.at_ms < OLD_MS
        return fresh and not self.answer.problem


class ClusterCapacity(NamedTuple):
    """The cluster's size for estimates: ``capacity`` containers of ``container_mib``."""

    capacity: int
    container_mib: int


class WantedJob(NamedTuple):
    """The job of an estimate: its name, user, kind, and the containers that it can use."""

    name: str
    user: str
    kind: str
    containers: int


class Estimates:
    """Estimates from ``history_worker``; each name, user, kind and number of containers is queried once."""

    def __init__(self, history_worker: HistoryWorker) -> None:
        self._history_worker = history_worker
        self._asked: dict[WantedJob, _Question] = {}

    def of(self, job: WantedJob, capacity: ClusterCapacity, now_ms: int) -> Answer:
        """Return the answer for a job, which may be pending; ``capacity`` is the cluster's."""
        self._asked = {each: asked for each, asked in self._asked.items() if asked.counts(now_ms)}
        found = self._asked.get(job)
        if found is None or found.at_ms > now_ms:  # the clock may have been set back
            answer = self._history_worker.ask(
                lambda history: sized(history, capacity).estimate(
                    job.name, job.user, job.kind, job.containers
                ),
                of_a_request=True,
            )
            found = self._asked[job] = _Question(answer, now_ms)
        return found.answer

    def __len__(self) -> int:
        """Return the number of kept answers."""
        return len(self._asked)


YARN = "yarn"  # The kind that selects the ResourceManager's own times for any framework
EVERY_MS = 5_000
EVERY_MAX_MS = 60_000
TRAIN_MS = 10_000  # The time for which the first round waits for feedback of earlier jobs
LEARN_FOR_MS = 15 * 60_000  # The time for which the history is queried for an ended application
TRAINED_BACK_MS = 7 * 86_400_000


class Feedback:
    """Reads feedback from ``history_worker`` for ended admissions in ``store``."""

    def __init__(self, history_worker: HistoryWorker, store: AdmissionStore) -> None:
        self._history_worker = history_worker
        self._store = store
        self._asked: tuple[str, Answer] | None = None
        self._asked_at_ms = 0
        self._again_at_ms = 0
        self._pause_ms = EVERY_MS
        self._tried = False
        self._tried_at_ms: dict[str, int] = {}

    def is_training(self, now_ms: int) -> bool:
        """Return whether to wait for feedback of earlier jobs before the first round."""
        if self._store.trained or self._tried or not self._learns:
            return False
        return self._asked is None or now_ms - self._asked_at_ms < TRAIN_MS

    def begin_anew(self, now_ms: int) -> None:
        """Query at the next call: the clock was set back, so the time of the last query is wrong."""
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

    def _ask(self, now_ms: int, capacity: ClusterCapacity) -> None:
        store = self._store
        if not store.trained and self._learns:
            since_ms = max(0, now_ms - TRAINED_BACK_MS)
            self._begin("", now_ms, lambda history: sized(history, capacity).recent(since_ms))
        elif store.unlearned:
            name = min(store.unlearned, key=lambda one: (self._tried_at_ms.get(one, 0), one))
            kind, containers = self._given(name)
            self._begin(
                name, now_ms, lambda history: sized(history, capacity).finished(name, kind, containers)
            )

    def _given(self, application: str) -> tuple[str, int]:
        """Return the kind of an admitted application, and the number of its containers (0: not known)."""
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
            return  # too many have ended since: the store has dropped it
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
        """Return whether an application was placed; then only its running time is used."""
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
        if ended is not None:  # its tag has YARN's deadline, not the one that was sold
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
    """Return why a job's numbers cannot be used, None if they can.

    They must be above 0 and finite. A job that needed a ratio above 1 would stop all further admissions.
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


def sized(history: History, capacity: ClusterCapacity) -> History:
    """Set the cluster's current size for the history."""
    history.capacity, history.container_mib = capacity
    return history
