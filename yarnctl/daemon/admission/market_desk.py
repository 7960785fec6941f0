"""The market of the admission controller: quotes, immediate refusals, accounts, and their due records.

Law: a quote reserves nothing and is not written to the journal: what is chosen of it is decided again. A
refusal charges nothing. ``deciding`` computes prices and payments; a due record is written first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Literal

import msgspec

from yarnctl.daemon.admission.request_queue import (
    AccountCommand,
    AdmissionClient,
    QuoteRequest,
    Refusal,
)
from yarnctl.deciding.admission.mechanisms.mrm import Priced, deadlines, priced
from yarnctl.deciding.admission.mechanisms.mrm_terms import MrmChoices, MrmMemory
from yarnctl.deciding.admission.mechanisms.promises import market
from yarnctl.deciding.admission.payments import due_records
from yarnctl.deciding.admission.pricing.accounts import AccountSet, TokensGranted
from yarnctl.deciding.admission.records import Budget, Estimate
from yarnctl.deciding.admission.rounds import Seen
from yarnctl.deciding.records import Record
from yarnctl.journal.rendering import when

if TYPE_CHECKING:
    from yarnctl.daemon.admission.backlog import ClusterUse
    from yarnctl.deciding.admission.book import AdmissionStore
    from yarnctl.deciding.admission.capacity import Load

QUOTED_FOR_MS = 60_000
"""So long a quote may be chosen from."""
QUOTES_MAX = 1_000
"""So many quotes are kept for all users; of more, the oldest of the user with the most is dropped."""
ANEW_POINTS = 8
"""The points of a quote that is made because another one does not hold any more."""
UNTRUSTED = Refusal(
    "estimate-needs-operate",
    "deadlines have a price, and an estimate of its payer is not believed",
    "leave the estimate out: that of the history counts; or send it with a token of the scope operate",
)
NO_ESTIMATE = "run it once without the gate under this name, and the history knows it; or give an estimate"

Note = Callable[[Record], None]


class QuotePoint(msgspec.Struct, frozen=True):
    """One deadline with its price; ``because``: the terms of the price, by admission."""

    deadline_at_ms: int
    price_mtokens: int
    slack_ms: int
    late_ratio: float
    because: tuple[tuple[str, int], ...]


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """What each deadline of a job would cost as things are; a quote reserves nothing."""

    id: str
    valid_until_ms: int
    earliest_at_ms: int
    account: str
    balance_mtokens: int
    points: tuple[QuotePoint, ...]
    name: str
    user: str


class MarketDesk:
    """``store`` is the controller's, ``instance`` its part of the ids. Quotes are kept for a minute.

    ``suspendable`` are the applications whose containers can be suspended now. ``compared`` counts promises
    beside which prices were computed.
    """

    def __init__(self, store: AdmissionStore, instance: str) -> None:
        self._store = store
        self._instance = instance
        self.numbered = self.compared = 0
        self.quotes: dict[str, Quote] = {}
        self.suspendable: Collection[str] = ()

    @property
    def is_open(self) -> bool:
        """Say whether deadlines have a price."""
        return self._store.sells

    def blocking(self) -> tuple[int, ...]:
        """Return the numbers of the running admissions whose containers cannot be suspended."""
        if not self.is_open:
            return ()
        running = self._store.open("taken")
        return tuple(each.sequence for each in running if each.application not in self.suspendable)

    def _standing(self, loads: tuple[Load, ...], now_ms: int) -> Seen:
        """Return what a price is computed from: reservations, promises and fixed load."""
        gate = self._store.gate
        assert gate is not None
        return Seen(
            (), gate.reserved, loads, gate.pools, now_ms, promised=gate.promised, blocking=self.blocking()
        )

    def settle(self, note: Note, now_ms: int, *, learning: bool) -> None:
        """Write down all that is due from accounts."""
        for record in due_records(self._store, now_ms, learning=learning):
            note(record)

    def account(self, note: Note, now_ms: int, wanted: AccountCommand) -> str | Refusal:
        """Open an account, or give it tokens; return its name."""
        known = wanted.account in self._store.accounts.accounts
        if wanted.credit_mtokens is not None:
            if not known:
                return unknown_account(wanted.account)
            note(TokensGranted(now_ms, wanted.account, wanted.credit_mtokens))
        elif known:
            told = f"account {wanted.account} is there already"
            return Refusal("account-known", told, "give it tokens with --credit")
        else:
            note(AccountSet(now_ms, wanted.account, wanted.daily_mtokens, wanted.cap_mtokens))
        return wanted.account

    # --- quotes ---------------------------------------------------------------------------------

    def quoted(
        self,
        wanted: QuoteRequest,
        estimate: tuple[Estimate | None] | Refusal | None,
        polled: ClusterUse | None,
        now_ms: int,
    ) -> str | Refusal | None:
        """Return a quote's id or why there is none; None: the estimate or the first poll is not there yet."""
        if not self.is_open:
            mechanism = "" if self._store.gate is None else self._store.gate.mechanism
            told = f"the gate decides by {mechanism}: deadlines have no price"
            return Refusal("no-account", told, "yarnctl run --admission mrm")
        if estimate is None or isinstance(estimate, Refusal):
            return estimate
        if self.is_untrusted(wanted.estimate):
            return UNTRUSTED
        if polled is None:
            return None
        return self._quote(wanted, *estimate, self._standing(polled.loads, now_ms))

    def _quote(self, wanted: QuoteRequest, estimate: Estimate | None, seen: Seen) -> str | Refusal:
        if wanted.account not in self._store.accounts.accounts:
            return unknown_account(wanted.account)
        if estimate is None:
            return Refusal("no-estimate", "nobody knows how much it computes", NO_ESTIMATE)
        offered = self._priced(estimate, wanted.containers, seen)
        if offered is None:
            return Refusal("too-early", "there is room for it at no time", "ask when less is going on")
        return self._made(offered, wanted.account, wanted.name, wanted.user, wanted.points)

    def _made(self, offered: Priced, account: str, name: str, user: str, points: int) -> str:
        now_ms = offered.market.now_ms
        self._forget(now_ms, user)
        self.numbered += 1
        choices = None if self._store.gate is None else self._store.gate.choices
        late_ratio = choices.late_ratio if isinstance(choices, MrmChoices) else 0.0
        made = Quote(
            id=f"quo-{self._instance}-{self.numbered}",
            valid_until_ms=now_ms + QUOTED_FOR_MS,
            earliest_at_ms=offered.earliest_ms,
            account=account,
            balance_mtokens=self._store.balances()[account],
            points=tuple(self._point(offered, at, late_ratio) for at in deadlines(offered, points)),
            name=name,
            user=user,
        )
        self.quotes[made.id] = made
        return made.id

    def _point(self, offered: Priced, at_ms: int, late_ratio: float) -> QuotePoint:
        because = tuple((self.admission_of(who), amount) for who, amount in offered.because(at_ms))
        return QuotePoint(at_ms, offered.price_mtokens(at_ms), offered.slack_ms(at_ms), late_ratio, because)

    def admission_of(self, who: str) -> str:
        """Return the id of an admission that a price names by its number."""
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
        """Drop quotes that are too old, and one if there are too many beside a new one of ``user``.

        Users share what is kept: no user's quotes push out those of a user that has fewer.
        """
        kept = [each for each in self.quotes.values() if each.valid_until_ms > now_ms]
        if len(kept) >= QUOTES_MAX:
            counts = Counter([user, *(each.user for each in kept)])
            most = max(counts, key=lambda name: (counts[name], name == user))
            kept.remove(next(each for each in kept if each.user == most))
        self.quotes = {each.id: each for each in kept}

    # --- what is refused at once --------------------------------------------------------------------

    def is_untrusted(self, estimate: Estimate | None) -> bool:
        """Return whether an estimate comes from a user, and deadlines have a price."""
        return self.is_open and estimate is not None and estimate.given_by == "user"

    def unpriced(
        self, wanted: AdmissionClient, estimate: Estimate | None, polled: ClusterUse | None, now_ms: int
    ) -> Refusal | Literal["unseen"] | None:
        """Return why a request at a price is refused at once, or that there was no poll yet."""
        if not self.is_open:
            return None
        if polled is None:
            return "unseen"
        return self._refusal(wanted, estimate, self._standing(polled.loads, now_ms))

    def _refusal(self, wanted: AdmissionClient, estimate: Estimate | None, seen: Seen) -> Refusal | None:
        """Return why a request is not written down at all, None if it is; nothing is charged for these."""
        budget = wanted.budget
        if budget is None:
            return Refusal("no-account", "deadlines have a price here", "give a budget and an account")
        if budget.account not in self._store.accounts.accounts:
            return unknown_account(budget.account)
        if estimate is None:
            return Refusal("no-estimate", "nobody knows how much it computes", NO_ESTIMATE)
        offered = self._priced(estimate, wanted.containers, seen)
        if offered is None:
            return Refusal("too-early", "there is room for it at no time", "ask when less is going on")
        at_ms = None if wanted.deadline_ms is None else seen.now_ms + wanted.deadline_ms
        if at_ms is not None and at_ms < offered.earliest_ms:
            told = f"the earliest deadline that breaks no promise is {when(offered.earliest_ms)}"
            anew = self._made(offered, budget.account, wanted.name, wanted.user, ANEW_POINTS)
            return Refusal("too-early", told, "ask for that one or a later one", anew)
        why = self._moved(wanted, budget, offered) if wanted.quote else ""
        if not why:
            return None
        anew = self._made(offered, budget.account, wanted.name, wanted.user, ANEW_POINTS)
        return Refusal("quote-moved", why, f"choose from quote {anew}", anew)

    def _moved(self, wanted: AdmissionClient, budget: Budget, offered: Priced) -> str:
        """Return why what was chosen of a quote does not hold any more, "" if it does.

        A deadline may cost no more than it was quoted at; a budget alone must still buy a deadline that is
        no later than the earliest one that it bought of the quote, but for the time that has passed since.
        """
        now_ms, quoted = offered.market.now_ms, self.quotes.get(wanted.quote)
        asked_for = (wanted.user, wanted.name)
        if quoted is None or quoted.valid_until_ms <= now_ms or (quoted.user, quoted.name) != asked_for:
            return f"quote {wanted.quote} is too old, or no such one"
        if wanted.deadline_ms is None:
            return _later(quoted, budget.most_mtokens, offered)
        at_ms = now_ms + wanted.deadline_ms
        agreed = [point.price_mtokens for point in quoted.points if point.deadline_at_ms <= at_ms]
        price = offered.price_mtokens(at_ms)
        if agreed and price <= agreed[-1]:
            return ""
        return f"the deadline {when(at_ms)} costs {price} mtokens by now"


def _later(quoted: Quote, most_mtokens: int, offered: Priced) -> str:
    """Return that a budget buys a later deadline than it was quoted, "" if it does not."""
    agreed = next((each.deadline_at_ms for each in quoted.points if each.price_mtokens <= most_mtokens), None)
    if agreed is None:
        return ""  # it bought nothing of the quote: the round computes what it would cost
    found_ms = offered.within(most_mtokens)
    elapsed_ms = offered.market.now_ms - (quoted.valid_until_ms - QUOTED_FOR_MS)
    if found_ms is not None and found_ms <= agreed + elapsed_ms:
        return ""
    now = "no deadline" if found_ms is None else f"{when(found_ms)} at the earliest"
    return f"{most_mtokens} mtokens bought {when(agreed)}, and buy {now} by now"


def unknown_account(name: str) -> Refusal:
    """Say that there is no such account."""
    return Refusal("no-account", f"there is no account {name}", "ask an operator for one")
