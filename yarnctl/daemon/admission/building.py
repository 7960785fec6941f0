"""Admitting: from options to a controller, with its own clients of the cluster and of the history of jobs.

Law: nothing is sent here. The loop's clients are bounded as all of the loop's are; the history has a
thread of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from yarnctl.attach.connection.connection import history_server_by, history_server_in
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
from yarnctl.deciding.admission.records import DEFAULT_CHOICES, Choices
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.history_server import DAEMON, QUICK, HistoryServer
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.wire import views, yarn
from yarnctl.units import Resources

MINIMUM_KEY = "yarn.scheduler.minimum-allocation-mb"
TASK_MIB = 1024
"""What MapReduce asks for a task by default; the scheduler may round it up."""
NO_HISTORY = "off"


class AdmissionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The gate's options. None: found out; ``history`` "": found, ``off``: none is queried.

    The queues of ``queues`` and ``pools`` are names in options, and full paths in what is made of them.
    """

    allocator: str
    queues: tuple[str, ...] = ()
    capacity: int | None = None
    container_mib: int | None = None
    history: str = ""
    lease_ms: int = 120_000
    choices: Choices | OwnChoices = DEFAULT_CHOICES
    pools: tuple[PoolSettings, ...] = ()
    runs: Path | None = None


class DaemonClock(Protocol):
    """What admission needs of :class:`yarnctl.daemon.running.SteadyClock`."""

    def __call__(self) -> int:
        """Return the daemon's time: ms since the epoch, by the wall clock at its start."""
        ...

    def ahead_ms(self) -> int:
        """Return how much more the wall clock shows now."""
        ...


def make_admission_controller(
    told: AdmissionOptions,
    cluster: ClusterAddress,
    instance: str,
    book: AdmissionStore | None,
    clock_ms: DaemonClock,
    last_ms: int = 0,
    queues: Callable[[], QueueTree | None] = lambda: None,
) -> AdmissionController:
    """Return the controller, with what the journal has left of it.

    ``last_ms``: the journal's last step; ``queues`` are the newest ones.
    """
    manager = loop_manager(cluster)
    predicted = PlacementPredictions(told.runs).alternatives if told.pools else None
    window = RequestQueue(clock_ms, told.lease_ms, predicted)
    clerk = None
    if told.history != NO_HISTORY:
        clerk = HistoryWorker(lambda: open_histories(told.history, cluster), window.wake)
    terms, sizes = _terms(told, instance), _sizes(told, manager)
    return AdmissionController(terms, manager, sizes, window, book=book, clerk=clerk, queues=queues)


def set_gate(
    desk: AdmissionController, told: AdmissionOptions, cluster: ClusterAddress, instance: str
) -> None:
    """Give a controller its queues' paths, which were not known when it was made."""
    desk.set_queues(_terms(told, instance), _sizes(told, loop_manager(cluster)))


def _terms(told: AdmissionOptions, instance: str) -> AdmissionSettings:
    return AdmissionSettings(
        allocator=told.allocator,
        instance=instance,
        queues=told.queues,
        choices=told.choices,
        lease_ms=told.lease_ms,
        pools=told.pools,
    )


def _sizes(told: AdmissionOptions, manager: ResourceManager) -> dict[str, Callable[[], Size]]:
    if told.pools:
        return {pool.name: PoolSize(manager, pool) for pool in told.pools}
    return {"": ClusterSize(manager, told)}


class Measured(Protocol):
    """What measures a cluster, of :class:`yarnctl.hadoop.resource_manager.ResourceManager`."""

    def configuration(self) -> dict[str, str]:
        """Return the daemon's effective configuration."""
        ...

    def nodes(self) -> Sequence[yarn.NodeRow]:
        """Return the nodes that run containers now."""
        ...

    def root_queue(self) -> yarn.QueueInfo:
        """Return the scheduler's tree of queues."""
        ...


class ClusterSize:
    """Measures how many containers the cluster has, or the gate's queues are guaranteed; by memory.

    Nodes with a label do not count: who may use them is not modelled.
    """

    def __init__(self, manager: Measured, told: AdmissionOptions) -> None:
        self._manager = manager
        self._reported = told
        self._container_mib = told.container_mib

    def __call__(self) -> Size:
        """Ask; raises as the client does, and Unreachable for a queue that is not there."""
        if self._container_mib is None:
            self._container_mib = task_mib(self._manager.configuration())
        container_mib = self._container_mib
        if self._reported.capacity is not None:
            return Size(self._reported.capacity, container_mib, reported=True)
        nodes = views.default_partition(self._manager.nodes())
        most = sum(node.total.memory_mib // container_mib for node in nodes)
        if self._reported.queues:
            total = Resources(
                sum(node.total.memory_mib for node in nodes), sum(node.total.vcores for node in nodes)
            )
            most = min(most, sum(mib // container_mib for mib in self._guaranteed(total)))
        return Size(most, container_mib)

    def _guaranteed(self, total: Resources) -> list[int]:
        leaves = views.leaves(self._manager.root_queue())
        found = []
        for queue in self._reported.queues:
            leaf = next((one for one in leaves if one.path == queue), None)
            if leaf is None:
                raise Unreachable(f"--admission-queue: there is no leaf queue {queue}")
            found.append(views.queue_view(leaf, total).guaranteed.memory_mib)
        return found


class PoolSize:
    """Measures how many containers a pool's queue may have at most, of its label's nodes; by memory."""

    def __init__(self, manager: Measured, told: PoolSettings) -> None:
        self._manager = manager
        self._told = told
        self._container_mib = told.container_mib

    def __call__(self) -> Size:
        """Ask; raises as the client does, and Unreachable for a queue or a label that does not fit."""
        if self._container_mib is None:
            self._container_mib = task_mib(self._manager.configuration())
        container_mib, label = self._container_mib, self._told.label
        if self._told.capacity is not None and not label:
            return Size(self._told.capacity, container_mib, reported=True)
        leaf = self._leaf()
        if label and leaf.queue.default_label != label:
            told = leaf.queue.default_label or "none"
            raise self._unfit(
                f"queue {leaf.path} has {told} for its default-node-label-expression, not {label}"
            )
        if self._told.capacity is not None:
            return Size(self._told.capacity, container_mib, reported=True)
        sizes = [node.total for node in self._manager.nodes() if node.partition == label]
        total = Resources(sum(size.memory_mib for size in sizes), sum(size.vcores for size in sizes))
        most_mib = self._most_mib(leaf, total)
        return Size(
            min(most_mib // container_mib, sum(size.memory_mib // container_mib for size in sizes)),
            container_mib,
        )

    def _leaf(self) -> views.Leaf:
        leaves = views.leaves(self._manager.root_queue())
        leaf = next((one for one in leaves if one.path == self._told.queue), None)
        if leaf is None:
            raise self._unfit(f"there is no leaf queue {self._told.queue}")
        return leaf

    def _most_mib(self, leaf: views.Leaf, total: Resources) -> int:
        """Return the queue's maximum in its partition."""
        if not self._told.label:
            return views.queue_view(leaf, total).maximum.memory_mib
        rows = leaf.queue.shares.rows if leaf.queue.shares is not None else ()
        row = next((each for each in rows if each.partition == self._told.label), None)
        if row is None:
            raise self._unfit(f"queue {leaf.path} has no share of the nodes labelled {self._told.label}")
        return int(total.memory_mib * row.maximum_percent / 100)

    def _unfit(self, told: str) -> Unreachable:
        return Unreachable(f"--pools: pool {self._told.name}: {told}")


def task_mib(configuration: dict[str, str]) -> int:
    """Return what a task gets that asks for MapReduce's default, by the ResourceManager's configuration."""
    text = configuration.get(MINIMUM_KEY, "").strip()
    return max(TASK_MIB, int(text)) if text.isascii() and text.isdigit() else TASK_MIB


def open_histories(told: str, cluster: ClusterAddress) -> Histories:
    """Return what ended jobs of all kinds teach; MapReduce's history at ``told`` ("": found), once asked."""
    manager = loop_manager(cluster)
    return Histories(lambda: open_history(told, cluster), FinishedApplications(manager))


def open_history(told: str, cluster: ClusterAddress) -> FinishedJobs:
    """Return the history of jobs, kept at ``told`` ("": found).

    Raises BadInput where no configuration names its host, and as the client does.
    """
    address = told or _found(cluster)
    if not address:
        remedy = "give --history URL, or --history off"
        raise BadInput("--history", "neither /conf nor HADOOP_CONF_DIR names a history server", remedy)
    transport = Transport((address,), cluster.identity, QUICK, ca_file=cluster.ca_file, daemon=DAEMON)
    return FinishedJobs(HistoryServer(transport), capacity=1)


def _found(cluster: ClusterAddress) -> str:
    manager = cluster.resource_manager()
    found = history_server_in(manager.configuration(), cluster.resource_managers[0])
    if not found and cluster.hadoop_conf_dir:
        found = history_server_by(Path(cluster.hadoop_conf_dir), os.environ)
    return found
