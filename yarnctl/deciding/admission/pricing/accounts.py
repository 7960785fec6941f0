"""Accounts that pay for deadlines: records in, balances out.

A balance is a fold over records; no record makes one negative, and the sum of balances and of what was spent
is what the accounts were given. An admission is charged once and settled once. Amounts are whole
milli-tokens; 1 token is 1 container-second. A refill is for whole days since the last one (or since the
account was set), up to the cap; an excess over it is lost. Grants and refunds may exceed the cap.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

import msgspec

from yarnctl.deciding.admission.records import DueClaim, Finished, Refund, Reservation

DAY_MS = 86_400_000

Outcome = Literal["ran", "late", "not-run"]
"""How an admission ended: in time, after its deadline, or without having run (expired, withdrawn)."""

# --- records


class AccountSet(msgspec.Struct, frozen=True, tag="account-set", omit_defaults=True):
    """An account is opened, or its daily refill and cap change. Its days begin at this instant."""

    at_ms: int
    account: str
    daily_mtokens: int = 0
    cap_mtokens: int = 0


class TokensGranted(msgspec.Struct, frozen=True, tag="tokens-granted"):
    """An operator gives tokens to an account."""

    at_ms: int
    account: str
    mtokens: int


class TokensRefilled(msgspec.Struct, frozen=True, tag="tokens-refilled"):
    """The days until ``until_ms`` are paid out; 0 where the account was full."""

    at_ms: int
    account: str
    mtokens: int
    until_ms: int


class TokensCharged(msgspec.Struct, frozen=True, tag="tokens-charged", omit_defaults=True):
    """An account pays for an admission; ``key`` is the sender's own name for the request."""

    at_ms: int
    account: str
    admission: str
    mtokens: int
    key: str = ""


class TokensRefunded(msgspec.Struct, frozen=True, tag="tokens-refunded"):
    """An admission is settled. The account receives this part of its payment, which can be 0."""

    at_ms: int
    account: str
    admission: str
    mtokens: int


AccountRecord = AccountSet | TokensGranted | TokensRefilled | TokensCharged | TokensRefunded

# --- the fold


class Account(NamedTuple):
    """What one account was given and has spent; refunds lessen what is spent."""

    given_mtokens: int = 0
    spent_mtokens: int = 0
    daily_mtokens: int = 0
    cap_mtokens: int = 0
    refilled_until_ms: int = 0

    @property
    def balance_mtokens(self) -> int:
        """What may be spent."""
        return self.given_mtokens - self.spent_mtokens


class Payment(NamedTuple):
    """What was paid for one admission, and from where; ``refunded_mtokens`` is None until it is settled."""

    account: str
    mtokens: int
    key: str
    refunded_mtokens: int | None = None


class Accounts(NamedTuple):
    """All accounts by name and all payments by admission."""

    accounts: Mapping[str, Account]
    payments: Mapping[str, Payment]


NO_ACCOUNTS = Accounts({}, {})


class ImpossibleRecord(ValueError):
    """A record that cannot follow those before it: this module does not make such."""


def after(accounts: Accounts, record: AccountRecord) -> Accounts:
    """Return the accounts after one record; raises ImpossibleRecord where it cannot follow."""
    if isinstance(record, AccountSet):
        changed = accounts.accounts.get(record.account, Account())._replace(
            daily_mtokens=record.daily_mtokens,
            cap_mtokens=record.cap_mtokens,
            refilled_until_ms=record.at_ms,
        )
        return _with_account(accounts, record.account, changed)
    account = accounts.accounts.get(record.account)
    if account is None or record.mtokens < 0:
        raise ImpossibleRecord(f"account {record.account!r}: {type(record).__name__} cannot follow")
    if isinstance(record, TokensCharged):
        return _charged(accounts, account, record)
    if isinstance(record, TokensRefunded):
        return _refunded(accounts, account, record)
    given = account._replace(given_mtokens=account.given_mtokens + record.mtokens)
    if isinstance(record, TokensRefilled):
        if record.until_ms <= account.refilled_until_ms:
            raise ImpossibleRecord(f"account {record.account!r}: these days are refilled already")
        given = given._replace(refilled_until_ms=record.until_ms)
    return _with_account(accounts, record.account, given)


def problem(accounts: Accounts, record: AccountRecord) -> str:
    """Return why a record cannot follow, "" if it can."""
    try:
        after(accounts, record)
    except ImpossibleRecord as error:
        return str(error)
    return ""


def without_settled(accounts: Accounts, kept: Collection[str]) -> Accounts:
    """Drop the settled payments of admissions that are not kept; what was spent stays in the totals."""
    return accounts._replace(
        payments={
            admission: paid
            for admission, paid in accounts.payments.items()
            if admission in kept or paid.refunded_mtokens is None
        }
    )


def _charged(accounts: Accounts, account: Account, charged: TokensCharged) -> Accounts:
    if charged.admission in accounts.payments or charged.mtokens > account.balance_mtokens:
        raise ImpossibleRecord(f"admission {charged.admission!r}: paid already, or more than there is")
    paid = Payment(charged.account, charged.mtokens, charged.key)
    spent = account._replace(spent_mtokens=account.spent_mtokens + charged.mtokens)
    return _with_account(accounts, charged.account, spent)._replace(
        payments={**accounts.payments, charged.admission: paid}
    )


def _refunded(accounts: Accounts, account: Account, refunded: TokensRefunded) -> Accounts:
    paid = accounts.payments.get(refunded.admission)
    if paid is None or paid.account != refunded.account or paid.refunded_mtokens is not None:
        raise ImpossibleRecord(f"admission {refunded.admission!r}: not paid from there, or settled already")
    if refunded.mtokens > paid.mtokens:
        raise ImpossibleRecord(f"admission {refunded.admission!r}: more goes back than was paid")
    spent = account._replace(spent_mtokens=account.spent_mtokens - refunded.mtokens)
    settled = paid._replace(refunded_mtokens=refunded.mtokens)
    return _with_account(accounts, refunded.account, spent)._replace(
        payments={**accounts.payments, refunded.admission: settled}
    )


def _with_account(accounts: Accounts, name: str, account: Account) -> Accounts:
    return accounts._replace(accounts={**accounts.accounts, name: account})


# --- decisions


def price_mtokens(price: float) -> int:
    """Return the cost of a price (container-ms): rounded up, so that no work is free."""
    return math.ceil(price)


def refill_due(accounts: Accounts, name: str, now_ms: int) -> TokensRefilled | None:
    """Return the refill of the whole days that have passed; None where none has, or nothing is daily."""
    account = accounts.accounts[name]
    days = (now_ms - account.refilled_until_ms) // DAY_MS
    if days < 1 or not account.daily_mtokens:
        return None
    room_mtokens = max(0, account.cap_mtokens - account.balance_mtokens)
    until_ms = account.refilled_until_ms + days * DAY_MS
    return TokensRefilled(now_ms, name, min(days * account.daily_mtokens, room_mtokens), until_ms)


class Used(NamedTuple):
    """How an admission ended, and how much of the estimated work (container-ms) it used."""

    outcome: Outcome
    used_ms: int = 0
    estimated_ms: int = 0


def with_usage(used: Used, reservation: Reservation | None, finished: Finished) -> Used:
    """Return how a job ended, with what it used by its history; ``reservation`` is its reservation.

    Whether it was late is known from YARN, and not from what its own master has written.
    """
    promised_ms = (
        reservation.claim.work_ms
        if reservation is not None and isinstance(reservation.claim, DueClaim)
        else 0
    )
    return Used(used.outcome, finished.used_ms, promised_ms)


def settle(
    accounts: Accounts, at_ms: int, admission: str, used: Used, choice: Refund = "both"
) -> TokensRefunded | None:
    """Return the refund that settles an admission; None where nothing was paid, or it is settled.

    For a job that did not run all is refunded under every choice. What was not used is refunded in proportion
    to the estimate, rounded down; a job that used more than that pays no more.
    """
    payment = accounts.payments.get(admission)
    if payment is None or payment.refunded_mtokens is not None:
        return None
    back_mtokens = 0
    if used.outcome == "not-run" or (used.outcome == "late" and choice in ("late", "both")):
        back_mtokens = payment.mtokens
    elif choice in ("unused", "both") and used.estimated_ms > 0:
        rest_ms = max(0, used.estimated_ms - max(0, used.used_ms))
        back_mtokens = payment.mtokens * rest_ms // used.estimated_ms
    return TokensRefunded(at_ms, payment.account, admission, back_mtokens)
