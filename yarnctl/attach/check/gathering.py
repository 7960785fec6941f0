"""Gathering the facts of ``yarnctl check``: each read is independent; a failed one is noted with its reason.

Law: reading only. The ResourceManager's ``/info`` must answer (else Unreachable); everything else may
fail and is then "unknown".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from yarnctl.attach.check.hdfs_rules import above
from yarnctl.attach.check.preflight import Facts
from yarnctl.attach.connection.connection import name_nodes_in
from yarnctl.config import ClusterAddress
from yarnctl.errors import BadInput, YarnctlError
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.http.transport import MANAGER_INFO, Transport
from yarnctl.hadoop.lock import LockFile
from yarnctl.hadoop.lowered_queues import read_all
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.views import leaves

T = TypeVar("T")
NAME_NODE_STATE = "Hadoop:service=NameNode,name=FSNamesystemState"
HDFS = ("requests", "store", "fallback", "lock", "lowered", "above", "name_node", "safe_mode")


def gather(cluster: ClusterAddress, begin: Facts, clock_ms: Callable[[], int]) -> Facts:
    """Return ``begin`` with all that the cluster shows.

    Raises Unreachable if no active ResourceManager answers, BadInput if another daemon does.
    """
    to = cluster.transport()
    manager, why = ResourceManager(to), dict[str, str]()
    seen: dict[str, Any] = {
        "info": _identified(manager, to),
        "caller_identity": cluster.user,
        "managers": len(to.addresses),
    }
    seen["caller"] = _try(why, "caller", manager.whoami)
    seen["configuration"] = _try(why, "configuration", manager.configuration)
    seen["scheduler"] = _try(why, "scheduler", manager.scheduler_configuration)
    seen["counted"] = _try(why, "counted", manager.counted_resources)
    seen["leaves"] = _try(why, "leaves", lambda: leaves(manager.root_queue()))
    seen["clock_ahead_ms"] = to.ahead_ms(MANAGER_INFO, clock_ms)
    seen["nodes"] = _try(why, "nodes", manager.nodes)
    if begin.spark and seen["nodes"] is not None:
        seen["hosts"] = len({row.host for row in seen["nodes"]})
    elif begin.spark:
        why["hosts"] = why["nodes"]
    if seen["clock_ahead_ms"] is None:
        why.setdefault("clock_ahead_ms", "the ResourceManager's answers carry no Date")
    configuration = seen["configuration"] or {}
    nodes = cluster.name_nodes or _try(why, "webhdfs", lambda: name_nodes_in(configuration, to.pinned)) or ()
    if nodes:
        seen |= _hdfs(msgspec.structs.replace(cluster, name_nodes=nodes), begin, why)
    else:
        reason = why.setdefault("webhdfs", "no NameNode is named, and /conf names none")
        why |= dict.fromkeys(HDFS, reason)
    return msgspec.structs.replace(begin, **seen, why=why)


def _identified(manager: ResourceManager, to: Transport) -> yarn.ClusterInfo:
    """Return the cluster's identity; BadInput for another daemon of Hadoop, which has no such address."""
    try:
        return manager.identify()
    except Missing:
        remedy = "give --rm the host and port of yarn.resourcemanager.webapp.address (by default port 8088)"
        problem = "answers, but is no ResourceManager"
        raise BadInput(to.pinned or to.addresses[0], problem, remedy) from None


def _hdfs(cluster: ClusterAddress, begin: Facts, why: dict[str, str]) -> dict[str, Any]:
    hdfs = cluster.store()
    absent: list[str] = []
    root = _try(why, "webhdfs", lambda: hdfs.status("/"))
    seen: dict[str, Any] = {"webhdfs": root is not None}
    if root is None:
        why |= dict.fromkeys(HDFS, why["webhdfs"])
        return seen
    roots = [("requests", begin.requests_root), ("store", begin.store_root)]
    roots += [("fallback", begin.fallback_root)] if begin.fallback_root else []
    for name, path in roots:
        seen[name] = _try(why, name, partial(_status, hdfs, path, absent))
    seen["lock"] = _try(why, "lock", partial(hdfs.find, begin.lock_path))
    if seen["lock"] is None and "lock" not in why:
        seen["lowered"] = {}
    else:
        seen["lowered"] = _try(why, "lowered", partial(read_all, hdfs, begin.lock_path))
        seen["lock_holder"] = _try(why, "lock_holder", partial(_lock_holder, hdfs, begin.lock_path)) or ""
    found = {
        path: _try(why, "above", partial(hdfs.find, path))
        for path in above(begin.requests_root, begin.store_root, begin.lock_path)
    }
    seen["above"] = {path: status for path, status in found.items() if status is not None}
    node = Transport(
        cluster.name_nodes, cluster.identity, cluster.limits, daemon="NameNode", ca_file=cluster.ca_file
    )
    seen["name_node"] = _try(why, "name_node", ResourceManager(node).configuration)
    seen["safe_mode"] = _try(why, "safe_mode", partial(_safe_mode, node))
    return seen | {"absent": tuple(absent)}


def _safe_mode(node: Transport) -> bool | None:
    """Read from the NameNode whether it is in safe mode; None if its answer does not show it."""
    beans = node.read("/jmx", yarn.NAME_NODE_STATE, {"qry": NAME_NODE_STATE})
    return next((one.state != "Operational" for one in beans if one.state), None)


def _lock_holder(hdfs: WebHdfs, path: str) -> str:
    """Return the lock's holder as its record names it; "" if there is none."""
    record = LockFile(hdfs, path, "").current()
    return "" if record is None or record.released else record.holder


def _status(hdfs: WebHdfs, path: str, absent: list[str]) -> Any:
    try:
        return hdfs.status(path)
    except Missing:
        absent.append(path)
        return None


def _try(why: dict[str, str], name: str, ask: Callable[[], T]) -> T | None:
    try:
        return ask()
    except YarnctlError as error:
        why[name] = str(error)[:300]
        return None
