"""The newest events: what a stream of them is made of. The oldest are dropped; ranks have no gap.

An event keeps no ranking: one names every task that was considered, which may be thousands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from yarnctl.api.cluster_answers import LoopState
from yarnctl.deciding.reasons.modes import ModeReason
from yarnctl.deciding.records import Decision, Record, Refusal, Transition
from yarnctl.journal.explaining.story import OrderStory

EVENTS_MAX = 5_000


class LoopChanged(msgspec.Struct, frozen=True):
    """The loop reached another state, for these reasons."""

    at_ms: int
    state: LoopState
    why: tuple[ModeReason, ...]


class LoggedEvent(msgspec.Struct, frozen=True):
    """One event and its rank, from 1. ``story``: the order after a transition."""

    rank: int
    record: Decision | Refusal | Transition | LoopChanged
    story: OrderStory | None = None


class RecentEvents:
    """Collects events; ``events`` is the published value, oldest first."""

    def __init__(self, events_max: int = EVENTS_MAX) -> None:
        self.events: tuple[LoggedEvent, ...] = ()
        self._kept: deque[LoggedEvent] = deque(maxlen=events_max)
        self._rank = 0
        self._loop: tuple[LoopState, tuple[ModeReason, ...]] | None = None

    def apply(self, record: Record, stories: Sequence[OrderStory]) -> None:
        """Take one record of the journal; ``stories``: those that it changed."""
        if isinstance(record, Decision | Refusal):
            self._add(replace(record, refused_jobs=(), refused_tasks=()))
        elif isinstance(record, Transition) and stories:
            self._add(record, replace(stories[0], next_jobs=(), next_tasks=()))

    def look(self, state: LoopState, why: tuple[ModeReason, ...], at_ms: int) -> None:
        """Note a change of the loop's state, and publish what is new."""
        if (state, why) != self._loop:
            self._loop = state, why
            self._add(LoopChanged(at_ms, state, why))
        if self._kept and (not self.events or self.events[-1].rank != self._rank):
            self.events = tuple(self._kept)

    @property
    def oldest(self) -> int:
        """Return the rank of the oldest event that is kept."""
        return self.events[0].rank if self.events else 1

    @property
    def newest(self) -> int:
        """Return the rank of the newest event (0: none yet)."""
        return self.events[-1].rank if self.events else 0

    def _add(
        self, record: Decision | Refusal | Transition | LoopChanged, story: OrderStory | None = None
    ) -> None:
        self._rank += 1
        self._kept.append(LoggedEvent(self._rank, record, story))
