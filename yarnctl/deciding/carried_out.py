"""A plan is carried out in the model before it is made: who would receive each container that it frees?

The forecast of a demand frees containers one by one, of the queues that it chose. A plan frees them at once,
of the queues whose jobs the policies chose. So after the choice the free capacity is forecast with all picks
ended and their tasks requesting again. A requester that would receive fewer containers than its picks serve
is *short*, and the plan is made again with fewer containers for it.

Which node has its heartbeat first is not known: two orders are tried, and the worse one counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from yarnctl.deciding.case import Choice
from yarnctl.deciding.forecast import EndingContainer, FreeCapacity, model_queues
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.levers import LEAVING
from yarnctl.deciding.model import ApplicationView, ContainerRequest, Snapshot
from yarnctl.deciding.order import Order
from yarnctl.deciding.preemptor import DemandInput
from yarnctl.deciding.tree_model import QueueTreeModel, placed_in
from yarnctl.units import Resources

RETURNING_PRIORITY = 3
"""The request priority of a suspended reduce; a killed task returns with 5 or as before."""


def shortages(
    choices: Sequence[tuple[str, Choice]],
    inputs: DemandInput,
    ledger: Ledger,
    placed_before: Mapping[str, int],
) -> dict[str, int]:
    """Return how many containers each requester would lack, those without a lack left out.

    ``choices``: requester and choice, of one partition; a requester to which YARN does not grant what is free
    is not judged. ``placed_before``: what would be placed without them.
    """
    leaving, returning, promised = [], dict[str, list[Resources]](), dict[str, int]()
    for requester, choice in choices:
        is_judged = requester not in inputs.not_granted
        for pick in choice.picks:
            task = pick.task
            leaving.append(EndingContainer(pick.application, task.node, task.size))
            if is_judged:
                promised[requester] = promised.get(requester, 0) + pick.serves
            if task.kind not in LEAVING:
                returning.setdefault(pick.application, []).append(task.size)
    if not leaving:
        return {}
    expected = list(ledger.expected_room(inputs.as_of_ms))
    ending: list[Order | EndingContainer] = [*inputs.here(expected), *leaving]
    outcomes = _outcomes(_returned(inputs.granting, returning), ending, inputs.elsewhere(expected))
    found = {}
    for name, count in promised.items():
        lack = count + placed_before.get(name, 0) - min(after.get(name, 0) for after in outcomes)
        if lack > 0:
            found[name] = lack
    return found


def _outcomes(
    snapshot: Snapshot, coming: Sequence[Order | EndingContainer], elsewhere: Sequence[Order]
) -> list[dict[str, int]]:
    """Return what is placed, in a tree also if the nodes of what is coming have their heartbeats last.

    Requests then reserve on those. ``elsewhere``: what ends in other partitions.
    """
    late_nodes = {each.node for each in coming}
    queues = model_queues(snapshot, coming, elsewhere)
    free = FreeCapacity(snapshot.free_by_node, coming)
    early = {node: size for node, size in free.free.items() if node not in late_nodes}
    late = {node: size for node, size in free.free.items() if node in late_nodes}
    if not snapshot.parents or not early:  # with no other node both orders are the same
        return [placed_in(snapshot, queues, free)[0]]
    tree = QueueTreeModel(snapshot, {path: queue.copy() for path, queue in queues.items()})
    placed, later = tree.place(FreeCapacity(early)), tree.place(FreeCapacity(late))
    both = {name: placed.get(name, 0) + later.get(name, 0) for name in placed.keys() | later.keys()}
    return [placed_in(snapshot, queues, free)[0], both]


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
        sizes = returning[view.application]
        more = [
            ContainerRequest(RETURNING_PRIORITY, size, sizes.count(size)) for size in dict.fromkeys(sizes)
        ]
        return msgspec.structs.replace(view, requests=(*view.requests, *more))

    applications = tuple(
        [with_requests(view) if view.application in returning else view for view in snapshot.applications]
    )
    return msgspec.structs.replace(snapshot, applications=applications, user_limits=limits)
