"""Preflight rules about daemons, rights, queues that were left lowered, and the defaults of jobs.

Law: pure; see ``preflight``. A rule's docstring is its purpose, as users read it. Group membership is not
known here: a right that only a group could grant is "unknown".
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

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
from yarnctl.hadoop.addresses import WEB_PROXY
from yarnctl.hadoop.http.transport import NO_CONNECTION
from yarnctl.hadoop.lowered_queues import LoweredQueue, command_for, same_ratio

SPECULATION = "mapreduce.reduce.speculative"
SLOW_START = "mapreduce.job.reduce.slowstart.completedmaps"
CACHE = "yarn.apps.cache.enable"
CLOCK_WARN_MS, CLOCK_FAIL_MS = 5_000, 60_000


def _version(facts: Facts) -> tuple[int, int] | None:
    match = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", facts.info.version if facts.info else "")
    return (int(match[1]), int(match[2])) if match else None


# --- daemons and rights -----------------------------------------------------------------------


def version(facts: Facts) -> CheckResult:
    """The answers that are known here are those of Hadoop 3.3 to 3.5."""
    found = _version(facts)
    if found is None:
        return unknown(facts.unseen("info", "no version is told"))
    said = f"Hadoop {found[0]}.{found[1]}"
    if found < (3, 0):
        return fail(said, "upgrade to Hadoop 3.3 or later")
    if found < (3, 3):
        return warn(said, "upgrade to Hadoop 3.3 or later")
    return ok(said)


def signal(facts: Facts) -> CheckResult:
    """A signal rings the runner's doorbell at once; without it the runner looks every 15 s (YARN-8693)."""
    found = _version(facts)
    if found is None:
        return unknown(facts.unseen("info", "no version is told"))
    if found < (3, 3):
        return warn(
            "no signals to containers before 3.3.0", "upgrade to 3.3 or later, or expect slow answers"
        )
    return ok("containers can be signalled over REST")


def manager_ha(facts: Facts) -> CheckResult:
    """After a failover yarnctl must know the other ResourceManagers, or it is blind."""
    enabled = facts.setting("yarn.resourcemanager.ha.enabled")
    if facts.configuration is None:
        return unknown(not_in_conf(facts))
    if not is_true(enabled):
        return ok("one ResourceManager")
    ids = [one for one in (facts.setting("yarn.resourcemanager.ha.rm-ids") or "").split(",") if one.strip()]
    if facts.managers < len(ids):
        return warn(f"{len(ids)} ResourceManagers, {facts.managers} given", "give --rm once for each of them")
    return ok(f"{facts.managers} ResourceManagers given")


def clock(facts: Facts) -> CheckResult:
    """Ages, deadlines and remaining times compare the cluster's instants with ours."""
    ahead = facts.clock_ahead_ms
    if ahead is None:
        return unknown(facts.unseen("clock_ahead_ms"))
    said = f"the cluster's clock is {abs(ahead) / 1000:.0f} s {'ahead' if ahead > 0 else 'behind'}"
    if abs(ahead) > CLOCK_FAIL_MS:
        return fail(said, "synchronise the clocks (NTP) of this host and the cluster")
    if abs(ahead) > CLOCK_WARN_MS:
        return warn(said, "synchronise the clocks (NTP) of this host and the cluster")
    return ok("clocks agree within a few seconds")


def caller(facts: Facts) -> CheckResult:
    """Kills and priorities are done in our name; the static user dr.who owns nothing."""
    if facts.caller is None:
        return unknown(facts.unseen("caller"))
    user = facts.caller.user.partition("@")[0].partition("/")[0]
    fix = (
        "keep hadoop.http.filter.initializers at its default, or add "
        "org.apache.hadoop.security.AuthenticationFilterInitializer to it; and give --user"
    )
    if user in ("", "dr.who", "null"):
        return fail(f"we are {user or 'nobody'} to the ResourceManager", fix)
    if facts.caller_identity and user != facts.caller_identity:
        return warn(f"we are {user}, not {facts.caller_identity}, to the ResourceManager", fix)
    return ok(f"we are {user}")


def proxy(facts: Facts) -> CheckResult:
    """Masters, drivers and JobManagers are read, and their tasks ended, through YARN's web proxy."""
    found = facts.proxy
    if found is None:
        return unknown(facts.unseen("proxy"))
    where = f"{found.at} ({found.source})"
    if found.fault == "unknown-host":
        fix = f"make {urlsplit(found.at).hostname} known to this host by DNS or /etc/hosts"
        return fail(f"{found}: {where}", f"{fix}, or correct {WEB_PROXY} (yarn-site.xml)")
    if found.fault in NO_CONNECTION:
        fix = f"start the web proxy and let this host reach it, or correct {WEB_PROXY} (yarn-site.xml)"
        return fail(f"{where}: {found.said}", fix)
    if found.said:
        fix = f"see the logs of {found.application}'s master and of the web proxy"
        fix = f"{fix}; set {WEB_PROXY} (yarn-site.xml) if the proxy is elsewhere"
        return warn(f"no page of an application at {where}: {found.said}", fix)
    return ok(f"{where} shows the page of {found.application}")


def apps_cache(facts: Facts) -> CheckResult:
    """Decisions rest on lists of applications: a cache shows them as they were (YARN-11276, from 3.4.0)."""
    if facts.configuration is None:
        return unknown(not_in_conf(facts))
    if not is_true(facts.setting(CACHE)):
        return ok("off")
    age = facts.setting(f"{CACHE.removesuffix('.enable')}.expire") or "30s"
    return warn(f"lists of applications are up to {age} old", f"set {CACHE}=false (yarn-site.xml)")


# --- jobs' defaults ---------------------------------------------------------------------------


def speculation(facts: Facts) -> CheckResult:
    """Two attempts of one reduce cannot share a checkpoint: the runner refuses jobs that speculate."""
    fix = f"set {SPECULATION}=false (mapred-site.xml, or the job; yarnctl wrap does)"
    told = facts.setting(SPECULATION)
    if told is None:
        return unknown(f"the ResourceManager does not tell {SPECULATION}; its default is true", fix)
    return ok("off by default") if told.lower() == "false" else warn("on by default", fix)


def slow_start(facts: Facts) -> CheckResult:
    """Where reduces wait for all maps nothing is asked for in between: patient jobs take the room back."""
    told = number_of(facts.setting(SLOW_START))
    fix = f"set {SLOW_START}=0.05 for hurried jobs (mapred-site.xml)"
    if told is None:
        return unknown(f"the ResourceManager does not tell {SLOW_START}; its default is 0.05", fix)
    return warn(f"{told:g}", fix) if told >= 0.95 else ok(f"{told:g}")


def lowered(facts: Facts) -> CheckResult:
    """A queue that yarnctl lowered while it made room stays small until somebody puts it back."""
    if facts.lowered is None:
        return unknown(facts.unseen("lowered"))
    for name, record in facts.lowered.items():
        path = f"{facts.lock_path}/{name}"
        if record is None:
            fix = f"compare the victim queues' maxima with capacity-scheduler.xml, then: hdfs dfs -rm {path}"
            return warn(f"{path} is no record of a lowered queue", fix)
        for one in record.queues:
            if _is_down(facts, one):
                return _named(facts, one, is_held=record.holder == facts.lock_holder)
    return ok("no queue stands lowered by yarnctl")


def _named(facts: Facts, one: LoweredQueue, *, is_held: bool) -> CheckResult:
    """Name a lowered queue, and the command that restores it."""
    now, before = one.ratio * 100, one.before_ratio * 100
    said = f"{one.queue} stands at {now:g} %, lowered by yarnctl from {before:g} %"
    command = command_for(one.queue, one.before_ratio)
    if is_held:
        return warn(f"{said}, which holds the lock and puts it back", f"if that yarnctl is gone: {command}")
    return fail(f"{said}, which holds the lock no more", f"run yarnctl with --enforce, or: {command}")


def _is_down(facts: Facts, one: LoweredQueue) -> bool:
    """Return whether a queue still has the lowered maximum; it counts as lowered where none is shown."""
    percent = number_of(facts.capacity(f"{one.queue}.maximum-capacity"))
    if percent is None and (found := facts.of((one.queue,))):
        percent = found[0].queue.maximum_percent
    return percent is None or same_ratio(percent / 100, one.ratio)


def acls(facts: Facts) -> CheckResult:
    """Where ACLs count, stopping an attempt and setting a priority need the right to administer the queue."""
    if facts.configuration is None:
        return unknown(not_in_conf(facts))
    if not is_true(facts.setting("yarn.acl.enable")):
        return ok("yarn.acl.enable is false: anybody may, and so may we")
    admins = facts.setting("yarn.admin.acl")
    if _listed(facts.caller_identity, "*" if admins is None else admins):
        return ok("yarn.admin.acl names us")
    names = facts.preempting_queues + (facts.preemptable_queues if facts.mode == "queues" else ())
    found, word = leaf_queues(facts, names)
    if word is not None:
        return word
    if facts.scheduler is None:
        reason = facts.unseen("scheduler", "capacity-scheduler.xml is not shown")
        return unknown(
            f"yarn.acl.enable is true; {reason}",
            f"let each acl_administer_queue name {facts.caller_identity}",
        )
    for leaf in found:
        told = _queue_acls(facts, leaf.path)
        if any(_listed(facts.caller_identity, acl) for acl in told):
            continue
        fix = f"set {CAPACITY}{leaf.path}.acl_administer_queue={facts.caller_identity or 'yarnctl'}"
        if any(acl.partition(" ")[2].strip() for acl in told):
            return unknown(f"{leaf.path} is administered by groups, and ours are not known here", fix)
        return fail(f"{facts.caller_identity or 'we'} may not administer {leaf.path}", fix)
    return ok("we may administer the queues")


def _queue_acls(facts: Facts, path: str) -> list[str]:
    """Return the ACLs that grant administration of a queue: its own and those above it (root: every user)."""
    parts = path.split(".")
    above = [".".join(parts[: end + 1]) for end in range(len(parts))]
    default = {"root": "*"}
    told = [(facts.capacity(f"{one}.acl_administer_queue"), default.get(one, " ")) for one in above]
    return [otherwise if acl is None else acl for acl, otherwise in told]


def _listed(user: str, acl: str) -> bool:
    """Return whether an ACL ("users groups") names a user or all users; groups are not known here."""
    users = acl.partition(" ")[0]
    return acl.strip() == "*" or (bool(user) and user in users.split(","))
