"""ResourceManager, NodeManagers and masters of a live cluster in one event loop.

They are the objects that run in processes of their own; only the wires between them are calls. Tasks are real
processes (or modelled), under one process supervisor.
"""

from __future__ import annotations

import getpass
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from emulator.cluster.kernel import Kernel
from emulator.live.manager.service import ManagerSettings
from emulator.live.master.live_master import LiveMaster
from emulator.live.node.launching import ProcessLauncher, refuse
from emulator.live.node.node_manager import Gone, LiveNode, StartedContainer
from emulator.live.node.processes import Processes, open_processes
from emulator.live.programs.manager_program import Options, settings_of, site_of
from emulator.live.programs.master_program import open_master, serve_master
from emulator.live.rest.site import ManagerSite
from emulator.live.wire import messages
from emulator.live.wire.transports import DirectMasterTransport, DirectNodeTransport
from emulator.live.wire.web import Web
from yarnctl.errors import BadInput, Unreachable, YarnctlError
from yarnctl.traces.job import Job

NODE_PORT, NODE_HTTP_PORT = 8041, 8042


class ClusterPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes: how many, of which size each. ``processes``: tasks may be real ones."""

    nodes: int = 3
    memory_mib: int = 4096
    vcores: int = 4
    processes: bool = True


class LocalMaster:
    """An AM in this process, as its node holds it: a SIGTERM ends it, a thread dump does not."""

    def __init__(self, live: LiveMaster) -> None:
        self._live = live

    def notify(self, signal: messages.Signal) -> None:
        """Handle a signal as a process would."""
        if signal != "OUTPUT_THREAD_DUMP":
            self._live.end()

    def end(self) -> None:
        """End it and all its tasks."""
        self._live.end()


@dataclass
class LocalLauncher:
    """Starts masters in this process, and tasks as ``tasks`` does."""

    site: ManagerSite
    work: Path
    tasks: ProcessLauncher
    node_at: Callable[[str], messages.ContainerService]
    masters: dict[str, LiveMaster]

    def launch_task(self, node: str, launch: messages.TaskLaunch, gone: Gone) -> StartedContainer:
        """Start a task's process."""
        return self.tasks.launch_task(node, launch, gone)

    def launch_master(self, node: str, launch: messages.MasterLaunch, gone: Gone) -> StartedContainer:
        """Start an AM on this event loop; the proxy calls its REST without a socket."""
        name, local = launch.container, self.site.proxy.local
        url = f"http://{node}/{name}"

        def over(status: int, why: str) -> None:
            self.masters.pop(name, None)
            local.pop(url, None)
            gone(status, why)

        try:
            live = open_master(
                launch,
                transport=DirectMasterTransport(self.site.manager, self.node_at),
                driver=self.site.manager.driver.sibling(Kernel()),
                work=self.work,
                gone=over,
                timing=self.site.manager.settings.timing,
            )
        except BadInput as error:
            return refuse(str(error), gone)
        self.masters[name] = live
        local[url] = serve_master(live, Web())
        live.start(url)
        return LocalMaster(live)

    def notify_modelled(self, bell: messages.Doorbell) -> None:
        """Pass the doorbell to the master that models the container."""
        for live in list(self.masters.values()):
            live.notify(bell.container, bell.signal)


class AllInOne:
    """A whole live cluster. ``web`` is what to serve: serving it starts the cluster, its end ends all."""

    def __init__(self, site: ManagerSite, plan: ClusterPlan, work: Path) -> None:
        self.site = site
        self.web = site.web
        self.plan = plan
        self.work = work
        self.nodes: dict[str, LiveNode] = {}
        self.masters: dict[str, LiveMaster] = {}
        self._driver = site.manager.driver.sibling(Kernel())
        self._processes: Processes | None = None
        site.web.on_start.append(self._start)
        site.web.on_stop.insert(0, self._stop)

    async def _start(self) -> None:
        self._processes = await open_processes()
        tasks = ProcessLauncher(self.work, self.site.url, self._processes, tasks=self.plan.processes)
        launcher = LocalLauncher(self.site, self.work, tasks, self.node_at, self.masters)
        wire = DirectNodeTransport(self.site.manager)
        with self.site.manager.actor.many_nodes():
            for shape in node_sizes(self.plan):
                node = self.nodes[shape.address] = LiveNode(shape, wire, self._driver, launcher)
                node.join()

    async def _stop(self) -> None:
        for node in self.nodes.values():
            node.leave()
        self._driver.stop()
        if self._processes is not None:
            await self._processes.close()

    def node_at(self, address: str) -> messages.ContainerService:
        """Return the node at an address. A node of another process cannot be had from here: Unreachable."""
        node = self.nodes.get(address)
        if node is None:
            raise Unreachable(
                f"{address}: not a node of this 'serve'; for several processes start 'rm' and 'nm'"
            )
        return node


def node_sizes(plan: ClusterPlan) -> list[messages.NodeRegistration]:
    """Return what the nodes say of themselves: names and order of the cluster in virtual time."""
    return [
        messages.NodeRegistration(
            node=f"node{index:05d}:{NODE_PORT}",
            address=f"http://node{index:05d}:{NODE_HTTP_PORT}",
            memory_mib=plan.memory_mib,
            vcores=plan.vcores,
        )
        for index in range(plan.nodes)
    ]


def build(options: Options, plan: ClusterPlan, url: str, settings: ManagerSettings | None = None) -> AllInOne:
    """Make a whole cluster that will be served at ``url``. Raises BadInput.

    ``settings`` are the ResourceManager's, if not those that ``options`` say.
    """
    site = site_of(options, settings or settings_of(options), url)
    return AllInOne(site, plan, options.work.absolute())


def jobs_of(workloads: Sequence[str]) -> tuple[Job, ...]:
    """Return the jobs of workloads, ``QUEUE=SPEC`` each, in the order of submission. Raises BadInput."""
    from emulator.workload.spec import load

    jobs: list[Job] = []
    for text in workloads:
        queue, given, spec = text.partition("=")
        if not given or not queue:
            raise BadInput(f"--workload {text[:60]}", "names no queue", "use QUEUE=SPEC")
        loaded = load(spec, "production" if queue == "production" else "research")
        jobs += [msgspec.structs.replace(job, queue=queue) for job in loaded.jobs]
    return tuple(sorted(jobs, key=lambda job: job.submitted_at_ms))


def replay_beside(url: str, jobs: tuple[Job, ...], speed: float, warn: Callable[[str], object]) -> None:
    """Submit jobs at their instants as any client would, from a thread that ends with the process.

    ``warn`` is given progress.
    """
    from emulator.live.jobs.submission_client import Client
    from emulator.live.jobs.workload_replay import play

    def submit_all() -> None:
        try:
            rows = play(Client(url, getpass.getuser()), jobs, speed, report=warn)
            failed = sum(row.final_status != "SUCCEEDED" for row in rows)
            warn(f"workload done: {len(rows) - failed} jobs succeeded, {failed} did not")
        except YarnctlError as error:
            warn(f"error: the workload stopped: {error}")

    threading.Thread(target=submit_all, name="workload", daemon=True).start()


def example(folder: Path, url: str, plan: ClusterPlan) -> str:
    """Write the example jobs into ``folder`` and return the commands that run them."""
    from emulator.live.jobs.example_jobs import next_steps, write_example

    containers = plan.nodes * min(plan.vcores, plan.memory_mib // 1024)
    write_example(folder, containers)
    return next_steps(url, folder, containers)


def run(
    options: Options,
    plan: ClusterPlan,
    workloads: Sequence[str],
    as_json: bool,
    say: Callable[[str], object],
    warn: Callable[[str], object],
) -> None:
    """Serve a whole cluster until it is stopped. Raises BadInput."""
    from emulator.live.wire.http_server import bind, serve, url_of

    settings = settings_of(options)
    jobs = jobs_of(workloads)
    listener = bind(options.host, options.port)
    cluster = build(options, plan, url_of(listener), settings)
    url = cluster.site.url

    def started() -> None:
        if as_json:
            line = {"url": url, "epoch": cluster.site.manager.epoch, "nodes": len(cluster.nodes)}
            say(msgspec.json.encode(line).decode())
        else:
            size = f"{plan.nodes} nodes of {plan.memory_mib} MiB and {plan.vcores} vcores"
            say(f"yarn-emulator serve: {url} answers, {size}. Stop it with Ctrl-C.")
            names = {queue.name for queue in settings.queues}
            if plan.processes and not jobs and names >= {"production", "research"}:
                say(example(options.work.absolute() / "example", url, plan))
        if jobs:
            replay_beside(url, jobs, options.speed, warn)

    serve(cluster.web, listener, started)
