"""Send an event to a webhook for each thing that owners of jobs and operators want to know.

The loop only puts an event into a bounded queue. A thread sends them, one after the other, and retries with
back-off. If the receiver is down for long, the oldest events are dropped, and the log has their number.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from yarnctl.daemon.admission.late_desk import DelayedPromise
from yarnctl.daemon.view.published import Publisher
from yarnctl.deciding.admission.book import Admission
from yarnctl.deciding.admission.late.late_promises import LatePromise
from yarnctl.deciding.records import (
    LeversStopped,
    Lowering,
    QueueResumed,
    Record,
    Restored,
    Return,
    SavedLost,
    Stance,
    StoodAside,
    Transition,
)
from yarnctl.errors import BadInput
from yarnctl.hadoop.http.session import CallLimits, ExchangeFailed, exchange, open_session
from yarnctl.journal.explaining.story import OrderStory
from yarnctl.journal.rendering import said, text, when
from yarnctl.listening.names import is_loopback
from yarnctl.restoring.change_file import described

if TYPE_CHECKING:
    import requests

_LOG = logging.getLogger("yarnctl.daemon")

QUEUED_MAX = 1_000
"""More events wait for nothing: the oldest is dropped."""
TRIES = 6
FIRST_BACKOFF_S = 1.0
"""The pause after the first failure; each further one is twice as long."""
LIMITS = CallLimits(
    connect_ms=3_000, read_timeout_ms=5_000, answer_ms=10_000, answer_bytes=1 << 16, retries=0
)
CLOSE_S = 2.0
GIVEN = ("freed", "granted")
"""States of an order whose container the research job has given."""

Kind = Literal[
    "gave", "resumed", "work-lost", "lowered", "restored", "state", "queue-paused", "queue-resumed",
    "levers-stopped", "will-be-late", "quoted-anew",
]  # fmt: skip


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the webhook receives, as JSON. ``text`` is a sentence; the other fields are empty if unknown.

    ``application``, ``user`` and ``queue``: of the research job; ``requester``: of production. With
    ``admission`` they are those of an admitted job, and ``deadline_at_ms`` is when it ends by its pace
    ("will-be-late"), or the deadline that can be kept instead of its own ("quoted-anew").
    """

    event: Kind
    at_ms: int
    text: str
    application: str = ""
    user: str = ""
    queue: str = ""
    order: str = ""
    requester: str = ""
    admission: str = ""
    deadline_at_ms: int = 0


def event_of(record: Record, story: OrderStory | None) -> Event | None:
    """Return the event of a record, None if it has none; ``story``: of its order."""
    if isinstance(record, Transition | Return | SavedLost):
        return None if story is None or story.observed else _of_order(record, story)
    if isinstance(record, Stance):
        return Event(event="state", at_ms=record.at_ms, text=f"{record.stance}: {text(record.why)}")
    if isinstance(record, StoodAside):
        queue = record.why.queue
        return Event(event="queue-paused", at_ms=record.at_ms, queue=queue, text=text(record.why))
    if isinstance(record, QueueResumed):
        words = f"an operator ended the pause of queue {record.queue}"
        return Event(event="queue-resumed", at_ms=record.at_ms, queue=record.queue, text=words)
    if isinstance(record, Lowering):
        words = "; ".join(f"yarnctl changes {described(change)}" for change in record.changes)
        return Event(event="lowered", at_ms=record.at_ms, text=f"{words}: {said(record.why)}")
    if isinstance(record, Restored):
        words = f"the change of {record.kind} of {record.target} has ended: {said(record.why)}"
        return Event(event="restored", at_ms=record.at_ms, text=words)
    if isinstance(record, LeversStopped):
        return Event(event="levers-stopped", at_ms=record.at_ms, text=text(record.why))
    return None


def _of_order(record: Transition | Return | SavedLost, story: OrderStory) -> Event | None:
    if isinstance(record, Return):
        kind: Kind = "resumed"
        words = f"{record.attempt} works again; its suspension cost {record.cost_ms / 1000:.1f} s"
    elif isinstance(record, SavedLost):
        kind, words = "work-lost", f"{record.attempt} resumed without all of its saved work"
    elif record.target in GIVEN and record.source not in GIVEN:
        kind, kept = "gave", "kept its work" if not story.lost_work_ms else "does some work again"
        words = f"{story.attempt} gave its container to production ({story.order_verb}) and {kept}"
    else:
        return None
    known = story.names.get(story.victim)
    return Event(
        event=kind,
        at_ms=record.at_ms,
        text=words,
        application=story.victim,
        user="" if known is None else known.user,
        queue="" if known is None else known.queue,
        order=story.order,
        requester=story.requester,
    )


def promise_event(admission: Admission, news: LatePromise | DelayedPromise) -> Event:
    """Return the event of a promise that a late job breaks: its own, or one that it delays."""
    deadline = when(admission.plan.deadline_at_ms)
    if isinstance(news, LatePromise):
        kind: Kind = "will-be-late"
        at_ms, new_ms = news.known_at_ms, news.projected_at_ms
        words = f"{admission.name} ends at {when(new_ms)} at its pace so far, after its deadline {deadline}"
    else:
        kind, at_ms, new_ms = "quoted-anew", news.quoted_at_ms, news.deadline_at_ms
        price = "" if news.price_mtokens is None else f", for {news.price_mtokens} mtokens by prices of now"
        words = (
            f"{', '.join(news.delayed_by)} delays {admission.name} past its deadline {deadline}; "
            f"{when(new_ms)} can be kept{price}"
        )
    return Event(
        event=kind,
        at_ms=at_ms,
        text=words,
        application=admission.application,
        user=admission.user,
        queue=admission.queue,
        admission=admission.admission,
        deadline_at_ms=new_ms,
    )


def checked_webhook(url: str, where: str = "--webhook") -> str:
    """Return the address of a webhook; raises BadInput unless it is https, or http on loopback.

    ``where``: the option that an error names. An error does not have the address.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise BadInput(where, "not a URL", "use the form https://HOST/PATH") from None
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not host or not is_safe or "@" in parts.netloc or any(each.isspace() for each in url):
        problem = "is neither an https address nor http on loopback, without user and password"
        raise BadInput(where, problem, "use the form https://HOST/PATH")
    return url


class Failure(NamedTuple):
    """Why a receiver did not take an event, without its address. ``is_final``: another try is in vain."""

    words: str
    is_final: bool


class Webhook:
    """Sends events to ``url`` until it is closed. ``close`` waits ``CLOSE_S`` for those that are queued."""

    def __init__(self, url: str, first_backoff_s: float = FIRST_BACKOFF_S) -> None:
        self._url = url
        self._first_backoff_s = first_backoff_s
        self._queued: deque[Event] = deque()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self.dropped = 0
        self._thread = threading.Thread(target=self._send_all, name="webhook", daemon=True)
        self._thread.start()

    def report(self, publisher: Publisher, record: Record) -> None:
        """Queue the event of a record; never waits for the receiver."""
        order = getattr(record, "order", "")
        event = event_of(record, publisher.story(order) if order else None)
        if event is not None:
            self.offer(event)

    def offer(self, event: Event) -> None:
        """Queue an event; the oldest is dropped if there are too many."""
        with self._changed:
            if len(self._queued) >= QUEUED_MAX:
                self._queued.popleft()
                self.dropped += 1
            self._queued.append(event)
            self._changed.notify()

    def close(self) -> None:
        """Send what is queued if the receiver answers at once, and end."""
        self._closing.set()
        with self._changed:
            self._changed.notify()
        self._thread.join(CLOSE_S)

    def _send_all(self) -> None:
        with open_session(LIMITS) as session:
            while True:
                with self._changed:
                    while not self._queued and not self._closing.is_set():
                        self._changed.wait()
                    if not self._queued:
                        return
                    event, dropped, self.dropped = self._queued.popleft(), self.dropped, 0
                if dropped:
                    _LOG.warning("the webhook is too slow or down: %d events were dropped", dropped)
                self._deliver(session, event)

    def _deliver(self, session: requests.Session, event: Event) -> None:
        """Send one event, with retries; a receiver that rejects it gets no second one."""
        backoff_s = self._first_backoff_s
        for number in range(1, TRIES + 1):
            failure = self._send(session, event)
            if failure is None:
                return
            if number == TRIES or failure.is_final or self._closing.is_set():
                _LOG.warning("an event for the webhook is lost (%s): %s", failure.words, event.text)
                return
            self._closing.wait(backoff_s)
            backoff_s *= 2

    def _send(self, session: requests.Session, event: Event) -> Failure | None:
        """Send an event once; return why the receiver did not take it."""
        headers = {"Content-Type": "application/json"}
        try:
            got = exchange(session, LIMITS, "POST", self._url, headers, msgspec.json.encode(event))
        except ExchangeFailed as problem:
            return Failure(f"no answer: {problem.fault}", is_final=False)
        if got.status < 300:
            return None
        is_final = got.status < 500 and got.status not in (408, 429)
        return Failure(f"status {got.status}", is_final)
