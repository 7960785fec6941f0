"""Queue names: from the names that people and YARN write to the full paths of leaf queues.

Everywhere else a queue is its full path, like ``root.prod.etl``, and paths are compared by equality alone. A
name stands for a leaf queue if it is the leaf's full path, or the end of exactly one leaf's path, in whole
parts: ``etl`` and ``prod.etl`` both stand for ``root.prod.etl``. A name that begins with ``root`` is a full
path. A name that is the end of several paths is ambiguous, also where it is a whole path without ``root``:
``default`` could be ``root.default`` or ``root.dev.default``. In a role, a name may also stand for a parent
queue: for all leaves below it, also those that are created later. YARN writes the path of an application's
queue from Hadoop 3.4 on, and the leaf's last part before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

from yarnctl.deciding.reasons import queue_naming
from yarnctl.deciding.settings import Mode

ROOT = "root"
SHOWN_MAX = 20
"""The most paths that a reason lists; it has the count of all."""
NEAREST_MAX = 3
LIKE_MIN_RATIO = 0.6
NAME_MAX = 200
"""The characters that are kept of a name that stands for no queue."""


def last_part(path: str) -> str:
    """Return the last part of a path: the leaf's own name."""
    return path.rpartition(".")[2]


def spells(name: str, path: str) -> bool:
    """Return whether a name is a path, or its end in whole parts."""
    return name == path or (not (name == ROOT or name.startswith(f"{ROOT}.")) and path.endswith(f".{name}"))


def is_at_or_below(path: str, above: str) -> bool:
    """Return whether a queue is another one, or below it."""
    return path == above or path.startswith(f"{above}.")


def is_name_of(said: str, given: str) -> bool:
    """Return whether a command's own queue may be the one that a gate gives, by its path or its own name.

    The gate has resolved the name of the request; this only notices a command for another queue.
    """
    return spells(said, given) or spells(given, said)


class QueueTree:
    """A cluster's queues by their paths, in the order of the scheduler's answer. Compared by value."""

    def __init__(self, leaves: Iterable[str], parents: Iterable[str] = ()) -> None:
        self.leaves = tuple(leaves)
        self.parents = tuple(parents)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueueTree) and (self.leaves, self.parents) == (other.leaves, other.parents)

    __hash__ = None  # type: ignore[assignment]  # compared by value, and no key

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    @cached_property
    def _paths(self) -> frozenset[str]:
        return frozenset(self.leaves)

    @cached_property
    def _by_last_part(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.leaves:
            found.setdefault(last_part(path), []).append(path)
        return found

    def resolve(self, name: str) -> str | queue_naming.QueueProblem:
        """Return the full path of the leaf queue that a person's name stands for, or why there is none."""
        if name in self._paths:
            return name
        found = self._spelled(name)
        if len(found) == 1:
            return found[0]
        if found:
            return queue_naming.AmbiguousQueue(name[:NAME_MAX], tuple(found[:SHOWN_MAX]), len(found))
        above = [path for path in self.parents if spells(name, path)]
        if above:
            below = [path for path in self.leaves if any(path.startswith(f"{one}.") for one in above)]
            return queue_naming.ParentQueue(name[:NAME_MAX], tuple(below[:SHOWN_MAX]), len(below))
        return self.no_leaf((name,))

    def resolve_in_role(self, name: str) -> str | queue_naming.QueueProblem:
        """Return the full path of the leaf or parent queue that a name stands for, or why there is none."""
        if name in self._paths or name in self.parents:
            return name
        found = [*self._spelled(name), *(path for path in self.parents if spells(name, path))]
        if len(found) > 1:
            return queue_naming.AmbiguousQueue(name[:NAME_MAX], tuple(found[:SHOWN_MAX]), len(found))
        return found[0] if found else self.no_leaf((name,))

    def below(self, path: str) -> tuple[str, ...]:
        """Return the leaf queues of a path, sorted: YARN's own order changes with the queues' usage.

        A leaf, also one that was a parent before, is its own.
        """
        return tuple(sorted(leaf for leaf in self.leaves if is_at_or_below(leaf, path)))

    def no_leaf(self, names: Sequence[str]) -> queue_naming.NoLeafQueue:
        """Return the reason that no leaf queue has these names."""
        near = tuple(dict.fromkeys(path for name in names for path in self._nearest(name)))
        shown = tuple(name[:NAME_MAX] for name in names)
        return queue_naming.NoLeafQueue(shown, self.leaves[:SHOWN_MAX], len(self.leaves), near)

    def of_application(self, queue: str) -> str | None:
        """Return the path of the leaf queue that YARN names beside an application.

        None: several leaf queues have that name, and the version does not show which. A queue that is not in
        the tree (any more) keeps the name that YARN writes.
        """
        if queue in self._paths or "." in queue:
            return queue
        found = self._by_last_part.get(queue, ())
        if len(found) > 1:
            return None
        return found[0] if found else queue

    def submitted(self, path: str) -> str:
        """Return the name to submit an application with: YARN takes paths from 3.3 on, names always.

        A name that it would take for another queue, a parent included, is not used.
        """
        name = last_part(path)
        return path if sum(last_part(one) == name for one in (*self.leaves, *self.parents)) > 1 else name

    def _spelled(self, name: str) -> list[str]:
        """Return the leaf queues whose path is, or ends with, a name."""
        return [path for path in self._by_last_part.get(last_part(name), ()) if spells(name, path)]

    def _nearest(self, name: str) -> list[str]:
        """Return the paths that are most like a name: first those of leaves with the same last part."""
        last = last_part(name)
        same = self._by_last_part.get(last, [])
        ranked = sorted(
            (-ratio, path)
            for path in self.leaves
            if (ratio := SequenceMatcher(None, last_part(path), last).ratio()) >= LIKE_MIN_RATIO
        )
        return list(dict.fromkeys([*same, *(path for _, path in ranked)]))[:NEAREST_MAX]


def capped(preemptable_queues: Iterable[str], tree: QueueTree | None) -> tuple[str, ...]:
    """Return the queues to lower so that the preemptable ones keep to their absolute guarantees.

    These are the leaves, and each parent (not the root) with only preemptable leaves. A maximum is a part
    of the parent's, and a leaf's cannot be below its capacity: a leaf alone would keep its part of all that
    the parent may take. ``tree`` None: it is not known, so the leaves alone.
    """
    chosen = dict.fromkeys(preemptable_queues)
    if tree is None:
        return tuple(chosen)
    below = {path: [leaf for leaf in tree.leaves if leaf.startswith(f"{path}.")] for path in tree.parents}
    whole = [
        path
        for path, leaves in below.items()
        if path != ROOT and leaves and all(leaf in chosen for leaf in leaves)
    ]
    return (*sorted(whole), *chosen)


class NamedQueues(NamedTuple):
    """The queues that options and files name, as they are written there.

    ``optional``: default names, which may be missing. ``gate`` and ``pools``
    are those of admission, ``budgets`` those that the budgets file names, ``left_alone`` those of them that
    opt out.
    """

    preempting: tuple[str, ...] = ()
    preemptable: tuple[str, ...] = ()
    mode: Mode = "queues"
    gate: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()

    def all(self) -> tuple[str, ...]:
        """Return each name once."""
        named = (*self.preempting, *self.preemptable, *self.gate, *self.pools, *self.budgets)
        return tuple(dict.fromkeys(named))


class Resolved(NamedTuple):
    """What names stand for, by name: ``paths`` of leaf queues, and ``parents``, which stand for their leaves.

    An optional name that is missing is in neither. ``below``: the leaves of each parent now.
    """

    paths: Mapping[str, str]
    problems: tuple[queue_naming.QueueProblem, ...] = ()
    parents: Mapping[str, str] = {}
    below: Mapping[str, tuple[str, ...]] = {}

    def of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the paths of these names' leaf queues, each once."""
        found: dict[str, None] = {}
        for path in self.as_named(names):
            found.update(dict.fromkeys(self.below.get(path, (path,))))
        return tuple(found)

    def as_named(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the paths of these names, a parent's for a parent, each once."""
        known = {**self.paths, **self.parents}
        return tuple(dict.fromkeys(known[name] for name in names if name in known))

    def without_leaf(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the parents of these names that have no leaf now."""
        return tuple(path for path in self.as_named(names) if self.below.get(path) == ())

    def at(self, tree: QueueTree) -> Resolved:
        """Return the same names with the leaves that their parents have in a newer tree."""
        return self._replace(below={path: tree.below(path) for path in self.parents.values()})

    def preemptable(self, named: NamedQueues) -> tuple[str, ...]:
        """Return the paths of the preemptable queues that do not opt out."""
        out = self.of(named.left_alone)
        return tuple(path for path in self.of(named.preemptable) if path not in out)


def resolved(named: NamedQueues, tree: QueueTree) -> Resolved:
    """Return what all names stand for, and every reason why they cannot be used as they are."""
    paths: dict[str, str] = {}
    parents: dict[str, str] = {}
    missing: list[str] = []
    problems: list[queue_naming.QueueProblem] = []
    roles, leaves_only = {*named.preempting, *named.preemptable}, {*named.gate, *named.pools, *named.budgets}
    for name in named.all():
        is_leaf = name in leaves_only or name not in roles
        found = tree.resolve(name) if is_leaf else tree.resolve_in_role(name)
        if isinstance(found, str) and found not in tree:
            parents[name] = found
        elif isinstance(found, str):
            paths[name] = found
        elif name in named.optional:
            continue
        elif isinstance(found, queue_naming.NoLeafQueue):
            missing.append(name)
        else:
            problems.append(found)
    if missing:
        problems.insert(0, tree.no_leaf(missing))
    known = Resolved(paths, parents=parents).at(tree)
    return known._replace(problems=(*problems, *_used_twice(named, known)))


def _used_twice(named: NamedQueues, resolved: Resolved) -> Iterable[queue_naming.QueueProblem]:
    """Return the leaf queues that are named for two things that exclude each other."""
    if named.mode == "queues":
        yield from _in_both_roles(named, resolved)
    preemptable = resolved.of(named.preemptable)
    to_come = any(name in resolved.parents for name in named.preemptable)
    if named.left_alone and preemptable and not resolved.preemptable(named) and not to_come:
        yield queue_naming.EveryQueueLeftAlone(named.left_alone)
    for several in (named.budgets, named.pools):
        for path, count in Counter(
            resolved.paths[name] for name in several if name in resolved.paths
        ).items():
            if count > 1:
                yield queue_naming.QueueNamedTwice(path, _names_of(path, several, resolved))
    for name in named.budgets if named.preemptable or named.mode != "guarantees" else ():
        if name in resolved.paths and resolved.paths[name] not in preemptable:
            yield queue_naming.BudgetOfNoPreemptableQueue(name, resolved.paths[name], preemptable)


def _in_both_roles(named: NamedQueues, resolved: Resolved) -> Iterable[queue_naming.QueueProblem]:
    """Return each queue of one role that is one of the other, or below it: now, or when it has leaves."""
    both: dict[str, None] = {}
    for path in resolved.as_named(named.preempting):
        for other in resolved.as_named(named.preemptable):
            if is_at_or_below(path, other) or is_at_or_below(other, path):
                both[max(path, other, key=len)] = None
    known = {**resolved.paths, **resolved.parents}
    for path in both:
        names = dict.fromkeys((*named.preempting, *named.preemptable))
        above = tuple(name for name in names if name in known and is_at_or_below(path, known[name]))
        yield queue_naming.QueueInBothRoles(path, above)


def _names_of(path: str, names: Collection[str], resolved: Resolved) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if resolved.paths.get(name) == path))
