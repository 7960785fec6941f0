"""A real ResourceManager in one JVM, with nodes and masters that act only on command.

The program is ``scheduler_java``: class ``ResourceManager`` of Hadoop, without its RPC clients. Each node's
heartbeat is sent on command, so that the order of events is known; a call returns after the ResourceManager
has handled all that the command caused. Masters are unmanaged: they have no container of their own and launch
nothing. What the ResourceManager shows is read over its own REST interface at ``url``.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from threading import Lock
from typing import Any, Self

import msgspec

from tests.hadoop.artifacts import NotToBeHad, cache_folder, jars, javac
from tests.hadoop.configuration import LOGGING, OPENS, SMALL, free_ports
from yarnctl.units import Resources

JAVA = Path(__file__).parent / "scheduler_java"
VERSION = "3.4.2"
SPAN_MS = "7200000"
SETTINGS = {
    "yarn.resourcemanager.scheduler.class": "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity"
    ".CapacityScheduler",
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource"
    ".DominantResourceCalculator",
    "yarn.scheduler.capacity.node-locality-delay": "-1",
    # a queue with a guarantee below one vcore still activates one application only
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1000",
    "yarn.cluster.max-application-priority": "10",
    "yarn.acl.enable": "false",
    "yarn.resourcemanager.hostname": "127.0.0.1",
    # containers are held and never launched; nodes and masters may be silent for long
    "yarn.resourcemanager.rm.container-allocation.expiry-interval-ms": SPAN_MS,
    "yarn.nm.liveness-monitor.expiry-interval-ms": SPAN_MS,
    "yarn.am.liveness-monitor.expiry-interval-ms": SPAN_MS,
    # nothing calls by RPC
    "yarn.resourcemanager.client.thread-count": "1",
    "yarn.resourcemanager.scheduler.client.thread-count": "1",
    "yarn.resourcemanager.resource-tracker.client.thread-count": "1",
    "yarn.resourcemanager.admin.client.thread-count": "1",
    # each user's groups would be asked of the system
    "hadoop.user.group.static.mapping.overrides": "ann=ann;ben=ben;cid=cid;dr.who=",
}
LABELLED = {"yarn.node-labels.enabled": "true"}
LABEL_STORE = "yarn.node-labels.fs-store.root-dir"
TYPES = "yarn.resource-types"
PORTS = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")


_STARTING = Lock()


class RigFailed(Exception):
    """The program reports a failure, or has ended."""


def _classes(version: str, libraries: Path) -> Path:
    """Return the folder of the program's classes, compiled once for each state of its sources."""
    sources = sorted(JAVA.glob("*.java"))
    state = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    kept = cache_folder() / f"scheduler-rig-{version}-{state}"
    if kept.is_dir():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=kept.parent))
    # Short work: no second compiler, and no annotation processors of the jars
    words = [javac(), "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-proc:none", "--release", "17"]
    words += ["-nowarn", "-d", str(made), "-cp", f"{libraries}/*"]
    done = subprocess.run([*words, *map(str, sources)], capture_output=True, text=True)
    if done.returncode:
        raise NotToBeHad(f"the program of scheduler_java does not compile: {done.stderr[-2000:]}")
    try:
        made.rename(kept)
    except OSError:  # another process was first
        shutil.rmtree(made)
    return kept


class SchedulerRig:
    """The program; use it as a context. ``start`` begins a new ResourceManager of ``version``.

    ``types``: the cluster's resource types beside memory and vcores.
    """

    def __init__(self, version: str = VERSION) -> None:
        self.version = version
        self.types: tuple[str, ...] = ()
        self._starts = 0
        self.url = ""
        self._folder = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._launch()
        return self

    def _launch(self) -> None:
        folder, libraries = Path(self._folder.name), jars(self.version)
        classes = _classes(self.version, libraries)
        (folder / "log4j.properties").write_text(LOGGING.replace("INFO", "ERROR", 1), encoding="utf-8")
        (folder / "capacity-scheduler.xml").write_text("<configuration/>", encoding="utf-8")
        java = [
            "java",
            "-Xmx768m",
            *SMALL.split(),
            *OPENS.split(),
            "-cp",
            f"{folder}:{classes}:{libraries}/*",
        ]
        with (folder / "errors").open("wb") as errors:
            self._process = subprocess.Popen(
                [*java, "scheduling.SchedulerRig"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=folder,
            )  # fmt: skip

    def __exit__(self, *_: object) -> None:
        self._end()
        self._folder.cleanup()

    def _end(self) -> None:
        process = self._process
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def call(self, command: str, **given: object) -> dict[str, Any]:
        """Perform one command; raises RigFailed with what the program reports."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode({"command": command, **given}) + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
        answer: dict[str, Any] = msgspec.json.decode(line) if line else {"error": "the program has ended"}
        if "error" in answer:
            errors = (Path(self._folder.name) / "errors").read_text(errors="replace")
            raise RigFailed(f"{command}: {answer['error']}\n{errors[-4000:]}")
        return answer

    def start(self, configuration: Mapping[str, str]) -> None:
        """Begin a new ResourceManager with these properties beside ``SETTINGS``; the old one ends."""
        self.start_with({**SETTINGS, **configuration})

    def start_with(self, configuration: Mapping[str, str]) -> None:
        """Begin a new ResourceManager with these properties alone, on free ports; the old one ends."""
        try:
            self._start_once(configuration)
        except RigFailed as failed:
            if "BindException" not in str(failed):
                raise
            self._start_once(configuration)  # another process took a port after it was chosen

    def _start_once(self, configuration: Mapping[str, str]) -> None:
        with _STARTING:  # another rig of this process must not take the same ports
            ports = free_ports(len(PORTS))
            addresses = {
                f"yarn.resourcemanager.{name}": f"127.0.0.1:{port}"
                for name, port in zip(PORTS, ports, strict=True)
            }
            self.url = f"http://127.0.0.1:{ports[-1]}"
            self._starts += 1
            store = {LABEL_STORE: f"file://{self._folder.name}/labels-{self._starts}"}
            types = tuple(filter(None, configuration.get(TYPES, "").split(",")))
            if types != self.types:  # Hadoop's classes keep vectors of the first ResourceManager's types
                self.types = types
                self._end()
                self._launch()
            self.call("start", configuration={**addresses, **store, **configuration})

    def label(self, exclusive: Mapping[str, bool], hosts: Mapping[str, str]) -> None:
        """Add node labels, and put some on hosts whose nodes are not registered yet; needs ``LABELLED``."""
        self.call("labels", exclusive=exclusive, hosts=hosts)

    def register(self, host: str, size: Resources) -> str:
        """Register a node; return its id."""
        self.call("node", host=host, **self._row(size))
        return f"{host}:8041"

    def _row(self, size: Resources) -> dict[str, Any]:
        found: dict[str, Any] = {"memory_mib": size.memory_mib, "vcores": size.vcores}
        if self.types:
            found["others"] = dict(zip_longest(self.types, size[2:], fillvalue=0))
        return found

    def size(self, row: Mapping[str, Any]) -> Resources:
        """Return the size of a container or a reservation in an answer."""
        others = row.get("others", {})
        return Resources(row["memory_mib"], row["vcores"], *(others[name] for name in self.types))

    def submit(self, queue: str, user: str, priority: int, name: str) -> str:
        """Submit an application and register its master; return its id."""
        answer = self.call("submit", queue=queue, user=user, priority=priority, name=name)
        return str(answer["application"])

    def prioritise(self, application: str, priority: int) -> None:
        """Change the priority of an application."""
        self.call("priority", application=application, priority=priority)

    def request(self, application: str, priority: int, size: Resources, count: int, label: str = "") -> None:
        """Let an application request ``count`` containers in all at a priority that it has not used.

        ``label``: of the nodes ("": without one).
        """
        row = {"priority": priority, **self._row(size), "count": count}
        if label:
            row["label"] = label
        self.call("request", application=application, requests=[row])

    def is_active(self, application: str) -> bool:
        """Return whether the limits of masters let the scheduler serve an application."""
        return bool(self.call("active", application=application)["active"])

    def beat(self, nodes: Sequence[str]) -> list[dict[str, Any]]:
        """Send a heartbeat of each node in turn; return the containers that were granted."""
        granted: list[dict[str, Any]] = self.call("beat", nodes=list(nodes))["granted"]
        return granted

    def free(self, application: str, container: str) -> None:
        """Let an application give one container back."""
        self.call("free", application=application, container=container)

    def reserved(self) -> list[dict[str, Any]]:
        """Return the reservations with their nodes."""
        rows: list[dict[str, Any]] = self.call("reserved")["reserved"]
        return rows

    def history(self) -> dict[str, dict[str, float]]:
        """Return what the scheduler remembers beside its state.

        ``in_vain``: node -> how often its reservation was tried without success, since a reservation of that
        request was made or ended. ``users_ratios``: leaf -> the sum of its users' shares of the cluster.
        ``labelled_ratios``: label -> the same of its nodes.
        ``ranked_mib``: application -> the memory by which a fair leaf orders it. ``refused``: application ->
        priority -> how often shared partitions have refused its request without a label.
        """
        return self.call("history")

    def preempt(self) -> dict[str, Any]:
        """Let the monitor's policy run one round.

        Returns ``queues`` as the policy computed them, ``warned`` containers, and the ``reserved`` of before
        (the policy ends reservations at once). Needs ``scheduler.monitor.enable``.
        """
        return self.call("preempt")
