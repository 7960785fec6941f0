"""Why the daemon acts or does not: the reasons of the loop's states."""

from __future__ import annotations

from yarnctl.deciding.reasons.queue_naming import (
    AmbiguousQueue,
    BudgetOfNoPreemptableQueue,
    EveryQueueLeftAlone,
    NoLeafQueue,
    ParentQueue,
    QueueInBothRoles,
    QueueNamedTwice,
    QueuesUnread,
    QueuesVanished,
)
from yarnctl.deciding.reasons.rooting import Reason


class NothingInTheWay(Reason, frozen=True):
    sentence = "nothing prevents orders"


class NotEnforcing(Reason, frozen=True):
    sentence = "yarnctl changes nothing without --enforce"


class Continued(Reason, frozen=True):
    sentence = "continued by an operator"


class Paused(Reason, frozen=True, omit_defaults=True):
    """The operator's reason, or a default. ``until_ms`` 0: until an operator ends the pause."""

    sentence = "{text}[until_ms? until {until_ms:instant}]"
    text: str
    until_ms: int = 0

    def is_over(self, now_ms: int) -> bool:
        """Return whether the pause has ended by itself."""
        return 0 < self.until_ms <= now_ms

    def set_back(self, by_ms: int) -> Paused:
        """Return the pause for a clock that was set back: it does not become longer by it."""
        return Paused(self.text, max(1, self.until_ms - by_ms)) if self.until_ms else self


class LockHeldElsewhere(Reason, frozen=True):
    sentence = "another yarnctl holds the lock"


class LockRanOut(Reason, frozen=True):
    """No other yarnctl has acquired it."""

    sentence = "the lock expired during the last tick; yarnctl acquires it again at the next tick"


class HdfsUnwritable(Reason, frozen=True):
    sentence = "HDFS cannot be written, so no order is sent: {fault}"
    remedy = "see hdfs dfsadmin -safemode get and hdfs dfsadmin -report"
    fault: str


class LockUnconfirmed(Reason, frozen=True):
    sentence = "the lock in ZooKeeper cannot be confirmed, so no order is sent: {fault}"
    remedy = "check that the servers of --lock run"
    fault: str


class FoldersNotSeen(Reason, frozen=True):
    sentence = "yarnctl's folders in HDFS have not been checked yet"


class FoldersUnreachable(Reason, frozen=True):
    sentence = "yarnctl's folders in HDFS cannot be read: {fault}"
    fault: str


class FoldersUnfit(Reason, frozen=True):
    """As the check of the folders reports it."""

    sentence = "{seen}"
    remedy = "{fix}"
    seen: str
    fix: str


class ManagerSettling(Reason, frozen=True):
    sentence = "a new ResourceManager answers, and its number of nodes still changes"


class PreemptionUnknown(Reason, frozen=True):
    sentence = "whether YARN itself preempts is unknown: the ResourceManager's /conf has not been read"


class YarnPreemptsSomewhere(Reason, frozen=True):
    sentence = "YARN itself preempts ({key}=true), and no preemptable queue has been observed yet"
    key: str


class YarnPreempts(Reason, frozen=True):
    sentence = "YARN itself preempts containers of queue {queue} ({key}=true)"
    remedy = "set disable_preemption=true for that queue, or set {key}=false"
    queue: str
    key: str


class PreemptionOn(Reason, frozen=True):
    """With ``--yarn-preemption switch``; it passes with the next look after the switch."""

    sentence = "YARN's own preemption of queue {queue} is not switched off yet"
    queue: str


class YarnPreemptsWithin(Reason, frozen=True):
    sentence = "YARN itself preempts containers within queue {queue} ({key}=true)"
    remedy = "set intra-queue-preemption.disable_preemption=true for that queue"
    queue: str
    key: str


class ClusterFault(Reason, frozen=True):
    """The message of the client that failed."""

    sentence = "{fault}"
    fault: str


class ClusterUnseen(Reason, frozen=True):
    sentence = "the cluster cannot be observed"


class AskedToStop(Reason, frozen=True):
    """By an operator, or by a signal."""

    sentence = "stopped on request"


class TicksDone(Reason, frozen=True):
    sentence = "completed {ticks} ticks (--ticks)"
    ticks: int


class LoopFailed(Reason, frozen=True):
    sentence = "the loop failed: {kind}: {fault}"
    kind: str
    fault: str


_Chosen = NothingInTheWay | NotEnforcing | Continued | Paused
_Lock = LockHeldElsewhere | LockRanOut | LockUnconfirmed
_Hdfs = HdfsUnwritable | FoldersNotSeen | FoldersUnreachable | FoldersUnfit
_Queues = QueuesUnread | NoLeafQueue | AmbiguousQueue | ParentQueue | QueueInBothRoles | QueuesVanished
_Options = QueueNamedTwice | BudgetOfNoPreemptableQueue | EveryQueueLeftAlone
_Preemption = PreemptionUnknown | PreemptionOn | YarnPreemptsSomewhere | YarnPreempts | YarnPreemptsWithin
_Seen = ClusterFault | ClusterUnseen | AskedToStop | TicksDone | LoopFailed
ModeReason = _Chosen | _Lock | _Hdfs | _Queues | _Options | ManagerSettling | _Preemption | _Seen
"""Why the daemon acts or does not (``stance``; the loop's state in the API)."""
