"""The ideal shares of YARN's own preemption: what each leaf queue should have, and what it has to give.

A model of the ``ProportionalCapacityPreemptionPolicy`` of Hadoop 3.4.2 with its FifoCandidatesSelector, read
from its classes AbstractPreemptableResourceCalculator, PreemptableResourceCalculator and
TempQueuePerPartition. Level by level, from root down:

* A queue starts with what it uses, but with no more than its guarantee and what cannot be taken from it.
* What is left of the parent's share goes to the queues that want more, those furthest below their guarantee
  first, in proportion to their guarantees. Queues without a guarantee come last and share evenly.
* A leaf gets at most the larger of its guarantee and its use. It gives what it uses beyond its share.

YARN compares resources by their dominant share of the parent's share, in floating point; every rounding
is YARN's. Equal queues are served in the order of their paths (YARN: in no fixed order). Not modelled: lazy
preemption, the balancing of satisfied queues, and preemption for reserved containers or by queue priority.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from math import ceil, inf
from typing import NamedTuple

import msgspec

from yarnctl.units import NOTHING, Resources, at_least, at_most, minus, plus


class ShareQueue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One queue of the tree: a parent with ``children``, or a leaf.

    Vectors are absolute; ``used`` includes reserved containers. ``capacity_ratio``: the guarantee as a part
    of the cluster, before it is rounded (``absoluteCapacity``). ``pending``: what a leaf's applications
    request within their user limits; ``unreserved``: the same without what is reserved for them. A parent's
    are the sums of its children's. ``priority``: 0 unless its parent orders by priority. ``untouchable``:
    nothing is taken from this leaf (``disable_preemption``).
    """

    queue: str
    guaranteed: Resources
    maximum: Resources
    used: Resources
    capacity_ratio: float
    pending: Resources = NOTHING
    unreserved: Resources = NOTHING
    priority: int = 0
    untouchable: bool = False
    children: tuple[ShareQueue, ...] = ()


class PreemptionRates(NamedTuple):
    """The policy's settings, with YARN's defaults.

    ``per_round_ratio``: the most of the cluster that one round takes (``total_preemption_per_round``).
    ``ignored_over_ratio``: a leaf gives nothing while it is over its guarantee by at most this part of it
    (``max_ignored_over_capacity``). ``termination_ratio``: the part of what a leaf has to give that one
    round takes (``natural_termination_factor``). ``memory_only``: the scheduler uses the
    DefaultResourceCalculator, which counts memory alone.
    """

    per_round_ratio: float = 0.1
    ignored_over_ratio: float = 0.1
    termination_ratio: float = 0.2
    memory_only: bool = False


WHOLE_RATES = PreemptionRates(per_round_ratio=1, termination_ratio=1)
"""All that a leaf has to give, in one round."""


class LeafShare(NamedTuple):
    """``ideal``: what the leaf should have. ``gives``: what this round takes from it, NOTHING if nothing."""

    ideal: Resources
    gives: Resources


def ideal_shares(root_queue: ShareQueue, rates: PreemptionRates) -> Mapping[str, LeafShare]:
    """Return each leaf's share, by path. The total of the cluster is root's guarantee."""
    shares = all_shares(root_queue, rates)
    return {path: shares[path] for path in _leaf_paths(root_queue)}


def all_shares(root_queue: ShareQueue, rates: PreemptionRates) -> Mapping[str, LeafShare]:
    """Return the share of every queue, by path; a parent gives nothing itself."""
    total = _counted(root_queue.guaranteed, rates)
    top = _SharedQueue(root_queue, total, rates)
    top.ideal = total
    allowed = _rounded_down(total, _single(rates.per_round_ratio))
    _share_below(top, allowed, rates)
    return {queue.view.queue: LeafShare(queue.ideal, _given(queue, total, rates)) for queue in _each(top)}


class _SharedQueue:
    """A queue while its share is computed. ``fixed``: what it holds beyond its guarantee for good."""

    def __init__(self, queue: ShareQueue, total: Resources, rates: PreemptionRates) -> None:
        self.view, self.rates = queue, rates
        self.guaranteed = _counted(queue.guaranteed, rates)
        self.maximum = _counted(queue.maximum, rates)
        self.used = _counted(queue.used, rates)
        self.pending = _counted(queue.pending, rates)
        self.unreserved = _counted(queue.unreserved, rates)
        self.children = [_SharedQueue(child, total, rates) for child in queue.children]
        for child in self.children:
            self.pending = plus(self.pending, child.pending)
            self.unreserved = plus(self.unreserved, child.unreserved)
        self.ideal = self.preempted = NOTHING
        self.weight = [0.0] * len(total)
        self.fixed, self.movable = self._extras(total)

    def _extras(self, total: Resources) -> tuple[Resources, Resources]:
        """Return what is beyond the guarantee, split into what cannot and what can be taken."""
        extra = minus(self.used, self.guaranteed)
        if _compare(total, extra, NOTHING) < 0:
            extra = NOTHING
        if not self.children:
            return (extra, NOTHING) if self.view.untouchable else (NOTHING, extra)
        movable = NOTHING
        for child in self.children:
            movable = plus(movable, child.movable)
        fixed = NOTHING if _compare(total, movable, extra) >= 0 else minus(extra, movable)
        return fixed, _smaller(total, movable, extra)

    def accept(self, size: Resources, total: Resources) -> Resources:
        """Add what the queue takes of an offer to its share, and return it."""
        below_maximum = at_least(minus(self.maximum, self.ideal), NOTHING)
        wanted = minus(plus(self.used, self.unreserved), self.ideal)
        accepted = at_most(below_maximum, _smaller(total, size, wanted))
        if not self.children:
            due = minus(_larger(total, self.used, self.guaranteed), self.ideal)
            accepted = _smaller(total, accepted, _larger(total, due, NOTHING))
        accepted = at_most(at_least(accepted, NOTHING), size)
        self.ideal = plus(self.ideal, accepted)
        return accepted

    def need(self, total: Resources) -> tuple[bool, int, float]:
        """Return the place among the queues that want more: the smallest is served first."""
        ratio = float((1 << 31) - 1)
        if _compare(total, self.guaranteed, NOTHING) > 0:
            ratio = _ratio(total, self.ideal, self.guaranteed, self.rates)
        return ratio >= 1, -self.view.priority, ratio


def _share_below(queue: _SharedQueue, allowed_resources: Resources, rates: PreemptionRates) -> None:
    """Share a parent's ideal among its children, and theirs below them."""
    if not queue.children:
        return
    total = queue.ideal
    with_guarantee = [each for each in queue.children if _compare(total, each.guaranteed, NOTHING) > 0]
    without = [each for each in queue.children if each not in with_guarantee]
    left = _distribute(with_guarantee, total, total, rates)
    if without and _compare(total, left, NOTHING) > 0:
        _distribute(without, total, left, rates, evenly=True)
    excess = NOTHING
    for child in queue.children:
        if _compare(total, child.used, child.ideal) > 0:
            excess = plus(excess, minus(child.used, child.ideal))
    scale = (
        _ratio(total, allowed_resources, excess, rates)
        if _compare(total, excess, allowed_resources) > 0
        else 1.0
    )
    for child in queue.children:
        # Reserved containers do not count in the share, so it can be below what the guarantee covers.
        covered = _smaller(total, plus(child.used, child.pending), child.guaranteed)
        kept = _larger(total, covered, child.ideal)
        if _compare(total, child.used, kept) > 0:
            child.preempted = _rounded_down(minus(child.used, kept), scale)
        _share_below(child, allowed_resources, rates)


def _distribute(
    queues: Sequence[_SharedQueue],
    total: Resources,
    unassigned_resources: Resources,
    rates: PreemptionRates,
    evenly: bool = False,
) -> Resources:
    """Give each queue its first share, then what is left to those that want more.

    Returns what YARN offers to the queues without a guarantee: what was left after the first grant, for YARN
    loses sight of the later ones.
    """
    unassigned = unassigned_resources
    needy: list[_SharedQueue] = []
    for queue in queues:
        queue.ideal = queue.used
        if _compare(total, queue.used, queue.guaranteed) > 0:
            queue.ideal = plus(at_most(queue.guaranteed, queue.used), queue.fixed)
        unassigned = minus(unassigned, queue.ideal)
        if _compare(total, queue.ideal, plus(queue.used, queue.pending)) < 0:
            needy.append(queue)
    reported: Resources | None = None
    while needy and _compare(total, unassigned, NOTHING) > 0:
        _set_weights(needy, evenly)
        needy.sort(key=lambda queue: (queue.need(total), queue.view.queue))
        first = needy[0].need(total)
        served = [queue for queue in needy if queue.need(total) == first]
        needy = needy[len(served) :]
        offer = unassigned
        for queue in served:
            if not any(part > 0 for part in unassigned):
                break
            accepted = queue.accept(at_most(_weighed(offer, queue.weight, rates), unassigned), total)
            if _compare(total, accepted, NOTHING) > 0:
                needy.append(queue)
            unassigned = minus(unassigned, accepted)
            if reported is None:
                reported = unassigned
            unassigned = at_least(unassigned, NOTHING)
    return unassigned if reported is None else reported


def _set_weights(queues: Sequence[_SharedQueue], evenly: bool) -> None:
    """Set what part of the rest each queue is offered, per resource: by their guarantees.

    If a guarantee was rounded down to 0 of a resource, by the shares of the cluster instead.
    """
    capacity = 0.0
    for queue in queues:
        capacity = _single(capacity + _single(queue.view.capacity_ratio))
    for place in range(len(queues[0].weight)):
        guaranteed = [queue.guaranteed[place] if place < len(queue.guaranteed) else 0 for queue in queues]
        whole = sum(guaranteed)
        pairs = list(zip(queues, guaranteed, strict=True))
        rounded = whole and any(not part and queue.view.capacity_ratio for queue, part in pairs)
        for queue, part in pairs:
            if evenly or (not rounded and not (capacity and whole)):
                queue.weight[place] = _single(1 / len(queues))
            elif rounded:
                queue.weight[place] = _single(_single(queue.view.capacity_ratio) / capacity)
            else:
                queue.weight[place] = _single(_single(part) / _single(whole))


def _given(leaf_queue: _SharedQueue, total: Resources, rates: PreemptionRates) -> Resources:
    """Return what this round takes from a leaf_queue."""
    ignored = _rounded_down(leaf_queue.guaranteed, 1 + rates.ignored_over_ratio)
    if leaf_queue.children or leaf_queue.view.untouchable or _compare(total, leaf_queue.used, ignored) <= 0:
        return NOTHING
    taken = leaf_queue.preempted
    if _compare(total, taken, NOTHING) <= 0:
        return NOTHING
    if rates.memory_only:
        return Resources(int(taken[0] * rates.termination_ratio + 0.5), 0)
    return Resources(*(ceil(_single(each * rates.termination_ratio)) for each in taken))


def _each(queue: _SharedQueue) -> list[_SharedQueue]:
    return [queue, *(below for child in queue.children for below in _each(child))]


def _leaf_paths(queue: ShareQueue) -> list[str]:
    if not queue.children:
        return [queue.queue]
    return [path for child in queue.children for path in _leaf_paths(child)]


# --- YARN's arithmetic: class Resources and the two calculators --------------------------------


def _counted(size: Resources, rates: PreemptionRates) -> Resources:
    """Return what the calculator counts."""
    return Resources(size[0], 0) if rates.memory_only else size


def _compare(total: Resources, left: Resources, right: Resources) -> int:
    """Compare dominant shares of ``total``, then the other shares: -1, 0 or 1.

    In a total of nothing one vector is larger only if it is larger in one component and nowhere smaller.
    """
    if total == NOTHING:
        pairs = list(zip_longest(left, right, fillvalue=0))
        return int(any(one > other for one, other in pairs)) - int(any(one < other for one, other in pairs))
    one = sorted(_shares(total, left), reverse=True)
    other = sorted(_shares(total, right), reverse=True)
    return int(one > other) - int(one < other)


def _shares(total: Resources, size: Resources) -> list[float]:
    sizes = (*size, *[0] * (len(total) - len(size)))
    return [each / whole if whole else inf for each, whole in zip(sizes, total, strict=False)]


def _ratio(total: Resources, left: Resources, right: Resources, rates: PreemptionRates) -> float:
    """Return the quotient of two dominant shares, in single precision; 0 where YARN has no number."""
    if rates.memory_only:
        return _single(_single(left[0]) / _single(right[0]))
    one, other = (max(0.0, *(x if x != inf else 0.0 for x in _shares(total, size))) for size in (left, right))
    return _single(one / other) if other else 0.0


def _single(value: float) -> float:
    """Round to single precision, as Java's type float."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def _smaller(total: Resources, left: Resources, right: Resources) -> Resources:
    return left if _compare(total, left, right) <= 0 else right


def _larger(total: Resources, left: Resources, right: Resources) -> Resources:
    return left if _compare(total, left, right) >= 0 else right


def _rounded_down(size: Resources, ratio: float) -> Resources:
    return Resources(*(int(part * ratio) for part in size))


def _weighed(size: Resources, weight: Sequence[float], rates: PreemptionRates) -> Resources:
    if rates.memory_only:
        return Resources(int(size[0] * weight[0] + 0.5), 0)
    return Resources(*(ceil(part * each) for part, each in zip(size, weight, strict=False)))
