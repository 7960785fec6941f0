"""Reasons of admission: of a plan, of an end, of a lesson, and why the gate cannot decide."""

from __future__ import annotations

from typing import Literal

from yarnctl.deciding.reasons.placements import NothingFits
from yarnctl.deciding.reasons.rooting import Reason

# --- why an admission has this verdict


class Undecided(Reason, frozen=True):
    sentence = "the next round decides"


class FreeNow(Reason, frozen=True):
    sentence = "{containers:containers} free now, enough to meet the deadline"
    containers: int


class Needs(Reason, frozen=True):
    """``start``: whether it is known when the containers will be free."""

    sentence = (
        "needs {containers:containers}, {free} free now"
        "[start=unknown?; start time unknown][start=too-late?; they become free too late]"
    )
    containers: int
    free: int
    start: Literal["known", "unknown", "too-late"]


class DeadlinePassed(Reason, frozen=True):
    sentence = "the deadline has passed"


class NeedsTooManyByNow(Reason, frozen=True):
    """``usable``: the most containers that the job can use at once."""

    sentence = (
        "the job has waited too long: it now needs {containers:containers} to end by its deadline and can use"
        " {usable}"
    )
    containers: int
    usable: int


class DeadlineUnreachable(Reason, frozen=True):
    sentence = "no number of containers meets the deadline any more"


class WorkUnknown(Reason, frozen=True):
    sentence = "no estimate of the job's work is available, and this allocator requires one"


class NoDeadline(Reason, frozen=True):
    sentence = "the request has no deadline, and this allocator requires one"


class NeedsMoreThanItCanUse(Reason, frozen=True):
    sentence = "needs {containers:containers} to end by its deadline and can use {usable} at once"
    containers: int
    usable: int


class NeedsMoreThanThereIs(Reason, frozen=True):
    sentence = "needs {containers:containers} to end by its deadline and the cluster has {capacity}"
    containers: int
    capacity: int


class PaidFor(Reason, frozen=True):
    sentence = "the deadline costs {price_mtokens:tokens}"
    price_mtokens: int


class AwaitsTurn(Reason, frozen=True):
    """It is submitted when its turn comes, not before."""

    sentence = (
        "the deadline is promised for {price_mtokens:tokens}; the job is submitted at its turn, planned for"
        " {turn_at_ms:instant}"
    )
    price_mtokens: int
    turn_at_ms: int


class NoAccount(Reason, frozen=True):
    """Deadlines have a price."""

    sentence = "[account?account {account} does not exist|the request names no account to pay from]"
    account: str = ""


class TooEarly(Reason, frozen=True):
    sentence = (
        "the deadline is before {earliest_at_ms:instant}, the earliest that keeps every promised deadline"
    )
    earliest_at_ms: int


class CostsMore(Reason, frozen=True):
    """``most_mtokens``: what was agreed; ``within_at_ms``: the earliest deadline at that price."""

    sentence = (
        "the deadline {deadline_at_ms:instant} costs {price_mtokens:tokens}, above the budget of"
        " {most_mtokens:tokens}[within_at_ms?; within the budget the earliest is {within_at_ms:instant}]"
    )
    price_mtokens: int
    deadline_at_ms: int
    most_mtokens: int
    within_at_ms: int | None = None


class CannotPay(Reason, frozen=True):
    sentence = (
        "the deadline {deadline_at_ms:instant} costs {price_mtokens:tokens}, and the account holds"
        " {held_mtokens:tokens}"
    )
    price_mtokens: int
    deadline_at_ms: int
    held_mtokens: int


class CheapestInTime(Reason, frozen=True):
    sentence = (
        "{kind} with {containers:containers} is the cheapest option that meets the deadline:"
        " {cost_mtokens:tokens}"
    )
    kind: str
    containers: int
    cost_mtokens: int


class LeastLoadedPool(Reason, frozen=True):
    """Of the pools that accept it."""

    sentence = "pool {pool} has the fewest applications, and {containers:containers} available"
    pool: str
    containers: int


class StartsLater(Reason, frozen=True):
    """It is submitted then."""

    sentence = "{containers:containers} of pool {pool} reserved from {start_at_ms:instant}"
    pool: str
    containers: int
    start_at_ms: int


class NoOptions(Reason, frozen=True):
    sentence = "the request lists no framework options; placement needs at least one"


_Sized = Undecided | FreeNow | Needs | NeedsTooManyByNow | NeedsMoreThanItCanUse | NeedsMoreThanThereIs
_Hopeless = DeadlinePassed | DeadlineUnreachable | WorkUnknown | NoDeadline
_Priced = PaidFor | AwaitsTurn | NoAccount | TooEarly | CostsMore | CannotPay
_Placed = CheapestInTime | LeastLoadedPool | StartsLater | NoOptions | NothingFits
PlanReason = _Sized | _Hopeless | _Priced | _Placed
"""Why an admission has its verdict (``plans`` in ``admission-round``; the plan in the API)."""

# --- why an admission has ended


class WithdrawnByRequester(Reason, frozen=True):
    sentence = "withdrawn by its sender"


class LeaseOver(Reason, frozen=True):
    sentence = "the lease expired: no client renewed it within {lease_ms:span}"
    lease_ms: int


class NotSubmitted(Reason, frozen=True):
    sentence = "no application with its tag was submitted within {held_ms:span}"
    held_ms: int


class EndedAs(Reason, frozen=True):
    """The state of its application."""

    sentence = "{state}"
    state: str


class ManagerForgot(Reason, frozen=True):
    sentence = "the ResourceManager no longer lists its application"


ClosedReason = WithdrawnByRequester | LeaseOver | NotSubmitted | EndedAs | ManagerForgot
"""Why an admission has ended (``admission-closed``); a rejected one has ended for its ``PlanReason``."""

# --- why nothing was learned of a job


class NumbersImpossible(Reason, frozen=True):
    sentence = "a number that must be above 0 is not"


class NoneWouldDo(Reason, frozen=True):
    sentence = (
        "no number of containers would have met the deadline ({work_ms:span} of container time in"
        " {deadline_ms:span}, at most {most:containers})"
    )
    work_ms: int
    deadline_ms: int
    most: int


class NotInHistoryYet(Reason, frozen=True):
    sentence = "{server} does not list {job} yet"
    server: str
    job: str


class HistoryBusy(Reason, frozen=True):
    sentence = "too many history queries are pending; yarnctl retries"


class HistoryFault(Reason, frozen=True):
    sentence = "the history server does not answer; yarnctl retries: {fault}"
    fault: str


class HistoryUnusable(Reason, frozen=True):
    sentence = "the history server's answer cannot be used: {fault}"
    fault: str


class HistoryLost(Reason, frozen=True):
    sentence = "the history server no longer lists {job}"
    job: str


class EndedOtherwise(Reason, frozen=True):
    """Its work is not known then."""

    sentence = "the job did not succeed ([state?{state}|unknown state]), so its work is unknown"
    state: str = ""


class RanInMaster(Reason, frozen=True):
    """An uber job."""

    sentence = "the job's tasks ran in its application master and used no containers"


class NoTaskTimes(Reason, frozen=True):
    sentence = "the history server reports no MILLIS_MAPS or MILLIS_REDUCES of {job}"
    job: str


class NoStartOrEnd(Reason, frozen=True):
    sentence = "the history server reports no start or end of {job}"
    job: str


class NoUsage(Reason, frozen=True):
    """``job``: an application's id."""

    sentence = "the ResourceManager reports no start, end or memory-seconds of {job}"
    job: str


_Unusable = NumbersImpossible | NoneWouldDo | EndedOtherwise | RanInMaster
_Unreported = NoTaskTimes | NoStartOrEnd | NoUsage
_Unread = NotInHistoryYet | HistoryBusy | HistoryFault | HistoryUnusable | HistoryLost
LessonReason = _Unusable | _Unreported | _Unread
"""Why nothing was learned of a job (``gate-learned``)."""

ASK_AGAIN = (NotInHistoryYet, HistoryBusy, HistoryFault)
"""The history server may list it later."""

# --- why the gate cannot decide


class ApplicationsUnseen(Reason, frozen=True):
    sentence = "the ResourceManager does not list the applications: {fault}"
    fault: str


class SizeUnseen(Reason, frozen=True):
    sentence = "the ResourceManager does not report the cluster's size: {fault}"
    fault: str


class NoRoomForContainer(Reason, frozen=True):
    """Of the gate's container size."""

    sentence = "no node is large enough for one container"


GateReason = ApplicationsUnseen | SizeUnseen | NoRoomForContainer
"""Why the gate cannot decide (``gate.problem`` in the API). It can also be a ``ClientFault``."""
