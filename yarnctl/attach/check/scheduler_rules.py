"""Preflight rules about the scheduler: queues, shares, limits, and how it counts.

``yarnctl check`` prints a rule's docstring as the reason why it matters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from yarnctl.attach.check.preflight import (
    CAPACITY,
    CheckResult,
    Facts,
    KeysFix,
    NotJudged,
    Unseen,
    fail,
    hadoop_version,
    in_roles,
    leaf_queues,
    no_leaf_yet,
    number_of,
    ok,
    require_configuration,
    set_keys,
    unknown,
    warn,
)
from yarnctl.attach.check.queue_shares import ShareTree, share_plan
from yarnctl.attach.check.unmodelled import UnmodelledFeature, unmodelled
from yarnctl.deciding.queue_names import NamedQueues, resolved
from yarnctl.hadoop.resource_manager import LEAST_KEYS, USE_CAPACITY_SCHEDULER
from yarnctl.hadoop.wire.calculator import DOMINANT, shown_calculator
from yarnctl.hadoop.wire.calculator import KEY as CALCULATOR
from yarnctl.hadoop.wire.calculator import UNKNOWN as UNKNOWN_CALCULATOR
from yarnctl.hadoop.wire.node_activities import YarnWords
from yarnctl.hadoop.wire.views import Leaf, leaves, other_resources, shown_name
from yarnctl.hadoop.wire.yarn import MODELLED, QueueInfo, label_in
from yarnctl.journal.rendering import joined
from yarnctl.units import NOTHING, Resources

MAX_PRIORITY = "yarn.cluster.max-application-priority"
FULL_PERCENT = 99.0
AM_RATIO_MIN, AM_RATIO_GOOD = 0.2, 0.5
ONE_QUEUE = "not needed with --mode deadlines: production and research share one queue"
BY_GUARANTEE = "not needed with --mode guarantees: each queue takes up to its own guarantee"
PRIORITY_LEVELS_MIN = 10  # With fewer, jobs with different deadlines share one, in order of arrival
RESTART = " and restart the ResourceManager"
BY_PRIORITY = "fifo"  # And its variants, by name or class: they serve the higher priority first


def scheduler(facts: Facts) -> CheckResult:
    """Only with the capacity scheduler can yarnctl predict which application gets a freed container."""
    name = facts.setting("yarn.resourcemanager.scheduler.class")
    if facts.root is not None:
        return ok("the capacity scheduler is in use")
    other = facts.other_scheduler
    if not other and name is not None and not name.endswith(".CapacityScheduler"):
        other = name.rpartition(".")[2]
    return (
        fail(f"{other} is not supported", USE_CAPACITY_SCHEDULER) if other else unknown(facts.unseen("root"))
    )


def budgets(facts: Facts) -> CheckResult:
    """The daemon does not start with a budgets file that names another queue."""
    if facts.root is None:
        return unknown(facts.unseen("root"))
    names = facts.budget_queues or ()
    named = NamedQueues(
        preemptable=facts.preemptable_queues, budgets=names, left_alone=facts.queues_left_alone
    )
    problems = resolved(named, facts.queues).problems
    if problems:
        return fail(joined(problems), "name preemptable leaf queues in the budgets file")
    return ok(f"the budgets file names {', '.join(names) or 'no queue'}")


def labels(facts: Facts) -> CheckResult:
    """The nodes of each label are a cluster of their own. A queue needs capacity where its jobs request."""
    if facts.nodes is None:
        return unknown(facts.unseen("nodes"))
    used = facts.of(facts.used_queues)
    for leaf in used:
        label = label_in(leaf.queue.default_label) or ""
        if label and not _has_capacity(leaf, label):
            said = f"{leaf.path} requests nodes with the label {shown_name(label)} by default"
            key = f"{CAPACITY}{leaf.path}.accessible-node-labels.{label}.capacity"
            return fail(f"{said}, of which it has no capacity", f"set {key} (and of its parents)")
    if facts.is_all_labelled and not all(label_in(leaf.queue.default_label) for leaf in used):
        return _all_labelled(facts)
    if not (named := _labels(facts)):
        return ok("no node has a label")
    rows = [
        f"label {shown_name(label)}: "
        + (", ".join(leaf.path for leaf in used if _has_capacity(leaf, label)) or "none of these queues")
        for label in sorted({node.partition for node in facts.nodes if node.partition})
    ]
    return ok(f"nodes with a label: {named}; queues with capacity of {'; of '.join(rows)}")


def _has_capacity(leaf: Leaf, label: str) -> bool:
    share = leaf.queue.share_of(label)
    if share is None:
        return False
    return share.maximum_percent > 0 if share.maximum is None else share.maximum.memory_mib > 0


def _labels(facts: Facts) -> str:
    counts = Counter(shown_name(node.partition) for node in facts.nodes or () if node.partition)
    return ", ".join(f"{label} ({count})" for label, count in sorted(counts.items()))


def _all_labelled(facts: Facts) -> CheckResult:
    said = f"all {len(facts.nodes or ())} nodes have a label: {_labels(facts)}"
    said += "; requests without a label get no container, and queues have no guarantee for them"
    fix = f"set {CAPACITY}QUEUE.default-node-label-expression, or remove the label from nodes:"
    return fail(said, f"{fix} yarn rmadmin -replaceLabelsOnNode HOST:PORT")


def resources(facts: Facts) -> CheckResult:
    """Every countable resource type that nodes have is modelled."""
    if facts.nodes is None and facts.counted is None:
        return unknown(facts.unseen("nodes"))
    others, nodes = _other_resources(facts), other_resources(facts.nodes or ())
    if not others:
        return ok("memory and vcores only")
    *first, last = ("memory", "vcores", *others)
    missing = sorted(set(others) - {shown_name(name) for name in nodes}) if facts.nodes is not None else ()
    if missing:
        fix = "add it to node-resources.xml of the nodes, or remove it from resource-types.xml"
        return warn(f"no node has {', '.join(missing)}: requests for it are never served", fix)
    return ok(f"{', '.join(first)} and {last}")


def _other_resources(facts: Facts) -> list[str]:
    known = set(other_resources(facts.nodes or ()))
    return sorted({shown_name(name) for name in known | set(facts.counted or ()) - MODELLED})


def share_queues(facts: Facts, names: tuple[str, ...]) -> tuple[Leaf, ...]:
    """Return the leaf queues by these names with their shares. Raises NotJudged without shares."""
    found = leaf_queues(facts, names)
    if facts.is_all_labelled:
        raise NotJudged(_all_labelled(facts))
    return found


def queues(facts: Facts) -> CheckResult:
    """Production and research jobs must use different leaf queues, both in state RUNNING."""
    roles = in_roles(facts, facts.used_queues)
    found = facts.of(facts.used_queues)
    stopped = [leaf for leaf in found if leaf.queue.state not in ("RUNNING", "")]
    if stopped and facts.mode != "guarantees":  # There no option named it: it may be stopped on purpose
        chains = [one for leaf in stopped for one in facts.chain(leaf.path)]
        keys = {f"{one.path}.state": "RUNNING" for one in chains if one.queue.state not in ("RUNNING", "")}
        said = ", ".join(f"{leaf.path} is {leaf.queue.state}" for leaf in stopped)
        return warn(said, set_keys(facts, keys))
    parts = []
    for leaf in found:
        share = "" if facts.is_all_labelled else f" {leaf.queue.guaranteed_percent:g} %"
        parts.append(f"{leaf.path}{share}{f' ({leaf.queue.state})' if leaf in stopped else ''}")
    if none_yet := no_leaf_yet(facts, facts.used_queues):
        parts.append(none_yet)
    if not all(facts.of(role) for role in roles if role):
        return warn(", ".join(parts), "submit an application below the parent queue, or add a leaf queue")
    return ok(", ".join(parts))


def pending_leaves(facts: Facts) -> list[Leaf]:
    """Return the preempting queues with pending requests."""
    found = facts.of(facts.preempting_queues)
    return [leaf for leaf in found if leaf.queue.pending_containers > 0 or leaf.queue.pending() > NOTHING]


def pending(facts: Facts) -> CheckResult:
    """YARN's own words about pending production requests, from nodes with free capacity."""
    found = {
        leaf.path: str(YarnWords(record.node, at, diagnostic))
        for leaf in pending_leaves(facts)
        for record in reversed(facts.activities or ())
        for at, diagnostic in (record.words(None, leaf.path),)
        if diagnostic
    }
    if not found:
        return ok("production requests are pending; YARN has no record about them")
    said = "; ".join(f"{path} has pending requests: {words}" for path, words in found.items())
    if not any(word in said for word in LIMIT_WORDS):
        return ok(said)
    return warn(said, "raise the limit that YARN names, or wait until applications below it end")


LIMIT_WORDS = ("max-capacity", "headroom", "partition")
"""Words of the diagnostics that name a limit, which freed containers may not relieve."""


def features(facts: Facts) -> CheckResult:
    """A feature of the scheduler that yarnctl does not model makes its forecasts wrong."""
    found = _unmodelled(facts)
    if not found:
        return ok("none that yarnctl does not model")
    keys = {one.key.removeprefix(CAPACITY): one.value for one in found if one.key.startswith(CAPACITY)}
    others = [f"{one.key}={one.value} (yarn-site.xml)" for one in found if not one.key.startswith(CAPACITY)]
    more = "".join(f"; set {text}" for text in others)
    more += "; or observe first, and compare yarnctl reclaims with what YARN grants"
    seen = f"not modelled: {'; '.join(str(one) for one in found)}"
    return warn(seen, set_keys(facts, keys, more) if keys else more.removeprefix("; "))


def _unmodelled(facts: Facts) -> tuple[UnmodelledFeature, ...]:
    if facts.root is None:
        return ()
    return unmodelled({**(facts.configuration or {}), **(facts.scheduler or {})}, facts.root)


def has_features(facts: Facts) -> bool:
    """Return whether a feature that is not modelled is seen."""
    return bool(_unmodelled(facts))


def preempting_share(facts: Facts) -> CheckResult:
    """YARN gives free containers to the queue furthest below its guarantee. Production must be that queue."""
    if facts.mode != "queues":
        return ok(ONE_QUEUE if facts.mode == "deadlines" else BY_GUARANTEE)
    share_queues(facts, facts.preempting_queues + facts.preemptable_queues)
    production = sum(leaf.queue.guaranteed_percent for leaf in facts.of(facts.preempting_queues))
    research = sum(leaf.queue.guaranteed_percent for leaf in facts.of(facts.preemptable_queues))
    said = f"guarantee of production {production:g} %, of research {research:g} %"
    if production > research:
        return ok(said)
    return (fail if production <= 0 else warn)(said, _shares_fix(facts))


def _share_tree(facts: Facts) -> ShareTree:
    assert facts.root is not None
    sizes = [node.total for node in facts.nodes or () if not node.partition]
    total = Resources(sum(size.memory_mib for size in sizes), sum(size.vcores for size in sizes))
    # A vector that is written without its other resources would take them from the queue
    return ShareTree(facts.root, NOTHING if _other_resources(facts) else total)


def _planned(facts: Facts) -> tuple[ShareTree, Mapping[str, str] | None]:
    """Return the tree with better shares, and the keys that make it so (None: no such change is known)."""
    tree = _share_tree(facts)
    production, research = (
        [leaf.path for leaf in facts.of(names)]
        for names in (facts.preempting_queues, facts.preemptable_queues)
    )
    return tree, share_plan(tree, production, research)


def _shares_fix(facts: Facts) -> str | KeysFix:
    """Return the one fix of all shares; each rule of shares prints the same, so that they fit together."""
    _, changes = _planned(facts)
    if changes and not _is_of_template(facts, changes):
        return set_keys(facts, changes)
    return (
        "set the capacity and maximum-capacity of these queues and their siblings so that each preemptable"
        " queue has a small capacity below its maximum, and the preempting queues have more"
    )


def _is_of_template(facts: Facts, changes: Mapping[str, str]) -> bool:
    """Return whether a capacity is one of several that a template gives alike: they add up differently."""
    made = {f"{leaf.path}.capacity" for leaf in facts.leaves if leaf.queue.template}
    return not made.isdisjoint(changes)


def preemptable_share(facts: Facts) -> CheckResult:
    """Only what a queue uses above its guarantee can be preempted. With 0 % it runs one application."""
    if facts.mode != "queues":
        return ok(ONE_QUEUE if facts.mode == "deadlines" else BY_GUARANTEE)
    found = share_queues(facts, facts.preemptable_queues)
    share_queues(facts, facts.used_queues)
    for leaf in found:
        share, most = leaf.queue.guaranteed_percent, leaf.queue.maximum_percent
        if share <= 0:
            return fail(f"{leaf.path} is guaranteed 0 %", _shares_fix(facts))
        if share >= most:
            said = f"the guarantee of {leaf.path} equals its maximum of {most:g} %: nothing can be preempted"
            return fail(said, _shares_fix(facts))
    for leaf in found:
        if (share := leaf.queue.guaranteed_percent) > 50:
            said = f"{leaf.path} is guaranteed {share:g} %: yarnctl can preempt only what it uses above that"
            return warn(said, _shares_fix(facts))
    return ok(", ".join(f"{leaf.path} {leaf.queue.guaranteed_percent:g} %" for leaf in found))


def maxima(facts: Facts) -> CheckResult:
    """A queue that may not grow to the whole cluster leaves it half empty, and cannot use what is freed."""
    if facts.mode == "guarantees":
        return ok("each queue may use its guarantee")
    low = [
        leaf for leaf in share_queues(facts, facts.used_queues) if leaf.queue.maximum_percent < FULL_PERCENT
    ]
    if not low:
        return ok("each queue may use the whole cluster")
    said = ", ".join(f"of {leaf.path} is {leaf.queue.maximum_percent:g} %" for leaf in low)
    tree = _share_tree(facts)
    for leaf in low:
        tree.widen(leaf.path)
    if tree.is_known:
        return warn(f"the maximum {said} of the cluster", set_keys(facts, tree.changes()))
    fix = f"raise maximum-capacity of {low[0].path} and of each queue above it to that of its parent"
    return warn(f"the maximum {said} of the cluster", fix)


def user_limit(facts: Facts) -> CheckResult:
    """One user gets at most the queue's guarantee times user-limit-factor, even if more is free."""
    whole = "guarantee" if facts.mode == "guarantees" else "maximum"
    low = [leaf for leaf in share_queues(facts, facts.used_queues) if _is_user_limited(leaf, whole)]
    if not low:
        return ok(f"one user may use each queue's {whole}")
    said = ", ".join(
        f"of {leaf.path} may use {leaf.queue.guaranteed_percent * leaf.queue.user_limit_factor:g} %"
        f" of the cluster (factor {leaf.queue.user_limit_factor:g})"
        for leaf in low
    )
    planned, changes = _planned(facts) if facts.mode == "queues" else (None, None)
    has_no_limit = (hadoop_version(facts) or (0, 0)) >= (3, 4)
    keys = {}
    for leaf in low:
        share = leaf.queue.guaranteed_percent
        if share <= 0 and not has_no_limit:
            return warn(f"one user {said}", f"set {CAPACITY}{leaf.path}.capacity above 0 %")
        if planned is not None and changes:  # Enough as it is, and after the other fixes
            share = min(share, planned[leaf.path].absolute)
        keys[f"{leaf.path}.user-limit-factor"] = f"{math.ceil(100 / share - 1e-6)}" if share > 0 else "-1"
    more = " (or -1)" if has_no_limit and set(keys.values()) != {"-1"} else ""
    return warn(f"one user {said}", set_keys(facts, keys, more))


def _is_user_limited(leaf: Leaf, whole: str) -> bool:
    queue = leaf.queue
    if whole == "guarantee":
        return 0 <= queue.user_limit_factor < 1
    reach = queue.guaranteed_percent * queue.user_limit_factor
    return queue.user_limit_factor >= 0 and reach < queue.maximum_percent - 1


def user_share(facts: Facts) -> CheckResult:
    """If users share a queue, the job with the earliest deadline gets only its user's share."""
    factors = user_limit(facts)
    if factors.severity != "ok":
        return factors
    for leaf in facts.of(facts.preempting_queues):
        key = f"{leaf.path}.minimum-user-limit-percent"
        fix = set_keys(facts, {key: "100"})
        shown = leaf.queue.user_limit_percent
        percent = number_of(facts.scheduler_key(key, "100")) if shown is None else shown
        if percent is None:
            return unknown(_hidden(facts, f"the user limit of {leaf.path} is unknown"), fix)
        if percent < FULL_PERCENT:
            said = f"users of {leaf.path} share it; a user's limit can drop to {percent:g} % of the queue"
            return warn(said, fix)
    return ok("one user may use the whole queue even if other users wait")


def ordering_policy(facts: Facts) -> CheckResult:
    """Deadlines are kept by priorities. Only the fifo ordering policy follows priorities."""
    found = leaf_queues(facts, facts.preempting_queues)
    for leaf in found:
        key = f"{leaf.path}.ordering-policy"
        fix = set_keys(facts, {key: "fifo"})
        name = (leaf.queue.ordering_policy or facts.scheduler_key(key, "fifo") or "").strip()
        if not name:
            return unknown(_hidden(facts, f"the ordering policy of {leaf.path} is unknown"), fix)
        if not name.lower().startswith(BY_PRIORITY):
            return fail(f"the ordering policy of {leaf.path} is {name}, which ignores priorities", fix)
    return ok(", ".join(f"{leaf.path} by priority, then by arrival" for leaf in found))


def _hidden(facts: Facts, said: str) -> str:
    return f"{said}; {_no_scheduler_keys(facts)}"


def am_share(facts: Facts) -> CheckResult:
    """A job can use freed containers only after its ApplicationMaster started. This share limits masters."""
    found = leaf_queues(facts, facts.used_queues)
    ratios = {leaf.path: _am_ratio(facts, leaf) for leaf in found}
    waiting = [leaf for leaf in found if leaf.queue.applications_pending > 0]
    if waiting:
        said = ", ".join(f"{leaf.queue.applications_pending} applications of {leaf.path}" for leaf in waiting)
        keys = {_am_key(leaf): _wider_am_share(facts, leaf, ratios[leaf.path]) for leaf in waiting}
        return warn(f"YARN has not activated {said}{_masters_used(waiting[0])}", set_keys(facts, keys))
    large = [leaf for leaf in found if (ratios[leaf.path] or 0) > 1]
    low = [leaf for leaf in found if (ratio := ratios[leaf.path]) is not None and ratio < AM_RATIO_MIN]
    if large:
        said = ", ".join(f"{ratios[leaf.path]:g} times {leaf.path}" for leaf in large)
        keys = {_am_key(leaf): f"{_good_am_ratio(facts, leaf):g}" for leaf in (*large, *low)}
        return warn(f"masters may use {said}; the key is a ratio, not a percentage", set_keys(facts, keys))
    if low:
        said = ", ".join(f"{(ratios[leaf.path] or 0) * 100:g} % of {leaf.path}" for leaf in low)
        keys = {_am_key(leaf): f"{_good_am_ratio(facts, leaf):g}" for leaf in low}
        return warn(f"masters may use {said}", set_keys(facts, keys))
    if None in ratios.values():
        fix = set_keys(facts, {_am_key(leaf): "0.5" for leaf in found if ratios[leaf.path] is None})
        return unknown(f"all applications are activated; {_no_scheduler_keys(facts)}", fix)
    said = ", ".join(f"{(ratio or 0) * 100:g} % of {path}" for path, ratio in ratios.items())
    return ok(f"masters may use {said}")


def parallel_applications(facts: Facts) -> CheckResult:
    """An application above max-parallel-apps does not start. Freed containers do not help it."""
    found = leaf_queues(facts, facts.used_queues)
    held = [leaf for leaf in found if leaf.queue.held_back > 0]
    if not held:
        return ok("no application waits for max-parallel-apps")
    said = ", ".join(f"{leaf.queue.held_back} applications of {leaf.path}" for leaf in held)
    keys = {}
    for leaf in held:
        for one in facts.chain(leaf.path):
            started = sum(below.applications_active + below.applications_pending for below in _leaves(one))
            if one.queue.parallel_max is not None and started >= one.queue.parallel_max:
                wanted = sum(below.applications for below in _leaves(one))
                keys[f"{one.path}.max-parallel-apps"] = str(wanted)
    seen = f"max-parallel-apps keeps {said} from starting"
    if keys:
        return warn(seen, set_keys(facts, keys))
    return warn(seen, f"raise {CAPACITY}user.max-parallel-apps, which limits each user")


def _leaves(leaf: Leaf) -> list[QueueInfo]:
    """Return the leaf queues at and below a queue."""
    return [one.queue for one in leaves(leaf.queue)]


def _masters_used(leaf: Leaf) -> str:
    limit, used = leaf.queue.am_limit, leaf.queue.am_used
    if limit is None or limit.memory_mib <= 0:
        return ""
    return (
        f"; masters of {leaf.path} use {used.memory_mib} of {limit.memory_mib} MiB"
        f" and {used.vcores} of {limit.vcores} vcores"
    )


def _am_key(leaf: Leaf) -> str:
    """Return the queue's own key, which overrides the key of all queues."""
    return f"{leaf.path}.maximum-am-resource-percent"


def _good_am_ratio(facts: Facts, leaf: Leaf) -> float:
    """Return a ratio for masters that ``am_share`` and ``masters`` accept."""
    judged = facts.preempting_queues if facts.mode == "deadlines" else facts.preemptable_queues
    if leaf not in facts.of(judged):
        return AM_RATIO_GOOD
    return min(AM_RATIO_GOOD, MastersShare.of(leaf, 0.0, facts.mode == "deadlines").fitting_ratio)


def _wider_am_share(facts: Facts, leaf: Leaf, ratio: float | None) -> str:
    good = _good_am_ratio(facts, leaf)
    return f"{good if ratio is None or ratio < good else 1:g}"


def _no_scheduler_keys(facts: Facts) -> Unseen:
    return facts.unseen("scheduler", "the ResourceManager does not show capacity-scheduler.xml")


def _am_ratio(facts: Facts, leaf: Leaf) -> float | None:
    """Return the ratio of a queue that masters may use: as shown, else its own key, else that of all."""
    if leaf.queue.am_ratio is not None:
        return leaf.queue.am_ratio
    own = number_of(facts.capacity(_am_key(leaf)))
    return number_of(facts.scheduler_key("maximum-am-resource-percent", "0.1")) if own is None else own


def masters(facts: Facts) -> CheckResult:
    """A suspended job keeps its ApplicationMaster. Masters must leave capacity that can be preempted."""
    names = facts.preempting_queues if facts.mode == "deadlines" else facts.preemptable_queues
    parts, wrong, keys = [], [], {}
    for leaf in share_queues(facts, names):
        ratio = _am_ratio(facts, leaf)
        if ratio is None:
            said = f"the share of masters of {leaf.path} is unknown; {_no_scheduler_keys(facts)}"
            return unknown(said, set_keys(facts, {_am_key(leaf): f"{AM_RATIO_MIN:g}"}))
        share = MastersShare.of(leaf, ratio, facts.mode == "deadlines")
        said = f"masters of {leaf.path} may use {min(share.masters_percent, 100):g} % of the cluster"
        said += f"; yarnctl can preempt {share.preemptable_percent:g} %"
        if 0 < share.preemptable_percent <= share.masters_percent and ratio > AM_RATIO_MIN:
            wrong.append(f"{said}, and masters can fill it")
            keys[_am_key(leaf)] = f"{share.fitting_ratio:g}"
        parts.append(said)
    return warn("; ".join(wrong), set_keys(facts, keys)) if wrong else ok("; ".join(parts))


class MastersShare(NamedTuple):
    """What a queue's masters may use and what yarnctl can preempt of the queue, in % of the cluster.

    ``fitting_ratio``: the largest ``maximum-am-resource-percent`` with which masters cannot fill it.
    """

    masters_percent: float
    preemptable_percent: float
    fitting_ratio: float

    @classmethod
    def of(cls, leaf: Leaf, am_ratio: float, is_only_queue: bool) -> MastersShare:
        """Compute the shares. All of the only queue can be preempted, else the part above its guarantee.

        A queue's limit for masters is a part of its maximum (docs/facts/hadoop.md, 5). It fits if each master
        leaves capacity for one container of work: half of what can be preempted.
        """
        most = leaf.queue.maximum_percent
        back = most if is_only_queue else max(0.0, most - leaf.queue.guaranteed_percent)
        fitting = math.floor(back / (2 * most) * 100) / 100 if most > 0 else 0.0
        return cls(am_ratio * most, back, max(AM_RATIO_MIN, fitting))


def max_priority(facts: Facts) -> CheckResult:
    """With --mode deadlines yarnctl sets priorities. YARN silently lowers each to this maximum."""
    if facts.mode != "deadlines":
        return ok("needed only with --mode deadlines")
    require_configuration(facts)
    most = number_of(facts.setting(MAX_PRIORITY)) or 0
    if most <= 0:
        return fail(f"{MAX_PRIORITY} is 0", f"set {MAX_PRIORITY}=10 (yarn-site.xml)")
    if facts.orders_by_deadline and most < PRIORITY_LEVELS_MIN:
        said = f"{MAX_PRIORITY} is {most:g}: jobs with different deadlines get the same priority"
        return warn(said, f"set {MAX_PRIORITY}={PRIORITY_LEVELS_MIN} or more (yarn-site.xml)")
    return ok(f"{MAX_PRIORITY} is {most:g}")


def calculator(facts: Facts) -> CheckResult:
    """Yarnctl counts as the scheduler does: memory and vcores, or memory alone, Hadoop's default."""
    if facts.root is None:
        return unknown(facts.unseen("root"))
    found = shown_calculator(facts.root, facts.nodes or (), facts.scheduler, facts.configuration)
    if found == "dominant":
        return ok("the scheduler counts every resource")
    if found == "memory":
        return ok("the scheduler counts memory alone")
    keys = {CALCULATOR.removeprefix(CAPACITY): DOMINANT}
    return unknown(f"{UNKNOWN_CALCULATOR}; {_no_scheduler_keys(facts)}", set_keys(facts, keys, RESTART))


def locality_delay(facts: Facts) -> CheckResult:
    """While a map waits for its preferred node, research can take the freed containers in the same pass."""
    delay = number_of(facts.scheduler_key("node-locality-delay", "40"))
    fix = set_keys(facts, {"node-locality-delay": "-1"})
    if delay is None:
        return unknown(_no_scheduler_keys(facts), fix)
    return warn(f"a request skips up to {delay:g} scheduling opportunities", fix) if delay > 0 else ok("off")


def minimum_allocation(facts: Facts) -> CheckResult:
    """YARN rounds requests up to this size. A large size wastes memory and makes container sizes differ."""
    key = LEAST_KEYS[0]
    require_configuration(facts)
    least = number_of(facts.setting(key)) or 1024
    if least > 1024:
        return warn(f"{key} is {least:g} MiB", f"set {key}=1024 or less (yarn-site.xml)")
    return ok(f"{key} is {least:g} MiB")
