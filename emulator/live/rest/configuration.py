"""Configuration: GET /conf, what a daemon says its effective settings are.

Law: what is said here is what the emulator does; a key that would promise something else is left out.
JSON where the client accepts it, XML otherwise, as Hadoop's ConfServlet.
"""

from __future__ import annotations

from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from emulator.live.manager.service import LiveResourceManager
from emulator.live.rest.scheduler_conf import SchedulerConfiguration
from emulator.live.wire.hadoop_request import NOBODY
from emulator.live.wire.web import Problem, Reply, Request, json_reply

_CAPACITY = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"


class DaemonConfiguration:
    """The settings of one ResourceManager at ``url``. ``more`` are added and win."""

    def __init__(
        self,
        manager: LiveResourceManager,
        scheduler: SchedulerConfiguration,
        url: str,
        name_node: str,
        more: dict[str, str],
        login_user: str = "yarn",
    ) -> None:
        self.login_user = login_user
        self._manager = manager
        self._scheduler = scheduler
        self._url = url
        self._name_node = name_node
        self._more = more

    def entries(self) -> dict[str, tuple[str, str]]:
        """Return key -> value and the file it would stand in."""
        settings, timing = self._manager.settings, self._manager.settings.timing
        web, name_node = urlsplit(self._url).netloc, urlsplit(self._name_node).netloc
        core = {
            "fs.defaultFS": f"webhdfs://{name_node}",
            "hadoop.security.authentication": "simple",
            "hadoop.security.authorization": "false",
            "hadoop.http.authentication.type": "simple",
            "hadoop.http.authentication.simple.anonymous.allowed": "true",
            "hadoop.http.filter.initializers": "org.apache.hadoop.http.lib.StaticUserWebFilter",
            "hadoop.http.staticuser.user": NOBODY,
        }
        hdfs = {
            "dfs.namenode.http-address": name_node,
            "dfs.http.policy": "HTTP_ONLY",
            "dfs.webhdfs.enabled": "true",
            "dfs.permissions.enabled": "true",
            "dfs.replication": "1",
        }
        yarn = {
            "yarn.resourcemanager.hostname": urlsplit(self._url).hostname or "",
            "yarn.resourcemanager.webapp.address": web,
            "yarn.http.policy": "HTTP_ONLY",
            "yarn.resourcemanager.ha.enabled": "false",
            "yarn.resourcemanager.scheduler.class": _CAPACITY,
            "yarn.resourcemanager.scheduler.monitor.enable": "false",
            "yarn.resourcemanager.am.max-attempts": str(settings.max_attempts),
            "yarn.resourcemanager.max-completed-applications": str(settings.finished_kept),
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": str(timing.nm_heartbeat_ms),
            "yarn.resourcemanager.recovery.enabled": "false",
            "yarn.nm.liveness-monitor.expiry-interval-ms": str(self._manager.node_expiry_ms),
            "yarn.am.liveness-monitor.expiry-interval-ms": str(self._manager.am_expiry_ms),
            "yarn.nodemanager.sleep-delay-before-sigkill.ms": "250",
            "yarn.scheduler.minimum-allocation-mb": "1",
            "yarn.scheduler.minimum-allocation-vcores": "1",
            "yarn.scheduler.configuration.store.class": "memory" if self._scheduler.mutable else "file",
            "yarn.cluster.max-application-priority": str(settings.max_priority),
            "yarn.acl.enable": "false",
            "yarn.admin.acl": "*",
            "yarn.webapp.enable-rest-app-submissions": "true",
            "yarn.resourcemanager.proxy.timeout.enabled": "true",
        }
        mapred = {
            "mapreduce.framework.name": "yarn",
            "mapreduce.map.speculative": "false",
            "mapreduce.reduce.speculative": "false",
            "mapreduce.job.reduce.slowstart.completedmaps": f"{timing.slow_start_ratio:g}",
            "mapreduce.cluster.acls.enabled": "false",
            "mapreduce.jobhistory.webapp.address": web,
        }
        files = {
            "core-site.xml": core,
            "hdfs-site.xml": hdfs,
            "mapred-site.xml": mapred,
            "yarn-site.xml": yarn,
            "capacity-scheduler.xml": self._scheduler.keys,
            "emulator": self._more,
        }
        return {key: (value, name) for name, own in files.items() for key, value in own.items()}

    def answer(self, request: Request) -> Reply:
        """Answer GET /conf, the whole or the key ``name``."""
        entries = self.entries()
        name = request.query.get("name", "")
        if name:
            if name not in entries:
                raise Problem(404, "NotFoundException", f"Property {name[:100]} not found")
            entries = {name: entries[name]}
        rows = [
            {"key": key, "value": value, "isFinal": False, "resource": source}
            for key, (value, source) in sorted(entries.items())
        ]
        if "json" in request.header("accept") or request.query.get("format") == "json":
            return json_reply({"property": rows[0]} if name else {"properties": rows})
        lines = "".join(
            f"<property><name>{escape(key)}</name><value>{escape(value)}</value><final>false</final>"
            f"<source>{escape(source)}</source></property>"
            for key, (value, source) in sorted(entries.items())
        )
        text = f'<?xml version="1.0" encoding="UTF-8" standalone="no"?><configuration>{lines}</configuration>'
        return Reply(200, text.encode(), "text/xml;charset=utf-8")
