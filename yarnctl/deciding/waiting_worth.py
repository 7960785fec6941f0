"""How many containers wait for one request: by this a second of its delay is priced.

Law: :func:`waiting_for` reads the snapshot and nothing else, and no name. Counted are

* the request itself; of a master the containers that it will request, too: as many as the applications of
  its user in the queue have and request now, in the mean (of the whole queue where the user has none);
* masters behind the queue's limit for masters, with what they will request. The end of each of ``M`` active
  applications lets the next one start, whose end lets another one start: so ``N`` waiting ones are delayed
  ``N / M`` times by the delay of one. An application ends with its last container, so each of its pending
  requests has its part of that, and the last one all of it.

Each pending request of a job has its own price: requests behind it in the same job are not counted in it.
What a starting master requested in its last run is not read here: with ``--predicted-demand`` the forecast
alone knows it.
"""

from __future__ import annotations

from typing import NamedTuple

from yarnctl.deciding.foresight import has_asked
from yarnctl.deciding.model import ApplicationView, Snapshot
from yarnctl.deciding.settings import LeverSettings

SECOND_WORTH_RATIO = 1.0
"""What a second is worth unless told otherwise, and how often a task may then be killed: chosen on pairs of
hours (research/notes/plan-second-worth.md)."""
KILLS_MAX = 3
ROOM_SUSPENSIONS = 3
"""Where a second has a price, a lever may take as long as so many suspensions unless told otherwise."""
HOLD_MS = 60_000
"""About how long a container is away that is taken from a job: its master holds its own meanwhile."""
PARTS = 1000
"""A price has this many parts of a lost ms."""


def waiting_for(view: ApplicationView, snapshot: Snapshot) -> int:
    """Return how many containers wait for one requested container of ``view``, itself included."""
    queue = [other for other in snapshot.applications if other.queue == view.queue]
    held = sum(not other.activated for other in queue)
    own = 1 if has_asked(view) else 1 + first_requests(view, queue)
    if not held:
        return own
    active = max(1, len(queue) - held)
    pending = max(1, sum(request.count for request in view.requests))
    return own + -(-held * (1 + first_requests(view, queue)) // (active * pending))


def first_requests(view: ApplicationView, queue: list[ApplicationView]) -> int:
    """Return how many containers a starting master of this user will request; at least 1.

    ``queue``: all applications of its queue.
    """
    begun = [other for other in queue if has_asked(other)]
    alike = [other for other in begun if other.user == view.user] or begun
    if not alike:
        return 1
    tasks = sum(other.containers - 1 + sum(each.count for each in other.requests) for other in alike)
    return max(1, -(-tasks // len(alike)))


def hold_ms(tasks: int) -> int:
    """Return what the container of a master costs if one of its ``tasks`` running containers is taken.

    A job's master holds a container until the job's last task has ended. Each of its containers has its part:
    of small jobs, and of those that are about to end, less is taken, so that fewer masters hold containers
    when production needs all of them.
    """
    return HOLD_MS // max(1, tasks)


class SecondPrice(NamedTuple):
    """What each ms until a container is free costs, in ``PARTS`` of a ms of lost work; 0: nothing."""

    parts: int

    def of(self, span_ms: int) -> int:
        """Return what a span costs, in ms of lost work."""
        return self.parts * span_ms // PARTS


NO_PRICE = SecondPrice(0)


def price_for(view: ApplicationView, snapshot: Snapshot, lever_settings: LeverSettings | None) -> SecondPrice:
    """Return the price of a second of waiting for one requested container of ``view``."""
    if lever_settings is None or not lever_settings.second_worth_ratio:
        return NO_PRICE
    return SecondPrice(round(lever_settings.second_worth_ratio * PARTS) * waiting_for(view, snapshot))
