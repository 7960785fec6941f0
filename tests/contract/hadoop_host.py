"""The real host: an unmodified Hadoop 3 on loopback, asked as every other host is.

Law: jobs are streaming jobs, submitted by Hadoop's own client as their user; nothing of a job is modelled.
The cluster differs from ``hadoop-conf/dual-queue`` by what ``OVERRIDES`` says and why.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from tests.contract.host import Ability, JobPlan
from tests.contract.over_http import OverHttp
from tests.hadoop.configuration import Shape
from tests.hadoop.launcher import Cluster as Hadoop

NODES = 3
"""The last one is killed at once: two count."""

OVERRIDES: dict[str, dict[str, str]] = {
    "yarn-site": {
        # PUT scheduler-conf is a 400 with the default store, which is a file.
        "yarn.scheduler.configuration.store.class": "memory",
        # The default of ten minutes is longer than the whole suite; a node that is only slow must stay.
        "yarn.nm.liveness-monitor.expiry-interval-ms": "20000",
        # Where the default (0) caps every priority, nothing is seen of the cap.
        "yarn.cluster.max-application-priority": "10",
    }
}

SERIES: dict[str, Literal["3.3", "3.4", "3.5"]] = {"3.3.5": "3.3", "3.4.2": "3.4", "3.5.0": "3.5"}
INPUT = "/contract-input"
SUBMITTED = re.compile(r"Submitted application (application_\d+_\d+)")


class HadoopHost(OverHttp):
    """NameNode, DataNode, ResourceManager, NodeManagers and JobHistoryServer, each a JVM of its own."""

    slot_mib = 256
    patience_s = 600.0  # ten JVMs that share a busy machine start slowly
    standby = ""
    cannot: Mapping[Ability, str] = {
        "standby": "a ResourceManager on standby needs ZooKeeper, which this cluster does not have"
    }

    def __init__(self, folder: Path, hadoop: str) -> None:
        self.name = f"hadoop-{hadoop}"
        self.version = SERIES[hadoop]
        self.superuser = getpass.getuser()
        shape = Shape(hadoop, nodes=NODES, node_memory_mib=4 * self.slot_mib, overrides=OVERRIDES)
        self._cluster = Hadoop(shape, folder)
        self._cluster.up()
        try:
            self.rm, self.history = self._cluster.rm_url, self._cluster.history_url
            self.hdfs = f"{self._cluster.hdfs_url}/webhdfs/v1"
            self.silent_node = self._silence(f"nodemanager-{NODES - 1}")
            self._put_input()
        except BaseException:
            self.close()
            raise

    def _silence(self, daemon: str) -> str:
        """Kill a NodeManager; return the id of its node."""
        site = self._cluster.folder / f"conf-nm-{daemon.partition('-')[2]}" / "yarn-site.xml"
        text = site.read_text(encoding="utf-8")
        found = re.search(r"<name>yarn\.nodemanager\.address</name>\s*<value>([^<]+)</value>", text)
        assert found is not None, site
        port = found[1].rpartition(":")[2]
        told = self.ask("GET", f"{self.rm}/ws/v1/cluster/nodes", headers={"Accept": "application/json"})
        ids = [str(one["id"]) for one in told.json()["nodes"]["node"]]
        self._cluster.kill(daemon)
        return next(one for one in ids if one.endswith(f":{port}"))

    def _put_input(self) -> None:
        """Lay down a file that every job reads."""
        query = f"user.name={self.superuser}"
        for path, text in (("part-0", "a\t1\nb\t2\n"), ("part-1", "c\t3\n")):
            url = f"{self.hdfs}{INPUT}/{path}?op=CREATE&{query}"
            answer = self.ask("PUT", self.ask("PUT", url).headers["location"], text.encode())
            assert answer.status == 201, answer

    def submit(self, plan: JobPlan) -> str:
        """Submit a streaming job by ``hadoop jar``, which returns once it is accepted."""
        done = self._cluster.run(*self._words(plan), user=plan.user)
        found = SUBMITTED.search(done.stdout + done.stderr)
        assert found is not None, (done.stdout, done.stderr)
        return found[1]

    def _words(self, plan: JobPlan) -> list[str]:
        waits = f"test $mapreduce_task_partition -lt {plan.done} ||"
        settings = {
            "mapreduce.job.queuename": plan.queue, "mapreduce.job.name": plan.name,
            "mapreduce.job.reduces": plan.reduces, "mapreduce.job.maps": plan.maps,
            "mapreduce.job.tags": plan.tags, "mapreduce.map.speculative": "false",
            "mapreduce.reduce.speculative": "false",
        }  # fmt: skip
        assert plan.maps <= 2, "there is a file for each of two maps"
        inputs = [word for number in range(plan.maps) for word in ("-input", f"{INPUT}/part-{number}")]
        return [
            *("hadoop", "jar", str(self._cluster.streaming_jar)),
            *(f"-D{key}={value}" for key, value in settings.items() if value != ""), "-background", *inputs,
            *("-output", f"/user/{plan.user}/out-{plan.name}"), *("-mapper", "cat"),
            *("-reducer", f"sh -c '{waits} exec sleep 3600; cat'" if plan.holds else "cat"),
        ]  # fmt: skip

    def context(self, application: str, plan: JobPlan) -> dict[str, Any]:
        """Return a submission context: an AM that never says a word, and waits to be killed."""
        found: dict[str, Any] = {
            "application-id": application, "application-name": plan.name, "application-type": "MAPREDUCE",
            "queue": plan.queue, "resource": {"memory": self.slot_mib, "vCores": 1},
            "am-container-spec": {"commands": {"command": "exec sleep 3600"}},
        }  # fmt: skip
        return found | ({"application-tags": {"tag": plan.tags.split(",")}} if plan.tags else {})

    def close(self) -> None:
        """End every daemon and every container."""
        self._cluster.down()
