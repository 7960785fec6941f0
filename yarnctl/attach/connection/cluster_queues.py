"""Resolve the names of queues on this cluster once, and log when their leaf queues change.

A name keeps the path of the first look at the scheduler's queues, whatever is added to the tree. The leaves
of a parent are those of the newest look. A later queue with the same name, a leaf that vanishes, and a leaf
that is stopped, is logged once. While a leaf is missing, no order is sent in it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from yarnctl.deciding.queue_names import (
    SHOWN_MAX,
    NamedQueues,
    QueueTree,
    Resolved,
    capped,
    resolved,
    spells,
)
from yarnctl.deciding.reasons.eligibility import LeftAlone
from yarnctl.deciding.reasons.modes import ModeReason
from yarnctl.deciding.reasons.queue_naming import QueueProblem, QueuesUnread, QueuesVanished
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.tags import leave_alone_tag, tags_in
from yarnctl.journal.rendering import joined

RUNNING = "RUNNING"  # The state of a queue that accepts applications

_LOG = logging.getLogger("yarnctl.attach")
NAME_MAX = 80  # The characters of a tag or user that a reason repeats: the application's owner wrote them


class QueueNames:
    """The queues that are named, on one cluster.

    ``tree`` is the newest (None: none has been read). ``found`` has the paths (None: not resolved), and
    ``problems`` why not. ``adopted`` False: they were resolved after the start, and the host does not use the
    paths yet; until it does, no order is sent. ``regrouped``: the leaves below a named parent have
    changed, and the host does not use the new ones yet; orders in the others are sent.
    """

    def __init__(self, named: NamedQueues) -> None:
        self.named = named
        self.tree: QueueTree | None = None
        self.found: Resolved | None = None
        self.problems: tuple[QueueProblem, ...] = ()
        self.adopted = True
        self.regrouped = False
        self.preempting: frozenset[str] = frozenset()
        self.preemptable: frozenset[str] = frozenset()
        self.left_alone: frozenset[str] = frozenset()
        self._vanished: tuple[str, ...] = ()
        self._doubled: dict[str, tuple[str, ...]] = {}
        self._states: dict[str, str] = {}

    def read(self, tree: QueueTree) -> None:
        """Resolve the names in a tree that was read, or log what has changed for their queues."""
        if tree == self.tree:
            return
        self.tree = tree
        if self.found is None:
            self._resolve(tree)
        else:
            self._compare(tree, self.found)
            self._regroup(tree, self.found)

    def rename(self, named: NamedQueues) -> tuple[QueueProblem, ...]:
        """Use other names from now on; return why not, and then nothing is changed."""
        if self.tree is not None:
            found = resolved(named, self.tree)
            if found.problems:
                return found.problems
            self._use(named, found)
        self.named = named
        return ()

    def read_states(self, states: Mapping[str, str]) -> None:
        """Log each change of the state of a named leaf queue; ``states`` by path, "": not shown."""
        paths = () if self.found is None else dict.fromkeys(self.found.paths.values())
        for path in paths:
            state = states.get(path) or RUNNING
            if state == self._states.get(path, RUNNING):
                continue
            self._states[path] = state
            if state == RUNNING:
                _LOG.info("leaf queue %s is %s again", path, state)
            else:
                message = "leaf queue %s is %s: it accepts no new applications; those in it are served"
                _LOG.warning(message, path, state)

    def _resolve(self, tree: QueueTree) -> None:
        found = resolved(self.named, tree)
        self.problems = found.problems
        if found.problems:
            return
        self._use(self.named, found)
        for path in found.without_leaf(self.named.all()):
            _LOG.info("queue %s has no leaf yet; each leaf is used as soon as it exists", path)
        roles = found.as_named(self.named.preempting), found.as_named(self.named.preemptable)
        if self.named.mode == "queues" and not all(roles):
            missing = [name for name in self.named.all() if not found.as_named((name,))]
            _LOG.warning("preemption disabled: %s", joined((tree.no_leaf(missing),)))

    def _use(self, named: NamedQueues, resolved: Resolved) -> None:
        self.found = resolved
        self.preempting = frozenset(resolved.of(named.preempting))
        self.preemptable = frozenset(resolved.preemptable(named))
        self.left_alone = frozenset(resolved.of(named.left_alone))

    def _regroup(self, tree: QueueTree, resolved: Resolved) -> None:
        """Use the leaves that the named parents have now, and log which are new or were removed."""
        now = resolved.at(tree)
        if now.below == resolved.below:
            return
        for path, leaves in now.below.items():
            old = resolved.below[path]
            for what, changed in (("new", {*leaves} - {*old}), ("removed", {*old} - {*leaves})):
                if changed:
                    shown = ", ".join(sorted(changed)[:SHOWN_MAX])
                    _LOG.info("%s leaf queues of %s (%d): %s", what, path, len(changed), shown)
            if old and not leaves:
                _LOG.warning("queue %s has no leaf any more; no order is sent in it until it has one", path)
        self._use(self.named, now)
        self.regrouped = True

    def _compare(self, tree: QueueTree, resolved: Resolved) -> None:
        gone = tuple(dict.fromkeys(path for path in resolved.paths.values() if path not in tree))
        for path in gone:
            if path not in self._vanished:
                message = "leaf queue %s was removed; no order is sent in it until it exists again: %s"
                _LOG.warning(message, path, joined((tree.no_leaf((path,)),)))
        for path in self._vanished:
            if path not in gone:
                _LOG.info("leaf queue %s exists again", path)
        self._vanished = gone
        before, self._doubled = self._doubled, {}
        for name, path in (*resolved.paths.items(), *resolved.parents.items()):
            queues = tree.leaves if name in resolved.paths else (*tree.leaves, *tree.parents)
            others = tuple(one for one in queues if one != path and spells(name, one))
            if name == path or not others:
                continue
            self._doubled[name] = others
            if new := [one for one in others if one not in before.get(name, ())]:
                message = "a new queue has the name %s: %s; the name still means %s: use its full path"
                _LOG.warning(message, name, ", ".join(new), path)

    def is_preempting(self, path: str) -> bool:
        """Return whether a queue's applications may preempt; with deadlines, every queue's may."""
        return (
            self.named.mode == "deadlines" or path in self.preempting or self._is_any(self.named.preempting)
        )

    def is_preemptable(self, path: str) -> bool:
        """Return whether a queue's applications are preemptable."""
        return path in self.preemptable or (
            self._is_any(self.named.preemptable) and path not in self.left_alone
        )

    def _is_any(self, names: tuple[str, ...]) -> bool:
        """Return whether every queue has a role: with guarantees, if none is named."""
        return self.named.mode == "guarantees" and self.found is not None and not names

    def may_be_lowered(self, path: str) -> bool:
        """Return whether a queue is preemptable, or a parent with only preemptable leaves."""
        return path in capped(self.preemptable, self.tree)

    def means_preempting(self, name: str) -> bool:
        """Return whether a queue name in a job's request stands for a preempting queue."""
        found = None if self.tree is None else self.tree.resolve(name)
        return isinstance(found, str) and (found in self.preempting or self._is_any(self.named.preempting))

    def of_application(self, queue: str) -> str:
        """Return the path of the queue in an application's row; the name in the row if it is ambiguous."""
        found = queue if self.tree is None else self.tree.of_application(queue)
        return queue if found is None else found

    def is_unclear(self, queue: str) -> bool:
        """Return whether several leaf queues have the name in an application's row."""
        return self.tree is not None and self.tree.of_application(queue) is None

    @property
    def why_nothing(self) -> ModeReason | None:
        """Return why no order may be sent: no name, or no name of one role, stands for a queue."""
        if self.problems:
            return self.problems[0]
        if self.found is None or not self.adopted:
            return QueuesUnread()
        roles = (self.preempting, self.preemptable) if self.named.mode != "deadlines" else ()
        if any((bool(role) and all(path in self._vanished for path in role)) for role in roles):
            return self.vanished
        return None

    @property
    def vanished(self) -> QueuesVanished | None:
        """Return which named leaf queues do not exist any more."""
        return QueuesVanished(self._vanished) if self._vanished else None


def left_alone(row: yarn.AppInfo, users: Collection[str], queues: QueueNames) -> LeftAlone | None:
    """Return by what an application opts out of every lever, None if it does not.

    ``row`` has its queue's path; ``users``: those that the budgets file leaves alone.
    """
    if row.queue in queues.left_alone:
        return LeftAlone("queue", row.queue)
    if row.user in users:
        return LeftAlone("user", row.user[:NAME_MAX])
    tag = leave_alone_tag(tags_in(row.tags))
    return None if tag is None else LeftAlone("tag", tag[:NAME_MAX])
