"""Why room is made for an application, or not: the reasons of decisions and refusals."""

from __future__ import annotations

from yarnctl.deciding.reasons.rooting import Reason, Said


class Unmet(Reason, frozen=True):
    """Asks fit on no node; ``foreseen`` of them are not the job's own yet: its master still starts."""

    foreseen: int = 0


class ClusterFull(Reason, frozen=True):
    """The paper's condition: nothing is free, wherever it is (Natjam, section 3.2)."""


class NoTaskMayStop(Reason, frozen=True):
    """Every task of the jobs that may give is barred."""


class NoJobMayGive(Reason, frozen=True):
    """No job of the victim queues may give to this asker."""


class NoQueueOverGuarantee(Reason, frozen=True):
    """No victim queue uses more than it is guaranteed."""


class QueueAtMaximum(Reason, frozen=True):
    """The asker's queue may not grow."""


class UserAtLimit(Reason, frozen=True):
    """The asker's user holds what one user may."""


class NoNodeLargeEnough(Reason, frozen=True):
    """No single node could hold one container of the ask."""


class OnItsWay(Reason, frozen=True):
    """Open orders will meet what is missing."""


class RoomGoesTo(Reason, frozen=True):
    """The scheduler would give the room to somebody else."""

    application: str
    queue: str


class QueueTakesBack(Reason, frozen=True):
    """The giving queue would be served first once it has given."""

    queue: str


class QueueBelowGuarantee(Reason, frozen=True):
    """The giving queue would use less than it is guaranteed."""

    queue: str


class NotActivated(Reason, frozen=True):
    """The limit of masters keeps the application from being scheduled."""


class MoreUrgentWaits(Reason, frozen=True):
    """With deadlines, only the most urgent application that waits may ask."""


class OthersFirst(Reason, frozen=True):
    """The scheduler serves others before."""


TriggerReason = (
    Unmet
    | ClusterFull
    | NoTaskMayStop
    | NoJobMayGive
    | NoQueueOverGuarantee
    | QueueAtMaximum
    | UserAtLimit
    | NoNodeLargeEnough
    | OnItsWay
    | RoomGoesTo
    | QueueTakesBack
    | QueueBelowGuarantee
    | NotActivated
    | MoreUrgentWaits
    | OthersFirst
    | Said
)
