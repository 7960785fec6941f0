"""Money is conserved over random payments, with a crash at each record; planted bugs are seen.

A crash loses whatever is not written yet: the accounts are folded again from the journal's lines, and who
asked last asks again under its own key.
"""

from __future__ import annotations

import random
from functools import reduce

import msgspec
import pytest

from yarnctl.deciding.admission.pricing import accounts
from yarnctl.deciding.admission.pricing.accounts import (
    DAY_MS,
    NO_ACCOUNTS,
    AccountRecord,
    AccountSet,
    ImpossibleRecord,
    TokensCharged,
    TokensGranted,
    Used,
)

SEEDS = range(60)
NAMES = ("analytics", "research")
DECODER = msgspec.json.Decoder(AccountRecord)


class Crash(Exception):
    """The process ends here."""


class Desk:
    """Whoever holds the journal: asks what is due, writes it, applies it. Crashes around one record."""

    def __init__(self, crash_at: int | None = None, written: bool = False) -> None:
        self.lines: list[bytes] = []
        self.crash_at, self.written = crash_at, written
        self.state = NO_ACCOUNTS

    def begin_again(self) -> None:
        self.crash_at = None
        self.state = reduce(accounts.after, map(DECODER.decode, self.lines), NO_ACCOUNTS)

    def write(self, record: AccountRecord | None) -> None:
        if record is None:
            return
        crashes = len(self.lines) == self.crash_at
        if crashes and not self.written:
            raise Crash
        self.lines.append(msgspec.json.encode(record))
        if crashes:
            raise Crash
        self.state = accounts.after(self.state, record)
        balanced(self.state)


def balanced(state: accounts.Accounts) -> None:
    """Nothing is negative, and what is given is what is held or paid for admissions."""
    for name, account in state.accounts.items():
        paid = [payment for payment in state.payments.values() if payment.account == name]
        spent = sum(payment.mtokens - (payment.refunded_mtokens or 0) for payment in paid)
        assert account.balance_mtokens >= 0
        assert account.spent_mtokens == spent
        assert account.given_mtokens == account.balance_mtokens + spent
        assert all(0 <= (payment.refunded_mtokens or 0) <= payment.mtokens for payment in paid)


def story(seed: int) -> list[tuple]:
    """Draw what is asked for, in the order of time."""
    chance = random.Random(seed)
    asked: list[tuple] = [("set", 0, name, chance.randint(0, 900), chance.randint(0, 2000)) for name in NAMES]
    now_ms = 0
    for each in range(chance.randint(4, 14)):
        now_ms += chance.choice((1, 1000, DAY_MS // 2, 3 * DAY_MS))
        name = chance.choice(NAMES)
        drawn = chance.random()
        if drawn < 0.15:
            asked.append(("grant", now_ms, name, chance.randint(1, 3000)))
        elif drawn < 0.4:
            asked.append(("refill", now_ms, name))
        elif drawn < 0.75:
            asked.append(("pay", now_ms, name, f"adm-{each}", chance.randint(1, 1500)))
        else:
            used = Used(chance.choice(("ran", "late", "not-run")), chance.randint(0, 150), 100)
            choice = chance.choice(("none", "unused", "late", "both"))
            asked.append(("settle", now_ms, f"adm-{chance.randint(0, each)}", used, choice))
    return asked


def ask(desk: Desk, asked: tuple) -> None:
    """Do one thing that was asked for; a grant is asked for once more only if it is not in the journal."""
    what, at_ms, *rest = asked
    if what == "set":
        if rest[0] not in desk.state.accounts:
            desk.write(AccountSet(at_ms, *rest))
    elif what == "grant":
        name, mtokens = rest
        line = msgspec.json.encode(TokensGranted(at_ms, name, mtokens))
        if line not in desk.lines:
            desk.write(TokensGranted(at_ms, name, mtokens))
    elif what == "refill":
        desk.write(accounts.refill_due(desk.state, rest[0], at_ms))
    elif what == "pay":
        name, admission, mtokens = rest
        charge = TokensCharged(at_ms, name, admission, mtokens, f"key-{admission}")
        if not accounts.problem(desk.state, charge):
            desk.write(charge)
    else:
        admission, used, choice = rest
        desk.write(accounts.settle(desk.state, at_ms, admission, used, choice))


def play(seed: int, crash_at: int | None = None, written: bool = False) -> Desk:
    desk = Desk(crash_at, written)
    for asked in story(seed):
        try:
            ask(desk, asked)
        except Crash:
            desk.begin_again()
            ask(desk, asked)
    balanced(desk.state)
    return desk


def crashes_change_nothing(seed: int) -> None:
    whole = play(seed)
    for place in range(len(whole.lines)):
        for written in (False, True):
            crashed = play(seed, place, written)
            assert crashed.lines == whole.lines
            assert crashed.state == whole.state


def days_are_paid_once(seed: int) -> None:
    """Refills give at most the daily amount for each whole day, and never lift above the cap."""
    chance = random.Random(seed)
    daily, cap = chance.randint(1, 500), chance.randint(1, 2000)
    state = accounts.after(NO_ACCOUNTS, AccountSet(0, "a", daily, cap))
    now_ms = 0
    for _ in range(12):
        now_ms += chance.choice((1, DAY_MS // 3, DAY_MS, 2 * DAY_MS + 5))
        found = accounts.refill_due(state, "a", now_ms)
        if found is not None:
            state = accounts.after(state, found)
        assert state.accounts["a"].balance_mtokens == min(cap, now_ms // DAY_MS * daily)
        assert accounts.refill_due(state, "a", now_ms) is None


LAWS = [crashes_change_nothing, days_are_paid_once]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_hold(law):
    _all_seeds(law)


def _all_seeds(law) -> None:
    for seed in SEEDS:
        law(seed)


def _plant(monkeypatch, bug: str) -> None:
    after, settle, refill_due = accounts.after, accounts.settle, accounts.refill_due

    def more_back(state, at_ms, admission, used, choice="both"):
        found = settle(state, at_ms, admission, used, choice)
        return found and msgspec.structs.replace(found, mtokens=found.mtokens + 1)

    def forgets_settling(before, record):
        found = after(before, record)
        if isinstance(record, accounts.TokensRefunded):
            paid = before.payments[record.admission]
            return found._replace(payments={**found.payments, record.admission: paid})
        return found

    def forgets_days(before, record):
        found = after(before, record)
        if isinstance(record, accounts.TokensRefilled):
            known = found.accounts[record.account]._replace(
                refilled_until_ms=before.accounts[record.account].refilled_until_ms
            )
            return found._replace(accounts={**found.accounts, record.account: known})
        return found

    def ignores_the_cap(state, name, now_ms):
        found = refill_due(state, name, now_ms)
        return found and msgspec.structs.replace(found, mtokens=found.mtokens + 1)

    bugs = {
        "more goes back than was paid": ("settle", more_back),
        "a settled admission is settled again": ("after", forgets_settling),
        "days are paid twice": ("after", forgets_days),
        "payments and the balance are not checked": ("problem", lambda *_: ""),
        "a refill goes over the cap": ("refill_due", ignores_the_cap),
    }
    monkeypatch.setattr(accounts, *bugs[bug])


@pytest.mark.parametrize(
    ("bug", "law"),
    [
        ("more goes back than was paid", crashes_change_nothing),
        ("a settled admission is settled again", crashes_change_nothing),
        ("days are paid twice", days_are_paid_once),
        ("payments and the balance are not checked", crashes_change_nothing),
        ("a refill goes over the cap", days_are_paid_once),
    ],
)
def test_planted_bugs_are_seen(monkeypatch, bug, law):
    _plant(monkeypatch, bug)
    with pytest.raises((AssertionError, ImpossibleRecord)):
        _all_seeds(law)
