"""Why an order moved or was transferred, and why a setting of another owner is lowered or restored."""

from __future__ import annotations

from yarnctl.deciding.model import Ending
from yarnctl.deciding.reasons.rooting import Reason


class ContainerHasEnded(Reason, frozen=True, tag="container-ended"):
    sentence = "the container has ended: {ending}"
    ending: Ending


class ApplicationHasEnded(Reason, frozen=True, tag="application-ended"):
    sentence = "{application} has ended"
    application: str


class WithOrder(Reason, frozen=True):
    sentence = "settled together with order {order} of the same group"
    order: str


class Unclaimed(Reason, frozen=True):
    sentence = (
        "no application received the freed container within {limit_ms:span}"
        "[requester_waits?; the requesting application still waits]"
    )
    limit_ms: int
    requester_waits: bool = False


class NoProgress(Reason, frozen=True):
    """The attempt was not observed to be alive for the time-out."""

    sentence = "no progress for {limit_ms:span}"
    limit_ms: int


class RequestGone(Reason, frozen=True):
    """The application stopped requesting, and no grant was observed."""

    sentence = "the request is no longer pending"


class RoomElsewhere(Reason, frozen=True):
    sentence = "the requests fit into free capacity"


class NoPendingRequests(Reason, frozen=True):
    sentence = "no production application has pending requests"


class Stopping(Reason, frozen=True):
    sentence = "yarnctl is stopping"


class OnlyObserved(Reason, frozen=True):
    sentence = "yarnctl only observed and sent no order"


class WouldBeFree(Reason, frozen=True):
    sentence = "it would have freed its container after {after_ms:span}"
    after_ms: int


class ServedOtherwise(Reason, frozen=True):
    sentence = "{application} received a container without this order"
    application: str


class GivenRoomOf(Reason, frozen=True):
    """An order of the application's own is transferred in exchange."""

    sentence = "{application} received the container that order {order} freed"
    application: str
    order: str


class RequesterHasRoom(Reason, frozen=True):
    sentence = "the requests of {application} fit into free capacity"
    application: str


_Moved = ContainerHasEnded | ApplicationHasEnded | WithOrder | Unclaimed | NoProgress
_Needless = RequestGone | RoomElsewhere | NoPendingRequests | Stopping | OnlyObserved
_Simulated = WouldBeFree | ServedOtherwise
_Passed = GivenRoomOf | RequesterHasRoom
MoveReason = _Moved | _Needless | _Simulated | _Passed
"""Why an order moved or was transferred (``transition``, ``transfer``)."""


class QueueServing(Reason, frozen=True):
    """The queue may not grow meanwhile."""

    sentence = "production requests are being served"


class LeaderActs(Reason, frozen=True):
    """With ``--yarn-preemption switch``."""

    sentence = "yarnctl acts, and YARN's own preemption would kill what it frees"


class DemandOver(Reason, frozen=True):
    sentence = "no production application has pending requests any more"


class NotRankedLately(Reason, frozen=True):
    """Of a priority: its application ranks again with its next pending request."""

    sentence = "no ranking of the last {held_ms:span} had a pending request of the application"
    held_ms: int


class LeftByEarlierRun(Reason, frozen=True):
    sentence = "an earlier run left the value changed"


class MayNotAct(Reason, frozen=True):
    sentence = "yarnctl is blocked and keeps nothing changed"


class TargetGone(Reason, frozen=True):
    """The queue was removed, or the application has ended."""

    sentence = "it no longer exists"


class ChangedByOthers(Reason, frozen=True):
    sentence = "another program or user has changed the value since"


class DeadlineOrder(Reason, frozen=True):
    sentence = "applications are served in the order of their deadlines"


class ReadBack(Reason, frozen=True):
    sentence = "the value before the change was read back"


class NotChanged(Reason, frozen=True):
    sentence = "the request to change the value was rejected"


class TakenOver(Reason, frozen=True):
    sentence = "another process restores the value"


class OperatorRestores(Reason, frozen=True):
    sentence = "an operator ran yarnctl restore"


_Lowered = QueueServing | DeadlineOrder | LeaderActs
_Due = DemandOver | NotRankedLately | LeftByEarlierRun | Stopping | MayNotAct | OperatorRestores
_Ended = ReadBack | TargetGone | ChangedByOthers | NotChanged | TakenOver
ChangeReason = _Lowered | _Due | _Ended
"""Why a setting is lowered, restored, or no longer restored (``lowering``, ``restoring``, ``restored``)."""
