"""Reasons of admission: of a plan, of an end, of a lesson, and why the gate cannot decide.

Law: see ``rooting``; the sentences are in docs/design-notes.md.
"""

from __future__ import annotations

from typing import Literal

from yarnctl.deciding.reasons.placements import NothingFits
from yarnctl.deciding.reasons.rooting import Reason

# --- why an admission has this verdict


class Undecided(Reason, frozen=True):
    """No round has decided on it yet."""


class FreeNow(Reason, frozen=True):
    """As many containers as needed are free; their number."""

    containers: int


class Needs(Reason, frozen=True):
    """More containers are needed than are free; ``start``: whether it is known when they will be."""

    containers: int
    free: int
    start: Literal["known", "unknown", "too-late"]


class DeadlinePassed(Reason, frozen=True):
    """It waited beyond its deadline."""


class NeedsTooManyByNow(Reason, frozen=True):
    """The time to its deadline is too short for the most containers that it can use."""

    containers: int
    usable: int


class DeadlineUnreachable(Reason, frozen=True):
    """No number of containers meets the deadline any more."""


class WorkUnknown(Reason, frozen=True):
    """There is no estimate, and the mechanism needs one."""


class NoDeadline(Reason, frozen=True):
    """The request names no deadline, and the mechanism needs one."""


class NeedsMoreThanItCanUse(Reason, frozen=True):
    """By its estimate it needs more containers than it can use at once."""

    containers: int
    usable: int


class NeedsMoreThanThereIs(Reason, frozen=True):
    """By its estimate it needs more containers than the cluster has."""

    containers: int
    capacity: int


class PaidFor(Reason, frozen=True):
    """Its deadline has this price, which was agreed and can be paid."""

    price_mtokens: int


class AwaitsTurn(Reason, frozen=True):
    """Its deadline is sold at this price; it is submitted when its turn comes, not before."""

    price_mtokens: int
    turn_at_ms: int


class NoAccount(Reason, frozen=True):
    """It names no account that is known ("": none at all), and deadlines have a price."""

    account: str = ""


class TooEarly(Reason, frozen=True):
    """Its deadline is before the earliest that breaks no promise."""

    earliest_at_ms: int


class CostsMore(Reason, frozen=True):
    """The deadline costs more than was agreed; ``within_at_ms``: the earliest that would not."""

    price_mtokens: int
    deadline_at_ms: int
    most_mtokens: int
    within_at_ms: int | None = None


class CannotPay(Reason, frozen=True):
    """The deadline costs more than the account holds."""

    price_mtokens: int
    deadline_at_ms: int
    held_mtokens: int


class CheapestInTime(Reason, frozen=True):
    """Of all that ends by the deadline this costs the least: the framework, its containers, the cost."""

    kind: str
    containers: int
    cost_mtokens: int


class LeastLoadedPool(Reason, frozen=True):
    """Of the pools that take it this has the fewest applications, with so many containers to give."""

    pool: str
    containers: int


class StartsLater(Reason, frozen=True):
    """Its containers are reserved in a pool from an instant on, and it is submitted then."""

    pool: str
    containers: int
    start_at_ms: int


class NoOptions(Reason, frozen=True):
    """It does not say as what it may be run, and this mechanism places applications."""


PlanReason = (
    Undecided
    | FreeNow
    | Needs
    | DeadlinePassed
    | NeedsTooManyByNow
    | DeadlineUnreachable
    | WorkUnknown
    | NoDeadline
    | NeedsMoreThanItCanUse
    | NeedsMoreThanThereIs
    | PaidFor
    | AwaitsTurn
    | NoAccount
    | TooEarly
    | CostsMore
    | CannotPay
    | CheapestInTime
    | LeastLoadedPool
    | StartsLater
    | NoOptions
    | NothingFits
)

# --- why an admission has ended


class WithdrawnByAsker(Reason, frozen=True):
    """Its sender has withdrawn it."""


class LeaseOver(Reason, frozen=True):
    """Its lease ended."""

    lease_ms: int


class NotSubmitted(Reason, frozen=True):
    """No application used its reservation in time."""

    held_ms: int


class EndedAs(Reason, frozen=True):
    """Its application ended, in this state."""

    state: str


class ManagerForgot(Reason, frozen=True):
    """The ResourceManager does not list its application any more."""


ClosedReason = WithdrawnByAsker | LeaseOver | NotSubmitted | EndedAs | ManagerForgot

# --- why nothing was learned of a job


class NumbersImpossible(Reason, frozen=True):
    """A number that has to be above 0 is not."""


class NoneWouldDo(Reason, frozen=True):
    """No number of containers would have met its deadline."""

    work_ms: int
    deadline_ms: int
    most: int


class NotInHistoryYet(Reason, frozen=True):
    """The history server does not list the job yet."""

    server: str
    job: str


class HistoryBusy(Reason, frozen=True):
    """Too many questions are queued already."""


class HistoryFault(Reason, frozen=True):
    """The history server did not answer."""

    fault: str


class HistoryUnusable(Reason, frozen=True):
    """The history server's answer is not understood, or a refusal."""

    fault: str


class HistoryLost(Reason, frozen=True):
    """The job was listed, and is unknown now."""

    job: str


class EndedOtherwise(Reason, frozen=True):
    """The job did not succeed ("": its terminal state is not known)."""

    state: str = ""


class RanInMaster(Reason, frozen=True):
    """An uber job: its tasks had no containers."""


class NoSpansTold(Reason, frozen=True):
    """Counters of the tasks' times are missing."""

    job: str


class NoInstantsTold(Reason, frozen=True):
    """The job's start or end is missing."""

    job: str


class NoUsageTold(Reason, frozen=True):
    """The start of ``job`` (an application's id), its end, or the memory that it held, is missing."""

    job: str


LessonReason = (
    NumbersImpossible
    | NoneWouldDo
    | NotInHistoryYet
    | HistoryBusy
    | HistoryFault
    | HistoryUnusable
    | HistoryLost
    | EndedOtherwise
    | RanInMaster
    | NoSpansTold
    | NoInstantsTold
    | NoUsageTold
)

ASK_AGAIN = (NotInHistoryYet, HistoryBusy, HistoryFault)
"""The history server may list it later."""

# --- why the gate cannot decide


class ApplicationsUnseen(Reason, frozen=True):
    """The ResourceManager does not list the applications."""

    fault: str


class SizeUnseen(Reason, frozen=True):
    """The ResourceManager does not report how large the cluster is."""

    fault: str


class NoRoomForContainer(Reason, frozen=True):
    """No node is large enough for one container of the gate's size."""


GateReason = ApplicationsUnseen | SizeUnseen | NoRoomForContainer
"""... or a fault of a client: see ``outcomes``."""
