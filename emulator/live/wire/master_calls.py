"""Carrying: how a master's calls reach the ResourceManager and the nodes.

Law: calls to one place keep their order, and an answer is heard on the event loop only. In one process a call
is a call; between processes each place has a thread of its own, so that a node that hangs delays nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

from yarnctl.errors import Unreachable

T = TypeVar("T")
Call = Callable[[], T]
Answered = Callable[[T], object]
Unanswered = Callable[[str], object]
"""Hears why there was no answer."""


class Carrier(Protocol):
    """Carries calls; exactly one of ``answered`` and ``unanswered`` is called, now or later."""

    def carry(self, place: str, call: Call[T], answered: Answered[T], unanswered: Unanswered) -> None:
        """Carry one call to a place."""
        ...

    def close(self) -> None:
        """Hear no more answers."""
        ...


class DirectCarrier:
    """Everybody lives in this process, on this event loop."""

    def carry(self, place: str, call: Call[T], answered: Answered[T], unanswered: Unanswered) -> None:
        """Call, now."""
        try:
            answer = call()
        except Unreachable as why:
            unanswered(str(why))
            return
        answered(answer)

    def close(self) -> None:
        """Nothing is under way."""


class ThreadedCarrier:
    """Blocking clients, one thread for each place. ``around`` runs what is heard (time first, then it)."""

    def __init__(self, around: Callable[[Callable[[], object]], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._around = around
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._closed = False

    def carry(self, place: str, call: Call[T], answered: Answered[T], unanswered: Unanswered) -> None:
        """Call from the place's thread."""
        if self._closed:
            return
        thread = self._threads.get(place)
        if thread is None:
            thread = self._threads[place] = ThreadPoolExecutor(1, f"to {place}")

        def hear(done: Future[T]) -> None:
            error = done.exception()
            if error is None:
                self._hear(lambda: answered(done.result()))
            elif isinstance(error, Unreachable):
                self._hear(lambda: unanswered(str(error)))
            else:
                self._hear(lambda: _raise(error))

        thread.submit(call).add_done_callback(
            lambda done: None if self._closed else self._loop.call_soon_threadsafe(hear, done)
        )

    def _hear(self, heard: Callable[[], object]) -> None:
        if not self._closed:
            self._around(heard)

    def close(self) -> None:
        """Hear no more answers; calls under way end by their time-outs."""
        self._closed = True
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)


def _raise(error: BaseException) -> None:
    raise error
