"""Features of the scheduler that yarnctl does not model, by name, and what follows from each.

Keys of capacity-scheduler.xml are seen only where the scheduler's store can be changed; the policies of
queues, and the ResourceManager's own configuration, on every cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from yarnctl.hadoop.wire.views import Leaf, is_leaf, queues_of
from yarnctl.hadoop.wire.yarn import QueueInfo

CAPACITY = "yarn.scheduler.capacity."
SIZE_BASED = ".ordering-policy.fair.enable-size-based-weight"
PARENT_POLICIES = frozenset({"", "utilization", "priority-utilization"})


class UnmodelledFeature(NamedTuple):
    """``effect``: what yarnctl does wrong. ``key`` with ``value`` switches the feature off."""

    name: str
    effect: str
    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.name} ({self.effect})"


_BY_KEY = (
    (
        "true",
        UnmodelledFeature(
            "asynchronous scheduling",
            "YARN grants containers between heartbeats: a forecast can name the wrong node",
            f"{CAPACITY}schedule-asynchronously.enable",
            "false",
        ),
    ),
    (
        "true",
        UnmodelledFeature(
            "multi-node placement",
            "YARN may place a request on another node than the freed one",
            f"{CAPACITY}multi-node-placement-enabled",
            "false",
        ),
    ),
    (
        "false",
        UnmodelledFeature(
            "reservations that stay on their node",
            "containers freed on other nodes do not help a request with a reservation",
            f"{CAPACITY}reservations-continue-look-all-nodes",
            "true",
        ),
    ),
    (
        "true",
        UnmodelledFeature(
            "opportunistic containers",
            "yarnctl frees no container for such requests",
            "yarn.resourcemanager.opportunistic-container-allocation.enabled",
            "false",
        ),
    ),
    (
        "scheduler placement-processor",
        UnmodelledFeature(
            "placement constraints",
            "yarnctl frees no container for requests that have them",
            "yarn.resourcemanager.placement-constraints.handler",
            "disabled",
        ),
    ),
)
"""The values of its key, in words, that switch a feature on, and the feature."""


def unmodelled(keys: Mapping[str, str], root_queue: QueueInfo) -> tuple[UnmodelledFeature, ...]:
    """Return the features in use. ``keys``: those of the scheduler and the ResourceManager that are shown."""
    found = [one for values, one in _BY_KEY if keys.get(one.key, "-").strip().lower() in values.split()]
    return (*found, *_of_policies(keys, root_queue))


def _of_policies(keys: Mapping[str, str], root_queue: QueueInfo) -> Iterator[UnmodelledFeature]:
    for leaf in queues_of(root_queue):
        key = f"{CAPACITY}{leaf.path}.ordering-policy"
        policy = leaf.queue.ordering_policy.strip()
        if not is_leaf(leaf.queue):
            if policy not in PARENT_POLICIES:
                effect = "yarnctl takes it for utilization"
                yield UnmodelledFeature(_shown(policy, leaf), effect, key, "utilization")
        elif leaf.queue.order == "other":
            yield UnmodelledFeature(_shown(policy, leaf), "yarnctl takes it for fifo", key, "fifo")
        elif leaf.queue.order == "fair" and (
            "sizebasedweight" in policy.lower()
            or keys.get(f"{CAPACITY}{leaf.path}{SIZE_BASED}", "").strip().lower() == "true"
        ):
            name = f"the size-based weight of {leaf.path}"
            effect = "yarnctl orders its applications by their use alone"
            yield UnmodelledFeature(name, effect, f"{CAPACITY}{leaf.path}{SIZE_BASED}", "false")


def _shown(policy: str, leaf: Leaf) -> str:
    return f"the ordering policy {policy[:80]} of {leaf.path}"
