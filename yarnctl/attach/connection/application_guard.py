"""Bound every request to a program that a job's owner controls: a driver, a JobManager or a master.

A wrong or slow answer of one application hides only that application.

* All requests of one look at an application share one deadline and one bound of bytes (``Allowance``).
* A look never waits longer than :class:`GuardBounds` says, for all applications together. An application
  that is late is a :class:`LateAnswer` in this look; its requests continue beside the loop until their
  deadline, and the next look has their answer, if that is not too old.
* The guard stops waiting for an application that took longer until it has answered in time ``PROMPT_AGAIN``
  times.
* A change begins at once or is not sent at all (``Absent``); if its answer is late, the result is Uncertain.
* A read runs in a thread of the guard and changes no state of its caller. Reads of one application run one
  after another, the purpose first that was served the longest time ago.
* Answers have the order of the requested names: the same answers give the same result.
"""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as futures_wait
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from yarnctl.attach.connection.calls import Problem, attempt
from yarnctl.hadoop.http.answers import Uncertain
from yarnctl.hadoop.http.session import Allowance, ByteReserve, allowed
from yarnctl.hadoop.proxied import Absent

Key = TypeVar("Key")
Value = TypeVar("Value")

PROMPT_AGAIN = 5  # Answers in time after which the guard waits again for an application that was late
THREADS_MAX, HELPERS_MAX = 64, 16
HELPERS_EACH = 3  # Threads that help with the many requests of one look at one application
CHANGES_EACH = 4  # Independent changes of one application that are sent in parallel
FLOOR_MS = 20  # The least time to wait for an answer, even if other applications have used up the look's time
RESERVE_BYTES = 128 << 20


class LateAnswer(Problem):
    """An application has not answered in this look; its requests continue."""


LATE = LateAnswer("no answer yet; yarnctl keeps waiting for it")


class GuardBounds(NamedTuple):
    """Bounds in ms and bytes; :class:`yarnctl.attach.connection.connection.Attachment` has their defaults.

    ``look_ms`` and ``look_bytes``: all requests of one look at an application. ``wait_ms``: how long a look
    waits for all applications together; ``order_wait_ms``: the orders after it. ``answer_age_ms``: an answer
    whose reading began longer ago is not used. ``at_once``: reads side by side, late ones not counted.
    """

    look_ms: int
    look_bytes: int
    wait_ms: int
    order_wait_ms: int
    answer_age_ms: int
    at_once: int


class ApplicationLook:
    """One look at an application, as its read function uses it."""

    def __init__(
        self, helpers: ThreadPoolExecutor, helpers_max: int, clock_ms: Callable[[], int] | None = None
    ) -> None:
        self._helpers = helpers
        self._helpers_max = helpers_max
        self._clock_ms = clock_ms or monotonic_ms

    def each(
        self, ask: Callable[[Key], Value], keys: Iterable[Key], within_ms: int | None = None
    ) -> dict[Key, Value | Problem]:
        """Return key -> answer or Problem, in the order of the keys; several are requested in parallel.

        ``within_ms``: after so long no further key is requested (None: all are); its answer is missing.
        """
        wanted = list(dict.fromkeys(keys))
        todo, found = deque(wanted), dict[Key, Value | Problem]()
        until_ms = None if within_ms is None else self._clock_ms() + within_ms

        def work() -> None:
            while todo and (until_ms is None or self._clock_ms() <= until_ms):
                try:
                    key = todo.popleft()
                except IndexError:  # a helper was quicker
                    return
                found[key] = attempt(ask, key)

        count = min(self._helpers_max, len(wanted) - 1)
        helping: list[Future[None]] = []
        with contextlib.suppress(RuntimeError):  # the guard is closed: no help then
            for _ in range(count):
                helping.append(self._helpers.submit(contextvars.copy_context().run, work))
        work()
        for one in helping:
            if not one.cancel():
                one.result()
        return {key: found[key] for key in wanted if key in found}


class ReadAnswer(NamedTuple, Generic[Value]):
    """An answer, with the start of its reading (ms of the guard's clock)."""

    value: Value
    began_ms: int


class _Read:
    """One read of an application for one purpose (its first word: the kind), in one look."""

    def __init__(self, purpose: str, read: Callable[[ApplicationLook], Any], look: int) -> None:
        self.purpose = purpose
        self.kind = purpose.partition(" ")[0]
        self.read = read
        self.look = look
        self.began_ms = 0
        self.done: Future[Any] = Future()


class _Change(NamedTuple):
    """One change that was sent, with its time of sending; ``beside``: others like it may go with it."""

    sent: Future[Any]
    began_ms: int
    beside: bool


class _Application:
    """The guard's state of one application. ``in_time``: answers in time since it was late."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.in_time = PROMPT_AGAIN
        self.look = -1
        self.waiting: dict[str, _Read] = {}
        self.running: _Read | None = None
        self.is_late = False
        self.has_ended = False
        self.reads: dict[str, _Read] = {}
        self.served: dict[str, int] = {}
        self.changes: dict[str, _Change] = {}
        self._allowance: Allowance | None = None

    @property
    def is_prompt(self) -> bool:
        """Whether the guard waits for this application."""
        return self.in_time >= PROMPT_AGAIN


Wait = Callable[[Collection[Future[Any]], int], object]  # Waits until all are done, at most this many ms


def wait_for(futures: Collection[Future[Any]], span_ms: int) -> object:
    """Wait by the wall clock."""
    return futures_wait(futures, span_ms / 1000)


def monotonic_ms() -> int:
    """Return the time of the monotonic clock in ms."""
    return time.monotonic_ns() // 1_000_000


class ApplicationGuard:
    """Reads applications within bounds. ``clock_ms`` and ``wait``: the machine's; a test passes its own."""

    def __init__(
        self, bounds: GuardBounds, clock_ms: Callable[[], int] = monotonic_ms, wait: Wait = wait_for
    ) -> None:
        self.bounds = bounds
        self.clock_ms = clock_ms
        self.wait = wait
        self._lock = Lock()
        self._applications: dict[str, _Application] = {}
        self._pool = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="application")
        self._helpers = ThreadPoolExecutor(HELPERS_MAX, thread_name_prefix="application-helper")
        self._reserve = ByteReserve(RESERVE_BYTES)
        self._ready: deque[_Application] = deque()
        self._running = self._running_late = self._changing = 0
        self._look = self._served = 0
        self._waiting = self._waiting_since_ms = 0
        self._left_ms = bounds.wait_ms
        self._is_closed = False

    # --- looks --------------------------------------------------------------------------------

    def begin_look(self) -> None:
        """Begin a look: give all applications a new deadline, and the look its time to wait."""
        before_ms = self.clock_ms() - self.bounds.answer_age_ms
        with self._lock:
            self._look += 1
            self._left_ms = self.bounds.wait_ms
            for name, one in list(self._applications.items()):
                for purpose, read in list(one.reads.items()):
                    if read.done.done() and read.began_ms < before_ms:
                        del one.reads[purpose]
                for purpose, change in list(one.changes.items()):
                    if change.sent.done() and change.began_ms < before_ms:
                        del one.changes[purpose]
                if (not (one.waiting or one.running or one.reads or one.changes)) and (
                    one.is_prompt or one.has_ended
                ):
                    del self._applications[name]

    def begin_orders(self) -> None:
        """Begin the orders after a look, with their own time to wait."""
        with self._lock:
            self._left_ms = self.bounds.order_wait_ms

    def is_reading(self, name: str, purpose: str) -> bool:
        """Return whether a read of an application is running, or its answer is kept."""
        with self._lock:
            one = self._applications.get(name)
            return one is not None and purpose in one.reads

    def is_changing(self, name: str) -> bool:
        """Return whether a change of an application was sent and has no answer yet."""
        with self._lock:
            one = self._applications.get(name)
            return one is not None and any(not each.sent.done() for each in one.changes.values())

    def read_each(
        self, purpose: str, read: Callable[[str, ApplicationLook], Value], names: Iterable[str]
    ) -> dict[str, ReadAnswer[Value] | Problem]:
        """Return name -> answer or Problem (LateAnswer: none in this look), in the order of the names."""
        wanted = list(dict.fromkeys(names))
        reads: dict[str, _Read] = {}
        with self._lock:
            for name in wanted:
                reads[name] = self._begin(name, purpose, _bound(read, name))
        prompt = [each.done for name, each in reads.items() if self._applications[name].is_prompt]
        self._wait_for([each for each in prompt if not each.done()])
        found: dict[str, ReadAnswer[Value] | Problem] = {}
        with self._lock:
            for name, each in reads.items():
                found[name] = self._taken(name, each)
                if not (self._applications[name].is_prompt or isinstance(found[name], Problem)):
                    self._begin(name, purpose, _bound(read, name))  # for the next look
        return found

    def read(self, name: str, purpose: str, read: Callable[[str, ApplicationLook], Value]) -> Value | Problem:
        """Return one application's answer, or a Problem."""
        found = self.read_each(purpose, read, (name,))[name]
        return found if isinstance(found, Problem) else found.value

    def _begin(self, name: str, purpose: str, read: Callable[[ApplicationLook], Any]) -> _Read:
        """Return the read for a purpose: the running or finished one, else a new one."""
        one = self._applications.get(name)
        if one is None:
            one = self._applications[name] = _Application(name)
        kept = one.reads.get(purpose)
        if kept is not None:
            return kept
        new = one.reads[purpose] = one.waiting[purpose] = _Read(purpose, read, self._look)
        if one.running is None and one not in self._ready:
            self._ready.append(one)
        self._dispatch()
        return new

    def _allowance(self) -> Allowance:
        deadline_s = time.monotonic() + self.bounds.look_ms / 1000
        return Allowance(deadline_s, self.bounds.look_bytes, self._reserve)

    def _taken(self, name: str, read: _Read) -> ReadAnswer[Any] | Problem:
        one = self._applications[name]
        if not read.done.done():
            # A read that waits for a thread, or that had no time left, does not make its application slow.
            if one.running is not None and self._is_slow(one.running):
                one.in_time = 0
            if one.running is not None and not one.is_late:
                one.is_late = True
                self._running_late += 1
                self._dispatch()
            return LATE
        one.reads.pop(read.purpose, None)
        answer = read.done.result()
        if isinstance(answer, Problem):
            return answer
        return ReadAnswer(answer, read.began_ms)

    def _is_slow(self, read: _Read) -> bool:
        return self.clock_ms() - read.began_ms >= self.bounds.wait_ms

    def _wait_for(self, futures: Collection[Future[Any]]) -> None:
        """Wait within the look's time; threads that wait at the same time use it once."""
        if not futures:
            return
        with self._lock:
            now_ms = self.clock_ms()
            if not self._waiting:
                self._waiting_since_ms = now_ms
            self._waiting += 1
            left_ms = self._left_ms - max(0, now_ms - self._waiting_since_ms)
        self.wait(futures, max(FLOOR_MS, left_ms))
        with self._lock:
            self._waiting -= 1
            if not self._waiting:
                passed_ms = max(0, self.clock_ms() - self._waiting_since_ms)
                self._left_ms = max(0, self._left_ms - passed_ms)

    # --- threads ------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Start the reads that may run now, prompt applications first. The caller holds the lock."""
        if self._is_closed:
            return
        for is_prompt in (True, False):
            for one in [each for each in self._ready if each.is_prompt is is_prompt]:
                slow_max = THREADS_MAX // 2 if not is_prompt else THREADS_MAX
                if self._running + self._changing >= slow_max:
                    break
                if self._running - self._running_late >= self.bounds.at_once:
                    return
                self._ready.remove(one)
                self._running += 1
                one.running = self._next(one)
                self._pool.submit(self._run, one)

    def _next(self, application: _Application) -> _Read:
        read = min(application.waiting.values(), key=lambda each: application.served.get(each.kind, -1))
        self._served += 1
        application.served[read.kind] = self._served
        read.began_ms = self.clock_ms()
        return application.waiting.pop(read.purpose)

    def _run(self, application: _Application) -> None:
        """Run an application's reads in a thread of the pool; reads of one look share an allowance."""
        read = application.running
        while read is not None:
            if application._allowance is None or application.look != read.look:
                application.look, application._allowance = read.look, self._allowance()
            allowance = application._allowance
            helpers = HELPERS_EACH if application.is_prompt else 0
            with allowed(allowance):
                answer = attempt(read.read, ApplicationLook(self._helpers, helpers, self.clock_ms))
            allowance.close()
            in_time = not self._is_slow(read)
            with self._lock:
                application.in_time = (
                    min(PROMPT_AGAIN, application.in_time + 1) if in_time else application.in_time
                )
                application.running = after = self._next(application) if application.waiting else None
                read.done.set_result(answer)
                if after is None:
                    self._running -= 1
                    self._running_late -= application.is_late
                    application.is_late = False
                    self._dispatch()
            read = after

    def change(
        self, name: str, purpose: str, send: Callable[[], Value], *, beside: bool = False
    ) -> Value | Absent:
        """Send one change and return its answer; Absent: it was not sent.

        ``beside``: it depends on no other change like it, so that a few may be sent in parallel.
        Raises as ``send`` does, and Uncertain if the answer is late. While an earlier change for this purpose
        is running, or its answer was not fetched, the earlier change is used instead.
        """
        with self._lock:
            one = self._applications.setdefault(name, _Application(name))
            if purpose not in one.changes:
                open_ones = [each for each in one.changes.values() if not each.sent.done()]
                may_join = beside and one.is_prompt and all(each.beside for each in open_ones)
                is_busy = len(open_ones) >= (CHANGES_EACH if may_join else 1)
                if is_busy or self._running + self._changing >= THREADS_MAX:
                    return Absent("an earlier change has no answer yet, or too many applications are late")
                self._changing += 1
                one.changes[purpose] = _Change(self._pool.submit(self._send, send), self.clock_ms(), beside)
            sent, is_prompt = one.changes[purpose].sent, one.is_prompt
        if is_prompt and not sent.done():
            self._wait_for([sent])
        with self._lock:
            if not sent.done():
                one.in_time = 0
                raise Uncertain(str(LATE))
            one.changes.pop(purpose, None)
        answer: Value = sent.result()
        return answer

    def _send(self, send: Callable[[], Value]) -> Value:
        allowance = self._allowance()
        try:
            with allowed(allowance):
                return send()
        finally:
            allowance.close()
            with self._lock:
                self._changing -= 1
                self._dispatch()

    def forget(self, names: Iterable[str]) -> None:
        """Drop applications that have ended."""
        with self._lock:
            for name in names:
                if name in self._applications:
                    self._applications[name].has_ended = True

    def close(self) -> None:
        """Reject new reads; running ones end by their deadline."""
        with self._lock:
            self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._helpers.shutdown(wait=False, cancel_futures=True)


def _bound(read: Callable[[str, ApplicationLook], Value], name: str) -> Callable[[ApplicationLook], Value]:
    return lambda look: read(name, look)


def values(found: Mapping[str, ReadAnswer[Value] | Problem]) -> dict[str, Value | Problem]:
    """Return the answers without their times."""
    return {name: each if isinstance(each, Problem) else each.value for name, each in found.items()}
