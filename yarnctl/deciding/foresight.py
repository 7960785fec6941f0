"""Predicted demand: a preempting job's first requests, while its master starts (``--predicted-demand``).

Off unless an administrator sets it. Only the first wave of a job is predicted that was observed before it had
any container: its maps, and as many reduces as need more containers than the maps return, never more than
``most``. The prediction ends once the job has requested a task, has had one, or ``LASTS_MS`` have passed. A
predicted request counts like any other, and the job's view has the number of them.

A container that is freed before its request arrives would go to the first application that requests one:
predicted demand needs capped preemptable queues (:mod:`yarnctl.deciding.queue_hold`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from yarnctl.deciding.model import ApplicationView, ContainerRequest
from yarnctl.units import Resources

LASTS_MS = 60_000
"""A prediction ends this long after its job was first observed."""
MASTER_PRIORITY = 0
MAP_PRIORITY, REDUCE_PRIORITY = 20, 10
"""MapReduce's priorities of its master, its maps and its reduces."""


FirstAsks = Callable[[ApplicationView], tuple[ContainerRequest, ...]]
"""Returns what a job will request first, as far as it is known now; (): unknown (perhaps only yet)."""


class Prediction:
    """Adds predicted requests to the views of jobs in preempting queues whose masters have sent none yet.

    ``most``: containers per job (0: nothing is predicted).
    """

    def __init__(self, most: int, is_preempting: Callable[[str], bool], first_asks: FirstAsks) -> None:
        self._most = most
        self._is_preempting = is_preempting
        self._first_asks = first_asks
        self._since: dict[str, int | None] = {}

    @property
    def expects(self) -> bool:
        """Return whether a job has still to send requests: its queue may show none pending meanwhile."""
        return any(since is not None for since in self._since.values())

    def predict(self, views: Sequence[ApplicationView], now_ms: int) -> tuple[ApplicationView, ...]:
        """Return the views of one observation, in the same order, with predicted demand."""
        if not self._most:
            return tuple(views)
        before, self._since = self._since, {}
        return tuple([self._seen(view, before, now_ms) for view in views])

    def _seen(self, view: ApplicationView, before: dict[str, int | None], now_ms: int) -> ApplicationView:
        if not self._is_preempting(view.queue):
            return view
        name = view.application
        since = before.get(name, None if view.containers else now_ms)
        if since is not None and (has_asked(view) or now_ms - since >= LASTS_MS):
            since = None
        self._since[name] = since
        if since is None or not view.activated:
            return view
        first = at_most(self._first_asks(view), self._most)
        predicted = sum(request.count for request in first)
        return msgspec.structs.replace(view, requests=(*view.requests, *first), predicted=predicted)


def first_wave(
    maps: int, map_size: Resources, reduces: int, reduce_size: Resources
) -> tuple[ContainerRequest, ...]:
    """Return a MapReduce job's first wave: its maps, and the reduces that do not fit beside them."""
    wave = (
        ContainerRequest(MAP_PRIORITY, map_size, maps),
        ContainerRequest(REDUCE_PRIORITY, reduce_size, reduces - maps),
    )
    return tuple(request for request in wave if request.count > 0)


def at_most(requests: Sequence[ContainerRequest], most: int) -> tuple[ContainerRequest, ...]:
    """Return the first ``most`` containers of some requests."""
    kept = []
    for request in requests:
        kept.append(request._replace(count=min(request.count, most)))
        most -= kept[-1].count
    return tuple(request for request in kept if request.count > 0)


def has_asked(view: ApplicationView) -> bool:
    """Return whether a job has requested a task itself, or has one."""
    return view.containers > 1 or any(request.priority != MASTER_PRIORITY for request in view.requests)
