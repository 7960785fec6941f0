"""Guards: when the loop may act, and when it must only look.

Law: not suspending is always allowed. Each guard can only hold something back; taking a request back
(Withdraw) is never held back. Who may not act sees the cluster as "unreachable": nothing new is decided,
while facts about open orders are still taken in.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from yarnctl.deciding.model import (
    Action,
    Observation,
    Outcome,
    Refused,
    Scope,
    Snapshot,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.records import Record, Stance, Transition
from yarnctl.port import ClusterIdentity, ClusterPort

LOOKED_BACK = 10
MISDIRECTED_MAX = 3
CONTINUED = "continued"

_LOG = logging.getLogger("yarnctl.daemon")


class Misdirection:
    """Whether freed room goes to those it was freed for: three of the last ten to others is too many.

    It reads the records, so that a restart knows what was known before. Once tripped it stays so until
    somebody continues the loop (or ``forget``).
    """

    def __init__(self) -> None:
        self._last: deque[Transition] = deque(maxlen=LOOKED_BACK)
        self.why = ""

    def take(self, records: Iterable[Record]) -> None:
        """Read records in the order of the journal."""
        for record in records:
            if isinstance(record, Stance) and record.stance == CONTINUED:
                self.forget()
            elif isinstance(record, Transition) and record.target in ("granted", "taken"):
                self._last.append(record)
                self._judge()

    def _judge(self) -> None:
        taken = [record for record in self._last if record.target == "taken"]
        if len(taken) >= MISDIRECTED_MAX and not self.why:
            who = ", ".join(f"{record.order} ({record.application or 'unknown'})" for record in taken)
            self.why = (
                f"the room of {len(taken)} of the last {len(self._last)} releases went to somebody else:"
                f" {who}; check queue shares and priorities, then continue the loop"
            )

    def forget(self) -> None:
        """Begin to count anew."""
        self._last.clear()
        self.why = ""


class Lock(Protocol):
    """What the gate needs of :class:`yarnctl.hadoop.lock.LockFile`."""

    @property
    def held(self) -> bool:
        """Whether it is certain that nobody else holds it."""
        ...


class Gate:
    """All reasons why nothing may be decided or done now; "" if there is none.

    ``paused`` is set by a person, ``aside`` asks the port, ``lock`` is None in observe mode.
    """

    def __init__(self, lock: Lock | None, aside: Callable[[], str], misdirection: Misdirection) -> None:
        self.lock = lock
        self.misdirection = misdirection
        self.paused = ""
        self._aside = aside

    def closed(self) -> tuple[str, str]:
        """Return the loop's state and why ("running", "": it is open)."""
        if self.paused:
            return "paused", self.paused
        if self.lock is not None and not self.lock.held:
            return "waiting", "another yarnctl holds the lock, or it cannot be renewed"
        if self.misdirection.why:
            return "standing-aside", self.misdirection.why
        aside = self._aside()
        return ("standing-aside", aside) if aside else ("running", "")


class GuardedPort:
    """A ClusterPort that acts only while the gate is open, and not at all when it only observes.

    ``seen`` keeps the newest whole observation, for people; no error of the port below gets out.
    """

    def __init__(self, port: ClusterPort, gate: Gate, *, enforce: bool) -> None:
        self.port = port
        self.gate = gate
        self.enforce = enforce
        self.seen: Observation | None = None
        self.snapshot: Snapshot | None = None
        self.snapshot_at_ms: int | None = None
        self.identity: ClusterIdentity | None = None
        self.errors = 0
        self.last_error = ""

    def identify(self) -> ClusterIdentity:
        """Say who answers, and remember it."""
        self.identity = self.port.identify()
        return self.identity

    def observe(self, scope: Scope) -> Observation:
        """Look; while the gate is closed, hide the cluster so that nothing is decided."""
        seen = self.port.observe(scope)
        self.seen = seen
        if seen.snapshot is not None:
            self.snapshot, self.snapshot_at_ms = seen.snapshot, seen.as_of_ms
        if self.gate.closed()[1]:
            return msgspec.structs.replace(seen, snapshot=None, cluster="unreachable", tasks={})
        return seen

    def perform(self, action: Action) -> Outcome:
        """Act, if that is allowed now."""
        if not self.enforce:
            return Withheld("observing: nothing is changed without --enforce")
        why = self.gate.closed()[1]
        if why and not isinstance(action, Withdraw):
            return Refused(why)
        try:
            return self.port.perform(action)
        except Exception as error:
            # The port promises not to raise; if it does, nobody knows what was sent.
            self.errors += 1
            self.last_error = f"{type(error).__name__}: {error}"
            _LOG.exception("performing %s failed", type(action).__name__)
            return Unknown(self.last_error)
