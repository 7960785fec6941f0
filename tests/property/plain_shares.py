"""Random trees of queues, and a plain second opinion on the ideal shares of YARN's preemption.

Law: the second opinion shares no code with :mod:`yarnctl.deciding.ideal_shares`. It keeps a queue as a dict
and a vector as a list, computes each level anew in the words of the policy's source, and knows single
precision from ctypes. It is slow.
"""

from __future__ import annotations

import math
import random
from ctypes import c_float
from typing import Any

from yarnctl.deciding.ideal_shares import PreemptionRates, ShareQueue
from yarnctl.units import Resources

Vector = list[int]
NONE = [0, 0]
SIZES = ((512, 1), (1024, 1), (1024, 2), (1500, 1))
TOTALS = ((12288, 24), (24576, 48), (40960, 17), (100_000, 96), (57_344, 40))


def random_tree(chance: random.Random) -> ShareQueue:
    """Return a tree of up to four levels; guarantees and uses of every kind, also far beyond the total."""
    total = Resources(*chance.choice(TOTALS))
    size = chance.choice(SIZES)
    depth = chance.choice((1, 2, 2, 3))

    def grown(path: str, left: int, guaranteed: Resources, maximum: Resources, part: float) -> ShareQueue:
        priority = chance.choice((0, 0, 0, 1, 5))
        if left == depth or (left and chance.random() < 0.75):
            parts = [chance.choice((0, 1, 1, 2, 3, 5)) for _ in range(chance.randint(1, 4))]
            whole = sum(parts) or 1
            children = []
            for place, each in enumerate(parts):
                mine = Resources(guaranteed[0] * each // whole, guaranteed[1] * each // whole)
                most = chance.choice((1, 1, 1, 0.8, 0.5))
                cap = Resources(max(int(maximum[0] * most), mine[0]), max(int(maximum[1] * most), mine[1]))
                children.append(grown(f"{path}.{'abcd'[place]}", left - 1, mine, cap, part * each / whole))
            used = Resources(sum(each.used[0] for each in children), sum(each.used[1] for each in children))
            return ShareQueue(
                queue=path,
                guaranteed=guaranteed,
                maximum=maximum,
                used=used,
                capacity_ratio=part,
                priority=priority,
                children=tuple(children),
            )
        held, wanted = chance.choice((0, 0, 1, 2, 3, 5, 8, 13)), chance.choice((0, 0, 1, 2, 5, 20))
        reserved = chance.choice((0, 0, 0, 1))
        wide, tall = chance.choice((1, 1, 1, 2, 3)), chance.choice((1, 1, 1, 2, 3))
        pending = Resources(wanted * size[0] * wide, wanted * size[1] * tall)
        return ShareQueue(
            queue=path,
            guaranteed=guaranteed,
            maximum=maximum,
            used=Resources(held * size[0] * tall, held * size[1] * wide),
            capacity_ratio=part,
            pending=pending,
            unreserved=Resources(
                max(pending[0] - reserved * size[0], 0), max(pending[1] - reserved * size[1], 0)
            ),
            priority=priority,
            untouchable=chance.random() < 0.15,
        )

    return grown("root", depth, total, total, 1.0)


def random_rates(chance: random.Random) -> PreemptionRates:
    """Return settings of the policy, of both calculators."""
    return PreemptionRates(
        chance.choice((0.1, 0.5, 1)),
        chance.choice((0, 0.1, 0.25)),
        chance.choice((0.2, 1)),
        chance.random() < 0.25,
    )


class PlainPolicy:
    """The policy, literally; ``shares``: leaf -> (ideal, taken in this round)."""

    def __init__(self, root: ShareQueue, rates: PreemptionRates) -> None:
        self.rates = rates
        top = self.copied(root)
        self.total: Vector = top["guaranteed"]
        self.extras(top)
        top["ideal"] = list(self.total)
        allowed = [int(each * f32(rates.per_round_ratio)) for each in self.total]
        self.level(top, allowed)
        self.shares: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self.obtain(top)

    def copied(self, view: ShareQueue) -> dict[str, Any]:
        """Return a queue with its children; under the memory calculator nothing has vcores."""
        queue: dict[str, Any] = {
            name: [getattr(view, name)[0], 0 if self.rates.memory_only else getattr(view, name)[1]]
            for name in ("guaranteed", "maximum", "used", "pending", "unreserved")
        }
        queue |= {"view": view, "ideal": [0, 0], "preempt": [0, 0], "norm": [0.0, 0.0]}
        queue["children"] = [self.copied(child) for child in view.children]
        for child in queue["children"]:
            queue["pending"] = add(queue["pending"], child["pending"])
            queue["unreserved"] = add(queue["unreserved"], child["unreserved"])
        return queue

    # --- the calculator

    def cmp(self, cluster: Vector, left: Vector, right: Vector) -> int:
        """Return the sign of left - right by dominant shares of ``cluster`` (or by memory)."""
        if self.rates.memory_only:
            return (left[0] > right[0]) - (left[0] < right[0])
        if cluster == NONE:
            more = any(one > other for one, other in zip(left, right, strict=True))
            less = any(one < other for one, other in zip(left, right, strict=True))
            return 0 if more and less else 1 if more else -1 if less else 0
        one = [left[i] / cluster[i] if cluster[i] else math.inf for i in (0, 1)]
        other = [right[i] / cluster[i] if cluster[i] else math.inf for i in (0, 1)]
        for pick in (max, min):
            if pick(one) != pick(other):
                return 1 if pick(one) > pick(other) else -1
        return 0

    def divide(self, cluster: Vector, part: Vector, whole: Vector) -> float:
        """Return the quotient of the dominant shares."""
        if self.rates.memory_only:
            return f32(f32(part[0]) / f32(whole[0]))
        best = [0.0, 0.0]
        for i in (0, 1):
            if cluster[i]:
                best[0] = max(best[0], part[i] / cluster[i])
                best[1] = max(best[1], whole[i] / cluster[i])
        return f32(best[0] / best[1]) if best[1] else math.nan

    # --- the steps

    def extras(self, queue: dict[str, Any]) -> None:
        """Compute untouchable and preemptable extra, children first."""
        for child in queue["children"]:
            self.extras(child)
        extra = sub(queue["used"], queue["guaranteed"])
        if self.cmp(self.total, extra, NONE) < 0:
            extra = [0, 0]
        queue["untouchable"], queue["movable"] = [0, 0], [0, 0]
        if not queue["children"]:
            queue["untouchable" if queue["view"].untouchable else "movable"] = extra
            return
        below = [0, 0]
        for child in queue["children"]:
            below = add(below, child["movable"])
        if self.cmp(self.total, below, extra) < 0:
            queue["untouchable"] = sub(extra, below)
        queue["movable"] = below if self.cmp(self.total, below, extra) <= 0 else extra

    def level(self, parent: dict[str, Any], allowed: Vector) -> None:
        """Assign one level and go down."""
        children = parent["children"]
        if not children:
            return
        cluster = parent["ideal"]
        rich = [child for child in children if self.cmp(cluster, child["guaranteed"], NONE) > 0]
        poor = [child for child in children if self.cmp(cluster, child["guaranteed"], NONE) <= 0]
        seen = self.fixpoint(cluster, rich, list(cluster), False)
        if poor and self.cmp(cluster, seen, NONE) > 0:
            self.fixpoint(cluster, poor, seen, True)
        needed = [0, 0]
        for child in children:
            if self.cmp(cluster, child["used"], child["ideal"]) > 0:
                needed = add(needed, sub(child["used"], child["ideal"]))
        factor = 1.0
        if self.cmp(cluster, needed, allowed) > 0:
            factor = self.divide(cluster, allowed, needed)
        for child in children:
            total = add(child["used"], child["pending"])
            least = total if self.cmp(cluster, total, child["guaranteed"]) <= 0 else child["guaranteed"]
            least = least if self.cmp(cluster, least, child["ideal"]) >= 0 else child["ideal"]
            if self.cmp(cluster, child["used"], least) > 0:
                over = sub(child["used"], least)
                child["preempt"] = [0 if math.isnan(factor) else int(each * factor) for each in over]
            self.level(child, allowed)

    def fixpoint(self, cluster: Vector, queues: list[dict[str, Any]], rest: Vector, even: bool) -> Vector:
        """Assign to a set of queues; return what the caller sees of the rest afterwards."""
        seen = rest  # one object with the caller's until the first grant has been subtracted
        is_shared = True
        hungry = []
        for queue in queues:
            if self.cmp(cluster, queue["used"], queue["guaranteed"]) > 0:
                start = [min(queue["guaranteed"][i], queue["used"][i]) for i in (0, 1)]
                queue["ideal"] = add(start, queue["untouchable"])
            else:
                queue["ideal"] = list(queue["used"])
            rest = sub(rest, queue["ideal"])
            seen = rest
            if self.cmp(cluster, queue["ideal"], add(queue["used"], queue["pending"])) < 0:
                hungry.append(queue)
        while hungry and self.cmp(cluster, rest, NONE) > 0:
            self.norm(hungry, even)
            groups: dict[tuple[bool, int, float], list[dict[str, Any]]] = {}
            for queue in hungry:
                percent = float(2**31 - 1)
                if self.cmp(cluster, queue["guaranteed"], NONE) > 0:
                    percent = self.divide(cluster, queue["ideal"], queue["guaranteed"])
                groups.setdefault((percent >= 1, -queue["view"].priority, percent), []).append(queue)
            group = sorted(groups[min(groups)], key=lambda queue: queue["view"].queue)
            hungry = [queue for queue in hungry if queue not in group]
            round_rest = list(rest)
            for queue in group:
                if max(rest) <= 0:
                    break
                offer = [min(each, rest[i]) for i, each in enumerate(self.part(round_rest, queue["norm"]))]
                done = self.offered(cluster, queue, offer)
                if self.cmp(cluster, done, NONE) > 0:
                    hungry.append(queue)
                rest = sub(rest, done)
                if is_shared:
                    seen, is_shared = rest, False
                rest = [max(each, 0) for each in rest]
        return seen

    def norm(self, queues: list[dict[str, Any]], even: bool) -> None:
        """Set the normalised guarantees."""
        all_capacity = 0.0
        for queue in queues:
            all_capacity = f32(all_capacity + f32(queue["view"].capacity_ratio))
        for i in (0, 1):
            active = sum(queue["guaranteed"][i] for queue in queues)
            lost = [q for q in queues if q["guaranteed"][i] == 0 and q["view"].capacity_ratio != 0]
            for queue in queues:
                if even:
                    queue["norm"][i] = f32(1 / len(queues))
                elif lost and active:
                    queue["norm"][i] = f32(f32(queue["view"].capacity_ratio) / all_capacity)
                elif not all_capacity or not active:
                    queue["norm"][i] = f32(1 / len(queues))
                else:
                    queue["norm"][i] = f32(f32(queue["guaranteed"][i]) / f32(active))

    def part(self, rest: Vector, norm: list[float]) -> Vector:
        """Return the part of the rest that is offered, rounded up (or to the nearest MiB)."""
        if self.rates.memory_only:
            return [int(rest[0] * norm[0] + 0.5), 0]
        return [math.ceil(rest[i] * norm[i]) for i in (0, 1)]

    def offered(self, cluster: Vector, queue: dict[str, Any], offer: Vector) -> Vector:
        """Let a queue take what it can of an offer."""
        ideal = queue["ideal"]
        wants = sub(add(queue["used"], queue["unreserved"]), ideal)
        taken = offer if self.cmp(cluster, offer, wants) <= 0 else wants
        taken = [min(max(queue["maximum"][i] - ideal[i], 0), taken[i]) for i in (0, 1)]
        if not queue["children"]:
            used_most = self.cmp(cluster, queue["used"], queue["guaranteed"]) >= 0
            most = sub(queue["used"] if used_most else queue["guaranteed"], ideal)
            most = most if self.cmp(cluster, most, NONE) >= 0 else NONE
            taken = taken if self.cmp(cluster, taken, most) <= 0 else most
        taken = [min(max(taken[i], 0), offer[i]) for i in (0, 1)]
        queue["ideal"] = add(ideal, taken)
        return taken

    def obtain(self, queue: dict[str, Any]) -> None:
        """Note each leaf's share and what is taken from it."""
        for child in queue["children"]:
            self.obtain(child)
        if queue["children"]:
            return
        bound = [int(each * (1 + self.rates.ignored_over_ratio)) for each in queue["guaranteed"]]
        taken = [0, 0]
        is_over = not queue["view"].untouchable and self.cmp(self.total, queue["used"], bound) > 0
        if is_over and self.cmp(self.total, queue["preempt"], NONE) > 0:
            factor = self.rates.termination_ratio
            taken = [math.ceil(f32(each * factor)) for each in queue["preempt"]]
            if self.rates.memory_only:
                taken = [int(queue["preempt"][0] * factor + 0.5), 0]
        self.shares[queue["view"].queue] = (tuple(queue["ideal"]), tuple(taken))


def f32(value: float) -> float:
    """Round to single precision."""
    return c_float(value).value


def add(left: Vector, right: Vector) -> Vector:
    """Return the sum."""
    return [left[0] + right[0], left[1] + right[1]]


def sub(left: Vector, right: Vector) -> Vector:
    """Return the difference."""
    return [left[0] - right[0], left[1] - right[1]]
