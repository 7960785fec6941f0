"""The outcomes of actions: why an action was refused, withheld, or may not have been carried out.

``fault`` and ``text`` are messages of other programs, which are never parsed.
"""

from __future__ import annotations

from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.deciding.reasons.modes import ModeReason
from yarnctl.deciding.reasons.rooting import Reason


class Observing(Reason, frozen=True):
    sentence = "yarnctl only observes and changes nothing without --enforce"


class ClientFault(Reason, frozen=True, tag="fault"):
    """The message of a client's error."""

    sentence = "{fault}"
    fault: str


class ManifestUnusable(Reason, frozen=True):
    """No checkpoint can be resumed from; the message of its reader."""

    sentence = "{fault}"
    fault: str


class NoHdfs(Reason, frozen=True):
    sentence = "yarnctl has no HDFS to write the order to"
    remedy = "set --name-node"


class ForeignAttempt(Reason, frozen=True):
    sentence = (
        "{attempt} is not a task of {application} that yarnctl may order, or another yarnctl sent the order"
    )
    attempt: str
    application: str


class NeverSent(Reason, frozen=True):
    sentence = "this yarnctl has not sent such an order"


class ReleasedAlready(Reason, frozen=True):
    sentence = "the attempt has been ended already"


class NoRequestThere(Reason, frozen=True):
    sentence = "HDFS holds no order for the attempt"


class NoSuchOrder(Reason, frozen=True):
    sentence = "the order does not exist"


class AttemptOver(Reason, frozen=True):
    """``state`` as the application master reports it, "" if it does not."""

    sentence = "the attempt no longer runs[state? ({state})]"
    state: str = ""


class CheckpointsUnseen(Reason, frozen=True):
    sentence = "the job's checkpoints cannot be read"


class ManifestOfAnother(Reason, frozen=True):
    sentence = "the manifest of generation {generation} does not belong to this order"
    generation: int


class GoneOn(Reason, frozen=True):
    sentence = "the task has processed input after its checkpoint"


class HoldOver(Reason, frozen=True):
    sentence = (
        "the release wait has expired or is about to (or clocks differ); the task has resumed or will resume"
    )


class NotHoldingYet(Reason, frozen=True):
    sentence = "the task has not reported that it waits for its release"


class KillNotAllowed(Reason, frozen=True):
    """Neither ``--kill-on-timeout`` nor ``--mix`` was given for it."""

    sentence = "the settings do not allow yarnctl to kill the task; its work would be lost"


class ExecutorBusy(Reason, frozen=True):
    """``report``: what its driver, or its JobManager, reports."""

    sentence = "the executor or worker cannot be drained: {report}"
    report: str


class BegunMeanwhile(Reason, frozen=True):
    """A reduce is killed before its first key only."""

    sentence = "the reduce has processed input meanwhile; its work would be lost"


class NoReduceOf(Reason, frozen=True):
    sentence = "{attempt} is not a reduce of {application}"
    attempt: str
    application: str


class MasterSilent(Reason, frozen=True):
    sentence = "the application master does not answer: {fault}"
    fault: str


class AttemptUnknown(Reason, frozen=True):
    sentence = "the application master does not know the attempt"


class RunsElsewhere(Reason, frozen=True):
    sentence = "the attempt runs in {container}, not in {ordered}"
    container: str
    ordered: str


class MasterNotReached(Reason, frozen=True):
    sentence = "the application master cannot be reached: {fault}"
    fault: str


class PriorityNotAllowed(Reason, frozen=True):
    sentence = "yarnctl may not change priorities"
    remedy = "set --allow-priority"


class QueueNotNamed(Reason, frozen=True):
    sentence = "the application's queue {queue} is neither preempting nor preemptable"
    queue: str


class HoldNotAllowed(Reason, frozen=True):
    sentence = "yarnctl may not cap queues"
    remedy = "set --cap-queue"


class SwitchNotAllowed(Reason, frozen=True):
    sentence = "yarnctl may not switch YARN's own preemption"
    remedy = "set --yarn-preemption switch"


class NoPreemptableQueue(Reason, frozen=True):
    sentence = "queue {queue} is not preemptable"
    queue: str


class OfNoPreemptableQueue(Reason, frozen=True):
    sentence = "the application's queue {queue} is not preemptable"
    queue: str


class MasterDown(Reason, frozen=True):
    """In virtual time, as the reasons below."""

    sentence = "the application master is down"


class NotInReducePhase(Reason, frozen=True):
    sentence = "the attempt is not in its reduce phase, or an order was sent already"


class NoValidManifest(Reason, frozen=True):
    sentence = "the order has no valid manifest"


class EndedOrForeign(Reason, frozen=True):
    sentence = "the attempt has ended, or the order names another attempt"


class NotInVirtualTime(Reason, frozen=True):
    sentence = "queues cannot be changed in virtual time"


class NoSuchContainer(Reason, frozen=True):
    sentence = "the container does not run"


class AttemptEnded(Reason, frozen=True):
    sentence = "the attempt has ended"


class NoSuchApplication(Reason, frozen=True):
    sentence = "the application does not run"


_Unsent = Observing | ClientFault | NoHdfs | ForeignAttempt | NeverSent | NoRequestThere | NoSuchOrder
_Checkpoint = ManifestUnusable | CheckpointsUnseen | ManifestOfAnother | GoneOn | HoldOver | NotHoldingYet
_Kill = KillNotAllowed | BegunMeanwhile | ExecutorBusy | NoReduceOf | AttemptOver | AttemptUnknown
_Master = MasterSilent | MasterNotReached | RunsElsewhere | ReleasedAlready
_Queue = QueueNotNamed | NoPreemptableQueue | OfNoPreemptableQueue
_Permission = PriorityNotAllowed | HoldNotAllowed | SwitchNotAllowed | _Queue
_Virtual = MasterDown | NotInReducePhase | NoValidManifest | EndedOrForeign | NotInVirtualTime
_Gone = NoSuchContainer | AttemptEnded | NoSuchApplication
OwnOutcome = _Unsent | _Checkpoint | _Kill | _Master | _Permission | _Virtual | _Gone
"""The reasons that only the outcome of an action may have (``refused``, ``unknown``, ``withheld``)."""

OutcomeReason = OwnOutcome | ModeReason | EligibilityReason
