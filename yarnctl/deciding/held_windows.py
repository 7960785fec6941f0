"""What each payer held inside the windows of its budgets, by samples of counters of container time.

The rule is that of :mod:`yarnctl.deciding.loss_budget`. A payer is a queue (its jobs without a tag), a tagged
job by its id, or ``user:NAME``. Totals are MiB-ms and only their differences count:

* Of each minute the first sample is kept (a *mark*): sixty of an hour, at most 720 of a longer window.
* Held is the newest total less that of the oldest mark inside the window: at most a minute is left out.
* A payer that is new in a sample had a total of 0 in those before it. A total that fell is the first one of
  its payer; after :meth:`HeldWindows.restart` the next sample is the first one of all payers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from yarnctl.deciding.model import HeldTime
from yarnctl.deciding.settings import LossRule

MARK_MS = 60_000
MARKS_MIN, MARKS_MAX = 60, 720


def user_owner(user: str) -> str:
    """Return under which name a user's own budget is kept (no queue's name has a colon)."""
    return f"user:{user}"


def is_user(payer: str) -> bool:
    """Return whether a payer is a user."""
    return payer.startswith("user:")


def payer_of(rule: LossRule) -> str:
    """Return the payer that a rule is about."""
    return rule.name if rule.kind == "queue" else user_owner(rule.name)


def spacing_ms(window_ms: int) -> int:
    """Return how far apart the marks of a window are: a minute where the window has 60 to 720 of them."""
    return max(1, window_ms // MARKS_MAX, min(MARK_MS, window_ms // MARKS_MIN))


class HeldWindow:
    """The marks of one window: instants and payers' totals then."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms, self._spacing_ms = window_ms, spacing_ms(window_ms)
        self._marks: deque[tuple[int, dict[str, int]]] = deque()
        self._totals: dict[str, int] = {}

    def sample(self, at_ms: int, totals: Mapping[str, int]) -> None:
        """Take the totals of all payers; a payer that is not among them is forgotten."""
        for payer in self._totals.keys() - totals.keys():
            self._set_base(payer, 0)
        for payer, total in totals.items():
            if total < self._totals.get(payer, 0):
                self._set_base(payer, total)
        self._totals = dict(totals)
        self._drop(at_ms)
        if not self._marks or self._marks[-1][0] // self._spacing_ms != at_ms // self._spacing_ms:
            self._marks.append((at_ms, self._totals))

    def held(self, now_ms: int) -> dict[str, int]:
        """Return the MiB-ms that each payer held in the window that ends now."""
        self._drop(now_ms)
        base = self._marks[0][1] if self._marks else self._totals
        return {payer: total - base.get(payer, 0) for payer, total in self._totals.items()}

    def _set_base(self, payer: str, total: int) -> None:
        for _, totals in self._marks:
            totals[payer] = total

    def _drop(self, now_ms: int) -> None:
        while self._marks and self._marks[0][0] < now_ms - self._window_ms:
            self._marks.popleft()


class HeldWindows:
    """All windows. ``window_ms`` is that of budgets without a rule of their own, and of refetching."""

    def __init__(self, window_ms: int, rules: Iterable[LossRule]) -> None:
        self.window_ms = window_ms
        self.own_ms = {payer_of(rule): rule.window_ms for rule in rules}
        self._windows: dict[int, HeldWindow] = {}
        self.restart()

    @property
    def shortest_ms(self) -> int:
        """Return the shortest window."""
        return min((self.window_ms, *self.own_ms.values()))

    def has_own(self, payer: str) -> bool:
        """Return whether a payer has a rule of its own."""
        return payer in self.own_ms

    def restart(self) -> None:
        """Make the next sample the first one."""
        self._windows = {each: HeldWindow(each) for each in sorted({self.window_ms, *self.own_ms.values()})}

    def sample(self, at_ms: int, totals: Mapping[str, int]) -> None:
        """Take the totals of all payers; a payer that is not among them is forgotten."""
        for window_ms, window in self._windows.items():
            if window_ms == self.window_ms:
                window.sample(at_ms, {payer: total for payer, total in totals.items() if self._counts(payer)})
            else:
                mine = [payer for payer, own_ms in self.own_ms.items() if own_ms == window_ms]
                window.sample(at_ms, {payer: totals[payer] for payer in mine if payer in totals})

    def held(self, now_ms: int) -> tuple[HeldTime, ...]:
        """Return what each payer held in each of its windows that end now, by payer and window."""
        found = [
            HeldTime(payer, window_ms, mib_ms)
            for window_ms, window in self._windows.items()
            for payer, mib_ms in window.held(now_ms).items()
        ]
        return tuple(sorted(found))

    def _counts(self, payer: str) -> bool:
        """Return whether a payer has the usual window: all but users with another one."""
        return not is_user(payer) or self.own_ms.get(payer) == self.window_ms
