"""What to do after ``yarnctl check``: how to apply the fixes here, and the options of ``yarnctl run``."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from yarnctl.attach.check.preflight import CAPACITY, Facts, Finding, number_of
from yarnctl.attach.eligibility.permission import policy_is_on

BY_FILE = (
    "edit capacity-scheduler.xml on each ResourceManager, all keys of one fix together, then run"
    " yarn rmadmin -refreshQueues"
)
BY_REST = "send all keys of one fix in one PUT to /ws/v1/cluster/scheduler-conf"
MAY_LOSE = "2%"  # Of the container time of an hour: 72 s of work for each container
IN_FLIGHT_LEAST = 4
CONTAINER_MIB = 1024
_SET = re.compile(
    re.escape(f"set {CAPACITY}") + r"(root(?:\.[^.=]+)*)\.([a-z][a-z_.-]*)=([^;]*?)(?: \(or .*)?(?:;|$)"
)


class NextSteps(msgspec.Struct, frozen=True):
    """``apply``: how to apply the fixes of queues ("": there is none); ``run``: the options of the daemon."""

    apply: str
    run: tuple[str, ...]


def next_steps(facts: Facts, findings: Iterable[Finding]) -> NextSteps | None:
    """Return the steps for a cluster; None if its queues were not read."""
    if facts.root is None:
        return None
    fixes = [one.fix for one in findings if one.severity != "ok" and f"set {CAPACITY}" in one.fix]
    return NextSteps(_apply(facts, fixes) if fixes else "", run_options(facts))


def _apply(facts: Facts, fixes: Iterable[str]) -> str:
    if facts.scheduler is None:
        return BY_FILE
    keys: dict[str, dict[str, str]] = {}
    for fix in fixes:
        for path, key, value in _SET.findall(fix):
            keys.setdefault(path, {})[key] = value
    if not keys or any(re.search("[,;' ]", text) for each in keys.values() for text in each.values()):
        return BY_REST
    updates = (
        f"{path}:{','.join(f'{key}={text}' for key, text in each.items())}" for path, each in keys.items()
    )
    return f"yarn schedulerconf -update '{';'.join(updates)}'"


def run_options(facts: Facts) -> tuple[str, ...]:
    """Return options that suit the cluster.

    Names that stand for no queue are replaced: by the leaf queue with the largest guarantee, and the one with
    the smallest; by one queue with deadlines if there is only one.
    """
    mode = facts.mode
    production, research = (
        [leaf.path for leaf in facts.of(names)]
        for names in (facts.preempting_queues, facts.preemptable_queues)
    )
    if not production or (mode == "queues" and not research):
        ranked = sorted(facts.leaves, key=lambda leaf: (-leaf.queue.guaranteed_percent, leaf.path))
        if not ranked:
            return ()
        production, research = [ranked[0].path], [ranked[-1].path]
        mode = "queues" if len(ranked) > 1 and mode == "queues" else "deadlines"
    words = ["--mode", mode] if mode != "queues" else []
    words += [word for path in production for word in ("--preempting", path)]
    words += [word for path in research for word in ("--preemptable", path)] if mode == "queues" else []
    words += ["--in-flight-least", str(_in_flight_least(facts))]
    words += ["--eviction", "mix", "--may-lose", MAY_LOSE] if mode == "queues" else []
    if facts.yarn_preemption == "beside":
        words += ["--yarn-preemption", "beside"]
    elif facts.scheduler is not None and policy_is_on(facts.configuration or {}):
        words += ["--yarn-preemption", "switch"]
    words += ["--allow-priority"] if facts.allow_priority and mode == "deadlines" else []
    return (*words, "--admission", facts.admission) if facts.admission else tuple(words)


def _in_flight_least(facts: Facts) -> int:
    """Return the default, or half of the containers that a small cluster runs at once, at least one."""
    least = number_of(facts.setting("yarn.scheduler.minimum-allocation-mb")) or 0
    total = sum(node.total.memory_mib for node in facts.nodes or () if not node.partition)
    containers = total // max(CONTAINER_MIB, int(least))
    return max(1, min(IN_FLIGHT_LEAST, containers // 2)) if facts.nodes else IN_FLIGHT_LEAST
