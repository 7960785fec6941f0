"""Why containers are freed for an application, or not: the reasons of decisions and refusals."""

from __future__ import annotations

from typing import Literal

from yarnctl.deciding.reasons.rooting import Reason


class Unmet(Reason, frozen=True):
    """``predicted`` of the requests are predicted: the job's application master still starts."""

    sentence = "pending requests fit on no node[predicted?; {predicted} of them are predicted, not sent yet]"
    predicted: int = 0


class ClusterFull(Reason, frozen=True):
    """The paper's condition: nothing is free, wherever it is (Natjam, section 3.2)."""

    sentence = "the cluster is full"


class NoTaskMayStop(Reason, frozen=True):
    sentence = "every task of the preemptable jobs is excluded"


class NoJobMayGive(Reason, frozen=True):
    sentence = "no job in the preemptable queues can be preempted for this application"


class NoQueueOverGuarantee(Reason, frozen=True):
    sentence = "no preemptable queue is over its guarantee"


class OutsideHours(Reason, frozen=True):
    """Of the preemptable queues over their guarantee, ``queue`` opens first; ``zone``: of its hours."""

    sentence = (
        "containers of queue {queue} may not be taken at this hour (hours in {zone}); it opens"
        " {opens_at_ms:instant}, local time"
    )
    remedy = "wait, or change hours of the queue in --budgets"
    queue: str
    opens_at_ms: int
    zone: str


class NoQueueGives(Reason, frozen=True):
    sentence = "no queue that may be preempted holds more than its ideal share"


class QueueAtGuarantee(Reason, frozen=True):
    sentence = "the application's queue already has its guarantee"


class NoQueueHolds(Reason, frozen=True):
    """Of these resource types no preemptable queue has as many as one requested container."""

    sentence = "no node has enough free, and no preemptable queue holds enough, of {resources:list}"
    resources: tuple[str, ...]


class QueueAtIdealShare(Reason, frozen=True):
    """Below its guarantee: it requests no more, or queues that may not be preempted hold the rest."""

    sentence = "the application's queue already has its ideal share"


class QueueAtMaximum(Reason, frozen=True):
    sentence = "the application's queue is at its maximum"


class ParentAtMaximum(Reason, frozen=True):
    sentence = (
        "parent queue {queue} is at its maximum"
        "[queue=root? (used and reserved containers exceed the nodes)]; only containers freed below it help"
    )
    queue: str


class FirstRequestTooLarge(Reason, frozen=True):
    """YARN leaves a leaf at the first request that exceeds the headroom (facts/hadoop, section 5)."""

    sentence = (
        "the request of {application}, the first in the queue, exceeds what queue {queue} has left;"
        " YARN serves no request behind it"
    )
    application: str
    queue: str


class UserAtLimit(Reason, frozen=True):
    sentence = "the application's user is at the user limit"


class NoNodeLargeEnough(Reason, frozen=True):
    sentence = "no node is large enough for one requested container"


class OnItsWay(Reason, frozen=True):
    sentence = "open orders already cover the shortfall"


class RoomGoesTo(Reason, frozen=True):
    sentence = "YARN would give the freed container to {application} in queue {queue}"
    application: str
    queue: str


class QueueTakesBack(Reason, frozen=True):
    sentence = "YARN would serve queue {queue} first and give it the freed container again"
    queue: str


class QueueBelowGuarantee(Reason, frozen=True):
    sentence = "queue {queue} would fall below its guarantee"
    queue: str


class NotActivated(Reason, frozen=True):
    """``parallel``: the queue, or a parent, runs as many applications as it may."""

    sentence = (
        "the limit on [parallel?parallel applications|application masters] keeps the application pending"
    )
    remedy = "raise [parallel?max-parallel-apps|maximum-am-resource-percent] of its queue"
    parallel: bool = False


class MoreUrgentWaits(Reason, frozen=True):
    """With deadlines, only the most urgent application with pending requests is served."""

    sentence = "a more urgent application has pending requests"


class PriorityPending(Reason, frozen=True):
    """A container that a less urgent application loses would go back to it."""

    sentence = "YARN still serves {application} first, which is less urgent: its priority is not lower yet"
    remedy = "if yarnctl runs without --allow-priority, add it"
    application: str


class OthersFirst(Reason, frozen=True):
    sentence = "YARN serves other applications first"


class NotGranted(Reason, frozen=True):
    """Whatever keeps YARN from granting them is not modelled: hosts that its master refuses, for example."""

    sentence = (
        "its requests fit into free capacity and YARN does not grant them; a container that was freed for it"
        " did not reach it; no other is freed until YARN grants it one or it sends another request"
    )


class NotModelled(Reason, frozen=True):
    """It requests nodes with a label of which its queue has no part, or what is not modelled.

    ``constrained``: containers with a placement constraint; ``opportunistic``: opportunistic containers.
    """

    sentence = (
        "no container is freed for some requests"
        "[labels?; the queue has no capacity of node labels: {labels:list}]"
        "[resources?; yarnctl does not model resource types: {resources:list}]"
        "[constrained?; yarnctl does not model placement constraints]"
        "[opportunistic?; yarnctl does not model opportunistic containers]"
    )
    labels: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    constrained: bool = False
    opportunistic: bool = False


BindingLimit = Literal["user", "queue", "parent", "masters", "unknown"]
"""The limit that most probably binds: a user's, a queue's or its parent's maximum, that on masters."""


class StandingAside(Reason, frozen=True):
    """``orders``: (order, application that received its container, "" if unknown), of the last ``of``.

    ``holder``: the user at the limit, or the parent queue at its maximum.
    """

    sentence = (
        "no container is freed for queue {queue} until {until_ms:instant}: other applications received"
        " {orders:number} of the last {of} containers freed for it ({orders:receivers}); probable cause:"
        " [limit=user?user {holder} is at the user limit][limit=queue?the queue is at its maximum]"
        "[limit=parent?parent queue {holder} is at its maximum]"
        "[limit=masters?the queue's limit on application masters]"
        "[limit=unknown?the queue's limits (yarnctl check shows them)]"
    )
    remedy = "to end the pause earlier, run yarnctl resume {queue}"
    queue: str
    until_ms: int
    orders: tuple[tuple[str, str], ...]
    of: int
    limit: BindingLimit = "unknown"
    holder: str = ""


class HelpsItself(Reason, frozen=True):
    sentence = "containers of queue {queue} end by themselves, and serve the requests before a lever would"
    queue: str


class LeverHeldBack(Reason, frozen=True):
    """An executor that is asked to leave leaves, whatever becomes of the request."""

    sentence = "the requests are too new for a lever that takes long and cannot be withdrawn"


class SuspensionsFail(Reason, frozen=True):
    """``failed``: in a row."""

    sentence = (
        "no task is suspended until {until_ms:instant}, and then one on trial: {failed:orders} to suspend"
        " stopped no task"
    )
    remedy = "read the standard error of the tasks, or yarnctl check: can checkpoints be written?"
    until_ms: int
    failed: int


_Short = Unmet | ClusterFull
_NoVictim = NoTaskMayStop | NoJobMayGive | NoQueueOverGuarantee | NoQueueGives | NoQueueHolds | OutsideHours
_Queue = QueueAtMaximum | ParentAtMaximum | FirstRequestTooLarge | UserAtLimit
_Share = QueueAtGuarantee | QueueAtIdealShare
_Limit = _Queue | _Share | NoNodeLargeEnough | OnItsWay | NotActivated | NotModelled
_Urgency = MoreUrgentWaits | PriorityPending
_Governed = HelpsItself | LeverHeldBack | SuspensionsFail
_Order = RoomGoesTo | QueueTakesBack | QueueBelowGuarantee | _Urgency | OthersFirst | StandingAside
TriggerReason = _Short | _NoVictim | _Limit | _Order | _Governed | NotGranted
"""Why containers are freed for an application, or not (``decision``, ``refusal``)."""
