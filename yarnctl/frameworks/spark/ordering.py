"""Drain executors of Spark, and request them again.

An executor's state is read from its driver right before the order, which is sent once. The submitter's tag
decides the route. Without a plugin Spark requests executors again without an order, so none is sent then.

Orders to the plugin in a driver are numbered files in the daemon's own folder in HDFS. An order is written to
a temporary file and renamed. Its name has its number, its kind and its decision, so that the same order is
written once even if it is performed repeatedly. The folder's name has the start time of the driver: a later
attempt never reads it (``plugin/Leave.java``). Facts: docs/facts/spark.md, 6.

Executors that were chosen as idle have an order of the kind ``idle``: the plugin removes those that still
have no task, and skips the others. A plugin older than this kind reads no kind, and drains them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from yarnctl.attach.connection.application_guard import LateAnswer
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.permission import unread
from yarnctl.attach.eligibility.settings_reader import ExecutorReader
from yarnctl.attach.orders.connected import Connected, TrackedOrder
from yarnctl.attach.orders.reversible import has_ended, not_read
from yarnctl.deciding.model import (
    Accepted,
    Change,
    ChangeKind,
    Drain,
    OrderAction,
    Outcome,
    Refused,
    Unknown,
    Withheld,
)
from yarnctl.deciding.reasons.orders import QueueServing
from yarnctl.deciding.reasons.outcomes import (
    AttemptUnknown,
    ClientFault,
    ExecutorBusy,
    NoHdfs,
)
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.errors import Unreachable, YarnctlError
from yarnctl.frameworks.framework import Parts
from yarnctl.frameworks.spark.configuration import DYNAMIC, START
from yarnctl.frameworks.spark.consent import SparkConsent
from yarnctl.frameworks.spark.driver import SparkDriver
from yarnctl.frameworks.spark.observing import ExecutorObserver, active_in, executor_in
from yarnctl.frameworks.spark.rest import KIND, PluginAnswer
from yarnctl.hadoop.http.answers import ExistsAlready, Missing, Uncertain
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.term_folders import term_folder
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.restoring.restorer import Reading, ReversibleSetting

FOLDER_MODE, FILE_MODE = 0o755, 0o644
_ORDER = re.compile(r"([0-9]{9})-([a-z]+)-([A-Za-z0-9._-]{1,80})\.order")
_START = re.compile(r"[0-9]{1,19}")
TRIES = 3  # Attempts to write an order: another request of the daemon may use a number first


class PluginOrders:
    """Writes orders of a term below ``root``; raises as the client of HDFS does."""

    def __init__(self, hdfs: WebHdfs, root: str, term: int) -> None:
        self._hdfs = hdfs
        self._root = root.rstrip("/")
        self._term = term

    def leave(
        self,
        application: str,
        start: str,
        executors: Sequence[str],
        decision: str,
        may_write: Callable[[], bool] = lambda: True,
        *,
        idle: bool = False,
    ) -> bool:
        """Order executors, by their numbers, to leave together; ``may_write`` is asked right before.

        ``idle``: only those that have no task. False: it may not, and no order was written.
        """
        text = f"leave {' '.join(executors)}\n"
        return self._write(application, start, "idle" if idle else "leave", decision, text, may_write)

    def back(self, application: str, start: str, decisions: Sequence[str]) -> None:
        """Order the driver to request as many executors as left by these decisions."""
        text = f"back {' '.join(decisions)}\n"
        self._write(application, start, "back", decisions[-1], text, lambda: True)

    def back_number(self, application: str, start: str, decisions: Sequence[str]) -> int:
        """Return the number of the order to request executors again, 0 if it is not written."""
        names = self._names(f"{self._root}/{application}/driver-{start}")
        found = [match for name in names if (match := _ORDER.fullmatch(name))]
        numbers = [int(one[1]) for one in found if (one[2], one[3]) == ("back", decisions[-1])]
        return min(numbers, default=0)

    def _write(
        self,
        application: str,
        start: str,
        kind: str,
        decision: str,
        text: str,
        may_write: Callable[[], bool],
    ) -> bool:
        folder = f"{self._root}/{application}/driver-{start}"
        self._hdfs.make_directories(folder, FOLDER_MODE)
        beside = f"{term_folder(self._root, self._term)}/{application}-{start}-{kind}-{decision}"
        for _ in range(TRIES):
            found = [match for name in self._names(folder) if (match := _ORDER.fullmatch(name))]
            if any((match[2], match[3]) == (kind, decision) for match in found):
                return True
            number = max((int(match[1]) for match in found), default=0) + 1
            self._hdfs.create(beside, text.encode("ascii"), mode=FILE_MODE, overwrite=True)
            if not may_write():
                break
            try:
                self._hdfs.rename(beside, f"{folder}/{number:09d}-{kind}-{decision}.order")
                return True
            except ExistsAlready:
                continue
        self._hdfs.delete(beside)
        if not may_write():
            return False
        raise ExistsAlready(f"{folder}: another daemon writes orders here; {TRIES} attempts failed")

    def _names(self, folder: str) -> list[str]:
        try:
            return [row.name for row in self._hdfs.listing(folder)]
        except Missing:
            return []


def start_of(settings: Mapping[str, str]) -> str:
    """Return the start time of a driver by its settings, as text in ms; "" if they do not have it."""
    start = settings.get(START, "")
    return start if _START.fullmatch(start) else ""


class ExecutorOrders:
    """Performs ``Drain``; raises as the clients do."""

    def __init__(self, parts: Parts, reader: ExecutorReader, executors: ExecutorObserver) -> None:
        self._connection, self._permission = parts.connection, parts.permission
        self._executors, self._reader, self._restorer = executors, reader, parts.restorer
        # (Application, whether of idle executors) -> the last decision whose order its plugin has
        self._written: dict[tuple[str, bool], int] = {}

    def is_name(self, application: str, name: str) -> bool:
        """Return whether a name is that of an executor of an application."""
        return executor_in(application, name) is not None

    def perform(self, action: OrderAction, tracked: TrackedOrder) -> Outcome:
        """Order an executor to leave, once."""
        assert isinstance(action, Drain), "the reader's verbs name no other"
        if self._written.get((action.application, action.idle is True)) == action.decision:
            # The order names its mates: it leaves with them
            tracked.released_at_ms = self._connection.clock()
            self._note(action, tracked)
            return Accepted()
        rows = self._executors.at_order(tracked.application)
        if isinstance(rows, Absent | Problem):
            return Withheld(unread(rows))
        if obstacle := self._executors.still_there(
            rows, tracked.application, tracked.attempt, tracked.container
        ):
            return Refused(ExecutorBusy(obstacle[:FAULT_MAX]))
        found = self._reader.judged(self._connection.row(tracked.application))
        if no := self._permission.may_act(action):
            return no
        tracked.released_at_ms = self._connection.clock()
        try:
            outcome: Outcome = Accepted()
            if found is not None and found.route == "plugin":
                outcome = self._order_plugin(action, active_in(rows))
            else:
                self._connection.manager.signal(tracked.container, "GRACEFUL_SHUTDOWN")
        except Uncertain:
            raise
        except YarnctlError:
            tracked.released_at_ms = 0
            raise
        if not isinstance(outcome, Accepted):
            tracked.released_at_ms = 0
        else:
            self._note(action, tracked)
        return outcome

    def _note(self, drain: Drain, tracked: TrackedOrder) -> None:
        """Note an executor that leaves for good; the plugin skips an idle one that has got a task."""
        if drain.idle is not True:
            self._executors.note_order(tracked.application, tracked.container)

    def _order_plugin(self, drain: Drain, active: int) -> Outcome:
        """Order the plugin to let executors leave; ``active``: their number before, is recorded first."""
        application, hdfs = drain.application, self._connection.hdfs
        settings = self._executors.settings(application)
        if hdfs is None:
            return Withheld(NoHdfs())
        if isinstance(settings, Absent | Problem):
            return Withheld(unread(settings))
        start = start_of(settings)
        if not start:
            return Refused(AttemptUnknown())
        decision = self._connection.settings.name_of(f"d{drain.decision}")
        if not self._is_recorded(application, decision):
            change = Change("executors", application, str(active), decision)
            if problem := self._restorer.record((change,), QueueServing()):
                return Withheld(ClientFault(problem[:FAULT_MAX]))
        named = [executor_in(application, mate) for mate in drain.mates]
        leaving = [name for name in named if name is not None]
        orders = PluginOrders(hdfs, self._connection.settings.requests_root, self._permission.term())
        idle = drain.idle is True
        is_written = orders.leave(
            application, start, leaving, decision, lambda: self._permission.may_act(drain) is None, idle=idle
        )
        if is_written:
            kept = {key: each for key, each in self._written.items() if key[0] in self._reader.allowed}
            self._written = {**kept, (application, idle): drain.decision}
            return Accepted()
        return self._permission.may_act(drain) or Withheld(ClientFault("not permitted for a moment"))

    def _is_recorded(self, application: str, decision: str) -> bool:
        one = self._restorer.open.get(("executors", application))
        return one is not None and one.why is None and decision in one.change.now.split()


class SparkExecutors:
    """The number of executors of a Spark application whose driver has the plugin."""

    def __init__(self, connection: Connection, executors: ExecutorObserver) -> None:
        self._connection = connection
        self._executors = executors
        self._started: dict[str, str] = {}

    def read(self, change: Change) -> Reading:
        """Count executors; nothing has ended before the plugin is done with the order.

        With dynamic allocation Spark keeps the number by its pending tasks: the order is enough. With a fixed
        number it is enough while the driver has no pending task. Where the driver's metrics do not show the
        plugin's answer, a written order counts as done with.
        """
        application = change.target
        if has_ended(self._connection, application):
            self._started.pop(application, None)
            return Reading("gone")
        settings = self._executors.settings(application)  # all three begin before one is judged
        active, answer = self._executors.active(application), self._executors.plugin_answer(application)
        if isinstance(settings, Absent | Problem):
            return not_read(settings)
        if isinstance(active, Absent | Problem):
            return not_read(active)
        if isinstance(answer, Problem):  # it may come: the list still has executors that leave
            return not_read(answer)
        start = self._started[application] = start_of(settings)
        number = self._orders().back_number(application, start, change.now.split())
        if isinstance(answer, PluginAnswer):
            active = answer.executors  # without those that leave, which the list of executors still has
        if not number or (isinstance(answer, PluginAnswer) and answer.order < number):
            return Reading("now", str(active))
        if active >= int(change.before) or settings.get(DYNAMIC) == "true":
            return Reading("before", str(active))
        pending = self._executors.has_pending_task(application)
        if isinstance(pending, LateAnswer):
            return not_read(pending)
        return Reading("before" if pending is False else "now", str(active))

    def write(self, change: Change) -> Outcome:
        """Order the plugin to request as many executors as left by these decisions; written once.

        The driver is the one that was read right before: its answer may be late now.
        """
        start = self._started.get(change.target, "")
        if not start:
            return Refused(AttemptUnknown())
        if self._connection.hdfs is None:
            return Unknown(NoHdfs())
        self._orders().back(change.target, start, change.now.split())
        return Accepted()

    def _orders(self) -> PluginOrders:
        if self._connection.hdfs is None:
            raise Unreachable("HDFS is not known, so no order can be read")
        # A late order to request executors harms nothing: it needs no term
        return PluginOrders(self._connection.hdfs, self._connection.settings.requests_root, 0)


class Spark:
    """Spark as a framework; ``masters`` reaches drivers behind YARN's web proxy."""

    KIND = KIND

    def __init__(self, masters: Transport) -> None:
        self._driver: Callable[[str], SparkDriver] = lambda name: SparkDriver(masters, name)

    def connect(self, parts: Parts) -> Connected:
        """Return the framework on one cluster, with the number of executors as a setting."""
        consent = SparkConsent(parts.connection.settings, self._driver)
        reader = ExecutorReader(parts.connection, KIND, consent, parts.reasons)
        executors = ExecutorObserver(parts, reader, self._driver)
        settings: dict[ChangeKind, ReversibleSetting] = {
            "executors": SparkExecutors(parts.connection, executors)
        }
        return Connected(reader, executors, ExecutorOrders(parts, reader, executors), settings)
