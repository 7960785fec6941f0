"""Rules of fitness about who answers, and what jobs are by default.

Law: pure; see ``fitness``. A rule's docstring is why it matters, as users read it.
"""

from __future__ import annotations

import re

from yarnctl.attach.check.preflight import (
    Facts,
    Word,
    conf_reason,
    fail,
    is_true,
    number_of,
    ok,
    unknown,
    warn,
)

SPECULATION = "mapreduce.reduce.speculative"
SLOW_START = "mapreduce.job.reduce.slowstart.completedmaps"
CACHE = "yarn.apps.cache.enable"
CLOCK_WARN_MS, CLOCK_FAIL_MS = 5_000, 60_000


def _version(facts: Facts) -> tuple[int, int] | None:
    match = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", facts.info.version if facts.info else "")
    return (int(match[1]), int(match[2])) if match else None


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
        return unknown(conf_reason(facts))
    if not is_true(enabled):
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


def apps_cache(facts: Facts) -> Word:
    """Decisions rest on lists of applications: a cache shows them as they were (YARN-11276, from 3.4.0)."""
    if facts.configuration is None:
        return unknown(conf_reason(facts))
    if not is_true(facts.setting(CACHE)):
        return ok("off")
    age = facts.setting(f"{CACHE.removesuffix('.enable')}.expire") or "30s"
    return warn(f"lists of applications are up to {age} old", f"set {CACHE}=false (yarn-site.xml)")


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
    told = number_of(facts.setting(SLOW_START))
    fix = f"set {SLOW_START}=0.05 for hurried jobs (mapred-site.xml)"
    if told is None:
        return unknown(f"the ResourceManager does not tell {SLOW_START}; its default is 0.05", fix)
    return warn(f"{told:g}", fix) if told >= 0.95 else ok(f"{told:g}")
