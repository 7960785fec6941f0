"""Compare admissions with the applications on the cluster, and write the differences as records.

An admission is running, has ended or was never used only if the ResourceManager reports it. While it does not
answer, nothing changes. If it cannot report on one admission, only that one waits, for a limited time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from yarnctl.daemon.admission.backlog import ClusterUse, claimant, cluster_use, tag_of
from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.entries import AdmissionClosed, AdmissionStarted
from yarnctl.deciding.admission.gate import expired
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.reasons.verdicts import (
    ApplicationsUnseen,
    ClosedReason,
    EndedAs,
    GateReason,
    ManagerForgot,
    NotSubmitted,
)
from yarnctl.deciding.records import Record
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.resource_manager import ENDED
from yarnctl.hadoop.wire import yarn

_LOG = logging.getLogger("yarnctl.daemon")

POLL_EVERY_MS = 1_000
REST_EVERY_MS = 5_000  # The interval while no request waits and all admitted jobs run
ENDED_AFTER_MS = 10_000  # Unknown to the ResourceManager for this time, it counts as ended
ASKED_ABOUT_MAX = 8  # The maximum number of applications, no longer listed, that are queried after one tick
ASKED_FOR_MS = 60_000  # The time for which an expired admission is queried in vain before it is closed

Write = Callable[[Record], None]


class Manager(Protocol):
    """The part of :class:`yarnctl.hadoop.resource_manager.ResourceManager` that admission needs."""

    def applications(self) -> Sequence[yarn.AppInfo]:
        """Return the unfinished applications."""

    def tagged(self, tag: str) -> Sequence[yarn.AppInfo]:
        """Return the applications with a tag, also ended ones."""

    def application_end(self, application: str) -> yarn.ApplicationOutcome:
        """Return how an application ended, and when; raises Missing if it is not known."""


class Reconciler:
    """Polls the applications for ``store``; ``instance`` is the controller's part of its admissions' ids.

    ``wall_ahead_ms`` returns the wall clock minus the daemon's. ``last`` is the newest poll, None while the
    ResourceManager does not answer; ``problem`` is why. ``unreachable``: the last poll was not answered.
    """

    def __init__(
        self,
        manager: Manager,
        store: AdmissionStore,
        instance: str,
        wall_ahead_ms: Callable[[], int],
        queues: Callable[[], QueueTree | None] = lambda: None,
    ) -> None:
        self._queues = queues
        self.last: ClusterUse | None = None
        self.problem: GateReason | ClientFault | None = None
        self._manager = manager
        self._store = store
        self._instance = instance
        self.unreachable = False
        self._wall_ahead_ms = wall_ahead_ms
        self._polled_at_ms: int | None = None
        self._missing_since: dict[str, int] = {}
        self._alive_at_ms: dict[str, int] = {}
        self._queried: dict[str, int] = {}
        self._logged: set[tuple[str, str]] = set()

    def begin_anew(self) -> None:
        """Poll at the next call: the clock was set back, so the time of the last poll is wrong."""
        self._polled_at_ms = None
        self._missing_since, self._queried, self._alive_at_ms = {}, {}, {}

    def reconcile(self, note: Write, now_ms: int, *, asked: bool = False) -> bool:
        """Poll if a poll is due (``asked``: also without open admissions); return whether ``last`` is new."""
        if not self._store.opened and not asked:
            return False
        busy = bool(self._store.open("waiting", "admitted"))
        every_ms = POLL_EVERY_MS if busy and not self.unreachable else REST_EVERY_MS
        if self._polled_at_ms is not None and now_ms - self._polled_at_ms < every_ms:
            return False
        self._polled_at_ms, self.unreachable = now_ms, True
        try:
            rows = self._manager.applications()
        except YarnctlError as error:
            self.last, self.problem = None, ApplicationsUnseen(str(error))
            return False
        self.problem, self.unreachable = None, False
        self.last = self._read(rows, now_ms)
        for claim in self.last.claims:
            if not claim.why:
                note(AdmissionStarted(now_ms, claim.admission, claim.application))
                _LOG.info("%s runs as %s", claim.admission, claim.application)
            elif (claim.application, claim.why) not in self._logged:
                self._logged.add((claim.application, claim.why))
                _LOG.warning("%s cannot use admission %s: %s", claim.application, claim.admission, claim.why)
        self._logged = {said for said in self._logged if said[0] in self.last.there}
        names = [each.application for each in self._store.open("running")]
        before = self._alive_at_ms
        self._alive_at_ms = {
            name: now_ms if name in self.last.there else before[name]
            for name in names
            if name in self.last.there or name in before
        }
        self._end(note, now_ms, self.last.there)
        self._expire(note, now_ms)
        return True

    def _read(self, rows: Sequence[yarn.AppInfo], now_ms: int) -> ClusterUse:
        tree = self._queues()
        if tree is not None:
            paths = [tree.of_application(row.queue) or row.queue for row in rows]
            rows = [msgspec.structs.replace(row, queue=path) for row, path in zip(rows, paths, strict=True)]
        ahead_ms, queues = self._wall_ahead_ms(), self._store.queues
        return cluster_use(rows, self._store, self._instance, now_ms, queues, ahead_ms)

    def _end(self, note: Write, now_ms: int, there: frozenset[str]) -> None:
        missed = [each for each in self._store.open("running") if each.application not in there]
        self._missing_since = {
            name: at_ms
            for name, at_ms in self._missing_since.items()
            if name in {e.application for e in missed}
        }
        asked = sorted(missed, key=lambda each: (each.application in self._missing_since, each.sequence))
        for each in asked[:ASKED_ABOUT_MAX]:
            ended = self._ended(each.application, now_ms)
            if ended is not None:
                why, ended_at_ms = ended
                note(AdmissionClosed(now_ms, each.admission, "ended", why, ended_at_ms))

    def _ended(self, application: str, now_ms: int) -> tuple[ClosedReason, int | None] | None:
        try:
            found = self._manager.application_end(application)
        except Missing:
            gone_at_ms = self._missing_since.setdefault(application, now_ms)
            long_gone = now_ms - gone_at_ms >= ENDED_AFTER_MS
            return (ManagerForgot(), self._finish(application, 0, now_ms)) if long_gone else None
        except YarnctlError as error:
            self.problem = ClientFault(str(error))
            return None
        if found.state not in ENDED:
            return None
        return EndedAs(found.state), self._finish(application, found.ended_at_ms, now_ms)

    def _finish(self, application: str, ended_at_ms: int, now_ms: int) -> int | None:
        """Return YARN's finish time (0: not shown), limited by the daemon's clock: clocks may differ.

        An application ended after it was last listed as unfinished, and not after now.
        """
        found_ms = min(max(ended_at_ms, self._alive_at_ms.get(application, 0)), now_ms)
        return found_ms if found_ms > 0 else None

    def claimant(self, admission: Admission, now_ms: int) -> str | None:
        """Return the application of an admission, also an ended one ("": none; None: no answer)."""
        try:
            rows = self._manager.tagged(tag_of(admission.admission))
        except YarnctlError as error:
            self.problem = ClientFault(str(error))
            return None
        return claimant(rows, self._store, self._instance, admission, now_ms)

    def _expire(self, note: Write, now_ms: int) -> None:
        """Close expired admissions, unless their job ran and ended between two polls."""
        gate = self._store.gate
        late = {each.request.sequence for each in expired(gate, now_ms)} if gate is not None else set()
        names = [each for each in self._store.open("admitted") if each.sequence in late]
        since_ms = self._queried
        self._queried = {
            each.admission: since_ms[each.admission] for each in names if each.admission in since_ms
        }
        # admissions with a failed query come after those that have not been queried
        asked = sorted(names, key=lambda each: (self._queried.get(each.admission, 0), each.sequence))
        for each in asked[:ASKED_ABOUT_MAX]:
            if not self._ask_after(note, now_ms, each):
                return

    def _ask_after(self, note: Write, now_ms: int, admission: Admission) -> bool:
        """Look for an expired admission's application; close it, or record the job. False: no answer."""
        took = self.claimant(admission, now_ms)
        if took is None and now_ms - self._queried.setdefault(admission.admission, now_ms) < ASKED_FOR_MS:
            return False  # retried later: no running application has the tag
        if took:
            note(AdmissionStarted(now_ms, admission.admission, took))
        elif admission.reservation is not None:
            held_ms = admission.reservation.expires_at_ms - admission.reservation.from_ms
            note(AdmissionClosed(now_ms, admission.admission, "expired", NotSubmitted(held_ms)))
        return True
