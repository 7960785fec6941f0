"""``--mode guarantees``: which queues are below their guarantee, and what the others have to give.

The queues that give are those that YARN's own preemption would take from
(:mod:`yarnctl.deciding.ideal_shares`); a queue that may not be preempted is untouchable there, as under
``disable_preemption``. A requester is an application with requests that fit nowhere, of a leaf below its
guarantee, or below a parent that is; it gets no more than brings that queue to its ideal share. No leaf gives
more than it has beyond its own share, and none falls below its guarantee. The ideal shares are those of
memory and vcores: the model is verified for these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from yarnctl.deciding.forecast import QueueModel, below_guarantee, serving_key
from yarnctl.deciding.ideal_shares import WHOLE_RATES, LeafShare, ShareQueue, all_shares
from yarnctl.deciding.model import ApplicationView, ParentView, Snapshot
from yarnctl.deciding.order import Order
from yarnctl.deciding.settings import Settings
from yarnctl.units import NOTHING, Resources, at_least, at_most, dominant, is_by_memory, minus, plus, times

ROOT = "root"


class GivenLimits:
    """What may still be taken from each leaf, by path; updated as tasks are chosen."""

    def __init__(self, snapshot: Snapshot, gives: Mapping[str, Resources], leaving: Iterable[Order]) -> None:
        self.total = snapshot.total
        self.queue_of = {view.application: view.queue for view in snapshot.applications}
        self.gives = dict(gives)
        self._views = {view.queue: view for view in snapshot.queues}
        self._used = {view.queue: view.used for view in snapshot.queues}
        for order in leaving:
            self.take(self.queue_of.get(order.victim, ""), order.size)

    def take(self, queue: str, size: Resources) -> None:
        """Count a container as taken."""
        if queue in self._used:
            self._used[queue] = minus(self._used[queue], size)
            self.gives[queue] = minus(self.gives.get(queue, NOTHING), size)

    def may_take(self, queue: str, size: Resources = NOTHING) -> bool:
        """Return whether a leaf has something to give, and keeps its guarantee without ``size``."""
        view = self._views.get(queue)
        if view is None or dominant(self.gives.get(queue, NOTHING), self.total) <= 0:
            return False
        return not below_guarantee(serving_key(minus(self._used[queue], size), view.guaranteed, queue))

    def copy(self) -> GivenLimits:
        """Return a copy that later choices do not change."""
        other = object.__new__(GivenLimits)
        other.__dict__.update(self.__dict__, gives=dict(self.gives), _used=dict(self._used))
        return other


class GuaranteeShares(NamedTuple):
    """The shares of one snapshot by path, parents included, and what each leaf may still give."""

    shares: Mapping[str, LeafShare]
    limits: GivenLimits
    parents: Mapping[str, ParentView]

    def victims(self) -> tuple[str, ...]:
        """Return the leaves that have something left to give, by path."""
        return tuple(path for path in sorted(self.limits.gives) if self.limits.may_take(path))

    def allowed(self, queues: Iterable[QueueModel]) -> dict[str, int]:
        """Return how many containers each application may get: none whose leaf has what it is due.

        ``queues``: the leaves once the expected capacity is free and given. A leaf is due its own ideal share
        while it is below its guarantee. It is due more while a parent is below its guarantee: YARN serves
        that parent first, and frees containers for it, whichever of its leaves has requests.
        """
        leaves = sorted(queues, key=QueueModel.key)
        left = {leaf.view.queue: [*leaf.waiting()[leaf.head :]] for leaf in leaves}
        used: dict[str, Resources] = {}
        for leaf in leaves:
            for path in self._above(leaf.view.queue):
                used[path] = plus(used.get(path, NOTHING), leaf.used)
        found: dict[str, int] = {}

        def take(queue: str, missing: int) -> None:
            requests = left[queue]
            while requests and missing > 0:
                request = requests[0]
                size = max(dominant(request.size, self.limits.total), 1)
                count = min(request.containers, -(-missing // size))
                missing -= count * size
                found[request.application.application] = found.get(request.application.application, 0) + count
                for path in self._above(queue):
                    used[path] = plus(used[path], times(request.size, count))
                requests[0] = request._replace(containers=request.containers - count)
                if not requests[0].containers:
                    del requests[0]

        for leaf in leaves:
            if below_guarantee(leaf.key()):
                take(leaf.view.queue, self._missing(leaf.view.queue, leaf.used))
        for leaf in leaves:
            due, above = 0, None
            for path in self._above(leaf.view.queue):
                missing = self._missing(path, used[path])
                above = missing if above is None else min(above, missing)
                if below_guarantee(serving_key(used[path], self.parents[path].guaranteed, path)):
                    due = max(due, above)
            take(leaf.view.queue, due)
        return found

    def _above(self, queue: str) -> Iterator[str]:
        """Yield the parents of a leaf, without root."""
        while (queue := queue.rpartition(".")[0]) in self.parents and queue not in ("", ROOT):
            yield queue

    def _missing(self, queue: str, used_resources: Resources) -> int:
        share, total = self.shares.get(queue), self.limits.total
        return 0 if share is None else dominant(share.ideal, total) - dominant(used_resources, total)


def guarantee_shares(snapshot: Snapshot, leaving: Iterable[Order], settings: Settings) -> GuaranteeShares:
    """Return the shares by which a snapshot is decided; ``leaving``: orders whose container is still used."""
    rates = WHOLE_RATES._replace(
        ignored_over_ratio=settings.utilisation_tolerance_ratio, memory_only=is_by_memory(snapshot.total)
    )
    shares = all_shares(share_tree(snapshot, settings.may_be_preempted), rates)
    gives = {path: share.gives for path, share in shares.items() if share.gives != NOTHING}
    limits = GivenLimits(snapshot, gives, leaving)
    return GuaranteeShares(shares, limits, {view.queue: view for view in snapshot.parents})


def share_tree(snapshot: Snapshot, is_preemptable: Callable[[str], bool]) -> ShareQueue:
    """Return a snapshot's tree of queues as the policy of YARN reads it; root is guaranteed the total."""
    views: dict[str, ParentView] = {view.queue: view for view in snapshot.parents}
    top = "" if "" in views else ROOT  # the emulator's paths have no root
    pending = _pending(snapshot)
    below: dict[str, list[ShareQueue]] = {}

    for view in snapshot.queues:
        above = view.queue.rpartition(".")[0]
        below.setdefault(above if above in views else top, []).append(
            ShareQueue(
                queue=view.queue,
                guaranteed=view.guaranteed,
                maximum=view.maximum,
                used=view.used,
                capacity_ratio=_capacity_ratio(view.guaranteed, snapshot.total),
                pending=pending.get(view.queue, (NOTHING, NOTHING))[0],
                unreserved=pending.get(view.queue, (NOTHING, NOTHING))[1],
                priority=_priority(views.get(above), view.queue),
                untouchable=not is_preemptable(view.queue),
            )
        )
    for path in sorted(views, key=lambda each: (-each.count("."), each)):
        if path == top:
            continue
        above, parent = path.rpartition(".")[0], views[path]
        below.setdefault(above if above in views else top, []).append(
            ShareQueue(
                queue=path,
                guaranteed=parent.guaranteed,
                maximum=parent.maximum,
                used=parent.used,
                capacity_ratio=_capacity_ratio(parent.guaranteed, snapshot.total),
                priority=_priority(views.get(above), path),
                children=_by_path(below.get(path, ())),
            )
        )
    children = _by_path(below.get(top, ()))
    used = NOTHING
    for child in children:
        used = plus(used, child.used)
    return ShareQueue(
        queue=top,
        guaranteed=snapshot.total,
        maximum=snapshot.total,
        used=used,
        capacity_ratio=1.0,
        children=children,
    )


def _pending(snapshot: Snapshot) -> dict[str, tuple[Resources, Resources]]:
    """Return what each leaf's activated applications request, with and without what is reserved for them.

    No user's requests count beyond the user limit. The limit of a leaf's only active user is what it uses and
    one container of the smallest size, once that is more than the guarantee; YARN counts no more of it.
    """
    limits = {view.queue: view.user_limit for view in snapshot.queues}
    user_used: dict[tuple[str, str], Resources] = {}
    for view in snapshot.applications:
        key = view.queue, view.user
        held = plus(view.used, snapshot.reserved.get(view.application, NOTHING))
        user_used[key] = plus(user_used.get(key, NOTHING), held)
    found: dict[str, tuple[Resources, Resources]] = {}
    left: list[dict[tuple[str, str], Resources]] = [{}, {}]
    for view in sorted(snapshot.applications, key=_by_rank):
        if not view.requests or not view.activated:
            continue
        key = view.queue, view.user
        limit = limits.get(view.queue)
        for shown in (snapshot.user_limits, snapshot.active_limits):
            limit = shown.get(view.queue, {}).get(view.user, limit)
        wanted = NOTHING
        for request in view.requests:
            wanted = plus(wanted, times(request.size, request.count))
        sums = list(found.get(view.queue, (NOTHING, NOTHING)))
        for place, reserved in enumerate((NOTHING, snapshot.reserved.get(view.application, NOTHING))):
            size = at_least(minus(wanted, reserved), NOTHING)
            if limit is not None:
                most = left[place].get(key)
                most = at_least(minus(limit, user_used[key]), NOTHING) if most is None else most
                size = at_most(size, most)
                left[place][key] = minus(most, size)
            sums[place] = plus(sums[place], size)
        found[view.queue] = sums[0], sums[1]
    return found


def _by_rank(view: ApplicationView) -> tuple[int, str]:
    return view.rank, view.application


def _by_path(queues: Iterable[ShareQueue]) -> tuple[ShareQueue, ...]:
    return tuple(sorted(queues, key=lambda queue: queue.queue))


def _priority(parent: ParentView | None, queue: str) -> int:
    return 0 if parent is None or parent.order == "utilization" else parent.priorities.get(queue, 0)


def _capacity_ratio(guaranteed_resources: Resources, total: Resources) -> float:
    """Return a guarantee as a part of the cluster; the snapshot has it rounded to whole resources."""
    parts = zip(guaranteed_resources, total, strict=False)
    return max((each / whole for each, whole in parts if whole), default=0.0)
