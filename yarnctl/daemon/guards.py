"""Decide when the loop may act, and when it may only observe.

Not suspending is always allowed. A guard can only block an action; withdrawing a request (Withdraw), or
restoring a queue or a priority, is never blocked, nor DisablePreemption, which ends a block. While a guard
blocks, the cluster is "unreachable" to the controller: it makes no new decision, and still applies facts
about open orders.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from typing import Protocol

import msgspec

from yarnctl.daemon.at_once import OrdersAtOnce
from yarnctl.daemon.daemon_lock import DaemonLock
from yarnctl.deciding.model import (
    Action,
    DisablePreemption,
    Drain,
    Grow,
    Kill,
    Observation,
    ObservationRequest,
    Outcome,
    Refused,
    Release,
    Restore,
    SetPriority,
    SetQueueMaximum,
    Snapshot,
    Suspend,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.prioritising import with_deadlines
from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.deciding.reasons.modes import (
    ClusterFault,
    HdfsUnwritable,
    LockHeldElsewhere,
    LockRanOut,
    LockUnconfirmed,
    ModeReason,
    Paused,
)
from yarnctl.deciding.reasons.outcomes import ClientFault, Observing
from yarnctl.journal.rendering import text
from yarnctl.loop import ClusterIdentity, ClusterPort
from yarnctl.restoring.restorer import Key

_LOG = logging.getLogger("yarnctl.daemon")


class FoldersState(Protocol):
    """The part of :class:`yarnctl.daemon.safe_folders.Folders` that the guard needs."""

    @property
    def why(self) -> ModeReason | None:
        """Why yarnctl's folders in HDFS may not be used; None if they may."""

    def recheck(self, now_ms: int) -> None:
        """Check again, if the pause is over."""


def lowered_by(action: Action) -> Key | None:
    """Return the setting that an action lowers by a request to YARN or a job; None: it lowers none so.

    Orders in HDFS are fenced by their term's folder.
    """
    match action:
        case SetQueueMaximum():
            return "queue", action.queue
        case DisablePreemption():
            return "preemption", action.queue
        case SetPriority():
            return "priority", action.application
        case Drain():
            return "bounds", action.application
        case _:
            return None


class WriteGuard:
    """All reasons why no decision or action is allowed now.

    An operator sets ``paused``; the loop sets ``store_why`` (HDFS cannot be written, or the lock not be
    confirmed) and ``has_rival``
    (another process has the lock). ``misdirection`` has the queues for which no container is freed for a
    while. ``lock`` and ``folders`` are None in observe mode.
    """

    def __init__(
        self,
        lock: DaemonLock | None,
        port_why: Callable[[], ModeReason | None],
        misdirection: Misdirection,
        folders: FoldersState | None = None,
    ) -> None:
        self.lock = lock
        self.folders = folders
        self.misdirection = misdirection
        self.paused: Paused | None = None
        self.pausing = threading.Lock()  # the service sets ``paused`` while the loop ends an old one
        self.store_why: HdfsUnwritable | LockUnconfirmed | None = None
        self.has_rival = True
        self._port_why = port_why

    def end_pause(self, now_ms: int) -> None:
        """End an operator's pause whose end has come."""
        with self.pausing:
            paused = self.paused
            if paused is None or not paused.is_over(now_ms):
                return
            self.paused = None
        _LOG.info("the pause has ended: %s", text(paused))

    def closed(self) -> tuple[str, ModeReason | None]:
        """Return the loop's state and the reason ("running", None: actions are allowed)."""
        if self.paused:
            return "paused", self.paused
        if self.lock is not None and not self.lock.held:
            return "waiting", self.store_why or (LockHeldElsewhere() if self.has_rival else LockRanOut())
        if self.store_why:
            return "blocked", self.store_why
        if self.folders is not None and self.folders.why:
            return "blocked", self.folders.why
        why = self._port_why()
        return ("running", None) if why is None else ("blocked", why)


class GuardedPort:
    """A ClusterPort that acts only while the guard permits it, and never in observe mode.

    Every exception of the port below is caught; ``problem``: why it failed in ``last_observation``.
    ``open_orders``: the orders of an earlier run; each may have been sent, even if sending it again fails.
    ``sold`` returns the deadlines by application (None: those of YARN's tags count). ``orders``: how
    the actions of a step are performed (one after the other, if the host sets no other). ``news``: whether an
    observation of open orders would find something new (None: nothing is awaited). ``sent_late`` receives a
    setting whose lowering was sent, or may have been, after the lock was lost.
    """

    def __init__(
        self,
        port: ClusterPort,
        guard: WriteGuard,
        *,
        enforce: bool,
        clock_ms: Callable[[], int] | None = None,
        open_orders: Collection[str] = (),
        sold: Callable[[], Mapping[str, int]] | None = None,
    ) -> None:
        self.port = port
        self.orders = OrdersAtOnce(self.perform)
        self.news: Callable[[], bool | None] = lambda: None
        self.sent_late: Callable[[Key], None] = lambda _: None
        self._sold = sold
        self._clock_ms = clock_ms
        self._open_orders = frozenset(open_orders)
        self.guard = guard
        self.enforce = enforce
        self.last_observation: Observation | None = None
        self.snapshot: Snapshot | None = None
        self.snapshot_at_ms: int | None = None
        self.identity: ClusterIdentity | None = None
        self.errors = 0
        self.problem: ClusterFault | None = None
        self.last_error = ""
        self.last_error_at_ms: int | None = None
        self._noted: dict[str, str] = {}

    def identify(self) -> ClusterIdentity:
        """Return the ResourceManager's identity and keep it; epoch "" after an error."""
        try:
            self.identity = self.port.identify()
            self.well("identifying")
        except Exception as error:
            self._failed("identifying", error)
            self.identity = ClusterIdentity("", 0)
        return self.identity

    def observe(self, request: ObservationRequest) -> Observation:
        """Observe; while the guard blocks, hide the cluster so that the controller makes no decision."""
        seen, last = self._observe(request), self.last_observation
        self.last_observation = seen
        if not request.cluster and seen.cluster == "quiet" and last is not None:
            # Only tasks and orders were observed. "quiet" would hide requests that are pending.
            known = last.cluster if last.snapshot is None else "seen"
            self.last_observation = msgspec.structs.replace(seen, cluster=known)
        if seen.snapshot is not None:
            self.show(seen.snapshot, seen.as_of_ms)
        if self.guard.closed()[1] is not None:
            return msgspec.structs.replace(seen, snapshot=None, cluster="unreachable", tasks={})
        aside = self.guard.misdirection.standing(seen.now_ms)
        if seen.snapshot is not None and aside:
            seen = msgspec.structs.replace(seen, snapshot=msgspec.structs.replace(seen.snapshot, aside=aside))
        return seen

    def has_news(self) -> bool | None:
        """Return whether an observation of open orders would find something new; None: nothing is awaited."""
        try:
            return self.news()
        except Exception as error:
            self._failed("listing checkpoints", error)
            return None

    def with_deadlines(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot of the port with the deadlines that count."""
        return snapshot if self._sold is None else with_deadlines(snapshot, self._sold())

    def show(self, snapshot: Snapshot, at_ms: int) -> None:
        """Keep a snapshot for the view, and its number of nodes."""
        self.snapshot, self.snapshot_at_ms = snapshot, at_ms
        if snapshot.node_count is not None and self.identity is not None:
            self.identity = msgspec.structs.replace(self.identity, node_count=snapshot.node_count)

    def _observe(self, request: ObservationRequest) -> Observation:
        """Observe; an exception of the port counts as an unreachable cluster."""
        try:
            seen = self.port.observe(request)
            if seen.snapshot is not None:
                seen = msgspec.structs.replace(seen, snapshot=self.with_deadlines(seen.snapshot))
            self.problem = None
            self.well("observing")
            return seen
        except Exception as error:
            self._failed("observing", error)
            self.problem = ClusterFault(self.last_error)
            now_ms = self._now_ms()
            return Observation(
                now_ms=now_ms, as_of_ms=now_ms, cluster="unreachable", unreachable=tuple(request.victims)
            )

    def _now_ms(self) -> int:
        now_ms = self.last_observation.now_ms if self.last_observation is not None else 0
        return now_ms if self._clock_ms is None else max(now_ms, self._clock_ms())

    def note(self, about: str, story: str) -> bool:
        """Count an error and keep it as the last; return whether it is new for ``about``."""
        self.errors += 1
        self.last_error, self.last_error_at_ms = story, self._now_ms()
        is_new = self._noted.get(about) != story
        self._noted[about] = story
        return is_new

    def well(self, about: str) -> None:
        """Note a success of ``about``: its next error is logged, even if it is the same one."""
        self._noted.pop(about, None)

    def _failed(self, doing: str, error: Exception) -> str:
        problem = f"{type(error).__name__}: {str(error)[:300]}"
        if self.note(doing, problem):
            _LOG.error("%s failed: %s", doing, problem, exc_info=error)
        return problem

    def perform_each(self, actions: Sequence[Action]) -> Generator[Outcome, None, None]:
        """Perform the actions of a step, each if it is permitted when it is sent; yield their outcomes."""
        return self.orders.each(actions)

    def perform(self, action: Action) -> Outcome:
        """Perform an action, if it is permitted now. Several threads may call it."""
        outcome = self._perform(action)
        if not (isinstance(outcome, Withheld | Refused) and isinstance(action, Suspend | Kill | Drain)):
            return outcome
        # An earlier run may have sent it just before it ended. Only the time-out, or a fact, settles it:
        # after the time-out its request is withdrawn; a refusal now would leave the request in HDFS.
        return Unknown(outcome.why) if self.enforce and action.order in self._open_orders else outcome

    def _perform(self, action: Action) -> Outcome:
        if not self.enforce:
            return Withheld(Observing())
        why = self.guard.closed()[1]
        if why is not None and not isinstance(action, DisablePreemption | Grow | Restore | Withdraw):
            # A Release is retried until its time-out; after a refusal its attempt would only wait.
            # Any other action that may not be sent now does not count as a failure of its order.
            return Unknown(why) if isinstance(action, Release) else Withheld(why)
        try:
            return self.port.perform(action)
        except Exception as error:
            # The port promises not to raise; if it does, it is unknown what was sent.
            return Unknown(ClientFault(self._failed(f"performing {type(action).__name__}", error)))
        finally:
            key = lowered_by(action)
            if key is not None and self.guard.lock is not None and not self.guard.lock.held:
                self.sent_late(key)  # this process may have been frozen right before the request
