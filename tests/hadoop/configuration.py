"""The configuration folder of a small cluster: Hadoop's site files, with the queues of ``hadoop-conf/``.

Law: every port is free when chosen and every path lies under the cluster's own folder. The queues and
yarn-site properties are read from ``hadoop-conf/``, so that what a user is given is what is tried.
Values that are not the default's stand here because of facts/hadoop.md, sections 7 and 11.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

VERSION = os.environ.get("YARNCTL_HADOOP", "3.4.2")
"""The Hadoop that the tests start."""
READY = Path(__file__).parents[2] / "hadoop-conf"
OPENED = (
    "lang", "lang.reflect", "util", "util.concurrent", "util.zip", "io", "net", "nio", "math", "text", "time",
)  # fmt: skip
OPENS = " ".join(
    [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED]
    + ["--add-opens=java.base/sun.security.util=ALL-UNNAMED", "--add-opens=java.base/sun.net.dns=ALL-UNNAMED"]
)
SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


@dataclass(frozen=True)
class Shape:
    """What is started: nodes of some size, and a set-up of queues from ``hadoop-conf/``.

    ``overrides`` are properties by file name without ``.xml``, which win over all others. ``own_hosts``: each
    NodeManager has an address of its own (127.0.0.2, ...), so that frameworks tell their hosts apart.
    """

    version: str = VERSION
    set_up: str = "dual-queue"
    nodes: int = 3
    node_memory_mib: int = 1024
    node_vcores: int = 8
    container_mib: int = 256
    overrides: dict[str, dict[str, str]] = field(default_factory=dict)
    own_hosts: bool = False


@dataclass(frozen=True)
class Ports:
    """The ports that others must know; the rest is chosen as the files are written."""

    name_node: int
    name_node_http: int
    resource_manager: int
    resource_manager_http: int
    history: int
    history_http: int


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that nobody listens on; all are held open until all are chosen."""
    with contextlib.ExitStack() as held:
        ports = []
        for _ in range(count):
            listener = held.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            ports.append(int(listener.getsockname()[1]))
        return ports


def write(shape: Shape, folder: Path, jars: Path, ports: Ports) -> Path:
    """Write ``conf`` (daemons and clients) and ``conf-nm-N``; return ``conf``."""
    conf = folder / "conf"
    classpath = f"{conf},{jars}/*"
    sites = {
        "core-site": _core(folder, ports),
        "hdfs-site": _hdfs(folder, ports),
        "yarn-site": {**ready(shape.set_up, "yarn-site"), **_yarn(shape, ports, classpath)},
        "mapred-site": _mapred(shape, ports, classpath),
        "capacity-scheduler": ready(shape.set_up, "capacity-scheduler"),
    }
    for name, overrides in shape.overrides.items():
        sites.setdefault(name, {}).update(overrides)
    _write_sites(conf, sites)
    for number in range(shape.nodes):
        host = f"127.0.0.{number + 2}" if shape.own_hosts else "127.0.0.1"
        node = {**sites["yarn-site"], **_node(folder, number, host)}
        shuffle = {**sites["mapred-site"], "mapreduce.shuffle.port": "0"}
        _write_sites(folder / f"conf-nm-{number}", {**sites, "yarn-site": node, "mapred-site": shuffle})
    return conf


def change(file: Path, properties: Mapping[str, str | None]) -> None:
    """Set properties in a site file that is there; None takes one away."""
    root = ElementTree.parse(file).getroot()
    held = {entry.findtext("name", ""): entry.findtext("value", "") for entry in root}
    for key, value in properties.items():
        held.pop(key, None)
        if value is not None:
            held[key] = value
    _write_sites(file.parent, {file.stem: held})


def _write_sites(conf: Path, sites: dict[str, dict[str, str]]) -> None:
    conf.mkdir(parents=True, exist_ok=True)
    for name, properties in sites.items():
        root = ElementTree.Element("configuration")
        for key, value in properties.items():
            entry = ElementTree.SubElement(root, "property")
            ElementTree.SubElement(entry, "name").text = key
            ElementTree.SubElement(entry, "value").text = value
        ElementTree.indent(root)
        (conf / f"{name}.xml").write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))
    (conf / "log4j.properties").write_text(LOGGING, encoding="utf-8")


LOGGING = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
"""


def ready(set_up: str, name: str) -> dict[str, str]:
    """Return the properties of a file of ``hadoop-conf/``."""
    root = ElementTree.parse(READY / set_up / f"{name}.xml").getroot()
    return {entry.findtext("name", ""): entry.findtext("value", "").strip() for entry in root}


def _core(folder: Path, ports: Ports) -> dict[str, str]:
    return {
        "fs.defaultFS": f"hdfs://127.0.0.1:{ports.name_node}",
        "hadoop.tmp.dir": f"{folder}/tmp",
        "hadoop.http.staticuser.user": "nobody",
        "hadoop.user.group.static.mapping.overrides": "dr.who=;yarnctl=yarnctl",
    }


SMALL_FILES = {
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
    "dfs.client.block.write.locateFollowingBlock.retries": "10",
}
"""As hadoop-conf/hdfs/hdfs-site.xml advises."""


def _hdfs(folder: Path, ports: Ports) -> dict[str, str]:
    address, http, ipc = free_ports(3)
    return {
        "dfs.replication": "1",
        "dfs.namenode.name.dir": f"file://{folder}/name",
        "dfs.datanode.data.dir": f"file://{folder}/data",
        "dfs.namenode.http-address": f"127.0.0.1:{ports.name_node_http}",
        "dfs.datanode.address": f"127.0.0.1:{address}",
        "dfs.datanode.http.address": f"127.0.0.1:{http}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{ipc}",
        "dfs.datanode.hostname": "127.0.0.1",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
        "dfs.permissions.superusergroup": "supergroup",
        **SMALL_FILES,
    }


def _yarn(shape: Shape, ports: Ports, classpath: str) -> dict[str, str]:
    scheduler, tracker, admin = free_ports(3)
    return {
        # As most tests run the daemon without --yarn-preemption switch, on a store that is a file.
        "yarn.scheduler.configuration.store.class": "file",
        "yarn.resourcemanager.scheduler.monitor.enable": "false",
        "yarn.resourcemanager.hostname": "127.0.0.1",
        "yarn.resourcemanager.address": f"127.0.0.1:{ports.resource_manager}",
        "yarn.resourcemanager.webapp.address": f"127.0.0.1:{ports.resource_manager_http}",
        "yarn.resourcemanager.scheduler.address": f"127.0.0.1:{scheduler}",
        "yarn.resourcemanager.resource-tracker.address": f"127.0.0.1:{tracker}",
        "yarn.resourcemanager.admin.address": f"127.0.0.1:{admin}",
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.5",
        "yarn.nodemanager.resource.memory-mb": str(shape.node_memory_mib),
        "yarn.nodemanager.resource.cpu-vcores": str(shape.node_vcores),
        "yarn.scheduler.minimum-allocation-mb": str(shape.container_mib),
        "yarn.scheduler.include-port-in-node-name": "true",  # several NodeManagers on one host
        "yarn.application.classpath": classpath,
        "yarn.nodemanager.container-localizer.java.opts": f"-Xmx128m {OPENS}",
        "yarn.nodemanager.delete.debug-delay-sec": "0",
    }


def _node(folder: Path, number: int, host: str) -> dict[str, str]:
    address, localizer, http, collector = free_ports(4)
    return {
        "yarn.nodemanager.hostname": host,
        "yarn.nodemanager.address": f"{host}:{address}",
        "yarn.nodemanager.localizer.address": f"{host}:{localizer}",
        "yarn.nodemanager.webapp.address": f"{host}:{http}",
        "yarn.nodemanager.collector-service.address": f"{host}:{collector}",
        "yarn.nodemanager.local-dirs": f"{folder}/nm-{number}/local",
        "yarn.nodemanager.log-dirs": f"{folder}/nm-{number}/logs",
    }


def _mapred(shape: Shape, ports: Ports, classpath: str) -> dict[str, str]:
    (admin,) = free_ports(1)
    heap_mib = shape.container_mib // 2
    return {
        "mapreduce.framework.name": "yarn",
        "mapreduce.application.classpath": classpath,
        "yarn.app.mapreduce.am.resource.mb": str(shape.container_mib),
        "yarn.app.mapreduce.am.command-opts": f"-Xmx{heap_mib + 32}m {SMALL} {OPENS}",
        "yarn.app.mapreduce.am.staging-dir": "/tmp/hadoop-yarn/staging",
        "mapreduce.map.memory.mb": str(shape.container_mib),
        "mapreduce.reduce.memory.mb": str(shape.container_mib),
        "mapreduce.map.java.opts": f"-Xmx{heap_mib}m {SMALL} {OPENS}",
        "mapreduce.reduce.java.opts": f"-Xmx{heap_mib}m {SMALL} {OPENS}",
        "mapreduce.task.io.sort.mb": "16",
        "mapreduce.jobhistory.address": f"127.0.0.1:{ports.history}",
        "mapreduce.jobhistory.webapp.address": f"127.0.0.1:{ports.history_http}",
        "mapreduce.jobhistory.admin.address": f"127.0.0.1:{admin}",
        "mapreduce.jobhistory.move.interval-ms": "1000",
    }
