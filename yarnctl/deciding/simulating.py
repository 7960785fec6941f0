"""What an observing daemon assumes: its orders free their containers in the predicted time.

* An order that was not sent becomes ``simulated`` once its predicted time has passed, that of its whole group
  (:meth:`yarnctl.deciding.order.Order.predicted_ms`). If a fact shows earlier that its task has ended, the
  order ends as always.
* From then on, in the snapshot that decisions read, its victim holds one container less, and its requester
  one more for each request that the order serves; these requests are no longer pending. So the next shortfall
  opens the next orders, and no request is ordered for twice.
* A simulated order ends when the cluster has overtaken it: its requester was given a container (by YARN's own
  preemption, or from free capacity), has fewer requests than are simulated, or has ended. The oldest end
  first, with their groups; then their tasks count as running again.
* A victim never lacks more containers than it really holds besides its master: of tasks that ended by
  themselves, that YARN preempted, or whose application ended, nothing is subtracted.

Law: nothing here enters a fact or an input. The journal has the real snapshot, and triggers name the real
requests; only the copy that is decided on is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from yarnctl.deciding.inputs import Echo
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import ApplicationView, ContainerRequest, Snapshot
from yarnctl.deciding.order import Order
from yarnctl.deciding.partitions import has_node
from yarnctl.deciding.reasons.orders import MoveReason, RequestGone, ServedOtherwise
from yarnctl.deciding.settlement import Effects, Settlement
from yarnctl.units import NOTHING, Resources, minus, plus, times


class SimulatedSnapshot(NamedTuple):
    """A snapshot as it would be, and the real views of the applications that differ in it, also by label."""

    snapshot: Snapshot
    real: Mapping[str, ApplicationView]
    real_labelled: Mapping[str, Mapping[str, ApplicationView]] = MappingProxyType({})


def end_overtaken(
    settlement: Settlement, snapshot: Snapshot | None, before: Mapping[str, Echo], now_ms: int
) -> Effects:
    """End the simulated orders that the cluster has overtaken.

    ``before``: the requesters as they were in the last snapshot. ``snapshot`` None: no preempting application
    has pending requests.
    """
    effects = Effects()
    simulated: dict[str, list[Order]] = {}
    for order in settlement.ledger.simulated():
        simulated.setdefault(order.requester, []).append(order)
    if not simulated:
        return effects
    views = {} if snapshot is None else {view.application: view for view in snapshot.applications}
    for requester, orders in simulated.items():
        view = views.get(requester)
        pending = 0 if view is None else sum(request.count for request in view.requests)
        given = 0
        if view is not None and requester in before:
            given = view.containers - before[requester].containers
        waiting = sum(order.serves for order in orders)
        for order in orders:
            gone = waiting > pending
            if order.serves and (gone or given > 0):
                why: MoveReason = RequestGone() if gone else ServedOtherwise(requester)
                for mate in settlement.ledger.group_of(order):
                    effects.add(settlement.recall(mate, "not-needed", now_ms, why))
                waiting, given = waiting - order.serves, given - order.serves
    return effects


def simulate(snapshot: Snapshot, ledger: Ledger, as_of_ms: int) -> SimulatedSnapshot:
    """Return the snapshot of ``as_of_ms`` as it would be if the simulated orders had been sent."""
    simulated = [order for order in ledger.simulated() if order.is_simulated_at(as_of_ms)]
    if not simulated:
        return SimulatedSnapshot(snapshot, {})
    if not snapshot.labelled:
        return _simulate(snapshot, simulated)
    parts = {}
    for label, part in {"": snapshot, **snapshot.labelled}.items():
        is_here = has_node(snapshot, label)
        parts[label] = _simulate(part, [order for order in simulated if is_here(order.node)])
    plain = parts.pop("")
    labelled = {label: part.snapshot for label, part in parts.items()}
    return SimulatedSnapshot(
        msgspec.structs.replace(plain.snapshot, labelled=labelled),
        plain.real,
        {label: part.real for label, part in parts.items()},
    )


def _simulate(snapshot: Snapshot, simulated: Iterable[Order]) -> SimulatedSnapshot:
    """Return one partition as it would be."""
    real = {view.application: view for view in snapshot.applications}
    views = dict(real)
    used: dict[str, Resources] = {}
    for order in simulated:
        victim, requester = views.get(order.victim), views.get(order.requester)
        if victim is not None and victim.containers > 1:
            views[order.victim] = _changed(victim, minus(NOTHING, order.size), -1, used)
        if requester is not None and order.serves:
            given = times(order.request_size, order.serves)
            requester = msgspec.structs.replace(requester, requests=_less(requester.requests, order))
            views[order.requester] = _changed(requester, given, order.serves, used)
    queues = tuple(
        msgspec.structs.replace(queue, used=plus(queue.used, used[queue.queue]))
        if queue.queue in used
        else queue
        for queue in snapshot.queues
    )
    changed = msgspec.structs.replace(snapshot, applications=tuple(views.values()), queues=queues)
    return SimulatedSnapshot(changed, {name: view for name, view in real.items() if views[name] is not view})


def _changed(
    view: ApplicationView, size: Resources, containers: int, used: dict[str, Resources]
) -> ApplicationView:
    """Return a view with so many more containers, of ``size`` in sum; its queue's usage changes as well."""
    used[view.queue] = plus(used.get(view.queue, NOTHING), size)
    return msgspec.structs.replace(view, containers=view.containers + containers, used=plus(view.used, size))


def _less(requests: Iterable[ContainerRequest], order: Order) -> tuple[ContainerRequest, ...]:
    """Return requests without those that an order serves: first those of its size, in serving order."""
    left, served = list(requests), order.serves
    places = sorted(range(len(left)), key=lambda place: (left[place].size != order.request_size, left[place]))
    for place in places:
        taken = min(served, left[place].count)
        left[place], served = left[place]._replace(count=left[place].count - taken), served - taken
    return tuple(request for request in left if request.count > 0)
