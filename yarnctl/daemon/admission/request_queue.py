"""Queue commands of request threads for the loop; the threads wait for the results.

Only the loop's thread decides and writes records. A command is answered when its record is in the journal and
published, or with a time-out. Waiting is bounded in time and in number, because the service needs the same
threads for all other requests. One user has a share of each bound, and the last places are reserved for
operators, so that no user can block others.
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

PENDING_MAX = 256  # The maximum number of queued commands
WAITERS_MAX = 24  # The maximum number of threads that wait for a verdict; more get an answer without waiting
WAITING_THREADS_MAX = 12  # Threads that wait for the loop; both are below the service's 40
USER_SHARE = 3  # One user may use one in this many places
RESERVED_OF = 4  # One in this many places is reserved for operators


class RequestedAdmission(msgspec.Struct, frozen=True, kw_only=True):
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
    """An operator's command: open an account, or (``credit_mtokens``) add tokens to one."""

    account: str
    credit_mtokens: int | None = None
    daily_mtokens: int = 0
    cap_mtokens: int = 0


class WithdrawRequest(msgspec.Struct, frozen=True):
    """A request to withdraw an admission."""

    admission: str


Code = Literal[
    "not-found",
    "already-running",
    "cluster-unreachable",
    "queue-not-gated",
    "no-such-queue",
    "request-key-used",
    "queue-full",
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

Command = (
    RequestedAdmission | WithdrawRequest | QuoteRequest | AccountCommand
)  # The commands that may be queued


class Refusal(msgspec.Struct, frozen=True):
    """Why a command was not executed, and what to do; ``quote``: the id of a new quote, if one was made."""

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
    """A queued command; ``answer`` is the id of its admission, or why it was refused (None: not yet).

    ``submitted_at_ms``: by the queue's clock. ``begun``: its record is being written, so that it cannot be
    withdrawn any more. ``waiting_threads``: the number of threads that wait.
    """

    def __init__(
        self, command: Command, submitted_at_ms: int | None = None, sender: RequestSender = NO_SENDER
    ) -> None:
        self.command = command
        self.sender = sender
        self.submitted_at_ms = submitted_at_ms
        self.begun = False
        self.waiting_threads = 0
        self.answer: str | Refusal | None = None
        self.at_ms: int | None = None


PredictsOptions = Callable[[str, Mapping[str, float], float, Iterable[KnownRun]], Alternatives]
"""Returns options by an application's name, features, probability to be late, and runs of the journal."""
AGAIN = "retry in a few seconds"


class Places:
    """The used places of a bound, in all and by each user. The caller holds the lock."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0
        self._by_user: dict[str, int] = {}

    def why_full(self, sender: RequestSender) -> str:
        """Return the bound that leaves no place for a sender, "" if there is a place."""
        if sender.operates:
            return f"{self.taken} pending" if self.taken >= self.most else ""
        share = max(1, self.most // USER_SHARE)
        if self._by_user.get(sender.user, 0) >= share:
            return f"{share} pending of user {sender.user or 'unknown'}, the maximum for one user"
        others = self.most - self.most // RESERVED_OF
        if self.taken >= others:
            return f"{self.taken} pending, {others} places for users"
        return ""

    def take(self, sender: RequestSender, more: int = 1) -> None:
        """Take a place, or (-1) release it."""
        self.taken += more
        if not sender.operates:
            held = self._by_user.pop(sender.user, 0) + more
            if held:
                self._by_user[sender.user] = held


NOT_DONE = Refusal(
    "not-written",
    "the daemon did not process the request in time; it may still do so",
    "check GET /v1/snapshot and the daemon's log; send the request again with the same request_key",
)
WITHDRAWN = "the request was withdrawn"
LATER = "check the daemon's log; send the request again with the same request_key"


class RequestQueue:
    """Queues commands for the loop. ``clock_ms`` returns the time (any thread).

    ``on_wake`` wakes the loop, which sets it. ``problem``: why admission cannot work ("": it can).
    ``predicted`` returns the options of an application by its name (None: no runs are kept here).
    """

    def __init__(
        self, clock_ms: Callable[[], int], lease_ms: int, predicted: PredictsOptions | None = None
    ) -> None:
        self.lease_ms = lease_ms
        self.predicted = predicted
        self.on_wake: Callable[[], None] = _do_nothing
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
        """Wake the loop."""
        self.on_wake()

    def submit(self, wanted: Command, wait_ms: int, sender: RequestSender = NO_SENDER) -> str | Refusal:
        """Queue a command and wait until it is executed and published.

        A command that has not begun in time is withdrawn, because its client would not receive the result.
        """
        with self._changed:
            if self._closed:
                return NOT_DONE
            pending = self._queued(wanted)
            full = self._waiting_threads.why_full(sender) or ("" if pending else self._why_full(sender))
            if full:
                return Refusal("queue-full", f"the admission queue is full ({full})", AGAIN)
            if pending is None:
                pending = PendingCommand(wanted, self._arrived_at(wanted), sender)
                self._pending.append(pending)
            self._waiting_threads.take(sender)
            pending.waiting_threads += 1
        self.wake()
        try:
            self._until(lambda: pending.answer is not None, wait_ms)
        finally:
            with self._changed:
                self._waiting_threads.take(sender, -1)
                pending.waiting_threads -= 1
                taken_back = self._withdraw(pending)
                self._note_repeated(pending)
        if taken_back:
            why = f" ({self.problem})" if self.problem else ""
            return Refusal("not-written", f"the daemon was busy{why}; {WITHDRAWN}", LATER)
        return pending.answer or NOT_DONE

    def _why_full(self, sender: RequestSender) -> str:
        places = Places(PENDING_MAX)
        for each in self._pending:
            places.take(each.sender)
        return places.why_full(sender)

    def _queued(self, wanted: Command) -> PendingCommand | None:
        """Return the same command if it is already queued: a repeated request waits for its answer."""
        if isinstance(wanted, RequestedAdmission) and not wanted.key:
            return None
        return next((each for each in self._pending if each.command == wanted), None)

    def _arrived_at(self, wanted: Command) -> int:
        """Return when a command was first submitted, also if an earlier attempt was not executed in time."""
        now_ms = self._clock_ms()
        came_at_ms = (
            self._arrived_at_ms.get(wanted.key, now_ms) if isinstance(wanted, RequestedAdmission) else now_ms
        )
        return came_at_ms if 0 <= now_ms - came_at_ms <= PENDING_FOR_MAX_MS else now_ms

    def _note_repeated(self, pending: PendingCommand) -> None:
        key = getattr(pending.command, "key", "")
        came_at_ms = self._arrived_at_ms.pop(key, pending.submitted_at_ms)
        if key and came_at_ms is not None and not isinstance(pending.answer, str):
            self._arrived_at_ms[key] = came_at_ms
            if len(self._arrived_at_ms) > PENDING_MAX:
                del self._arrived_at_ms[next(iter(self._arrived_at_ms))]

    def _withdraw(self, pending: PendingCommand) -> bool:
        """Remove a request without a client that has not begun."""
        if pending.waiting_threads or pending.answer is not None or pending.begun:
            return False
        if not isinstance(pending.command, RequestedAdmission):
            return False
        self._pending = [each for each in self._pending if each is not pending]
        return True

    def renew(self, admission: str, wait_ms: int = 0) -> None:
        """Extend a client's lease by ``wait_ms``."""
        with self._changed:
            self._renewed[admission] = self._clock_ms() + wait_ms

    def wait(self, done: Callable[[], bool], wait_ms: int, sender: RequestSender = NO_SENDER) -> None:
        """Wait until ``done`` returns True for a published state; do not wait if too many threads do."""
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

    def start(self, pending: PendingCommand) -> bool:
        """Return whether the client still waits; from now on the command cannot be withdrawn."""
        with self._changed:
            pending.begun = any(each is pending for each in self._pending)
            return pending.begun

    def waited_ms(self, pending: PendingCommand) -> int:
        """Return the time since a command's submission, at most ``PENDING_FOR_MAX_MS``."""
        submitted_at_ms = pending.submitted_at_ms
        waited_ms = 0 if submitted_at_ms is None else self._clock_ms() - submitted_at_ms
        return max(0, min(waited_ms, PENDING_FOR_MAX_MS))

    def renewals(self) -> dict[str, int]:
        """Return the leases renewed since the last call: admission -> time until which a client waits."""
        with self._changed:
            renewed, self._renewed = self._renewed, {}
        return renewed

    def announce(self, answers: dict[PendingCommand, str | Refusal]) -> None:
        """Store these commands' answers and wake all waiting threads: a new state is published."""
        with self._changed:
            for pending, answer in answers.items():
                pending.answer = answer
            if answers:
                self._pending = [each for each in self._pending if each.answer is None]
            self._changed.notify_all()

    def close(self) -> None:
        """Release all waiting threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _do_nothing() -> None:
    """Do nothing: there is no loop yet."""
