"""Answers about prices and accounts.

1 token is 1 container-second; amounts are whole milli-tokens. A quote reserves nothing; the gate decides
again on the deadline that is chosen.
"""

from __future__ import annotations

import msgspec

from yarnctl.api.paged import Count, ErrorBody


class QuotePointOut(msgspec.Struct, frozen=True, kw_only=True):
    """One deadline: its price, the slack that it leaves, and the terms of the price (``because``)."""

    deadline_at_ms: int
    price_mtokens: Count
    slack_ms: Count
    late_ratio: float
    because: list[tuple[str, int]]


class QuoteOut(msgspec.Struct, frozen=True, kw_only=True):
    """A curve of deadlines with prices, earliest first."""

    id: str
    valid_until_ms: int
    earliest_at_ms: int
    account: str
    balance_mtokens: Count
    points: list[QuotePointOut]


class RepricedBody(ErrorBody, frozen=True, kw_only=True):
    """The body of `quote-moved` and `too-early`, with the current curve to choose from."""

    quote: QuoteOut


class AccountOut(msgspec.Struct, frozen=True, kw_only=True):
    """One account; it receives ``daily_mtokens`` a day until it holds ``cap_mtokens``."""

    name: str
    balance_mtokens: Count
    given_mtokens: Count
    spent_mtokens: Count
    daily_mtokens: Count
    cap_mtokens: Count


class AccountList(msgspec.Struct, frozen=True, kw_only=True):
    """All accounts, by name."""

    items: list[AccountOut]
