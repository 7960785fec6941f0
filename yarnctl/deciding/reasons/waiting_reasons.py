"""Why a preempting application waits, where no reason of a decision or of the daemon's state says it."""

from __future__ import annotations

from yarnctl.deciding.reasons.demand import TriggerReason
from yarnctl.deciding.reasons.modes import ModeReason
from yarnctl.deciding.reasons.rooting import Reason


class ContainersOrdered(Reason, frozen=True):
    """``sources``: the applications that free them, each with its number of open orders."""

    sentence = "{containers:containers} ordered from {sources:counts}"
    containers: int
    sources: tuple[tuple[str, int], ...]


class WouldOrder(Reason, frozen=True):
    """As ``containers-ordered``, of a daemon that only observes."""

    sentence = "yarnctl would order {containers:containers} from {sources:counts}; it only observes"
    remedy = "run the daemon with --enforce"
    containers: int
    sources: tuple[tuple[str, int], ...]


class TasksEndSoon(Reason, frozen=True):
    sentence = "{tasks} running tasks end by themselves in time, so yarnctl orders nothing"
    tasks: int


class TooManyInFlight(Reason, frozen=True):
    sentence = "the highest allowed number of orders is in flight"
    remedy = "wait for the open orders, or raise --in-flight"


class GrantExpected(Reason, frozen=True):
    """As ``fits-not-granted``, before the time in which YARN grants what fits has passed."""

    sentence = (
        "{containers:containers} fit [nodes?on {nodes:list}|into what orders free]"
        "[more? and {more} more nodes]; YARN grants one container per node and heartbeat, here within"
        " {within_ms:span}"
    )
    containers: int
    nodes: tuple[str, ...]
    more: int
    within_ms: int


class FitsNotGranted(Reason, frozen=True):
    """``nodes``: the first nodes with free capacity for a request, ``more``: the number of others.

    Without a node they fit into containers that orders are about to free, or have just freed.
    """

    sentence = (
        "{containers:containers} fit [nodes?on {nodes:list}|into what orders free]"
        "[more? and {more} more nodes]; the ResourceManager has not granted them"
        "[waited_ms? in {waited_ms:span}]"
        "[reserved?; reservations there: {reserved:list}]"
    )
    containers: int
    nodes: tuple[str, ...]
    more: int = 0
    reserved: tuple[str, ...] = ()
    waited_ms: int = 0


class DecidedNext(Reason, frozen=True):
    """It is new, or its last orders have ended since the newest decision."""

    sentence = "yarnctl decides at its next observation of the cluster"


_Expected = ContainersOrdered | WouldOrder | TasksEndSoon | GrantExpected
_Own = _Expected | TooManyInFlight | FitsNotGranted | DecidedNext
WaitingReason = _Own | TriggerReason | ModeReason
"""Why a preempting application waits (``waiting`` in the API)."""
OwnWaitingReason = _Own
