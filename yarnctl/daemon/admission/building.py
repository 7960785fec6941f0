"""Build the admission controller from options, with its own clients of the cluster and the job history."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from yarnctl.attach.connection.connection import history_server_by, history_server_in, refuse_discovery
from yarnctl.attach.history.finished_applications import FinishedApplications
from yarnctl.attach.history.finished_jobs import FinishedJobs
from yarnctl.attach.history.histories import Histories
from yarnctl.attach.port import loop_manager
from yarnctl.config import ClusterAddress
from yarnctl.daemon.admission.admission_controller import AdmissionController, AdmissionSettings
from yarnctl.daemon.admission.backlog import Size
from yarnctl.daemon.admission.history_worker import HistoryWorker
from yarnctl.daemon.admission.placement_desk import PlacementPredictions
from yarnctl.daemon.admission.pool_files import PoolSettings
from yarnctl.daemon.admission.request_queue import RequestQueue
from yarnctl.deciding.admission.book import AdmissionStore
from yarnctl.deciding.admission.mechanisms import OwnChoices
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.errors import BadInput, Unreachable
from yarnctl.frameworks.mapreduce.history_server import DAEMON, QUICK, HistoryServer
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager, least_in
from yarnctl.hadoop.wire import views, yarn
from yarnctl.units import Resources

TASK_MIB = 1024  # MapReduce's default memory of a task; the scheduler may round it up
NO_HISTORY = "off"


class AdmissionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of admission. None: measured; ``history`` "": found, ``off``: not used.

    ``unseen``: jobs that have never run are estimated from others.
    """

    allocator: str
    queues: tuple[str, ...] = ()
    capacity: int | None = None
    container_mib: int | None = None
    history: str = ""
    lease_ms: int = 120_000
    choices: OwnChoices | None = None
    pools: tuple[PoolSettings, ...] = ()
    runs: Path | None = None
    unseen: bool = False


class DaemonClock(Protocol):
    """The part of :class:`yarnctl.daemon.running.SteadyClock` that admission needs."""

    def __call__(self) -> int:
        """Return the daemon's time: ms since the epoch, by the wall clock at its start."""

    def ahead_ms(self) -> int:
        """Return the wall clock minus the daemon's time."""


def make_admission_controller(
    options: AdmissionOptions,
    cluster: ClusterAddress,
    instance: str,
    store: AdmissionStore | None,
    clock_ms: DaemonClock,
    last_ms: int = 0,
    queues: Callable[[], QueueTree | None] = lambda: None,
) -> AdmissionController:
    """Return the controller with the state from the journal.

    ``last_ms``: the time of the journal's last step; ``queues`` returns the newest queues.
    """
    manager = loop_manager(cluster)
    predicted = PlacementPredictions(options.runs).alternatives if options.pools else None
    request_queue = RequestQueue(clock_ms, options.lease_ms, predicted)
    history_worker = None
    if options.history != NO_HISTORY:
        history_worker = HistoryWorker(
            lambda: open_histories(options.history, cluster, unseen=options.unseen), request_queue.wake
        )
    return AdmissionController(
        _settings(options, instance),
        manager,
        _sizes(options, manager),
        request_queue,
        store=store,
        history_worker=history_worker,
        last_ms=last_ms,
        wall_ahead_ms=clock_ms.ahead_ms,
        queues=queues,
    )


def set_queue_paths(
    admission_controller: AdmissionController,
    options: AdmissionOptions,
    cluster: ClusterAddress,
    instance: str,
) -> None:
    """Replace a controller's queue names by paths, which were not known when it was made."""
    admission_controller.set_queues(_settings(options, instance), _sizes(options, loop_manager(cluster)))


def _settings(options: AdmissionOptions, instance: str) -> AdmissionSettings:
    return AdmissionSettings(
        allocator=options.allocator,
        instance=instance,
        queues=options.queues,
        choices=options.choices,
        lease_ms=options.lease_ms,
        pools=options.pools,
    )


def _sizes(options: AdmissionOptions, manager: ResourceManager) -> dict[str, Callable[[], Size]]:
    if options.pools:
        return {pool.name: PoolSize(manager, pool) for pool in options.pools}
    return {"": ClusterSize(manager, options)}


class Measured(Protocol):
    """The part of :class:`yarnctl.hadoop.resource_manager.ResourceManager` that measures a cluster."""

    def configuration(self) -> dict[str, str]:
        """Return the daemon's effective configuration."""

    def nodes(self) -> Sequence[yarn.NodeRow]:
        """Return the nodes that run containers now."""

    def root_queue(self) -> yarn.QueueInfo:
        """Return the scheduler's tree of queues."""


class ClusterSize:
    """Measures the containers of the cluster's nodes without a label, or of admission's queues; by memory."""

    def __init__(self, measured: Measured, options: AdmissionOptions) -> None:
        self._manager = measured
        self._options = options
        self._container_mib = options.container_mib

    def __call__(self) -> Size:
        """Return the size; raises as the client does, and Unreachable for a missing queue."""
        if self._container_mib is None:
            self._container_mib = task_mib(self._manager.configuration())
        container_mib = self._container_mib
        if self._options.capacity is not None:
            return Size(self._options.capacity, container_mib, reported=True)
        nodes = views.by_partition(self._manager.nodes())[""]
        most = sum(node.total.memory_mib // container_mib for node in nodes)
        if self._options.queues:
            total = Resources(
                sum(node.total.memory_mib for node in nodes), sum(node.total.vcores for node in nodes)
            )
            most = min(most, sum(mib // container_mib for mib in self._guaranteed(total)))
        return Size(most, container_mib)

    def _guaranteed(self, total: Resources) -> list[int]:
        leaves = views.leaves(self._manager.root_queue())
        found = []
        for queue in self._options.queues:
            leaf = next((one for one in leaves if one.path == queue), None)
            if leaf is None:
                raise Unreachable(f"--admission-queue: leaf queue {queue} does not exist")
            found.append(views.queue_view(leaf, total).guaranteed.memory_mib)
        return found


class PoolSize:
    """Measures the maximum containers of a pool's queue on its label's nodes; by memory."""

    def __init__(self, measured: Measured, settings: PoolSettings) -> None:
        self._manager = measured
        self._settings = settings
        self._container_mib = settings.container_mib

    def __call__(self) -> Size:
        """Return the size; raises as the client does, and Unreachable for a wrong queue or label."""
        if self._container_mib is None:
            self._container_mib = task_mib(self._manager.configuration())
        container_mib, label = self._container_mib, self._settings.label
        if self._settings.capacity is not None and not label:
            return Size(self._settings.capacity, container_mib, reported=True)
        leaf = self._leaf()
        if label and leaf.queue.default_label != label:
            default = leaf.queue.default_label or "empty"
            raise self._unfit(
                f"the default-node-label-expression of queue {leaf.path} is {default}; set it to {label}"
            )
        if self._settings.capacity is not None:
            return Size(self._settings.capacity, container_mib, reported=True)
        sizes = [node.total for node in views.by_partition(self._manager.nodes()).get(label, ())]
        total = Resources(sum(size.memory_mib for size in sizes), sum(size.vcores for size in sizes))
        most_mib = self._most_mib(leaf, total)
        return Size(
            min(most_mib // container_mib, sum(size.memory_mib // container_mib for size in sizes)),
            container_mib,
        )

    def _leaf(self) -> views.Leaf:
        leaves = views.leaves(self._manager.root_queue())
        leaf = next((one for one in leaves if one.path == self._settings.queue), None)
        if leaf is None:
            raise self._unfit(f"leaf queue {self._settings.queue} does not exist")
        return leaf

    def _most_mib(self, leaf: views.Leaf, total: Resources) -> int:
        if not self._settings.label:
            return views.queue_view(leaf, total).maximum.memory_mib
        rows = leaf.queue.shares.rows if leaf.queue.shares is not None else ()
        row = next((each for each in rows if each.partition == self._settings.label), None)
        if row is None:
            raise self._unfit(f"queue {leaf.path} has no capacity on nodes with label {self._settings.label}")
        return int(total.memory_mib * row.maximum_percent / 100)

    def _unfit(self, problem: str) -> Unreachable:
        return Unreachable(f"--pools: pool {self._settings.name}: {problem}")


def task_mib(configuration: dict[str, str]) -> int:
    """Return the memory of a task with MapReduce's default, by the ResourceManager's configuration."""
    return max(TASK_MIB, least_in(configuration).memory_mib)


def open_histories(address: str, cluster: ClusterAddress, *, unseen: bool = False) -> Histories:
    """Return the history of jobs of all kinds, with MapReduce's history server at ``address`` ("": found).

    ``unseen``: it estimates jobs that have never run, too.
    """
    manager = loop_manager(cluster)
    estimated = None
    if unseen:
        from yarnctl.prediction.unseen_jobs import unseen_estimate

        estimated = unseen_estimate
    return Histories(lambda: open_history(address, cluster), FinishedApplications(manager), estimated)


def open_history(address: str, cluster: ClusterAddress) -> FinishedJobs:
    """Return the history of MapReduce jobs at ``address`` ("": found); raises BadInput."""
    address = address or _found(cluster)
    if not address:
        remedy = "set --history URL, or --history off"
        problem = "not set, and neither /conf nor HADOOP_CONF_DIR names a history server"
        raise BadInput("--history", problem, remedy)
    transport = Transport((address,), cluster.identity, QUICK, ca_file=cluster.ca_file, daemon=DAEMON)
    return FinishedJobs(HistoryServer(transport), capacity=1)


def _found(cluster: ClusterAddress) -> str:
    refuse_discovery(cluster, "--history", "set --history to its address at the gateway, or --history off")
    manager = cluster.resource_manager()
    found = history_server_in(manager.configuration(), cluster.resource_managers[0])
    if not found and cluster.hadoop_conf_dir:
        found = history_server_by(Path(cluster.hadoop_conf_dir), os.environ)
    return found
