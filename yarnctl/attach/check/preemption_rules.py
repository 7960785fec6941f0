"""Preflight rules about YARN's own preemption.

``yarnctl check`` prints a rule's docstring as the reason why it matters. They report what
``eligibility.permission`` enforces for each value of ``--yarn-preemption``. Measured waits: docs/yarn.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarnctl.attach.check.preflight import (
    CAPACITY,
    CheckResult,
    Facts,
    fail,
    is_true,
    leaf_queues,
    number_of,
    ok,
    require_configuration,
    set_keys,
    warn,
)
from yarnctl.attach.eligibility.permission import INTRA_QUEUE, MONITOR, policy_is_on, switch_by_hand
from yarnctl.hadoop.wire.views import Leaf

WAITS = "yarn.resourcemanager.monitor.capacity.preemption."
BESIDE = {"monitoring_interval": (3_000, 15_000), "max_wait_before_kill": (15_000, 45_000)}
"""Settings of YARN's policy in ms: the default, and the least at which it left alone what yarnctl served."""
RESTART = "and restart the ResourceManager"


def own_preemption(facts: Facts) -> CheckResult:
    """YARN's own preemption kills tasks. It is also the safety net while yarnctl does not run."""
    if not policy_is_on(require_configuration(facts)):
        return _no_net(f"{MONITOR} is not true") if facts.yarn_preemption == "switch" else ok("off")
    found = leaf_queues(facts, facts.preemptable_queues)
    if facts.yarn_preemption == "switch":
        return _switched(facts, found)
    paths = [leaf.path for leaf in found if leaf.queue.preemption_disabled is not True]
    if not paths:
        return ok("on, but disabled for the preemptable queues")
    if facts.yarn_preemption == "beside":
        return _beside(facts, paths)
    more = f"; or set {MONITOR}=false (yarn-site.xml)"
    if facts.scheduler is not None:
        more += "; or run yarnctl with --yarn-preemption switch, which keeps it as a safety net"
    keys = {f"{path}.disable_preemption": "true" for path in paths}
    return fail(f"on for {', '.join(paths)}", set_keys(facts, keys, more))


def _switched(facts: Facts, found: Sequence[Leaf]) -> CheckResult:
    """Judge ``--yarn-preemption switch`` where the policy is configured."""
    paths = [leaf.path for leaf in found]
    if facts.scheduler is None:
        seen = f"cannot be switched: {facts.unseen('scheduler')}"
        return fail(seen, switch_by_hand(paths))
    stored = facts.lowered or ()
    ours = {
        change.target
        for one in stored
        if one.record is not None
        for change in one.record.changes
        if change.kind == "preemption"
    }
    excused = [
        leaf.path for leaf in found if leaf.queue.preemption_disabled is True and leaf.path not in ours
    ]
    if excused:
        keys = ", ".join(f"{CAPACITY}{path}.disable_preemption" for path in excused)
        said = f"no net: its owner excludes {', '.join(excused)} from YARN's preemption; if yarnctl ends,"
        return warn(
            f"{said} no program frees containers there",
            f"remove {keys} (or the parent's), or set it to false",
        )
    if facts.policy_runs is False:
        seen = "the ResourceManager has no thread of the policy, whatever its queues show"
        return _no_net(seen)
    shown = "" if facts.policy_runs else f"; {facts.unseen('policy_runs')}"
    return ok(f"on; yarnctl switches it off for {', '.join(paths)} while it acts{shown}")


def _no_net(seen: str) -> CheckResult:
    fix = f"set {MONITOR}=true (yarn-site.xml) {RESTART}"
    return warn(f"no net: {seen}; if yarnctl ends, no program frees containers", fix)


def _beside(facts: Facts, paths: list[str]) -> CheckResult:
    """Judge the waits of the policy for ``--yarn-preemption beside``."""
    values = {key: number_of(facts.setting(WAITS + key)) or usual for key, (usual, _) in BESIDE.items()}
    short = {key: least for key, (_, least) in BESIDE.items() if values[key] < least}
    shown = ", ".join(f"{key} {value / 1000:g} s" for key, value in values.items())
    cost = "without yarnctl, production then waits about 130 s for containers instead of 90 s"
    if not short:
        return ok(f"on for {', '.join(paths)}, with long waits: {shown}; {cost}")
    keys = " and ".join(f"{WAITS}{key}={least}" for key, least in short.items())
    seen = f"on for {', '.join(paths)}: it can kill what yarnctl serves ({shown})"
    return warn(seen, f"set {keys} (yarn-site.xml) {RESTART}; {cost}")


def intra_queue_preemption(facts: Facts) -> CheckResult:
    """YARN can also kill tasks within a queue, for users and priorities. Those tasks lose their work."""
    if not policy_is_on(require_configuration(facts)) or not is_true(facts.setting(INTRA_QUEUE)):
        return ok("off")
    found = leaf_queues(
        facts, facts.preempting_queues if facts.mode == "deadlines" else facts.preemptable_queues
    )
    paths = [leaf.path for leaf in found if leaf.queue.intra_queue_preemption_disabled is not True]
    if paths:
        keys = {f"{path}.intra-queue-preemption.disable_preemption": "true" for path in paths}
        fix = set_keys(facts, keys, f"; or set {INTRA_QUEUE}=false (yarn-site.xml)")
        return fail(f"on within {', '.join(paths)}", fix)
    return ok("on, but disabled within the preemptable queues")
