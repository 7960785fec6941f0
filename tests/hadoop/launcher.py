"""A cluster as one thing: up, its addresses, one daemon killed or started again, down.

Law: what cannot start says why and leaves nothing; ports that others took between choice and use are a
reason to choose again, not to fail.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests import http_client
from tests.hadoop import daemons
from tests.hadoop.artifacts import jars as jars_of
from tests.hadoop.configuration import OPENS, Ports, Shape, change, free_ports, write
from tests.hadoop.daemons import Daemon, DaemonDied

STARTS = 3
STATE = "cluster.json"


class Cluster:
    """A running Hadoop; use it as a context, or ``up`` and ``down``.

    ``folder`` holds everything: configuration, data, logs. ``rm_url``, ``hdfs_url`` and ``history_url``
    have no slash at the end; ``conf`` is what a client takes as HADOOP_CONF_DIR.
    """

    def __init__(self, shape: Shape | None = None, folder: Path | None = None) -> None:
        self.shape = shape or Shape()
        self._own = folder is None
        self.folder = (folder or Path(tempfile.mkdtemp(prefix="yarnctl-hadoop-"))).resolve()
        self.jars = jars_of(self.shape.version)
        self.daemons: dict[str, Daemon] = {}

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    def up(self) -> None:
        """Start everything and wait until every node is in service; raises DaemonDied."""
        for last in (False,) * (STARTS - 1) + (True,):
            try:
                self._up()
                return
            except BaseException as error:
                self.stop()
                if last or not isinstance(error, DaemonDied) or "BindException" not in str(error):
                    raise

    def down(self) -> None:
        """Stop everything that was started, containers included; remove an own folder."""
        self.stop()
        if self._own:
            shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self) -> None:
        """Stop everything and leave the folder."""
        daemons.stop(self.daemons.values())
        self.daemons.clear()
        daemons.stop_all(self.folder)

    # -- one daemon -------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        conf = self.folder / (
            f"conf-nm-{name.partition('-')[2]}" if name.startswith("nodemanager") else "conf"
        )
        self.daemons[name] = daemons.start(name, conf, self.jars, self.folder)

    def kill(self, name: str) -> None:
        daemon = self.daemons.pop(name)
        daemon.process.kill()
        daemon.process.wait()

    def restart(self, name: str) -> None:
        """Stop one daemon politely and start it again with the configuration as it is now."""
        daemons.stop([self.daemons.pop(name)])
        self.start(name)

    def restart_manager(self, changes: Mapping[str, Mapping[str, str | None]]) -> None:
        """Restart the ResourceManager with other properties (by file, as Shape has them), nodes and all.

        ``None`` takes a property away. What ran is gone; returns when every node is in service again.
        """
        for name, properties in changes.items():
            change(self.conf / f"{name}.xml", properties)
        self.restart("resourcemanager")
        self.wait_for_nodes(self.shape.nodes)

    def pid(self, name: str) -> int:
        return self.daemons[name].process.pid

    def wait_for_nodes(self, count: int) -> None:
        """Wait until the ResourceManager counts as many active nodes."""
        daemons.wait(self.daemons.values(), lambda: self._active_nodes() == count, f"{count} active nodes")

    def wait_for_rest(self) -> None:
        daemons.wait(self.daemons.values(), lambda: self._metric("containersAllocated") == 0, "no container")

    def wait_for_hdfs(self) -> None:
        """Wait until files can be written."""
        daemons.wait(self.daemons.values(), self._hdfs_serves, "HDFS out of safe mode")

    # -- what a client needs ----------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a client: HADOOP_CONF_DIR and ``hadoop`` on the path."""
        given = daemons.environment(self.folder)
        del given["YARNCTL_TEST_CLUSTER"]
        path = f"{self.folder}/bin{os.pathsep}{given.get('PATH', '')}"
        return {**given, "HADOOP_CONF_DIR": str(self.conf), "PATH": path}

    @property
    def streaming_jar(self) -> Path:
        return next(
            path for path in sorted(self.jars.glob("hadoop-streaming-*.jar")) if "tests" not in path.name
        )

    def run(self, *words: str, user: str = "", timeout_s: float = 600) -> subprocess.CompletedProcess[str]:
        """Run a client command (``hadoop fs -ls /``); raises AssertionError with what it said."""
        given = {**self.environment, **({"HADOOP_USER_NAME": user} if user else {})}
        done = subprocess.run(words, env=given, capture_output=True, text=True, timeout=timeout_s)
        if done.returncode:
            raise AssertionError(f"{' '.join(words)} left with {done.returncode}: {done.stderr[-3000:]}")
        return done

    # -- inside -----------------------------------------------------------------------------------

    def _up(self) -> None:
        self.ports = Ports(*free_ports(6))
        for name in ("name", "data", "tmp"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.conf = write(self.shape, self.folder, self.jars, self.ports)
        self._write_programs()
        self.rm_url = f"http://127.0.0.1:{self.ports.resource_manager_http}"
        self.hdfs_url = f"http://127.0.0.1:{self.ports.name_node_http}"
        self.history_url = f"http://127.0.0.1:{self.ports.history_http}"
        self._format()
        for name in ("namenode", "datanode", "resourcemanager"):
            self.start(name)
        for number in range(self.shape.nodes):
            self.start(f"nodemanager-{number}")
        self.wait_for_hdfs()
        self._make_folders()
        self.start("historyserver")
        self.wait_for_nodes(self.shape.nodes)
        history = f"{self.history_url}/ws/v1/history/info"
        daemons.wait(self.daemons.values(), lambda: self._answer(history) is not None, "the history server")
        self._note()

    def _format(self) -> None:
        words = daemons.java_words("namenode", f"{self.conf}:{self.jars}/*", ["-format", "-nonInteractive"])
        done = subprocess.run(
            words, env=daemons.environment(self.folder), capture_output=True, text=True, cwd=self.folder
        )
        if done.returncode:
            raise DaemonDied(f"namenode -format left with {done.returncode}: {done.stderr[-1000:]}")

    def _make_folders(self) -> None:
        """Make what an administrator makes: homes and a staging folder that all may use."""
        user = os.environ.get("USER") or "root"
        for path, mode in (("/tmp/hadoop-yarn/staging/history", "1777"), ("/tmp", "1777"), ("/user", "1777")):
            for operation in ("MKDIRS", "SETPERMISSION"):
                url = f"{self.hdfs_url}/webhdfs/v1{path}?op={operation}&permission={mode}&user.name={user}"
                http_client.put(url, timeout=180).raise_for_status()
        for path in ("/tmp/hadoop-yarn", "/tmp/hadoop-yarn/staging"):
            url = f"{self.hdfs_url}/webhdfs/v1{path}?op=SETPERMISSION&permission=1777&user.name={user}"
            http_client.put(url, timeout=180).raise_for_status()

    def _write_programs(self) -> None:
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        script = HADOOP.format(jars=self.jars, opens=OPENS, conf=self.conf)
        for name in ("hadoop", "hdfs", "yarn", "mapred"):
            (programs / name).write_text(script, encoding="utf-8")
            (programs / name).chmod(0o755)

    def _active_nodes(self) -> int:
        return self._metric("activeNodes")

    def _metric(self, name: str) -> int:
        metrics = (self._answer(f"{self.rm_url}/ws/v1/cluster/metrics") or {}).get("clusterMetrics", {})
        return int(metrics.get(name, -1))

    def _hdfs_serves(self) -> bool:
        beans = self._answer(f"{self.hdfs_url}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState") or {}
        rows = beans.get("beans") or [{}]
        return rows[0].get("FSState") == "Operational" and rows[0].get("NumLiveDataNodes") == 1

    def _answer(self, url: str) -> Any:
        """Return the JSON that a daemon answers, None if it does not (a secured cluster asks otherwise)."""
        return _answer(url)

    def _note(self) -> None:
        told = {"rm": self.rm_url, "hdfs": self.hdfs_url, "history": self.history_url}
        told |= {"hadoop-conf-dir": str(self.conf), "version": self.shape.version}
        told |= {"streaming-jar": str(self.streaming_jar), "bin": str(self.folder / "bin")}
        told |= {"superuser": getpass.getuser()}
        (self.folder / STATE).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def _answer(url: str) -> Any:
    try:
        answer = http_client.get(url, timeout=5, headers={"Accept": "application/json"})
        return answer.json() if answer.ok else None
    except (http_client.RequestException, ValueError):
        return None


HADOOP = """\
#!/bin/sh
# A client of this cluster: of hadoop, hdfs, yarn and mapred what docs/attach.md uses, and a little more.
set -eu
tool="$1"; shift
case "$tool" in
    jar) main=org.apache.hadoop.util.RunJar ;;
    fs|dfs) main=org.apache.hadoop.fs.FsShell ;;
    application|app) main=org.apache.hadoop.yarn.client.cli.ApplicationCLI; set -- "$tool" "$@" ;;
    job) main=org.apache.hadoop.mapred.JobClient ;;
    node) main=org.apache.hadoop.yarn.client.cli.NodeCLI ;;
    queue) main=org.apache.hadoop.yarn.client.cli.QueueCLI ;;
    logs) main=org.apache.hadoop.yarn.client.cli.LogsCLI ;;
    rmadmin) main=org.apache.hadoop.yarn.client.cli.RMAdminCLI ;;
    groups) main=org.apache.hadoop.hdfs.tools.GetGroups ;;
    dfsadmin) main=org.apache.hadoop.hdfs.tools.DFSAdmin ;;
    version) main=org.apache.hadoop.util.VersionInfo ;;
    *.*) main="$tool" ;;  # a class by its name, as ``hadoop CLASSNAME`` has it
    *) echo "not here: $tool" >&2; exit 2 ;;
esac
exec "${{JAVA_HOME:+$JAVA_HOME/bin/}}java" -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 {opens} \\
    -cp "${{HADOOP_CONF_DIR:-{conf}}}:{jars}/*" "$main" "$@"
"""
