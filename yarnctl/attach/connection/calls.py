"""Calls: many small questions at once, each with its own answer or its own problem.

Law: a fault of the cluster is a value here, never an exception; nobody waits longer than the clients'
own bounds, because every client's call is bounded.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

from yarnctl.errors import YarnctlError
from yarnctl.task_runner.runner.protocol.failures import StoreError, Unusable

_LOG = logging.getLogger("yarnctl.attach")

Key = TypeVar("Key")
Value = TypeVar("Value")

FAULTS = (YarnctlError, StoreError, Unusable)
"""All that a fault of the cluster or of what lies in it can raise."""


class Problem(str):
    """Why there is no answer, in one line."""

    __slots__ = ()


class Calls:
    """Runs questions side by side; ``at_once`` of them. One question alone runs in the caller."""

    def __init__(self, at_once: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=max(1, at_once), thread_name_prefix="look")

    def each(self, ask: Callable[[Key], Value], keys: Iterable[Key]) -> dict[Key, Value | Problem]:
        """Return key -> answer or Problem, in the order of the keys."""
        wanted = list(dict.fromkeys(keys))
        if len(wanted) == 1:
            return {wanted[0]: attempt(ask, wanted[0])}
        return dict(zip(wanted, self._pool.map(lambda key: attempt(ask, key), wanted), strict=True))

    def begin(self, work: Callable[[], None]) -> Future[None]:
        """Begin something beside what the caller does next; ``result()`` raises what it raised."""
        return self._pool.submit(work)

    def close(self) -> None:
        """Let no new question in; running ones end by their own bounds."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def attempt(ask: Callable[[Key], Value], key: Key) -> Value | Problem:
    """Ask once; a fault becomes a Problem.

    So does an error that is none of the cluster's: what one job's owner wrote must not hide all others.
    """
    try:
        return ask(key)
    except Exception as fault:
        return Problem(told(fault))


def told(fault: Exception) -> str:
    """Return what to say of a fault; one that nobody foresaw is logged with its place, once."""
    if isinstance(fault, FAULTS):
        return str(fault)
    _log_once("".join(traceback.format_exception(fault)[-6:])[-2000:])
    return f"it cannot be understood ({type(fault).__name__})"


@lru_cache(maxsize=64)
def _log_once(story: str) -> None:
    """Log what comes again with every look but once, while few others come between."""
    _LOG.error("an answer could not be understood: %s", story)
