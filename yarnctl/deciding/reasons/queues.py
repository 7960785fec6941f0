"""Why a queue's maximum or an application's priority is changed, or not put back."""

from __future__ import annotations

from yarnctl.deciding.reasons.orders import Stopping
from yarnctl.deciding.reasons.rooting import Reason, Said


class QueueServing(Reason):
    """Asks of production are being served: the queue may not grow meanwhile."""


class DemandOver(Reason):
    """No production application waits any more."""


class LeftByEarlierRun(Reason):
    """An earlier run left it so."""


class MayNotAct(Reason):
    """yarnctl may not act now, so nothing may stay changed."""


class QueueGone(Reason):
    """There is no such queue any more."""


class ChangedByOthers(Reason):
    """Somebody else has set another maximum since."""


QueueReason = (
    QueueServing | DemandOver | LeftByEarlierRun | Stopping | MayNotAct | QueueGone | ChangedByOthers | Said
)
