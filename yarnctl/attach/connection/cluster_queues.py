"""Resolve the names of queues on this cluster once, and log when their leaf queues change.

A name keeps the path of the first look at the scheduler's queues, whatever is added to the tree. A later leaf
with the same name, and a leaf that vanishes, is logged once. While a leaf is missing, no order is sent in it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from yarnctl.deciding.queue_names import NamedQueues, QueueTree, Resolved, capped, resolved, spells
from yarnctl.deciding.reasons.eligibility import LeftAlone
from yarnctl.deciding.reasons.modes import ModeReason
from yarnctl.deciding.reasons.queue_naming import QueueProblem, QueuesUnread, QueuesVanished
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.tags import leave_alone_tag, tags_in
from yarnctl.journal.rendering import joined

_LOG = logging.getLogger("yarnctl.attach")
NAME_MAX = 80  # The characters of a tag or user that a reason repeats: the application's owner wrote them


class QueueNames:
    """The queues that are named, on one cluster.

    ``tree`` is the newest (None: none has been read). ``found`` has the paths (None: not resolved), and
    ``problems`` why not. ``adopted`` False: they were resolved after the start, and the host does not use the
    paths yet; until it does, no order is sent.
    """

    def __init__(self, named: NamedQueues) -> None:
        self.named = named
        self.tree: QueueTree | None = None
        self.found: Resolved | None = None
        self.problems: tuple[QueueProblem, ...] = ()
        self.adopted = True
        self.preempting: frozenset[str] = frozenset()
        self.preemptable: frozenset[str] = frozenset()
        self.left_alone: frozenset[str] = frozenset()
        self._vanished: tuple[str, ...] = ()
        self._doubled: dict[str, tuple[str, ...]] = {}

    def read(self, tree: QueueTree) -> None:
        """Resolve the names in a tree that was read, or log what has changed for their queues."""
        if tree == self.tree:
            return
        self.tree = tree
        if self.found is None:
            self._resolve(tree)
        else:
            self._compare(tree, self.found)

    def _resolve(self, tree: QueueTree) -> None:
        found = resolved(self.named, tree)
        self.problems = found.problems
        if found.problems:
            return
        self.found = found
        self.preempting = frozenset(found.of(self.named.preempting))
        self.preemptable = frozenset(found.preemptable(self.named))
        self.left_alone = frozenset(found.of(self.named.left_alone))
        if self.named.mode == "queues" and not (self.preempting and self.preemptable):
            missing = [name for name in self.named.all() if name not in found.paths]
            _LOG.warning("preemption disabled: %s", joined((tree.no_leaf(missing),)))

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
        for name, path in resolved.paths.items():
            others = tuple(one for one in tree.leaves if one != path and spells(name, one))
            if name == path or not others:
                continue
            self._doubled[name] = others
            if new := [one for one in others if one not in before.get(name, ())]:
                message = "a new leaf queue has the name %s: %s; the name still means %s: use its full path"
                _LOG.warning(message, name, ", ".join(new), path)

    def is_preempting(self, path: str) -> bool:
        """Return whether a queue's applications may preempt; with deadlines, every queue's may."""
        return self.named.mode == "deadlines" or path in self.preempting

    def is_preemptable(self, path: str) -> bool:
        """Return whether a queue's applications are preemptable."""
        return path in self.preemptable

    def may_be_lowered(self, path: str) -> bool:
        """Return whether a queue is preemptable, or a parent with only preemptable leaves."""
        return path in capped(self.preemptable, self.tree)

    def may_give(self, path: str) -> bool:
        """Return whether a queue's applications may be preempted; with deadlines, every queue's may."""
        return path in self.preemptable or (self.named.mode == "deadlines" and path not in self.left_alone)

    def means_preempting(self, name: str) -> bool:
        """Return whether a queue name in a job's request stands for a preempting queue."""
        found = None if self.tree is None else self.tree.resolve(name)
        return isinstance(found, str) and found in self.preempting

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
        roles = (self.preempting, self.preemptable) if self.named.mode == "queues" else ()
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
