"""Preflight: whether this cluster is fit for checkpoint preemption. The facts, and the check results.

Law: pure. A rule is one function from the facts to one finding, in the plain dict of ``rules.RULES``; what
could not be seen is "unknown" with the reason, never "ok". Every finding that is not ok names its fix with
the exact key (facts, sections 1, 5, 6 and 11; good values are in hadoop-conf/).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from yarnctl.deciding.queue_names import NamedQueues, QueueTree, resolved
from yarnctl.hadoop.lowered_queues import LoweredRecord
from yarnctl.hadoop.webhdfs import FileStatus
from yarnctl.hadoop.wire.views import Leaf
from yarnctl.hadoop.wire.yarn import ClusterInfo, NodeRow, UserInfo
from yarnctl.journal.rendering import joined

Severity = Literal["ok", "warn", "fail", "unknown"]
CAPACITY = "yarn.scheduler.capacity."
LOCK_PATH = "/yarnctl/lock"
"""The directory in HDFS by which at most one daemon acts per cluster."""


class Unseen(NamedTuple):
    """Why a fact is absent, in the words of the daemon that was asked; ``where`` it would have been. One
    fault may hide several facts.
    """

    words: str
    where: str = ""

    def __str__(self) -> str:
        return self.where + self.words


class TriedAddress(NamedTuple):
    """An address that was tried: why nothing answers there ("": something does), or what was wrong with it.

    ``application``: the application with the page; ``source``: what names the address.
    """

    at: str
    fault: str = ""
    said: str = ""
    application: str = ""
    source: str = ""

    def __str__(self) -> str:
        parts = urlsplit(self.at)
        if self.fault == "unknown-host":
            return f"{parts.hostname} does not resolve from here"
        return f"{parts.netloc}: {self.said}" if self.said else f"{parts.netloc} answers"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What was gathered. None: not seen; ``why`` (by the field's name) has the reason.

    ``allow_priority`` and ``admission`` (None: no gate) are what the daemon would be started with.
    ``parents``: the paths of parent queues.
    ``scheduler``: keys of capacity-scheduler.xml where the cluster shows them. ``name_node``: the
    NameNode's /conf. ``clock_ahead_ms``: the cluster's clock minus ours. ``requests`` and ``store``: the
    status of the two roots; ``absent``: the roots that surely do not exist; ``above``: the folders above
    them, by path. ``lock``: the status of ``lock_path``, the directory of the lock. ``lowered``: records of
    queues that a daemon has lowered, by file; ``lock_holder``: the process that has the lock.
    ``safe_mode``: as in the NameNode's /jmx. ``counted``: the resources that the scheduler decides by
    ("memory-mb", "vcores"). ``proxy``: the page of a running application; ``data_node``: where the NameNode
    sends a new file's bytes. ``spark``: executors are to leave; ``fallback_root``: where the shuffle blocks
    of jobs that are suspended whole go ("": none is), with its status; ``hosts`` and
    ``nodes`` that run containers.
    """

    caller_identity: str = ""
    mode: str = "queues"
    allow_priority: bool = False
    admission: str | None = None
    preempting_queues: tuple[str, ...] = ("production",)
    preemptable_queues: tuple[str, ...] = ("research",)
    managers: int = 1
    requests_root: str = "/yarnctl/requests"
    store_root: str = "/yarnctl/checkpoints"
    lock_path: str = LOCK_PATH
    spark: bool = False
    fallback_root: str = ""

    info: ClusterInfo | None = None
    caller: UserInfo | None = None
    configuration: Mapping[str, str] | None = None
    scheduler: Mapping[str, str] | None = None
    leaves: tuple[Leaf, ...] | None = None
    parents: tuple[str, ...] = ()
    counted: tuple[str, ...] | None = None
    clock_ahead_ms: int | None = None
    webhdfs: bool = False
    name_node: Mapping[str, str] | None = None
    requests: FileStatus | None = None
    store: FileStatus | None = None
    lock: FileStatus | None = None
    lowered: Mapping[str, LoweredRecord | None] | None = None
    lock_holder: str = ""
    hosts: int | None = None
    nodes: tuple[NodeRow, ...] | None = None
    fallback: FileStatus | None = None
    safe_mode: bool | None = None
    proxy: TriedAddress | None = None
    data_node: TriedAddress | None = None
    absent: tuple[str, ...] = ()
    above: Mapping[str, FileStatus] = {}
    why: Mapping[str, str] = {}

    @property
    def queues(self) -> QueueTree:
        """The paths of all queues (none, where none were seen)."""
        return QueueTree([leaf.path for leaf in self.leaves or ()], self.parents)

    @property
    def orders_by_deadline(self) -> bool:
        """Say whether YARN is to serve one queue's jobs in the order of their deadlines, by priorities."""
        return self.mode == "deadlines" and (self.allow_priority or self.admission == "mrm")

    @property
    def is_all_labelled(self) -> bool:
        """Whether there are nodes, and each has a label: then queues have no share that yarnctl models."""
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

    def of(self, names: tuple[str, ...]) -> tuple[Leaf, ...]:
        """Return the leaf queues that these names stand for, in the names' order."""
        by_path = {leaf.path: leaf for leaf in self.leaves or ()}
        found = resolved(NamedQueues(preemptable=names), self.queues)
        return tuple(by_path[path] for path in found.of(names))

    def unseen(self, name: str, otherwise: str = "it was not shown", where: str = "") -> Unseen:
        """Return why a fact is absent."""
        return Unseen(self.why.get(name, otherwise), where)


class Finding(msgspec.Struct, frozen=True):
    """One rule's check result: what was seen, its purpose, what to do ("" where nothing is to be done)."""

    id: str
    severity: Severity
    seen: str
    matters: str
    fix: str = ""


class CheckResult(msgspec.Struct, frozen=True):
    """A finding before its rule's id and purpose are added; ``fault``: why what it rests on is absent."""

    severity: Severity
    observed: str
    fix: str = ""
    fault: Unseen | None = None


def ok(seen: str) -> CheckResult:
    """Return a check result: it is well."""
    return CheckResult("ok", seen)


def warn(seen: str, fix: str) -> CheckResult:
    """Return a check result: it works, less well."""
    return CheckResult("warn", seen, fix)


def fail(seen: str | Unseen, fix: str) -> CheckResult:
    """Return a check result: it cannot work, or loses work."""
    return CheckResult("fail", str(seen), fix, _fault(seen))


def unknown(seen: str | Unseen, fix: str = "") -> CheckResult:
    """Return a check result: it was not seen."""
    return CheckResult("unknown", str(seen), fix, _fault(seen))


def _fault(seen: str | Unseen) -> Unseen | None:
    return Unseen(seen.words) if isinstance(seen, Unseen) else None


# --- reading settings -------------------------------------------------------------------------


def is_true(text: str | None) -> bool:
    """Read a setting of true or false; one that is absent is false."""
    return (text or "").strip().lower() == "true"


def number_of(text: str | None) -> float | None:
    """Read a setting that is a number; None if it is none."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def not_in_conf(facts: Facts) -> Unseen:
    """Return why a key of the daemon's configuration is not known."""
    return facts.unseen("configuration", "it does not say", "/conf: ")


def leaf_queues(facts: Facts, names: tuple[str, ...]) -> tuple[tuple[Leaf, ...], CheckResult | None]:
    """Return the leaves by these names, or the one check result that replaces a judgement of them."""
    if facts.leaves is None:
        return (), unknown(facts.unseen("leaves"))
    named = NamedQueues(
        preempting=tuple(name for name in facts.preempting_queues if name in names),
        preemptable=tuple(name for name in facts.preemptable_queues if name in names),
        mode="queues" if facts.mode == "queues" else "deadlines",
    )
    problems = resolved(named, facts.queues).problems
    if problems:
        fix = f"add it to {CAPACITY}root.queues, or name others with --preempting and --preemptable"
        return (), fail(joined(problems), fix)
    return facts.of(names), None
