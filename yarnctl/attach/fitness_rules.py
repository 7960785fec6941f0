"""The rules of fitness: what a cluster must be like, one function each, by the id of its finding.

Law: a plain dict; see ``fitness`` for what a rule is.
"""

from __future__ import annotations

from collections.abc import Callable

from yarnctl.attach import fitness_cluster as cluster
from yarnctl.attach import fitness_lowered as lowered
from yarnctl.attach import fitness_preemption as preemption
from yarnctl.attach import fitness_rights as rights
from yarnctl.attach import fitness_scheduler as scheduler
from yarnctl.attach import fitness_store as store
from yarnctl.attach.fitness import Facts, Finding, Word

Rule = Callable[[Facts], Word]

RULES: dict[str, Rule] = {
    "version": cluster.version,
    "signal": cluster.signal,
    "rm-ha": cluster.manager_ha,
    "clock": cluster.clock,
    "caller": cluster.caller,
    "scheduler": scheduler.scheduler,
    "queues": scheduler.queues,
    "hurried-share": scheduler.hurried_share,
    "victim-share": scheduler.victim_share,
    "maxima": scheduler.maxima,
    "user-limit": scheduler.user_limit,
    "am-share": scheduler.am_share,
    "max-priority": scheduler.max_priority,
    "calculator": scheduler.calculator,
    "locality-delay": scheduler.locality_delay,
    "minimum-allocation": scheduler.minimum_allocation,
    "own-preemption": preemption.own_preemption,
    "intra-queue-preemption": preemption.intra_queue_preemption,
    "apps-cache": cluster.apps_cache,
    "acls": rights.acls,
    "speculation": cluster.speculation,
    "slow-start": cluster.slow_start,
    "webhdfs": store.webhdfs,
    "permissions": store.permissions,
    "isolation": store.isolation,
    "requests-root": store.requests_root,
    "store-root": store.store_root,
    "folders-above": store.folders_above,
    "lock": store.lock,
    "lowered": lowered.lowered,
}
"""Every rule by the id of its finding, in the order in which they are shown."""


def judge(facts: Facts) -> tuple[Finding, ...]:
    """Return every rule's finding, in the dict's order."""
    rows = ((name, rule, rule(facts)) for name, rule in RULES.items())
    return tuple(
        Finding(name, word.severity, word.seen, (rule.__doc__ or "").strip(), word.fix)
        for name, rule, word in rows
    )
