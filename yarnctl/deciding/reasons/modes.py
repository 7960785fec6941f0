"""Why the daemon acts or does not: the reasons of stances, and of the loop's state."""

from __future__ import annotations

from yarnctl.deciding.reasons.rooting import Reason, Said


class NothingInTheWay(Reason, frozen=True):
    """Nothing stands in the way: it enforces."""


class NotEnforcing(Reason, frozen=True):
    """It was started without ``--enforce``."""


class Continued(Reason, frozen=True):
    """A person took a pause back."""


class Paused(Reason, frozen=True):
    """A person paused the loop; ``text`` is what that person said, or was said for them."""

    text: str


class LockHeldElsewhere(Reason, frozen=True):
    """Another yarnctl holds the lock."""


class LockRanOut(Reason, frozen=True):
    """A tick lasted longer than the lock, which nobody else has taken."""


class HdfsUnwritable(Reason, frozen=True):
    """A request, or the lock, could not be written: nobody is asked."""

    fault: str


class FoldersNotSeen(Reason, frozen=True):
    """Our folders in HDFS have not been seen since the start."""


class FoldersUnreachable(Reason, frozen=True):
    """Our folders in HDFS cannot be seen."""

    fault: str


class FoldersUnfit(Reason, frozen=True):
    """Our folders in HDFS are not safe; what was seen, and what to do."""

    seen: str
    fix: str


class Misdirected(Reason, frozen=True):
    """Freed room went to others too often: ``orders`` and who got each, of the last ``of``."""

    orders: tuple[tuple[str, str], ...]
    of: int


class ManagerSettling(Reason, frozen=True):
    """Another ResourceManager answers, and its nodes have not all come yet."""


class PreemptionUnknown(Reason, frozen=True):
    """The ResourceManager's configuration has not been read."""


class YarnPreemptsSomewhere(Reason, frozen=True):
    """The monitor is on, and no victim queue has been seen."""

    key: str


class YarnPreempts(Reason, frozen=True):
    """YARN takes containers from this victim queue by itself."""

    queue: str
    key: str


class YarnPreemptsWithin(Reason, frozen=True):
    """YARN takes containers within this victim queue by itself."""

    queue: str
    key: str


class ClusterFault(Reason, frozen=True):
    """The cluster cannot be seen; the words of the client that failed."""

    fault: str


class ClusterUnseen(Reason, frozen=True):
    """The cluster cannot be seen."""


class AskedToStop(Reason, frozen=True):
    """A person, or a signal, asked it to stop."""


class TicksDone(Reason, frozen=True):
    """It has done as many ticks as it was told to."""

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
    | PreemptionUnknown
    | YarnPreemptsSomewhere
    | YarnPreempts
    | YarnPreemptsWithin
    | ClusterFault
    | ClusterUnseen
    | AskedToStop
    | TicksDone
    | LoopFailed
    | Said
)
