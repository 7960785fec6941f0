"""Preflight rules about HDFS: whether it answers, and whether yarnctl's folders in it are safe to use.

``yarnctl check`` prints a rule's docstring as the reason why it matters. The rules of folders agree with the
task runner's checks on the node; ``yarnctl run --enforce`` applies them, too. The folder of checkpoints has
mode 1777 (only the owner of an entry can move it), that of requests 755 (runners accept requests of its owner
only). Both are made before a job needs them.
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


def observed(hdfs: WebHdfs, facts: Facts) -> Facts:
    """Return ``facts`` with the status of roots, lock and folders above. Raises as the client does."""
    roots = facts.requests_root, facts.store_root
    own = (roots[0], roots[1], facts.lock_path)
    parents = above(roots[0], roots[1], facts.lock_path)
    found = {path: hdfs.find(path) for path in (*parents, *own)}
    return msgspec.structs.replace(
        facts,
        requests=found[roots[0]],
        store=found[roots[1]],
        absent=tuple(root for root in roots if found[root] is None),
        lock=found[facts.lock_path],
        above={path: status for path, status in found.items() if status is not None and path not in own},
    )


def make(hdfs: WebHdfs, facts: Facts) -> tuple[str, ...]:
    """Create the folders that ``facts`` reports as absent; return their paths. Raises as the client does.

    HDFS creates the folder of checkpoints together with those above it, all with write access for all users,
    so that no job that starts meanwhile is rejected. The folders above get their mode right afterwards.
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
    """Set the mode of a folder just made. If another user made it first, keep its mode; a rule checks it."""
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


SHARED_GROUPS = ("supergroup", "hadoop", "users", "hdfs", "hive")  # Their members may be tenants


def webhdfs(facts: Facts) -> CheckResult:
    """Task runners and yarnctl read and write checkpoints and orders over WebHDFS."""
    if facts.webhdfs:
        return ok("the NameNode answers")
    return fail(facts.unseen("webhdfs"), "set --name-node, and keep dfs.webhdfs.enabled=true (hdfs-site.xml)")


def datanodes(facts: Facts) -> CheckResult:
    """This host must reach the DataNodes under the host names that the NameNode returns."""
    found = facts.data_node
    if found is None:
        return unknown(facts.unseen("data_node"))
    host = urlsplit(found.at).hostname
    if found.fault == "unknown-host":
        fix = f"add {host} to DNS or to /etc/hosts of this host"
        fix = f"{fix}, or set dfs.datanode.hostname (hdfs-site.xml of that DataNode) to a name that resolves"
        return fail(str(found), fix)
    if found.fault in NO_CONNECTION:
        return fail(str(found), f"open the port of dfs.datanode.http(s).address on {host} to this host")
    return warn(str(found), f"read the log of the DataNode on {host}") if found.problem else ok(str(found))


def safe_mode(facts: Facts) -> CheckResult:
    """In safe mode HDFS rejects writes. yarnctl sends no orders, and attempts that start fail at once."""
    if facts.safe_mode is None:
        return unknown(facts.unseen("safe_mode"))
    if facts.safe_mode:
        fix = "wait until hdfs dfsadmin -safemode get prints OFF, or run hdfs dfsadmin -safemode leave"
        return fail("HDFS is in safe mode", fix)
    return ok("off")


def permissions(facts: Facts) -> CheckResult:
    """Without permission checks in HDFS any user can change other users' checkpoints and yarnctl's orders."""
    for source in (facts.name_node, facts.configuration):
        value = None if source is None else source.get("dfs.permissions.enabled")
        if value is not None:
            fix = "set dfs.permissions.enabled=true (hdfs-site.xml of the NameNode)"
            return ok("on") if is_true(value) else fail("off", fix)
    return unknown(facts.unseen("name_node", "the key is not set", "the NameNode's /conf: "))


def isolation(facts: Facts) -> CheckResult:
    """Simple authentication does not verify user names. Any user can impersonate another."""
    key = "hadoop.security.authentication"
    value = (facts.name_node or {}).get(key) or facts.setting(key)
    if value is None:
        return unknown(not_in_conf(facts))
    if value.strip().lower() == "kerberos":
        return ok("Kerberos")
    fix = f"set {key}=kerberos (core-site.xml) unless all users trust each other"
    return warn(f"{key} is {value}", fix)


def requests_root(facts: Facts) -> CheckResult:
    """Task runners obey orders only in a folder that yarnctl's user owns and no other user can write to."""
    root, found = facts.requests_root, facts.requests
    user = facts.caller_identity or "yarnctl"
    fix = f"hdfs dfs -mkdir -p {root} && hdfs dfs -chown {user} {root} && hdfs dfs -chmod 755 {root}"
    if found is None:
        if root in facts.absent:
            return warn(f"{root} does not exist", fix)
        return unknown(facts.unseen("requests"))
    if found.kind != "DIRECTORY":
        return fail(f"{root} is not a folder", fix)
    if found.owner != user or not found.mode & 0o200:
        return fail(f"{_owned(root, found)}; {user} cannot write to it", fix)
    if found.mode & 0o022:
        return fail(f"other users can write to {root} (mode {found.mode:o})", fix)
    return ok(_owned(root, found))


def _owned(path: str, status: FileStatus) -> str:
    return f"{path} belongs to {status.owner}, mode {status.mode:o}"


def store_root(facts: Facts) -> CheckResult:
    """Each user writes checkpoints to an own folder here (mode 1777). yarnctl reads them by the group."""
    root, found = facts.store_root, facts.store
    user = facts.caller_identity or "yarnctl"
    fix = f"hdfs dfs -mkdir -p {root} && hdfs dfs -chmod 1777 {root} && hdfs dfs -chown {user}:{user} {root}"
    if found is None:
        if root in facts.absent:
            return warn(f"{root} does not exist", fix)
        return unknown(facts.unseen("store"))
    if found.kind != "DIRECTORY":
        return fail(f"{root} is not a folder", fix)
    if found.mode & 0o022 and not found.mode & 0o1000:
        return fail(f"other users can write to {root}, and it is not sticky (mode {found.mode:o})", fix)
    if not found.mode & 0o022:
        return fail(f"only {found.owner} can write checkpoints to {root} (mode {found.mode:o})", fix)
    if not found.mode & 0o002:
        return warn(f"only {found.owner} and its group can write to {root} (mode {found.mode:o})", fix)
    if found.owner not in _safe_owners(facts, found.owner):
        said = f"{root} belongs to {found.owner}, and an owner can remove all checkpoints"
        return warn(said, f"hdfs dfs -chown {user}:{user} {root}")
    top = facts.above.get("/")
    if found.group in SHARED_GROUPS and (top is None or top.owner != user):
        said = f"the group of {root} is {found.group}; yarnctl must be a member of it to see checkpoints"
        return warn(said, f"hdfs dfs -chgrp {user} {root} (a group with yarnctl and without other users)")
    return ok(f"mode {found.mode:o}, group {found.group or 'unknown'}")


def folders_above(facts: Facts) -> CheckResult:
    """A user with write access above yarnctl's folders can replace them."""
    if not facts.above:
        return unknown(facts.unseen("above", "the folders above were not seen"))
    for path, found in facts.above.items():
        if found.mode & 0o022 and not found.mode & 0o1000:
            fix = f"hdfs dfs -chmod {'1777' if path == '/' else '755'} {path}"
            return fail(f"other users can write to {path}, and it is not sticky (mode {found.mode:o})", fix)
        if found.owner not in _safe_owners(facts, found.owner):
            fix = f"hdfs dfs -chown {facts.caller_identity or 'yarnctl'} {path} && hdfs dfs -chmod 755 {path}"
            return warn(f"{path} belongs to {found.owner}, and an owner can remove its content", fix)
    return ok(f"only trusted users can write to {', '.join(facts.above)}")


def lock(facts: Facts) -> CheckResult:
    """A daemon enforces only while it has the lock. One daemon per cluster can have it."""
    user, path = facts.caller_identity or "yarnctl", facts.lock_path
    home = posixpath.dirname(path)
    if facts.lock is not None and (
        facts.lock.kind != "DIRECTORY" or not _is_writable_by_caller(facts, facts.lock)
    ):
        said = f"{_owned(path, facts.lock)}; {user} cannot write to it"
        fix = f"stop all yarnctl daemons; hdfs dfs -chown -R {user} {path} && hdfs dfs -chmod 755 {path}"
        return fail(said, fix)
    if facts.lock is not None:
        return ok(f"{user} can write to {path}")
    if "lock" in facts.why:
        return unknown(facts.unseen("lock"))
    if not facts.above:
        return unknown(facts.unseen("above", "the folders above were not seen"))
    chain = [home]
    while chain[-1] != "/":
        chain.append(posixpath.dirname(chain[-1]))
    there = next((one for one in chain if one in facts.above), "")
    if not there:
        return unknown("no folder above the lock was seen")
    if _is_writable_by_caller(facts, facts.above[there]):
        return ok(f"{user} can create {path}")
    fix = f"hdfs dfs -mkdir -p {home} && hdfs dfs -chown {user} {home} && hdfs dfs -chmod 755 {home}"
    return fail(f"{_owned(there, facts.above[there])}; {user} cannot create {path}", fix)


def _is_writable_by_caller(facts: Facts, status: FileStatus) -> bool:
    """Return whether the caller can create files there: as owner, by the bits for others, or as superuser."""
    user, top = facts.caller_identity or "yarnctl", facts.above.get("/")
    if top is not None and top.owner == user:
        return True
    return bool(status.mode & (0o200 if status.owner == user else 0o002))


def _safe_owners(facts: Facts, otherwise: str) -> tuple[str, ...]:
    top = facts.above.get("/")
    return (facts.caller_identity or "yarnctl", otherwise if top is None else top.owner)


RULES: tuple[Callable[[Facts], CheckResult], ...] = (requests_root, store_root, folders_above, lock)
