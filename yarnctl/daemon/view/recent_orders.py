"""Recent orders: the reclaim lists, and the newest decisions with the stories of their orders.

An order that has retired from the ledger is kept for a while; of decisions, refusals and rankings the newest.
Published values do not change: a reader sees the state of one time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from copy import copy

import msgspec

from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.order import order_number
from yarnctl.deciding.records import Decision, Ranking, Record, Refusal, Transition
from yarnctl.deciding.settings import Settings
from yarnctl.journal.explaining.order_stories import OrderStories
from yarnctl.journal.explaining.story import OrderStory

ENDED_MAX = 1000
CHECKPOINTS_MAX = 1000
STORIES_MAX = 20_000
DECISIONS_MAX = 500
REFUSALS_MAX = 500
RANKINGS_MAX = 100


class Checkpoint(msgspec.Struct, frozen=True):
    """A manifest that was found: work up to ``keys_done`` (None: unknown). ``rank``: its position, from 1."""

    rank: int
    order: OrderStory
    keys_done: int | None
    at_ms: int


class RankedRecord(msgspec.Struct, frozen=True):
    """A record, its position among all records of this process (from 1), its controller's settings."""

    rank: int
    record: Decision | Refusal | Ranking
    settings: Settings


class Decided(msgspec.Struct, frozen=True):
    """One decision, and the stories of its orders; ``rank``: its position among all records."""

    rank: int
    record: Decision
    settings: Settings
    orders: tuple[OrderStory, ...]


class RecentOrders:
    """Folds the journal's records; :meth:`update` publishes what they and the ledger say, once a tick."""

    def __init__(self, decisions_max: int = DECISIONS_MAX, stories_max: int = STORIES_MAX) -> None:
        self.entries: tuple[OrderStory, ...] = ()
        self.ended: tuple[OrderStory, ...] = ()
        self.decisions: tuple[Decided, ...] = ()
        self.checkpoints: deque[Checkpoint] = deque(maxlen=CHECKPOINTS_MAX)
        self.refusals: deque[RankedRecord] = deque(maxlen=REFUSALS_MAX)
        self.rankings: deque[RankedRecord] = deque(maxlen=RANKINGS_MAX)
        self._decisions_max = decisions_max
        self._fold = OrderStories(stories_max)
        self._changed: dict[str, OrderStory] = {}
        self._stories: dict[str, OrderStory] = {}
        """Copies of the fold's newest, as they are published."""
        self._decided: dict[int, Decided] = {}
        self._listed: dict[str, None] | None = None
        """The orders that the ledger had at the last update (None: there was none)."""
        self._ended: deque[str] = deque(maxlen=ENDED_MAX)
        self._rank = self._checkpoint_rank = 0

    def apply(self, record: Record) -> Sequence[OrderStory]:
        """Apply one record, in the order of the journal; return the stories that it changed."""
        self._rank += 1
        changed = self._fold.apply(record)
        self._changed.update((story.order, story) for story in changed)
        if isinstance(record, Decision):
            if record.number <= next(reversed(self._decided), 0):
                self._decided.clear()
            self._decided[record.number] = Decided(self._rank, record, self._fold.settings, ())
        elif isinstance(record, Refusal | Ranking):
            kept = self.refusals if isinstance(record, Refusal) else self.rankings
            kept.appendleft(RankedRecord(self._rank, record, self._fold.settings))
        elif isinstance(record, Transition) and record.target == "checkpointed":
            self._checkpoint_rank += 1
            self.checkpoints.extendleft(
                Checkpoint(self._checkpoint_rank, copy(story), story.keys_done, record.at_ms)
                for story in changed
            )
        return changed

    def story(self, order: str) -> OrderStory | None:
        """Return the newest story of an order."""
        return self._fold.newest.get(order)

    def update(self, ledger: Ledger) -> None:
        """Publish the stories. Call it after the records of the tick were applied."""
        newest = self._fold.newest
        changed = [story for name, story in self._changed.items() if newest.get(name) is story]
        changed += [
            self._fold.adopt(order)
            for orders in (ledger.open, ledger.settled)
            for name, order in orders.items()
            if name not in newest
        ]
        self._changed.clear()
        current = dict.fromkeys((*ledger.open, *ledger.settled))
        # The orders of a daemon before this one have stories and were never listed here.
        listed = dict.fromkeys(newest) if self._listed is None else self._listed
        if not changed and current.keys() == listed.keys():
            return
        while self._stories and (oldest := next(iter(self._stories))) not in newest:
            del self._stories[oldest]
        self._stories.update((story.order, copy(story)) for story in changed)
        self._ended.extendleft(name for name in listed if name not in current)
        self._listed = current
        entries = (self._stories[name] for name in current)
        self.entries = tuple(sorted(entries, key=lambda story: order_number(story.order)))
        self.ended = tuple(self._stories[name] for name in self._ended if name in self._stories)
        self._decide(dict.fromkeys(story.decision for story in changed))

    def _decide(self, numbers: Iterable[int]) -> None:
        """Publish the decisions whose orders have changed; drop the oldest."""
        while len(self._decided) > 1:
            number, oldest = next(iter(self._decided.items()))
            whole = all(name in self._stories for name in oldest.record.orders)
            if whole and len(self._decided) <= self._decisions_max:
                break
            del self._decided[number]
        for number in numbers:
            if number in self._decided:
                decided = self._decided[number]
                stories = tuple(self._stories[name] for name in decided.record.orders)
                self._decided[number] = msgspec.structs.replace(decided, orders=stories)
        self.decisions = tuple(reversed(self._decided.values()))
