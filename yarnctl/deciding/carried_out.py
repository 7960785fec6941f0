"""A plan is carried out in the model before it is made: who would receive each container that it frees?

The forecast of a demand frees containers one by one, of the queues that it chose. A plan frees them at once,
of the queues whose jobs the policies chose. So after the choice the free capacity is forecast with all picks
ended and their tasks requesting again. A requester that would receive fewer containers than its picks serve
is *short*. Then the plan is made again:

1. with as many containers of each queue as the forecast took,
2. without the containers that are still lacking, until no requester is short.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from yarnctl.deciding.case import Choice
from yarnctl.deciding.forecast import EndingContainer, FreeCapacity, model_queues
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.levers import LEAVING
from yarnctl.deciding.model import ApplicationView, ContainerRequest, Snapshot
from yarnctl.deciding.preemptor import DemandInput
from yarnctl.deciding.tree_model import placed_in
from yarnctl.units import Resources

RETURNING_PRIORITY = 3
"""The request priority of a suspended reduce; a killed task returns with 5 or as before."""


def shortages(choices: Sequence[tuple[str, Choice]], inputs: DemandInput, ledger: Ledger) -> dict[str, int]:
    """Return how many containers each requester would lack, those without a lack left out.

    ``choices``: requester and choice, of one partition.
    """
    leaving, returning, promised = [], dict[str, list[Resources]](), dict[str, int]()
    for requester, choice in choices:
        for pick in choice.picks:
            task = pick.task
            leaving.append(EndingContainer(pick.application, task.node, task.size))
            promised[requester] = promised.get(requester, 0) + pick.serves
            if task.kind not in LEAVING:
                returning.setdefault(pick.application, []).append(task.size)
    if not leaving:
        return {}
    coming: list[EndingContainer] = [
        EndingContainer(order.victim, order.node, order.size)
        for order in inputs.here(ledger.expected_room(inputs.as_of_ms))
    ]
    before = _placed(inputs.snapshot, coming)
    after = _placed(_returned(inputs.snapshot, returning), [*coming, *leaving])
    lacks = {name: count - after.get(name, 0) + before.get(name, 0) for name, count in promised.items()}
    return {name: count for name, count in lacks.items() if count > 0}


def _placed(snapshot: Snapshot, coming: Sequence[EndingContainer]) -> dict[str, int]:
    free = FreeCapacity(snapshot.free_by_node, coming)
    return placed_in(snapshot, model_queues(snapshot, coming), free)[0]


def _returned(snapshot: Snapshot, returning: Mapping[str, Sequence[Resources]]) -> Snapshot:
    """Return a snapshot in which ended tasks request a container again.

    The limit that YARN shows for a user without pending requests rises as soon as there is one.
    """
    active = {(view.queue, view.user) for view in snapshot.applications if view.requests and view.activated}
    limits = {queue: dict(users) for queue, users in snapshot.user_limits.items()}
    for view in snapshot.applications:
        if view.application in returning and (view.queue, view.user) not in active:
            limits.get(view.queue, {}).pop(view.user, None)

    def with_requests(view: ApplicationView) -> ApplicationView:
        sizes = returning.get(view.application)
        if sizes is None:
            return view
        more = [
            ContainerRequest(RETURNING_PRIORITY, size, sizes.count(size)) for size in dict.fromkeys(sizes)
        ]
        return msgspec.structs.replace(view, requests=(*view.requests, *more))

    applications = tuple([with_requests(view) for view in snapshot.applications])
    return msgspec.structs.replace(snapshot, applications=applications, user_limits=limits)
