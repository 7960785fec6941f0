"""Preflight rules about HDFS: whether it answers, and whether yarnctl's folders in it are safe to use.

Law: pure; see ``preflight``. A rule's docstring is its purpose, as users read it. The rules of folders agree
with what the task runner refuses on the node; ``yarnctl run --enforce`` applies them, too.
The folder of checkpoints has mode 1777 (only the owner of an entry can move it), that of requests 755
(runners accept requests of its owner only). Both are made before a job needs them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

from yarnctl.attach.check.preflight import CheckResult, Facts, fail, is_true, not_in_conf, ok, unknown, warn
from yarnctl.hadoop.http.answers import Rejected
from yarnctl.hadoop.http.transport import NO_CONNECTION
from yarnctl.hadoop.webhdfs import FileStatus, WebHdfs

STORE_MODE, REQUESTS_MODE, ABOVE_MODE = 0o1777, 0o755, 0o755


def above(*roots: str) -> tuple[str, ...]:
    """Return every folder above the roots, the highest first: "/", "/yarnctl"."""
    found: dict[str, None] = {}
    for root in roots:
        chain = []
        while root != "/":
            root = posixpath.dirname(root)
            chain.append(root)
        found.update(dict.fromkeys(reversed(chain)))
    return tuple(found)


def observed(hdfs: WebHdfs, begin: Facts) -> Facts:
    """Return ``begin`` with the status of roots, lock and folders above. Raises as the client does."""
    roots = begin.requests_root, begin.store_root
    own = *roots, begin.lock_path
    found = {path: hdfs.find(path) for path in (*above(*own), *own)}
    return msgspec.structs.replace(
        begin,
        requests=found[roots[0]],
        store=found[roots[1]],
        absent=tuple(root for root in roots if found[root] is None),
        lock=found[begin.lock_path],
        above={path: status for path, status in found.items() if status is not None and path not in own},
    )


def make(hdfs: WebHdfs, facts: Facts) -> tuple[str, ...]:
    """Make what is missing by ``facts``; return what was made. Raises as the client does.

    The folder of checkpoints is made together with those above it with write access for all users, so that
    no job that starts in between is refused; the folders above are closed right afterwards.
    """
    made: list[str] = []
    if facts.store is None:
        missing = [path for path in above(facts.store_root) if path not in facts.above]
        hdfs.make_directories(facts.store_root, STORE_MODE)
        _open_to(hdfs, facts.store_root, STORE_MODE)
        for path in missing:
            _open_to(hdfs, path, ABOVE_MODE)
        made += [*missing, facts.store_root]
    if facts.requests is None:
        hdfs.make_directories(facts.requests_root, REQUESTS_MODE)
        made += [path for path in above(facts.requests_root) if path not in (*facts.above, *made)]
        made.append(facts.requests_root)
    return tuple(made)


def _open_to(hdfs: WebHdfs, path: str, mode: int) -> None:
    """Set the mode of a folder just made; one that another user made first is left, and judged later."""
    found: FileStatus = hdfs.status(path)
    if found.mode == mode:
        return
    try:
        hdfs.set_mode(path, mode)
    except Rejected:
        return


def words(facts: Facts) -> tuple[CheckResult, ...]:
    """Return the check result of every rule of folders."""
    return tuple(rule(facts) for rule in RULES)


SHARED_GROUPS = ("supergroup", "hadoop", "users", "hdfs", "hive")
"""Groups to which HDFS or a distribution assigns files by default: we do not control their members."""


def webhdfs(facts: Facts) -> CheckResult:
    """Checkpoints and requests travel over WebHDFS; without it nothing can be saved."""
    if facts.webhdfs:
        return ok("it answers")
    return fail(
        facts.unseen("webhdfs"), "give --name-node, and keep dfs.webhdfs.enabled=true (hdfs-site.xml)"
    )


def datanodes(facts: Facts) -> CheckResult:
    """The bytes of checkpoints and requests go to DataNodes, under the names that the NameNode knows."""
    found = facts.data_node
    if found is None:
        return unknown(facts.unseen("data_node"))
    host = urlsplit(found.at).hostname
    if found.fault == "unknown-host":
        known = f"make {host} known to this host by DNS or /etc/hosts"
        fix = f"{known}, or set dfs.datanode.hostname (hdfs-site.xml of that DataNode) to a name that is"
        return fail(str(found), fix)
    if found.fault in NO_CONNECTION:
        return fail(str(found), f"let this host reach {host} at the port of dfs.datanode.http(s).address")
    return warn(str(found), f"see the log of the DataNode at {host}") if found.said else ok(str(found))


def safe_mode(facts: Facts) -> CheckResult:
    """In safe mode HDFS cannot be written: nobody is asked to stop, and attempts that start fail at once."""
    if facts.safe_mode is None:
        return unknown(facts.unseen("safe_mode"))
    if facts.safe_mode:
        fix = "hdfs dfsadmin -safemode get; it ends by itself, or: hdfs dfsadmin -safemode leave"
        return fail("HDFS is in safe mode", fix)
    return ok("off")


def permissions(facts: Facts) -> CheckResult:
    """Without permissions any tenant may change another's checkpoints and requests."""
    for source in (facts.name_node, facts.configuration):
        told = None if source is None else source.get("dfs.permissions.enabled")
        if told is not None:
            fix = "set dfs.permissions.enabled=true (hdfs-site.xml of the NameNode)"
            return ok("on") if is_true(told) else fail("off", fix)
    return unknown(facts.unseen("name_node", "it does not say", "the NameNode's /conf: "))


def isolation(facts: Facts) -> CheckResult:
    """With simple authentication everybody may say to be anybody: good will alone keeps tenants apart."""
    told = (facts.name_node or {}).get("hadoop.security.authentication") or facts.setting(
        "hadoop.security.authentication"
    )
    if told is None:
        return unknown(not_in_conf(facts))
    if told.strip().lower() == "kerberos":
        return ok("Kerberos")
    fix = "set hadoop.security.authentication=kerberos (core-site.xml), if tenants must not trust each other"
    return warn(f"{told} authentication: names are not proven", fix)


def requests_root(facts: Facts) -> CheckResult:
    """Runners obey requests only in a folder that is ours and that nobody else may write to."""
    root, found = facts.requests_root, facts.requests
    us = facts.caller_identity or "yarnctl"
    fix = f"hdfs dfs -mkdir -p {root} && hdfs dfs -chown {us} {root} && hdfs dfs -chmod 755 {root}"
    if found is None:
        if root in facts.absent:
            return warn(f"{root} is not there yet", fix)
        return unknown(facts.unseen("requests"))
    if found.kind != "DIRECTORY":
        return fail(f"{root} is no folder", fix)
    if found.owner != us or not found.mode & 0o200:
        return fail(f"{root} belongs to {found.owner}, mode {found.mode:o}: we may not write to it", fix)
    if found.mode & 0o022:
        return fail(f"{root} may be written to by others (mode {found.mode:o})", fix)
    return ok(f"{root} is ours, mode {found.mode:o}")


def store_root(facts: Facts) -> CheckResult:
    """Each user makes a folder of their own here (1777); by its group the daemon, and nobody else, reads."""
    root, found = facts.store_root, facts.store
    us = facts.caller_identity or "yarnctl"
    fix = f"hdfs dfs -mkdir -p {root} && hdfs dfs -chmod 1777 {root} && hdfs dfs -chown {us}:{us} {root}"
    if found is None:
        if root in facts.absent:
            return warn(f"{root} is not there yet", fix)
        return unknown(facts.unseen("store"))
    if found.kind != "DIRECTORY":
        return fail(f"{root} is no folder", fix)
    if found.mode & 0o022 and not found.mode & 0o1000:
        return fail(f"{root} may be written to by others and is not sticky (mode {found.mode:o})", fix)
    if not found.mode & 0o022:
        return fail(f"nobody but {found.owner} may keep checkpoints in {root} (mode {found.mode:o})", fix)
    if not found.mode & 0o002:
        return warn(f"only {found.owner} and its group may use {root} (mode {found.mode:o})", fix)
    if found.owner not in _is_safe_owner(facts, found.owner):
        said = f"{root} belongs to {found.owner}, who may remove what others keep there"
        return warn(said, f"hdfs dfs -chown {us}:{us} {root}")
    top = facts.above.get("/")
    if found.group in SHARED_GROUPS and (top is None or top.owner != us):
        said = f"its group is {found.group}: unless we are in it we see no checkpoint, and nobody is asked"
        return warn(said, f"hdfs dfs -chgrp {us} {root}, a group that we are in and no tenant")
    return ok(f"mode {found.mode:o}, group {found.group or 'unknown'}")


def folders_above(facts: Facts) -> CheckResult:
    """Who may rename a folder above ours may put another one in its place."""
    if not facts.above:
        return unknown(facts.unseen("above", "the folders above were not seen"))
    for path, found in facts.above.items():
        if found.mode & 0o022 and not found.mode & 0o1000:
            fix = f"hdfs dfs -chmod {'1777' if path == '/' else '755'} {path}"
            return fail(f"{path} may be written to by others and is not sticky (mode {found.mode:o})", fix)
        if found.owner not in _is_safe_owner(facts, found.owner):
            fix = f"hdfs dfs -chown {facts.caller_identity or 'yarnctl'} {path} && hdfs dfs -chmod 755 {path}"
            return warn(f"{path} belongs to {found.owner}, who may remove what is in it", fix)
    return ok(f"{', '.join(facts.above)}: nobody else may change what is in them")


def lock(facts: Facts) -> CheckResult:
    """One daemon acts per cluster: by a lock that we must be able to write, or nothing is ever enforced."""
    us, path = facts.caller_identity or "yarnctl", facts.lock_path
    home = posixpath.dirname(path)
    if facts.lock is not None and (
        facts.lock.kind != "DIRECTORY" or not _is_writable_by_caller(facts, facts.lock)
    ):
        said = f"{path} belongs to {facts.lock.owner}, mode {facts.lock.mode:o}: we may not write to it"
        fix = f"hdfs dfs -chown -R {us} {path} && hdfs dfs -chmod 755 {path} (while no yarnctl runs)"
        return fail(said, fix)
    if facts.lock is not None:
        return ok(f"{path} is there, and we may write to it")
    if "lock" in facts.why:
        return unknown(facts.unseen("lock"))
    if not facts.above:
        return unknown(facts.unseen("above", "the folders above were not seen"))
    there = next((one for one in _upwards(home) if one in facts.above), "")
    if not there:
        return unknown("no folder above the lock was seen")
    if _is_writable_by_caller(facts, facts.above[there]):
        return ok(f"we may make {path}")
    fix = f"hdfs dfs -mkdir -p {home} && hdfs dfs -chown {us} {home} && hdfs dfs -chmod 755 {home}"
    found = facts.above[there]
    return fail(f"{there} belongs to {found.owner}, mode {found.mode:o}: we cannot make {path}", fix)


def _upwards(path: str) -> list[str]:
    """Return a folder and all above it, the lowest first."""
    chain = [path]
    while chain[-1] != "/":
        chain.append(posixpath.dirname(chain[-1]))
    return chain


def _is_writable_by_caller(facts: Facts, found: FileStatus) -> bool:
    """Return whether the caller may make files there: as owner, by the bits for others, or as superuser."""
    us, top = facts.caller_identity or "yarnctl", facts.above.get("/")
    if top is not None and top.owner == us:
        return True
    return bool(found.mode & (0o200 if found.owner == us else 0o002))


def _is_safe_owner(facts: Facts, otherwise: str) -> tuple[str, ...]:
    """Return the accepted owners of folders near ours: the caller and HDFS's superuser (the root's owner)."""
    top = facts.above.get("/")
    return (facts.caller_identity or "yarnctl", otherwise if top is None else top.owner)


RULES: tuple[Callable[[Facts], CheckResult], ...] = (
    requests_root,
    store_root,
    folders_above,
    lock,
)
