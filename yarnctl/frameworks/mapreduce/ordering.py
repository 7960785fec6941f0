"""Suspend and release reduces by their task runners, and kill tasks.

Law: no attempt is released without a valid manifest that was read a moment before. The signal to a runner may
fail: the request is in HDFS, and the runner reads its folder regularly.
"""

from __future__ import annotations

from collections.abc import Callable

from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import CheckpointStore
from yarnctl.attach.eligibility.permission import later, unread
from yarnctl.attach.orders.connected import Connected, TrackedOrder
from yarnctl.attach.orders.performing import foreign
from yarnctl.deciding.model import (
    Accepted,
    Action,
    Kill,
    OrderAction,
    Outcome,
    Refused,
    Release,
    Suspend,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.reasons.eligibility import CheckpointUnseen
from yarnctl.deciding.reasons.modes import LockRanOut
from yarnctl.deciding.reasons.outcomes import (
    AttemptOver,
    AttemptUnknown,
    BegunMeanwhile,
    CheckpointsUnseen,
    ClientFault,
    GoneOn,
    HoldOver,
    KillNotAllowed,
    ManifestOfAnother,
    MasterNotReached,
    NeverSent,
    NoHdfs,
    NoRequestThere,
    NoSuchOrder,
    NotHoldingYet,
    ReleasedAlready,
    RunsElsewhere,
)
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.errors import Unreachable, YarnctlError
from yarnctl.frameworks.framework import Parts
from yarnctl.frameworks.mapreduce.bells import Bells
from yarnctl.frameworks.mapreduce.consent import Eligibility, EligibilityReader
from yarnctl.frameworks.mapreduce.master import MasterClient
from yarnctl.frameworks.mapreduce.observing import TaskObserver, is_map
from yarnctl.frameworks.mapreduce.rest import KIND, TaskAttempt
from yarnctl.frameworks.mapreduce.saved_work import UNCHANGED, TrackedTask, is_ordered, safe_manifest, task_of
from yarnctl.frameworks.mapreduce.status_line import WORKING, Status, parse
from yarnctl.frameworks.mapreduce.tracking import TaskTracking
from yarnctl.hadoop.http.answers import ExistsAlready, Missing, Rejected, Uncertain
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.term_folders import term_folder
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.task_runner.runner.protocol.manifests import SCHEMA, Manifest, canonical, request_name
from yarnctl.task_runner.runner.protocol.stores import StoreError

FOLDER_MODE, FILE_MODE = 0o755, 0o644  # The job's user must read a request; only its owner may write one


class TaskOrders:
    """Performs ``Suspend``, ``Withdraw``, ``Release`` and ``Kill``; raises as the clients do."""

    def __init__(
        self,
        parts: Parts,
        eligibility: EligibilityReader,
        tasks: TaskObserver,
        tracking: TaskTracking,
    ) -> None:
        connection = parts.connection
        self._manager, self._guard, self._hdfs = connection.manager, connection.guard, connection.hdfs
        self._settings, self._clock = connection.settings, connection.clock
        self._permission, self._root = parts.permission, connection.settings.requests_root.rstrip("/")
        self._eligibility, self._tasks, self._tracking = eligibility, tasks, tracking
        self._bells = Bells()

    def is_name(self, application: str, name: str) -> bool:
        """Return whether a name is that of an attempt of an application; maps count with levers only."""
        return task_of(application, name, "mr" if self._settings.levers else "r") is not None

    def perform(self, action: OrderAction, tracked: TrackedOrder) -> Outcome:
        """Perform an action on an attempt, once."""
        if not isinstance(tracked, TrackedTask) or (is_map(tracked.attempt) and not isinstance(action, Kill)):
            return Refused(foreign(action))
        if not tracked.node and tracked.attempt in self._tasks.places:
            tracked.node = self._tasks.places[tracked.attempt].node
        match action:
            case Suspend():
                return self._suspend(tracked, action)
            case Withdraw():
                return self._withdraw(tracked)
            case Release():
                return self._release(tracked, action)
            case Kill():
                return self._kill(tracked, action)
            case _:
                return Refused(foreign(action))

    def _suspend(self, tracked: TrackedTask, suspend: Suspend) -> Outcome:
        if self._hdfs is None:
            return Withheld(NoHdfs())
        if unseen := self._cannot_see(tracked):
            return Withheld(unseen)
        if no := self._ask(self._hdfs, tracked, suspend):
            return no
        tracked.requested = True
        self._notify_runner(tracked)
        return Accepted()

    def _ask(self, hdfs: WebHdfs, tracked: TrackedTask, suspend: Suspend) -> Outcome | None:
        """Write the request; if HDFS cannot be written now, block all requests for a while."""
        try:
            no = self._write_request(hdfs, tracked, suspend)
        except Unreachable as problem:
            self._permission.store_failed(problem)
            raise
        if no is None:
            self._permission.store_works()
        return no

    def _cannot_see(self, tracked: TrackedTask) -> CheckpointUnseen | None:
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

    def _write_request(self, hdfs: WebHdfs, tracked: TrackedTask, suspend: Suspend) -> Outcome | None:
        """Write a file in the folder of this term and rename it, so that half a request is never read.

        Writing may have taken long, or this process was stopped meanwhile: permission is checked again right
        before the file gets the name by which a task runner finds it. The next leader removes the folder, so
        a rename that comes later fails. Return a refusal, None: it is written.
        """
        data = canonical(
            {
                "schema": SCHEMA,
                "order": tracked.name,
                "attempt": tracked.attempt,
                "generation": tracked.generation,
            }
        )
        hdfs.make_directories(self._folder(tracked), FOLDER_MODE)
        beside = f"{term_folder(self._root, self._permission.term())}/{tracked.name}"
        hdfs.create(beside, data, mode=FILE_MODE, overwrite=True)
        try:
            no = self._permission.may_act(suspend)
        except Unreachable as problem:  # the ResourceManager, not HDFS
            no = later(suspend, ClientFault(str(problem)[:FAULT_MAX]))
        if no is not None:
            hdfs.delete(beside)
            return no
        try:
            hdfs.rename(beside, self._request(tracked))
        except ExistsAlready:
            hdfs.delete(beside)
        except Missing:
            return later(suspend, LockRanOut())
        return None

    def _request(self, tracked: TrackedTask) -> str:
        return f"{self._root}/{request_name(tracked.task, tracked.name)}"

    def _folder(self, tracked: TrackedTask) -> str:
        return f"{self._root}/{tracked.task.job}/{tracked.task.attempt}"

    def _notify_runner(self, tracked: TrackedTask) -> None:
        """Have the runner read its requests; the effect is observed elsewhere.

        The signal waits for the node's heartbeat, the datagram does not, but may be lost.
        """
        self._bells.ring(tracked.node, self._tasks.bell_of(tracked.attempt))
        try:
            self._manager.signal(tracked.container, "OUTPUT_THREAD_DUMP")
        except YarnctlError as problem:
            tracked.note = f"the signal to the task runner failed: {problem}"

    def _withdraw(self, tracked: TrackedTask) -> Outcome:
        if self._hdfs is None:
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

    def _release(self, tracked: TrackedTask, release: Release) -> Outcome:
        if tracked.verb != "suspend":
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
        tracked: TrackedTask,
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

    def _is_over(self, tracked: TrackedTask, eligibility: Eligibility) -> bool:
        """Return whether an attempt's release wait has expired or is about to."""
        left_ms = tracked.release_wait_from_ms + eligibility.release_wait_ms - self._clock()
        return left_ms < min(self._settings.release_wait_margin_ms, eligibility.release_wait_ms // 2)

    def _kill(self, tracked: TrackedTask, kill: Kill) -> Outcome:
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

    def _attempt(self, tracked: TrackedTask, action: Action) -> TaskAttempt | Outcome:
        """Read the attempt again and require that it runs in the order's container."""
        rows = self._guard.read(
            tracked.application,
            f"order {tracked.task.task}",
            lambda name, _: self._tasks.master(name).attempts(tracked.task.task),
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
        self, tracked: TrackedTask, instant: str, action: Action, eligibility: Eligibility | None
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
            word = self._guard.change(
                tracked.application,
                f"kill {tracked.attempt}",
                lambda: self._tasks.master(tracked.application).kill(tracked.task.task, tracked.attempt),
                beside=True,
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


class MapReduce:
    """MapReduce as a framework; ``masters`` reaches jobs' masters behind YARN's web proxy."""

    KIND = KIND

    def __init__(self, masters: Transport) -> None:
        self._master: Callable[[str], MasterClient] = lambda name: MasterClient(masters, name)

    def connect(self, parts: Parts) -> Connected:
        """Return the framework on one cluster; its tasks save their work."""
        reader = EligibilityReader(parts.connection, self._master, parts.reasons)
        tasks = TaskObserver(parts, self._master)
        tracking = TaskTracking(parts, reader, tasks)
        orders = TaskOrders(parts, reader, tasks, tracking)
        return Connected(reader, tasks, orders, {}, tracking, TrackedTask)


def _has_resumed_in_place(status: Status, manifest: Manifest, tracked: TrackedTask) -> bool:
    """Return whether a status line shows work that is in no checkpoint.

    The line may be old, but the number of groups never decreases. Right after "unchanged" an older line of
    the work names the same generation.
    """
    if status.phase not in WORKING:
        return False
    newer = status.gen >= manifest.generation and tracked.answer != UNCHANGED
    return newer or status.groups > manifest.groups_done
