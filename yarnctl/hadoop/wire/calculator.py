"""Which resource calculator the scheduler uses, and its answers where that one counts memory alone.

Hadoop's default, ``DefaultResourceCalculator``, ignores vcores (docs/facts/hadoop.md, 5). No field names the
calculator, but some answers show it:

* ``absoluteUsedCapacity`` of a queue is what the calculator makes of its use (class CSQueueUtils). It is the
  share of memory, or the largest share, and proves the calculator that runs.
* The key, where the cluster shows it. A changed key has no effect before a restart.
* A resource type beside memory and vcores: with one the default calculator does not start.
* A node with more vcores in use than it has, if it was not made smaller: then it mostly lacks memory too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from yarnctl.hadoop.wire.views import other_resources, queues_of, total_of
from yarnctl.hadoop.wire.yarn import NodeRow, QueueInfo, QueueList, QueueUsers, Vector
from yarnctl.units import VCORES_A_MIB

Calculator = Literal["dominant", "memory"]
"""What the scheduler counts: every resource, or memory alone."""

KEY = "yarn.scheduler.capacity.resource-calculator"
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
UNKNOWN = "the resource calculator is unknown: yarnctl counts memory and vcores"
_OF_CLASS: Mapping[str, Calculator] = {
    "DominantResourceCalculator": "dominant",
    "DefaultResourceCalculator": "memory",
}
_MOST_RATIO = 1.0
"""The most that is shown, also of a queue that uses more than there is: a node was made smaller."""
_DISTINCT_RATIO, _NEAR_RATIO = 0.01, 0.002
"""How far the two shares must be apart, and how near the shown one must be to one of them."""


def shown_calculator(
    root_queue: QueueInfo | None,
    nodes: Sequence[NodeRow],
    scheduler_keys: Mapping[str, str] | None,
    configuration: Mapping[str, str] | None = None,
) -> Calculator | None:
    """Return the calculator that answers show, None if they do not; ``scheduler_keys`` None: not shown."""
    by_use = None if root_queue is None else calculator_in_use(root_queue, nodes)
    return by_use or _configured(scheduler_keys, configuration) or _of_nodes(nodes)


def calculator_in_use(root_queue: QueueInfo, nodes: Sequence[NodeRow]) -> Calculator | None:
    """Return the calculator that made the shares of queues; None if both would have made the same."""
    own = [node for node in nodes if not node.partition]
    names = other_resources(own)
    total = total_of(own, names)
    found: set[Calculator] = set()
    for leaf in queues_of(root_queue):
        used, shown_ratio = leaf.queue.used.of(names), leaf.queue.used_percent / 100
        pairs = zip(used, total, strict=False)
        shares = [min(part / whole, _MOST_RATIO) if whole > 0 else 0.0 for part, whole in pairs]
        if shown_ratio >= 0 and max(shares) - shares[0] > _DISTINCT_RATIO:
            if abs(shown_ratio - shares[0]) < _NEAR_RATIO:
                found.add("memory")
            elif abs(shown_ratio - max(shares)) < _NEAR_RATIO:
                found.add("dominant")
    return found.pop() if len(found) == 1 else None


def _configured(
    scheduler_keys: Mapping[str, str] | None, configuration: Mapping[str, str] | None
) -> Calculator | None:
    name = {**(configuration or {}), **(scheduler_keys or {})}.get(KEY)
    if name is None:  # /conf lacks the keys of capacity-scheduler.xml
        return None if scheduler_keys is None else "memory"
    return _OF_CLASS.get(name.strip().rpartition(".")[2])


def _of_nodes(nodes: Sequence[NodeRow]) -> Calculator | None:
    if other_resources(nodes):
        return "dominant"
    return "memory" if any(node.available_vcores < 0 <= node.available_mib for node in nodes) else None


# --- memory alone --------------------------------------------------------------------------------


def by_memory(root_queue: QueueInfo, nodes: Iterable[NodeRow]) -> tuple[QueueInfo, tuple[NodeRow, ...]]:
    """Return both answers with more vcores in each capacity than can be used: memory alone limits.

    What is used and requested stays as it is.
    """
    return _queue(root_queue), tuple(map(_node, nodes))


def _node(node: NodeRow) -> NodeRow:
    return replace(
        node,
        used_vcores=node.used_mib * VCORES_A_MIB,
        available_vcores=node.available_mib * VCORES_A_MIB,
        capacity=_unlimited(node.capacity),
    )


def _queue(queue: QueueInfo) -> QueueInfo:
    users, shares, below = queue.users, queue.shares, queue.below
    if users is not None:
        users = QueueUsers(tuple(replace(row, limit=_unlimited(row.limit)) for row in users.rows))
    if shares is not None:
        rows = (
            replace(row, guaranteed=_unlimited(row.guaranteed), maximum=_unlimited(row.maximum))
            for row in shares.rows
        )
        shares = replace(shares, rows=tuple(rows))
    return replace(
        queue,
        guaranteed=_unlimited(queue.guaranteed),
        maximum=_unlimited(queue.maximum),
        am_limit=_unlimited(queue.am_limit),
        users=users,
        shares=shares,
        below=None if below is None else QueueList(tuple(map(_queue, below.rows))),
    )


def _unlimited(vector: Vector | None) -> Vector | None:
    return None if vector is None else replace(vector, vcores=vector.memory_mib * VCORES_A_MIB)
