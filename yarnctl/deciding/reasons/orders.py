"""Why an order moved, or was transferred: the reasons of transitions and transfers.

Below them: why a queue's maximum or an application's priority is changed, or not restored.
"""

from __future__ import annotations

from yarnctl.deciding.model import Ending
from yarnctl.deciding.reasons.rooting import Reason


class ContainerHasEnded(Reason, frozen=True, tag="container-ended"):
    """The order's container is gone."""

    ending: Ending


class ApplicationHasEnded(Reason, frozen=True, tag="application-ended"):
    """The asker, or the victim, has ended."""

    application: str


class WithOrder(Reason, frozen=True):
    """Another order of its group was answered."""

    order: str


class Unclaimed(Reason, frozen=True):
    """No grant of the room was observed in time; ``asker_waits``: its asker had pending asks throughout."""

    limit_ms: int
    asker_waits: bool = False


class NoProgress(Reason, frozen=True):
    """The attempt was not seen alive for too long."""

    limit_ms: int


class AskGone(Reason, frozen=True):
    """The asker stopped asking, and no grant was observed."""


class RoomElsewhere(Reason, frozen=True):
    """The asker's asks fit into room that is free without a preemption."""


class NobodyWaits(Reason, frozen=True):
    """No production application has pending asks."""


class Stopping(Reason, frozen=True):
    """yarnctl stops."""


class OnlyObserved(Reason, frozen=True):
    """It was made by a controller that only observed: no request was sent."""


class AnotherManager(Reason, frozen=True):
    """Another ResourceManager answers."""


class GivenRoomOf(Reason, frozen=True):
    """``application`` was given the room of ``order``, so an order of its own is transferred in exchange."""

    application: str
    order: str


class AskerHasRoom(Reason, frozen=True):
    """``application`` is served elsewhere, so its order is transferred."""

    application: str


MoveReason = (
    ContainerHasEnded
    | ApplicationHasEnded
    | WithOrder
    | Unclaimed
    | NoProgress
    | AskGone
    | RoomElsewhere
    | NobodyWaits
    | Stopping
    | OnlyObserved
    | AnotherManager
    | GivenRoomOf
    | AskerHasRoom
)


class QueueServing(Reason, frozen=True):
    """Asks of production are being served: the queue may not grow meanwhile."""


class DemandOver(Reason, frozen=True):
    """No production application has pending asks any more."""


class LeftByEarlierRun(Reason, frozen=True):
    """An earlier run left it so."""


class MayNotAct(Reason, frozen=True):
    """yarnctl is blocked, so nothing may stay changed."""


class QueueGone(Reason, frozen=True):
    """There is no such queue any more."""


class ChangedByOthers(Reason, frozen=True):
    """Another maximum has been set since, not by yarnctl."""


QueueReason = (
    QueueServing | DemandOver | LeftByEarlierRun | Stopping | MayNotAct | QueueGone | ChangedByOthers
)
