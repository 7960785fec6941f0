"""Preflight rules about the scheduler: queues, shares, limits, how it counts, and its own preemption.

Law: pure; see ``preflight``. A rule's docstring is its purpose, as users read it. Those about preemption
show beforehand what ``eligibility.permission`` enforces: the daemon does nothing where YARN may preempt what
yarnctl would save.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

from yarnctl.attach.check.preflight import (
    CAPACITY,
    CheckResult,
    Facts,
    fail,
    is_true,
    leaf_queues,
    not_in_conf,
    number_of,
    ok,
    unknown,
    warn,
)
from yarnctl.attach.eligibility.permission import INTRA_QUEUE, MONITOR, OBSERVE_ONLY, POLICIES, POLICY
from yarnctl.hadoop.wire.views import Leaf, shown_name
from yarnctl.hadoop.wire.yarn import MODELLED, label_in

MAX_PRIORITY = "yarn.cluster.max-application-priority"
FULL_PERCENT = 99.0
AM_RATIO_MIN = 0.2
PRIORITY_LEVELS_MIN = 10
"""With fewer levels, jobs of different deadlines share one and are served as they came."""
BY_PRIORITY = frozenset({"fifo", "fifo-with-partitions"})
"""The orders of a leaf queue's applications that put the higher priority first."""


def scheduler(facts: Facts) -> CheckResult:
    """Only the capacity scheduler's order is modelled: who gets room that is freed."""
    name = facts.setting("yarn.resourcemanager.scheduler.class")
    fix = (
        "set yarn.resourcemanager.scheduler.class=org.apache.hadoop.yarn.server.resourcemanager"
        ".scheduler.capacity.CapacityScheduler (yarn-site.xml)"
    )
    if facts.leaves is not None:
        return ok("the capacity scheduler answers")
    if name is not None and not name.endswith(".CapacityScheduler"):
        return fail(name.rpartition(".")[2], fix)
    return unknown(facts.unseen("leaves"))


def labels(facts: Facts) -> CheckResult:
    """Nodes with a label, and requests for one, are not modelled: yarnctl leaves both out."""
    if facts.nodes is None:
        return unknown(facts.unseen("nodes"))
    if facts.is_all_labelled:
        return _all_labelled(facts)
    for leaf in facts.of(facts.preempting_queues + facts.preemptable_queues):
        label = label_in(leaf.queue.default_label)
        if label:
            said = f"{leaf.path} requests nodes with the label {shown_name(label)} by default"
            return fail(
                said, f"remove {CAPACITY}{leaf.path}.default-node-label-expression, or name another queue"
            )
    named = _labels(facts)
    if not named:
        return ok("no node has a label")
    count = sum(bool(node.partition) for node in facts.nodes)
    fix = "keep what yarnctl is to serve or preempt on nodes without a label (docs/limitations.md)"
    return warn(f"{count} of {len(facts.nodes)} nodes have a label and are left out: {named}", fix)


def _labels(facts: Facts) -> str:
    """Return the labels of nodes, each with its number of nodes."""
    counts = Counter(shown_name(node.partition) for node in facts.nodes or () if node.partition)
    return ", ".join(f"{label} ({count})" for label, count in sorted(counts.items()))


def _all_labelled(facts: Facts) -> CheckResult:
    """Return the check result of a cluster without a node that yarnctl models."""
    said = f"all {len(facts.nodes or ())} nodes have a label and are left out: {_labels(facts)}"
    fix = (
        "take the label off the nodes that yarnctl is to manage: yarn rmadmin -replaceLabelsOnNode HOST:PORT"
    )
    return fail(f"{said}; nothing is guaranteed to a queue where no node is", fix)


def resources(facts: Facts) -> CheckResult:
    """Requests for other resources than memory and vcores are not modelled: yarnctl leaves them out."""
    if facts.nodes is None and facts.counted is None:
        return unknown(facts.unseen("nodes"))
    known = {name for node in facts.nodes or () if node.capacity is not None for name in node.capacity.others}
    others = sorted({shown_name(name) for name in known | set(facts.counted or ()) - MODELLED})
    if not others:
        return ok("memory and vcores alone")
    fix = "let what yarnctl is to serve or preempt request memory and vcores alone (docs/limitations.md)"
    return warn(
        f"requests for {', '.join(others)} are left out, and containers that hold it are no victims", fix
    )


def share_queues(facts: Facts, names: tuple[str, ...]) -> tuple[tuple[Leaf, ...], CheckResult | None]:
    """Return the leaves by these names whose shares count, or the one check result that replaces them."""
    found, word = leaf_queues(facts, names)
    return ((), _all_labelled(facts)) if word is None and facts.is_all_labelled else (found, word)


def queues(facts: Facts) -> CheckResult:
    """Hurried and patient jobs must be in different leaf queues that are running."""
    names = facts.preempting_queues + (() if facts.mode == "deadlines" else facts.preemptable_queues)
    found, word = leaf_queues(facts, names)
    if word is not None:
        return word
    stopped = [leaf for leaf in found if leaf.queue.state not in ("RUNNING", "")]
    if stopped:
        one = stopped[0]
        return warn(f"{one.path} is {one.queue.state}", f"set {CAPACITY}{one.path}.state=RUNNING")
    if facts.is_all_labelled:
        return ok(", ".join(leaf.path for leaf in found))
    return ok(", ".join(f"{leaf.path} {leaf.queue.guaranteed_percent:g} %" for leaf in found))


def preempting_share(facts: Facts) -> CheckResult:
    """Freed room goes to the queue furthest below its guarantee: that must be the hurried one."""
    if facts.mode == "deadlines":
        return ok("one queue by deadlines: shares do not matter")
    _, word = share_queues(facts, facts.preempting_queues + facts.preemptable_queues)
    if word is not None:
        return word
    ours = sum(leaf.queue.guaranteed_percent for leaf in facts.of(facts.preempting_queues))
    theirs = sum(leaf.queue.guaranteed_percent for leaf in facts.of(facts.preemptable_queues))
    first = facts.of(facts.preempting_queues)[0].path
    said = f"hurried {ours:g} %, victims {theirs:g} %"
    if ours <= 0:
        return fail(said, f"set {CAPACITY}{first}.capacity=95")
    if ours <= theirs:
        return warn(said, f"set {CAPACITY}{first}.capacity so that it covers what is to be won, e.g. 95")
    return ok(said)


def preemptable_share(facts: Facts) -> CheckResult:
    """With a guarantee of 0 % a queue may run one master only; what is guaranteed cannot be taken."""
    if facts.mode == "deadlines":
        return ok("one queue by deadlines: shares do not matter")
    found, word = share_queues(facts, facts.preemptable_queues)
    if word is not None:
        return word
    for leaf in found:
        share, most = leaf.queue.guaranteed_percent, leaf.queue.maximum_percent
        key = f"{CAPACITY}{leaf.path}.capacity"
        if share <= 0:
            return fail(f"{leaf.path} is guaranteed 0 %", f"set {key}=5")
        if share >= most:
            return fail(f"all that {leaf.path} can have is guaranteed: {share:g} %", f"set {key}=5")
        if share > 50:
            return warn(
                f"{leaf.path} is guaranteed {share:g} %: only more can be taken", f"lower {key}, e.g. to 5"
            )
    return ok(", ".join(f"{leaf.path} {leaf.queue.guaranteed_percent:g} %" for leaf in found))


def maxima(facts: Facts) -> CheckResult:
    """A queue that may not grow to the whole cluster leaves it half empty, and cannot use what is freed."""
    found, word = share_queues(
        facts, facts.preempting_queues + (() if facts.mode == "deadlines" else facts.preemptable_queues)
    )
    if word is not None:
        return word
    for leaf in found:
        if leaf.queue.maximum_percent < FULL_PERCENT:
            said = f"{leaf.path} may have {leaf.queue.maximum_percent:g} % at most"
            return warn(said, f"set {CAPACITY}{leaf.path}.maximum-capacity=100")
    return ok("each may have the whole cluster")


def user_limit(facts: Facts) -> CheckResult:
    """One user gets the queue's guarantee times user-limit-factor at most, whatever is free."""
    found, word = share_queues(
        facts, facts.preempting_queues + (() if facts.mode == "deadlines" else facts.preemptable_queues)
    )
    if word is not None:
        return word
    for leaf in found:
        factor, share = leaf.queue.user_limit_factor, leaf.queue.guaranteed_percent
        if factor < 0:
            continue
        if share * factor < leaf.queue.maximum_percent - 1:
            least = -(-leaf.queue.maximum_percent // max(share, 0.01))
            said = f"one user of {leaf.path} may have {share * factor:g} % (factor {factor:g})"
            return warn(said, f"set {CAPACITY}{leaf.path}.user-limit-factor={least:.0f} (or -1 from 3.4.0)")
    return ok("one user may fill each queue")


def user_share(facts: Facts) -> CheckResult:
    """Where users share a queue, the job with the earliest deadline gets its user's share only."""
    factors = user_limit(facts)
    if factors.severity != "ok":
        return factors
    for leaf in facts.of(facts.preempting_queues):
        key = f"{leaf.path}.minimum-user-limit-percent"
        fix = f"set {CAPACITY}{key}=100"
        shown = leaf.queue.user_limit_percent
        percent = number_of(facts.capacity(key)) if shown is None else shown
        if percent is None:
            return unknown(_hidden(facts, f"how users share {leaf.path} is not shown"), f"see to it: {fix}")
        if percent < FULL_PERCENT:
            said = f"users of {leaf.path} share it, down to {percent:g} % each"
            return warn(said, fix)
    return ok("one user may have the whole queue, whoever else waits")


def ordering_policy(facts: Facts) -> CheckResult:
    """Deadlines are kept by priorities, and of a leaf queue's orders only fifo heeds them; fair does not."""
    found, word = leaf_queues(facts, facts.preempting_queues)
    if word is not None:
        return word
    for leaf in found:
        key = f"{leaf.path}.ordering-policy"
        fix = f"set {CAPACITY}{key}=fifo"
        name = (leaf.queue.ordering_policy or facts.capacity(key) or "").strip()
        if not name:
            return unknown(_hidden(facts, f"the order within {leaf.path} is not shown"), f"see to it: {fix}")
        if name not in BY_PRIORITY:
            return fail(f"{leaf.path} is served in the order {name}, whatever the priorities are", fix)
    return ok(", ".join(f"{leaf.path} by priority, then as they came" for leaf in found))


def _hidden(facts: Facts, said: str) -> str:
    """Say what is not known, and why the scheduler's own keys do not tell it."""
    return f"{said}; {facts.unseen('scheduler', 'its key is not set where it could be read')}"


def am_share(facts: Facts) -> CheckResult:
    """A job whose ApplicationMaster may not start gains nothing by freed room; the default 0.1 starts one."""
    fix = f"set {CAPACITY}maximum-am-resource-percent=0.5"
    names = facts.preempting_queues + (facts.preemptable_queues if facts.mode == "queues" else ())
    found, word = leaf_queues(facts, names)
    if word is not None:
        return word
    waiting = [leaf for leaf in found if leaf.queue.applications_pending > 0]
    if waiting:
        number = waiting[0].queue.applications_pending
        return warn(f"{number} applications of {waiting[0].path} are not activated", fix)
    told = [_am_ratio(facts, leaf) for leaf in found]
    ratio = None if None in told else min([one for one in told if one is not None], default=None)
    if ratio is None:
        seen = facts.unseen("scheduler", "capacity-scheduler.xml is not shown")
        return unknown(f"nobody waits for it now; {seen}", f"see that it is so: {fix}")
    return warn(f"{ratio:g} of a queue", fix) if ratio < AM_RATIO_MIN else ok(f"{ratio:g} of a queue")


def _am_ratio(facts: Facts, leaf: Leaf) -> float | None:
    """Return the share of a queue that masters may use: its own key, or that of all queues."""
    key = "maximum-am-resource-percent"
    own = number_of(facts.capacity(f"{leaf.path}.{key}"))
    return number_of(facts.capacity(key)) if own is None else own


def masters(facts: Facts) -> CheckResult:
    """A job that is suspended whole keeps its master: masters must not fill what research only borrows."""
    names = facts.preempting_queues if facts.mode == "deadlines" else facts.preemptable_queues
    found, word = share_queues(facts, names)
    if word is not None:
        return word
    told = []
    for leaf in found:
        key = f"{CAPACITY}{leaf.path}.maximum-am-resource-percent"
        ratio = _am_ratio(facts, leaf)
        if ratio is None:
            seen = facts.unseen("scheduler", "capacity-scheduler.xml is not shown")
            return unknown(f"what masters of {leaf.path} may use is not shown; {seen}", f"see to it: {key}")
        share = MastersShare.of(leaf, ratio, facts.mode == "deadlines")
        said = f"masters of {leaf.path} may use {share.masters_percent:g} % of the cluster"
        said += f", {share.given_back_percent:g} % can be taken back"
        if share.can_fill and ratio > AM_RATIO_MIN:
            return warn(f"{said}: they can fill it", f"set {key}={share.fitting_ratio:g}")
        told.append(said)
    return ok("; ".join(told))


class MastersShare(NamedTuple):
    """What a queue's masters may use, and what the queue can be made to give back; parts of the cluster."""

    masters_percent: float
    given_back_percent: float
    fitting_ratio: float

    @classmethod
    def of(cls, leaf: Leaf, am_ratio: float, is_only_queue: bool) -> MastersShare:
        """Compute it; of the only queue (by deadlines) all can be given back, else what is borrowed.

        A queue's limit for masters is a part of what it may grow to (docs/facts/hadoop.md, 5). It fits where
        each master that it lets in leaves room for one container of work: half of what can be given back.
        """
        most = leaf.queue.maximum_percent
        back = most if is_only_queue else max(0.0, most - leaf.queue.guaranteed_percent)
        fitting = math.floor(back / (2 * most) * 100) / 100 if most > 0 else 0.0
        return cls(am_ratio * most, back, max(AM_RATIO_MIN, fitting))

    @property
    def can_fill(self) -> bool:
        """Return whether masters alone can use all that can be given back."""
        return 0 < self.given_back_percent <= self.masters_percent


def max_priority(facts: Facts) -> CheckResult:
    """With --mode deadlines yarnctl orders jobs by priority; a maximum of 0 caps all of them silently."""
    if facts.mode != "deadlines":
        return ok("not needed without --mode deadlines")
    if facts.configuration is None:
        return unknown(not_in_conf(facts))
    most = number_of(facts.setting(MAX_PRIORITY)) or 0
    if most <= 0:
        return fail(f"{MAX_PRIORITY} is 0", f"set {MAX_PRIORITY}=10 (yarn-site.xml)")
    if facts.orders_by_deadline and most < PRIORITY_LEVELS_MIN:
        said = f"{MAX_PRIORITY} is {most:g}: few levels to tell deadlines apart"
        return warn(said, f"set {MAX_PRIORITY}={PRIORITY_LEVELS_MIN} or more (yarn-site.xml)")
    return ok(f"{MAX_PRIORITY} is {most:g}")


def calculator(facts: Facts) -> CheckResult:
    """We count MiB and vcores; a scheduler that counts MiB only gives room where we see none."""
    key = "resource-calculator"
    told = facts.capacity(key)
    fix = (
        f"set {CAPACITY}{key}=org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
        " and start the ResourceManager again"
    )
    if told is not None:
        name = told.rpartition(".")[2]
        return ok(name) if name == "DominantResourceCalculator" else warn(name or "none is named", fix)
    if facts.counted is not None:
        said = f"it decides by {', '.join(facts.counted) or 'nothing'}"
        return ok(said) if "vcores" in facts.counted else warn(said, fix)
    reason = facts.unseen("scheduler", "capacity-scheduler.xml is not shown")
    return unknown(f"the default counts MiB only; {reason}", f"see that it is so: {fix}")


def locality_delay(facts: Facts) -> CheckResult:
    """A map that waits for its node lets patient jobs take the freed room in the same pass."""
    delay = number_of(facts.capacity("node-locality-delay"))
    fix = f"set {CAPACITY}node-locality-delay=-1"
    if delay is None:
        return unknown(
            facts.unseen("scheduler", "capacity-scheduler.xml is not shown"), f"see that it is so: {fix}"
        )
    return warn(f"{delay:g} missed chances", fix) if delay > 0 else ok("off")


def minimum_allocation(facts: Facts) -> CheckResult:
    """Asks are rounded up to this: a large one wastes room and makes sizes of victims and asks differ."""
    key = "yarn.scheduler.minimum-allocation-mb"
    if facts.configuration is None:
        return unknown(not_in_conf(facts))
    least = number_of(facts.setting(key)) or 1024
    if least > 1024:
        return warn(f"{key} is {least:g} MiB", f"set {key}=1024 or less (yarn-site.xml)")
    return ok(f"{key} is {least:g} MiB")


def _is_on(facts: Facts) -> bool:
    policies = facts.setting(POLICIES) or POLICY
    return is_true(facts.setting(MONITOR)) and POLICY in policies and not is_true(facts.setting(OBSERVE_ONLY))


def own_preemption(facts: Facts) -> CheckResult:
    """YARN's own preemption kills what yarnctl would save; yarnctl stands aside where it is on."""
    if facts.configuration is None:
        return unknown(not_in_conf(facts))
    if not _is_on(facts):
        return ok("off")
    found, word = leaf_queues(facts, facts.preemptable_queues)
    if word is not None:
        return word
    for leaf in found:
        if leaf.queue.preemption_disabled is not True:
            fix = f"set {CAPACITY}{leaf.path}.disable_preemption=true, or {MONITOR}=false (yarn-site.xml)"
            return fail(f"it is on for {leaf.path}", fix)
    return ok("on, but not for the victims' queues")


def intra_queue_preemption(facts: Facts) -> CheckResult:
    """YARN may also kill within a queue, for users and priorities; its victims lose their work just so."""
    if facts.configuration is None:
        return unknown(not_in_conf(facts))
    if not _is_on(facts) or not is_true(facts.setting(INTRA_QUEUE)):
        return ok("off")
    found, word = leaf_queues(
        facts, facts.preemptable_queues if facts.mode == "queues" else facts.preempting_queues
    )
    if word is not None:
        return word
    for leaf in found:
        if leaf.queue.intra_queue_preemption_disabled is not True:
            key = f"{CAPACITY}{leaf.path}.intra-queue-preemption.disable_preemption"
            return fail(
                f"it is on within {leaf.path}", f"set {key}=true, or {INTRA_QUEUE}=false (yarn-site.xml)"
            )
    return ok("on, but not within the victims' queues")
