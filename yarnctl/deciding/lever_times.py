"""How long levers took on this cluster: a running estimate of each kind, with its spread.

A fold over the journal: a sample is the span from the decision on an order until its container was free. Of
executors and workers, whose own tasks say how long they take, it is by how much that was wrong. A suspension
waits for the end of a key group, of which its task says how long one takes: half of one is not counted.
Each kind of lever has its own estimate: a late worker makes no executor late.

The estimate begins with what the settings have, which counts as one sample; after eight, each further one
counts an eighth (the rule of TCP's round-trip times, RFC 6298, with a spread of mean deviations). A lever
that was much sooner than expected widens the spread by an eighth as much as one that was as much later: else
it would make the next ones late. Without a sample for ``KEPT_MS`` the estimate is that of the settings again:
a lever that was too slow to be used would never be measured again.

Only where a second has a price (``LeverSettings.second_worth_ratio``); otherwise the settings alone count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from yarnctl.deciding.levers import LEAVING, LeverKind
from yarnctl.deciding.order import Order
from yarnctl.deciding.settings import LeverSettings

WEIGHT_MAX = 8
"""The number of samples that count whole; of more, the older ones count less and less."""
SPREADS = 2
"""A span holds in nine of ten cases that is longer than the mean by so many mean deviations (of a normal
distribution 95 %)."""
KEPT_MS = 3_600_000


class LeverTime(msgspec.Struct, frozen=True, array_like=True):
    """What was observed of one kind of lever: samples, mean, mean deviation from it, and the last instant."""

    kind: LeverKind
    samples: int
    mean_ms: int
    spread_ms: int
    at_ms: int

    @property
    def long_ms(self) -> int:
        """Return the span that is seldom exceeded."""
        return self.mean_ms + SPREADS * self.spread_ms


def _part(number: int, parts: int) -> int:
    """Return a part of a number, rounded towards 0, so that rising and falling are alike."""
    return number // parts if number >= 0 else -(-number // parts)


class LeverTimes:
    """``by_kind``: what was observed of each kind."""

    def __init__(self, times: Iterable[LeverTime] = ()) -> None:
        self.by_kind: dict[LeverKind, LeverTime] = {each.kind: each for each in times}

    def freed(self, order: Order, kind: LeverKind, at_ms: int, lever_settings: LeverSettings) -> None:
        """Count an order when its container is free; ``kind``: its lever."""
        own_ms = max(0, order.remaining_ms) if order.verb == "drain" else (order.group_ms or 0) // 2
        took_ms = max(0, at_ms - order.ordered_at_ms) - own_ms
        before = self.of(kind, at_ms, lever_settings)
        weight = min(before.samples + 1, WEIGHT_MAX)
        miss_ms = took_ms - before.mean_ms
        wider_ms = abs(miss_ms) - before.spread_ms
        slower = WEIGHT_MAX if miss_ms < 0 < wider_ms else 1
        self.by_kind[kind] = LeverTime(
            kind,
            weight,
            before.mean_ms + _part(miss_ms, weight),
            before.spread_ms + _part(wider_ms, weight * slower),
            at_ms,
        )

    def of(self, kind: LeverKind, now_ms: int, lever_settings: LeverSettings) -> LeverTime:
        """Return what is expected of a kind now; of drains and rescales beside what their tasks report."""
        found = self.by_kind.get(kind)
        if found is not None and now_ms - found.at_ms < KEPT_MS:
            return found
        first_ms = lever_settings.suspend_ms if kind == "suspend" else lever_settings.leave_ms
        return LeverTime(kind, 1, 0 if kind in LEAVING.values() else first_ms, 0, now_ms)

    def set_back(self, by_ms: int) -> None:
        """Move every instant back by a span."""
        self.by_kind = {
            kind: msgspec.structs.replace(each, at_ms=each.at_ms - by_ms)
            for kind, each in self.by_kind.items()
        }


def corrected(lever_settings: LeverSettings, times: LeverTimes, now_ms: int) -> LeverSettings:
    """Return the settings with the spans in which levers give their containers, as far as observed."""
    if not lever_settings.second_worth_ratio:
        return lever_settings
    return msgspec.structs.replace(
        lever_settings,
        suspend_ms=times.of("suspend", now_ms, lever_settings).long_ms,
        leave_ms=times.of("kill", now_ms, lever_settings).long_ms,
    )


def late_by_kind(lever_settings: LeverSettings, times: LeverTimes, now_ms: int) -> Mapping[LeverKind, int]:
    """Return by how many ms levers free their containers later than said elsewhere; below 0: sooner.

    Of drains and rescales than their tasks report, of an ended reduce than a killed map by :func:`corrected`.
    """
    if not lever_settings.second_worth_ratio:
        return {}
    late_ms = {kind: times.of(kind, now_ms, lever_settings).long_ms for kind in LEAVING.values()}
    kill_ms = times.of("kill", now_ms, lever_settings).long_ms
    return {**late_ms, "end": times.of("end", now_ms, lever_settings).long_ms - kill_ms}
