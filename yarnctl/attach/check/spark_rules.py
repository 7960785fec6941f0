"""Preflight rules for draining executors of Spark (``--spark``): shells, hosts, places of shuffle blocks.

The daemon checks each application's settings at its driver (``settings_reader``). Facts: docs/facts/spark.md.
"""

from __future__ import annotations

from yarnctl.attach.check.preflight import CheckResult, Facts, fail, ok, require_configuration, unknown, warn

EXECUTOR = "yarn.nodemanager.container-executor.class"
RUNTIMES = "yarn.nodemanager.runtime.linux.allowed-runtimes"
SERVICES = "yarn.nodemanager.aux-services"
SHUFFLE_SERVICE = "spark_shuffle"
KNOWN = ("DefaultContainerExecutor", "LinuxContainerExecutor")
FOLDER_MODE = 0o1777
BY_PLUGIN = "submit with yarnctl wrap --spark --plugin JAR, which needs no signal"


def shell(facts: Facts) -> CheckResult:
    """A signal can drain an executor only if its container's shell is bash and reads BASH_ENV."""
    require_configuration(facts)
    named = (facts.setting(EXECUTOR) or KNOWN[0]).rpartition(".")[2]
    if named not in KNOWN:
        return warn(f"containers are started by {named}, which is not tested", BY_PLUGIN)
    others = [word.strip() for word in (facts.setting(RUNTIMES) or "default").split(",")]
    if images := [word for word in others if word not in ("", "default")]:
        said = f"containers may run in {', '.join(images)}; an image may have another shell"
        return warn(said, f"for jobs in images, {BY_PLUGIN}")
    return ok(f"{named}: Hadoop's launch script uses /bin/bash (the file itself is not checked)")


def hosts(facts: Facts) -> CheckResult:
    """Finished map tasks run again if their blocks move to another executor of the same host, by chance."""
    if facts.hosts is None:
        return unknown(facts.unseen("hosts"))
    if facts.hosts > 1:
        return ok(f"{facts.hosts} hosts")
    said = "one host: in a map stage all finished tasks of a drained executor run again"
    return warn(said, "add hosts, or accept the lost work, which yarnctl predicts and counts")


def shuffle_service(facts: Facts) -> CheckResult:
    """Drained executors move their shuffle blocks, also with an external shuffle service."""
    require_configuration(facts)
    services = [word.strip() for word in (facts.setting(SERVICES) or "").split(",")]
    if SHUFFLE_SERVICE not in services:
        return ok("not in use: executors move their shuffle blocks")
    return ok(f"{SHUFFLE_SERVICE} runs: with the plugin, idle executors leave without moving blocks")


def fallback(facts: Facts) -> CheckResult:
    """A whole job can be suspended only if its executors can write their shuffle blocks to this folder."""
    root, found = facts.fallback_root, facts.fallback
    fix = f"hdfs dfs -mkdir -p {root} && hdfs dfs -chmod 1777 {root}"
    if found is None:
        if root in facts.absent:
            return fail(f"{root} does not exist, and Spark does not create it for all users", fix)
        return unknown(facts.unseen("fallback"))
    if found.kind != "DIRECTORY":
        return fail(f"{root} is not a folder", fix)
    if not found.mode & 0o022:
        return fail(f"only {found.owner} can write to {root} (mode {found.mode:o})", fix)
    if not found.mode & 0o1000:
        return warn(f"users can remove each other's files in {root} (mode {found.mode:o}, not sticky)", fix)
    if not found.mode & 0o002:
        return warn(f"only {found.owner} and {found.group} can write to {root} (mode {found.mode:o})", fix)
    return ok(f"{root}: mode {found.mode:o}")
