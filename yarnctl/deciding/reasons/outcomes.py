"""The outcomes of actions: why one was refused, withheld, or may not have been done.

``fault`` and ``text`` are messages of other programs, which are never parsed.
"""

from __future__ import annotations

from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.deciding.reasons.modes import ModeReason
from yarnctl.deciding.reasons.rooting import Reason


class Observing(Reason, frozen=True):
    """Without ``--enforce`` nothing is sent."""


class ClientFault(Reason, frozen=True, tag="fault"):
    """A client's error, with its own message."""

    fault: str


class ManifestUnusable(Reason, frozen=True):
    """No checkpoint can be resumed from; the message of its reader."""

    fault: str


class NoHdfs(Reason, frozen=True):
    """There is no HDFS to write a request to."""


class ForeignAttempt(Reason, frozen=True):
    """The ids do not belong together, or the order is another yarnctl's."""

    attempt: str
    application: str


class NeverSent(Reason, frozen=True):
    """No such order was sent from here."""


class ReleasedAlready(Reason, frozen=True):
    """Its attempt has been ended already."""


class NoRequestThere(Reason, frozen=True):
    """There is no request of ours in HDFS."""


class NoSuchOrder(Reason, frozen=True):
    """There is no such order here."""


class AttemptOver(Reason, frozen=True):
    """The attempt does not run any more; ``state`` as its master reports it."""

    state: str = ""


class CheckpointsUnseen(Reason, frozen=True):
    """The job's checkpoints cannot be read."""


class ManifestOfAnother(Reason, frozen=True):
    """The newest manifest is not the answer to this order."""

    generation: int


class GoneOn(Reason, frozen=True):
    """There is work that is in no checkpoint."""


class HoldOver(Reason, frozen=True):
    """The runner's release wait is over, or too short."""


class NotHoldingYet(Reason, frozen=True):
    """The status line does not show the release wait yet."""


class KillNotAllowed(Reason, frozen=True):
    """``--allow-kill`` was not given."""


class ExecutorBusy(Reason, frozen=True):
    """The executor is gone, or in another container; what its driver says of it."""

    told: str


class BegunMeanwhile(Reason, frozen=True):
    """A reduce that was to be ended before its first key has begun to reduce."""


class NoReduceOf(Reason, frozen=True):
    """The attempt is none of this job's reduces."""

    attempt: str
    application: str


class MasterSilent(Reason, frozen=True):
    """The job's master does not answer."""

    fault: str


class AttemptUnknown(Reason, frozen=True):
    """The job's master does not know the attempt."""


class RunsElsewhere(Reason, frozen=True):
    """The attempt runs in another container than the ordered one."""

    container: str
    ordered: str


class MasterNotReached(Reason, frozen=True):
    """The job's master was not reached to end the attempt."""

    fault: str


class PriorityNotAllowed(Reason, frozen=True):
    """Changing priorities was not allowed."""


class QueueNotNamed(Reason, frozen=True):
    """yarnctl was not given the application's queue."""

    queue: str


class HoldNotAllowed(Reason, frozen=True):
    """``--cap-queue`` was not given."""


class NoVictimQueue(Reason, frozen=True):
    """Only the maximum of a victim queue is changed."""

    queue: str


class OfNoVictimQueue(Reason, frozen=True):
    """The application is in no victim queue."""

    queue: str


class MasterDown(Reason, frozen=True):
    """The job's master is down (in virtual time)."""


class NotInReducePhase(Reason, frozen=True):
    """The attempt cannot be suspended now (in virtual time)."""


class NoValidManifest(Reason, frozen=True):
    """Nothing valid answers this order (in virtual time)."""


class EndedOrForeign(Reason, frozen=True):
    """The attempt has ended, or the order names another (in virtual time)."""


class NotInVirtualTime(Reason, frozen=True):
    """Virtual time changes no queue."""


class NoSuchContainer(Reason, frozen=True):
    """The container does not run."""


class AttemptEnded(Reason, frozen=True):
    """The attempt has ended."""


class NoSuchApplication(Reason, frozen=True):
    """The application does not run."""


OwnOutcome = (
    Observing
    | ClientFault
    | ManifestUnusable
    | NoHdfs
    | ForeignAttempt
    | NeverSent
    | ReleasedAlready
    | NoRequestThere
    | NoSuchOrder
    | AttemptOver
    | CheckpointsUnseen
    | ManifestOfAnother
    | GoneOn
    | HoldOver
    | NotHoldingYet
    | KillNotAllowed
    | BegunMeanwhile
    | ExecutorBusy
    | NoReduceOf
    | MasterSilent
    | AttemptUnknown
    | RunsElsewhere
    | MasterNotReached
    | PriorityNotAllowed
    | QueueNotNamed
    | HoldNotAllowed
    | NoVictimQueue
    | OfNoVictimQueue
    | MasterDown
    | NotInReducePhase
    | NoValidManifest
    | EndedOrForeign
    | NotInVirtualTime
    | NoSuchContainer
    | AttemptEnded
    | NoSuchApplication
)
"""The reasons that only an action's outcome may have."""

OutcomeReason = OwnOutcome | ModeReason | EligibilityReason
