"""Why room is made for an application, or not: the reasons of decisions and refusals."""

from __future__ import annotations

from yarnctl.deciding.reasons.rooting import Reason


class Unmet(Reason, frozen=True):
    """Asks fit on no node; ``foreseen`` of them are predicted demand: the job's master still starts."""

    foreseen: int = 0


class ClusterFull(Reason, frozen=True):
    """The paper's condition: nothing is free, wherever it is (Natjam, section 3.2)."""


class NoTaskMayStop(Reason, frozen=True):
    """Every task of the preemptable jobs is excluded."""


class NoJobMayGive(Reason, frozen=True):
    """No job of the victim queues may be preempted for this asker."""


class NoQueueOverGuarantee(Reason, frozen=True):
    """No victim queue uses more than its guarantee."""


class QueueAtMaximum(Reason, frozen=True):
    """The asker's queue is at its maximum."""


class UserAtLimit(Reason, frozen=True):
    """The asker's user uses the most that one user may."""


class NoNodeLargeEnough(Reason, frozen=True):
    """No single node is large enough for one container of the ask."""


class OnItsWay(Reason, frozen=True):
    """Open orders will meet the shortfall."""


class RoomGoesTo(Reason, frozen=True):
    """The scheduler would give the room to another application."""

    application: str
    queue: str


class QueueTakesBack(Reason, frozen=True):
    """The victim queue would be served first after the preemption."""

    queue: str


class QueueBelowGuarantee(Reason, frozen=True):
    """The victim queue would use less than its guarantee."""

    queue: str


class NotActivated(Reason, frozen=True):
    """The limit of masters keeps the application from being scheduled."""


class MoreUrgentWaits(Reason, frozen=True):
    """With deadlines, only the most urgent application with pending asks may be served."""


class OthersFirst(Reason, frozen=True):
    """The scheduler serves other applications before."""


class NotModelled(Reason, frozen=True):
    """It requests nodes with a label, or a resource beside memory and vcores; yarnctl models neither."""

    labels: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


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
    | NotModelled
)
