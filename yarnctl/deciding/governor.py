"""The governor: levers that stop nothing, or that their requester does not wait for, are left alone.

**What cannot be withdrawn.** An executor or a worker that is asked to leave leaves, whatever becomes of the
request. It is asked only once its requester has lacked containers for a quarter of the time that it takes, at
most ``HELD_MAX_MS``: maps of a second are over by then. (A requester whose queue uses nothing does not wait:
no map of the queue can end.) And not where it comes later than the requester's queue serves itself:
containers of its own applications end, and YARN gives them to its requests. How many a second is observed
over the last looks. Once the requester has lacked containers for as long as the lever takes, this prediction
has failed, and it is asked. Other levers are withdrawn, or come, within seconds, and what they free is a
container more for production: they are not held back.

**What stops nothing.** While a suspension cannot save (there is no room for checkpoints, HDFS is down), its
task does no work, and production gets its container so much later. So one container is freed by suspensions
on trial before there are more, a suspension without a sign of life is given up sooner than other orders
(:meth:`yarnctl.deciding.order.Order.limit_ms`), and after a trial that failed, or ``FAILED_MAX`` suspensions
in a row, none is ordered for ``FIRST_STOP_MS``. Then comes the next trial; each stop in a row is twice as
long, up to ``STOP_MAX_MS``. A suspension that frees its container ends this. Other levers go on.

How suspensions went is a fold over the journal (:class:`Trials`, in the ledger); what looks show
(:class:`SelfHelp`) is memory of looks, as stale requests are (:mod:`yarnctl.deciding.looks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from yarnctl.deciding.case import Choice
from yarnctl.deciding.levers import LEAVING
from yarnctl.deciding.model import ApplicationView
from yarnctl.deciding.order import Order
from yarnctl.deciding.reasons.demand import HelpsItself, LeverHeldBack, OnItsWay, SuspensionsFail

FAILED_MAX = 3
FIRST_STOP_MS = 240_000
STOP_MAX_MS = 1_920_000
HELD_MAX_MS = 3_000
TURNOVER_MS = 10_000
"""The last looks, of which the turnover is the mean."""
GAP_MAX_MS = 5_000
"""What happened between two looks further apart is not known."""
LACKING = HelpsItself | LeverHeldBack | OnItsWay
"""Reasons of applications that lack containers, beside those that a choice was made for."""


# --- suspensions that fail: a fold over the journal ----------------------------------------------------


class Trials(msgspec.Struct, frozen=True, omit_defaults=True):
    """How suspensions went. ``works``: the last one that was not withdrawn freed its container, or fewer
    than ``FAILED_MAX`` in a row (``failed``) did not. ``stops``: in a row; ``why``: the last.
    """

    works: bool = False
    failed: int = 0
    stops: int = 0
    why: SuspensionsFail | None = None

    def moved(self, order: Order, target: str) -> Trials:
        """Note what became of an order: its container is free (also simulated), or its task did not stop."""
        if order.verb != "suspend":
            return self
        if target == ("simulated" if order.observed else "freed"):
            return Trials(works=True)
        if order.observed:
            return self
        if target != "given_up" or (self.why is not None and order.ordered_at_ms < self.why.until_ms):
            return self  # the latter was sent before the stop
        return msgspec.structs.replace(self, failed=self.failed + 1)

    def stop(self, now_ms: int) -> SuspensionsFail | None:
        """Return the reason to stop now; None: there is none."""
        if self.failed < (FAILED_MAX if self.works else 1):
            return None
        return SuspensionsFail(now_ms + stop_ms(self.stops), self.failed)

    def stopped(self, suspensions_fail: SuspensionsFail) -> Trials:
        """Begin a stop: nothing counts until it ends."""
        return Trials(stops=self.stops + 1, why=suspensions_fail)

    def left(self, still_open: Iterable[Order], now_ms: int) -> int | None:
        """Return how many containers may be freed by suspensions now; None: any number."""
        if self.works:
            return None
        ended = self.why is None or now_ms >= self.why.until_ms
        return int(ended and all(order.verb != "suspend" for order in still_open))

    def set_back(self, by_ms: int) -> Trials:
        """Return it with every instant moved back by a span."""
        if self.why is None:
            return self
        return msgspec.structs.replace(self, why=SuspensionsFail(self.why.until_ms - by_ms, self.why.failed))


def stop_ms(stops: int) -> int:
    """Return how long suspensions are stopped after so many stops before: 4, 8, 16, 32 minutes."""
    return min(FIRST_STOP_MS << min(stops, 10), STOP_MAX_MS)


# --- levers that cannot be withdrawn ------------------------------------------------------------------


class Turnover(NamedTuple):
    """What a queue's applications did in the ``span_ms`` between two looks, up to ``at_ms``.

    ``served``: by how many containers their requests fell; ``gained``: how many they have more.
    """

    at_ms: int
    span_ms: int
    served: int
    gained: int


class SeenRequests(NamedTuple):
    """An application at the last look: its containers, and how many it requested."""

    queue: str
    containers: int
    pending: int


class HelpMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What looks left: applications, since when they lack containers, and queues' turnover."""

    at_ms: int = 0
    seen: Mapping[str, SeenRequests] = {}
    lacks: Mapping[str, int] = {}
    turnover: Mapping[str, tuple[Turnover, ...]] = {}


class SelfHelp:
    """Compares each look at the requesting applications with the one before. ``memory``: its state."""

    def __init__(self) -> None:
        self.memory = HelpMemory()

    def look(self, views: Iterable[ApplicationView], as_of_ms: int) -> None:
        """Take a look: what was served since the last one."""
        memory = self.memory
        seen = {
            view.application: SeenRequests(
                view.queue, view.containers, sum(each.count for each in view.requests)
            )
            for view in views
        }
        span_ms = as_of_ms - memory.at_ms
        rows = {
            queue: tuple(each for each in row if as_of_ms - TURNOVER_MS < each.at_ms < as_of_ms)
            for queue, row in memory.turnover.items()
        }
        if memory.seen and 0 < span_ms <= GAP_MAX_MS:
            sums: dict[str, list[int]] = {}
            for name in {**memory.seen, **seen}:
                now, before = seen.get(name, _NOBODY), memory.seen.get(name, _NOBODY)
                mine = sums.setdefault(now.queue or before.queue, [0, 0])
                mine[0] += max(0, before.pending - now.pending) if now.queue else 0
                mine[1] += now.containers - before.containers
            for queue, (served, gained) in sums.items():
                rows[queue] = (*rows.get(queue, ()), Turnover(as_of_ms, span_ms, served, gained))
        lacks = {name: since_ms for name, since_ms in memory.lacks.items() if name in seen}
        self.memory = HelpMemory(as_of_ms, seen, lacks, {queue: row for queue, row in rows.items() if row})

    def quiet(self) -> None:
        """No application has pending requests: what is known of each is over."""
        self.memory = HelpMemory()

    def note(self, lacking: Iterable[str], now_ms: int) -> None:
        """Note which applications lack containers."""
        lacks = {name: self.memory.lacks.get(name, now_ms) for name in lacking}
        self.memory = msgspec.structs.replace(self.memory, lacks=lacks)

    def served_within(self, queue: str, span_ms: int) -> int:
        """Return how many containers a queue is expected to serve itself within a span.

        Its requests fell, and it has no more containers: so many of its own ended and were given to it. A
        request that is shown for a look after it was met makes no difference, as all looks count together.
        """
        row = self.memory.turnover.get(queue, ())
        served, gained = sum(each.served for each in row), sum(each.gained for each in row)
        spans_ms = sum(each.span_ms for each in row)
        return span_ms * max(0, served - max(0, gained)) // spans_ms if spans_ms else 0

    def keeps(
        self, view: ApplicationView, lacking: int, ahead: int, choice: Choice, now_ms: int
    ) -> tuple[int, HelpsItself | LeverHeldBack | None]:
        """Return how many containers fewer than in ``choice`` are to be ordered, and why (0, None: as many).

        ``lacking``: how many containers the application lacks, whatever the choice was made for. ``ahead``:
        how many those of its queue lack that YARN serves before it.
        """
        lacked_ms = now_ms - self.memory.lacks.get(view.application, now_ms)
        kept = drops = 0
        why: HelpsItself | LeverHeldBack | None = None
        for free_in_ms, serves, leaves in sorted(_arrivals(choice)):
            own = max(0, self.served_within(view.queue, free_in_ms) - ahead)
            if leaves and lacked_ms < min(free_in_ms // 4, HELD_MAX_MS):
                drops, why = drops + serves, why or LeverHeldBack()
            elif leaves and lacked_ms < free_in_ms and own and kept + own + serves > lacking:
                drops, why = drops + serves, HelpsItself(view.queue)
            else:
                kept += serves
        return drops, why


_NOBODY = SeenRequests("", 0, 0)


def _arrivals(choice: Choice) -> Iterable[tuple[int, int, bool]]:
    """Yield (time to the container, requests that it serves, whether it cannot be withdrawn) of a choice."""
    free_in_ms, leaves = 0, False
    for pick, pull in zip(choice.picks, choice.pulls, strict=True):
        free_in_ms = max(free_in_ms, pull.lever.free_in_ms)
        leaves = leaves or pull.lever.kind in LEAVING.values()
        if pick.serves:
            yield free_in_ms, pick.serves, leaves
            free_in_ms, leaves = 0, False
