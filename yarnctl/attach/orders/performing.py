"""Perform actions: each gives one outcome.

Law: nothing is sent that the permission check (``permission``) does not allow, and no attempt is released
without a valid manifest that was read a moment before. Every action is idempotent by its order. The signal
to a runner may fail: the request is in HDFS, and the runner reads its folder regularly.

======================================  ==========================
what happened                           outcome
======================================  ==========================
it was done, or had been done before    Accepted
the settings do not enforce             Withheld
a guard on the job or the attempt       Refused, with the reason
Suspend not sent, for other             Withheld: no fault of the
reasons (blocked, no HDFS)              attempt
sent, and no answer came                Unknown; only a fact decides
Release or Withdraw not possible now    Unknown, so that it is retried
======================================  ==========================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from yarnctl.attach.connection.calls import Problem, fault_text
from yarnctl.attach.connection.connection import CheckpointStore, Connection
from yarnctl.attach.eligibility.job_reader import EligibilityReader
from yarnctl.attach.eligibility.job_rules import Eligibility
from yarnctl.attach.eligibility.permission import Permission, later, unread
from yarnctl.attach.observing.plain_tasks import is_map
from yarnctl.attach.observing.status_line import WORKING, Status, parse
from yarnctl.attach.orders.reversible import set_back
from yarnctl.attach.orders.saved_work import UNCHANGED, is_ordered, safe_manifest
from yarnctl.attach.orders.tracking import OrderTracking, TrackedOrder
from yarnctl.deciding.model import (
    Accepted,
    Action,
    Change,
    ChangeKind,
    Drain,
    Grow,
    Kill,
    Outcome,
    Refused,
    Release,
    Restore,
    SetPriority,
    SetQueueMaximum,
    Suspend,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.reasons.eligibility import CheckpointUnseen
from yarnctl.deciding.reasons.orders import DeadlineOrder, DemandOver
from yarnctl.deciding.reasons.outcomes import (
    AttemptOver,
    AttemptUnknown,
    BegunMeanwhile,
    CheckpointsUnseen,
    ClientFault,
    ForeignAttempt,
    GoneOn,
    HoldOver,
    KillNotAllowed,
    ManifestOfAnother,
    ManifestUnusable,
    MasterNotReached,
    NeverSent,
    NoHdfs,
    NoReduceOf,
    NoRequestThere,
    NoSuchOrder,
    NotHoldingYet,
    ReleasedAlready,
    RunsElsewhere,
)
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.errors import Unreachable, YarnctlError
from yarnctl.frameworks.mapreduce.rest import TaskAttempt
from yarnctl.hadoop.http.answers import Altered, ExistsAlready, Rejected, Uncertain
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.restoring.restorer import Restorer, ReversibleSetting
from yarnctl.task_runner.runner.protocol.manifests import SCHEMA, Manifest, canonical, request_name
from yarnctl.task_runner.runner.protocol.stores import StoreError, Unusable

FOLDER_MODE, FILE_MODE = 0o755, 0o644  # The job's user must read a request; only its owner may write tracked


class LeavingOrders(Protocol):
    """The orders to applications of one framework; methods raise as the clients do."""

    def drain(self, drain: Drain, tracked: TrackedOrder) -> Outcome:
        """Order a container to leave, once."""


class Performing:
    """Performs all actions of the controller on one cluster; ``leaving``: by YARN's type of applications."""

    def __init__(
        self,
        connection: Connection,
        tracking: OrderTracking,
        eligibility: EligibilityReader,
        permission: Permission,
        leaving: Mapping[str, LeavingOrders],
        reversible: Mapping[ChangeKind, ReversibleSetting],
        restorer: Restorer,
    ) -> None:
        self._leaving = leaving
        self._reversible = reversible
        self._restorer = restorer
        self._connection = connection
        self._manager = connection.manager
        self._hdfs = connection.hdfs
        self._settings = connection.settings
        self._clock = connection.clock
        self._tracking = tracking
        self._eligibility = eligibility
        self._permission = permission

    def perform(self, action: Action) -> Outcome:
        """Perform one action; never raises for a fault of the cluster or of an application's data."""
        try:
            return self._permission.may_act(action) or self._perform(action)
        except Uncertain as problem:
            return Unknown(_fault(problem))
        except Unusable as problem:
            return Refused(ManifestUnusable(str(problem)[:FAULT_MAX]))
        except (YarnctlError, StoreError) as problem:
            return later(action, _fault(problem))
        except Exception as problem:  # an application's data: it is not known whether the action was sent
            return Unknown(ClientFault(fault_text(problem)[:FAULT_MAX]))

    def _perform(self, action: Action) -> Outcome:
        match action:
            case Suspend():
                return self._suspend(action)
            case Withdraw():
                return self._withdraw(action)
            case Release():
                return self._release(action)
            case Kill():
                return self._kill(action)
            case Drain():
                return self._drain(action)
            case Grow():
                return self._grow(action)
            case SetPriority():
                return self._set_priority(action)
            case SetQueueMaximum():
                self._manager.set_queue_maximum(action.queue, action.ratio)
                return Accepted()
            case Restore():
                return self._reversible[action.change.kind].write(action.change)

    def _begin(
        self, action: Suspend | Withdraw | Release | Kill | Drain, verb: str, generation: int = 0
    ) -> TrackedOrder | None:
        return self._tracking.begin(
            action.order, action.application, action.attempt, action.container, generation, verb
        )

    def _drain(self, drain: Drain) -> Outcome:
        orders = self._leaving.get(self._connection.row(drain.application).kind.upper())
        if orders is None:
            return Refused(KillNotAllowed())
        tracked = self._begin(drain, "drain")
        if tracked is None:
            return Refused(ForeignAttempt(drain.attempt, drain.application))
        return Accepted() if tracked.released_at_ms else orders.drain(drain, tracked)

    def _grow(self, grow: Grow) -> Outcome:
        return self._restorer.restore(grow.application, DemandOver(), ("bounds", "executors"))

    def _suspend(self, suspend: Suspend) -> Outcome:
        if self._hdfs is None:
            return Withheld(NoHdfs())
        tracked = self._begin(suspend, "suspend", suspend.generation)
        if tracked is None:
            return Refused(ForeignAttempt(suspend.attempt, suspend.application))
        if unseen := self._cannot_see(tracked):
            return Withheld(unseen)
        self._ask(self._hdfs, tracked)
        tracked.requested = True
        self._notify_runner(tracked)
        return Accepted()

    def _ask(self, hdfs: WebHdfs, tracked: TrackedOrder) -> None:
        """Write the request; if HDFS cannot be written now, block all requests for a while."""
        try:
            self._write_request(hdfs, tracked)
        except Unreachable as problem:
            self._permission.store_failed(problem)
            raise
        self._permission.store_works()

    def _cannot_see(self, tracked: TrackedOrder) -> CheckpointUnseen | None:
        """Return why the attempt's checkpoints cannot be read (then write no request); None: they can."""
        place = self._eligibility.store_of(tracked.application)
        try:
            if place is not None:
                place[0].list(tracked.task.folder)
        except StoreError as problem:
            why = CheckpointUnseen(str(problem)[:FAULT_MAX])
            if isinstance(problem.__cause__, Rejected):  # its other tasks would fail the same way
                self._eligibility.quarantine(tracked.application, why)
            return why
        return None

    def _write_request(self, hdfs: WebHdfs, tracked: TrackedOrder) -> None:
        """Write a temporary file and rename it, so that half a request is never read."""
        data = canonical(
            {
                "schema": SCHEMA,
                "order": tracked.name,
                "attempt": tracked.attempt,
                "generation": tracked.generation,
            }
        )
        folder = self._folder(tracked)
        hdfs.make_directories(folder, FOLDER_MODE)
        beside = f"{folder}/.{tracked.name}.tmp"
        hdfs.create(beside, data, mode=FILE_MODE, overwrite=True)
        try:
            hdfs.rename(beside, self._request(tracked))
        except ExistsAlready:
            hdfs.delete(beside)

    def _request(self, tracked: TrackedOrder) -> str:
        return f"{self._root}/{request_name(tracked.task, tracked.name)}"

    @property
    def _root(self) -> str:
        return self._settings.requests_root.rstrip("/")

    def _folder(self, tracked: TrackedOrder) -> str:
        return f"{self._root}/{tracked.task.job}/{tracked.task.attempt}"

    def _notify_runner(self, tracked: TrackedOrder) -> None:
        """Send the runner a signal to read its requests; its effect is observed elsewhere."""
        try:
            self._manager.signal(tracked.container, "OUTPUT_THREAD_DUMP")
        except YarnctlError as problem:
            self._tracking.notes[tracked.order] = f"the signal to the task runner failed: {problem}"

    def _withdraw(self, withdraw: Withdraw) -> Outcome:
        tracked = self._begin(withdraw, "suspend")
        if tracked is None or self._hdfs is None:
            return Refused(NeverSent())
        if tracked.released_at_ms:
            return Refused(ReleasedAlready())
        if not (tracked.requested or self._hdfs.find(self._request(tracked))):
            return Refused(NoRequestThere())
        self._hdfs.make_directories(self._folder(tracked), FOLDER_MODE)
        try:
            self._hdfs.create(f"{self._folder(tracked)}/{tracked.name}.withdrawn", b"", mode=FILE_MODE)
        except ExistsAlready:
            return Accepted()
        self._notify_runner(tracked)
        return Accepted()

    def _release(self, release: Release) -> Outcome:
        tracked = self._begin(release, "suspend", release.generation)
        if tracked is None or tracked.verb != "suspend":
            return Refused(NoSuchOrder())
        row = self._attempt(tracked, release)
        if not isinstance(row, TaskAttempt):
            return row
        if row.state != "RUNNING":
            ours = bool(tracked.released_at_ms) and row.state == "KILLED"
            return Accepted() if ours else Refused(AttemptOver(row.state))
        place = self._eligibility.store_of(tracked.application)
        if place is None:
            return later(release, CheckpointsUnseen())
        no = self._unsafe(tracked, release, row, *place)
        return no or self._end(tracked, "released_at_ms", release, place[1])

    def _unsafe(
        self,
        tracked: TrackedOrder,
        release: Release,
        attempt: TaskAttempt,
        store: CheckpointStore,
        eligibility: Eligibility,
    ) -> Outcome | None:
        """Return a refusal if ending the attempt now might lose work; None: no work would be lost."""
        manifest = safe_manifest(store, tracked.task, eligibility)
        self._tracking.find_manifest(tracked)  # after a restart the store has not been polled yet
        is_known = tracked.manifest_generation == manifest.generation > 0
        if not (is_ordered(manifest, tracked.task, tracked.name) or is_known):
            return Refused(ManifestOfAnother(manifest.generation))
        status = parse(attempt.status)
        if status is not None and _has_resumed_in_place(status, manifest, tracked):
            return Refused(GoneOn())
        if self._is_over(tracked, eligibility):
            return Refused(HoldOver())
        if tracked.answer == UNCHANGED and not (
            status is not None and (status.phase, status.order) == ("hold", tracked.name)
        ):
            return later(release, NotHoldingYet())
        return None

    def _is_over(self, tracked: TrackedOrder, eligibility: Eligibility) -> bool:
        """Return whether an attempt's release wait has expired or is about to."""
        left_ms = tracked.release_wait_from_ms + eligibility.release_wait_ms - self._clock()
        return left_ms < min(self._settings.release_wait_margin_ms, eligibility.release_wait_ms // 2)

    def _kill(self, kill: Kill) -> Outcome:
        known = self._tracking.orders.get(kill.order)
        verb = known.verb if known is not None else "kill"
        tracked = self._begin(kill, verb)
        if tracked is None:
            return Refused(NoReduceOf(kill.attempt, kill.application))
        if self._settings.levers and tracked.verb != "kill":
            return Refused(KillNotAllowed())
        row = self._attempt(tracked, kill)
        if not isinstance(row, TaskAttempt):
            return row
        if row.state != "RUNNING":
            ours = bool(tracked.killed_at_ms) and row.state == "KILLED"
            return Accepted() if ours else Refused(AttemptOver(row.state))
        if self._settings.levers and row.merged_at_ms > 0 and not is_map(row.attempt):
            return Refused(BegunMeanwhile())
        return self._end(tracked, "killed_at_ms", kill, None)

    def _attempt(self, tracked: TrackedOrder, action: Action) -> TaskAttempt | Outcome:
        """Read the attempt again and require that it runs in the order's container."""
        rows = self._connection.guard.read(
            tracked.application,
            f"order {tracked.task.task}",
            lambda name, _: self._connection.master(name).attempts(tracked.task.task),
        )
        if isinstance(rows, Absent | Problem):
            return later(action, unread(rows))
        row = next((row for row in rows if row.attempt == tracked.attempt), None)
        if row is None:
            return Refused(AttemptUnknown())
        if row.state == "RUNNING" and row.container != tracked.container:
            return Refused(RunsElsewhere(row.container, tracked.container))
        tracked.row = row
        return row

    def _end(
        self, tracked: TrackedOrder, instant: str, action: Action, eligibility: Eligibility | None
    ) -> Outcome:
        """Let the master end the attempt. An uncertain answer counts as possibly done.

        Reading may have taken long: permission and release wait (``eligibility``: of a Release) are checked
        again.
        """
        no = self._permission.may_act(action)
        if no is not None:
            return no
        if eligibility is not None and self._is_over(tracked, eligibility):
            return Refused(HoldOver())
        before = getattr(tracked, instant)
        setattr(tracked, instant, before or self._clock())
        try:
            word = self._connection.guard.change(
                tracked.application,
                f"kill {tracked.attempt}",
                lambda: self._connection.master(tracked.application).kill(tracked.task.task, tracked.attempt),
            )
        except Uncertain:
            raise
        except YarnctlError:
            setattr(tracked, instant, before)
            raise
        if isinstance(word, Absent):
            setattr(tracked, instant, before)
            return later(action, MasterNotReached(word.why[:FAULT_MAX]))
        return Accepted()

    def _set_priority(self, set_priority: SetPriority) -> Outcome:
        """Set a priority whose change is recorded; the record of a ranking has all of its changes."""
        row = self._connection.row(set_priority.application)
        change = Change("priority", set_priority.application, str(row.priority), str(set_priority.priority))
        if not self._restorer.covers(change.kind, change.target, change.now):
            problem = self._restorer.record((change,), DeadlineOrder())
            if problem:
                return Withheld(ClientFault(problem[:FAULT_MAX]))
        try:
            first = self._restorer.open[change.key].change
            if change.now == first.before:  # the ranking is at the value before again
                set_back(self._manager, Change("priority", change.target, change.now, change.before))
            else:
                self._manager.set_priority(set_priority.application, set_priority.priority)
        except Uncertain:
            raise
        except Altered as problem:  # YARN capped it: what it set is what is restored from
            if problem.got == change.before:
                self._restorer.not_made(change.key)
            else:
                capped = msgspec.structs.replace(change, now=problem.got)
                self._restorer.record((capped,), DeadlineOrder())
            return Unknown(_fault(problem))
        except YarnctlError:
            self._restorer.not_made(change.key)
            raise
        return Accepted()


def _fault(problem: Exception) -> ClientFault:
    return ClientFault(str(problem)[:FAULT_MAX])


def _has_resumed_in_place(status: Status, manifest: Manifest, tracked: TrackedOrder) -> bool:
    """Return whether a status line shows work that is in no checkpoint.

    The line may be old, but the number of groups never decreases. Right after "unchanged" an older line of
    the work names the same generation.
    """
    if status.phase not in WORKING:
        return False
    newer = status.gen >= manifest.generation and tracked.answer != UNCHANGED
    return newer or status.groups > manifest.groups_done
