"""The daemon's loop: the same tick as in virtual time, after waiting on the wall clock, in one thread.

Observations and decisions are published after each tick; an error is logged, and the loop continues after a
pause. At a stop, orders without a checkpoint are withdrawn, and the reason is published.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.audit import audit
from yarnctl.daemon.admission.admission_controller import AdmissionController
from yarnctl.daemon.admission.late_desk import SeenProgress
from yarnctl.daemon.daemon_lock import DaemonLock
from yarnctl.daemon.guards import GuardedPort, WriteGuard
from yarnctl.daemon.held_priorities import HeldPriorities
from yarnctl.daemon.notices.audited_actions import action_line
from yarnctl.daemon.notices.waiting_log import WaitingLog, warnings
from yarnctl.daemon.preemption_switch import KIND as PREEMPTION
from yarnctl.daemon.preemption_switch import PreemptionSwitch
from yarnctl.daemon.questions.what_if_desk import NewestState, WhatIfDesk
from yarnctl.daemon.queue_caps import QueueCaps
from yarnctl.daemon.view.published import LoopStatus, Publisher, demand_waits
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.model import Change, ChangeKind, Outcome, Refused, Snapshot, Withheld
from yarnctl.deciding.order import ORDER_VERBS
from yarnctl.deciding.queue_hold import CONTINUED
from yarnctl.deciding.queue_names import NamedQueues, Resolved
from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.deciding.reasons.modes import (
    AskedToStop,
    ClusterFault,
    ClusterUnseen,
    Continued,
    HdfsUnwritable,
    LockRanOut,
    LockUnconfirmed,
    LoopFailed,
    ManagerSettling,
    ModeReason,
    NotEnforcing,
    NothingInTheWay,
    Paused,
    PreemptionOn,
    TicksDone,
)
from yarnctl.deciding.reasons.orders import DeadlineOrder, LeftByEarlierRun, MayNotAct, Stopping
from yarnctl.deciding.reasons.outcomes import OutcomeReason
from yarnctl.deciding.reasons.queue_naming import QueueProblem, QueuesUnread, QueuesVanished
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.deciding.records import (
    Contact,
    Decision,
    Epoch,
    LeversStopped,
    Lowering,
    Performed,
    QueueResumed,
    Ranking,
    Record,
    Restoring,
    Return,
    SavedLost,
    Stance,
    StoodAside,
    Transition,
)
from yarnctl.errors import InvariantBroken, YarnctlError
from yarnctl.hadoop.http.answers import SafeMode, Standby
from yarnctl.hadoop.http.request_counts import REQUESTS
from yarnctl.journal.rendering import joined, said, text
from yarnctl.loop import Journal, tick
from yarnctl.restoring.change_file import described
from yarnctl.restoring.restorer import Key, OpenChange, Restorer

_LOG = logging.getLogger("yarnctl.daemon")

RETRY_MS = 1000
REFUSED_MAX = 1000
NEWS_MS = 60  # The interval at which the folders of tasks under order are listed between two ticks
SHOW_EVERY_MS = 5000  # The interval of polls for the view without pending preempting requests
BLIND_EVERY_MS = 60_000  # The interval of errors in the log while the cluster is not seen

OPEN_WHY: dict[str, ModeReason] = {"enforcing": NothingInTheWay(), "observing": NotEnforcing()}


EXPECTED = ManagerSettling | PreemptionOn | QueuesUnread | QueuesVanished | QueueProblem
"""Reasons that are logged as information: they pass soon, or another line has warned about them."""


class Recorder:
    """Writes records to the journal, and passes them to the publisher, the guard and the log.

    ``account``: this daemon's user in the cluster, for the audit lines.
    """

    def __init__(
        self, journal: Journal, publisher: Publisher, guard: WriteGuard, *, observing: bool = False
    ) -> None:
        self.account = ""
        self.journal = journal
        self.publisher = publisher
        self.guard = guard
        self.begun = False
        self.on_record: Callable[[Record], None] = lambda _: None
        self.on_ranking: Callable[[Ranking], None] = lambda _: None
        self.met_another = False
        self.failed: OSError | None = None
        self._refused: dict[str, OutcomeReason] = {}
        self._observing = observing
        self._withheld: set[str] = set()

    def append(self, records: Sequence[Record]) -> None:
        """Write records, then pass them to the readers. Raises OSError; the journal has ``failed`` then."""
        try:
            self.journal.append(records)
        except OSError as error:
            self.failed = error
            raise
        self.begun = True
        self.publisher.record(records)
        self.guard.misdirection.apply(records)
        for record in records:
            self.met_another |= isinstance(record, Epoch)
            self._log(record)
            self.on_record(record)
            if isinstance(record, Performed) and record.application and not record.back:
                self._log_refused(record.application, record.outcome)
            if isinstance(record, Performed) and not isinstance(record.outcome, Withheld):
                audit(action_line(self.account, record, self.publisher.story(record.order)))
            if isinstance(record, Ranking):
                self.on_ranking(record)

    def append_if_possible(self, records: Sequence[Record]) -> None:
        """Write the records of restoring, which happens even if they cannot be written (the log has them).

        After one failed write no more are written: a journal with a gap cannot be replayed.
        """
        if not self.begun:
            return
        if self.failed is None:
            try:
                self.append(records)
                return
            except OSError as error:
                _LOG.error("cannot write to the journal (%s); it lacks the last restored settings", error)
        for record in records:
            self._log(record)

    def _log(self, record: Record) -> None:
        """Log a record that was just written in one line; mark orders that were not sent."""
        if isinstance(record, Performed):
            if record.action in ORDER_VERBS and isinstance(record.outcome, Withheld):
                self._withheld.add(record.order)
        elif isinstance(record, Transition) and record.order in self._withheld:
            becomes = "is" if record.target in OPEN else "ends as"
            _LOG.info("%s: not sent, %s %s: %s", record.order, becomes, record.target, said(record.why))
            if record.target not in OPEN:
                self._withheld.discard(record.order)
        else:
            _log(record, self._observing)

    def _log_refused(self, application: str, outcome: Outcome) -> None:
        """Log once why an application keeps its priority."""
        why: OutcomeReason | None = outcome.why if isinstance(outcome, Refused) else None
        if why is not None and self._refused.get(application) != why:
            _LOG.warning("cannot change the priority of %s: %s", application, text(why))
        self._refused.pop(application, None)
        if why is not None:
            self._refused[application] = why
            if len(self._refused) > REFUSED_MAX:
                del self._refused[next(iter(self._refused))]


def _log(record: Record, observing: bool) -> None:
    """Log a record that was just written in one line."""
    if isinstance(record, Decision):
        picked = ", ".join(f"{pick.task.attempt} of {pick.application}" for pick in record.picks)
        would = "would order " if observing and picked else ""
        _LOG.info("decision %d for %s: %s%s", record.number, record.trigger.application, would, picked)
    elif isinstance(record, Transition):
        _LOG.info("%s: %s -> %s %s", record.order, record.source, record.target, said(record.why))
    elif isinstance(record, Return):
        _LOG.info(
            "%s resumed (order %s): resume cost %.1f s, predicted %.1f s",
            record.attempt,
            record.order,
            record.cost_ms / 1000,
            record.predicted_ms / 1000,
        )
    elif isinstance(record, SavedLost):
        _LOG.warning(
            "%s: work lost: %s resumed from generation %d instead of %d (%s keys were saved);"
            " see its standard error for the reason",
            record.order,
            record.attempt,
            record.generation_found,
            record.generation_expected,
            record.keys_lost if record.keys_lost >= 0 else "unknown",
        )
    elif isinstance(record, Lowering):
        for change in record.changes:
            _LOG.info("changing %s: %s", described(change), said(record.why))
    elif isinstance(record, Restoring):
        _LOG.info("restoring %s: %s", described(record.change), said(record.why))
    elif isinstance(record, StoodAside | LeversStopped):
        _LOG.warning("%s", text(record.why))
    elif isinstance(record, QueueResumed):
        _LOG.info("an operator ended the pause of queue %s", record.queue)
    elif isinstance(record, Stance):
        is_usual = record.stance in (*OPEN_WHY, CONTINUED) or isinstance(record.why, EXPECTED)
        level = logging.INFO if is_usual else logging.WARNING
        _LOG.log(level, "%s: %s", record.stance, text(record.why))


class LockRenewal:
    """Renews the lock and updates the write guard. ``lock`` None: none is needed."""

    def __init__(self, lock: DaemonLock | None, port: GuardedPort, wake: Callable[[], None]) -> None:
        self.lock = lock
        self._port = port
        self._wake = wake
        self._next_ms = self._failed = 0
        if lock is not None:
            lock.on_free = self._free

    def renew(self, now_ms: int) -> None:
        """Renew the lock, or try to get it; that in HDFS also shows whether HDFS can be written."""
        if self.lock is None or now_ms < self._next_ms:
            return
        self._next_ms = now_ms + self.lock.every_ms
        guard = self._port.guard
        try:
            is_ours = (self.lock.held and self.lock.renew()) or self.lock.acquire()
        except YarnctlError as error:
            self._failed += 1
            if self._failed > 1 or isinstance(error, SafeMode | Standby) or not self.lock.held:
                reason = HdfsUnwritable if self.lock.kind == "hdfs" else LockUnconfirmed
                guard.store_why = reason(str(error)[:FAULT_MAX])
            _note(self._port, "lock", f"cannot renew the lock: {error}")
        else:
            self._failed, guard.store_why, guard.has_rival = 0, None, not is_ours and self.lock.has_rival
            self._port.well("lock")

    def _free(self) -> None:
        """Try to get the lock at once: its holder is gone."""
        self._next_ms = 0
        self._wake()

    def release(self) -> None:
        """Release the lock so that the next daemon can start at once; otherwise the lock expires."""
        if self.lock is None:
            return
        try:
            self.lock.release()
        except YarnctlError as error:
            _LOG.warning("cannot release the lock; it expires: %s", error)


def _note(port: GuardedPort, about: str, story: str) -> None:
    if port.note(about, story):
        _LOG.warning("%s", story)


class Loop:
    """One daemon's loop. ``clock_ms`` returns ms since the epoch, by the port's clock.

    ``restorer`` restores settings that were lowered (None: this daemon only observes); ``ranks``: this run
    sets priorities. ``epoch``: the last ResourceManager of an earlier run.
    ``observe_soon`` polls the cluster for the view (None if the cluster does not answer); without it the view
    is not updated while no preempting application has pending requests. ``problem``: why the port's last poll
    failed. ``preemption_switch`` None: YARN's own preemption is not switched. ``left_alone``: why single
    tasks cannot be suspended, by attempt. ``in_place`` raises OSError if the state directory was replaced.
    ``names`` resolves queues (None: the controller has the port's own); ``adopt`` returns the controller that
    decides by their paths. ``reload`` reads the settings again and returns the controller
    that decides by them. ``notify`` sends lines to the service manager.
    """

    def __init__(
        self,
        controller: Controller,
        port: GuardedPort,
        journal: Journal,
        publisher: Publisher,
        *,
        clock_ms: Callable[[], int],
        lock: DaemonLock | None = None,
        restorer: Restorer | None = None,
        ranks: bool = False,
        epoch: str = "",
        observe_soon: Callable[[], Snapshot | None] | None = None,
        problem: Callable[[], ModeReason | None] = lambda: None,
        left_alone: Callable[[], Mapping[str, EligibilityReason]] = dict,
        queue_caps: QueueCaps | None = None,
        preemption_switch: PreemptionSwitch | None = None,
        admission: AdmissionController | None = None,
        in_place: Callable[[], None] = lambda: None,
        names: QueueNames | None = None,
        adopt: Callable[[Controller, NamedQueues, Resolved], Controller] = lambda controller, *_: controller,
        what_if: WhatIfDesk | None = None,
        reload: Callable[[Controller], Controller] | None = None,
        notify: Callable[..., object] = lambda *_: None,
    ) -> None:
        self.controller = controller
        self.port = port
        self.guard = port.guard
        self.publisher = publisher
        self.recorder = Recorder(journal, publisher, port.guard, observing=not port.enforce)
        self.lock_renewal = LockRenewal(lock, port, self.wake)
        self.ticks = 0
        self.tick_ms: float | None = None
        self._clock_ms = clock_ms
        self._started_at_ms = self._seen_at_ms = clock_ms()
        self._wake = threading.Condition()
        self._stopping = False
        self._poked = False
        self._stance: tuple[str, ModeReason | None] = ("", None)
        self._state_logged: tuple[str, tuple[ModeReason, ...]] | None = None
        self._restorer = restorer
        self._held_priorities = HeldPriorities(restorer) if ranks and restorer is not None else None
        if restorer is not None:
            restorer.write = self._write
            if ranks:
                self.recorder.on_ranking = self._record_ranking
        self._epoch = epoch
        self._continued = False
        self._to_resume: deque[str] = deque()
        self._aside: frozenset[str] = frozenset()
        self._logged: tuple[str, tuple[ModeReason, ...]] | None = None
        self._observe_soon = observe_soon
        self._problem = problem
        self._left_alone = left_alone
        self._queue_caps = queue_caps
        self._preemption_switch = preemption_switch
        self._kinds: Sequence[ChangeKind] = get_args(ChangeKind)  # that are restored when it may not act
        if preemption_switch is not None:
            self._kinds = [kind for kind in self._kinds if kind != PREEMPTION]
        self.admission = admission
        if self.admission is not None:
            self.admission.request_queue.on_wake = self.wake
            # The service may answer before the first tick, with the requests of an earlier run.
            publisher.admission = self.admission.shown()
            publisher.set_status(publisher.view.loop, self._started_at_ms)
        self.what_if = what_if
        if what_if is not None:
            what_if.on_wake = self.wake
        self._in_place = in_place
        self._names = names
        self._adopt = adopt
        self._reload = reload
        self._to_reload = False
        self._unresolved: tuple[ModeReason, ...] = ()
        self._waiting_log = WaitingLog()
        self._ended: ModeReason | None = None
        self._notify = notify

    # --- control (any thread) -----------------------------------------------------------------

    def pause(self, why: str, for_ms: int | None = None) -> None:
        """Stop deciding and acting after the current tick, for ``for_ms`` (None: until it is continued)."""
        until_ms = 0 if for_ms is None else self._clock_ms() + for_ms
        with self.guard.pausing:
            self.guard.paused = Paused(why or "paused by an operator", until_ms)
        self.wake()

    def go_on(self) -> None:
        """End an operator's pause and those of all queues."""
        with self.guard.pausing:
            self.guard.paused = None
            self._continued = True
        self.wake()

    def resume(self, queue: str) -> None:
        """End the pause of one queue."""
        self._to_resume.append(queue)
        self.wake()

    def reload(self) -> None:
        """Read the settings again before the next tick."""
        self._to_reload = True
        self.wake()

    def stop(self) -> None:
        """End after the current tick."""
        self._stopping = True
        self.wake()

    def wake(self) -> None:
        """Run the next tick at once."""
        with self._wake:
            self._poked = True
            self._wake.notify_all()

    def run(self, ticks: int | None = None) -> None:
        """Run until stopped, or for ``ticks``. Raises InvariantBroken, and OSError of the journal."""
        self._ended = None
        try:
            while not self._stopping and (ticks is None or self.ticks < ticks):
                wake_at_ms = self._once()
                self._notify(*(("READY=1",) if self.ticks == 1 else ()), "WATCHDOG=1")
                self._wait_until(wake_at_ms)
            self._ended = AskedToStop() if self._stopping else TicksDone(self.ticks)
        except BaseException as error:
            self._ended = LoopFailed(type(error).__name__, str(error)[:FAULT_MAX])
            raise
        finally:
            self._end()
        if self.recorder.failed is not None:
            raise self.recorder.failed

    def _once(self) -> int:
        """Run one tick; return the time of the next one (ms of the port's clock)."""
        began = time.perf_counter()
        self._require_in_place()
        now_ms = self._clock_ms()
        self.guard.end_pause(now_ms)
        if self.guard.folders is not None:
            self.guard.folders.recheck(now_ms)
        self.lock_renewal.renew(now_ms)
        try:
            known = self.port.identity
            if known is None or not known.epoch or self.recorder.met_another:
                self.recorder.met_another = False
                self.port.identify()
            self._adopt_queues()
            self._reload_settings()
            wake_at_ms = tick(self.controller, self.port, self.recorder, self.port.perform_each)
            self._count_silence()
            self._after()
            self.port.well("tick")
        except InvariantBroken:
            raise
        except YarnctlError as error:
            # No answer, or an invalid one: log it once, and retry.
            _note(self.port, "tick", str(error))
            wake_at_ms = now_ms + RETRY_MS
        self.ticks += 1
        self.tick_ms = (time.perf_counter() - began) * 1000
        self._publish()
        if self.publisher.ungranted is not None:  # the tick's orders are sent
            self.publisher.ungranted.read(self.publisher.view.waiting, self.publisher.view.snapshot)
        if self.what_if is not None and self.what_if.is_asked:
            self.what_if.answer(self.controller, self._newest)
            if self.what_if.is_asked:  # one answer for each tick, which renews the lock
                wake_at_ms = now_ms
        return wake_at_ms

    def _count_silence(self) -> None:
        """Count a tick in which the cluster did not answer as one that failed."""
        seen, problem = self.port.last_observation, self._problem()
        is_silent = seen is not None and seen.cluster == "unreachable"
        if is_silent and self.port.problem is None and isinstance(problem, ClusterFault):  # it did not raise
            self.port.note("cluster", problem.fault)

    def _newest(self) -> NewestState | None:
        """Return a new snapshot for a question, and what was held; None: the cluster is not seen."""
        seen = self.port.last_observation
        snapshot = None if self._observe_soon is None else self._observe_soon()
        if snapshot is None or seen is None:
            return None
        shown = self.port.with_deadlines(snapshot)
        return NewestState(
            snapshot=shown, at_ms=self.controller.now_ms, held=seen.held, consents=seen.consents
        )

    def _require_in_place(self) -> None:
        try:
            self._in_place()
        except OSError as error:
            self.recorder.failed = error
            raise

    def _reload_settings(self) -> None:
        if not self._to_reload or self._reload is None:
            return
        self._to_reload = False
        try:
            self.controller = self._reload(self.controller)
        except (YarnctlError, OSError) as error:
            _LOG.error("the settings are not reloaded, and nothing is changed: %s", error)

    def _adopt_queues(self) -> None:
        """Continue with a controller that decides by paths, once names are resolved or stand for others."""
        names = self._names
        if names is None:
            return
        if names.problems and names.problems != self._unresolved:
            _LOG.warning("preemption and admission disabled: %s", joined(names.problems))
        self._unresolved = names.problems
        if names.found is not None and (names.regrouped or not names.adopted):
            self.controller = self._adopt(self.controller, names.named, names.found)
            names.adopted, names.regrouped = True, False

    def _after(self) -> None:
        """After a successful tick: record the identity and any change of mode, restore old priorities."""
        # The first known epoch is recorded; a later change is a fact.
        identity = self.port.identity
        if not self._epoch and self.recorder.begun and identity is not None and identity.epoch:
            self._epoch = identity.epoch
            self._write(Contact(self.controller.now_ms, identity.epoch))
        if self._continued:
            self._continued = False
            self._write(Stance(self.controller.now_ms, CONTINUED, Continued()))
        self._pause_queues(self.controller.now_ms)
        state, why = self.guard.closed()
        stance = state if why is not None else ("enforcing" if self.port.enforce else "observing")
        reason = why or OPEN_WHY[stance]
        if (stance, reason if stance == "paused" else None) != self._stance:  # a pause may get another end
            self._stance = (stance, reason if stance == "paused" else None)
            self._write(Stance(self.controller.now_ms, stance, reason))
            self._state_logged = (stance, (reason,)) if self.recorder.begun else None
        if self.recorder.begun and self.port.enforce:
            self._reconcile_changes(why)
        resolved = self._names is None or self._names.adopted
        if self.admission is not None and self.recorder.begun and resolved:
            self._run_admission(self.admission)

    def _pause_queues(self, now_ms: int) -> None:
        """Begin the pauses of queues that are due, and end those that an operator ends."""
        misdirection = self.guard.misdirection
        while self._to_resume:
            queue = self._to_resume.popleft()
            if queue in misdirection.standing(now_ms):
                self._write(QueueResumed(now_ms, queue))
        for queue in misdirection.due():
            self._write(misdirection.pause(queue, now_ms, self.port.snapshot))
        aside = frozenset(misdirection.standing(now_ms))
        for queue in sorted(self._aside - aside):
            _LOG.info("containers are freed for queue %s again", queue)
        self._aside = aside

    def _reconcile_changes(self, why: ModeReason | None) -> None:
        """Cap queues, and restore what is due: all changes as soon as no order may be sent."""
        if self._queue_caps is not None:
            orders = len(self.controller.ledger.open)
            self._queue_caps.reconcile(self._write, self.controller.now_ms, orders, self._is_demand(), why)
        restorer = self._restorer
        if restorer is None:
            return
        if not restorer.leads():
            restorer.lost()
        if self._preemption_switch is not None:
            seen, identity = self.port.last_observation, self.port.identity
            epoch = "" if identity is None else identity.epoch
            may_wait = seen is None or seen.cluster == "unreachable" or self._is_demand()
            self._preemption_switch.reconcile(
                self._write, self.controller.now_ms, why, epoch, may_wait=may_wait
            )
        if why is not None:
            restorer.make_due(MayNotAct(), self._kinds)
            restorer.reconcile()
            return
        if self._held_priorities is None:
            restorer.make_due(LeftByEarlierRun(), ("priority",))
        else:
            seen = self.port.last_observation
            self._held_priorities.reconcile(None if seen is None else seen.snapshot, self.controller.now_ms)
        restorer.reconcile(self.controller.ledger.by_victim)

    def _record_ranking(self, ranking: Ranking) -> None:
        """Record all priorities that a ranking is about to change, in one write."""
        changes = tuple(
            Change("priority", row.application, str(row.before), str(row.priority))
            for row in ranking.order
            if row.priority != row.before
        )
        if self._restorer is not None and changes and self.guard.closed()[1] is None:
            self._restorer.record(changes, DeadlineOrder())

    def _run_admission(self, admission: AdmissionController) -> None:
        try:
            snapshot, at_ms = self.publisher.view.snapshot, self.publisher.view.snapshot_at_ms or 0
            seen = () if snapshot is None else snapshot.applications
            known = () if snapshot is None or not self.port.enforce else snapshot.applications
            admission.after_tick(
                self._write,
                self.controller.now_ms,
                paused=bool(self.guard.paused),
                suspendable={each.application for each in known if each.runner},
                progress=SeenProgress(at_ms, {each.application: each.progress_ratio for each in seen}),
            )
            self.port.well("admission")
        except (InvariantBroken, OSError):  # the journal's
            raise
        except Exception as error:
            _note(self.port, "admission", f"admission failed: {type(error).__name__}: {error}")

    def _is_demand(self) -> bool:
        snapshot = None if self.port.last_observation is None else self.port.last_observation.snapshot
        settings = self.controller.settings
        return snapshot is not None and any(demand_waits(view, settings) for view in snapshot.applications)

    def _write(self, record: Record) -> None:
        if self.recorder.begun:
            self.recorder.append((record,))

    def _wait_until(self, wake_at_ms: int) -> None:
        """Wait until an instant, a call of ``wake``, or news of a task under order."""
        most_ms, waited_ms, has_news = self.controller.settings.tick_ms, 0, False
        step_ms = NEWS_MS
        while True:
            with self._wake:
                left_ms = wake_at_ms - self._clock_ms()
                # no step waits longer than a tick: the clock was set back
                is_over = left_ms <= 0 or has_news or (waited_ms >= most_ms and left_ms > most_ms)
                if is_over or self._stopping or self._poked:
                    self._poked = False
                    return
                span_ms = min(left_ms, most_ms, step_ms)
                self._wake.wait(span_ms / 1000)
            waited_ms += span_ms
            if step_ms == NEWS_MS:
                found = self.port.has_news()
                has_news, step_ms = bool(found), NEWS_MS if found is not None else most_ms

    def _end(self) -> None:
        """Restore settings and withdraw orders, publish the end, and release the lock, in this order."""
        self._notify("STOPPING=1")
        try:
            self._undo()
        finally:
            self._publish(stopped=True)
            if self.admission is not None:
                self.admission.stop()
            self.lock_renewal.release()

    def _undo(self) -> None:
        """Restore lowered settings and withdraw open orders; write records if that is possible."""
        restorer = self._restorer if self.port.enforce else None
        if restorer is not None:
            restorer.write = self._write_if_possible
        if self.recorder.begun:
            self._withdraw()
        if restorer is not None:
            restorer.stop(Stopping(), self._kinds)
            if self._preemption_switch is not None and (left := self._preemption_switch.left_behind()):
                _LOG.warning("left to a standby, or run yarnctl restore --all: %s", left)

    def _withdraw(self) -> None:
        step = self.controller.stop(self._clock_ms())
        if step.records:
            self.recorder.append_if_possible(step.records)
        for action, outcome in zip(step.actions, self.port.perform_each(step.actions), strict=True):
            self.recorder.append_if_possible(self.controller.settle(action, outcome))

    def _write_if_possible(self, record: Record) -> None:
        self.recorder.append_if_possible((record,))

    def status(self, *, stopped: bool = False) -> LoopStatus:
        """Return the loop's status."""
        state, why = self.guard.closed()
        lock = self.lock_renewal.lock
        seen = self.port.last_observation
        reachable = seen is not None and seen.cluster != "unreachable"
        problem = None if reachable else self.port.problem or self._problem() or ClusterUnseen()
        if problem is not None and (why is None or isinstance(why, LockRanOut)):
            state, why = "waiting", problem
        problems = () if self._names is None else (*self._names.problems, self._names.vanished)
        reasons = tuple(dict.fromkeys(one for one in (why, problem, *problems) if one is not None))
        if stopped:
            state, reasons = "stopped", () if self._ended is None else (self._ended,)
        mode: Literal["observe", "enforce"] = "enforce" if self.port.enforce else "observe"
        return LoopStatus(
            mode=mode,
            state=state,  # type: ignore[arg-type]
            why=reasons,
            reachable=reachable,
            ticks=self.ticks,
            tick_ms=self.tick_ms,
            tick_errors=self.port.errors,
            last_error=self.port.last_error,
            last_error_at_ms=self.port.last_error_at_ms,
            problem=problem,
            store_problem=self.guard.store_why,
            started_at_ms=self._started_at_ms,
            cluster=self.port.identity,
            aside=tuple(self.guard.misdirection.standing(self.controller.now_ms).values()),
            requests=REQUESTS.rows(),
            leads=None if lock is None else lock.held,
            lock="" if lock is None else lock.kind,
            leader="" if lock is None else lock.leader,
            changes=tuple(one.change for _, one in sorted(self._open_changes().items())),
        )

    def _open_changes(self) -> Mapping[Key, OpenChange]:
        return {} if self._restorer is None or not self.port.enforce else self._restorer.open

    def _publish(self, *, stopped: bool = False) -> None:
        status = self.status(stopped=stopped)
        self._log_blindness(status)
        story = status.state, status.why
        if story != self._logged:
            self._logged = story
            because = f": {joined(status.why)}" if status.why else ""
            line = f"{status.state}{because} ({status.mode})"
            self._notify(f"STATUS={' '.join(line.split())}")
            if story != self._state_logged:  # which the recorder has just logged
                _LOG.info("%s", line)
        if self.admission is not None:
            self.publisher.admission = self.admission.shown()
        self.publisher.left_alone = self._left_alone()
        self._publish_view(status, stopped)
        if self.admission is not None:
            self.admission.published()

    def _log_blindness(self, status: LoopStatus) -> None:
        """Log an error for each ``BLIND_EVERY_MS`` in which the cluster was not seen."""
        now_ms = self._clock_ms()
        if status.reachable or status.state == "stopped":
            self._seen_at_ms = now_ms
        elif not 0 <= now_ms - self._seen_at_ms < BLIND_EVERY_MS:  # below 0: the clock was set back
            self._seen_at_ms = now_ms
            _LOG.error(
                "the cluster is not seen, no order is sent; will retry: %s", joined(status.why) or "no answer"
            )

    def _publish_view(self, status: LoopStatus, stopped: bool) -> None:
        if self.port.last_observation is not None:
            shown = None if stopped else self._shown()
            self.publisher.tick(self.controller, self.port.last_observation, status, shown, self._clock_ms())
            for line in warnings(self._waiting_log, self.publisher.view):
                _LOG.warning("%s", line)
        else:
            self.publisher.set_status(status, self._clock_ms())

    def _shown(self) -> Snapshot | None:
        """Poll for the view, if the loop itself has not polled for ``SHOW_EVERY_MS``."""
        seen, at_ms = self.port.last_observation, self.port.snapshot_at_ms
        if self._observe_soon is None or seen is None or seen.cluster != "quiet":
            return None
        if at_ms is not None and seen.now_ms - at_ms < SHOW_EVERY_MS:
            return None
        shown = self._observe_soon()
        if shown is not None:
            shown = self.port.with_deadlines(shown)
            self.port.show(shown, seen.now_ms)
        return shown
