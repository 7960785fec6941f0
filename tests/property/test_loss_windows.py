"""Loss budgets beside a second opinion: random days of container lives, with restarts, falls and failovers.

``make soak`` plays 100,000 histories. Here is a slice, and each bug that the second opinion must see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count, islice
from typing import Any

import pytest

from tests.property.loss_histories import History, Product, Verdict
from yarnctl.attach.observing.held_time import HeldTimes
from yarnctl.deciding import held_windows
from yarnctl.deciding.held_windows import HeldWindow
from yarnctl.deciding.loss_budget import LossBudget, LossState
from yarnctl.hadoop.wire import yarn

HISTORIES = 200
FIRST = 10**6
"""The soak plays those before."""


def played(numbers: Iterable[int]) -> Verdict:
    """Return the sums of some histories, and the first story of a difference."""
    verdicts = [History(number).play() for number in numbers]
    return Verdict(
        sum(one.overspent for one in verdicts),
        sum(one.rejected for one in verdicts),
        sum(one.allowed for one in verdicts),
        sum(one.refused for one in verdicts),
        next((one.story for one in verdicts if one.story), ""),
    )


def test_nothing_is_overspent_and_nothing_rejected_that_the_rule_allows() -> None:
    found = played(range(FIRST, FIRST + HISTORIES))
    assert (found.overspent, found.rejected, found.story) == (0, 0, "")
    assert found.allowed > HISTORIES
    assert found.refused > HISTORIES


# --- planted ----------------------------------------------------------------------------------------


def whole_counter(self: HeldWindow, _: int) -> dict[str, int]:
    """What was held since the beginning counts, whatever the window."""
    return dict(self._totals)


def without_a_base(self: HeldWindow, now_ms: int) -> dict[str, int]:
    """Where no sample is as old as the window, all counts: the rule of before."""
    held = held_now(self, now_ms)
    return held if self._marks and self._marks[0][0] <= now_ms - self._window_ms + 60_000 else self._totals


def older_mark(self: HeldWindow, now_ms: int) -> None:
    """The window begins with the last mark before it."""
    while len(self._marks) > 1 and self._marks[1][0] < now_ms - self._window_ms:
        self._marks.popleft()


def fallen_and_kept(self: HeldWindow, *_: Any) -> None:
    """A payer whose counter fell keeps its old base."""


def counting_on(self: HeldTimes) -> None:
    """Another ResourceManager's counters are taken for those of the one before."""


def hidden_is_kept(self: HeldTimes, at_ms: int, rows: Iterable[yarn.AppInfo]) -> None:
    """A counter that is not shown keeps its base."""
    known = dict(self._counters)
    updated(self, at_ms, rows)
    for row in rows:
        if row.mib_seconds < 0 and row.application in known:
            self._counters[row.application] = known[row.application]


def charges_lost(self: Product) -> None:
    """Another daemon begins with no charges."""
    begun(self)
    self.losses = LossBudget(LossState())


def charges_retired(self: LossBudget, now_ms: int, rules: Any) -> None:
    """Charges are dropped with the usual window, also those of longer ones."""
    self.charges = {
        name: each for name, each in self.charges.items() if each.at_ms > now_ms - rules.window_ms
    }


def coarse_marks(window_ms: int) -> int:
    """A tenth of the window is left out, not a sixtieth."""
    return window_ms // 10


held_now, updated, begun = HeldWindow.held, HeldTimes.update, Product.begin

PLANTED: list[tuple[Any, str, Callable[..., Any], str]] = [
    (HeldWindow, "held", whole_counter, "overspent"), (HeldWindow, "held", without_a_base, "overspent"),
    (HeldWindow, "_drop", older_mark, "overspent"), (HeldWindow, "_set_base", fallen_and_kept, "rejected"),
    (HeldTimes, "restart", counting_on, "overspent"), (HeldTimes, "update", hidden_is_kept, "overspent"),
    (Product, "begin", charges_lost, "overspent"), (LossBudget, "retire", charges_retired, "overspent"),
    (held_windows, "spacing_ms", coarse_marks, "rejected"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "name", "bug", "seen"), PLANTED, ids=[row[2].__name__ for row in PLANTED])
def test_the_second_opinion_sees(
    where: Any, name: str, bug: Callable[..., Any], seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, bug)
    numbers = islice(count(FIRST), HISTORIES)
    assert any(getattr(History(number).play(), seen) for number in numbers)
