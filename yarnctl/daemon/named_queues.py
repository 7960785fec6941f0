"""Resolve the queue names in a daemon's options and files to full paths, once.

A name that no leaf queue has ends the start with BadInput. If the cluster cannot be read at the start, or an
earlier run has left settings to restore, the daemon sends no orders until the names are resolved.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable

import msgspec

from yarnctl.attach.check.unmodelled import unmodelled
from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import loop_manager
from yarnctl.config import ClusterAddress
from yarnctl.daemon.admission.building import AdmissionOptions
from yarnctl.deciding.queue_names import NamedQueues, Resolved
from yarnctl.deciding.reasons.queue_naming import (
    AmbiguousQueue,
    BudgetOfNoPreemptableQueue,
    EveryQueueLeftAlone,
    NoLeafQueue,
    ParentQueue,
    QueueInBothRoles,
    QueueNamedTwice,
    QueueProblem,
)
from yarnctl.deciding.settings import LossRule, Settings
from yarnctl.errors import BadInput, YarnctlError
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.wire.calculator import DOMINANT, KEY, UNKNOWN, shown_calculator
from yarnctl.hadoop.wire.views import leaves, queue_tree
from yarnctl.hadoop.wire.yarn import QueueInfo
from yarnctl.journal.rendering import joined

_LOG = logging.getLogger("yarnctl.daemon")


def named_in(
    attachment: Attachment, settings: Settings, admitting: AdmissionOptions | None, optional: frozenset[str]
) -> NamedQueues:
    """Return all names. ``optional``: names of queues that may be missing."""
    rules = () if settings.levers is None else settings.levers.budgets
    ruled = [rule.name for rule in rules if rule.kind == "queue"]
    timed = [each.queue for each in settings.hours or ()]
    return NamedQueues(
        preempting=attachment.preempting_queues,
        preemptable=attachment.preemptable_queues,
        mode=attachment.mode,
        gate=() if admitting is None else admitting.queues,
        pools=() if admitting is None else tuple(pool.queue for pool in admitting.pools),
        budgets=tuple(dict.fromkeys((*ruled, *timed, *attachment.left_alone_queues))),
        left_alone=attachment.left_alone_queues,
        optional=optional,
    )


def with_paths(settings: Settings, named: NamedQueues, resolved: Resolved) -> Settings:
    """Return the controller's settings with paths for names.

    A role without a leaf queue keeps names that no leaf has: an empty role would mean every queue.
    """
    levers = settings.levers
    if levers is not None and levers.budgets:
        levers = msgspec.structs.replace(levers, budgets=rules_with_paths(levers.budgets, resolved))
    return msgspec.structs.replace(
        settings,
        preempting_queues=resolved.of(named.preempting) or _no_leaves(named.preempting, resolved),
        preemptable_queues=resolved.preemptable(named) or _no_leaves(named.preemptable, resolved),
        levers=levers,
        hours=settings.hours
        and tuple(msgspec.structs.replace(each, queue=resolved.paths[each.queue]) for each in settings.hours),
    )


def _no_leaves(names: tuple[str, ...], resolved: Resolved) -> tuple[str, ...]:
    return tuple(name for name in names if name not in resolved.paths)


def rules_with_paths(rules: Iterable[LossRule], resolved: Resolved) -> tuple[LossRule, ...]:
    """Return loss budgets with paths for the names of queues."""
    return tuple(
        msgspec.structs.replace(rule, name=resolved.paths[rule.name]) if rule.kind == "queue" else rule
        for rule in rules
    )


def admission_with_paths(options: AdmissionOptions, resolved: Resolved) -> AdmissionOptions:
    """Return admission's options with paths for names."""
    pools = tuple(msgspec.structs.replace(pool, queue=resolved.paths[pool.queue]) for pool in options.pools)
    return msgspec.structs.replace(options, queues=resolved.of(options.queues), pools=pools)


def resolve_at_start(names: QueueNames, cluster: ClusterAddress, *, must_undo: bool) -> None:
    """Read the queues and resolve names.

    Features of the scheduler that are not modelled are logged by name, and an unknown calculator.

    Unless ``must_undo``, raises BadInput for names that no leaf queue has, for another scheduler, and for a
    Router of a federation.
    """
    manager = loop_manager(cluster)
    try:
        manager.identify()
        root = manager.root_queue()
        names.read(queue_tree(root))
        names.read_states({leaf.path: leaf.queue.state for leaf in leaves(root)})
        _name_features(manager, root)
    except YarnctlError as error:
        if isinstance(error, BadInput) and not must_undo:
            raise
        _LOG.warning("queue names are not resolved until the ResourceManager answers: %s", error)
    if names.problems and not must_undo:
        remedy = "use the full path of a queue, or a name that only one queue has"
        raise BadInput(_options(names), joined(names.problems), remedy)
    names.adopted = names.found is not None


def _name_features(manager: ResourceManager, root_queue: QueueInfo) -> None:
    """Log the features that are not modelled, and that it is unknown what the scheduler counts."""
    configuration, scheduler = _shown(manager.configuration), _shown(manager.scheduler_configuration)
    for one in unmodelled({**(configuration or {}), **(scheduler or {})}, root_queue):
        _LOG.warning("not modelled: %s", one)
    if shown_calculator(root_queue, manager.nodes(), scheduler, configuration) is None:
        _LOG.warning("%s, until answers show it; set %s=%s", UNKNOWN, KEY, DOMINANT)


def _shown(read: Callable[[], dict[str, str]]) -> dict[str, str] | None:
    """Return the keys that a source shows; None if it does not answer."""
    with contextlib.suppress(YarnctlError):  # a store that cannot be changed shows none
        return read()
    return None


def _options(names: QueueNames) -> str:
    named = names.named
    by_option = {
        "--preempting": named.preempting,
        "--preemptable": named.preemptable,
        "--admission-queue": named.gate,
        "--pools": named.pools,
        "--budgets": named.budgets,
    }
    bad = {name for problem in names.problems for name in _names_in(problem)}
    return ", ".join(option for option, given in by_option.items() if bad.intersection(given))


def _names_in(problem: QueueProblem) -> tuple[str, ...]:
    match problem:
        case NoLeafQueue() | QueueInBothRoles() | QueueNamedTwice() | EveryQueueLeftAlone():
            return problem.names
        case AmbiguousQueue() | ParentQueue() | BudgetOfNoPreemptableQueue():
            return (problem.name,)
