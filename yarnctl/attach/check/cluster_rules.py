"""Preflight rules about daemons, rights, queues with a lowered maximum, and the defaults of jobs.

``yarnctl check`` prints a rule's docstring as the reason why it matters. Group membership is not known here:
a right that only a group could grant is "unknown".
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from yarnctl.attach.check.preflight import (
    CAPACITY,
    CheckResult,
    Facts,
    fail,
    hadoop_version,
    is_true,
    leaf_queues,
    number_of,
    ok,
    require_configuration,
    set_keys,
    unknown,
    warn,
)
from yarnctl.deciding.model import Change
from yarnctl.deciding.queue_names import ROOT
from yarnctl.hadoop.addresses import WEB_PROXY
from yarnctl.hadoop.http.gateway import READ_ONLY, USE_YARN_UI
from yarnctl.hadoop.http.transport import NO_CONNECTION
from yarnctl.hadoop.wire.views import Leaf
from yarnctl.hadoop.zookeeper_lock import KIND as IN_ZOOKEEPER
from yarnctl.restoring.change_file import command_for, described
from yarnctl.restoring.restorer import same_value

SPECULATION = "mapreduce.reduce.speculative"
SLOW_START = "mapreduce.job.reduce.slowstart.completedmaps"
CACHE = "yarn.apps.cache.enable"
CLOCK_WARN_MS, CLOCK_FAIL_MS = 5_000, 60_000
ANONYMOUS = "dr.who"  # The user that Hadoop gives to a request without a name


def gateway(facts: Facts) -> CheckResult:
    """Through a gateway yarnctl can use only what the gateway's services route."""
    if facts.knox == "RESOURCEMANAGER":
        return fail(READ_ONLY, USE_YARN_UI)
    said = "Knox's YARNUI service routes signals, /conf and the pages of applications"
    if facts.webhdfs and facts.name_node is None and facts.safe_mode is None:
        said = f"{said}; its WEBHDFS service routes neither /jmx nor /conf of the NameNode"
        fix = (
            "check on the NameNode: hdfs dfsadmin -safemode get, and dfs.permissions.enabled (hdfs-site.xml)"
        )
        return warn(said, fix)
    return ok(said)


def version(facts: Facts) -> CheckResult:
    """Only Hadoop 3.3 to 3.5 is supported."""
    found = hadoop_version(facts)
    if found is None:
        return unknown(facts.unseen("info", "the ResourceManager reports no version"))
    said = f"Hadoop {found[0]}.{found[1]}"
    if found < (3, 0):
        return fail(said, "upgrade to Hadoop 3.3 or later")
    if found < (3, 3):
        return warn(said, "upgrade to Hadoop 3.3 or later")
    return ok(said)


def signal(facts: Facts) -> CheckResult:
    """A signal makes a task runner read its orders at once. Without it the runner reads them every 15 s."""
    found = hadoop_version(facts)
    if found is None:
        return unknown(facts.unseen("info", "the ResourceManager reports no version"))
    if found < (3, 3):
        return warn(
            "Hadoop before 3.3.0 cannot send signals to containers (YARN-8693)",
            "upgrade to Hadoop 3.3 or later; until then tasks take up to 15 s to react",
        )
    return ok("the ResourceManager can send signals to containers")


def manager_ha(facts: Facts) -> CheckResult:
    """After a failover yarnctl can work only if it knows the other ResourceManager's address."""
    enabled = facts.setting("yarn.resourcemanager.ha.enabled")
    require_configuration(facts)
    if not is_true(enabled):
        return ok("one ResourceManager")
    ids = [one for one in (facts.setting("yarn.resourcemanager.ha.rm-ids") or "").split(",") if one.strip()]
    if facts.managers < len(ids):
        said = f"the cluster has {len(ids)} ResourceManagers; --rm names {facts.managers}"
        return warn(said, "set --rm once for each ResourceManager")
    return ok(f"--rm names all {facts.managers} ResourceManagers")


def clock(facts: Facts) -> CheckResult:
    """The daemon compares the cluster's timestamps with the clock of its own host."""
    ahead = facts.clock_ahead_ms
    if ahead is None:
        return unknown(facts.unseen("clock_ahead_ms"))
    said = f"the cluster's clock is {abs(ahead) / 1000:.0f} s {'fast' if ahead > 0 else 'slow'}"
    if abs(ahead) > CLOCK_FAIL_MS:
        return fail(said, "synchronise the clocks (NTP) of this host and the cluster")
    if abs(ahead) > CLOCK_WARN_MS:
        return warn(said, "synchronise the clocks (NTP) of this host and the cluster")
    return ok(f"the clocks differ by less than {CLOCK_WARN_MS / 1000:.0f} s")


def caller(facts: Facts) -> CheckResult:
    """YARN checks this user's rights when yarnctl kills an attempt or sets a priority."""
    if facts.caller is None:
        return unknown(facts.unseen("caller"))
    user = facts.caller.user.partition("@")[0].partition("/")[0]
    fix = (
        "set --user; keep hadoop.http.filter.initializers at its default, or add "
        "org.apache.hadoop.security.AuthenticationFilterInitializer to it"
    )
    if user in ("", ANONYMOUS, "null"):
        return fail(f"the ResourceManager sees yarnctl as the anonymous user {user or ANONYMOUS}", fix)
    if facts.caller_identity and user != facts.caller_identity:
        return warn(f"the ResourceManager sees yarnctl as {user}, not as {facts.caller_identity}", fix)
    return ok(f"the ResourceManager sees yarnctl as {user}")


def proxy(facts: Facts) -> CheckResult:
    """The daemon reads ApplicationMasters, drivers and JobManagers through YARN's web proxy."""
    found = facts.proxy
    if found is None:
        return unknown(facts.unseen("proxy"))
    where = f"{found.at} ({found.source})"
    if found.fault == "unknown-host":
        fix = f"add {urlsplit(found.at).hostname} to DNS or to /etc/hosts of this host"
        return fail(f"{found}: {where}", f"{fix}, or correct {WEB_PROXY} (yarn-site.xml)")
    if found.fault in NO_CONNECTION:
        fix = "start the web proxy and open its port to this host"
        return fail(f"{where}: {found.problem}", f"{fix}, or correct {WEB_PROXY} (yarn-site.xml)")
    if found.problem:
        fix = f"read the logs of the web proxy and of {found.application}'s ApplicationMaster"
        fix = f"{fix}; set {WEB_PROXY} (yarn-site.xml) if the proxy has another address"
        return warn(f"{where} does not return an application's page: {found.problem}", fix)
    return ok(f"{where} returns the page of {found.application}")


def apps_cache(facts: Facts) -> CheckResult:
    """The daemon decides on the list of applications. This cache delays it (YARN-11276, from 3.4.0)."""
    require_configuration(facts)
    if not is_true(facts.setting(CACHE)):
        return ok("off")
    age = facts.setting(f"{CACHE.removesuffix('.enable')}.expire") or "30s"
    return warn(f"the list of applications is up to {age} old", f"set {CACHE}=false (yarn-site.xml)")


def speculation(facts: Facts) -> CheckResult:
    """The task runner rejects jobs with speculative reduces: two attempts cannot share one checkpoint."""
    fix = f"set {SPECULATION}=false (mapred-site.xml); yarnctl wrap sets it for each wrapped job"
    value = facts.setting(SPECULATION)
    if value is None:
        return unknown(f"the ResourceManager does not show {SPECULATION}; its default is true", fix)
    return ok("off by default") if value.lower() == "false" else warn("on by default", fix)


def slow_start(facts: Facts) -> CheckResult:
    """If reduces start only after the last map, research gets production's containers between the phases."""
    ratio = number_of(facts.setting(SLOW_START))
    fix = f"set {SLOW_START}=0.05 for production jobs (mapred-site.xml)"
    if ratio is None:
        return unknown(f"the ResourceManager does not show {SLOW_START}; its default is 0.05", fix)
    seen = f"reduces start after {ratio * 100:g} % of the maps"
    return warn(seen, fix) if ratio >= 0.95 else ok(seen)


def lowered(facts: Facts) -> CheckResult:
    """A setting that yarnctl lowered stays so until yarnctl or an administrator restores it."""
    if facts.lowered is None:
        return unknown(facts.unseen("lowered"))
    for stored in facts.lowered:
        path = f"{facts.lock_path}/{stored.name}"
        if stored.record is None:
            fix = f"compare the queues' maxima with capacity-scheduler.xml; then hdfs dfs -rm {path}"
            return warn(f"{path} does not contain a record of a lowered setting", fix)
        down = [change for change in stored.record.changes if _is_down(facts, change)]
        if down:
            is_held = None if facts.lock_holder == IN_ZOOKEEPER else stored.holder == facts.lock_holder
            return _named(down, is_held=is_held)
    return ok("yarnctl has lowered no setting that is not restored")


def _named(changes: Sequence[Change], *, is_held: bool | None) -> CheckResult:
    more = f" and {len(changes) - 1} others" if len(changes) > 1 else ""
    said = f"yarnctl lowered {described(changes[0])}{more}"
    by_hand = command_for(changes[0])
    fix = f"yarnctl restore --all, or: {by_hand}" if by_hand else "yarnctl restore --all"
    if is_held is None:
        return warn(f"{said}; the daemon with the lock restores it", f"only if no daemon runs: {fix}")
    if is_held:
        seen = f"{said}; the daemon that did it has the lock and restores it"
        return warn(seen, f"only if that daemon does not run any more: {fix}")
    return fail(f"{said}; the daemon that did it has lost the lock", fix)


def _is_down(facts: Facts, change: Change) -> bool:
    """Return whether a setting is still lowered; a value that is not shown counts as lowered."""
    if change.kind != "queue":
        return True
    percent = number_of(facts.capacity(f"{change.target}.maximum-capacity"))
    if percent is None and (found := [leaf for leaf in facts.leaves if leaf.path == change.target]):
        percent = found[0].queue.maximum_percent
    return percent is None or same_value("queue", repr(percent / 100), change.now)


def acls(facts: Facts) -> CheckResult:
    """With YARN's ACLs on, killing attempts and setting priorities need the right to administer the queue."""
    require_configuration(facts)
    if not is_true(facts.setting("yarn.acl.enable")):
        return ok("yarn.acl.enable is false: every user has the right")
    user = facts.caller_identity or "yarnctl"
    admins = facts.setting("yarn.admin.acl")
    if _listed(facts.caller_identity, "*" if admins is None else admins):
        return ok(f"yarn.admin.acl contains {user}")
    users: dict[str, str] = {}
    groups: list[str] = []
    for leaf in leaf_queues(facts, facts.used_queues):
        above = [_administrators(facts, one) for one in facts.chain(leaf.path)]
        if any(acl is not None and _listed(facts.caller_identity, acl) for acl in above):
            continue
        own = above[-1]
        if own is None:
            reason = facts.unseen("scheduler", "capacity-scheduler.xml is not shown")
            fix = f"add {user} to {CAPACITY}QUEUE.acl_administer_queue of each queue that is named"
            return unknown(f"yarn.acl.enable is true; {reason}", fix)
        names, _, own_groups = own.partition(" ")
        listed = ",".join(name for name in (names, user) if name)
        users[f"{leaf.path}.acl_administer_queue"] = f"{listed} {own_groups}".rstrip()
        if any((acl or "").partition(" ")[2].strip() for acl in above):
            groups.append(leaf.path)
    if not users:
        return ok(f"{user} may administer the queues")
    if len(groups) == len(users):
        said = f"groups administer {', '.join(groups)}; the groups of {user} are not known here"
        return unknown(said, set_keys(facts, users))
    named = [path for key in users if (path := key.rpartition(".")[0]) not in groups]
    return fail(f"{user} may not administer {', '.join(named)}", set_keys(facts, users))


def _administrators(facts: Facts, leaf: Leaf) -> str | None:
    """Return the own list of a queue's administrators: as shown with it, else its key or the default."""
    default = "*" if leaf.path == ROOT else " "
    shown = leaf.queue.administrators
    return facts.scheduler_key(f"{leaf.path}.acl_administer_queue", default) if shown is None else shown


def _listed(user: str, acl: str) -> bool:
    """Return whether an ACL ("users groups") names a user or all users; groups are not known here."""
    users = acl.partition(" ")[0]
    return acl.strip() == "*" or (bool(user) and user in users.split(","))
