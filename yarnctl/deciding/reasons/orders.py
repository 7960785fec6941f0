"""Why an order moved, or works for somebody else: the reasons of transitions and transfers.

Below them: why a queue's maximum or an application's priority is changed, or not put back.
"""

from __future__ import annotations

from yarnctl.deciding.model import Ending
from yarnctl.deciding.reasons.rooting import Reason, Said


class ContainerHasEnded(Reason, frozen=True, tag="container-ended"):
    """The order's container is gone."""

    ending: Ending


class ApplicationHasEnded(Reason, frozen=True, tag="application-ended"):
    """The asker, or the job that was to give, has ended."""

    application: str


class WithOrder(Reason, frozen=True):
    """Another order of its group was answered."""

    order: str


class Unclaimed(Reason, frozen=True):
    """Nobody was seen to get the room in time; ``asker_waits``: its asker was seen to wait all the while."""

    limit_ms: int
    asker_waits: bool = False


class NoProgress(Reason, frozen=True):
    """The attempt has shown no sign of life for too long."""

    limit_ms: int


class AskGone(Reason, frozen=True):
    """The asker stopped asking, and no grant was seen."""


class RoomElsewhere(Reason, frozen=True):
    """The asker finds room that nobody has to make."""


class NobodyWaits(Reason, frozen=True):
    """No production application waits for anything."""


class Stopping(Reason, frozen=True):
    """yarnctl stops."""


class OnlyObserved(Reason, frozen=True):
    """It was made by a controller that only observed: nobody was asked."""


class AnotherManager(Reason, frozen=True):
    """Another ResourceManager answers."""


class GivenRoomOf(Reason, frozen=True):
    """``application`` was given the room of ``order``, so one of its own works for that order's asker."""

    application: str
    order: str


class AskerHasRoom(Reason, frozen=True):
    """``application`` finds room elsewhere, so its order works for somebody else."""

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
    | Said
)


class QueueServing(Reason, frozen=True):
    """Asks of production are being served: the queue may not grow meanwhile."""


class DemandOver(Reason, frozen=True):
    """No production application waits any more."""


class LeftByEarlierRun(Reason, frozen=True):
    """An earlier run left it so."""


class MayNotAct(Reason, frozen=True):
    """yarnctl may not act now, so nothing may stay changed."""


class QueueGone(Reason, frozen=True):
    """There is no such queue any more."""


class ChangedByOthers(Reason, frozen=True):
    """Somebody else has set another maximum since."""


QueueReason = (
    QueueServing | DemandOver | LeftByEarlierRun | Stopping | MayNotAct | QueueGone | ChangedByOthers | Said
)
