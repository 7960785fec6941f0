"""The desk's window: where threads that answer requests hand them over, and wait for what becomes of them.

Law: nothing is decided here and no record is written; the loop's thread alone does that. Who hands something
over is answered when it is in the journal and published, or told that it was not done in time. Waiting is
bounded, in time and in heads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

import msgspec

from yarnctl.deciding.admission.records import Estimate

HANDED_MAX = 256
"""So many errands may lie at the window at once."""
WAITERS_MAX = 24
"""So many may wait at once; more are answered without waiting, and ask again."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for: see :class:`yarnctl.deciding.admission.records.Request`."""

    name: str
    user: str
    queue: str
    containers: int
    deadline_ms: int
    estimate: Estimate | None = None
    kind: str = "mapreduce"
    key: str = ""


class Withdrawing(msgspec.Struct, frozen=True):
    """Somebody takes an admission back."""

    admission: str


Code = Literal[
    "not-found", "already-taken", "queue-not-gated", "request-key-used", "desk-full", "not-written"
]


class Refusal(msgspec.Struct, frozen=True):
    """Why an errand was not done: a word, a sentence, and what to do."""

    code: Code
    problem: str
    remedy: str


class Errand:
    """Something to be done; ``answer`` is the id of its admission, or why not (None: not yet)."""

    def __init__(self, wanted: Asking | Withdrawing) -> None:
        self.wanted = wanted
        self.answer: str | Refusal | None = None
        self.at_ms: int | None = None


FULL = Refusal("desk-full", "too many requests lie at the desk", "try again in a few seconds")
NOT_DONE = Refusal(
    "not-written",
    "the loop did not come to it in time, and may still do so",
    "see GET /v1/snapshot and the daemon's log; ask again with the same request_key",
)


class Window:
    """``clock_ms`` tells the time (any thread). ``on_wake`` wakes the loop: it is the loop's to set."""

    def __init__(self, clock_ms: Callable[[], int], lease_ms: int) -> None:
        self.lease_ms = lease_ms
        self.on_wake: Callable[[], None] = _nobody
        self._clock_ms = clock_ms
        self._changed = threading.Condition()
        self._handed: list[Errand] = []
        self._waiters = 0
        self._renewed: dict[str, int] = {}
        self._closed = False

    # --- any thread -----------------------------------------------------------------------------

    def wake(self) -> None:
        """Let the loop come soon."""
        self.on_wake()

    def hand(self, wanted: Asking | Withdrawing, wait_ms: int) -> str | Refusal:
        """Hand an errand over and wait until it is done and published."""
        errand = Errand(wanted)
        with self._changed:
            if self._closed or len(self._handed) >= HANDED_MAX:
                return NOT_DONE if self._closed else FULL
            self._handed.append(errand)
        self.wake()
        self._until(lambda: errand.answer is not None, wait_ms)
        return errand.answer or NOT_DONE

    def renew(self, admission: str, wait_ms: int = 0) -> None:
        """Say that somebody still waits, and will for ``wait_ms`` more."""
        with self._changed:
            self._renewed[admission] = self._clock_ms() + wait_ms

    def wait(self, done: Callable[[], bool], wait_ms: int) -> None:
        """Wait until ``done`` says so of what is published; not at all if too many wait already."""
        with self._changed:
            if self._waiters >= WAITERS_MAX:
                return
            self._waiters += 1
        try:
            self._until(done, wait_ms)
        finally:
            with self._changed:
                self._waiters -= 1

    def _until(self, done: Callable[[], bool], wait_ms: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or done(), wait_ms / 1000)

    # --- the loop's thread --------------------------------------------------------------------------

    def handed(self) -> list[Errand]:
        """Return what lies there; it stays until it is answered."""
        with self._changed:
            return list(self._handed)

    def renewals(self) -> dict[str, int]:
        """Return what was renewed since the last call: admission -> until when somebody waits, at least."""
        with self._changed:
            renewed, self._renewed = self._renewed, {}
        return renewed

    def announce(self, answers: dict[Errand, str | Refusal]) -> None:
        """Tell everybody that something new is published, and these errands' answers."""
        with self._changed:
            for errand, answer in answers.items():
                errand.answer = answer
            if answers:
                self._handed = [each for each in self._handed if each.answer is None]
            self._changed.notify_all()

    def close(self) -> None:
        """Let all that wait go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _nobody() -> None:
    """There is no loop yet."""
