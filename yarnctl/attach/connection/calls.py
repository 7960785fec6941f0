"""Calls: many at once, and a fault of the cluster as a value.

Law: :func:`attempt` raises nothing: what one application's owner wrote must not hide all others.
"""

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

FAULTS = (YarnctlError, StoreError, Unusable)
"""All that a fault of the cluster or of its contents can raise."""


class Problem(str):
    """Why a call has no answer, in one line."""

    __slots__ = ()


class Calls:
    """Runs calls side by side, ``at_once`` of them; a single call runs in the caller's thread."""

    def __init__(self, at_once: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=max(1, at_once), thread_name_prefix="look")

    def each(self, ask: Callable[[Key], Value], keys: Iterable[Key]) -> dict[Key, Value | Problem]:
        """Return key -> answer or Problem, in the order of the keys."""
        wanted = list(dict.fromkeys(keys))
        if len(wanted) == 1:
            return {wanted[0]: attempt(ask, wanted[0])}
        return dict(zip(wanted, self._pool.map(lambda key: attempt(ask, key), wanted), strict=True))

    def begin(self, work: Callable[[], None]) -> Future[None]:
        """Start work beside the caller's next steps; ``result()`` raises what it raised."""
        return self._pool.submit(work)

    def close(self) -> None:
        """Accept no new call; running ones end by their own bounds."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def attempt(ask: Callable[[Key], Value], key: Key) -> Value | Problem:
    """Make one call; a fault becomes a Problem.

    So does an error that the cluster did not cause: what one job's owner wrote must not hide all others.
    """
    try:
        return ask(key)
    except Exception as fault:
        return Problem(told(fault))


def told(fault: Exception) -> str:
    """Return the text of a fault; an unexpected one is logged with its place, once."""
    if isinstance(fault, FAULTS):
        return str(fault)
    _log_once("".join(traceback.format_exception(fault)[-6:])[-2000:])
    return f"it cannot be understood ({type(fault).__name__})"


@lru_cache(maxsize=64)
def _log_once(story: str) -> None:
    """Log a text that recurs with every observation once, while few others come between."""
    _LOG.error("an answer could not be understood: %s", story)
