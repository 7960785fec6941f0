"""What goes back of a payment of 1,000 milli-tokens, under every choice, and what is refused.

Claim under the table: who did not run gets all back under every choice; only then does ``none`` (the
paper) give anything.
"""

from __future__ import annotations

from functools import reduce

import pytest

from yarnctl.deciding.admission.pricing.accounts import (
    DAY_MS,
    NO_ACCOUNTS,
    AccountRecord,
    AccountSet,
    ImpossibleRecord,
    TokensCharged,
    TokensGranted,
    TokensRefilled,
    TokensRefunded,
    Used,
    after,
    price_mtokens,
    refill_due,
    settle,
)

CHARGE = TokensCharged(2, "a", "adm-1", 1000, "mine")
RECORDS: list[AccountRecord] = [AccountSet(0, "a"), TokensGranted(1, "a", 1500), CHARGE]
PAID = reduce(after, RECORDS, NO_ACCOUNTS)

TABLE = [
    # how it ended, used of 300 estimated: none, unused, late, both
    (Used("ran", 200, 300), (0, 333, 0, 333)),
    (Used("ran", 300, 300), (0, 0, 0, 0)),
    (Used("ran", 400, 300), (0, 0, 0, 0)),
    (Used("ran", 5, 0), (0, 0, 0, 0)),
    (Used("late", 200, 300), (0, 333, 1000, 1000)),
    (Used("not-run"), (1000, 1000, 1000, 1000)),
]


@pytest.mark.parametrize(("used", "back"), TABLE)
def test_what_goes_back(used, back):
    found = [settle(PAID, 9, "adm-1", used, choice) for choice in ("none", "unused", "late", "both")]
    assert tuple(each.mtokens for each in found if each) == back
    assert settle(PAID, 9, "adm-1", used) == found[-1]


def test_what_was_settled_or_never_paid_is_left_alone():
    settled = after(PAID, TokensRefunded(9, "a", "adm-1", 333))
    assert settle(settled, 10, "adm-1", Used("not-run")) is None
    assert settle(PAID, 10, "adm-2", Used("not-run")) is None
    assert settled.accounts["a"].balance_mtokens == 833


def _refilled_mtokens(state, at_ms: int) -> int | None:
    due = refill_due(state, "a", at_ms)
    return None if due is None else due.mtokens


def test_refills_are_of_whole_days_up_to_the_cap():
    state = reduce(after, [AccountSet(50, "a", 400, 1000)], NO_ACCOUNTS)
    assert refill_due(state, "a", 50 + DAY_MS - 1) is None
    due = refill_due(state, "a", 50 + 2 * DAY_MS + 7)
    assert due == TokensRefilled(50 + 2 * DAY_MS + 7, "a", 800, 50 + 2 * DAY_MS)
    state = after(state, due)
    assert _refilled_mtokens(state, 50 + 3 * DAY_MS) == 200
    above = after(state, TokensGranted(60, "a", 5000))
    assert _refilled_mtokens(above, 50 + 3 * DAY_MS) == 0


def test_days_before_a_change_are_not_paid_at_the_new_rate():
    state = reduce(after, [AccountSet(0, "a"), AccountSet(10 * DAY_MS, "a", 400, 9000)], NO_ACCOUNTS)
    assert refill_due(state, "a", 10 * DAY_MS + 5) is None
    assert _refilled_mtokens(state, 11 * DAY_MS) == 400


@pytest.mark.parametrize(
    "record",
    [TokensGranted(9, "unknown", 5), TokensGranted(9, "a", -5), TokensCharged(9, "a", "adm-1", 5),
     TokensCharged(9, "a", "adm-2", 501), TokensRefunded(9, "a", "adm-1", 1001),
     TokensRefunded(9, "a", "adm-2", 0), TokensRefilled(9, "a", 5, 0)],
)  # fmt: skip
def test_a_record_that_cannot_follow_is_refused(record):
    with pytest.raises(ImpossibleRecord):
        after(PAID, record)


def test_a_price_is_rounded_up():
    assert [price_mtokens(each) for each in (0.0, 0.1, 7.0, 7.001)] == [0, 1, 7, 8]
