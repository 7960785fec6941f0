"""A week that a cluster lived through in virtual time, imported over its REST."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

from emulator.cluster.preemption import PreemptionConfig
from emulator.live.manager.service import ManagerSettings
from emulator.live.programs.all_in_one import ClusterPlan
from emulator.live.wire.submitted_job import ENTRY, ModelledJob, write_job
from emulator.scenario.scheduler_file import read_scheduler_file
from tests.contract.virtual_host import EPOCH_MS, VirtualHost
from tests.unit.scheduler_files import write_file
from yarnctl.attach.bill.collector import Sources
from yarnctl.attach.importing.server_import import ServerImport
from yarnctl.frameworks.mapreduce.history_server import HistoryServer
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.traces.job import Job
from yarnctl.traces.week.week_folder import WeekWriter

NODES, SLOTS = 4, 6
QUEUES = {
    "maximum-am-resource-percent": "0.5",
    "root.queues": "production,research",
    "root.production.capacity": "60",
    "root.production.user-limit-factor": "10",
    "root.research.capacity": "40",
    "root.research.user-limit-factor": "10",
}
POLL_S = 10.0


class HostTransport:
    """Reads a virtual host, as :class:`Transport` reads a server."""

    def __init__(self, host: VirtualHost) -> None:
        self.pinned = host.rm
        self._host = host

    def read(self, path: str, decoder: Any, query: Mapping[str, str] = {}) -> Any:
        url = f"{self.pinned}{path}?{urlencode(query)}"
        answer = self._host.ask("GET", url, b"", {"accept": "application/json"})
        if answer.status == 404:
            raise Missing(path)
        return decoder.read(answer.body)


class VirtualWeek:
    """A cluster of :data:`NODES` nodes with :data:`QUEUES`; its week is in ``week``."""

    def __init__(self, folder: Path, preemption: PreemptionConfig | None = None) -> None:
        self.scheduler_xml = write_file(folder, QUEUES)
        self.folder = folder / "week"
        file = read_scheduler_file(self.scheduler_xml)
        settings = ManagerSettings(
            queues=file.leaves, parents=file.parents, keys=file.keys, preemption=preemption
        )
        plan = ClusterPlan(nodes=NODES + 1, memory_mib=1024 * SLOTS, vcores=SLOTS)  # one of them falls silent
        self._host = VirtualHost(folder / "cluster", "3.4", settings, plan)

    def live(self, jobs: Sequence[Job]) -> None:
        """Submit the jobs at their instants, wait until all have ended, and import them."""
        host = self._host
        host.wait(30)  # until the silent node is lost
        begin_s = host.now_s()
        for job in jobs:
            host.wait(max(0.0, begin_s + job.submitted_at_ms / 1000 - host.now_s()))
            self._submit(job)
        while any(app["finishedTime"] == 0 for app in self._applications()):
            host.wait(POLL_S)
        transport = cast(Transport, HostTransport(host))
        servers = ServerImport(
            Sources(ResourceManager(transport), HistoryServer(transport), None),
            0,
            EPOCH_MS + 10 * 365 * 86_400_000,
        )
        with WeekWriter(self.folder) as week:
            week.write_nodes(node.pair for node in ResourceManager(transport).nodes())
            for ended in servers.jobs():
                imported = servers.read(ended)
                assert not isinstance(imported, str), imported
                week.add(imported)
        host.close()

    def _applications(self) -> list[dict[str, Any]]:
        answer = self._host.ask("GET", f"{self._host.rm}/ws/v1/cluster/apps")
        return list(json.loads(answer.body)["apps"]["app"])

    def _submit(self, job: Job) -> None:
        url = f"{self._host.rm}/ws/v1/cluster/apps"
        headers = {"content-type": "application/json"}
        user = f"user.name={job.user}"
        new = self._host.ask("POST", f"{url}/new-application?{user}", b"", headers)
        context = {
            "application-id": json.loads(new.body)["application-id"], "application-name": job.name,
            "application-type": "MAPREDUCE", "queue": job.queue, "resource": {"memory": 1024, "vCores": 1},
            "am-container-spec": {
                "environment": {"entry": [{"key": ENTRY, "value": write_job(ModelledJob(job=job))}]}
            },
        }  # fmt: skip
        answer = self._host.ask("POST", f"{url}?{user}", json.dumps(context).encode(), headers)
        assert answer.status == 202, answer
