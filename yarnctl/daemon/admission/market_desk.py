"""Quotes, immediate refusals and accounts of an admission controller that sells deadlines.

A quote reserves nothing and is not written to the journal; a request that refers to it is decided again. A
refusal charges nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Literal

import msgspec

from yarnctl.daemon.admission.backlog import ClusterUse
from yarnctl.daemon.admission.request_queue import AccountCommand, QuoteRequest, Refusal, RequestedAdmission
from yarnctl.deciding.admission.book import AdmissionStore
from yarnctl.deciding.admission.capacity import Load
from yarnctl.deciding.admission.mechanisms.mrm import Priced, deadlines, priced
from yarnctl.deciding.admission.mechanisms.promises import MrmChoices, MrmMemory, market
from yarnctl.deciding.admission.payments import due_records
from yarnctl.deciding.admission.pricing.accounts import AccountSet, TokensGranted
from yarnctl.deciding.admission.records import Budget, Estimate
from yarnctl.deciding.admission.rounds import Seen
from yarnctl.deciding.records import Record
from yarnctl.journal.rendering import when

QUOTED_FOR_MS = 60_000  # The time for which a quote is valid
QUOTES_MAX = 1_000  # Beyond, the oldest quote of the user with the most is dropped
ANEW_POINTS = 8  # The points of a new quote that replaces an invalid one
UNTRUSTED = Refusal(
    "estimate-needs-operate",
    "deadlines have a price, so an estimate needs a token with the scope operate",
    "remove the estimate to use the history's, or send it with such a token",
)
NO_ESTIMATE = "run the job once under this name without admission, or include an estimate"
WORK_UNKNOWN = "no estimate of the job's work is available"
NEVER_FREE = "the reserved and promised work leaves no time for this job"

Note = Callable[[Record], None]


class QuotePoint(msgspec.Struct, frozen=True):
    """One deadline with its price; ``because``: the parts of the price, by admission."""

    deadline_at_ms: int
    price_mtokens: int
    slack_ms: int
    late_ratio: float
    because: tuple[tuple[str, int], ...]


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """The prices of a job's deadlines at one time; a quote reserves nothing."""

    id: str
    valid_until_ms: int
    earliest_at_ms: int
    account: str
    balance_mtokens: int
    points: tuple[QuotePoint, ...]
    name: str
    user: str


class MarketDesk:
    """Sells deadlines. ``store`` is the controller's, ``instance`` its part of the ids.

    ``suspendable``: the applications whose containers can be suspended now. ``compared`` counts the promises
    that prices were compared with.
    """

    def __init__(self, store: AdmissionStore, instance: str) -> None:
        self._store = store
        self._instance = instance
        self.numbered = self.compared = 0
        self.quotes: dict[str, Quote] = {}
        self.suspendable: Collection[str] = ()

    @property
    def is_open(self) -> bool:
        """Whether deadlines have a price."""
        return self._store.sells

    def blocking(self) -> tuple[int, ...]:
        """Return the numbers of the running admissions whose containers cannot be suspended."""
        if not self.is_open:
            return ()
        running = self._store.open("running")
        return tuple(each.sequence for each in running if each.application not in self.suspendable)

    def _standing(self, loads: tuple[Load, ...], now_ms: int) -> Seen:
        gate = self._store.gate
        assert gate is not None
        return Seen(
            (), gate.reserved, loads, gate.pools, now_ms, promised=gate.promised, blocking=self.blocking()
        )

    def settle(self, note: Note, now_ms: int, *, learning: bool) -> None:
        """Write all records that are due from accounts."""
        for record in due_records(self._store, now_ms, learning=learning):
            note(record)

    def account(self, note: Note, now_ms: int, command: AccountCommand) -> str | Refusal:
        """Open an account, or add tokens to one; return its name."""
        known = command.account in self._store.accounts.accounts
        if command.credit_mtokens is not None:
            if not known:
                return unknown_account(command.account)
            note(TokensGranted(now_ms, command.account, command.credit_mtokens))
        elif known:
            problem = f"account {command.account} exists already"
            return Refusal("account-known", problem, "add tokens with --credit")
        else:
            note(AccountSet(now_ms, command.account, command.daily_mtokens, command.cap_mtokens))
        return command.account

    def quoted(
        self,
        request: QuoteRequest,
        refusal: tuple[Estimate | None] | Refusal | None,
        cluster_use: ClusterUse | None,
        now_ms: int,
    ) -> str | Refusal | None:
        """Return a quote's id or why there is none; None: the estimate or the first poll is missing."""
        if not self.is_open:
            mechanism = "" if self._store.gate is None else self._store.gate.mechanism
            problem = f"deadlines have no price with --admission {mechanism}"
            return Refusal("no-account", problem, "restart the daemon with --admission mrm")
        if refusal is None or isinstance(refusal, Refusal):
            return refusal
        if self.is_untrusted(request.estimate):
            return UNTRUSTED
        if cluster_use is None:
            return None
        (estimate,) = refusal
        return self._quote(request, estimate, self._standing(cluster_use.loads, now_ms))

    def _quote(self, request: QuoteRequest, estimate: Estimate | None, seen: Seen) -> str | Refusal:
        if request.account not in self._store.accounts.accounts:
            return unknown_account(request.account)
        if estimate is None:
            return Refusal("no-estimate", WORK_UNKNOWN, NO_ESTIMATE)
        offered = self._priced(estimate, request.containers, seen)
        if offered is None:
            return Refusal("too-early", NEVER_FREE, "retry when other work has ended")
        return self._made(offered, request.account, request.name, request.user, request.points)

    def _made(self, priced: Priced, account: str, name: str, user: str, points: int) -> str:
        now_ms = priced.market.now_ms
        self._forget(now_ms, user)
        self.numbered += 1
        choices = None if self._store.gate is None else self._store.gate.choices
        late_ratio = choices.late_ratio if isinstance(choices, MrmChoices) else 0.0
        made = Quote(
            id=f"quo-{self._instance}-{self.numbered}",
            valid_until_ms=now_ms + QUOTED_FOR_MS,
            earliest_at_ms=priced.earliest_ms,
            account=account,
            balance_mtokens=self._store.balances()[account],
            points=tuple(self._point(priced, at, late_ratio) for at in deadlines(priced, points)),
            name=name,
            user=user,
        )
        self.quotes[made.id] = made
        return made.id

    def _point(self, priced: Priced, at_ms: int, late_ratio: float) -> QuotePoint:
        because = tuple((self.admission_of(who), amount) for who, amount in priced.because(at_ms))
        return QuotePoint(at_ms, priced.price_mtokens(at_ms), priced.slack_ms(at_ms), late_ratio, because)

    def admission_of(self, who: str) -> str:
        """Return the id of an admission for its number in a price."""
        return f"adm-{self._instance}-{who}" if who.isdigit() else who

    def _priced(self, estimate: Estimate, tasks: int, seen: Seen) -> Priced | None:
        gate = self._store.gate
        if gate is None or not isinstance(gate.choices, MrmChoices) or not isinstance(gate.memory, MrmMemory):
            return None
        self.compared += len(seen.reserved)
        found = market(gate.memory, gate.choices, seen)
        who = str(self._store.numbered + 1)  # the round prices it under this name, too
        return priced(found, who, estimate, tasks, gate.choices)

    def _forget(self, now_ms: int, user: str) -> None:
        """Drop expired quotes, and one more if there is no place; users share the places fairly."""
        kept = [each for each in self.quotes.values() if each.valid_until_ms > now_ms]
        if len(kept) >= QUOTES_MAX:
            counts = Counter([user, *(each.user for each in kept)])
            most = max(counts, key=lambda name: (counts[name], name == user))
            kept.remove(next(each for each in kept if each.user == most))
        self.quotes = {each.id: each for each in kept}

    def is_untrusted(self, estimate: Estimate | None) -> bool:
        """Return whether an estimate comes from a user while deadlines have a price."""
        return self.is_open and estimate is not None and estimate.given_by == "user"

    def unpriced(
        self,
        request: RequestedAdmission,
        estimate: Estimate | None,
        cluster_use: ClusterUse | None,
        now_ms: int,
    ) -> Refusal | Literal["unseen"] | None:
        """Return why a request at a price is refused immediately, or "unseen": there was no poll yet."""
        if not self.is_open:
            return None
        if cluster_use is None:
            return "unseen"
        return self._refusal(request, estimate, self._standing(cluster_use.loads, now_ms))

    def _refusal(self, request: RequestedAdmission, estimate: Estimate | None, seen: Seen) -> Refusal | None:
        budget = request.budget
        if budget is None:
            return Refusal("no-account", "deadlines have a price", "include a budget and an account")
        if budget.account not in self._store.accounts.accounts:
            return unknown_account(budget.account)
        if estimate is None:
            return Refusal("no-estimate", WORK_UNKNOWN, NO_ESTIMATE)
        offered = self._priced(estimate, request.containers, seen)
        if offered is None:
            return Refusal("too-early", NEVER_FREE, "retry when other work has ended")
        at_ms = None if request.deadline_ms is None else seen.now_ms + request.deadline_ms
        if at_ms is not None and at_ms < offered.earliest_ms:
            problem = f"the earliest possible deadline is {when(offered.earliest_ms)}"
            anew = self._made(offered, budget.account, request.name, request.user, ANEW_POINTS)
            return Refusal("too-early", problem, "request that one or a later one", anew)
        why = self._moved(request, budget, offered) if request.quote else ""
        if not why:
            return None
        anew = self._made(offered, budget.account, request.name, request.user, ANEW_POINTS)
        return Refusal("quote-moved", why, f"use quote {anew}", anew)

    def _moved(self, request: RequestedAdmission, budget: Budget, priced: Priced) -> str:
        """Return why a choice from a quote is not valid any more, "" if it is.

        A deadline may cost at most its quoted price. A budget without a deadline must still buy the quoted
        deadline, moved by the time that has passed since.
        """
        now_ms, quoted = priced.market.now_ms, self.quotes.get(request.quote)
        asked_for = (request.user, request.name)
        if quoted is None or quoted.valid_until_ms <= now_ms or (quoted.user, quoted.name) != asked_for:
            return f"quote {request.quote} has expired or does not exist"
        if request.deadline_ms is None:
            return _later(quoted, budget.most_mtokens, priced)
        at_ms = now_ms + request.deadline_ms
        agreed = [point.price_mtokens for point in quoted.points if point.deadline_at_ms <= at_ms]
        price = priced.price_mtokens(at_ms)
        if agreed and price <= agreed[-1]:
            return ""
        return f"the deadline {when(at_ms)} costs {price} mtokens now"


def _later(quoted: Quote, most_mtokens: int, priced: Priced) -> str:
    """Return how much later a budget's deadline is than quoted, as text; "" if it is not later."""
    agreed = next((each.deadline_at_ms for each in quoted.points if each.price_mtokens <= most_mtokens), None)
    if agreed is None:
        return ""  # the budget bought no deadline of the quote: the round decides
    found_ms = priced.within(most_mtokens)
    elapsed_ms = priced.market.now_ms - (quoted.valid_until_ms - QUOTED_FOR_MS)
    if found_ms is not None and found_ms <= agreed + elapsed_ms:
        return ""
    now = "no deadline" if found_ms is None else f"{when(found_ms)} at the earliest"
    return f"{most_mtokens} mtokens bought {when(agreed)} in the quote; now they buy {now}"


def unknown_account(name: str) -> Refusal:
    """Return the refusal of a request with an unknown account."""
    return Refusal("no-account", f"account {name} does not exist", "ask an operator to open it")
