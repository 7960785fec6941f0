"""The limits of users with pending requests, as YARN's own preemption counts with them.

Beyond its users' limits nothing that a leaf queue requests is pending for that policy (class UsersManager of
Hadoop 3.4.2). An active user's limit follows what the active users hold: the only one may have one container
of the smallest size more, unless its part by minimum-user-limit-percent is more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from yarnctl.deciding.model import QueueView
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.views import leaves
from yarnctl.units import NOTHING, Resources, plus


def active_limits(
    root_queue: yarn.QueueInfo, queues: Iterable[QueueView], total: Resources, least_resources: Resources
) -> Mapping[str, Mapping[str, Resources]]:
    """Return the limits by queue and user; NOTHING for a user that is not active.

    That user has no pending requests, or only those of applications that the queue has not activated yet.

    ``least_resources``: the smallest container. The ResourceManager shows 0 for a user for which it has not
    yet looked for a container, for example in a full cluster; that limit is computed here.
    """
    shown = {leaf.path: leaf.queue for leaf in leaves(root_queue)}
    found: dict[str, dict[str, Resources]] = {}
    for view in queues:
        queue = shown.get(view.queue)
        rows = () if queue is None or queue.users is None else queue.users.rows
        for row in rows:
            if queue is None or not row.is_active:
                found.setdefault(view.queue, {})[row.user] = NOTHING
                continue
            limit = NOTHING if row.limit is None else row.limit.resources
            if limit == NOTHING:
                limit = _computed(view, queue, row.weight, total, least_resources)
            limit = Resources(*limit[:2], *view.maximum[2:])  # other types bind seldom
            found.setdefault(view.queue, {})[row.user] = limit
    return found


def _computed(
    view: QueueView, queue: yarn.QueueInfo, weight: float, total: Resources, least_resources: Resources
) -> Resources:
    """Return an active user's limit by UsersManager.computeUserLimit."""

    def shares(size: Sequence[float]) -> list[float]:
        """Return what the DominantResourceCalculator compares."""
        return sorted((part / whole for part, whole in zip(size, total, strict=False) if whole), reverse=True)

    rows = () if queue.users is None else queue.users.rows
    active_used = least_resources
    for row in rows:
        if row.is_active:
            active_used = plus(active_used, row.used.resources)
    ratio = sum(max(shares(row.used.resources), default=0.0) for row in rows)
    consumed = _rounded_up([part * ratio for part in total], least_resources)
    guaranteed = max(view.guaranteed[:2], least_resources, key=shares)
    capacity = guaranteed if shares(consumed) < shares(guaranteed) else plus(consumed, least_resources)
    users = sum(row.weight for row in rows if row.is_active)
    percent = 100.0 if queue.user_limit_percent is None else queue.user_limit_percent
    limit = max(
        [ceil(part / users) for part in active_used],
        [ceil(int(part * percent) / 100) for part in capacity],
        key=shares,
    )
    most = [int(part * queue.user_limit_factor) for part in guaranteed]
    if queue.user_limit_factor < 0 or not any(view.guaranteed):
        most = [*view.maximum[:2]]
    return _rounded_up([part * weight for part in min(limit, most, key=shares)], least_resources)


def _rounded_up(size: Sequence[float], step_resources: Resources) -> Resources:
    """Return the next multiple of ``step_resources`` in each component."""
    found = [
        ceil(part / step) * step if step else ceil(part)
        for part, step in zip(size, step_resources, strict=False)
    ]
    return Resources(*found)
