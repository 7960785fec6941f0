"""Gather the facts of ``yarnctl check`` by reading only. A read that fails is noted with its reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from yarnctl.attach.check.hdfs_rules import above
from yarnctl.attach.check.preflight import Facts, TriedAddress
from yarnctl.attach.check.scheduler_rules import pending_leaves
from yarnctl.attach.connection.connection import name_nodes_in, refuse_discovery
from yarnctl.attach.connection.web_proxy import find_proxy
from yarnctl.attach.eligibility.permission import POLICY
from yarnctl.config import ClusterAddress
from yarnctl.errors import BadInput, Unreachable, YarnctlError
from yarnctl.frameworks.flink.rest import KIND as FLINK
from yarnctl.frameworks.spark.rest import KIND as SPARK
from yarnctl.hadoop.http.answers import JSON, Missing, Rejected
from yarnctl.hadoop.http.gateway import service_at
from yarnctl.hadoop.http.transport import FAULT_WORDS, MANAGER_INFO, Transport, connection_fault
from yarnctl.hadoop.lock import LockFile, LockKind
from yarnctl.hadoop.proxied import approved
from yarnctl.hadoop.resource_manager import OtherScheduler, ResourceManager
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.node_activities import NodeActivities
from yarnctl.hadoop.zookeeper_lock import KIND as IN_ZOOKEEPER
from yarnctl.restoring.change_file import stored_records

T = TypeVar("T")
NAME_NODE_STATE = "Hadoop:service=NameNode,name=FSNamesystemState"
PAGES = {"MAPREDUCE": "/ws/v1/mapreduce/info", SPARK: "/api/v1/version", FLINK: "/jobmanager/config"}
"""The path requested of an application's page, by YARN's application type; of other types "/"."""
TRIED_MAX = 3
RECORDED_MAX, RECORDING_S = 2, 1.5
"""How many nodes' heartbeats are recorded, and for how long: a node sends one a second."""
HDFS = ("data_node", "requests", "store", "fallback", "lock", "lowered", "above", "name_node", "safe_mode")


def gather(cluster: ClusterAddress, facts: Facts, clock_ms: Callable[[], int]) -> Facts:
    """Return ``facts`` with all facts that the cluster shows; raises Unreachable, BadInput (no manager)."""
    to = cluster.transport()
    manager, why = ResourceManager(to), dict[str, str]()
    seen: dict[str, Any] = {
        "info": _identified(manager, to),
        "caller_identity": cluster.user,
        "managers": len(to.addresses),
        "knox": service_at(to.addresses[0]),
    }
    seen["caller"] = _try(why, "caller", manager.whoami)
    seen["configuration"] = _try(why, "configuration", manager.configuration)
    seen["scheduler"] = _try(why, "scheduler", manager.scheduler_configuration)
    seen["policy_runs"] = _try(why, "policy_runs", lambda: _policy_runs(to))
    seen["counted"] = _try(why, "counted", manager.counted_resources)
    try:
        seen["root"] = manager.root_queue()
    except OtherScheduler as other:
        seen["other_scheduler"] = other.kind
    except YarnctlError as error:
        why["root"] = str(error)[:300]
    seen["proxy"] = _try(why, "proxy", lambda: _proxy(cluster, to, seen["configuration"]))
    seen["clock_ahead_ms"] = to.ahead_ms(MANAGER_INFO, clock_ms)
    seen["nodes"] = _try(why, "nodes", manager.nodes)
    if seen["nodes"] and pending_leaves(msgspec.structs.replace(facts, root=seen.get("root"))):
        recorded = partial(_recorded, manager, seen["nodes"])
        seen["activities"] = _try(why, "activities", recorded)
    if facts.spark and seen["nodes"] is not None:
        seen["hosts"] = len({row.host for row in seen["nodes"]})
    elif facts.spark:
        why["hosts"] = why["nodes"]
    if seen["clock_ahead_ms"] is None:
        why.setdefault("clock_ahead_ms", "the ResourceManager's responses have no Date header")
    configuration = seen["configuration"] or {}
    nodes = cluster.name_nodes or _try(why, "webhdfs", partial(_name_nodes, cluster, configuration, to)) or ()
    if nodes:
        seen |= _hdfs(msgspec.structs.replace(cluster, name_nodes=nodes), facts, why)
    else:
        reason = why.setdefault("webhdfs", "--name-node is not set, and /conf names no NameNode")
        why |= dict.fromkeys(HDFS, reason)
    return msgspec.structs.replace(facts, **seen, why=why)


def _name_nodes(
    cluster: ClusterAddress, configuration: Mapping[str, str], transport: Transport
) -> tuple[str, ...]:
    refuse_discovery(cluster, "--name-node", "set it to https://HOST:8443/gateway/TOPOLOGY")
    return name_nodes_in(configuration, transport.pinned)


def _identified(manager: ResourceManager, transport: Transport) -> yarn.ClusterInfo:
    """Return the cluster's identity. Raises BadInput for another kind of daemon, which lacks this address."""
    try:
        return manager.identify()
    except Missing:
        remedy = "set --rm to the host and port of yarn.resourcemanager.webapp.address (default port 8088)"
        problem = "this server answers, but it is not a ResourceManager"
        raise BadInput(transport.pinned or transport.addresses[0], problem, remedy) from None


def _recorded(manager: ResourceManager, nodes: tuple[yarn.NodeRow, ...]) -> tuple[NodeActivities, ...]:
    """Have the next heartbeats of the nodes with the most free capacity recorded; return the new records."""
    offering = sorted((node for node in nodes if min(node.free) > 0), key=lambda node: (node.free, node.node))
    chosen = [node.node for node in offering[-RECORDED_MAX:]]
    before = {node: manager.activities(node).at_ms for node in chosen}
    time.sleep(RECORDING_S if chosen else 0)
    after = [manager.activities(node) for node in reversed(chosen)]
    return tuple(each for each in after if each.at_ms not in (0, before[each.node]))


def _policy_runs(transport: Transport) -> bool:
    """Return whether YARN's own preemption has its thread: the fields of queues show its settings only."""
    answer = transport.fetch("/stacks", accept="*/*")
    if answer.status != 200:
        raise Unreachable(f"{answer.url}: HTTP {answer.status}, so the threads are not shown")
    return f"SchedulingMonitor ({POLICY})".encode() in answer.body


def _proxy(
    cluster: ClusterAddress, transport: Transport, configuration: Mapping[str, str] | None
) -> TriedAddress:
    """Request the page of a running application; raises Unreachable where none is running."""
    manager = ResourceManager(transport)
    rows = [row for row in manager.applications() if row.state == "RUNNING"]
    rows.sort(key=lambda row: (row.kind.upper() not in PAGES, -row.containers, row.application))
    if not rows:
        raise Unreachable("not checked: no application is running")
    found = find_proxy(cluster, manager, configuration, transport.pinned)
    limits = msgspec.structs.replace(cluster.limits, retries=0)
    with Transport(
        found.addresses, cluster.identity, limits, daemon=found.daemon, ca_file=cluster.ca_file
    ) as masters:
        for row in rows[:TRIED_MAX]:
            tried = _page(masters, row)._replace(source=found.source)
            if tried.fault or not tried.problem:
                break
    return tried


def _page(masters: Transport, app: yarn.AppInfo) -> TriedAddress:
    """Request one application's page. An answer proves only that the page can be reached."""
    begun = TriedAddress(" and ".join(masters.addresses), application=app.application)
    path = PAGES.get(app.kind.upper())
    try:
        query = approved(masters, app.application)
        answer = masters.fetch(f"/proxy/{app.application}{path or '/'}", query, JSON if path else "*/*")
    except (Unreachable, Rejected) as problem:
        kind = problem.kind if isinstance(problem, Unreachable) else ""
        return begun._replace(fault=kind, problem=(problem.fault or str(problem))[:200])
    if path is None or (answer.status == 200 and answer.is_json):
        return begun
    return begun._replace(problem=f"HTTP {answer.status} {answer.kind}".strip())


def _data_node(cluster: ClusterAddress, hdfs: WebHdfs, folder: str) -> TriedAddress:
    """Connect to the DataNode that HDFS names for a new file in an existing folder; write nothing."""
    at = hdfs.data_address(folder)
    fault = connection_fault(at, msgspec.structs.replace(cluster.limits, retries=0), cluster.ca_file)
    return TriedAddress(at) if fault is None else TriedAddress(at, fault, FAULT_WORDS[fault])


def _hdfs(cluster: ClusterAddress, facts: Facts, why: dict[str, str]) -> dict[str, Any]:
    hdfs = cluster.store()
    absent: list[str] = []
    root = _try(why, "webhdfs", lambda: hdfs.status("/"))
    seen: dict[str, Any] = {"webhdfs": root is not None}
    if root is None:
        why |= dict.fromkeys(HDFS, why["webhdfs"])
        return seen
    roots = [("requests", facts.requests_root), ("store", facts.store_root)]
    roots += [("fallback", facts.fallback_root)] if facts.fallback_root else []
    for name, path in roots:
        seen[name] = _try(why, name, partial(_status, hdfs, path, absent))
    seen["lock"] = _try(why, "lock", partial(hdfs.find, facts.lock_path))
    if seen["lock"] is None and "lock" not in why:
        seen["lowered"] = ()
    else:
        seen["lowered"] = _try(why, "lowered", partial(stored_records, hdfs, facts.lock_path))
        seen["lock_holder"] = _try(why, "lock_holder", partial(_lock_holder, hdfs, facts.lock_path)) or ""
    found = {
        path: _try(why, "above", partial(hdfs.find, path))
        for path in above(facts.requests_root, facts.store_root, facts.lock_path)
    }
    seen["above"] = {path: status for path, status in found.items() if status is not None}
    lowest = facts.store_root if seen["store"] is not None else next(reversed(seen["above"]), "/")
    seen["data_node"] = _try(why, "data_node", lambda: _data_node(cluster, hdfs, lowest))
    node = Transport(
        cluster.name_nodes, cluster.identity, cluster.limits, daemon="NameNode", ca_file=cluster.ca_file
    )
    seen["name_node"] = _try(why, "name_node", ResourceManager(node).configuration)
    seen["safe_mode"] = _try(why, "safe_mode", partial(_safe_mode, node))
    return seen | {"absent": tuple(absent)}


def _safe_mode(transport: Transport) -> bool | None:
    beans = transport.read("/jmx", yarn.NAME_NODE_STATE, {"qry": NAME_NODE_STATE})
    return next((one.state != "Operational" for one in beans if one.state), None)


def _lock_holder(hdfs: WebHdfs, path: str) -> str:
    if LockKind(hdfs, path).found().startswith(IN_ZOOKEEPER):
        return IN_ZOOKEEPER
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
