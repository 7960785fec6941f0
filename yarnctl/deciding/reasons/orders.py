"""Why an order moved, or works for somebody else: the reasons of transitions and transfers."""

from __future__ import annotations

from yarnctl.deciding.model import Ending
from yarnctl.deciding.reasons.rooting import Reason, Said


class ContainerHasEnded(Reason, tag="container-ended"):
    """The order's container is gone."""

    ending: Ending


class ApplicationHasEnded(Reason, tag="application-ended"):
    """The asker, or the job that was to give, has ended."""

    application: str


class WithOrder(Reason):
    """Another order of its group was answered."""

    order: str


class Unclaimed(Reason):
    """Nobody was seen to get the room in time; ``asker_waits``: its asker was seen to wait all the while."""

    limit_ms: int
    asker_waits: bool = False


class NoProgress(Reason):
    """The attempt has shown no sign of life for too long."""

    limit_ms: int


class AskGone(Reason):
    """The asker stopped asking, and no grant was seen."""


class RoomElsewhere(Reason):
    """The asker finds room that nobody has to make."""


class NobodyWaits(Reason):
    """No production application waits for anything."""


class Stopping(Reason):
    """yarnctl stops."""


class OnlyObserved(Reason):
    """It was made by a controller that only observed: nobody was asked."""


class AnotherManager(Reason):
    """Another ResourceManager answers."""


class GivenRoomOf(Reason):
    """``application`` was given the room of ``order``, so one of its own works for that order's asker."""

    application: str
    order: str


class AskerHasRoom(Reason):
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
