"""Workers: one function over many orders, on all cores.

Law: no result depends on how many workers there are, or on which order is finished first.
An interrupt is the parent's affair: it ends its workers, and they end with it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from yarnctl.errors import YarnctlError

Order = TypeVar("Order")
Done = TypeVar("Done")


class RunFailed(YarnctlError):
    """A run ended with an error of its own, reported by its worker."""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        self.exit_status = exit_status


def cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def spread(
    work: Callable[[Order], Done],
    orders: Sequence[Order],
    workers: int | None = None,
    named: Callable[[Order], str] = str,
) -> Iterator[Done]:
    """Yield what comes of each order, as it comes; one worker means this process.

    ``work`` is a module's function, ``workers`` the most processes (None: one per core). Raises
    RunFailed if a process is ended from outside, or if ``work`` fails: it names the order by ``named``.
    """
    processes = min(workers or cores(), len(orders))
    if processes <= 1:
        for order in orders:
            with _failing(named(order)):
                done = work(order)
            yield done
        return
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_be_a_worker)
    try:
        order_of = dict(zip(_submitted(pool, work, orders), orders, strict=True))
        for future in as_completed(order_of):
            with _failing(named(order_of[future])):
                done = future.result()
            yield done
    except BrokenProcessPool:
        raise RunFailed("a worker process was killed from outside; check the free memory", 1) from None
    except BaseException:
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _failing(name: str) -> Iterator[None]:
    """Name the failed order in its error."""
    try:
        yield
    except YarnctlError as error:
        raise RunFailed(f"{name}: {error}", error.exit_status) from None


def _submitted(
    pool: ProcessPoolExecutor, work: Callable[[Order], Done], orders: Sequence[Order]
) -> list[Future[Done]]:
    """Send the orders to the workers; workers start with interrupts ignored, as they are later on.

    The mask is what they inherit. It does not keep the signal from a thread of some library, and Python would
    then raise here, in the middle of a start, so an interrupt is kept until all have been started.
    """
    heard: list[int] = []
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        submitted = [pool.submit(work, order) for order in orders]
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if heard:
        raise KeyboardInterrupt
    return submitted


def _be_a_worker() -> None:
    """Leave interrupts to the parent, which ends its workers; end with it if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
