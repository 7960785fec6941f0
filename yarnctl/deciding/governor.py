"""The governor: levers are left alone where production is served as soon without them.

Two rules. Neither touches orders that are open, what is undone or what is restored.

**Before a decision.** The requester's queue helps itself: containers of its own applications end, and YARN
gives them to its requests. How many a second is observed over the last looks (:class:`Turnover`). With S
containers missing, levers that come within L are kept as long as their number, what is awaited and what the
queue serves itself within L are not more than S. Once the queue has lacked containers for L, this prediction
has failed, and L is pulled. A lever that cannot be withdrawn (an executor that drains) is pulled
only once its requests have waited for a quarter of its time, at most ``HELD_MAX_MS``: maps of a second are
over by then.

**By the last minutes**, for each requesting queue:

* *yield*: more than two of three of the last orders, at least ``LEAST``, brought their requester nothing:
  another application received the container, it was not claimed, the request was gone, or the task did not
  stop; or the tasks of the last ``IN_A_ROW`` did not. A suspension that was withdrawn in time cost nothing,
  and does not count;
* *time*: requests that lacked containers while levers could be pulled waited longer on average (by a quarter
  and a second) than those for which no task could be chosen or levers were stopped, at least ``WAITS_LEAST``
  of each. All of the first kind count, with orders or not: those that are served soon get none. Of each
  application the first ``FIRST`` containers count: the thousandth waits for the job's own tasks. No wait
  counts more than ``WAIT_MAX_MS``.

Then no lever is pulled for the queue for a minute; after that it is tried again, with new counts, and with
``TRIAL_MAX`` containers in flight at the most until as many orders were useful. Each stop is twice as long as
the one before, up to ``STOP_MAX_MS``; ``USEFUL_TO_FORGET`` useful orders in a row make the next one a first
one again.

Yields and stops are a fold over the journal (:class:`LeverYields`, in the ledger). What looks show
(:class:`Waits`) is memory of looks, as stale requests are (:mod:`yarnctl.deciding.looks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from yarnctl.deciding.case import Choice
from yarnctl.deciding.levers import LEAVING
from yarnctl.deciding.lifecycle import RECALLABLE
from yarnctl.deciding.model import ApplicationView
from yarnctl.deciding.order import Order
from yarnctl.deciding.reasons.demand import (
    HelpsItself,
    LeverHeldBack,
    LeversInVain,
    LeversMakeLater,
    OnItsWay,
)
from yarnctl.deciding.reasons.orders import (
    ApplicationHasEnded,
    NoPendingRequests,
    RequestGone,
    RoomElsewhere,
    ServedOtherwise,
)

WINDOW_MS = 600_000
"""The last minutes, over which orders and waits are compared."""
BUCKET_MS = 60_000
LEAST = 10
WAITS_LEAST = 20
IN_A_ROW = 4
TRIAL_MAX = 2
RECENT = 20
"""The number of a queue's last orders that count."""
FIRST_STOP_MS = 60_000
STOP_MAX_MS = 1_920_000
USEFUL_TO_FORGET = 10
WAIT_MAX_MS = 60_000
FIRST = 4
"""The number of waits that count since an application had no pending requests."""
LATER_PERCENT = 125
LATER_MS = 1_000
TURNOVER_MS = 10_000
"""The last looks, of which the turnover is the mean."""
GAP_MAX_MS = 5_000
"""What happened between two looks further apart is not known."""
HELD_MAX_MS = 3_000

Yielded = Literal["useful", "vain", "failed"]
"""What an order brought its requester; "failed": its task did not stop."""
StopReason = LeversInVain | LeversMakeLater
LACKING = HelpsItself | LeverHeldBack | LeversInVain | LeversMakeLater | OnItsWay
"""Reasons of applications that lack containers, beside those that a choice was made for."""
_NEEDLESS = NoPendingRequests | RoomElsewhere | RequestGone | ServedOtherwise | ApplicationHasEnded


# --- what becomes of orders: a fold over the journal --------------------------------------------------


class QueueYield(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of the last orders for one queue since its last stop, oldest first.

    ``last``: with their instants. ``useful``: how many useful in a row.
    ``stops``: how many stops were not followed by enough of them; ``why``: the last, which began at
    ``began_ms``.
    """

    queue: str
    last: tuple[tuple[int, Yielded], ...] = ()
    useful: int = 0
    stops: int = 0
    began_ms: int = 0
    why: StopReason | None = None


class YieldState(msgspec.Struct, frozen=True, omit_defaults=True):
    """``requesters``: the queue of each open order."""

    queues: tuple[QueueYield, ...] = ()
    requesters: Mapping[str, str] = {}


class LeverYields:
    """The yields of each requesting queue, and its stops."""

    def __init__(self, state: YieldState | None = None) -> None:
        state = state or YieldState()
        self.queues = {each.queue: each for each in state.queues}
        self.requesters = dict(state.requesters)

    def state(self) -> YieldState | None:
        """Return all of it as a value; None: there is nothing."""
        if not (self.queues or self.requesters):
            return None
        return YieldState(tuple(self.queues.values()), dict(self.requesters))

    def ordered(self, orders: Iterable[str], queue: str) -> None:
        """Note new orders for a queue."""
        self.requesters.update(dict.fromkeys(orders, queue))

    def settled(self, order: Order, target: str, why: object, at_ms: int) -> None:
        """Note what became of an order. An order that only observed, or lost its node, says nothing."""
        queue = self.requesters.pop(order.order, None)
        if queue is None or not order.serves or order.observed:
            return
        gone = target == "withdrawn" and isinstance(why, _NEEDLESS)
        is_back = gone and order.verb == "suspend" and order.state in RECALLABLE
        unclaimed = target == "lost" and order.state == "freed"
        yielded: Yielded = "vain"
        if target in ("granted", "given_up"):
            yielded = "useful" if target == "granted" else "failed"
        elif target != "misdirected" and not unclaimed and (is_back or not gone):
            return
        before = self.queues.get(queue) or QueueYield(queue=queue)
        if before.why is not None and at_ms < before.why.until_ms:
            return  # it was sent before the stop
        useful = before.useful + 1 if yielded == "useful" else 0
        self.queues[queue] = msgspec.structs.replace(
            before,
            last=(*before.last, (at_ms, yielded))[-RECENT:],
            useful=useful,
            stops=0 if useful >= USEFUL_TO_FORGET else before.stops,
        )

    def stop(self, why: StopReason, at_ms: int) -> None:
        """Begin a stop: nothing counts until it ends."""
        stops = self.stops_of(why.queue) + 1
        self.queues[why.queue] = QueueYield(queue=why.queue, stops=stops, began_ms=at_ms, why=why)

    def stops_of(self, queue: str) -> int:
        """Return how many stops of a queue the next one adds to."""
        return self.queues[queue].stops if queue in self.queues else 0

    def standing(self, now_ms: int) -> dict[str, StopReason]:
        """Return the queues for which no lever is pulled now, each with the reason."""
        return {
            queue: each.why
            for queue, each in self.queues.items()
            if each.why is not None and now_ms < each.why.until_ms
        }

    def in_vain(self, queue: str, now_ms: int) -> LeversInVain | None:
        """Return the reason to stop by the yield of a queue's orders; None: there is none."""
        if queue not in self.queues:
            return None
        recent = [yielded for at_ms, yielded in self.queues[queue].last if at_ms > now_ms - WINDOW_MS]
        vain = sum(yielded != "useful" for yielded in recent)
        failing = recent[-IN_A_ROW:] == ["failed"] * IN_A_ROW
        if not failing and (len(recent) < LEAST or vain * 3 <= len(recent) * 2):
            return None
        return LeversInVain(queue, now_ms + stop_ms(self.stops_of(queue)), vain, len(recent))

    @property
    def is_trial(self) -> bool:
        """Whether levers are tried again for a queue, and too few orders were useful yet."""
        return any(
            each.stops and sum(yielded == "useful" for _, yielded in each.last) < TRIAL_MAX
            for each in self.queues.values()
        )

    def set_back(self, by_ms: int) -> None:
        """Move every instant back by a span."""
        for queue, each in self.queues.items():
            why = each.why
            if why is not None:
                why = msgspec.structs.replace(why, until_ms=why.until_ms - by_ms)
            self.queues[queue] = msgspec.structs.replace(
                each,
                last=tuple((at_ms - by_ms, yielded) for at_ms, yielded in each.last),
                began_ms=each.began_ms - by_ms,
                why=why,
            )


def stop_ms(stops: int) -> int:
    """Return how long levers are stopped after so many stops before: 1, 2, 4 minutes, up to 32."""
    return min(FIRST_STOP_MS << min(stops, 10), STOP_MAX_MS)


# --- what looks show ----------------------------------------------------------------------------------

Group = Literal["", "with", "without"]
"""How an application lacked containers: while levers could be pulled, while none could, or not at all."""


class WaitingLine(NamedTuple):
    """An application's pending requests: (since, containers), the oldest first.

    ``given``: containers that it was given at the last look and whose requests were still shown. ``counted``:
    waits since it had no pending requests.
    """

    queue: str
    containers: int
    at_ms: int
    requests: tuple[tuple[int, int], ...] = ()
    given: int = 0
    group: Group = ""
    counted: int = 0

    @property
    def pending(self) -> int:
        """How many containers are pending."""
        return sum(count for _, count in self.requests)


class Turnover(NamedTuple):
    """How many containers a queue served itself in the ``span_ms`` between two looks, up to ``at_ms``."""

    at_ms: int
    span_ms: int
    containers: int


class Bucket(NamedTuple):
    """The waits that ended within a minute from ``at_ms`` on: counts, and ms in sum."""

    at_ms: int
    with_orders: int = 0
    with_ms: int = 0
    without: int = 0
    without_ms: int = 0


class WaitMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What looks left: by application, and by queue. ``lacks``: since when a queue lacks containers."""

    lines: Mapping[str, WaitingLine] = {}
    lacks: Mapping[str, int] = {}
    turnover: Mapping[str, tuple[Turnover, ...]] = {}
    buckets: Mapping[str, tuple[Bucket, ...]] = {}


class Waits:
    """Compares each look at the requesting applications with the one before. ``memory``: its state."""

    def __init__(self) -> None:
        self.memory = WaitMemory()

    def look(self, views: Iterable[ApplicationView], as_of_ms: int) -> None:
        """Take a look: what was served since the last one, and how long that had waited."""
        before, lines = self.memory.lines, dict[str, WaitingLine]()
        seen: dict[str, list[int]] = {}
        buckets = {
            queue: tuple(each for each in row if each.at_ms > as_of_ms - WINDOW_MS)
            for queue, row in self.memory.buckets.items()
        }
        spans = [as_of_ms - line.at_ms for line in before.values()]
        span_ms = max(spans, default=0)
        known = bool(spans) and min(spans) > 0 and span_ms <= GAP_MAX_MS
        for view in views:
            line = before.get(view.application) if known else None
            if line is None:
                line = WaitingLine(view.queue, view.containers, as_of_ms)
            lines[view.application], served, ended, waits = _compared(line, view, as_of_ms)
            sums = seen.setdefault(view.queue, [0, 0])
            sums[0] += served
            sums[1] += ended
            if waits and line.group:
                first = waits[: FIRST - line.counted]
                buckets[view.queue] = _added(buckets.get(view.queue, ()), line.group, first, as_of_ms)
        for name, line in before.items() if known else ():
            if name not in lines and line.queue in seen:
                seen[line.queue][1] += line.containers
        turnover = {
            queue: tuple(each for each in row if as_of_ms - TURNOVER_MS < each.at_ms < as_of_ms)
            for queue, row in self.memory.turnover.items()
        }
        if known:
            for queue, (served, ended) in seen.items():
                # What ended and was given to others does not help: as much as was served does, at the most.
                here = Turnover(as_of_ms, span_ms, min(served, ended))
                turnover[queue] = (*turnover.get(queue, ()), here)
        self.memory = WaitMemory(
            lines,
            self.memory.lacks,
            {queue: row for queue, row in turnover.items() if row},
            {queue: row for queue, row in buckets.items() if row},
        )

    def quiet(self) -> None:
        """No application has pending requests: what is known of each is over."""
        self.memory = WaitMemory(buckets=self.memory.buckets)

    def note(self, groups: Mapping[str, Group], lacking: Iterable[str], now_ms: int) -> None:
        """Note how a decision serves applications, and which queues are ``lacking`` containers.

        An application that an order was sent for stays so until all its requests are served.
        """
        lines = dict(self.memory.lines)
        for name, group in groups.items():
            line = lines.get(name)
            if line is not None and line.group != "with":
                lines[name] = line._replace(group=group)
        lacks = {queue: self.memory.lacks.get(queue, now_ms) for queue in lacking}
        self.memory = msgspec.structs.replace(self.memory, lines=lines, lacks=lacks)

    def later(self, queue: str, now_ms: int, stops: int) -> LeversMakeLater | None:
        """Return the reason to stop by the waits of a queue's requests; None: there is none."""
        row = self.memory.buckets.get(queue, ())
        with_orders, without = sum(each.with_orders for each in row), sum(each.without for each in row)
        if min(with_orders, without) < WAITS_LEAST:
            return None
        with_ms = sum(each.with_ms for each in row) // with_orders
        without_ms = sum(each.without_ms for each in row) // without
        if with_ms * 100 <= without_ms * LATER_PERCENT + LATER_MS * 100:
            return None
        return LeversMakeLater(queue, now_ms + stop_ms(stops), with_ms, without_ms, with_orders, without)

    def begin_anew(self, queue: str) -> None:
        """Forget the waits with orders: after a stop they are counted anew."""
        row = tuple(each._replace(with_orders=0, with_ms=0) for each in self.memory.buckets.get(queue, ()))
        lines = {
            name: line._replace(group="") if line.queue == queue else line
            for name, line in self.memory.lines.items()
        }
        buckets = {**self.memory.buckets, queue: row}
        self.memory = msgspec.structs.replace(self.memory, lines=lines, buckets=buckets)

    def served_within(self, queue: str, span_ms: int) -> int:
        """Return how many containers a queue is expected to serve itself within a span."""
        row = self.memory.turnover.get(queue, ())
        spans_ms = sum(each.span_ms for each in row)
        return span_ms * sum(each.containers for each in row) // spans_ms if spans_ms else 0

    def waited_ms(self, application: str, now_ms: int) -> int:
        """Return how long an application's oldest pending request has been seen."""
        line = self.memory.lines.get(application)
        return now_ms - line.requests[0][0] if line is not None and line.requests else 0


def _compared(
    line: WaitingLine, view: ApplicationView, as_of_ms: int
) -> tuple[WaitingLine, int, int, list[int]]:
    """Return an application's line, how many it was served and how many ended, and the first waits (ms)."""
    pending = sum(request.count for request in view.requests)
    given = max(0, view.containers - line.containers)
    fell = max(0, line.pending - pending)
    late = min(fell, line.given)  # of requests that were met by the look before
    served = given + max(0, fell - late - given)
    ended = served - (view.containers - line.containers)
    requests, waits, left = list(line.requests), list[int](), served
    while left and requests:
        since_ms, count = requests[0]
        now = min(left, count)
        waits += [min(as_of_ms - since_ms, WAIT_MAX_MS)] * min(now, FIRST)
        left -= now
        requests[0] = (since_ms, count - now)
        if count == now:
            del requests[0]
    more = pending - sum(count for _, count in requests)
    if more > 0:
        requests.append((as_of_ms, more))
    while more < 0:
        since_ms, count = requests.pop()
        if count > -more:
            requests.append((since_ms, count + more))
        more += count
    kept = WaitingLine(view.queue, view.containers, as_of_ms, tuple(requests), max(0, given - (fell - late)))
    if requests:
        kept = kept._replace(group=line.group, counted=min(FIRST, line.counted + len(waits)))
    return kept, served, ended, waits


def _added(row: tuple[Bucket, ...], group: Group, waits: Sequence[int], at_ms: int) -> tuple[Bucket, ...]:
    """Return buckets with waits added to the newest, or to a new one."""
    if not row or row[-1].at_ms <= at_ms - BUCKET_MS:
        row = (*row, Bucket(at_ms))
    last, counts, total_ms = row[-1], len(waits), sum(waits)
    if group == "with":
        last = last._replace(with_orders=last.with_orders + counts, with_ms=last.with_ms + total_ms)
    else:
        last = last._replace(without=last.without + counts, without_ms=last.without_ms + total_ms)
    return (*row[:-1], last)


# --- before a decision --------------------------------------------------------------------------------


class SelfHelp:
    """What the requesters of one plan are expected to serve themselves."""

    def __init__(self, waits: Waits, now_ms: int) -> None:
        self._waits, self._now_ms = waits, now_ms
        self._ahead: dict[str, int] = {}

    def keeps(
        self, view: ApplicationView, lacking: int, choice: Choice
    ) -> tuple[int, HelpsItself | LeverHeldBack | None]:
        """Return how many containers fewer than in ``choice`` are to be ordered, and why (0, None: as many).

        ``lacking``: how many containers the application lacks, whatever the choice was made for.
        """
        ahead = self._ahead.get(view.queue, 0)
        waited_ms = self._waits.waited_ms(view.application, self._now_ms)
        lacked_ms = self._now_ms - self._waits.memory.lacks.get(view.queue, self._now_ms)
        awaited = [each.until_ms - self._now_ms for each in choice.awaited for _ in range(each.serves)]
        kept = 0
        drops = 0
        why: HelpsItself | LeverHeldBack | None = None
        for free_in_ms, serves, leaves in sorted(_arrivals(choice)):
            hold_ms = min(free_in_ms // 4, HELD_MAX_MS) if leaves else 0
            own = max(0, self._waits.served_within(view.queue, free_in_ms) - ahead)
            ended = sum(each_ms <= free_in_ms for each_ms in awaited)
            if waited_ms < hold_ms:
                drops += serves
                why = why or LeverHeldBack()
            elif lacked_ms < free_in_ms and own and kept + ended + own + serves > lacking:
                drops += serves
                why = HelpsItself(view.queue)
            else:
                kept += serves
        return drops, why

    def planned(self, queue: str, lacking: int) -> None:
        """Note what an application lacks: YARN serves it before the next of its queue."""
        self._ahead[queue] = self._ahead.get(queue, 0) + lacking


def _arrivals(choice: Choice) -> Iterable[tuple[int, int, bool]]:
    """Yield (time to the container, requests that it serves, whether it cannot be withdrawn) of a choice."""
    free_in_ms, leaves = 0, False
    for pick, pull in zip(choice.picks, choice.pulls, strict=True):
        free_in_ms = max(free_in_ms, pull.lever.free_in_ms)
        leaves = leaves or pull.lever.kind in LEAVING.values()
        if pick.serves:
            yield free_in_ms, pick.serves, leaves
            free_in_ms, leaves = 0, False
