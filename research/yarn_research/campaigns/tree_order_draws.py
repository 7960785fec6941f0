"""Random configurations of a cluster's queues, nodes, labels and resource types, each drawn from one seed."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Literal

from yarn_research.campaigns.scheduler_rig import LABELLED, TYPES
from yarnctl.units import Resources, times

SLOT = Resources(512, 1)
NODE_SLOTS = 8
USERS = ("ann", "ben", "cid")
ORDERS = ("utilization", "priority-utilization")
PREFIX = "yarn.scheduler.capacity."
GPU, GPUS_MAX = "gpu", 4
EXCLUSIVE = 0.75
"""How many labels are exclusive, which is YARN's default."""
Mode = Literal["percentage", "weight", "absolute"]
MODES: tuple[Mode, ...] = ("percentage", "weight", "absolute")


@dataclass
class QueueDraw:
    """One queue as drawn; ``least`` and ``most`` are shares of the cluster."""

    path: str
    least: float
    most: float
    priority: int
    order: str = "utilization"
    fair: bool = False
    factor: float | None = None
    users_percent: int = 100
    children: list[QueueDraw] = field(default_factory=list)


class TreeDraw:
    """A configuration drawn from a seed. ``flat``: root has leaves only, in percent, without any limit.

    ``wide``: half of the trees have node labels (in percent), and half of those without absolute resources a
    resource type beside memory and vcores. ``labels``: each with whether it is exclusive. ``node_labels`` and
    ``node_sizes``: of each node.
    """

    def __init__(self, seed: int, *, flat: bool = False, wide: bool = False) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.flat = flat
        self.mode: Mode = "percentage" if flat else self.chance.choice(MODES)
        self.nodes = self.chance.randint(3, 5)
        wide_chance = random.Random(f"labels and types {seed}")
        self.labels: dict[str, bool] = {}
        if wide and wide_chance.random() < 0.5:
            names = ("x", "y")[: wide_chance.randint(1, 2)]
            self.labels = {name: wide_chance.random() < EXCLUSIVE for name in names}
            self.mode = "percentage"
        marked = [name for name in self.labels for _ in range(wide_chance.randint(1, 2))]
        self.node_labels = (*marked, *[""] * self.nodes)[: max(self.nodes, len(marked) + 2)]
        self.nodes = len(self.node_labels)
        self.types = (GPU,) if wide and self.mode != "absolute" and wide_chance.random() < 0.5 else ()
        size = times(SLOT, NODE_SLOTS)
        self.node_sizes = [
            Resources(*size, *(wide_chance.choice((0, 2, GPUS_MAX)) for _ in self.types))
            for _ in self.node_labels
        ]
        self.total = times(SLOT, NODE_SLOTS * self.nodes)
        self.properties: dict[str, str] = {
            "yarn.scheduler.minimum-allocation-mb": str(SLOT.memory_mib),
            "yarn.scheduler.maximum-allocation-mb": str(SLOT.memory_mib * NODE_SLOTS),
            "yarn.scheduler.maximum-allocation-vcores": str(NODE_SLOTS),
        }
        if self.labels:
            self.properties |= LABELLED
        if self.types:
            self.properties |= {TYPES: GPU, f"{TYPES}.{GPU}.maximum-allocation": str(GPUS_MAX)}
        self.leaves: list[QueueDraw] = []
        self.root = self._grow("root", 1.0, 1.0, 0)
        for label in self.labels:
            self._set("root", f"accessible-node-labels.{label}.capacity", 100)
            self._share_label(self.root, label, wide_chance)
        if self.labels:
            for queue in self.root.children:
                self._set(queue.path, "accessible-node-labels", ",".join(self.labels))

    def _set(self, path: str, key: str, value: object) -> None:
        self.properties[f"{PREFIX}{path}.{key}"] = str(value)

    def _share_label(self, queue: QueueDraw, label: str, chance: random.Random) -> None:
        """Give the children of a queue their parts of a partition; some have none, and none below them."""
        if not queue.children:
            return
        sharing = [child for child in queue.children if chance.random() < 0.75] or queue.children[:1]
        weights = [chance.randint(1, 6) for _ in sharing]
        percents = [round(100 * weight / sum(weights)) for weight in weights]
        percents[-1] += 100 - sum(percents)
        for child, percent in zip(sharing, percents, strict=True):
            key = f"accessible-node-labels.{label}"
            self._set(child.path, f"{key}.capacity", percent)
            if chance.random() < 0.4:
                self._set(child.path, f"{key}.maximum-capacity", chance.randint(percent, 100))
            self._share_label(child, label, chance)

    def _absolute(self, share: float) -> str:
        return f"[memory={int(self.total.memory_mib * share)},vcores={int(self.total.vcores * share)}]"

    def _grow(self, path: str, least: float, most: float, depth: int) -> QueueDraw:
        chance, limits = self.chance, not self.flat
        queue = QueueDraw(path, least, most, chance.choice((0, 0, 1, 3)) if limits else 0)
        if depth and queue.priority:
            self._set(path, "priority", queue.priority)
        deepest = 1 if self.flat else 3
        if depth == deepest or (depth and chance.random() < 0.5):
            self.leaves.append(queue)
            if limits:
                queue.fair = chance.random() < 0.25
                queue.factor = chance.choice((None, None, 1.0, 2.0))
                queue.users_percent = chance.choice((100, 50, 25))
            self._set(path, "ordering-policy", "fair" if queue.fair else "fifo")
            self._set(path, "user-limit-factor", 100 if queue.factor is None else queue.factor)
            self._set(path, "minimum-user-limit-percent", queue.users_percent)
            return queue
        queue.order = chance.choice(ORDERS) if limits else "utilization"
        self._set(path, "ordering-policy", queue.order)
        names = [f"{path}.{letter}" for letter in "abcd"[: chance.randint(2, 4)]]
        self._set(path, "queues", ",".join(name.rpartition(".")[2] for name in names))
        weights = [chance.randint(1, 6) for _ in names]
        percents = [round(100 * weight / sum(weights)) for weight in weights]
        percents[-1] += 100 - sum(percents)
        for name, weight, percent in zip(names, weights, percents, strict=True):
            part = weight / sum(weights) if self.mode == "weight" else percent / 100
            share = least * part
            limit = most if self.flat or chance.random() < 0.6 else share + (most - share) * chance.random()
            self._set_share(name, weight, percent, share)
            queue.children.append(self._grow(name, share, self._limited(name, limit, most), depth + 1))
        return queue

    def _set_share(self, path: str, weight: int, percent: int, share: float) -> None:
        share_text = {"weight": f"{weight}w", "percentage": str(percent), "absolute": self._absolute(share)}
        self._set(path, "capacity", share_text[self.mode])

    def _limited(self, path: str, limit: float, most: float) -> float:
        """Set a queue's maximum; return its share of the cluster."""
        if self.mode == "absolute":
            if limit < most:
                self._set(path, "maximum-capacity", self._absolute(limit))
            return limit
        percent = min(100, math.ceil(100 * limit / most - 1e-9))
        self._set(path, "maximum-capacity", percent)
        return most * percent / 100
