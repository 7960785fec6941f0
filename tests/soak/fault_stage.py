"""The stage of one campaign: a small live cluster of its own, a yarnctl that enforces, and who breaks them.

Law: faults come from outside, by the ways by which they come in life: signals to containers, nodes that fall
silent, a store that is gone, broken answers. What is broken is mended when its time is over, never earlier;
yarnctl is started again only where it was killed.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import msgspec

from emulator.cluster.timing import Timing
from emulator.live.jobs.submission_client import Client, am_size, checkpoint_environment
from emulator.live.manager.service import ManagerSettings
from emulator.live.master.attempts import Attempt
from emulator.live.master.live_master import LiveMaster
from emulator.live.programs.all_in_one import ClusterPlan as Nodes
from emulator.live.programs.all_in_one import build
from emulator.live.programs.manager_program import Options
from emulator.live.wire.submitted_job import (
    ENTRY,
    MODELLED_REDUCER,
    ModelledJob,
    StreamingJob,
    SubmittedJob,
    write_job,
)
from tests import http_client
from tests.hadoop.background import Background
from tests.soak.fault_daemon import Daemon, ProgramDaemon, ThreadDaemon
from tests.soak.fault_plan import CRASH_POINTS, HTTP_KINDS, KILL_ANYWHERE, Campaign, Fault
from tests.soak.fault_web import BadWeather
from tests.soak.rig import LiveCluster, clock_ms
from tests.soak.workloads import WORKLOADS, Workload, job_of, write_input
from yarnctl.attach.connection.connection import Attachment
from yarnctl.config import ClusterAddress
from yarnctl.daemon.running import Plan
from yarnctl.deciding.settings import DEFAULT
from yarnctl.traces.job import Job

APP_ATTEMPTS = 8
PAUSE_MS = 60
POSITIONS = {"mapreduce.task.timeout": "12000"}
"""A runner tells its position six times in a time-out: who has told none yet is not asked to stop."""
OWNER, RUSHED = "alice", "bob"

DECIDING = msgspec.structs.replace(
    DEFAULT, preempting_queues=("root.production",), preemptable_queues=("root.research",), tick_ms=400,
    open_tick_ms=200, kill_timeout_ms=5000, settle_ms=800, silent_ms=2000, release_repeat_ms=800,
    expire_ms=500,
)  # fmt: skip
"""The default profile at the pace of jobs that take seconds; every guard is on."""

ATTACHMENT = Attachment(
    enforce=True, launch_ms=300, suspend_ms=300, eligibility_retry_ms=500, attempt_poll_ms=400,
    terminal_state_wait_ms=1000,
)  # fmt: skip


def timing_of(campaign: Campaign) -> Timing:
    """Return the cluster's spans: those of Hadoop, an order of magnitude shorter."""
    return Timing(
        nm_heartbeat_ms=100, am_heartbeat_ms=100, am_start_ms=100, am_retry_ms=200, launch_ms=150,
        task_commit_ms=50, job_commit_ms=50, exit_ms=50, drain_ms=100, upload_ms=50, restart_ms=50,
        resume_ms=50, release_wait_ms=campaign.hold_ms, node_expiry_ms=1000,
    )  # fmt: skip


class Masters(dict[str, LiveMaster]):
    """The masters that run, by container; ``all``: those that ever did."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[LiveMaster] = []

    def __setitem__(self, name: str, live: LiveMaster) -> None:
        self.all.append(live)
        super().__setitem__(name, live)


class Submitted(msgspec.Struct, frozen=True):
    """A job of a campaign. ``folder`` holds input and output of real processes."""

    application: str
    queue: str
    job: SubmittedJob
    folder: Path

    @property
    def id(self) -> str:
        return self.application.replace("application_", "job_", 1)


class Stage:
    """A running campaign; made by :func:`stage`. ``windows``: kind -> spans in which it was broken (ms)."""

    def __init__(self, campaign: Campaign, cluster: LiveCluster, weather: BadWeather, folder: Path) -> None:
        self.campaign = campaign
        self.cluster = cluster
        self.weather = weather
        self.folder = folder
        self.jobs: list[Submitted] = []
        self.struck: Counter[str] = weather.struck
        self.windows: list[tuple[str, int, int]] = []
        plan = Plan(
            cluster=ClusterAddress(resource_managers=(cluster.url,),
                name_nodes=(f"http://{cluster.webhdfs}",), user=cluster.client.user, connect_ms=1000,
                read_timeout_ms=1500, answer_ms=2000),
            attachment=ATTACHMENT,
            settings=DECIDING,
            state_dir=folder / "state",
        )  # fmt: skip
        self.daemon: Daemon = (
            ProgramDaemon(plan, folder / "yarnctl.log")
            if campaign.program
            else ThreadDaemon(plan, self.struck)
        )

    # --- jobs -----------------------------------------------------------------------------

    def research(self) -> Submitted:
        """Submit the job whose reduces give way: it fills the cluster, and more."""
        job = self._streaming() if self.campaign.processes else self._modelled()
        return self._submit(job, "research", OWNER)

    def _modelled(self) -> ModelledJob:
        campaign = self.campaign
        reducer = MODELLED_REDUCER.replace("--restart", f"--release-wait-ms {campaign.hold_ms} --restart")
        job = Job(
            name="research", job_class="research", submitted_at_ms=0, map_ms=(200, 200),
            reduce_ms=tuple(campaign.reduce_ms + 100 * place for place in range(campaign.reduces)),
            reduce_keys=(campaign.keys,) * campaign.reduces, shuffle_ms=100, user=OWNER, queue="research",
        )  # fmt: skip
        return ModelledJob(
            job=job,
            cmdenv=checkpoint_environment(self.cluster.webhdfs),
            settings={"stream.reduce.streamprocessor": quote_plus(reducer)},
        )

    @property
    def workload(self) -> Workload:
        campaign = self.campaign
        keys = campaign.reduces * campaign.reduce_ms // PAUSE_MS
        return WORKLOADS["sum"]._replace(keys=keys, pause_ms=PAUSE_MS, reduces=campaign.reduces)

    def _streaming(self) -> StreamingJob:
        source = write_input(self.workload, self.folder, str(self.campaign.seed))
        job = self.cluster.with_runner(job_of(self.workload, source, self.folder / "research"))
        held = job.reducer.replace("--restart", f"--release-wait-ms {self.campaign.hold_ms} --restart", 1)
        settings = {**job.settings, "mapreduce.reduce.maxattempts": "8", **POSITIONS}
        return msgspec.structs.replace(job, reducer=held, settings=settings)

    def production(self) -> Submitted:
        """Submit a job that is in a hurry: a map, then reduces; it carries no runner."""
        wide = self.campaign.production
        number = sum(one.queue == "production" for one in self.jobs)
        job = Job(
            name=f"production-{number}", job_class="production", submitted_at_ms=0, map_ms=(200,) * wide,
            reduce_ms=(500,) * wide, reduce_keys=(5,) * wide, shuffle_ms=100, user=RUSHED, queue="production",
        )  # fmt: skip
        return self._submit(ModelledJob(job=job, runner=False), "production", RUSHED)

    def _submit(self, job: SubmittedJob, queue: str, user: str) -> Submitted:
        """Submit as Hadoop's clients do, but with more tries for the master than Hadoop's default."""
        client = Client(self.cluster.url, user)
        name = str(client._json("/ws/v1/cluster/apps/new-application", "POST", {})["application-id"])
        size = am_size(job)
        context = {
            "application-id": name, "application-type": "MAPREDUCE", "queue": queue,
            "max-app-attempts": APP_ATTEMPTS, "resource": {"memory": size.memory_mib, "vCores": size.vcores},
            "am-container-spec": {"environment": {"entry": [{"key": ENTRY, "value": write_job(job)}]}},
        }  # fmt: skip
        client._json("/ws/v1/cluster/apps", "POST", context)
        self.jobs.append(Submitted(name, queue, job, self.folder / "research"))
        return self.jobs[-1]

    # --- looking (on the server's own thread, so that no weather is in the way) -------------

    def masters(self, job: Submitted) -> list[LiveMaster]:
        known = self.cluster.whole.masters
        assert isinstance(known, Masters)
        return [live for live in known.all if live.job_id == job.id]

    def seen(self, look: Callable[[], Any]) -> Any:
        """Look at the cluster's own objects."""
        return self.cluster.server.run(look)

    def attempts(self, job: Submitted) -> list[Attempt]:
        """Return all reduce attempts that a job ever had."""
        found = (one for live in self.masters(job) for one in live.attempts.all.values())
        return [one for one in found if not one.is_map and one.container is not None]

    def reducing(self, job: Submitted) -> list[Attempt]:
        masters = [live for live in self.masters(job) if not live.over]
        for live in masters:
            for one in live.attempts.all.values():
                live.tasks.poll(one)
        return [one for one in self.attempts(job) if one.merged_at_ms and not one.over]

    # --- faults ---------------------------------------------------------------------------

    def strike(self, fault: Fault) -> Callable[[], None]:
        """Break something; return what mends it."""
        began_ms = clock_ms()
        if fault.kind in HTTP_KINDS:
            self.weather.begin(fault.kind, fault.target)
            return lambda: self._mended(fault, began_ms, lambda: self.weather.end(fault.target))
        if fault.kind in CRASH_POINTS:
            assert isinstance(self.daemon, ThreadDaemon)
            self.daemon.trap.set(fault.kind, fault.nth)
            return lambda: None
        if fault.kind == KILL_ANYWHERE:
            self.struck[fault.kind] += self.daemon.alive
            self.daemon.kill()
            return lambda: None
        if fault.kind == "nm":
            return self._node_dies(fault, began_ms)
        if fault.kind in ("am", "task"):
            self._container_dies(fault)
            return lambda: None
        return self._store_fails(fault, began_ms)

    def _mended(self, fault: Fault, began_ms: int, mend: Callable[[], None]) -> None:
        mend()
        self.windows.append((fault.kind, began_ms, clock_ms()))

    def _node_dies(self, fault: Fault, began_ms: int) -> Callable[[], None]:
        nodes = list(self.cluster.whole.nodes.values())
        node = nodes[int(fault.draw * len(nodes))]

        def die() -> None:
            self.struck["nm"] += bool(node.running)
            node.leave()

        self.seen(die)
        return lambda: self._mended(fault, began_ms, lambda: self.seen(node.join))

    def _container_dies(self, fault: Fault) -> None:
        """SIGKILL a container as an administrator can: an AM of any job, or a reduce of the research job."""

        def choose() -> list[str]:
            running = [live for live in self.cluster.whole.masters.values() if live.state == "RUNNING"]
            if fault.kind == "am":
                return [live.launch.container for live in running]
            return [one.container_id for one in self.reducing(self.jobs[0])]

        containers = sorted(self.seen(choose))
        if containers:
            self.struck[fault.kind] += 1
            name = containers[int(fault.draw * len(containers))]
            path = f"/ws/v1/cluster/containers/{name}/signal/FORCEFUL_SHUTDOWN"
            Client(self.cluster.url, OWNER)._ask("POST", f"{self.cluster.url}{path}?user.name={OWNER}", {})

    def _store_fails(self, fault: Fault, began_ms: int) -> Callable[[], None]:
        if fault.kind == "store-down":
            wanted: dict[str, Any] = {"down": True}
        else:
            wanted = {"ops": ["CREATE"], "count": 4, "tear_bytes": int(fault.draw * 300)}
        before = self._switch(wanted)

        def mend() -> None:
            self.struck[fault.kind] += self._switch(None) - before

        return lambda: self._mended(fault, began_ms, mend)

    def _switch(self, fault: dict[str, Any] | None) -> int:
        """Turn the store's fault on or off; return how many requests met one until now."""
        url = f"{self.cluster.url}/emulator/v1/faults"
        return int(http_client.put(url, json=fault, timeout=30).json()["hit"])


@contextlib.contextmanager
def stage(campaign: Campaign, folder: Path) -> Iterator[Stage]:
    """Build the cluster of a campaign below ``folder`` (new) and end it with all that runs on it."""
    made: list[Any] = []
    folder.mkdir(parents=True)
    slots = campaign.slots
    nodes = Nodes(nodes=campaign.nodes, memory_mib=1024 * slots, vcores=slots, processes=campaign.processes)

    def web(url: str) -> Any:
        settings = ManagerSettings(
            timing=timing_of(campaign), max_attempts=APP_ATTEMPTS, am_expiry_ms=20_000, seed=campaign.seed
        )
        whole = build(Options(work=folder / "work", faults=True), nodes, url, settings)
        whole.masters = Masters()
        made[:] = whole, BadWeather(whole.web)
        return made[1]

    with Background(web) as server:
        one = Stage(campaign, LiveCluster(server, made[0], folder), made[1], folder)
        try:
            yield one
        finally:
            if one.daemon.alive:
                one.daemon.kill()
