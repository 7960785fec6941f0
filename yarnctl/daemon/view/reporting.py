"""The report: what orders brought production and cost research, added up over the stories of orders.

Sums are kept for each ten minutes, queue and user, for ``KEPT_MS``. An order counts when it is decided, when
its requester receives the container, and when its victim has ended: at that time each. An awaited container
counts when its task was to end, if its application requests less then.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from yarnctl.api.report_answers import GainOut, LossOut, NotTakenOut, ReportOut, WaitedLess
from yarnctl.daemon.view.natural_ends import MODEL_RATIO, Arrival, NaturalEnds
from yarnctl.deciding import records
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.reasons.orders import NoPendingRequests, RequestGone, RoomElsewhere, ServedOtherwise
from yarnctl.deciding.reasons.rooting import code
from yarnctl.deciding.records import Record
from yarnctl.deciding.settings import Settings
from yarnctl.journal.explaining.order_stories import OrderStories
from yarnctl.journal.explaining.story import OrderStory

BUCKET_MS = 600_000
KEPT_MS = 8 * 86_400_000
AWAITED_MAX = 10_000
"""Awaited tasks, and requesting applications, that are remembered."""
NINETY = 1.645
"""Half a 90 % interval, in standard deviations."""

_SERVED = NoPendingRequests | RequestGone | RoomElsewhere | ServedOtherwise
"""Why an order was not needed: its request was served otherwise, and would have waited in turn, too."""

Key = tuple[int, str, str]
"""Begin of ten minutes, queue, user."""
ReasonKey = tuple[int, str, str, str, str]
"""Begin of ten minutes, queue, user; ``request``, ``application`` or ``task``, and the reason's code."""
Sums = TypeVar("Sums", bound="_Gain | _Loss")


class _Gain:
    """For one key: counts of containers, waits in container ms, and the spread of what was predicted."""

    def __init__(self) -> None:
        self.decisions = self.needed = self.ordered = self.received = self.unmet = self.estimated = 0
        self.without_ms = self.with_ms = self.spread_ms = 0.0

    def waits(self, since_ms: int, until_ms: int, arrival: Arrival) -> None:
        """Add one container: it waited until an instant, and would have waited until another."""
        self.estimated += 1
        self.without_ms += arrival.at_ms - since_ms
        self.with_ms += until_ms - since_ms
        self.spread_ms += (arrival.at_ms - since_ms) * arrival.spread_ratio


class Work(NamedTuple):
    """Work of tasks that gave their containers, in MiB-ms: done again, and kept."""

    lost_mib_ms: int
    kept_mib_ms: int


class _Promise:
    """A request that waits for a task's own end; ``pending``: what its application requested then."""

    def __init__(self, since_ms: int, until_ms: int, arrival: Arrival, pending: int) -> None:
        self.since_ms, self.until_ms, self.arrival, self.pending = since_ms, until_ms, arrival, pending


class _Loss:
    def __init__(self) -> None:
        self.verbs: Counter[str] = Counter()
        self.kept_mib_ms = self.lost_mib_ms = self.unknown = 0


class Reporting:
    """Adds up records and the stories that they change."""

    def __init__(self) -> None:
        self._settings = Settings()
        self._ends = NaturalEnds()
        self._gains: dict[Key, _Gain] = {}
        self._losses: dict[Key, _Loss] = {}
        self._not_taken: dict[ReasonKey, int] = {}
        self._expected: dict[str, list[Arrival]] = {}
        self._awaited: dict[str, None] = {}
        self._promises: dict[str, list[_Promise]] = {}
        self._requesters: dict[str, tuple[str, str]] = {}
        self._users: dict[str, str] = {}
        self._work: dict[str, Work] = {}
        self._lock = Lock()
        self.now_ms = 0

    def apply(self, record: Record, changed: Sequence[OrderStory]) -> None:
        """Add one record, in the journal's order; ``changed``: the stories that it changed."""
        with self._lock:
            self._apply(record, changed)

    def _apply(self, record: Record, changed: Sequence[OrderStory]) -> None:
        self.now_ms = max(self.now_ms, getattr(record, "at_ms", 0))
        if isinstance(record, records.Header):
            self._settings = record.settings
            self._ends.begin()
        elif isinstance(record, Observed):
            self._ends.look(record, self._settings)
            self._keep_promises(record.at_ms)
            self._saw(record)
        elif isinstance(record, records.Decision):
            self._decided(record)
        elif isinstance(record, records.Awaited):
            self._awaits(record)
        elif isinstance(record, records.Refusal):
            self._refused(record)
            self._note(record.at_ms, record.trigger, "request", code(record.why))
        elif isinstance(record, records.Transition):
            for story in changed:
                self._moved(record, story)

    def _saw(self, observed: Observed) -> None:
        """Note the users: a rejection names its application only."""
        if observed.change is not None:
            self._users.update((row.application, row.user) for row in observed.change.applications)
            _shorten(self._users)

    def _note(self, at_ms: int, trigger: records.Trigger, kind: str, why: str) -> None:
        key = (_begin(at_ms), trigger.queue, self._users.get(trigger.application, ""), kind, why)
        self._not_taken[key] = self._not_taken.get(key, 0) + 1

    def _refused(self, record: records.Decision | records.Refusal) -> None:
        for job in record.refused_jobs:
            self._note(record.at_ms, record.trigger, "application", str(job.why))
        for task in record.refused_tasks:
            self._note(record.at_ms, record.trigger, "task", str(task.why))

    def _decided(self, record: records.Decision) -> None:
        trigger = record.trigger
        user = record.names[trigger.application].user if trigger.application in record.names else ""
        self._requesters[trigger.application] = trigger.queue, user
        _shorten(self._requesters)
        gain = self._gain(record.at_ms, trigger.queue, user)
        gain.decisions += 1
        gain.needed += trigger.shortfall
        gain.ordered += len(record.orders)
        gain.unmet += record.unmet
        self._refused(record)
        arrivals = self._ends.arrivals(record.at_ms, sum(pick.serves for pick in record.picks))
        place = 0
        for order, pick in zip(record.orders, record.picks, strict=True):
            if arrivals is not None:
                self._expected[order] = arrivals[place : place + pick.serves]
            place += pick.serves

    def _awaits(self, record: records.Awaited) -> None:
        """Count requests that wait for a task's own end: without yarnctl they stand in the same queue."""
        fresh = [each for each in record.tasks if each.serves and each.container not in self._awaited]
        self._awaited.update(dict.fromkeys(each.container for each in fresh))
        _shorten(self._awaited)
        arrivals = self._ends.arrivals(record.at_ms, sum(each.serves for each in fresh)) or []
        ends = [each.until_ms for each in fresh for _ in range(each.serves)]
        pending = self._ends.pending.get(record.application, 0)
        for arrival, until_ms in zip(arrivals, ends, strict=False):
            promise = _Promise(record.at_ms, until_ms, arrival, pending)
            self._promises.setdefault(record.application, []).append(promise)

    def _keep_promises(self, at_ms: int) -> None:
        """Count requests when the promised end of their task has passed, unless they are still pending.

        Then another application received the container, and they are decided again.
        """
        for application, promises in list(self._promises.items()):
            pending = self._ends.pending.get(application, 0)
            for each in [each for each in promises if each.until_ms <= at_ms]:
                promises.remove(each)
                if pending >= each.pending:
                    self._ends.leave((each.arrival,), at_ms)
                    continue
                self._served(application, 1)
                queue, user = self._requesters.get(application, ("", ""))
                self._gain(at_ms, queue, user).waits(each.since_ms, each.until_ms, each.arrival)
            if not promises:
                del self._promises[application]

    def _served(self, application: str, containers: int) -> None:
        """Note containers that an order brought: they do not show that promised ones came."""
        for each in self._promises.get(application, ()):
            each.pending -= containers

    def _gain(self, at_ms: int, queue: str, user: str) -> _Gain:
        self._forget()
        return self._gains.setdefault((_begin(at_ms), queue, user), _Gain())

    def _moved(self, record: records.Transition, story: OrderStory) -> None:
        is_served = record.event == "not-needed" and isinstance(record.why, _SERVED)
        if record.target == "granted" or record.event == "simulated" or is_served:
            known = story.names.get(story.requester)
            queue, user = ("", "") if known is None else (known.queue, known.user)
            gain = self._gain(record.at_ms, queue, user)
            gain.received += 0 if is_served else story.serves
            self._served(story.requester, story.serves)
            for arrival in self._expected.pop(story.order, ()):
                gain.waits(story.ordered_at_ms, record.at_ms, arrival)
        ends = record.target not in OPEN or record.event == "simulated"
        if ends:
            left = self._expected.pop(story.order, ())
            self._ends.leave(() if record.target == "completed" else left, record.at_ms)
        if ends and (story.verb or record.event == "simulated") and record.target != "withdrawn":
            self._lost(record.at_ms, story)

    def _lost(self, at_ms: int, story: OrderStory) -> None:
        known = story.names.get(story.victim)
        queue, user = ("", "") if known is None else (known.queue, known.user)
        loss = self._losses.setdefault((_begin(at_ms), queue, user), _Loss())
        verb = story.verb or f"would {story.order_verb}"
        loss.verbs[verb] += 1
        if story.lost_work_ms is None:
            loss.unknown += 1
            return
        mib = story.size[0]
        since_ms = story.ordered_at_ms if story.working_since_ms is None else story.working_since_ms
        done_ms = max(0, story.ordered_at_ms - since_ms)
        lost_ms = story.lost_work_ms
        if not story.verb and story.order_verb == "kill":
            lost_ms = done_ms
        kept_ms = max(0, done_ms - lost_ms)
        loss.lost_mib_ms += lost_ms * mib
        loss.kept_mib_ms += kept_ms * mib
        if story.verb:
            before = self._work.get(queue, Work(0, 0))
            self._work[queue] = Work(before.lost_mib_ms + lost_ms * mib, before.kept_mib_ms + kept_ms * mib)

    def work(self) -> Mapping[str, Work]:
        """Return what research lost and kept since the start, by queue. Any thread may call it."""
        with self._lock:
            return dict(sorted(self._work.items()))

    def _forget(self) -> None:
        oldest = _begin(self.now_ms - KEPT_MS)
        tables: tuple[dict[Key, _Gain] | dict[Key, _Loss], ...] = (self._gains, self._losses)
        for table in tables:
            while table and (first := next(iter(table)))[0] < oldest:
                del table[first]
        while self._not_taken and (reason := next(iter(self._not_taken)))[0] < oldest:
            del self._not_taken[reason]

    def report(self, since_ms: int) -> ReportOut:
        """Return the sums from the ten minutes of ``since_ms`` on. Any thread may call it."""
        with self._lock:
            return self._report(since_ms)

    def _report(self, since_ms: int) -> ReportOut:
        since_ms = _begin(since_ms)
        gains = list(_summed(self._gains, since_ms))
        not_taken: Counter[tuple[str, str, str, str]] = Counter()
        for (at_ms, queue, user, kind, why), times in self._not_taken.items():
            if at_ms >= since_ms:
                not_taken[queue, user, kind, why] += times
        return ReportOut(
            since_ms=since_ms,
            until_ms=self.now_ms,
            would=self._settings.observe_only,
            waited_less=_waited_less([each for _, parts in gains for each in parts]),
            gains=[_gain_out(*key, parts) for key, parts in gains],
            losses=[_loss_out(*key, parts) for key, parts in _summed(self._losses, since_ms)],
            not_taken=[
                NotTakenOut(queue=queue, user=user, kind=kind, code=why, times=times)
                for (queue, user, kind, why), times in sorted(
                    not_taken.items(), key=lambda each: (-each[1], each[0])
                )
            ],
        )


def reported(journal: Iterable[Record], back_ms: int | None) -> ReportOut:
    """Return the report of a journal's last ``back_ms``; None: of all that is kept."""
    stories, reporting = OrderStories(), Reporting()
    for record in journal:
        reporting.apply(record, stories.apply(record))
    return reporting.report(0 if back_ms is None else reporting.now_ms - back_ms)


def _shorten(table: dict[str, Any]) -> None:
    """Drop the oldest entries."""
    while len(table) > AWAITED_MAX:
        del table[next(iter(table))]


def _begin(at_ms: int) -> int:
    return max(0, at_ms) // BUCKET_MS * BUCKET_MS


def _summed(table: dict[Key, Sums], since_ms: int) -> Iterator[tuple[tuple[str, str], list[Sums]]]:
    """Yield the parts of each queue and user, in their order."""
    found: dict[tuple[str, str], list[Sums]] = {}
    for (at_ms, queue, user), part in table.items():
        if at_ms >= since_ms:
            found.setdefault((queue, user), []).append(part)
    yield from sorted(found.items(), key=lambda each: each[0])


def _waited_less(parts: Sequence[_Gain]) -> WaitedLess:
    """Return the estimate: what was predicted without yarnctl less what was observed with it."""
    without_ms, estimated = sum(each.without_ms for each in parts), sum(each.estimated for each in parts)
    estimate_ms = without_ms - sum(each.with_ms for each in parts)
    sampled = sum(each.spread_ms for each in parts) / without_ms if without_ms else 0.0
    # Natural ends come by chance (Poisson at the most), lengths are sampled, and the model errs.
    ratio = math.sqrt(MODEL_RATIO**2 + sampled**2 + (1 / estimated if estimated else 0.0))
    half_ms = NINETY * ratio * without_ms
    return WaitedLess(
        least_ms=round(estimate_ms - half_ms),
        estimate_ms=round(estimate_ms),
        most_ms=round(estimate_ms + half_ms),
        estimated=estimated,
    )


def _gain_out(queue: str, user: str, parts: Sequence[_Gain]) -> GainOut:
    return GainOut(
        queue=queue,
        user=user,
        decisions=sum(each.decisions for each in parts),
        needed=sum(each.needed for each in parts),
        ordered=sum(each.ordered for each in parts),
        received=sum(each.received for each in parts),
        unmet=sum(each.unmet for each in parts),
        waited_less=_waited_less(parts),
    )


def _loss_out(queue: str, user: str, parts: Sequence[_Loss]) -> LossOut:
    verbs = sum((each.verbs for each in parts), Counter[str]())
    return LossOut(
        queue=queue,
        user=user,
        containers=sum(verbs.values()),
        verbs=dict(sorted(verbs.items())),
        kept_mib_ms=sum(each.kept_mib_ms for each in parts),
        lost_mib_ms=sum(each.lost_mib_ms for each in parts),
        unknown=sum(each.unknown for each in parts),
    )
