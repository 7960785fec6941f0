"""The daemon's loop: the same tick as in virtual time, after waiting on the wall clock.

Law: one thread, one loop body (``yarnctl.loop.tick``). What it sees and decides is published after each
tick; what goes wrong is said and waited out, never crashed on. It ends in peace: what has not led to a
checkpoint is taken back, the journal is closed, the lock given up.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from yarnctl.daemon.guards import CONTINUED, Gate, GuardedPort
from yarnctl.daemon.view import LoopStatus, Publisher
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Action
from yarnctl.deciding.records import Decision, Performed, Record, Stance, Transition
from yarnctl.errors import InvariantBroken, YarnctlError
from yarnctl.journal.rebuild import restores
from yarnctl.loop import Journal, tick

_LOG = logging.getLogger("yarnctl.daemon")

RETRY_MS = 1000
LOCK_EVERY_MS = 2000


class HdfsLock(Protocol):
    """What the loop needs of :class:`yarnctl.hadoop.lock.LockFile`."""

    @property
    def held(self) -> bool:
        """Whether it is certain that nobody else holds it."""
        ...

    def acquire(self) -> bool:
        """Try once."""
        ...

    def renew(self) -> bool:
        """Renew; False: it is lost."""
        ...

    def release(self) -> None:
        """Give it up."""
        ...


class Recorder:
    """The journal, with everybody who reads along: the publisher, the guards, the log."""

    def __init__(self, journal: Journal, publisher: Publisher, gate: Gate) -> None:
        self.journal = journal
        self.publisher = publisher
        self.gate = gate
        self.begun = False

    def append(self, records: Sequence[Record]) -> None:
        """Write records down, then tell the others."""
        self.journal.append(records)
        self.begun = True
        self.publisher.record(records)
        self.gate.misdirection.take(records)
        for record in records:
            _say(record)


def _say(record: Record) -> None:
    """Tell people in one line what has just been written down."""
    if isinstance(record, Decision):
        picked = ", ".join(f"{pick.task.attempt} of {pick.application}" for pick in record.picks)
        _LOG.info("decision %d for %s: %s", record.number, record.trigger.application, picked)
    elif isinstance(record, Transition):
        _LOG.info("%s: %s -> %s %s", record.order, record.source, record.target, record.why)
    elif isinstance(record, Stance):
        _LOG.warning("%s: %s", record.stance, record.why)


class Loop:
    """One daemon's loop. ``clock_ms`` tells ms since the epoch, the port's clock.

    ``priorities`` are those an earlier life changed and did not put back: application -> the one it had.
    ``keep_priorities``: they go on being managed, so nothing is put back.
    """

    def __init__(
        self,
        controller: Controller,
        port: GuardedPort,
        journal: Journal,
        publisher: Publisher,
        *,
        clock_ms: Callable[[], int],
        lock: HdfsLock | None = None,
        priorities: dict[str, int] | None = None,
        keep_priorities: bool = False,
    ) -> None:
        self.controller = controller
        self.port = port
        self.gate = port.gate
        self.publisher = publisher
        self.recorder = Recorder(journal, publisher, port.gate)
        self.lock = lock
        self.ticks = 0
        self.tick_ms: float | None = None
        self._clock_ms = clock_ms
        self._started_at_ms = clock_ms()
        self._wake = threading.Condition()
        self._stopping = False
        self._poked = False
        self._lock_next_ms = 0
        self._stance = ""
        self._priorities = {} if keep_priorities else dict(priorities or {})
        self._continued = False
        self._told = ""

    # --- what others may say to it (any thread) -----------------------------------------------

    def pause(self, why: str) -> None:
        """Stop deciding and acting after the tick that runs."""
        self.gate.paused = why or "paused by a person"
        self._poke()

    def go_on(self) -> None:
        """Take a pause back, and begin to count misdirected releases anew."""
        self.gate.paused = ""
        self._continued = True
        self._poke()

    def stop(self) -> None:
        """End after the tick that runs."""
        self._stopping = True
        self._poke()

    def _poke(self) -> None:
        with self._wake:
            self._poked = True
            self._wake.notify_all()

    # --- the loop -----------------------------------------------------------------------------

    def run(self, ticks: int | None = None) -> None:
        """Run until stopped, or for so many ticks. Raises InvariantBroken, and OSError of the journal."""
        try:
            while not self._stopping and (ticks is None or self.ticks < ticks):
                self._wait_until(self._once())
        finally:
            self._end()

    def _once(self) -> int:
        """Do one tick; return when to do the next (ms of the port's clock)."""
        began = time.perf_counter()
        now_ms = self._clock_ms()
        self._keep_lock(now_ms)
        try:
            if self.port.identity is None:
                self.port.identify()
            wake_at_ms = tick(self.controller, self.port, self.recorder)
            self._after()
        except InvariantBroken:
            raise
        except YarnctlError as error:
            # Nothing answered, or not as it should: said once, and tried again.
            self._note(str(error))
            wake_at_ms = now_ms + RETRY_MS
        self.ticks += 1
        self.tick_ms = (time.perf_counter() - began) * 1000
        self._publish()
        return wake_at_ms

    def _after(self) -> None:
        """After a tick that went well: note a change of stance, put old priorities back."""
        if self._continued:
            self._continued = False
            self._write(Stance(self.controller.now_ms, CONTINUED, "by a person"))
        state, why = self.gate.closed()
        stance = state if why else ("enforcing" if self.port.enforce else "observing")
        if stance != self._stance:
            self._stance = stance
            self._write(Stance(self.controller.now_ms, stance, why))
        if self._priorities and self.port.snapshot is not None and self.port.enforce and not why:
            alive = [view.application for view in self.port.snapshot.applications]
            for action in restores(self._priorities, alive):
                self._write(Performed(self.controller.now_ms, action, self.port.perform(action)))
            self._priorities = {}

    def _write(self, record: Record) -> None:
        if self.recorder.begun:
            self.recorder.append((record,))

    def _keep_lock(self, now_ms: int) -> None:
        if self.lock is None or now_ms < self._lock_next_ms:
            return
        self._lock_next_ms = now_ms + LOCK_EVERY_MS
        try:
            if not (self.lock.held and self.lock.renew()):
                self.lock.acquire()
        except YarnctlError as error:
            self._note(f"the lock: {error}")

    def _note(self, story: str) -> None:
        self.port.errors += 1
        if story != self.port.last_error:
            _LOG.warning("%s", story)
        self.port.last_error = story

    def _wait_until(self, wake_at_ms: int) -> None:
        with self._wake:
            while not (self._stopping or self._poked):
                left_ms = wake_at_ms - self._clock_ms()
                if left_ms <= 0:
                    break
                self._wake.wait(left_ms / 1000)
            self._poked = False

    def _end(self) -> None:
        """Take back what is under way; a lock that cannot be given up runs out by itself."""
        if self.recorder.begun:
            step = self.controller.stop(self._clock_ms())
            if step.records:
                self.recorder.append(step.records)
            for action in step.actions:
                self._settle(action)
        if self.lock is not None and self.lock.held:
            try:
                self.lock.release()
            except YarnctlError as error:
                _LOG.warning("the lock could not be given up: %s", error)
        self._publish(stopped=True)

    def _settle(self, action: Action) -> None:
        self.recorder.append(self.controller.settle(action, self.port.perform(action)))

    # --- telling ------------------------------------------------------------------------------

    def status(self, *, stopped: bool = False) -> LoopStatus:
        """Return how the loop is."""
        state, why = self.gate.closed()
        seen = self.port.seen
        reachable = seen is not None and seen.cluster != "unreachable"
        if state == "running" and not reachable:
            state, why = "waiting", self.port.last_error or "the cluster cannot be seen"
        mode: Literal["observe", "enforce"] = "enforce" if self.port.enforce else "observe"
        return LoopStatus(
            mode=mode,
            state="stopped" if stopped else state,  # type: ignore[arg-type]
            why=why,
            reachable=reachable,
            ticks=self.ticks,
            tick_ms=self.tick_ms,
            tick_errors=self.port.errors,
            last_error=self.port.last_error,
            started_at_ms=self._started_at_ms,
            cluster=self.port.identity,
        )

    def _publish(self, *, stopped: bool = False) -> None:
        status = self.status(stopped=stopped)
        story = f"{status.state}: {status.why}" if status.why else status.state
        if story != self._told:
            self._told = story
            _LOG.info("%s (%s)", story, status.mode)
        if self.port.seen is not None:
            self.publisher.tick(self.controller, self.port.seen, status, now_ms=self._clock_ms())
        else:
            self.publisher.say(status, self._clock_ms())
