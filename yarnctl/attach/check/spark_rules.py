"""Preflight rules for executors of Spark that are to leave: shells, hosts, where shuffle blocks go.

Law: pure; see ``preflight``. Judged with ``yarnctl check --spark`` alone. What applications themselves set is
proven by the daemon from their drivers (``attach/eligibility/executor_reader``). Facts: docs/facts/spark.md.
"""

from __future__ import annotations

from yarnctl.attach.check.preflight import CheckResult, Facts, fail, not_in_conf, ok, unknown, warn

EXECUTOR = "yarn.nodemanager.container-executor.class"
RUNTIMES = "yarn.nodemanager.runtime.linux.allowed-runtimes"
SERVICES = "yarn.nodemanager.aux-services"
SHUFFLE_SERVICE = "spark_shuffle"
KNOWN = ("DefaultContainerExecutor", "LinuxContainerExecutor")
FOLDER_MODE = 0o1777
BY_PLUGIN = "submit with yarnctl wrap --spark --plugin JAR, which sends no signal"


def shell(facts: Facts) -> CheckResult:
    """By the signal an executor leaves only if its container's shell is bash and reads BASH_ENV."""
    if facts.configuration is None:
        return unknown(not_in_conf(facts))
    named = (facts.setting(EXECUTOR) or KNOWN[0]).rpartition(".")[2]
    if named not in KNOWN:
        return warn(f"containers are started by {named}, which was not tried", BY_PLUGIN)
    others = [word.strip() for word in (facts.setting(RUNTIMES) or "default").split(",")]
    if images := [word for word in others if word not in ("", "default")]:
        told = f"containers may run in {', '.join(images)}, whose images may have another shell"
        return warn(told, f"for those {BY_PLUGIN}")
    return ok(f"{named}: Hadoop's launch script names /bin/bash (that it is bash cannot be seen from here)")


def hosts(facts: Facts) -> CheckResult:
    """Finished map tasks run again where their blocks move to an executor of the same host."""
    if facts.hosts is None:
        return unknown(facts.unseen("hosts"))
    if facts.hosts > 1:
        return ok(f"{facts.hosts} hosts")
    told = "one host: in a map stage all finished tasks of an executor that leaves run again"
    return warn(told, "nothing to mend; yarnctl predicts it, and it counts as lost work")


def shuffle_service(facts: Facts) -> CheckResult:
    """With an external shuffle service shuffle blocks outlive executors, and cached blocks alone move."""
    if facts.configuration is None:
        return unknown(not_in_conf(facts))
    services = [word.strip() for word in (facts.setting(SERVICES) or "").split(",")]
    if SHUFFLE_SERVICE not in services:
        return ok("there is none: executors move their shuffle blocks")
    return ok(f"{SHUFFLE_SERVICE} runs: applications that use it move cached blocks alone")


def fallback(facts: Facts) -> CheckResult:
    """A job is suspended whole only if its executors can write their shuffle blocks to this folder."""
    root, found = facts.fallback_root, facts.fallback
    fix = f"hdfs dfs -mkdir -p {root} && hdfs dfs -chmod 1777 {root}"
    if found is None:
        if root in facts.absent:
            return fail(f"{root} is not there, and Spark does not make it for everyone", fix)
        return unknown(facts.unseen("fallback"))
    if found.kind != "DIRECTORY":
        return fail(f"{root} is no folder", fix)
    if not found.mode & 0o022:
        return fail(f"nobody but {found.owner} may write to {root} (mode {found.mode:o})", fix)
    if not found.mode & 0o1000:
        return warn(f"who writes to {root} may remove what others keep there (mode {found.mode:o})", fix)
    if not found.mode & 0o002:
        return warn(f"only {found.owner} and {found.group} may write to {root} (mode {found.mode:o})", fix)
    return ok(f"{root}: mode {found.mode:o}")
