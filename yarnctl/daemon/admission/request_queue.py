"""The request queue: request threads put commands into it and wait for their results.

Law: nothing is decided here and no record is written; only the loop's thread does that. A command is answered
when its record is in the journal and published, or with a time-out. Waiting is bounded in time and in number:
the waiting threads are those that the service answers all other requests with. One user has a share of each
bound, and the last places are kept for operators, so that no user can keep others out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from yarnctl.deciding.admission.book import PENDING_FOR_MAX_MS
from yarnctl.deciding.admission.placement_options import Alternatives
from yarnctl.deciding.admission.records import Budget, Estimate
from yarnctl.prediction.application_runs import KnownRun

PENDING_MAX = 256
"""So many commands may be queued at once."""
WAITERS_MAX = 24
"""So many may wait for a verdict at once; more are answered without waiting, and ask again."""
WAITING_THREADS_MAX = 12
"""So many may wait at once for the loop to come. Together they are fewer than the service's 40 threads."""
USER_SHARE = 3
"""One user may take one place of so many."""
RESERVED_OF = 4
"""One place of so many is kept for operators."""


class AdmissionClient(msgspec.Struct, frozen=True, kw_only=True):
    """An admission request: see :class:`yarnctl.deciding.admission.records.Request`."""

    name: str
    user: str
    queue: str
    containers: int
    deadline_ms: int | None
    estimate: Estimate | None = None
    kind: str = "mapreduce"
    key: str = ""
    budget: Budget | None = None
    quote: str = ""
    alternatives: Alternatives | None = None


class QuoteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a quote of ``points`` deadlines."""

    name: str
    user: str
    queue: str
    containers: int
    account: str
    points: int = 8
    estimate: Estimate | None = None
    kind: str = "mapreduce"


class AccountCommand(msgspec.Struct, frozen=True, kw_only=True):
    """An operator opens an account, or (``credit_mtokens``) gives tokens to one."""

    account: str
    credit_mtokens: int | None = None
    daily_mtokens: int = 0
    cap_mtokens: int = 0


class WithdrawRequest(msgspec.Struct, frozen=True):
    """A request to withdraw an admission."""

    admission: str


Code = Literal[
    "not-found",
    "already-taken",
    "cluster-unreachable",
    "queue-not-gated",
    "no-such-queue",
    "request-key-used",
    "desk-full",
    "not-written",
    "no-estimate-yet",
    "no-account",
    "account-known",
    "no-estimate",
    "estimate-needs-operate",
    "too-early",
    "quote-moved",
    "no-placement",
    "no-options",
    "no-pool",
]

Command = AdmissionClient | WithdrawRequest | QuoteRequest | AccountCommand
"""What may be queued."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a command was not executed, and what to do; ``quote``: the id of a quote made instead."""

    code: Code
    problem: str
    remedy: str
    quote: str = ""


class RequestSender(msgspec.Struct, frozen=True):
    """The user of a command's token; ``operates``: it has the scope ``operate``."""

    user: str = ""
    operates: bool = False


NO_SENDER = RequestSender()


class PendingCommand:
    """Something to be done; ``answer`` is the id of its admission, or why not (None: not yet).

    ``handed_at_ms`` is when it was handed over, by the queue's clock (None: now); ``begun`` means that it is
    being written down, so that it cannot be taken back any more; so many ``heads`` wait for it.
    """

    def __init__(
        self, wanted: Command, handed_at_ms: int | None = None, sender: RequestSender = NO_SENDER
    ) -> None:
        self.command = wanted
        self.sender = sender
        self.submitted_at_ms = handed_at_ms
        self.begun = False
        self.waiting_threads = 0
        self.answer: str | Refusal | None = None
        self.at_ms: int | None = None


PredictsOptions = Callable[[str, Mapping[str, float], float, Iterable[KnownRun]], Alternatives]
"""From an application's name, its features, the chance to be late and runs of the journal."""
AGAIN = "try again in a few seconds"


class Places:
    """How many places of a bound are taken, in all and by each user. The caller holds the lock."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0
        self._by_user: dict[str, int] = {}

    def why_full(self, sender: RequestSender) -> str:
        """Return which bound leaves no place to a sender, "" if there is one."""
        if sender.operates:
            return f"all {self.most} places are taken" if self.taken >= self.most else ""
        share = max(1, self.most // USER_SHARE)
        if self._by_user.get(sender.user, 0) >= share:
            return f"user {sender.user or 'unknown'} has {share} requests pending, the maximum for one user"
        others = self.most - self.most // RESERVED_OF
        if self.taken >= others:
            return f"{self.taken} requests are pending; users have {others} places"
        return ""

    def take(self, sender: RequestSender, more: int = 1) -> None:
        """Take a place, or (-1) give it up."""
        self.taken += more
        if not sender.operates:
            held = self._by_user.pop(sender.user, 0) + more
            if held:
                self._by_user[sender.user] = held


NOT_DONE = Refusal(
    "not-written",
    "the loop did not come to it in time, and may still do so",
    "see GET /v1/snapshot and the daemon's log; ask again with the same request_key",
)
WITHDRAWN = "it was taken back"
LATER = "see the daemon's log; ask again with the same request_key"


class RequestQueue:
    """``clock_ms`` returns the time (any thread). ``on_wake`` wakes the loop, which sets it.

    ``problem`` is why admission cannot work ("": it can); error messages have it. ``predicted`` returns, to a
    request's thread, the options of an application by its name (None: no runs are kept here).
    """

    def __init__(
        self, clock_ms: Callable[[], int], lease_ms: int, predicted: PredictsOptions | None = None
    ) -> None:
        self.lease_ms = lease_ms
        self.predicted = predicted
        self.on_wake: Callable[[], None] = _nobody
        self.problem = ""
        self._clock_ms = clock_ms
        self._changed = threading.Condition()
        self._pending: list[PendingCommand] = []
        self._waiters = Places(WAITERS_MAX)
        self._waiting_threads = Places(WAITING_THREADS_MAX)
        self._arrived_at_ms: dict[str, int] = {}
        self._renewed: dict[str, int] = {}
        self._closed = False

    # --- any thread -----------------------------------------------------------------------------

    def wake(self) -> None:
        """Let the loop come soon."""
        self.on_wake()

    def submit(self, wanted: Command, wait_ms: int, sender: RequestSender = NO_SENDER) -> str | Refusal:
        """Queue a command and wait until it is executed and published.

        A command that is not begun in time is withdrawn: its client would not learn the result.
        """
        with self._changed:
            if self._closed:
                return NOT_DONE
            errand = self._queued(wanted)
            full = self._waiting_threads.why_full(sender) or ("" if errand else self._why_full(sender))
            if full:
                return Refusal("desk-full", f"the request queue is full: {full}", AGAIN)
            if errand is None:
                errand = PendingCommand(wanted, self._arrived_at(wanted), sender)
                self._pending.append(errand)
            self._waiting_threads.take(sender)
            errand.waiting_threads += 1
        self.wake()
        try:
            self._until(lambda: errand.answer is not None, wait_ms)
        finally:
            with self._changed:
                self._waiting_threads.take(sender, -1)
                errand.waiting_threads -= 1
                taken_back = self._withdraw(errand)
                self._note_repeated(errand)
        if taken_back:
            why = f" ({self.problem})" if self.problem else ""
            return Refusal("not-written", f"the loop did not come to it in time{why}; {WITHDRAWN}", LATER)
        return errand.answer or NOT_DONE

    def _why_full(self, sender: RequestSender) -> str:
        """Return why one command more may not be queued, "" if it may."""
        places = Places(PENDING_MAX)
        for each in self._pending:
            places.take(each.sender)
        return places.why_full(sender)

    def _queued(self, wanted: Command) -> PendingCommand | None:
        """Return the same command if it is queued already: a repeated request waits for its answer."""
        if isinstance(wanted, AdmissionClient) and not wanted.key:
            return None
        return next((each for each in self._pending if each.command == wanted), None)

    def _arrived_at(self, wanted: Command) -> int:
        """Return since when this is requested, also if an earlier try was not executed in time."""
        now_ms = self._clock_ms()
        came_at_ms = (
            self._arrived_at_ms.get(wanted.key, now_ms) if isinstance(wanted, AdmissionClient) else now_ms
        )
        return came_at_ms if 0 <= now_ms - came_at_ms <= PENDING_FOR_MAX_MS else now_ms

    def _note_repeated(self, errand: PendingCommand) -> None:
        key = getattr(errand.command, "key", "")
        came_at_ms = self._arrived_at_ms.pop(key, errand.submitted_at_ms)
        if key and came_at_ms is not None and not isinstance(errand.answer, str):
            self._arrived_at_ms[key] = came_at_ms
            if len(self._arrived_at_ms) > PENDING_MAX:
                del self._arrived_at_ms[next(iter(self._arrived_at_ms))]

    def _withdraw(self, errand: PendingCommand) -> bool:
        """Remove a request that has no client any more and is not begun.

        A withdrawal stays.
        """
        if errand.waiting_threads or errand.answer is not None or errand.begun:
            return False
        if not isinstance(errand.command, AdmissionClient):
            return False
        self._pending = [each for each in self._pending if each is not errand]
        return True

    def renew(self, admission: str, wait_ms: int = 0) -> None:
        """Extend a client's lease by ``wait_ms``."""
        with self._changed:
            self._renewed[admission] = self._clock_ms() + wait_ms

    def wait(self, done: Callable[[], bool], wait_ms: int, sender: RequestSender = NO_SENDER) -> None:
        """Wait until ``done`` returns True for what is published; not at all if too many wait already."""
        with self._changed:
            if self._waiters.why_full(sender):
                return
            self._waiters.take(sender)
        try:
            self._until(done, wait_ms)
        finally:
            with self._changed:
                self._waiters.take(sender, -1)

    def _until(self, done: Callable[[], bool], wait_ms: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or done(), wait_ms / 1000)

    # --- the loop's thread --------------------------------------------------------------------------

    def handed(self) -> list[PendingCommand]:
        """Return the queued commands, those of operators first; each stays until it is answered."""
        with self._changed:
            return sorted(self._pending, key=lambda each: not each.sender.operates)

    def start(self, errand: PendingCommand) -> bool:
        """Return whether the client still waits; from now on the command cannot be withdrawn."""
        with self._changed:
            errand.begun = any(each is errand for each in self._pending)
            return errand.begun

    def waited_ms(self, errand: PendingCommand) -> int:
        """Return how long ago it was handed over; never long, unless a clock was set."""
        handed_at_ms = errand.submitted_at_ms
        waited_ms = 0 if handed_at_ms is None else self._clock_ms() - handed_at_ms
        return max(0, min(waited_ms, PENDING_FOR_MAX_MS))

    def renewals(self) -> dict[str, int]:
        """Return what was renewed since the last call: admission -> instant until which a client waits."""
        with self._changed:
            renewed, self._renewed = self._renewed, {}
        return renewed

    def announce(self, answers: dict[PendingCommand, str | Refusal]) -> None:
        """Wake all waiting threads: something new is published, and these commands' answers."""
        with self._changed:
            for errand, answer in answers.items():
                errand.answer = answer
            if answers:
                self._pending = [each for each in self._pending if each.answer is None]
            self._changed.notify_all()

    def close(self) -> None:
        """Let all that wait go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _nobody() -> None:
    """There is no loop yet."""
