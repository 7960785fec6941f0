"""A live cluster on which ``yarnctl run`` lowers a setting, and a trap at each request that concerns it.

Law: the daemon is a process of its own and is told nothing of the trap: what it sends to the ResourceManager,
to HDFS and to masters is where it is struck, on the server's side, before or after the request has had its
effect. What a setting reads is what the cluster itself has, never what the daemon says.

======  =====================================================================================
kind    the setting
======  =====================================================================================
queue   ``maximum-capacity`` of research, lowered while production waits (``--cap-queue``)
preemption
        YARN's own preemption of research, off while yarnctl acts (``--yarn-preemption switch``)
priority
        YARN's priorities of two applications of one queue (``--allow-priority``)
executors
        the executors of a Spark application whose driver has the plugin (``--eviction mix``)
bounds  the bounds of a Flink job: its JobManager is modelled here, its workers are executors
======  =====================================================================================
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from emulator.cluster.preemption import PreemptionConfig
from emulator.cluster.timing import Timing
from emulator.live.jobs.submission_client import Client as Submitter
from emulator.live.jobs.submission_client import checkpoint_environment
from emulator.live.jobs.workload_replay import play
from emulator.live.manager.service import ManagerSettings
from emulator.live.master.live_driver import LiveDriver
from emulator.live.master.live_master import LiveMaster
from emulator.live.programs.all_in_one import AllInOne, ClusterPlan, build
from emulator.live.programs.manager_program import Options
from emulator.live.wire.submitted_job import ModelledJob
from emulator.live.wire.web import Reply, Web, WebRequest, json_reply
from tests import http_client
from tests.hadoop.background import Background
from tests.live.test_all_in_one import wait_until
from tests.live.trapped_web import Trap, TrappedWeb, of_hdfs
from yarnctl.deciding.model import ChangeKind
from yarnctl.frameworks.flink.rest import GONE, IDLE, SCHEDULER
from yarnctl.frameworks.spark import configuration as spark
from yarnctl.hadoop.lock import LOCK_PATH
from yarnctl.traces.job import Job, SparkShape

ROOT = Path(__file__).parents[2]
END_S = 300.0
SPEED = 5.0
TIMING = Timing(nm_heartbeat_ms=500, am_heartbeat_ms=500, am_retry_ms=500)
"""Ten beats a second."""
LONG_MS = 100_000_000
"""Of a task that does not end while a case is played."""


class Daemon:
    """``yarnctl run --enforce`` as a process; ``said`` is what it has written. ``port`` 0: no API.

    ``tree``: the sources of the version that runs.
    With ``api`` it listens on ``at_port`` (0: a free one).
    """

    def __init__(
        self,
        url: str,
        state: Path,
        *options: str,
        enforce: bool = True,
        api: bool = False,
        tree: Path = ROOT,
        at_port: int = 0,
    ) -> None:
        words = ["run", "--rm", url, "--state-dir", str(state), *options]
        words += ["--enforce"] if enforce else []
        self._token = state.with_name("token")
        self.port = (at_port or free_port()) if api else 0
        if api:
            self._token.write_text("0123456789abcdef" * 2)
            self._token.chmod(0o600)
            words += ["--listen", f"127.0.0.1:{self.port}", "--token-file", str(self._token)]
        else:
            words += ["--listen", "off"]
        self.said = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from yarnctl.cli import main; main()", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tree)},
            cwd=tree,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line

    def send(self, number: int) -> None:
        """Send a signal; callable from the thread that serves the daemon."""
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send(signal.SIGKILL)

    def command(self, word: str) -> None:
        """Send ``pause`` or ``continue`` by the API."""
        answer = http_client.post(
            f"http://127.0.0.1:{self.port}/v1/loop/{word}",
            headers={"Authorization": f"Bearer {self._token.read_text()}"},
            timeout=60,
        )
        assert answer.status_code == 202, answer.text

    def fill_disk(self) -> None:
        """Let no file of it grow any more (its output is a pipe)."""
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (0, 0))

    def end(self) -> int:
        """Ask it to stop if it runs; return its exit status."""
        self.process.terminate()
        return self.ended()

    def ended(self) -> int:
        """Wait for its end; return its exit status."""
        status = self.process.wait(END_S)
        self._reader.join(END_S)
        return status


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


class LoweringCluster:
    """A cluster on which research holds all and a daemon with ``options`` lowers its setting for production.

    ``without``: options of a daemon that only restores what it finds. ``before``: the setting as its owner
    has set it.
    """

    kind: ClassVar[ChangeKind]
    options: ClassVar[tuple[str, ...]]
    without: ClassVar[tuple[str, ...]] = ()
    nodes: ClassVar[int] = 2
    reading: ClassVar[str]
    """The path that is read to end a change."""
    preemption: ClassVar[PreemptionConfig | None] = None
    """YARN's own."""
    owners: ClassVar[str]
    """A value that is neither the one before nor one that yarnctl sets; "": there is none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trap = Trap()
        self.before = ""
        self.production = ""
        self._stack = contextlib.ExitStack()
        made: list[AllInOne] = []

        def web(url: str) -> Web:
            options = Options(work=folder / "work", speed=SPEED)
            settings = ManagerSettings(
                timing=TIMING, am_expiry_ms=round(60_000 * SPEED), preemption=self.preemption
            )
            made.append(build(options, ClusterPlan(nodes=self.nodes, processes=False), url, settings))
            return self.before_web(TrappedWeb(made[0].web, self.trap, self._name))

        self.server = self._stack.enter_context(Background(web))
        self.url, self.whole = self.server.url, made[0]
        self.submitter = Submitter(self.url, "harness")

    def before_web(self, web: Web) -> Web:
        """Return what serves the cluster's web."""
        return web

    def close(self) -> None:
        """End the cluster."""
        self._stack.close()

    # --- what each kind has ---------------------------------------------------------------------

    def fill(self) -> None:
        """Let research fill the cluster, and note the value before."""
        raise NotImplementedError

    def value(self) -> str:
        """Return the setting as the cluster has it."""
        raise NotImplementedError

    def set_as_owner(self) -> None:
        """Set ``owners``, as the setting's owner would."""
        raise NotImplementedError

    def owned(self) -> str:
        """Return the setting as the cluster has it when its owner has set it and yarnctl has restored."""
        return self.value()

    def puts_back(self, path: str, body: str) -> bool | None:
        """Return whether a PUT restores the setting (False: it lowers it); None: it does neither."""
        return None

    # --- a case ---------------------------------------------------------------------------------

    def renew(self) -> None:
        """Begin anew: no production, no record, no lock, and research fills the cluster."""
        self.trap.at, self.trap.passed = "", []
        self.end_demand()
        shutil.rmtree(self.whole.work / f"hdfs{LOCK_PATH}", ignore_errors=True)
        self.fill()

    def demand(self, maps: int = 3) -> None:
        """Let production wait for containers."""
        production = Job(
            name="production", job_class="production", submitted_at_ms=0, map_ms=(LONG_MS,) * maps, user="bob"
        )
        (row,) = play(self.submitter, (production,), wait=False)
        self.production = row.application

    def end_demand(self) -> None:
        """End production."""
        if self.production:
            self.end_application(self.production)
            self.production = ""

    def end_application(self, application: str) -> None:
        """Kill an application, and wait until it holds nothing."""
        url = f"{self.url}/ws/v1/cluster/apps/{application}/state?user.name=bob"
        http_client.put(url, json={"state": "KILLED"}, timeout=60)
        app = self.whole.site.manager.find(application)
        wait_until(lambda: app is None or not app.containers, "the application has ended")

    @property
    def records(self) -> list[str]:
        """The files of lowered settings in HDFS, whole or not."""
        folder = self.whole.work / f"hdfs{LOCK_PATH}"
        return [one.name for one in folder.iterdir() if "changes-" in one.name] if folder.exists() else []

    def allocated(self) -> int:
        """Return how many containers are held."""
        told = http_client.get(f"{self.url}/ws/v1/cluster/metrics", timeout=60).json()
        return int(told["clusterMetrics"]["containersAllocated"])

    def _name(self, method: str, path: str, query: str, body: bytes) -> str:
        """Return what a request has to do with a change, "" if nothing."""
        if path.startswith("/webhdfs/"):
            return of_hdfs(path, query)
        if method == "PUT":
            restores = self.puts_back(path, body.decode("latin-1"))
            return "" if restores is None else "back" if restores else "change"
        is_reading = "back done" in self.trap.passed and re.fullmatch(self.reading, path)
        return "reading" if is_reading else ""


class Queue(LoweringCluster):
    """``maximum-capacity`` of research."""

    kind: ClassVar[ChangeKind] = "queue"
    nodes = 3
    options: ClassVar[tuple[str, ...]] = ("--cap-queue", "--in-flight-least", "4")
    reading = "/ws/v1/cluster/scheduler-conf"
    owners = "60"
    KEY = "maximum-capacity"
    _begun = False

    def fill(self) -> None:
        if not self._begun:
            self._begun = True
            research = Job(
                name="research", job_class="research", submitted_at_ms=0, map_ms=(200,),
                reduce_ms=(LONG_MS,) * 10, reduce_keys=(1_000_000,) * 10, shuffle_ms=100, user="alice",
            )  # fmt: skip
            play(self.submitter, (research,), wait=False)
            self.before = self.value()
        elif self.value() != self.before:
            self._set(self.before)
        wait_until(lambda: self.allocated() >= 11, "research fills the cluster")

    def value(self) -> str:
        rows = http_client.get(f"{self.url}/ws/v1/cluster/scheduler-conf?by=test", timeout=60).json()[
            "property"
        ]
        name = f"yarn.scheduler.capacity.root.research.{self.KEY}"
        return next((str(row["value"]) for row in rows if row["name"] == name), "")

    def _set(self, value: str) -> None:
        self.server.run(lambda: self.whole.site.scheduler_conf.change([("root.research", self.KEY, value)]))

    def set_as_owner(self) -> None:
        self._set(self.owners)

    def puts_back(self, path: str, body: str) -> bool | None:
        if not path.endswith("/scheduler-conf"):
            return None
        found = re.search(r"<value>([^<]*)</value>|\"value\": ?\"([^\"]*)\"", body)
        assert found, body
        return self._is_before(found[1] or found[2] or "")

    def _is_before(self, value: str) -> bool:
        return abs(float(value) - float(self.before)) < 1e-6


class Preemption(Queue):
    """Whether YARN's own preemption leaves research alone. Its policy runs; the key is absent."""

    kind = "preemption"
    options = ("--yarn-preemption", "switch", "--in-flight-least", "4")
    without = ("--yarn-preemption", "beside")
    preemption = PreemptionConfig()
    owners = "false"
    KEY = "disable_preemption"

    def _is_before(self, value: str) -> bool:
        return value == self.before

    @property
    def preempted(self) -> int:
        """How many containers YARN itself has killed."""
        policy = self.whole.site.manager.own_preemption
        assert policy is not None
        return policy.kills


class Priority(LoweringCluster):
    """YARN's priorities of two applications of one queue, of which the later has the earlier deadline."""

    kind = "priority"
    options = (
        "--mode",
        "deadlines",
        "--preempting",
        "research",
        "--preemptable",
        "research",
        "--allow-priority",
    )
    without = options[:-1]
    reading = "/ws/v1/cluster/apps/application_[0-9_]+"
    owners = "3"
    names: tuple[str, ...] = ()

    def fill(self) -> None:
        if not self.names:
            soon, late = (f"deadline:{int(time.time()) + span_s}" for span_s in (100_000, 900_000))
            self.names = tuple(self._submit(name, tag) for name, tag in (("first", late), ("second", soon)))
            wait_until(
                lambda: self.allocated() >= 8 and len(self._order()) == 2, "research fills the cluster"
            )
            self.before = self.value()
        for name in self.names:
            self._set(name, 0)

    def _submit(self, name: str, tag: str) -> str:
        job = Job(name=name, job_class="research", submitted_at_ms=0, map_ms=(LONG_MS,) * 20, user="alice")
        return self.submitter.submit(ModelledJob(job=job, runner=False), "research", (tag,))

    def demand(self, maps: int = 3) -> None:
        """Both applications always wait."""

    def _order(self) -> list[str]:
        demand = self.whole.site.manager.actor.scheduler.queues["research"].demand
        return [f"application_{self.names[0].split('_')[1]}_{app.number:04d}" for app in demand]

    def value(self) -> str:
        """Return both priorities, and which application is granted the next container.

        A restored priority may stay one level off in YARN (docs/facts/hadoop.md, 1): that much is no order.
        """
        rows = [self.submitter.application(name)["priority"] for name in self.names]
        first, second = self.server.run(self._served)
        return f"{rows[0]} {rows[1]}, next {1 if first >= second - 1 else 2}"

    def _served(self) -> list[int]:
        apps = [self.whole.site.manager.find(name) for name in self.names]
        return [app.actor.priority for app in apps if app is not None]

    def _set(self, name: str, priority: int) -> None:
        app = self.whole.site.manager.find(name)
        assert app is not None
        self.server.run(lambda: self.whole.site.manager.actor.scheduler.reprioritise(app.actor, priority))
        app.shown_priority = priority

    def set_as_owner(self) -> None:
        self._set(self.names[1], int(self.owners))

    def owned(self) -> str:
        """The owner's value stays; the other application has its own again."""
        return f"0 {self.owners}, next 2"

    def puts_back(self, path: str, body: str) -> bool | None:
        return json.loads(body)["priority"] == 0 if path.endswith("/priority") else None


class Executors(LoweringCluster):
    """The executors of a Spark application whose driver has the plugin."""

    kind: ClassVar[ChangeKind] = "executors"
    options = ("--eviction", "mix", "--may-lose", "100%", "--room-within", "30s")
    reading = r"/proxy/application_[0-9_]+/metrics/json/?"
    owners = ""
    COUNT = 7
    """With the driver they fill two nodes of four slots."""
    yarn_type, tags = "SPARK", ("yarnctl-drain:plugin",)
    route: ClassVar[Literal["signal", "plugin"]] = "plugin"
    map_ms: ClassVar[tuple[int, ...]] = (20_000,) * 5_000
    application = ""

    def fill(self) -> None:
        if not self.application:
            settings = {
                **spark.REQUIRED,
                spark.PLUGINS: spark.PLUGIN,
                spark.REQUESTS: "/yarnctl/requests",
                spark.REQUESTS_OWNER: "yarnctl",
            }
            work = Job(
                name="research", job_class="research", submitted_at_ms=0, map_ms=self.map_ms,
                user="alice",
                spark=SparkShape(executors=self.COUNT, block_mib=1, start_ms=1000, route=self.route),
            )  # fmt: skip
            job = ModelledJob(
                job=work, runner=False, settings=settings,
                cmdenv=checkpoint_environment(self.submitter.webhdfs()),
            )  # fmt: skip
            self.application = self.submitter.submit(job, "research", self.tags, kind=self.yarn_type)
        self.before = str(self.COUNT)
        wait_until(self._works, "research fills the cluster")

    def _drivers(self) -> list[LiveDriver]:
        found = [live for live in self.whole.masters.values() if live.launch.application == self.application]
        return [cast(LiveDriver, live.actor) for live in found]

    def _works(self) -> bool:
        """Return whether all executors are there, and the length of tasks is known."""
        drivers = self._drivers()
        return bool(drivers) and bool(drivers[0].spans_ms[0]) and self._active() == self.COUNT

    def _active(self) -> int:
        (driver,) = self._drivers()
        return self.server.run(lambda: driver.staying)

    def value(self) -> str:
        """Return how many executors work and were not ordered to leave."""
        return str(self._active())


class Bounds(Executors):
    """The bounds of a Flink job; workers leave when its bounds are lowered, and come when they are raised."""

    kind = "bounds"
    reading = r"/proxy/application_[0-9_]+/jobs/[0-9a-f]+/resource-requirements/?"
    owners = "3"
    yarn_type, tags = "Apache Flink", ("yarnctl-drain:rescale",)
    route = "signal"
    JOB = "9d7cfd1b04c54c49fb0123456789abcd"
    upper = 0

    def fill(self) -> None:
        is_new = not self.application
        super().fill()
        if is_new:
            self.upper = self.COUNT
            self.server.run(self._serve)
        elif self.upper != self.COUNT:
            self.server.run(lambda: self._set(self.COUNT))
            super().fill()

    def _serve(self) -> None:
        """Let the application's web be that of a JobManager."""
        app = self.whole.site.manager.find(self.application)
        assert app is not None
        assert app.attempt is not None
        web = self.whole.site.proxy.local[app.attempt.tracking_url] = Web()
        job = f"/jobs/{self.JOB}"
        tasks = {"total": 8, "running": 8}
        settings = {SCHEDULER: "adaptive", IDLE: "2s", GONE: "2s"}
        fixed = {
            "/jobmanager/config": [{"key": key, "value": value} for key, value in settings.items()],
            "/jobs/overview": {"jobs": [{"jid": self.JOB, "state": "RUNNING", "tasks": tasks}]},
        }
        for path, answer in fixed.items():
            web.add("GET", path, partial(_fixed, json_reply(answer)))
        web.add("GET", "/taskmanagers", lambda _: json_reply({"taskmanagers": self._workers()}))
        web.add("GET", f"{job}/checkpoints", lambda _: json_reply(_checkpoint()))
        web.add("GET", f"{job}/resource-requirements", lambda _: json_reply(self._bounds()))
        web.add("PUT", f"{job}/resource-requirements", self._put)

    def _workers(self) -> list[dict[str, Any]]:
        (driver,) = self._drivers()
        live = cast(LiveMaster, driver.live)
        return [
            {"id": live.containers.granted(facts.container).container, "slotsNumber": 1}
            for facts in driver.facts.values()
            if driver.is_active(facts)
        ]

    def _bounds(self) -> dict[str, Any]:
        return {name: {"parallelism": {"lowerBound": 1, "upperBound": self.upper}} for name in ("v1", "v2")}

    def _put(self, request: WebRequest) -> Reply:
        self._set(_upper_of(request.body.decode()))
        return json_reply({})

    def _set(self, upper: int) -> None:
        (driver,) = self._drivers()
        fewer, self.upper = self.upper - upper, upper
        if fewer > 0:
            here = [str(facts.executor) for facts in driver.facts.values() if driver.is_active(facts)]
            driver.leave(f"to {upper}", here[-fewer:])
        elif fewer < 0:
            driver.back([f"to {left}" for left in range(upper)])

    def value(self) -> str:
        return str(self.upper)

    def set_as_owner(self) -> None:
        self.server.run(lambda: self._set(int(self.owners)))

    def puts_back(self, path: str, body: str) -> bool | None:
        return _upper_of(body) == self.COUNT if "resource-requirements" in path else None


def _fixed(reply: Reply, _: WebRequest) -> Reply:
    return reply


def _checkpoint() -> dict[str, Any]:
    begun_ms = time.time_ns() // 1_000_000 - 1_500
    return {"latest": {"completed": {"id": 5, "trigger_timestamp": begun_ms}}}


def _upper_of(body: str) -> int:
    return max(int(each["parallelism"]["upperBound"]) for each in json.loads(body).values())


KINDS: dict[ChangeKind, type[LoweringCluster]] = {
    each.kind: each for each in (Queue, Preemption, Priority, Executors, Bounds)
}
