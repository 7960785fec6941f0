"""Answer what-if questions: a copy of the controller decides on a changed copy of the newest snapshot.

Law: nothing of the cluster, the journal or the ledger changes. The desk only reads: a snapshot, and tasks of
jobs that the copy compares. Questions wait for the end of a tick; their number and time are bounded, because
the loop renews its lock between two answers.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial

import msgspec

from yarnctl.api.what_if_answers import ChosenOut, FallenOut, SpanOut, WhatIfOut
from yarnctl.daemon.view.why_waiting import sentence, waiting_reasons
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import HeldTime, JobConsent, Snapshot, TaskView
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.deciding.what_if.fallen_deadlines import fallen
from yarnctl.deciding.what_if.played_forward import Forward, PlayedOutcome, Span, TasksOf
from yarnctl.deciding.what_if.supposed import NEW, LostNode, NewApplication, Supposition, supposed
from yarnctl.errors import BadInput, Unreachable, YarnctlError
from yarnctl.journal.fold import state_of
from yarnctl.journal.rendering import sentence_and_remedy

_LOG = logging.getLogger("yarnctl.daemon")

PENDING_MAX = 4
WAIT_S = 30.0
ANSWER_MAX_S = 3.0
"""The time of one answer: with a tick it must end before the lock expires (7.5 s after a renewal)."""
READS_MAX = 4
"""How often tasks of an application that answers late are read for one question."""
ENDS_UNKNOWN = "no container is ordered for it, and no task is known to end in time"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: ``guarantees`` by queue, as parts of the parent; ``node``: the one that is lost."""

    application: NewApplication | None = None
    guarantees: Mapping[str, float] = {}
    node: str = ""


class NewestState(msgspec.Struct, frozen=True, kw_only=True):
    """What the loop gives the desk for its answers: the newest snapshot and what was held."""

    snapshot: Snapshot
    at_ms: int
    held: tuple[HeldTime, ...] = ()
    consents: tuple[JobConsent, ...] = ()


def state_hash(ledger: Ledger, snapshot: Snapshot) -> str:
    """Return SHA-256, in hex, of a ledger and a snapshot."""
    digest = hashlib.sha256(msgspec.json.encode(state_of(ledger)))
    digest.update(msgspec.json.encode(snapshot))
    return digest.hexdigest()


class WhatIfDesk:
    """Passes questions from any thread to the loop's, which answers them.

    ``tasks_of`` reads tasks of applications, ``node_load`` what runs on a node (raises BadInput for an
    unknown one, and calls its last argument while it reads: that raises if it takes too long). ``on_wake``
    wakes the loop, which sets it. ``clock_s`` measures the time of an answer.
    """

    def __init__(
        self,
        tasks_of: TasksOf,
        node_load: Callable[[str, Snapshot, Callable[[], None]], LostNode],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tasks_of = tasks_of
        self._node_load = node_load
        self._clock_s = clock_s
        self.on_wake: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._pending: list[tuple[Question, Future[WhatIfOut]]] = []

    def ask(self, question: Question, wait_s: float = WAIT_S) -> WhatIfOut:
        """Return the loop's answer (any thread). Raises BadInput, and Unreachable: there is none now."""
        answer: Future[WhatIfOut] = Future()
        with self._lock:
            if len(self._pending) >= PENDING_MAX:
                raise Unreachable(f"{PENDING_MAX} questions are pending; retry in a few seconds")
            self._pending.append((question, answer))
        self.on_wake()
        try:
            return answer.result(wait_s)
        except TimeoutError:
            raise Unreachable(f"the loop did not answer within {wait_s:g} s; see the daemon's log") from None
        finally:
            with self._lock:
                self._pending = [each for each in self._pending if each[1] is not answer]

    @property
    def is_asked(self) -> bool:
        """Return whether a question is pending."""
        return bool(self._pending)

    def answer(self, controller: Controller, observe: Callable[[], NewestState | None]) -> None:
        """Answer the first pending question (the loop's thread). ``observe`` None: no cluster is seen."""
        with self._lock:
            pending, self._pending = self._pending[:1], self._pending[1:]
        for question, answer in pending:
            require_time = self._limit()
            try:
                state = observe()
                if state is None:
                    raise Unreachable("the cluster is not seen; see yarnctl snapshot")
                answer.set_result(self._answered(controller, state, question, require_time))
            except YarnctlError as problem:
                answer.set_exception(problem)
            except Exception as error:  # a question must not end the loop
                _LOG.exception("a what-if question failed")
                answer.set_exception(Unreachable(f"the question failed: {type(error).__name__}"))

    def _limit(self) -> Callable[[], None]:
        """Return what raises Unreachable once an answer that begins now takes too long."""
        end_s = self._clock_s() + ANSWER_MAX_S

        def require_time() -> None:
            if self._clock_s() > end_s:
                raise Unreachable(
                    f"the answer takes more than {ANSWER_MAX_S:g} s; suppose fewer containers, or retry later"
                )

        return require_time

    def _answered(
        self,
        controller: Controller,
        state: NewestState,
        question: Question,
        require_time: Callable[[], None],
    ) -> WhatIfOut:
        snapshot = state.snapshot
        supposition = self._supposition(question, snapshot, require_time)
        copied = controller.copy()
        changed = supposed(snapshot, supposition, state.at_ms)
        new = supposition.application
        outcome = Forward(
            copied,
            changed,
            state.at_ms,
            partial(self._read_tasks, require_time),
            new,
            state.held,
            state.consents,
            require_time,
        ).play()
        rows = fallen(snapshot, outcome.chosen, supposition.lost_node, state.at_ms)
        return WhatIfOut(
            at_ms=state.at_ms,
            state_hash=state_hash(controller.ledger, snapshot),
            chosen=_chosen(outcome),
            starts=_span(outcome.first),
            complete=_span(outcome.whole),
            served=outcome.served,
            lost_ms=sum(each.lost_ms for each in outcome.chosen),
            overhead_ms=sum(each.overhead_ms for each in outcome.chosen),
            deadlines=[FallenOut(**each._asdict()) for each in rows],
            waits="" if new is None or outcome.whole is not None else _why(copied, outcome.snapshot),
        )

    def _read_tasks(
        self, require_time: Callable[[], None], applications: tuple[str, ...]
    ) -> dict[str, tuple[TaskView, ...]]:
        """Read tasks until each application has answered: no later look makes up for one that is late."""
        found: dict[str, tuple[TaskView, ...]] = {}
        for _ in range(READS_MAX):
            missing = tuple(name for name in applications if name not in found)
            if not missing:
                break
            require_time()
            found |= self._tasks_of(missing)
        return found

    def _supposition(
        self, question: Question, snapshot: Snapshot, require_time: Callable[[], None]
    ) -> Supposition:
        leaves = [view.queue for view in snapshot.queues]
        parents = [view.queue for view in snapshot.parents]
        node = question.node
        new = question.application
        if new is not None:
            new = msgspec.structs.replace(new, queue=_leaf(new.queue, leaves))
        return Supposition(
            application=new,
            guarantees={_path(name, leaves, parents): part for name, part in question.guarantees.items()},
            lost_node=self._node_load(node, snapshot, require_time) if node else None,
        )


def _leaf(name: str, leaves: Sequence[str]) -> str:
    found = QueueTree(dict.fromkeys(leaves)).resolve(name)
    if isinstance(found, str):
        return found
    raise BadInput("queue", *sentence_and_remedy(found))


def _path(name: str, leaves: Sequence[str], parents: Sequence[str]) -> str:
    """Return the path of a leaf or a parent queue."""
    return name if name in parents else _leaf(name, leaves)


def _why(controller: Controller, snapshot: Snapshot) -> str:
    """Return why the supposed application has not all its containers at the end of the play."""
    orders = controller.ledger.open.values()
    found = waiting_reasons(snapshot, controller.settings, orders, controller.verdicts, None).get(NEW)
    return ENDS_UNKNOWN if found is None else sentence(found)


def _span(span: Span | None) -> SpanOut | None:
    return None if span is None else SpanOut(**span._asdict())


def _chosen(outcome: PlayedOutcome) -> list[ChosenOut]:
    return [
        ChosenOut(
            application=each.application,
            attempt=each.attempt,
            container=each.container,
            node=each.node,
            lever=each.how,
            requester=each.requester,
            lost_ms=each.lost_ms,
            overhead_ms=each.overhead_ms,
        )
        for each in outcome.chosen
    ]
