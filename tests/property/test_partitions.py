"""Random clusters with labels: the demand for the nodes of each label is that of a cluster of these alone.

Such a cluster still has what YARN reads of the nodes without a label
(:func:`yarnctl.deciding.partitions.part_of`).
What the demand of one cluster is, :mod:`tests.property.test_tree_forecast` compares with a plain scheduler.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from tests.property.test_tree_forecast import SHAPES, UNIT, snapshots
from yarnctl.deciding import partitions, planning, preemptor
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import Snapshot
from yarnctl.deciding.order import Order
from yarnctl.deciding.planning import excess_orders
from yarnctl.deciding.preemptor import ClusterDemand, DemandInput, demand
from yarnctl.deciding.settings import DEFAULT
from yarnctl.units import NOTHING

NOW_MS = 1000


class Cluster(NamedTuple):
    """Partitions by label ("": no label), with the orders on their nodes."""

    parts: dict[str, Snapshot]
    orders: dict[str, list[Order]]
    leaves: tuple[str, ...]

    def whole(self) -> Snapshot:
        """Return all of it as one snapshot."""
        plain, *labelled = self.parts
        return msgspec.structs.replace(
            self.parts[plain], labelled={label: self.parts[label] for label in labelled}
        )


@st.composite
def clusters(draw: Any) -> Cluster:
    leaves = draw(st.sampled_from(SHAPES))
    parts: dict[str, Snapshot] = {}
    orders: dict[str, list[Order]] = {}
    number = 0
    for label in ("", "gpu", "ssd")[: draw(st.integers(2, 3))]:
        drawn = draw(snapshots(leaves))
        free = {f"{label}{node}": size for node, size in drawn.free_by_node.items()}
        nodes = (*free, f"{label}full")
        names = {view.application: f"{view.queue}-{view.application[-1]}" for view in drawn.applications}
        part = msgspec.structs.replace(
            drawn,
            free_by_node=free,
            applications=tuple(
                msgspec.structs.replace(view, application=names[view.application])
                for view in drawn.applications
            ),
            reserved={names[name]: size for name, size in drawn.reserved.items()},
            nodes=nodes if label else (),
        )
        parts[label], orders[label] = part, []
        for _ in range(draw(st.integers(0, 2))):
            number += 1
            requester, victim = (draw(st.sampled_from(sorted(names.values()))) for _ in range(2))
            orders[label].append(order(number, requester, victim, draw(st.sampled_from(nodes))))
    known = {view.application for view in parts[""].applications}
    more = {
        view.application: msgspec.structs.replace(view, requests=(), used=NOTHING)
        for part in parts.values()
        for view in part.applications
        if view.application not in known
    }
    applications = (*parts[""].applications, *more.values())
    parts[""] = msgspec.structs.replace(parts[""], applications=applications)
    return Cluster(parts, orders, leaves)


def order(number: int, requester: str, victim: str, node: str) -> Order:
    name = f"o-{number}"
    return Order(
        order=name, requester=requester, victim=victim, attempt=name, container=name, node=node, size=UNIT,
        request_size=UNIT, serves=1, group=name, generation=1, verb="suspend", decision=number,
        ordered_at_ms=0, progress_at_ms=0,
    )  # fmt: skip


def ledger_of(orders: list[Order]) -> Ledger:
    ledger = Ledger()
    for each in orders:
        ledger.open[each.order] = each
        ledger.by_group.setdefault(each.group, {})[each.order] = None
        ledger.by_requester.setdefault(each.requester, {})[each.order] = None
        ledger.by_victim.setdefault(each.victim, {})[each.order] = None
    return ledger


def unlabelled(found: ClusterDemand) -> Any:
    """Return a demand without what names its label."""
    wishes = [
        wish._replace(trigger=msgspec.structs.replace(wish.trigger, label="")) for wish in found.applications
    ]
    refused = [(msgspec.structs.replace(trigger, label=""), why) for trigger, why in found.refused]
    return wishes, refused, dict(found.free), found.preemptable_queues


def differs(cluster: Cluster) -> str:
    """Compare the demand, and the orders in excess, with those of each partition as a cluster alone."""
    rules = msgspec.structs.replace(
        DEFAULT, preempting_queues=cluster.leaves[:1], preemptable_queues=cluster.leaves[1:]
    )
    every = [each for orders in cluster.orders.values() for each in orders]
    whole = DemandInput(cluster.whole(), NOW_MS, NOW_MS)
    found = demand(whole, ledger_of(every), rules)
    moves, excess = excess_orders(whole, ledger_of(every), rules)
    for label in cluster.parts:
        alone = msgspec.structs.replace(partitions.part_of(cluster.whole(), label), labelled={})
        left_mib = dict(alone.elsewhere_mib)  # a fair leaf does not count what is ordered of other nodes
        for each in every:
            if each not in cluster.orders[label]:
                left_mib[each.victim] = left_mib.get(each.victim, 0) - each.size.memory_mib
        alone = msgspec.structs.replace(alone, elsewhere_mib=left_mib)
        inputs, ledger = DemandInput(alone, NOW_MS, NOW_MS), ledger_of(cluster.orders[label])
        if unlabelled(found.by_label[label]) != unlabelled(demand(inputs, ledger, rules)):
            return f"demand of {label!r}"
        mine = excess_orders(inputs, ledger, rules)
        if [move for move in moves if move[0] in cluster.orders[label]] != list(mine.moves):
            return f"moves of {label!r}"
        if [each for each in excess if each in cluster.orders[label]] != list(mine.excess):
            return f"excess of {label!r}"
        labels = {wish.trigger.label for wish in found.by_label[label].applications}
        if not labels <= {label}:
            return f"label {label!r}"
    return ""


@given(clusters())
def test_each_label_is_decided_on_as_a_cluster_alone(cluster: Cluster) -> None:
    assert differs(cluster) == ""


def orders_of_every_node(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(preemptor, "has_node", lambda _snapshot, _label: partitions.every_node)


def promises_of_every_node(patch: pytest.MonkeyPatch) -> None:
    promised = Ledger.promised
    patch.setattr(Ledger, "promised", lambda self, name, at_ms=None, _=None: promised(self, name, at_ms))


def excess_of_every_node(patch: pytest.MonkeyPatch) -> None:
    beyond = planning.beyond
    patch.setattr(
        planning, "beyond", lambda due, at_ms, ledger, kept, _=None: beyond(due, at_ms, ledger, kept)
    )


def nodes_without_a_label_for_every_request(patch: pytest.MonkeyPatch) -> None:
    named = partitions.part_of
    patch.setattr(
        preemptor,
        "part_of",
        lambda snapshot, label: msgspec.structs.replace(
            named(snapshot, label), free_by_node=snapshot.free_by_node
        ),
    )


def label_not_named(patch: pytest.MonkeyPatch) -> None:
    named = DemandInput.of_label
    patch.setattr(DemandInput, "of_label", lambda self, label: named(self, label)._replace(label="x"))


@pytest.mark.parametrize(
    "plant",
    [
        orders_of_every_node,
        promises_of_every_node,
        excess_of_every_node,
        nodes_without_a_label_for_every_request,
        label_not_named,
    ],
)
def test_a_planted_fault_is_found(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    ways = settings(max_examples=2000, phases=[Phase.generate], database=None, deadline=None)
    find(clusters(), lambda cluster: bool(differs(cluster)), settings=ways, random=Random(1))
