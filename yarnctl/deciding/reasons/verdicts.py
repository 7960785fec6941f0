"""Reasons of admission: of a plan, of an end, of a lesson, and what keeps the gate from deciding.

Law: see ``rooting``; the sentences are in docs/design-notes.md.
"""

from __future__ import annotations

from typing import Literal

from yarnctl.deciding.reasons.rooting import Reason, Said

# --- why an admission is decided so


class Undecided(Reason, frozen=True):
    """No round has decided on it yet."""


class FreeNow(Reason, frozen=True):
    """So many containers are free."""

    containers: int


class Needs(Reason, frozen=True):
    """More containers are needed than are free; ``start``: whether it can be told when they will be."""

    containers: int
    free: int
    start: Literal["known", "unknown", "too-late"]


class DeadlinePassed(Reason, frozen=True):
    """It waited beyond its deadline."""


class NeedsTooManyByNow(Reason, frozen=True):
    """What is left of its time is too short for the containers that it can use."""

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
    | Said
)

# --- why an admission is over


class WithdrawnByAsker(Reason, frozen=True):
    """Who asked has taken it back."""


class LeaseOver(Reason, frozen=True):
    """Its lease ended."""

    lease_ms: int


class NotSubmitted(Reason, frozen=True):
    """No application took it while its containers were reserved."""

    held_ms: int


class EndedAs(Reason, frozen=True):
    """Its application ended, in this state."""

    state: str


class ManagerForgot(Reason, frozen=True):
    """The ResourceManager does not list its application any more."""


ClosedReason = WithdrawnByAsker | LeaseOver | NotSubmitted | EndedAs | ManagerForgot | Said

# --- why nothing was learned of a job


class NumbersImpossible(Reason, frozen=True):
    """A number that has to be above 0 is not."""


class NoneWouldDo(Reason, frozen=True):
    """Its deadline could not be met with any number of containers."""

    work_ms: int
    deadline_ms: int
    most: int


class NotInHistoryYet(Reason, frozen=True):
    """The history server does not list the job yet."""

    server: str
    job: str


class HistoryBusy(Reason, frozen=True):
    """Too many questions wait already."""


class HistoryFault(Reason, frozen=True):
    """The history server could not be asked."""

    fault: str


class HistoryUnusable(Reason, frozen=True):
    """The history server's answer is not understood, or refused."""

    fault: str


class HistoryLost(Reason, frozen=True):
    """The job was listed, and is not known any more."""

    job: str


class EndedOtherwise(Reason, frozen=True):
    """The job did not succeed ("": nobody says how it ended)."""

    state: str = ""


class RanInMaster(Reason, frozen=True):
    """An uber job: its tasks had no containers."""


class NoSpansTold(Reason, frozen=True):
    """Counters of the tasks' times are missing."""

    job: str


class NoInstantsTold(Reason, frozen=True):
    """The job's start or end is missing."""

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
    | Said
)

ASK_AGAIN = (NotInHistoryYet, HistoryBusy, HistoryFault)
"""The history may tell it later."""

# --- what keeps the gate from deciding


class ApplicationsUnseen(Reason, frozen=True):
    """The ResourceManager does not list the applications."""

    fault: str


class SizeUnseen(Reason, frozen=True):
    """The ResourceManager does not tell how large the cluster is."""

    fault: str


class NoRoomForContainer(Reason, frozen=True):
    """No node holds one container of the gate's size."""


GateReason = ApplicationsUnseen | SizeUnseen | NoRoomForContainer
"""... or a fault of a client: see ``outcomes``."""
