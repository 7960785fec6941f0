"""Read why YARN does not grant: the records of single nodes' heartbeats, for a few nodes after a tick.

Law: they explain, and show on which node a reservation is; alone they never forbid an order, and no order
waits for them. They are read only while a preempting application waits without an order, after the tick's
orders were sent: at most ``READS_MAX`` nodes, each at most once a heartbeat. A fault, or an answer
that takes too long, stops reading for ``PAUSE_MS`` and is no fault of the cluster.

A request has the node's *next* heartbeat recorded and returns the last record, which may be hours old. So a
record counts only if its instant differs from that of an answer at most ``ARMED_MS`` ago. It is as old as
that answer: a reservation may have moved to another node since. It is used for ``KEPT_MS``, and read again
after ``AGAIN_MS`` while it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from yarnctl.attach.connection.calls import Problem, attempt
from yarnctl.hadoop.wire.node_activities import NodeActivities, ReservationHolder, YarnWords

READS_MAX = 4
NODES_MAX = 64  # Nodes of one reservation that are read in turn
HEARTBEAT_MS, HEARTBEAT_DIGITS = 1_000, 9  # A longer number is not an interval: the default counts
ARMED_MS = 10_000
AGAIN_MS = 4_000
KEPT_MS = 10_000
PAUSE_MS = 60_000
HEARTBEAT_KEY = "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"


class _ReadNode(NamedTuple):
    """The last answer about a node, and its newest record with the time of the request that armed it."""

    read_at_ms: int
    answered: NodeActivities
    record: NodeActivities | None = None
    record_at_ms: int = 0


class ActivityReader:
    """Reads the records of nodes. ``read`` raises as the client does; ``clock`` returns ms.

    ``configuration``: the ResourceManager's, as last read.

    ``suspects``: nodes on which a reservation may be, by the last snapshot. ``located``: applications whose
    requests name hosts.
    """

    def __init__(
        self,
        read: Callable[[str], NodeActivities],
        clock: Callable[[], int],
        configuration: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._read = read
        self._clock = clock
        self._configuration = configuration
        self._known: dict[str, _ReadNode] = {}
        self._paused_until_ms = 0
        self.suspects: tuple[str, ...] = ()
        self.located: set[str] = set()

    def heartbeat_ms(self) -> int:
        """Return the interval of the nodes' heartbeats."""
        text = self._configuration().get(HEARTBEAT_KEY, "").strip()
        is_number = text.isascii() and text.isdigit() and len(text) <= HEARTBEAT_DIGITS
        return int(text) if is_number and int(text) else HEARTBEAT_MS

    def renew(self, nodes: Iterable[str]) -> None:
        """Read some of ``nodes`` and of ``suspects`` (nodes that may be reserved) that are due."""
        now_ms = self._clock()
        wanted = list(dict.fromkeys([*nodes, *self.suspects[:NODES_MAX]]))
        self._known = {node: self._known[node] for node in wanted if node in self._known}
        if self.is_paused:
            return
        due = sorted(node for node in wanted if self._is_due(node, now_ms))
        for node in sorted(due, key=lambda node: self._urgency(node, now_ms))[:READS_MAX]:
            answer = attempt(self._read, node)
            if isinstance(answer, Problem):
                self._paused_until_ms = now_ms + PAUSE_MS
                return
            self._note(node, answer, now_ms)

    def _is_due(self, node: str, now_ms: int) -> bool:
        known = self._known.get(node)
        if known is None or now_ms < known.read_at_ms:  # the clock was set back
            return True
        if known.record is not None and now_ms - known.record_at_ms < AGAIN_MS:
            return False
        return now_ms - known.read_at_ms >= self.heartbeat_ms()

    def _urgency(self, node: str, now_ms: int) -> tuple[bool, int]:
        """Return the place of a node: a heartbeat that is being recorded first, then the longest unread."""
        known = self._known.get(node)
        if known is None:
            return True, 0
        is_armed = known.record is None and now_ms - known.read_at_ms <= ARMED_MS
        return not is_armed, known.read_at_ms

    def _note(self, node: str, activities: NodeActivities, now_ms: int) -> None:
        known = self._known.get(node)
        if known is None or not 0 <= now_ms - known.read_at_ms <= ARMED_MS:
            self._known[node] = _ReadNode(now_ms, activities)
        elif activities.at_ms and activities.allocations and activities.at_ms != known.answered.at_ms:
            self._known[node] = _ReadNode(now_ms, activities, activities, known.read_at_ms)
        else:
            self._known[node] = known._replace(read_at_ms=now_ms)

    def records(self) -> dict[str, NodeActivities]:
        """Return the records that still count, by node."""
        now_ms = self._clock()
        return {
            node: known.record
            for node, known in self._known.items()
            if known.record is not None and 0 <= now_ms - known.record_at_ms <= KEPT_MS
        }

    @property
    def is_paused(self) -> bool:
        """Whether the last request failed, and none is sent for a while."""
        now_ms = self._clock()
        return now_ms < self._paused_until_ms <= now_ms + PAUSE_MS

    def priority(self, application: str) -> int | None:
        """Return the priority by which the scheduler grants to an application; None: no record names it."""
        found = [record.priority_of(application) for record in self.records().values()]
        return next((priority for priority in found if priority is not None), None)

    def reserved(self) -> Mapping[str, ReservationHolder]:
        """Return node -> what it is reserved for, of the nodes with such a record."""
        found = {node: record.reserved_for() for node, record in self.records().items()}
        return {node: holder for node, holder in found.items() if holder is not None}

    def words(self, application: str, queue: str, nodes: Iterable[str] = ()) -> YarnWords | None:
        """Return YARN's words about an application, from the first of ``nodes`` that has some, or any."""
        records = self.records()
        for node in dict.fromkeys([*nodes, *records]):
            if node in records:
                at, diagnostic = records[node].words(application, queue)
                if diagnostic:
                    return YarnWords(node, at, diagnostic)
        return None
