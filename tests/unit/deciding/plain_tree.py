"""A plain capacity scheduler over a tree of queues: everything is computed anew for each container.

Written from docs/facts/hadoop.md alone; shares no code with the forecast.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

from yarnctl.deciding.forecast import FreeCapacity
from yarnctl.deciding.model import Snapshot
from yarnctl.deciding.tree_model import QueueTreeModel
from yarnctl.units import Resources


@dataclass
class Ask:
    """Pending containers of one application and size."""

    application: str
    user: str
    size: tuple[int, int]
    count: int


@dataclass
class Plain:
    """``used`` by path, ``lines`` by leaf in serving order, ``free`` by node; vectors are pairs."""

    guaranteed: dict[str, Any]
    maximum: dict[str, Any]
    used: dict[str, Any]
    order: dict[str, str]
    priorities: dict[str, int]
    free: dict[str, Any]
    largest: Resources
    limits: dict[str, Any]
    held: dict[tuple[str, str], Any] = field(default_factory=dict)
    reserved: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, list[Ask]] = field(default_factory=dict)
    ghosts: dict[str, Any] = field(default_factory=dict)
    fair: tuple[str, ...] = ()
    memory: dict[str, int] = field(default_factory=dict)
    blocked: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(snapshot: Snapshot) -> Plain:
        rows: list[Any] = [*snapshot.parents, *snapshot.queues]
        plain = Plain(
            guaranteed={row.queue: row.guaranteed for row in rows},
            maximum={row.queue: row.maximum for row in rows},
            used={row.queue: tuple(row.used) for row in rows},
            order={row.queue: row.order for row in snapshot.parents},
            priorities={path: n for row in snapshot.parents for path, n in row.priorities.items()},
            free={node: tuple(size) for node, size in snapshot.free_by_node.items()},
            largest=snapshot.largest_node,
            limits={queue: dict(users) for queue, users in snapshot.user_limits.items()},
            reserved={name: tuple(size) for name, size in snapshot.reserved.items()},
            fair=tuple(path for row in snapshot.parents for path in row.fair),
            memory={view.application: view.used[0] for view in snapshot.applications},
        )
        for view in sorted(snapshot.applications, key=lambda view: (view.rank, view.application)):
            before = plain.held.get((view.queue, view.user), (0, 0))
            own = plain.reserved.get(view.application, (0, 0))
            plain.held[view.queue, view.user] = add(add(before, view.used), own)
            plain.lines.setdefault(view.queue, []).extend(
                Ask(view.application, view.user, (each.size[0], each.size[1]), each.count)
                for each in sorted(view.requests)
                if each.count
            )
        return plain

    def above(self, leaf: str) -> list[str]:
        parts = leaf.split(".")
        return [".".join(parts[:n]) for n in range(len(parts), 0, -1)]

    def count(self, leaf: str, size: Any) -> None:
        for path in self.above(leaf):
            self.used[path] = add(self.used[path], size)

    def ratio(self, path: str) -> Fraction:
        """Dominant share used over dominant share guaranteed, as ``usedCapacity`` shows it."""
        total = self.maximum["root"]
        used, guaranteed = (
            max(Fraction(part, whole or 1) for part, whole in zip(sizes[path], total, strict=True))
            for sizes in (self.used, self.guaranteed)
        )
        return used / guaranteed

    def children(self, parent: str) -> list[str]:
        def compare(one: str, other: str) -> int:
            mine, theirs = self.ratio(one), self.ratio(other)
            if self.order[parent] == "priority-utilization" and (mine < 1) == (theirs < 1):
                difference = self.priorities.get(other, 0) - self.priorities.get(one, 0)
                if difference:
                    return difference
            first = (mine, -self.guaranteed[one][0], one)
            return -1 if first < (theirs, -self.guaranteed[other][0], other) else 1

        found = [path for path in self.used if path.rpartition(".")[0] == parent]
        return sorted(found, key=cmp_to_key(compare))

    def exceeds(self, leaf: str, size: Any, own: Any = (0, 0)) -> bool:
        return not within(add(size, own, -1), self.headroom(leaf))

    def headroom(self, leaf: str) -> tuple[int, int]:
        """What is left below every maximum; what is blocked below a queue is missing in all above it."""
        blocked, rows = (0, 0), []
        for path in self.above(leaf):
            blocked = add(blocked, self.blocked.get(path, (0, 0)))
            rows.append(add(add(self.maximum[path], self.used[path], -1), blocked, -1))
        return min(row[0] for row in rows), min(row[1] for row in rows)

    def step(self, parent: str = "root") -> tuple[str, str] | None:
        """Give or reserve one container; return ("granted" or "reserved", application), None: nothing."""
        self.blocked[parent] = (0, 0)
        for path in self.children(parent):
            found = self.step(path) if path in self.order else self.leaf(path)
            if found is not None:
                self.blocked = {}
                return found
            if path in self.order:
                self.blocked[parent] = add(self.blocked[parent], self.blocked[path])
        if parent == "root":
            self.blocked = {}
        return None

    def leaf(self, path: str) -> tuple[str, str] | None:
        passed: set[str] = set()
        kept = (0, 0)
        line = self.lines.get(path, [])
        for ask in sorted(line, key=lambda ask: self.memory[ask.application]) if path in self.fair else line:
            limit = self.limits.get(path, {}).get(ask.user)
            own = self.reserved.get(ask.application, (0, 0))
            over = limit is not None and not within(add(self.held[path, ask.user], own, -1), limit)
            if not ask.count or ask.application in passed or over or not within(ask.size, self.largest):
                continue
            if self.exceeds(path, ask.size, own):
                kept = self.headroom(path)
                break
            node = next((node for node in sorted(self.free) if within(ask.size, self.free[node])), None)
            if node is not None:
                filled = tuple(min(pair) for pair in zip(own, ask.size, strict=True))
                self.free[node] = add(self.free[node], ask.size, -1)
                self.reserved[ask.application] = add(own, filled, -1)
                self.count(path, add(ask.size, filled, -1))
                self.held[path, ask.user] = add(self.held[path, ask.user], add(ask.size, filled, -1))
                self.memory[ask.application] += ask.size[0]
                ask.count -= 1
                return "granted", ask.application
            partly = [node for node in sorted(self.free) if min(self.free[node]) > 0]
            if partly and own[0] // ask.size[0] < ask.count and not self.exceeds(path, ask.size):
                del self.free[partly[0]]
                self.reserved[ask.application] = add(own, ask.size)
                self.count(path, ask.size)
                self.held[path, ask.user] = add(self.held[path, ask.user], ask.size)
                return "reserved", ask.application
            passed.add(ask.application)
        ghost = self.ghosts.get(path)
        if ghost and not self.exceeds(path, ghost):
            return "granted", f"again {path}"
        parent = path.rpartition(".")[0]
        self.blocked[parent] = add(self.blocked[parent], (max(0, kept[0]), max(0, kept[1])))
        return None

    def take(self, tree: QueueTreeModel, free: FreeCapacity) -> None:
        """Take the state of a tree in which the free capacity is placed."""
        self.free = {node: tuple(size) for node, size in free.free.items()}
        self.reserved = {name: tuple(size[:2]) for name, size in tree.reserved.items()}
        self.memory.update(tree._used_mib)
        for path, queue in tree.leaves.items():
            self.count(path, add(queue.used, self.used[path], -1))
            model = queue.model
            assert model is not None
            self.lines[path] = [
                Ask(each.application.application, each.application.user, tuple(each.size), each.containers)  # type: ignore[arg-type]
                for each in model.waiting()
            ]
            self.held.update(((path, user), tuple(size)) for user, size in model.user_used.items())


def add(one: Any, other: Any, sign: int = 1) -> tuple[int, int]:
    return one[0] + sign * other[0], one[1] + sign * other[1]


def within(one: Any, other: Any) -> bool:
    return one[0] <= other[0] and one[1] <= other[1]
