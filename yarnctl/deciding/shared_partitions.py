"""Idle nodes of a shared partition serve requests without a label, after those for the label.

Source: docs/facts/hadoop.md, section 5 (``SchedulingMode.IGNORE_PARTITION_EXCLUSIVITY``): the queues are in
the order of what they use of the partition, each may have all of it, and so may each user as far as the
shares of active users allow. A request waits first for as many turns as the cluster has nodes, and not again
while it is granted containers there; how many turns it has had is not shown, so all are served at once.
Masters are not served.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from yarnctl.deciding.forecast import (
    FreeCapacity,
    QueueModel,
    SimulatedRequest,
    count_grants,
    model_queues,
    place_pending,
)
from yarnctl.deciding.model import ContainerRequest, Snapshot
from yarnctl.deciding.tree_model import QueueTreeModel, placed_in
from yarnctl.units import NOTHING, Resources


class ServedPartition:
    """A partition, after its own requests have been served from ``free``.

    ``placed``: containers by application, with those that have filled reservations for requests without a
    label.
    """

    def __init__(self, snapshot: Snapshot, queues: Mapping[str, QueueModel], free: FreeCapacity) -> None:
        self._snapshot = snapshot
        self._queues = queues
        self._free = free
        self.placed, self._tree = placed_in(snapshot, queues, free)
        self._filled: Mapping[tuple[str, int, Resources], int] = {}
        if self._tree is not None:
            self._filled = self._tree.filled_unlabelled()
        for (name, *_), count in self._filled.items():
            self.placed[name] = self.placed.get(name, 0) + count

    @property
    def idle(self) -> Mapping[str, Resources]:
        """What is still free, by node."""
        return self._free.free

    def serve_idle(self, queues: Mapping[str, QueueModel], rejected: Collection[str] = ()) -> dict[str, int]:
        """Serve requests without a label from what is idle; return placed per application.

        ``queues``: of the nodes without a label, with what is still pending; what is placed is taken from it.
        ``rejected``: applications with a request that nodes without a label find first and no limit allows:
        each time its turns begin anew, and it stops the application here.
        """
        self.take_filled(queues)
        part = self._idle(queues, rejected)
        models = model_queues(part, ())
        for path, model in models.items():
            model.user_used = dict(self._queues[path].user_used)
            model.leaving_mib = dict(self._queues[path].leaving_mib)
        count_grants(models, self._queues)
        count_grants(models, queues)
        placed = self._placed(part, models)
        for path, queue in queues.items():
            left = {_named(each): each.containers for each in models[path].waiting()}
            stuck = [
                each
                if _is_master(each) or each.application.application in rejected
                else each._replace(containers=left.get(_named(each), 0))
                for each in queue.waiting()[queue.head :]
            ]
            queue.leave([each for each in stuck if each.containers])
        return placed

    def take_filled(self, queues: Mapping[str, QueueModel]) -> None:
        """Take the containers that have filled reservations here from the requests without a label, once."""
        filled, self._filled = self._filled, {}
        for queue in queues.values() if filled else ():
            left = [
                each._replace(containers=each.containers - filled.get(_named(each), 0))
                for each in queue.waiting()[queue.head :]
            ]
            queue.leave([each for each in left if each.containers > 0])

    def _placed(self, snapshot: Snapshot, models: Mapping[str, QueueModel]) -> dict[str, int]:
        if self._tree is None:
            return place_pending(models, FreeCapacity(self._free.free))
        rooms = {**self._free.free, **self._free.held}
        left = {node: room for node, room in rooms.items() if node not in self._tree.rejecting}
        tree = QueueTreeModel(self._tree.reserving(snapshot, rooms), models, shares_idle=True)
        return tree.place(type(self._free)(left))  # with heartbeats in the same order

    def _idle(self, queues: Mapping[str, QueueModel], rejected: Collection[str]) -> Snapshot:
        """Return the partition with requests without a label in the place of its own."""
        part, used = self._snapshot, self._used()
        held = {view.application: view.used for view in part.applications}
        active = dict(part.active_elsewhere)
        for view in part.applications:
            if view.requests and view.activated:
                active[view.queue] = active.get(view.queue, frozenset()) | {view.user}
        requests: dict[str, list[ContainerRequest]] = {}
        views = {view.application: view for view in part.applications}
        for queue in queues.values():
            for each in queue.waiting()[queue.head :]:
                name = each.application.application
                views[name] = each.application
                if not _is_master(each) and name not in rejected:
                    request = ContainerRequest(each.priority, each.size, each.containers)
                    requests.setdefault(name, []).append(request)
        return msgspec.structs.replace(
            part,
            queues=tuple(
                msgspec.structs.replace(
                    view, used=used[view.queue], maximum=part.total, user_limit=part.total
                )
                for view in part.queues
            ),
            parents=tuple(
                msgspec.structs.replace(view, used=used.get(view.queue, view.used), maximum=part.total)
                for view in part.parents
            ),
            applications=tuple(
                msgspec.structs.replace(
                    view, used=held.get(name, NOTHING), requests=tuple(requests.get(name, ()))
                )
                for name, view in views.items()
            ),
            user_limits={},
            active_elsewhere=active,
        )

    def _used(self) -> dict[str, Resources]:
        """Return what each queue uses after its own requests have been served."""
        if self._tree is None:
            return {path: queue.used for path, queue in self._queues.items()}
        leaves = self._tree.leaves.values()
        return {node.path: node.used for leaf in leaves for node in leaf.chain}


def _named(request: SimulatedRequest) -> tuple[str, int, Resources]:
    return request.application.application, request.priority, request.size


def _is_master(request: SimulatedRequest) -> bool:
    view = request.application
    return request.priority == 0 and request.containers == 1 and view.containers == 0
