"""Perform the actions of one step in parallel where they do not depend on each other.

* Outcomes come in the order of the actions, whichever is ready first: the journal does not depend on threads.
* Only orders to single containers go out together. Any other action waits for those before it, and those
  behind it wait for it: a queue is lowered before containers are freed.
* A **lane** is performed one after the other: all drains, which share the records of lowered settings, and
  the orders of one container. An application's own program gets a few changes at a time, not more: the
  guard around it would refuse them.
* Each action is checked right before it is sent, by the thread that sends it. A daemon that loses its lock,
  or is stopped and continues later, sends no action that has not been checked before.
* A caller that stops early (the journal cannot be written) starts no further action and waits for those that
  run: what is withdrawn afterwards was sent before.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from yarnctl.attach.connection.application_guard import CHANGES_EACH
from yarnctl.deciding.model import Action, Drain, Kill, OrderAction, Outcome, Release, Suspend, Withdraw

AT_ONCE = 16
"""Orders of one step that are sent in parallel."""

TOGETHER = (Suspend, Withdraw, Release, Kill, Drain)


class OrdersAtOnce:
    """Performs steps with ``perform``, at most ``at_once`` actions in parallel; 1: one after the other.

    ``perform`` raises nothing and is called by several threads. ``announce`` gets the actions that go out
    together, before any of them is performed.
    """

    def __init__(
        self,
        perform: Callable[[Action], Outcome],
        announce: Callable[[Sequence[OrderAction]], None] = lambda _: None,
        at_once: int = 1,
    ) -> None:
        self._perform, self._announce = perform, announce
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="order") if at_once > 1 else None

    def each(self, actions: Sequence[Action]) -> Generator[Outcome, None, None]:
        """Yield the outcome of each action, in their order; close it where not all are taken."""
        for batch in batches(actions):
            if self._pool is None or len(batch) == 1:
                yield from map(self._perform, batch)
            else:
                yield from self._together(self._pool, [one for one in batch if isinstance(one, TOGETHER)])

    def _together(
        self, pool: ThreadPoolExecutor, batch: Sequence[OrderAction]
    ) -> Generator[Outcome, None, None]:
        self._announce(batch)
        outcomes: list[Future[Outcome]] = [Future() for _ in batch]
        lanes = lanes_of(batch)
        stopped: list[bool] = []

        def run(places: Sequence[int]) -> None:
            for place in places:
                if stopped:
                    return
                try:
                    outcomes[place].set_result(self._perform(batch[place]))
                except BaseException as problem:
                    outcomes[place].set_exception(problem)

        running = [pool.submit(run, places) for places in lanes.values()]
        try:
            for outcome in outcomes:
                yield outcome.result()
        finally:
            stopped.append(True)
            wait([each for each in running if not each.cancel()])

    def close(self) -> None:
        """End the threads; none runs between two steps."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)


def batches(actions: Sequence[Action]) -> Iterator[list[Action]]:
    """Yield the actions in runs: those that go out together, or a single one."""
    run: list[Action] = []
    for action in actions:
        if not isinstance(action, TOGETHER):
            if run:
                yield run
            yield [action]
            run = []
        else:
            run.append(action)
    if run:
        yield run


def lanes_of(batch: Sequence[OrderAction]) -> dict[str, list[int]]:
    """Return the places of orders by lane: what is performed one after the other."""
    lanes: dict[str, list[int]] = {}
    of_container: dict[str, str] = {}
    changes: dict[str, int] = {}
    for place, action in enumerate(batch):
        lane = of_container.get(action.container)
        if isinstance(action, Drain):
            lane = "drain"
        elif isinstance(action, Kill | Release) and lane is None:
            number = changes[action.application] = changes.get(action.application, 0) + 1
            lane = f"{action.application} {number % CHANGES_EACH}"
        lane = of_container[action.container] = lane or action.container
        lanes.setdefault(lane, []).append(place)
    return lanes
