"""The rules of fitness: what a cluster must be like, one function each.

Law: pure; see ``fitness``. A rule's docstring is why it matters, as users read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from yarnctl.attach.fitness import CAPACITY, Facts, Finding, Word, fail, ok, unknown, warn
from yarnctl.attach.standing import MONITOR, OBSERVE_ONLY, POLICIES, POLICY
from yarnctl.hadoop.views import Leaf

SPECULATION = "mapreduce.reduce.speculative"
SLOW_START = "mapreduce.job.reduce.slowstart.completedmaps"
MAX_PRIORITY = "yarn.cluster.max-application-priority"
CLOCK_WARN_MS, CLOCK_FAIL_MS = 5_000, 60_000
FULL_PERCENT = 99.0
AM_RATIO_MIN = 0.2

Rule = Callable[[Facts], Word]


def _true(text: str | None) -> bool:
    return (text or "").strip().lower() == "true"


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _version(facts: Facts) -> tuple[int, int] | None:
    match = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", facts.info.version if facts.info else "")
    return (int(match[1]), int(match[2])) if match else None


def _conf(facts: Facts) -> str:
    return "/conf: " + facts.reason("configuration", "it does not say")


# --- who answers ------------------------------------------------------------------------------


def version(facts: Facts) -> Word:
    """The answers that are known here are those of Hadoop 3.3 to 3.5."""
    found = _version(facts)
    if found is None:
        return unknown(facts.reason("info", "no version is told"))
    said = f"Hadoop {found[0]}.{found[1]}"
    if found < (3, 0):
        return fail(said, "upgrade to Hadoop 3.3 or later")
    if found < (3, 3):
        return warn(said, "upgrade to Hadoop 3.3 or later")
    return ok(said)


def signal(facts: Facts) -> Word:
    """A signal rings the runner's doorbell at once; without it the runner looks every 15 s (YARN-8693)."""
    found = _version(facts)
    if found is None:
        return unknown(facts.reason("info", "no version is told"))
    if found < (3, 3):
        return warn(
            "no signals to containers before 3.3.0", "upgrade to 3.3 or later, or expect slow answers"
        )
    return ok("containers can be signalled over REST")


def manager_ha(facts: Facts) -> Word:
    """After a failover yarnctl must know the other ResourceManagers, or it is blind."""
    enabled = facts.setting("yarn.resourcemanager.ha.enabled")
    if facts.configuration is None:
        return unknown(_conf(facts))
    if not _true(enabled):
        return ok("one ResourceManager")
    ids = [one for one in (facts.setting("yarn.resourcemanager.ha.rm-ids") or "").split(",") if one.strip()]
    if facts.managers < len(ids):
        return warn(f"{len(ids)} ResourceManagers, {facts.managers} given", "give --rm once for each of them")
    return ok(f"{facts.managers} ResourceManagers given")


def clock(facts: Facts) -> Word:
    """Ages, deadlines and remaining times compare the cluster's instants with ours."""
    ahead = facts.clock_ahead_ms
    if ahead is None:
        return unknown(facts.reason("clock_ahead_ms"))
    said = f"the cluster's clock is {abs(ahead) / 1000:.0f} s {'ahead' if ahead > 0 else 'behind'}"
    if abs(ahead) > CLOCK_FAIL_MS:
        return fail(said, "synchronise the clocks (NTP) of this host and the cluster")
    if abs(ahead) > CLOCK_WARN_MS:
        return warn(said, "synchronise the clocks (NTP) of this host and the cluster")
    return ok("clocks agree within a few seconds")


def caller(facts: Facts) -> Word:
    """Kills and priorities are done in our name; the static user dr.who owns nothing."""
    if facts.caller is None:
        return unknown(facts.reason("caller"))
    user = facts.caller.user.partition("@")[0].partition("/")[0]
    fix = (
        "keep hadoop.http.filter.initializers at its default, or add "
        "org.apache.hadoop.security.AuthenticationFilterInitializer to it; and give --user"
    )
    if user in ("", "dr.who", "null"):
        return fail(f"we are {user or 'nobody'} to the ResourceManager", fix)
    if facts.us and user != facts.us:
        return warn(f"we are {user}, not {facts.us}, to the ResourceManager", fix)
    return ok(f"we are {user}")


# --- the scheduler ----------------------------------------------------------------------------


def scheduler(facts: Facts) -> Word:
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
    return unknown(facts.reason("leaves"))


def _queues(facts: Facts, names: tuple[str, ...]) -> tuple[tuple[Leaf, ...], Word | None]:
    """Return the leaves by these names, or the word that stands for all of them."""
    if facts.leaves is None:
        return (), unknown(facts.reason("leaves"))
    missing = [name for name in names if not facts.of((name,))]
    if missing:
        said = f"no leaf queue {', '.join(missing)}; there are {', '.join(one.name for one in facts.leaves)}"
        return (), fail(said, f"add it to {CAPACITY}root.queues, or name others with --hurried and --victims")
    return facts.of(names), None


def queues(facts: Facts) -> Word:
    """Hurried and patient jobs must be in different leaf queues that are running."""
    names = facts.hurried + (() if facts.mode == "deadlines" else facts.victims)
    found, word = _queues(facts, names)
    if word is not None:
        return word
    stopped = [leaf for leaf in found if leaf.queue.state not in ("RUNNING", "")]
    if stopped:
        one = stopped[0]
        return warn(f"{one.path} is {one.queue.state}", f"set {CAPACITY}{one.path}.state=RUNNING")
    return ok(", ".join(f"{leaf.name} {leaf.queue.guaranteed_percent:g} %" for leaf in found))


def hurried_share(facts: Facts) -> Word:
    """Freed room goes to the queue furthest below its guarantee: that must be the hurried one."""
    if facts.mode == "deadlines":
        return ok("one queue by deadlines: shares do not matter")
    _, word = _queues(facts, facts.hurried + facts.victims)
    if word is not None:
        return word
    ours = sum(leaf.queue.guaranteed_percent for leaf in facts.of(facts.hurried))
    theirs = sum(leaf.queue.guaranteed_percent for leaf in facts.of(facts.victims))
    first = facts.of(facts.hurried)[0].path
    said = f"hurried {ours:g} %, victims {theirs:g} %"
    if ours <= 0:
        return fail(said, f"set {CAPACITY}{first}.capacity=95")
    if ours <= theirs:
        return warn(said, f"set {CAPACITY}{first}.capacity so that it covers what is to be won, e.g. 95")
    return ok(said)


def victim_share(facts: Facts) -> Word:
    """With a guarantee of 0 % a queue may run one master only; what is guaranteed cannot be taken."""
    if facts.mode == "deadlines":
        return ok("one queue by deadlines: shares do not matter")
    found, word = _queues(facts, facts.victims)
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
    return ok(", ".join(f"{leaf.name} {leaf.queue.guaranteed_percent:g} %" for leaf in found))


def maxima(facts: Facts) -> Word:
    """A queue that may not grow to the whole cluster leaves it half empty, and cannot use what is freed."""
    found, word = _queues(facts, facts.hurried + (() if facts.mode == "deadlines" else facts.victims))
    if word is not None:
        return word
    for leaf in found:
        if leaf.queue.maximum_percent < FULL_PERCENT:
            said = f"{leaf.path} may have {leaf.queue.maximum_percent:g} % at most"
            return warn(said, f"set {CAPACITY}{leaf.path}.maximum-capacity=100")
    return ok("each may have the whole cluster")


def user_limit(facts: Facts) -> Word:
    """One user gets the queue's guarantee times user-limit-factor at most, whatever is free."""
    found, word = _queues(facts, facts.hurried + (() if facts.mode == "deadlines" else facts.victims))
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


def am_share(facts: Facts) -> Word:
    """A job whose ApplicationMaster may not start gains nothing by freed room; the default 0.1 starts one."""
    fix = f"set {CAPACITY}maximum-am-resource-percent=0.5"
    found, word = _queues(facts, facts.hurried + facts.victims if facts.mode == "queues" else facts.hurried)
    if word is not None:
        return word
    waiting = [leaf for leaf in found if leaf.queue.applications_pending > 0]
    if waiting:
        number = waiting[0].queue.applications_pending
        return warn(f"{number} applications of {waiting[0].path} are not activated", fix)
    ratio = _number(facts.capacity("maximum-am-resource-percent"))
    if ratio is None:
        seen = facts.reason("scheduler", "capacity-scheduler.xml is not shown")
        return unknown(f"nobody waits for it now; {seen}", f"see that it is so: {fix}")
    return warn(f"{ratio:g} of a queue", fix) if ratio < AM_RATIO_MIN else ok(f"{ratio:g} of a queue")


def max_priority(facts: Facts) -> Word:
    """With --mode deadlines yarnctl orders jobs by priority; a maximum of 0 caps all of them silently."""
    if facts.mode != "deadlines":
        return ok("not needed without --mode deadlines")
    if facts.configuration is None:
        return unknown(_conf(facts))
    most = _number(facts.setting(MAX_PRIORITY)) or 0
    if most <= 0:
        return fail(f"{MAX_PRIORITY} is 0", f"set {MAX_PRIORITY}=10 (yarn-site.xml)")
    return ok(f"{MAX_PRIORITY} is {most:g}")


def locality_delay(facts: Facts) -> Word:
    """A map that waits for its node lets patient jobs take the freed room in the same pass."""
    delay = _number(facts.capacity("node-locality-delay"))
    fix = f"set {CAPACITY}node-locality-delay=-1"
    if delay is None:
        return unknown(
            facts.reason("scheduler", "capacity-scheduler.xml is not shown"), f"see that it is so: {fix}"
        )
    return warn(f"{delay:g} missed chances", fix) if delay > 0 else ok("off")


def minimum_allocation(facts: Facts) -> Word:
    """Asks are rounded up to this: a large one wastes room and makes sizes of victims and asks differ."""
    key = "yarn.scheduler.minimum-allocation-mb"
    if facts.configuration is None:
        return unknown(_conf(facts))
    least = _number(facts.setting(key)) or 1024
    if least > 1024:
        return warn(f"{key} is {least:g} MiB", f"set {key}=1024 or less (yarn-site.xml)")
    return ok(f"{key} is {least:g} MiB")


def own_preemption(facts: Facts) -> Word:
    """YARN's own preemption kills what yarnctl would save; yarnctl stands aside where it is on."""
    if facts.configuration is None:
        return unknown(_conf(facts))
    policies = facts.setting(POLICIES) or POLICY
    if not _true(facts.setting(MONITOR)) or POLICY not in policies or _true(facts.setting(OBSERVE_ONLY)):
        return ok("off")
    found, word = _queues(facts, facts.victims)
    if word is not None:
        return word
    for leaf in found:
        if leaf.queue.preemption_disabled is not True:
            fix = f"set {CAPACITY}{leaf.path}.disable_preemption=true, or {MONITOR}=false (yarn-site.xml)"
            return fail(f"it is on for {leaf.path}", fix)
    return ok("on, but not for the victims' queues")


# --- rights -----------------------------------------------------------------------------------


def acls(facts: Facts) -> Word:
    """Where ACLs count, stopping an attempt and setting a priority need the right to administer the queue."""
    if facts.configuration is None:
        return unknown(_conf(facts))
    if not _true(facts.setting("yarn.acl.enable")):
        return ok("yarn.acl.enable is false: anybody may, and so may we")
    admins = facts.setting("yarn.admin.acl")
    if _listed(facts.us, "*" if admins is None else admins):
        return ok("yarn.admin.acl names us")
    found, word = _queues(facts, facts.hurried + facts.victims if facts.mode == "queues" else facts.hurried)
    if word is not None:
        return word
    if facts.scheduler is None:
        reason = facts.reason("scheduler", "capacity-scheduler.xml is not shown")
        return unknown(f"yarn.acl.enable is true; {reason}", f"let each acl_administer_queue name {facts.us}")
    for leaf in found:
        told = _queue_acls(facts, leaf.path)
        if any(_listed(facts.us, acl) for acl in told):
            continue
        fix = f"set {CAPACITY}{leaf.path}.acl_administer_queue={facts.us or 'yarnctl'}"
        if any(acl.partition(" ")[2].strip() for acl in told):
            return unknown(f"{leaf.path} is administered by groups, and ours are not known here", fix)
        return fail(f"{facts.us or 'we'} may not administer {leaf.path}", fix)
    return ok("we may administer the queues")


def _queue_acls(facts: Facts, path: str) -> list[str]:
    """Return the ACLs that grant administration of a queue: its own and those above it (root: everybody)."""
    parts = path.split(".")
    above = [".".join(parts[: end + 1]) for end in range(len(parts))]
    default = {"root": "*"}
    told = [(facts.capacity(f"{one}.acl_administer_queue"), default.get(one, " ")) for one in above]
    return [otherwise if acl is None else acl for acl, otherwise in told]


def _listed(user: str, acl: str) -> bool:
    """Say whether an ACL ("users groups") names a user or everybody; groups are not known here."""
    users = acl.partition(" ")[0]
    return acl.strip() == "*" or (bool(user) and user in users.split(","))


# --- jobs' defaults ---------------------------------------------------------------------------


def speculation(facts: Facts) -> Word:
    """Two attempts of one reduce cannot share a checkpoint: the runner refuses jobs that speculate."""
    fix = f"set {SPECULATION}=false (mapred-site.xml, or the job; yarnctl wrap does)"
    told = facts.setting(SPECULATION)
    if told is None:
        return unknown(f"the ResourceManager does not tell {SPECULATION}; its default is true", fix)
    return ok("off by default") if told.lower() == "false" else warn("on by default", fix)


def slow_start(facts: Facts) -> Word:
    """Where reduces wait for all maps nothing is asked for in between: patient jobs take the room back."""
    told = _number(facts.setting(SLOW_START))
    fix = f"set {SLOW_START}=0.05 for hurried jobs (mapred-site.xml)"
    if told is None:
        return unknown(f"the ResourceManager does not tell {SLOW_START}; its default is 0.05", fix)
    return warn(f"{told:g}", fix) if told >= 0.95 else ok(f"{told:g}")


# --- HDFS -------------------------------------------------------------------------------------


def webhdfs(facts: Facts) -> Word:
    """Checkpoints and requests travel over WebHDFS; without it nothing can be saved."""
    if facts.webhdfs:
        return ok("it answers")
    return fail(
        facts.reason("webhdfs"), "give --name-node, and keep dfs.webhdfs.enabled=true (hdfs-site.xml)"
    )


def permissions(facts: Facts) -> Word:
    """Without permissions any tenant may change another's checkpoints and requests."""
    for source in (facts.name_node, facts.configuration):
        told = None if source is None else source.get("dfs.permissions.enabled")
        if told is not None:
            fix = "set dfs.permissions.enabled=true (hdfs-site.xml of the NameNode)"
            return ok("on") if _true(told) else fail("off", fix)
    return unknown(f"the NameNode's /conf: {facts.reason('name_node', 'it does not say')}")


def isolation(facts: Facts) -> Word:
    """With simple authentication everybody may say to be anybody: good will alone keeps tenants apart."""
    told = (facts.name_node or {}).get("hadoop.security.authentication") or facts.setting(
        "hadoop.security.authentication"
    )
    if told is None:
        return unknown(_conf(facts))
    if told.strip().lower() == "kerberos":
        return ok("Kerberos")
    fix = "set hadoop.security.authentication=kerberos (core-site.xml), if tenants must not trust each other"
    return warn(f"{told} authentication: names are not proven", fix)


def requests_root(facts: Facts) -> Word:
    """Runners obey requests only in a folder that is ours and that nobody else may write to."""
    root, found = facts.requests_root, facts.requests
    us = facts.us or "yarnctl"
    fix = f"hdfs dfs -mkdir -p {root} && hdfs dfs -chown {us} {root} && hdfs dfs -chmod 755 {root}"
    if found is None:
        if root in facts.absent:
            return warn(f"{root} is not there yet", fix)
        return unknown(facts.reason("requests"))
    if found.kind != "DIRECTORY":
        return fail(f"{root} is no folder", fix)
    if found.owner != us or not found.mode & 0o200:
        return fail(f"{root} belongs to {found.owner}, mode {found.mode:o}: we may not write to it", fix)
    if found.mode & 0o022:
        return fail(f"{root} may be written to by others (mode {found.mode:o})", fix)
    return ok(f"{root} is ours, mode {found.mode:o}")


def store_root(facts: Facts) -> Word:
    """Each job's user makes a folder of its own here, and none may move another's: mode 1777."""
    root, found = facts.store_root, facts.store
    fix = f"hdfs dfs -mkdir -p {root} && hdfs dfs -chmod 1777 {root}"
    if found is None:
        if root in facts.absent:
            return warn(f"{root} is not there yet", fix)
        return unknown(facts.reason("store"))
    if found.kind != "DIRECTORY":
        return fail(f"{root} is no folder", fix)
    if found.mode & 0o022 and not found.mode & 0o1000:
        return fail(f"{root} may be written to by others and is not sticky (mode {found.mode:o})", fix)
    if not found.mode & 0o002:
        return warn(f"only {found.owner} and its group may use {root} (mode {found.mode:o})", fix)
    return ok(f"mode {found.mode:o}")


RULES: dict[str, Rule] = {
    "version": version,
    "signal": signal,
    "rm-ha": manager_ha,
    "clock": clock,
    "caller": caller,
    "scheduler": scheduler,
    "queues": queues,
    "hurried-share": hurried_share,
    "victim-share": victim_share,
    "maxima": maxima,
    "user-limit": user_limit,
    "am-share": am_share,
    "max-priority": max_priority,
    "locality-delay": locality_delay,
    "minimum-allocation": minimum_allocation,
    "own-preemption": own_preemption,
    "acls": acls,
    "speculation": speculation,
    "slow-start": slow_start,
    "webhdfs": webhdfs,
    "permissions": permissions,
    "isolation": isolation,
    "requests-root": requests_root,
    "store-root": store_root,
}
"""Every rule by the id of its finding, in the order in which they are shown."""


def judge(facts: Facts) -> tuple[Finding, ...]:
    """Return every rule's finding, in the dict's order."""
    rows = ((name, rule, rule(facts)) for name, rule in RULES.items())
    return tuple(
        Finding(name, word.severity, word.seen, (rule.__doc__ or "").strip(), word.fix)
        for name, rule, word in rows
    )
