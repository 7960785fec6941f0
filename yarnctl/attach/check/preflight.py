"""The facts and the check results of ``yarnctl check``.

A fact that could not be read gives "unknown" with the reason, never "ok". Every finding that is not ok names
its fix with the exact key (good values are in hadoop-conf/).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from yarnctl.attach.connection.connection import YarnPreemption
from yarnctl.deciding.queue_names import NamedQueues, QueueTree, Resolved, resolved
from yarnctl.hadoop.http.gateway import KnoxService
from yarnctl.hadoop.lock import LOCK_PATH
from yarnctl.hadoop.webhdfs import FileStatus
from yarnctl.hadoop.wire.node_activities import NodeActivities
from yarnctl.hadoop.wire.views import Leaf, leaves, queue_tree
from yarnctl.hadoop.wire.yarn import ClusterInfo, NodeRow, QueueInfo, UserInfo
from yarnctl.journal.rendering import joined
from yarnctl.restoring.change_file import StoredRecord

Severity = Literal["ok", "warn", "fail", "unknown"]
CAPACITY = "yarn.scheduler.capacity."


class Unseen(NamedTuple):
    """Why a fact is absent: the daemon's error in ``words``, after the place in ``where``."""

    words: str
    where: str = ""

    def __str__(self) -> str:
        return self.where + self.words


class TriedAddress(NamedTuple):
    """An address that was tried, and its problem.

    ``fault``: why no connection was made, as the HTTP client names it ("": one was made); ``problem``: the
    same, or the fault of the answer, in words ("": none); ``application``: the application with the page;
    ``source``: the setting that names the address.
    """

    at: str
    fault: str = ""
    problem: str = ""
    application: str = ""
    source: str = ""

    def __str__(self) -> str:
        parts = urlsplit(self.at)
        if self.fault == "unknown-host":
            return f"this host cannot resolve {parts.hostname}"
        return f"{parts.netloc}: {self.problem}" if self.problem else f"{parts.netloc} answers"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The gathered facts. None: not read; ``why`` (by the field's name) has the reason.

    ``allow_priority``, ``admission`` (None: off) and ``yarn_preemption`` are the options of the daemon that
    the check is for; ``budget_queues``: the queues in its budgets file (None: no file), ``queues_left_alone``
    those that opt out. ``knox``: the gateway's service at the ResourceManager's address. ``policy_runs``: the
    ResourceManager has the thread of YARN's own preemption.
    ``root``: the tree of queues. ``other_scheduler``: the class of another scheduler ("": none was seen).
    ``scheduler``: keys of capacity-scheduler.xml where the cluster shows them. ``name_node``: the
    NameNode's /conf. ``clock_ahead_ms``: the cluster's clock minus ours. ``requests`` and ``store``: the
    status of the two roots; ``absent``: the roots that do not exist; ``above``: the folders above
    them, by path. ``lock``: the status of ``lock_path``, the directory of the lock. ``lowered``: records of
    settings that a daemon has lowered; ``lock_holder``: the process that has the lock
    ("zookeeper": it is not in HDFS).
    ``safe_mode``: as in the NameNode's /jmx. ``counted``: the resources that the scheduler decides by
    ("memory-mb", "vcores"). ``proxy``: the page of a running application; ``data_node``: the address to which
    the NameNode sends a new file's bytes. ``spark``: yarnctl may drain executors; ``fallback_root``: the
    folder for the shuffle blocks of whole suspended jobs ("": none), with its status in ``fallback``;
    ``hosts``: the number of hosts with ``nodes``. ``activities``: YARN's records of heartbeats of nodes with
    free capacity, read only while a preempting queue has pending requests.
    """

    caller_identity: str = ""
    mode: str = "queues"
    allow_priority: bool = False
    admission: str | None = None
    yarn_preemption: YarnPreemption = "off"
    preempting_queues: tuple[str, ...] = ("production",)
    preemptable_queues: tuple[str, ...] = ("research",)
    budget_queues: tuple[str, ...] | None = None
    queues_left_alone: tuple[str, ...] = ()
    managers: int = 1
    knox: KnoxService = ""
    requests_root: str = "/yarnctl/requests"
    store_root: str = "/yarnctl/checkpoints"
    lock_path: str = LOCK_PATH
    spark: bool = False
    fallback_root: str = ""

    info: ClusterInfo | None = None
    caller: UserInfo | None = None
    configuration: Mapping[str, str] | None = None
    scheduler: Mapping[str, str] | None = None
    policy_runs: bool | None = None
    root: QueueInfo | None = None
    other_scheduler: str = ""
    counted: tuple[str, ...] | None = None
    clock_ahead_ms: int | None = None
    webhdfs: bool = False
    name_node: Mapping[str, str] | None = None
    requests: FileStatus | None = None
    store: FileStatus | None = None
    lock: FileStatus | None = None
    lowered: tuple[StoredRecord, ...] | None = None
    lock_holder: str = ""
    hosts: int | None = None
    nodes: tuple[NodeRow, ...] | None = None
    fallback: FileStatus | None = None
    safe_mode: bool | None = None
    proxy: TriedAddress | None = None
    data_node: TriedAddress | None = None
    activities: tuple[NodeActivities, ...] | None = None
    absent: tuple[str, ...] = ()
    above: Mapping[str, FileStatus] = {}
    why: Mapping[str, str] = {}

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """All leaf queues; empty if they could not be read."""
        return () if self.root is None else leaves(self.root)

    @property
    def queues(self) -> QueueTree:
        """The paths of all queues; empty if they could not be read."""
        return QueueTree(()) if self.root is None else queue_tree(self.root)

    def chain(self, path: str) -> tuple[Leaf, ...]:
        """Return the queues from root down to this one, each with its path."""
        found = []
        queue, names = self.root, path.split(".")
        for depth, name in enumerate(names, 1):
            if depth > 1 and queue is not None:
                queue = next((child for child in queue.children if child.name == name), None)
            if queue is not None:
                found.append(Leaf(".".join(names[:depth]), queue))
        return tuple(found)

    @property
    def used_queues(self) -> tuple[str, ...]:
        """The queues of both sides; with --mode deadlines they share the preempting queues."""
        return self.preempting_queues + (() if self.mode == "deadlines" else self.preemptable_queues)

    @property
    def orders_by_deadline(self) -> bool:
        """Whether yarnctl orders the jobs of one queue by deadline, with YARN's priorities."""
        return self.mode == "deadlines" and (self.allow_priority or self.admission == "mrm")

    @property
    def is_all_labelled(self) -> bool:
        """Whether there are nodes and each has a label. yarnctl models no queue's share then."""
        return bool(self.nodes) and all(node.partition for node in self.nodes or ())

    def setting(self, key: str) -> str | None:
        """Return a key of the daemon's configuration, None if it is not shown."""
        value = (self.configuration or {}).get(key)
        return None if value is None else value.strip()

    def capacity(self, key: str) -> str | None:
        """Return a key of the scheduler (without its prefix), wherever it is shown."""
        for source in (self.scheduler, self.configuration):
            if source is not None and CAPACITY + key in source:
                return source[CAPACITY + key]
        return None

    def scheduler_key(self, key: str, default: str) -> str | None:
        """Return a key of the scheduler; its default if the scheduler's keys are shown without it."""
        found = self.capacity(key)
        return default if found is None and self.scheduler is not None else found

    def of(self, names: tuple[str, ...]) -> tuple[Leaf, ...]:
        """Return the leaf queues that these names stand for, in the names' order."""
        by_path = {leaf.path: leaf for leaf in self.leaves}
        return tuple(by_path[path] for path in self.resolved(names).of(names))

    def resolved(self, names: tuple[str, ...]) -> Resolved:
        """Return what the names of one role stand for."""
        return resolved(NamedQueues(preemptable=names), self.queues)

    def unseen(self, name: str, otherwise: str = "the cluster does not show it", where: str = "") -> Unseen:
        """Return why a fact is absent."""
        return Unseen(self.why.get(name, otherwise), where)


class Finding(msgspec.Struct, frozen=True):
    """One rule's check result: the observed state, why it matters, and the fix ("": none needed)."""

    id: str
    severity: Severity
    seen: str
    matters: str
    fix: str = ""


class KeysFix(NamedTuple):
    """A fix that sets keys of the capacity scheduler, without their prefix; ``more``: its last words."""

    keys: Mapping[str, str]
    more: str = ""

    def __str__(self) -> str:
        return "; ".join(f"set {CAPACITY}{key}={value}" for key, value in self.keys.items()) + self.more


class CheckResult(msgspec.Struct, frozen=True):
    """A finding without its rule's id and purpose.

    ``fault``: why a fact that the rule needs is absent. ``keys``: the scheduler's keys that the fix sets.
    """

    severity: Severity
    observed: str
    fix: str = ""
    fault: Unseen | None = None
    keys: Mapping[str, str] = {}


class NotJudged(Exception):
    """A rule cannot be applied; ``result`` is its check result instead."""

    def __init__(self, result: CheckResult) -> None:
        super().__init__(result.observed)
        self.result = result


def ok(seen: str) -> CheckResult:
    """Return a check result: the rule is satisfied."""
    return CheckResult("ok", seen)


def warn(seen: str, fix: str | KeysFix) -> CheckResult:
    """Return a check result: yarnctl works, with a disadvantage."""
    return _result("warn", seen, fix)


def fail(seen: str | Unseen, fix: str | KeysFix) -> CheckResult:
    """Return a check result: yarnctl cannot work, or jobs lose work."""
    return _result("fail", seen, fix)


def unknown(seen: str | Unseen, fix: str | KeysFix = "") -> CheckResult:
    """Return a check result: a fact could not be read."""
    return _result("unknown", seen, fix)


def _result(severity: Severity, seen: str | Unseen, fix: str | KeysFix) -> CheckResult:
    fault = Unseen(seen.words) if isinstance(seen, Unseen) else None
    return CheckResult(severity, str(seen), str(fix), fault, fix.keys if isinstance(fix, KeysFix) else {})


def key_parts(facts: Facts, key: str) -> tuple[str, str]:
    """Return the path of a key's queue ("": a key of the whole scheduler) and the key's name there."""
    paths = [path for path in (*facts.queues.leaves, *facts.queues.parents) if key.startswith(f"{path}.")]
    path = max(paths, key=len, default="")
    return path, key.removeprefix(f"{path}.") if path else key


def set_keys(facts: Facts, keys: Mapping[str, str], more: str = "") -> KeysFix:
    """Return the fix that sets keys. For a queue that YARN made, they are those of its parent's template."""
    return KeysFix({_at_template(facts, key): text for key, text in keys.items()}, more)


def _at_template(facts: Facts, key: str) -> str:
    path, name = key_parts(facts, key)
    template = next((leaf.queue.template for leaf in facts.leaves if leaf.path == path), "")
    return f"{path.rpartition('.')[0]}.{template}.{name}" if template else key


# --- reading settings -------------------------------------------------------------------------


def is_true(text: str | None) -> bool:
    """Return a setting of true or false as a bool; an absent one is False."""
    return (text or "").strip().lower() == "true"


def number_of(text: str | None) -> float | None:
    """Return a setting as a number; None if it is absent or not a number."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def hadoop_version(facts: Facts) -> tuple[int, int] | None:
    """Return the cluster's Hadoop version, the first two numbers; None if it is not known."""
    match = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", facts.info.version if facts.info else "")
    return (int(match[1]), int(match[2])) if match else None


def require_configuration(facts: Facts) -> Mapping[str, str]:
    """Return the daemon's configuration; raises NotJudged if it was not read."""
    if facts.configuration is None:
        raise NotJudged(unknown(not_in_conf(facts)))
    return facts.configuration


def with_every_leaf(facts: Facts) -> Facts:
    """Return the facts with every leaf in a role that names none, which ``--mode guarantees`` means."""
    if facts.mode != "guarantees":
        return facts
    every = tuple(leaf.path for leaf in facts.leaves)
    return msgspec.structs.replace(
        facts,
        preempting_queues=facts.preempting_queues or every,
        preemptable_queues=facts.preemptable_queues or every,
    )


def not_in_conf(facts: Facts) -> Unseen:
    """Return why a key of the daemon's configuration is not known."""
    return facts.unseen("configuration", "the key is not set", "the ResourceManager's /conf: ")


def no_leaf_yet(facts: Facts, names: tuple[str, ...]) -> str:
    """Return the parents by these names that have no leaf yet, in words ("": none)."""
    return ", ".join(f"{path} has no leaf yet" for path in facts.resolved(names).without_leaf(names))


def leaf_queues(facts: Facts, names: tuple[str, ...]) -> tuple[Leaf, ...]:
    """Return the leaf queues of these names. Raises NotJudged as ``in_roles``, and if a role has none."""
    for role in in_roles(facts, names):
        if role and not facts.of(role):
            raise NotJudged(ok(no_leaf_yet(facts, role)))
    return facts.of(names)


def in_roles(facts: Facts, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return those of these names that preempt, and are preemptable. Raises NotJudged for a problem."""
    if facts.root is None:
        raise NotJudged(unknown(facts.unseen("root")))
    named = NamedQueues(
        preempting=tuple(name for name in facts.preempting_queues if name in names),
        preemptable=tuple(name for name in facts.preemptable_queues if name in names),
        mode="queues" if facts.mode == "queues" else "deadlines",
    )
    problems = resolved(named, facts.queues).problems
    if problems:
        fix = f"set --preempting and --preemptable to queues, or add the queue to {CAPACITY}root.queues"
        raise NotJudged(fail(joined(problems), fix))
    return named.preempting, named.preemptable
