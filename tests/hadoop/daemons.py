"""Hadoop's daemons as processes: started, watched, stopped and waited for.

Law: a daemon that died is named at once with the last thing its log says; nothing that was started is
left behind, containers included.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.hadoop.configuration import OPENS, SMALL

PATIENCE_S = 180.0
STOPS_S = 20.0
LOOK_AGAIN_S = 0.2
MAINS = {
    "namenode": ("org.apache.hadoop.hdfs.server.namenode.NameNode", 256),
    "datanode": ("org.apache.hadoop.hdfs.server.datanode.DataNode", 256),
    "resourcemanager": ("org.apache.hadoop.yarn.server.resourcemanager.ResourceManager", 400),
    "nodemanager": ("org.apache.hadoop.yarn.server.nodemanager.NodeManager", 192),
    "historyserver": ("org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer", 256),
}


class DaemonDied(Exception):
    """A daemon has left; says which, and its log's last error."""


@dataclass
class Daemon:
    """One running JVM, its name (``nodemanager-0``) and the log that holds all it says."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def last_words(self) -> str:
        """Return the last line of the log that tells of an error, else the last line."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        telling = [line for line in lines if "Exception" in line or " ERROR " in line or " FATAL " in line]
        return (telling or lines or ["(nothing was logged)"])[-1][:500]


def java_words(kind: str, classpath: str, words: Iterable[str] = ()) -> list[str]:
    """Return the command line of a daemon."""
    main, heap_mib = MAINS[kind]
    return ["java", f"-Xmx{heap_mib}m", *SMALL.split(), *OPENS.split(), "-cp", classpath, main, *words]


def environment(folder: Path) -> dict[str, str]:
    """Return the daemons' environment; JAVA_HOME must be there, for it is what containers are given."""
    java = Path(os.path.realpath(_which("java")))
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("HADOOP_", "YARN_"))},
        "JAVA_HOME": os.environ.get("JAVA_HOME") or str(java.parents[1]),
        "HADOOP_HOME": str(folder),
        "HADOOP_LOG_DIR": str(folder / "log"),
        "YARNCTL_TEST_CLUSTER": str(folder),
    }


def _which(program: str) -> str:
    for part in os.environ.get("PATH", "").split(os.pathsep):
        if os.access(f"{part}/{program}", os.X_OK):
            return f"{part}/{program}"
    raise FileNotFoundError(program)


def start(name: str, conf: Path, jars: Path, folder: Path) -> Daemon:
    """Start the daemon ``KIND`` or ``KIND-N``; its output is ``log/NAME.log``."""
    log = folder / "log" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        process = subprocess.Popen(
            java_words(name.partition("-")[0], f"{conf}:{jars}/*"), stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, cwd=folder, env=environment(folder), start_new_session=True,
        )  # fmt: skip
    return Daemon(name, process, log)


def wait(daemons: Iterable[Daemon], condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; raises DaemonDied as soon as one of the daemons has left."""
    ends = time.monotonic() + PATIENCE_S
    daemons = list(daemons)
    while not condition():
        for daemon in daemons:
            if (status := daemon.process.poll()) is not None:
                raise DaemonDied(f"{daemon.name} left with {status}: {daemon.last_words()} ({daemon.log})")
        if time.monotonic() > ends:
            raise DaemonDied(f"{what}: not within {PATIENCE_S:.0f} s; logs: {daemons[0].log.parent}")
        time.sleep(LOOK_AGAIN_S)


def stop(daemons: Iterable[Daemon]) -> None:
    """Ask all to leave, wait for them, and kill what does not."""
    daemons = list(daemons)
    for daemon in daemons:
        with contextlib.suppress(ProcessLookupError):
            daemon.process.terminate()
    ends = time.monotonic() + STOPS_S
    for daemon in daemons:
        try:
            daemon.process.wait(max(0.1, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            daemon.process.kill()
            daemon.process.wait()


def of_cluster(folder: Path) -> Iterator[int]:
    """Yield every process that was started in a cluster's environment, its containers included."""
    mark = f"YARNCTL_TEST_CLUSTER={folder}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                words = (entry / "environ").read_bytes().split(b"\0")
                inside = str(folder).encode() + b"/" in (entry / "cmdline").read_bytes()
                if mark in words or inside:
                    yield int(entry.name)


def stop_all(folder: Path) -> None:
    """End every process of a cluster, politely first, and wait until none is left."""
    for number, patience_s in ((signal.SIGTERM, STOPS_S), (signal.SIGKILL, STOPS_S)):
        ends = time.monotonic() + patience_s
        for pid in of_cluster(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        while any(True for _ in of_cluster(folder)) and time.monotonic() < ends:
            time.sleep(LOOK_AGAIN_S)
