"""Make many calls in parallel. A fault is a value, so that one application's data cannot hide all others."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

from yarnctl.errors import YarnctlError
from yarnctl.task_runner.runner.protocol.stores import StoreError, Unusable

_LOG = logging.getLogger("yarnctl.attach")

Key = TypeVar("Key")
Value = TypeVar("Value")

FAULTS = (YarnctlError, StoreError, Unusable)  # Raised by faults of the cluster or its content


class Problem(str):
    """Why a call has no answer, in one line."""

    __slots__ = ()


class Calls:
    """Runs at most ``at_once`` calls in parallel; a single call runs in the caller's thread."""

    def __init__(self, at_once: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=max(1, at_once), thread_name_prefix="look")

    def each(self, ask: Callable[[Key], Value], keys: Iterable[Key]) -> dict[Key, Value | Problem]:
        """Return key -> answer or Problem, in the order of the keys."""
        wanted = list(dict.fromkeys(keys))
        if len(wanted) == 1:
            return {wanted[0]: attempt(ask, wanted[0])}
        return dict(zip(wanted, self._pool.map(lambda key: attempt(ask, key), wanted), strict=True))

    def begin(self, work: Callable[[], None]) -> Future[None]:
        """Start work in another thread; ``result()`` raises the exception of ``work``."""
        return self._pool.submit(work)

    def close(self) -> None:
        """Reject new calls; running ones end by their own bounds."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def attempt(ask: Callable[[Key], Value], key: Key) -> Value | Problem:
    """Make one call; any exception, also an unexpected one, becomes a Problem."""
    try:
        return ask(key)
    except Exception as fault:
        return Problem(fault_text(fault))


def fault_text(fault: Exception) -> str:
    """Return the text of a fault; an unexpected one is logged with its place, once."""
    if isinstance(fault, FAULTS):
        return str(fault)
    _log_once("".join(traceback.format_exception(fault)[-6:])[-2000:])
    return f"the answer cannot be parsed ({type(fault).__name__})"


@lru_cache(maxsize=64)
def _log_once(story: str) -> None:
    _LOG.error("an answer of the cluster cannot be parsed: %s", story)
