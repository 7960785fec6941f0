"""All rules of ``yarnctl check``, one function each, by the id of the finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from yarnctl.attach.check import cluster_rules as cluster
from yarnctl.attach.check import hdfs_rules as store
from yarnctl.attach.check import preemption_rules as preemption
from yarnctl.attach.check import scheduler_rules as scheduler
from yarnctl.attach.check import spark_rules as spark
from yarnctl.attach.check.preflight import CheckResult, Facts, Finding, NotJudged, Unseen, unknown

Rule = Callable[[Facts], CheckResult]

RULES: dict[str, Rule] = {
    "gateway": cluster.gateway,
    "version": cluster.version,
    "signal": cluster.signal,
    "rm-ha": cluster.manager_ha,
    "clock": cluster.clock,
    "caller": cluster.caller,
    "proxy": cluster.proxy,
    "scheduler": scheduler.scheduler,
    "queues": scheduler.queues,
    "budgets": scheduler.budgets,
    "pending": scheduler.pending,
    "features": scheduler.features,
    "labels": scheduler.labels,
    "resources": scheduler.resources,
    "production-share": scheduler.preempting_share,
    "research-share": scheduler.preemptable_share,
    "maxima": scheduler.maxima,
    "user-limit": scheduler.user_limit,
    "user-share": scheduler.user_share,
    "ordering-policy": scheduler.ordering_policy,
    "am-share": scheduler.am_share,
    "parallel-apps": scheduler.parallel_applications,
    "masters": scheduler.masters,
    "max-priority": scheduler.max_priority,
    "calculator": scheduler.calculator,
    "locality-delay": scheduler.locality_delay,
    "minimum-allocation": scheduler.minimum_allocation,
    "own-preemption": preemption.own_preemption,
    "intra-queue-preemption": preemption.intra_queue_preemption,
    "apps-cache": cluster.apps_cache,
    "acls": cluster.acls,
    "speculation": cluster.speculation,
    "slow-start": cluster.slow_start,
    "webhdfs": store.webhdfs,
    "datanodes": store.datanodes,
    "safe-mode": store.safe_mode,
    "permissions": store.permissions,
    "isolation": store.isolation,
    "requests-root": store.requests_root,
    "store-root": store.store_root,
    "folders-above": store.folders_above,
    "lock": store.lock,
    "lowered": cluster.lowered,
    "spark-shell": spark.shell,
    "spark-hosts": spark.hosts,
    "spark-shuffle-service": spark.shuffle_service,
    "spark-fallback": spark.fallback,
}
"""Every rule by the id of its finding, in the order in which the findings are printed."""

BY_DEADLINE = frozenset({"user-share", "ordering-policy"})  # Matter only if the earliest deadline is first

FOR_SPARK = frozenset({"spark-shell", "spark-hosts", "spark-shuffle-service"})
"""The rules that matter only if yarnctl may drain executors of Spark."""

WITHOUT_SCHEDULER = "not checked: needs the capacity scheduler; fix 'scheduler' first"
"""The check result of every rule that reads the capacity scheduler, if the cluster has another scheduler."""


def judge(facts: Facts) -> tuple[Finding, ...]:
    """Return the finding of every rule that matters, in order; only the first reports a common cause."""
    return findings_of(check_results(facts))


def findings_of(results: Mapping[str, CheckResult]) -> tuple[Finding, ...]:
    """Return the findings of check results by their rules' ids."""
    return tuple(
        Finding(name, one.severity, one.observed, (RULES[name].__doc__ or "").strip(), one.fix)
        for name, one in results.items()
    )


def check_results(facts: Facts) -> dict[str, CheckResult]:
    """Return the check result of every rule that matters, by its id in order, as ``judge`` does."""
    reported: dict[str | Unseen, tuple[str, CheckResult]] = {}
    is_other = RULES["scheduler"](facts).severity == "fail"
    results = {}
    for name, rule in RULES.items():
        if not _matters(name, facts):
            continue
        try:
            word = rule(facts)
        except NotJudged as instead:
            word = instead.result
        if is_other and word.severity == "unknown" and (RULES[name].__module__ == scheduler.__name__):
            word = unknown(WITHOUT_SCHEDULER)
        elif first := _already_reported(word, reported):
            word = unknown(f"not checked, for the same reason as '{first}'; fix '{first}' first")
        results[name] = word
        if word.severity in ("fail", "unknown"):
            reported.setdefault(word.observed, (name, word))
            if word.fault is not None:
                reported.setdefault(word.fault, (name, word))
    return results


def _matters(name: str, facts: Facts) -> bool:
    if name in FOR_SPARK:
        return facts.spark
    if name == "gateway":
        return bool(facts.knox)
    if name == "budgets":
        return facts.budget_queues is not None
    if name == "pending":
        return facts.activities is not None  # they only explain: a cluster without them misses nothing
    if name == "features":
        return scheduler.has_features(facts)
    if name == "spark-fallback":
        return bool(facts.fallback_root)
    if facts.orders_by_deadline:
        return name != "user-limit"
    return name not in BY_DEADLINE


def _already_reported(result: CheckResult, reported: Mapping[str | Unseen, tuple[str, CheckResult]]) -> str:
    """Return the id of an earlier finding with the same text or the same fault; "" if there is none."""
    if result.severity == "unknown" and not result.fix:
        return reported.get(result.observed if result.fault is None else result.fault, ("", result))[0]
    name, same = reported.get(result.observed, ("", result))
    return name if (same.severity, same.fix) == (result.severity, result.fix) else ""
