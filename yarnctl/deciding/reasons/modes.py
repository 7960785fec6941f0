"""Why the daemon acts or does not: the reasons of the loop's states."""

from __future__ import annotations

from yarnctl.deciding.reasons.queue_naming import (
    AmbiguousQueue,
    BudgetOfNoVictim,
    NoLeafQueue,
    ParentQueue,
    QueueInBothRoles,
    QueueNamedTwice,
    QueuesUnread,
    QueuesVanished,
)
from yarnctl.deciding.reasons.rooting import Reason


class NothingInTheWay(Reason, frozen=True):
    """No reason against acting: it enforces."""


class NotEnforcing(Reason, frozen=True):
    """It was started without ``--enforce``."""


class Continued(Reason, frozen=True):
    """A person ended a pause."""


class Paused(Reason, frozen=True):
    """A person paused the loop; ``text`` is that person's reason, or a default."""

    text: str


class LockHeldElsewhere(Reason, frozen=True):
    """Another yarnctl has the lock."""


class LockRanOut(Reason, frozen=True):
    """A tick lasted longer than the lock, which no other yarnctl has acquired."""


class HdfsUnwritable(Reason, frozen=True):
    """A request, or the lock, could not be written: no request is sent."""

    fault: str


class FoldersNotSeen(Reason, frozen=True):
    """Our folders in HDFS have not been checked since the start."""


class FoldersUnreachable(Reason, frozen=True):
    """Our folders in HDFS cannot be read."""

    fault: str


class FoldersUnfit(Reason, frozen=True):
    """Our folders in HDFS are not safe; what was found, and what to do."""

    seen: str
    fix: str


class Misdirected(Reason, frozen=True):
    """Freed room was misdirected too often: ``orders`` and which application got each, of the last ``of``."""

    orders: tuple[tuple[str, str], ...]
    of: int


class ManagerSettling(Reason, frozen=True):
    """Another ResourceManager answers, and not all of its nodes have registered yet."""


class PreemptionUnknown(Reason, frozen=True):
    """The ResourceManager's configuration has not been read."""


class YarnPreemptsSomewhere(Reason, frozen=True):
    """The monitor is on, and no victim queue has been observed."""

    key: str


class YarnPreempts(Reason, frozen=True):
    """YARN itself preempts containers of this victim queue."""

    queue: str
    key: str


class YarnPreemptsWithin(Reason, frozen=True):
    """YARN itself preempts containers within this victim queue."""

    queue: str
    key: str


class ClusterFault(Reason, frozen=True):
    """The cluster cannot be observed; the message of the client that failed."""

    fault: str


class ClusterUnseen(Reason, frozen=True):
    """The cluster cannot be observed."""


class AskedToStop(Reason, frozen=True):
    """A person, or a signal, stopped it."""


class TicksDone(Reason, frozen=True):
    """It has done the number of ticks that it was started for."""

    ticks: int


class LoopFailed(Reason, frozen=True):
    """An error ended the loop."""

    kind: str
    fault: str


ModeReason = (
    NothingInTheWay
    | NotEnforcing
    | Continued
    | Paused
    | LockHeldElsewhere
    | LockRanOut
    | HdfsUnwritable
    | FoldersNotSeen
    | FoldersUnreachable
    | FoldersUnfit
    | Misdirected
    | ManagerSettling
    | QueuesUnread
    | NoLeafQueue
    | AmbiguousQueue
    | ParentQueue
    | QueueInBothRoles
    | BudgetOfNoVictim
    | QueueNamedTwice
    | QueuesVanished
    | PreemptionUnknown
    | YarnPreemptsSomewhere
    | YarnPreempts
    | YarnPreemptsWithin
    | ClusterFault
    | ClusterUnseen
    | AskedToStop
    | TicksDone
    | LoopFailed
)
