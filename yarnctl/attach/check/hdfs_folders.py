"""Our folders in HDFS: made where they are missing, looked at, and judged by the rules of ``check``.

Law: what exists is never changed, only judged, and what is wrong is said with its fix. The folder of
checkpoints is everybody's (1777: each user's jobs make folders of their own, nobody moves another's), that
of requests is ours alone (755: runners obey nobody else). Both are there before any job needs them, so that
it does not matter who comes first.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

import msgspec

from yarnctl.attach.check import hdfs_rules as rules
from yarnctl.attach.check.preflight import Facts, Word
from yarnctl.hadoop.http.problems import Rejected
from yarnctl.hadoop.webhdfs import FileStatus, WebHdfs

STORE_MODE, REQUESTS_MODE, ABOVE_MODE = 0o1777, 0o755, 0o755

RULES: tuple[Callable[[Facts], Word], ...] = (
    rules.requests_root,
    rules.store_root,
    rules.folders_above,
    rules.lock,
)


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


def seen(hdfs: WebHdfs, begin: Facts) -> Facts:
    """Return ``begin`` with what lies at the roots, at the lock and above. Raises as the client does."""
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

    The folder of checkpoints comes into being together with those above it, open to all, so that nobody
    who comes in between is refused; those above are closed right afterwards.
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
    """Set the mode of what we have just made; if somebody else was faster it is theirs, and judged later."""
    found: FileStatus = hdfs.status(path)
    if found.mode == mode:
        return
    try:
        hdfs.set_mode(path, mode)
    except Rejected:
        return


def words(facts: Facts) -> tuple[Word, ...]:
    """Return what every rule of folders says."""
    return tuple(rule(facts) for rule in RULES)
