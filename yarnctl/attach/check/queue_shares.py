"""The capacities of a queue tree as their keys have them, and changes that keep the tree legal.

A queue's capacity is a part of its parent's: in percent (siblings add up to 100), by weight, or an absolute
vector (siblings fit into the parent). A maximum is a part of the parent's maximum, or an absolute vector.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from yarnctl.hadoop.wire.yarn import QueueInfo
from yarnctl.units import NOTHING, Resources, minus, plus

WHOLE = 100.0
SMALL = 5.0
"""The share of its parent that a preemptable queue gets, in percent, as in hadoop-conf/."""
UNITS = frozenset({"percentage", "weight", "absolute"})
DIGITS = 2  # Of a changed percentage or weight; the receiver of the rest makes up for rounding
ROUNDING = 0.001  # Percent: shares are read as 32-bit floats, and products of rounded ones


class QueueShare:
    """One queue: ``share`` of its parent's guarantee and ``most`` of its parent's maximum, in percent.

    ``vector``: the guarantee, for absolute capacities; ``share`` is that of its memory then.
    """

    def __init__(self, queue: QueueInfo, parent_share: QueueShare | None, total: Resources) -> None:
        self.parent = parent = parent_share
        self.path: str = queue.name if parent is None else f"{parent.path}.{queue.name}"
        self.unit = queue.unit
        self.weight = queue.weight
        above, limit = (WHOLE, WHOLE) if parent is None else (parent.absolute, parent.maximum)
        share = queue.guaranteed_percent / above * WHOLE if above > 0 else queue.capacity_percent
        most = queue.maximum_percent / limit * WHOLE if limit > 0 else queue.capacity_max_percent
        self.share, self.most = round(share, 4), min(WHOLE, round(most, 4))
        row = queue.share_of("")
        shown = row.guaranteed if row is not None and row.guaranteed is not None else queue.guaranteed
        is_shown = shown is not None and parent is not None
        self.vector = shown.resources if shown and is_shown else _part(total, queue.guaranteed_percent)
        self.below = [QueueShare(child, self, total) for child in queue.children]

    def resize(self, resources: Resources) -> None:
        """Set an absolute guarantee; one that gets smaller keeps the proportions of those below it."""
        before, self.vector = self.vector, resources
        self.share = (
            WHOLE * resources.memory_mib / max(1, self.parent.vector.memory_mib if self.parent else 0)
        )
        for one in self.below:
            pairs = zip(one.vector, resources, before, strict=True)
            one.resize(Resources(*(part * min(new, old) // max(1, old) for part, new, old in pairs)))

    @property
    def path_down(self) -> list[QueueShare]:
        """The queues from the one below root down to this one."""
        return [] if self.parent is None else [*self.parent.path_down, self]

    @property
    def absolute(self) -> float:
        """The guarantee in percent of the cluster."""
        return self.share if self.parent is None else self.parent.absolute * self.share / WHOLE

    @property
    def maximum(self) -> float:
        """The maximum in percent of the cluster."""
        return self.most if self.parent is None else self.parent.maximum * self.most / WHOLE

    @property
    def siblings(self) -> list[QueueShare]:
        """The other queues below the same parent."""
        return [] if self.parent is None else [one for one in self.parent.below if one is not self]

    def has(self, paths: Collection[str]) -> bool:
        """Return whether it is, or is above, one of these queues."""
        return any(path == self.path or path.startswith(f"{self.path}.") for path in paths)

    def everything(self) -> Iterator[QueueShare]:
        """Iterate over this queue and all below it."""
        yield self
        for one in self.below:
            yield from one.everything()


class ShareTree:
    """A tree of queues, and the keys that have changed since it was read.

    ``total``: memory and vcores of the nodes, for absolute capacities. ``is_known`` False: siblings have
    different units, or units that differ by resource, or the total is not known where it is needed; nothing
    is changed then.
    """

    def __init__(self, root_queue: QueueInfo, total: Resources = NOTHING) -> None:
        self._root = QueueShare(root_queue, None, total)
        self._by_path = {one.path: one for one in self._root.everything()}
        self._total = total
        levels = [{child.unit for child in one.below} for one in self._by_path.values()]
        self.is_known = all(
            len(units) <= 1 and units <= UNITS and (total != NOTHING or "absolute" not in units)
            for units in levels
        )
        self._before = self._keys()

    def __getitem__(self, path: str) -> QueueShare:
        return self._by_path[path]

    def absolute(self, paths: Iterable[str]) -> float:
        """Return the sum of the guarantees of these queues in percent of the cluster."""
        return sum(self._by_path[path].absolute for path in paths)

    def changes(self) -> dict[str, str]:
        """Return the keys with new values, without their common prefix."""
        return {key: text for key, text in self._keys().items() if self._before[key] != text}

    def _keys(self) -> dict[str, str]:
        found = {}
        for one in self._by_path.values():
            if one.parent is None:
                continue
            capacity, maximum = f"{one.share:.10g}", f"{one.most:.10g}"
            if one.unit == "weight":
                capacity = f"{one.weight:.10g}w"
            elif one.unit == "absolute":
                capacity, maximum = _text(one.vector), _text(_part(self._total, one.maximum))
            found[f"{one.path}.capacity"], found[f"{one.path}.maximum-capacity"] = capacity, maximum
        return found

    def widen(self, path: str) -> None:
        """Let a queue grow to the whole cluster: raise each maximum on the way up that binds it."""
        for one in self._by_path[path].path_down:
            one.most = WHOLE

    def raise_to(self, path: str, percent: float) -> bool:
        """Give a queue this share of its parent, taken from its siblings; return whether that is a change."""
        one = self._by_path[path]
        if one.share >= percent or not (one.siblings or one.unit == "absolute"):
            return False
        others = sum(other.share for other in one.siblings)
        part = (WHOLE - percent) / others if others > 0 else 0.0
        if one.unit == "weight":
            self._weigh(one, percent)
        elif one.unit == "absolute" and one.parent is not None:
            for other in one.siblings if part < 1 else ():
                other.resize(_part(other.vector, part * WHOLE))
            free = one.parent.vector
            for other in one.siblings:
                free = minus(free, other.vector)
            wanted = _part(one.parent.vector, percent)
            one.resize(Resources(*(max(0, min(pair)) for pair in zip(free, wanted, strict=True))))
        else:
            for other in one.siblings:
                other.share = round(other.share * part, DIGITS)
            one.share = round(WHOLE - sum(other.share for other in one.siblings), DIGITS)
        self._keep_legal(one)
        return True

    def lower(self, path: str, production: Collection[str], preemptable: Collection[str]) -> bool:
        """Lower a preemptable queue, or the queue above it that has a sibling to take the rest.

        The rest goes to a sibling with a production queue, else to the largest one; never to preemptable
        queues, unless a production queue is beside them. Returns whether that is a change.
        """
        for strict in (True, False):
            for one in reversed(self._by_path[path].path_down):
                if one.share <= SMALL * 1.2 or (one.has(production) and one.below):
                    continue
                takers = [other for other in one.siblings if other.has(production)] or [
                    other for other in one.siblings if strict and not other.has(preemptable)
                ]
                takers = [other for other in takers if not (strict and other.has(preemptable))]
                if takers:
                    self._move(one, max(takers, key=lambda other: (other.share, other.path)))
                    return True
        return False

    def _move(self, share: QueueShare, taker_share: QueueShare) -> None:
        if share.unit == "weight":
            self._weigh(share, SMALL)
        elif share.unit == "absolute" and share.parent is not None:
            before, small = share.vector, _part(share.parent.vector, SMALL)
            share.resize(Resources(*(min(pair) for pair in zip(before, small, strict=True))))
            taker_share.resize(plus(taker_share.vector, minus(before, share.vector)))
        else:
            taker_share.share = round(taker_share.share + share.share - SMALL, 4)
            share.share = SMALL
        for one in (*share.siblings, share):
            self._keep_legal(one)

    def _weigh(self, share: QueueShare, percent: float) -> None:
        others = sum(one.weight for one in share.siblings)
        part = percent / (WHOLE - percent)
        share.weight = max(0.01, round(part * others, DIGITS)) if others > 0 else 1.0
        for one in (*share.siblings, share):
            one.share = one.weight / (others + share.weight) * WHOLE

    def _keep_legal(self, share: QueueShare) -> None:
        """Raise a maximum that is below the new capacity."""
        if share.unit == "absolute" and share.absolute > share.maximum - ROUNDING:
            self.widen(share.path)
        elif share.share > share.most:
            share.most = WHOLE


def _part(resources: Resources, percent: float) -> Resources:
    return Resources(*(int(part * percent / WHOLE) for part in resources))


def _text(resources: Resources) -> str:
    return f"[memory={resources.memory_mib},vcores={resources.vcores}]"


def share_plan(
    tree: ShareTree, production: Collection[str], preemptable: Collection[str]
) -> Mapping[str, str] | None:
    """Return the keys that give production the larger guarantee, and each preemptable queue a small one.

    Paths are those of leaf queues. None: no such change is known.
    """
    if not tree.is_known:
        return None
    for path in preemptable:
        for one in tree[path].path_down:
            if one.share <= 0:
                tree.raise_to(one.path, SMALL)
    for _ in range(3 * len(preemptable)):
        large = [path for path in preemptable if tree[path].absolute > WHOLE / 2]
        if not large or not tree.lower(large[0], production, preemptable):
            break
    for path in preemptable:
        if tree[path].absolute >= tree[path].maximum - ROUNDING:
            tree.widen(path)
    _prefer(tree, production, preemptable)
    return tree.changes() if is_sound(tree, production, preemptable) else None


def _prefer(tree: ShareTree, production: Collection[str], preemptable: Collection[str]) -> None:
    """Lower preemptable queues, then raise the first production queue, until production has more."""
    first = next(iter(production))
    for _ in range(3 * len(preemptable)):
        if has_more(tree, production, preemptable):
            return
        largest = sorted(preemptable, key=lambda path: (-tree[path].absolute, path))
        if not any(tree.lower(path, production, preemptable) for path in largest):
            break
    for one in tree[first].path_down:
        if one.share <= 0:
            tree.raise_to(one.path, 50.0)
    for percent in (50.0, 95.0):
        for one in reversed(tree[first].path_down):
            if has_more(tree, production, preemptable):
                return
            tree.raise_to(one.path, percent)


def has_more(tree: ShareTree, production: Collection[str], preemptable: Collection[str]) -> bool:
    """Return whether production has the larger guarantee."""
    return tree.absolute(production) > tree.absolute(preemptable) + ROUNDING


def is_sound(tree: ShareTree, production: Collection[str], preemptable: Collection[str]) -> bool:
    """Return whether production has more, and each preemptable queue a guarantee below its maximum."""
    return has_more(tree, production, preemptable) and all(
        0 < tree[path].absolute < tree[path].maximum and tree[path].absolute <= WHOLE / 2
        for path in preemptable
    )
