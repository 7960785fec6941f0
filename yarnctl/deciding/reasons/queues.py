"""Why a queue's maximum or an application's priority is changed, or not put back."""

from __future__ import annotations

from yarnctl.deciding.reasons.orders import Stopping
from yarnctl.deciding.reasons.rooting import Reason, Said


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
