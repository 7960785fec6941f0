"""Performing: one action, one outcome; every guard asked again right before.

Law: nothing is changed unless told to enforce; nothing outside the named victim queues; nothing of a job
without a proven runner; nothing while YARN itself preempts; and no attempt is released without a valid
manifest that was read a moment before. All of it is idempotent by the order: doing it twice is doing it
once. The doorbell may fail: the request lies in HDFS, and the runner looks there now and then anyway.

======================================  ==========================
what happened                           outcome
======================================  ==========================
it was done, or had been done before    Accepted
not told to enforce                     Withheld
a guard, a clear no, surely not sent    Refused, with the reason
sent, and nobody answered               Unknown; only a fact tells
======================================  ==========================
"""

from __future__ import annotations

from collections.abc import Callable

from yarnctl.attach.checkpoints import is_ordered, safe_manifest
from yarnctl.attach.proof import Proof
from yarnctl.attach.settings import Attachment
from yarnctl.attach.status import WORKING, parse
from yarnctl.attach.store import SeenStore
from yarnctl.attach.watch import Watch, Watched
from yarnctl.deciding.model import (
    Accepted,
    Action,
    Kill,
    Outcome,
    Refused,
    Release,
    SetPriority,
    Suspend,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.app_master import Absent, AppMaster
from yarnctl.hadoop.problems import Exists, Uncertain
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.hadoop.wire_mapreduce import TaskAttempt
from yarnctl.task_runner.yarnctl_task import SCHEMA, StoreError, Unusable, canonical, request_name

FOLDER_MODE, FILE_MODE = 0o755, 0o644
"""The job's user must be able to read a request; nobody but us may write one."""


class Acting:
    """Performs actions. ``forbids`` says why an application may not be touched ("": it may)."""

    def __init__(
        self,
        manager: ResourceManager,
        master: Callable[[str], AppMaster],
        hdfs: WebHdfs | None,
        watch: Watch,
        attachment: Attachment,
        clock: Callable[[], int],
        forbids: Callable[[str], str],
        queue_of: Callable[[str], str],
        store_of: Callable[[str], tuple[SeenStore, Proof] | None],
    ) -> None:
        self._manager = manager
        self._master = master
        self._hdfs = hdfs
        self._watch = watch
        self._settings = attachment
        self._clock = clock
        self._forbids = forbids
        self._queue_of = queue_of
        self._store_of = store_of

    def perform(self, action: Action) -> Outcome:
        """Carry out one action; never raises for a fault of the cluster."""
        if not self._settings.enforce:
            return Withheld("observing: nothing is changed without --enforce")
        try:
            match action:
                case Suspend():
                    return self._suspend(action)
                case Withdraw():
                    return self._withdraw(action)
                case Release():
                    return self._release(action)
                case Kill():
                    return self._kill(action)
                case SetPriority():
                    return self._set_priority(action)
        except Uncertain as problem:
            return Unknown(str(problem))
        except (YarnctlError, StoreError, Unusable) as problem:
            return Refused(str(problem))

    # --- asking -------------------------------------------------------------------------------

    def _suspend(self, action: Suspend) -> Outcome:
        why = self._forbids(action.application)
        if why:
            return Refused(why)
        if self._hdfs is None:
            return Refused("no HDFS: nowhere to write the request, give --name-node")
        if action.order not in self._watch.orders and self._is_full():
            return Refused(f"{self._settings.in_flight_max} attempts are under order already")
        one = self._watch.begin(
            action.order, action.application, action.attempt, action.container, action.generation, "suspend"
        )
        if one is None:
            return Refused(
                f"{action.attempt} is no reduce of {action.application}, or the order is another's"
            )
        self._write_request(self._hdfs, one)
        one.requested = True
        self._ring(one)
        return Accepted()

    def _is_full(self) -> bool:
        most = self._settings.in_flight_max
        return most is not None and sum(not one.ended for one in self._watch.orders.values()) >= most

    def _write_request(self, hdfs: WebHdfs, one: Watched) -> None:
        """Write beside and rename, so that nobody reads half a request; fine if it is there already."""
        data = canonical(
            {"schema": SCHEMA, "order": one.order, "attempt": one.attempt, "generation": one.generation}
        )
        folder = self._folder(one)
        hdfs.make_directories(folder, FOLDER_MODE)
        beside = f"{folder}/.{one.order}.tmp"
        hdfs.create(beside, data, mode=FILE_MODE, overwrite=True)
        try:
            hdfs.rename(beside, f"{self._root}/{request_name(one.task, one.order)}")
        except Exists:
            hdfs.delete(beside)

    @property
    def _root(self) -> str:
        return self._settings.requests_root.rstrip("/")

    def _folder(self, one: Watched) -> str:
        return f"{self._root}/{one.task.job}/{one.task.attempt}"

    def _ring(self, one: Watched) -> None:
        """Ring the doorbell; whether anybody heard it is seen elsewhere."""
        try:
            self._manager.signal(one.container, "OUTPUT_THREAD_DUMP")
        except YarnctlError as problem:
            self._watch.notes[one.order] = f"the doorbell did not ring: {problem}"

    def _withdraw(self, action: Withdraw) -> Outcome:
        one = self._watch.begin(
            action.order, action.application, action.attempt, action.container, 0, "suspend"
        )
        if one is None or self._hdfs is None:
            return Refused("no such order was ever sent from here")
        if one.released_at_ms:
            return Refused("the attempt has been released already")
        self._hdfs.make_directories(self._folder(one), FOLDER_MODE)
        try:
            self._hdfs.create(f"{self._folder(one)}/{one.order}.withdrawn", b"", mode=FILE_MODE)
        except Exists:
            return Accepted()
        self._ring(one)
        return Accepted()

    # --- stopping -----------------------------------------------------------------------------

    def _release(self, action: Release) -> Outcome:
        why = self._forbids(action.application)
        if why:
            return Refused(why)
        one = self._watch.begin(
            action.order, action.application, action.attempt, action.container, action.generation, "suspend"
        )
        if one is None or one.verb != "suspend":
            return Refused("no such order")
        row = self._attempt(one)
        if isinstance(row, Refused):
            return row
        if row.state != "RUNNING":
            ours = bool(one.released_at_ms) and row.state == "KILLED"
            return Accepted() if ours else Refused(f"the attempt is {row.state or 'gone'} already")
        unsafe = self._unsafe(one, action, row)
        if unsafe:
            return Refused(unsafe)
        return self._end(one, "released_at_ms")

    def _unsafe(self, one: Watched, action: Release, row: TaskAttempt) -> str:
        """Say why ending the attempt now would lose work; "": nothing would be lost."""
        place = self._store_of(one.application)
        if place is None:
            return "its checkpoints cannot be seen"
        store, proof = place
        manifest = safe_manifest(store, one.task, proof)
        if not one.manifest_at_ms:  # first heard of after a restart: the answer may say "unchanged"
            answered, _ = self._watch.look_into(one.order)
            one.manifest_generation = answered.generation if answered is not None else 0
        is_known = one.manifest_generation == manifest.generation > 0
        if not (is_ordered(manifest, one.task, one.order) or is_known):
            return f"the manifest of generation {manifest.generation} does not answer this order"
        created_at_ms = manifest.raw.get("created_at_ms")
        began_ms = one.manifest_at_ms
        if not began_ms:
            began_ms = created_at_ms if isinstance(created_at_ms, int) else 0
        left_ms = began_ms + proof.hold_ms - self._clock()
        if left_ms < min(self._settings.hold_margin_ms, proof.hold_ms // 2):
            return "its hold is over or nearly so: it has gone on, or will"
        status = parse(row.status)
        at_work = status is not None and status.phase in WORKING and status.gen >= manifest.generation
        return "it has gone on behind its checkpoint" if at_work and one.answer != "unchanged" else ""

    def _kill(self, action: Kill) -> Outcome:
        if not self._settings.allow_kill:
            return Refused("killing is not allowed here: work would be lost")
        why = self._forbids(action.application)
        if why:
            return Refused(why)
        known = self._watch.orders.get(action.order)
        verb = known.verb if known is not None else "kill"
        one = self._watch.begin(action.order, action.application, action.attempt, action.container, 0, verb)
        if one is None:
            return Refused(f"{action.attempt} is no reduce of {action.application}")
        row = self._attempt(one)
        if isinstance(row, Refused):
            return row
        if row.state != "RUNNING":
            ours = bool(one.killed_at_ms) and row.state == "KILLED"
            return Accepted() if ours else Refused(f"the attempt is {row.state or 'gone'} already")
        return self._end(one, "killed_at_ms")

    def _attempt(self, one: Watched) -> TaskAttempt | Refused:
        """Look at the attempt once more: it must be this one, in this container."""
        rows = self._master(one.application).attempts(one.task.task)
        if isinstance(rows, Absent):
            return Refused(f"its master does not answer: {rows.why}")
        row = next((row for row in rows if row.attempt == one.attempt), None)
        if row is None:
            return Refused("its master does not know the attempt")
        if row.state == "RUNNING" and row.container != one.container:
            return Refused(f"the attempt runs in {row.container}, not in {one.container}")
        one.row = row
        return row

    def _end(self, one: Watched, instant: str) -> Outcome:
        """Have the master end the attempt. An uncertain answer counts as perhaps done."""
        before = getattr(one, instant)
        setattr(one, instant, before or self._clock())
        try:
            word = self._master(one.application).kill(one.task.task, one.attempt)
        except Uncertain:
            raise
        except YarnctlError:
            setattr(one, instant, before)
            raise
        if isinstance(word, Absent):
            setattr(one, instant, before)
            return Refused(f"its master was not reached: {word.why}")
        return Accepted()

    # --- priorities ---------------------------------------------------------------------------

    def _set_priority(self, action: SetPriority) -> Outcome:
        if not self._settings.allow_priority:
            return Refused("changing priorities is not allowed here")
        why = self._foreign(action.application)
        if why:
            return Refused(why)
        self._manager.set_priority(action.application, action.priority)
        return Accepted()

    def _foreign(self, application: str) -> str:
        queue, settings = self._queue_of(application), self._settings
        named = settings.is_victim(queue) or settings.is_hurried(queue)
        return "" if named else f"its queue {queue} is neither hurried nor victim"
