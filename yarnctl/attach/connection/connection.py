"""The connection: the clients, the settings and the clock that every part of an attached port shares.

The applications, queues and configuration of the last observation are kept here, written by the part that
observes them and read by the others. The addresses of HDFS and the history server come from the
ResourceManager's configuration only if the user named none; a wildcard address means the host of
``fs.defaultFS``. A queue is its full path, also in an application's row; ``queues`` resolves the names.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from yarnctl.attach.connection.application_guard import ApplicationGuard, GuardBounds
from yarnctl.attach.connection.application_rows import ApplicationRows
from yarnctl.attach.connection.calls import Calls
from yarnctl.attach.connection.cluster_queues import QueueNames, left_alone
from yarnctl.config import ClusterAddress
from yarnctl.deciding.queue_names import NamedQueues
from yarnctl.deciding.reasons.eligibility import LeftAlone
from yarnctl.deciding.reasons.modes import ClusterFault, ModeReason
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.deciding.settings import LossRule, Mode
from yarnctl.errors import BadInput, YarnctlError
from yarnctl.hadoop import site_xml
from yarnctl.hadoop.addresses import DEFAULTS, LOCAL, history_server, name_nodes
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.site_xml import HadoopSite, SiteEntry
from yarnctl.hadoop.webhdfs import FileStatus, WebHdfs
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.calculator import Calculator, calculator_in_use, shown_calculator
from yarnctl.hadoop.wire.views import Leaf
from yarnctl.task_runner.runner.protocol.stores import SMALL_FILE_BYTES, Entry, Store, StoreError, Unusable

YarnPreemption = Literal["switch", "beside", "off"]
"""What the daemon does about YARN's own preemption of the preemptable queues.

It switches it off while it acts, acts beside it, or sends no order until it is off."""


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one attached port; spans in ms.

    ``name_nodes``: every address (``host:port`` or URL) under which jobs may name the HDFS that the port
    writes to. ``store_root``: checkpoints must be below it ("" anywhere in that HDFS). ``requests_owner``:
    yarnctl's user name in that HDFS. ``instance``: the name of this daemon (see :meth:`name_of`). ``levers``:
    the mix decides, so that maps and reduces without the task runner are observed and may be killed;
    ``budgets`` and ``loss_window_ms`` (for payers without a rule in ``budgets``): the windows over which
    container time is counted. ``left_alone_queues``, ``left_alone_users`` opt out. ``allow_kill``: a task
    that does not save its state in time may be killed.

    Bounds of one observation: ``asks_max`` preempting and ``others_max`` other applications whose asks'
    sizes are read, ``eligibility_reads_max`` jobs whose configuration is read, ``tasks_max`` attempts of one
    job, ``counters_max`` attempts whose counters are read, ``tracked_max`` applications whose containers are
    polled while orders are open, ``observation_bytes`` of the files in one task's folder.

    Bounds for programs that a job's owner controls (``application_guard``): ``look_ms`` and ``look_bytes`` of
    all answers in one look at an application; ``looks_at_once`` of them run in parallel; ``look_wait_ms``,
    the wait of one look for all applications together, ``order_wait_ms`` that of the orders after it; an
    answer is used until ``answer_age_ms`` after its reading began.

    ``preempting_queues``, ``preemptable_queues``: names, as a person writes them.
    ``predicted_max``: containers of its first wave predicted for a preempting job whose master starts.

    The resume cost until one is measured: ``suspend_ms`` from an order to the container's end, ``launch_ms``
    from the grant of the next one to the attempt's start, ``start_ms`` for its process's start, ``skip_ms``
    and ``skip_bytes_per_ms`` for the skip to its former position. A suspended task is polled every
    ``resume_poll_ms`` until it has resumed.

    An executor of Spark: ``spark_move_bytes_per_ms`` at which its blocks move, ``spark_leave_ms`` from its
    last task's end, ``spark_return_ms`` from a new container until it works (docs/facts/spark.md, 2);
    ``spark_order_ms`` until it begins no further task (docs/spark.md); it counts as idle ``spark_idle_ms``
    after its last stage. A rescale interrupts a job of Flink
    for ``flink_lower_ms`` with fewer workers, for ``flink_raise_ms`` with more (docs/facts/flink.md).
    """

    preempting_queues: tuple[str, ...] = ("production",)
    preemptable_queues: tuple[str, ...] = ("research",)
    mode: Mode = "queues"

    requests_root: str = "/yarnctl/requests"
    requests_owner: str = "yarnctl"
    store_root: str = ""
    name_nodes: tuple[str, ...] = ()
    instance: str = ""

    enforce: bool = False
    allow_kill: bool = False
    levers: bool = False
    budgets: tuple[LossRule, ...] = ()
    left_alone_queues: tuple[str, ...] = ()
    left_alone_users: tuple[str, ...] = ()
    loss_window_ms: int = 3_600_000
    allow_priority: bool = False
    allow_queue_cap: bool = False
    yarn_preemption: YarnPreemption = "off"
    predicted_max: int = 0

    asks_max: int = 50
    others_max: int = 20
    eligibility_reads_max: int = 8
    tasks_max: int = 500
    tracked_max: int = 64
    counters_max: int = 16
    calls_at_once: int = 8
    look_ms: int = 4_000
    look_bytes: int = 32 << 20
    look_wait_ms: int = 300
    order_wait_ms: int = 200
    answer_age_ms: int = 5_000
    looks_at_once: int = 16
    observation_bytes: int = 16 << 20

    suspend_ms: int = 2_000
    launch_ms: int = 1_500
    start_ms: int = 2_000
    skip_ms: int = 500
    skip_bytes_per_ms: int = 50_000
    resume_poll_ms: int = 3_000
    release_wait_margin_ms: int = 5_000
    stable_observations: int = 3
    configuration_age_ms: int = 60_000
    eligibility_retry_ms: int = 5_000
    quarantine_ms: int = 60_000
    attempt_poll_ms: int = 1_000
    terminal_state_wait_ms: int = 3_000

    spark_move_bytes_per_ms: int = 20_000
    spark_leave_ms: int = 2_000
    spark_return_ms: int = 12_000
    spark_order_ms: int = 1_500
    spark_idle_ms: int = 2_000
    flink_lower_ms: int = 7_000
    flink_raise_ms: int = 10_000

    def name_of(self, order: str) -> str:
        """Return an order's name in requests and manifests, which no other daemon uses.

        A controller counts its orders from 1. The name keeps a checkpoint that was made for another daemon,
        or for this one before its journal was lost, from being mistaken for the result of an order.
        """
        return f"{self.instance}-{order}" if self.instance else order

    @property
    def hosts(self) -> frozenset[str]:
        """Return ``host:port`` of every address of the HDFS, in lower case."""
        return frozenset(host_of(one) for one in self.name_nodes)


def host_of(address: str) -> str:
    """Return ``host:port`` of an address with or without a scheme."""
    return (urlsplit(address).netloc if "//" in address else address).rpartition("@")[2].lower()


class CheckpointStore(Store):
    """The folder ``root`` of an HDFS, read-only. ``look_bytes``: the most that is read of it in all."""

    def __init__(self, hdfs: WebHdfs, root: str, look_bytes: int | None = None) -> None:
        self.root = root.rstrip("/")
        self._hdfs = hdfs
        self._left_bytes = look_bytes

    def entry(self, path: str) -> Entry | None:
        """Return the entry at ``path``, None if there is none."""
        found = self._find(path)
        return None if found is None else _entry(found, path.rpartition("/")[2])

    def list(self, path: str) -> builtins.list[Entry]:
        """Return the entries of a folder, none if there is no folder."""
        try:
            return [_entry(row, row.name) for row in self._hdfs.listing(self._at(path))]
        except Missing:
            return []
        except YarnctlError as error:
            raise StoreError(str(error)) from error

    def read(self, path: str) -> Iterator[bytes]:
        """Yield a small file's bytes; raises Unusable if this store has already read ``look_bytes``."""
        limit = SMALL_FILE_BYTES if self._left_bytes is None else min(SMALL_FILE_BYTES, self._left_bytes)
        if limit <= 0:
            raise Unusable(
                f"{path}: not read, because the folder exceeds the limit of bytes in one observation"
            )
        try:
            data = self._hdfs.read(self._at(path), limit)
        except YarnctlError as error:
            raise StoreError(str(error)) from error
        if self._left_bytes is not None:
            self._left_bytes -= len(data)
        yield data

    def written_at_ms(self, path: str) -> int:
        """Return when a file was written, by the NameNode's clock; 0 if there is none or no time is given."""
        found = self._find(path)
        return 0 if found is None else found.modified_at_ms

    def _find(self, path: str) -> FileStatus | None:
        try:
            return self._hdfs.find(self._at(path))
        except YarnctlError as error:
            raise StoreError(str(error)) from error

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root or "/"


def _entry(status: FileStatus, name: str) -> Entry:
    return Entry(name, status.length, status.owner, status.mode, status.kind == "DIRECTORY")


class Connection:
    """The clients, settings and last observation of one cluster. ``clock`` returns ms since the epoch.

    ``hdfs`` None: no task can be suspended.
    ``settling``: the ResourceManager has just started to answer, and its number of nodes is not constant yet.
    ``rejoining_until_ms``: until then a container that it does not list may live on a node that is not back.
    ``configuration`` is the ResourceManager's own (None: not read yet); ``calculator`` that of its scheduler
    (None: unknown; ``is_calculator_proven``: the use of queues has shown it).
    ``queues`` None: those of the settings.
    """

    def __init__(
        self,
        manager: ResourceManager,
        hdfs: WebHdfs | None,
        attachment: Attachment,
        clock: Callable[[], int],
        queues: QueueNames | None = None,
    ) -> None:
        self.manager = manager
        self.hdfs = hdfs
        self.settings = attachment
        self.clock = clock
        self.calls = Calls(attachment.calls_at_once)
        self.guard = ApplicationGuard(
            GuardBounds(
                attachment.look_ms,
                attachment.look_bytes,
                attachment.look_wait_ms,
                attachment.order_wait_ms,
                attachment.answer_age_ms,
                attachment.looks_at_once,
            )
        )
        self.applications = ApplicationRows()
        self.resource_names: tuple[str, ...] = ()
        named = NamedQueues(
            attachment.preempting_queues,
            attachment.preemptable_queues,
            attachment.mode,
            left_alone=attachment.left_alone_queues,
        )
        self.queues = queues or QueueNames(named)
        self.left_alone_users = attachment.left_alone_users
        self.leaves: tuple[Leaf, ...] = ()
        self.configuration: Mapping[str, str] | None = None
        self.calculator: Calculator | None = None
        self.is_calculator_proven = False
        self.scheduler_keys: Mapping[str, str] | None = None
        self.settling = True
        self.rejoining_until_ms = 0
        self.last_problem: ModeReason | None = None
        self._configuration_at_ms = 0

    @property
    def is_rejoining(self) -> bool:
        """Return whether nodes may still be registering with a ResourceManager that was started anew."""
        return self.clock() < self.rejoining_until_ms

    @property
    def rows(self) -> dict[str, yarn.AppInfo]:
        """The unfinished applications of the last observation, by id."""
        return self.applications.by_name

    def row(self, application: str) -> yarn.AppInfo:
        """Return an application as last observed, else read it. Raises as the client does."""
        return self.rows.get(application) or self.placed(self.manager.application(application))

    def left_alone(self, row: yarn.AppInfo) -> LeftAlone | None:
        """Return by what an application (with its queue's path) opts out, None if it does not."""
        return left_alone(row, self.left_alone_users, self.queues)

    def placed(self, app: yarn.AppInfo) -> yarn.AppInfo:
        """Return an application with its queue's path for what YARN writes beside it."""
        path = self.queues.of_application(app.queue)
        return app if path == app.queue else msgspec.structs.replace(app, queue=path)

    def node_names(self) -> frozenset[str]:
        """Return the nodes that are alive. Raises as the client does."""
        return frozenset(node.node for node in self.manager.nodes())

    def read_configuration(self) -> None:
        """Read the configuration of the ResourceManager when the last answer is too old."""
        now_ms = self.clock()
        is_fresh = now_ms - self._configuration_at_ms < self.settings.configuration_age_ms
        if self.configuration is not None and is_fresh:
            return
        try:
            self.configuration = self.manager.configuration()
            self._configuration_at_ms = now_ms
        except YarnctlError as problem:
            self.last_problem = ClusterFault(str(problem)[:FAULT_MAX])
        if self.calculator is None:
            with contextlib.suppress(YarnctlError):  # a store that cannot be changed shows no keys
                self.scheduler_keys = self.manager.scheduler_configuration()

    def note_calculator(self, root_queue: yarn.QueueInfo, nodes: Sequence[yarn.NodeRow]) -> None:
        """Note what answers show of the scheduler's calculator; it changes only with a restart."""
        if self.is_calculator_proven:
            return  # the use of queues has shown it: all nodes need not be added up again
        found = calculator_in_use(root_queue, nodes)
        self.is_calculator_proven = found is not None
        self.calculator = (
            found or self.calculator or shown_calculator(None, nodes, self.scheduler_keys, self.configuration)
        )

    def offers(self, node: yarn.NodeRow) -> bool:
        """Return whether a node has free capacity of what the scheduler counts."""
        return node.free.memory_mib > 0 and (self.calculator == "memory" or node.free.vcores > 0)

    def close(self) -> None:
        """End the threads of the calls."""
        self.calls.close()
        self.guard.close()


WHERE = "the ResourceManager's /conf"


def discover_name_nodes(
    cluster: ClusterAddress, manager: ResourceManager, manager_url: str
) -> tuple[str, ...]:
    """Return the base URLs of WebHDFS, () if none is configured. Raises as the client does, and BadInput."""
    refuse_discovery(cluster, "name_nodes", "set --name-node https://HOST:8443/gateway/TOPOLOGY")
    return name_nodes_in(manager.configuration(), manager_url)


def refuse_discovery(cluster: ClusterAddress, name: str, fix: str) -> None:
    """Raise BadInput for an address that is not set and cannot be found behind a gateway."""
    if cluster.authentication == "basic":
        raise BadInput(name, "not set, and the addresses in /conf are behind the gateway", fix)


def name_nodes_in(configuration: Mapping[str, str], manager_url: str) -> tuple[str, ...]:
    """Return the base URLs of WebHDFS by a daemon's configuration; raises BadInput naming the key."""
    return name_nodes(site_of(configuration), host_in(manager_url))


def history_server_in(configuration: Mapping[str, str], manager_url: str) -> str:
    """Return the base URL of the MapReduce history server by a daemon's configuration, "" if there is none.

    A ResourceManager need not know it (it reads no mapred-site.xml); then ``history_server_by`` may.
    """
    return history_server(site_of(configuration), host_in(manager_url))


HISTORY_FILES = ("core-site.xml", "mapred-site.xml", "yarn-site.xml")


def history_server_by(folder: Path, environment: Mapping[str, str]) -> str:
    """Return the base URL of the MapReduce history server by the files in HADOOP_CONF_DIR, "" if none."""
    return history_server(site_xml.load(folder, DEFAULTS, environment, names=HISTORY_FILES))


def site_of(configuration: Mapping[str, str]) -> HadoopSite:
    """Return a daemon's own configuration as a site."""
    return HadoopSite(
        {name: SiteEntry(value, False, WHERE) for name, value in configuration.items()}, DEFAULTS
    )


def host_in(url: str) -> str:
    """Return the host of a URL as written in URLs; it replaces a wildcard address of that daemon."""
    host = urlsplit(url).hostname or LOCAL
    return f"[{host}]" if ":" in host else host


def require_name_nodes(found: tuple[str, ...]) -> tuple[str, ...]:
    """Return ``found``; raises BadInput if it is empty."""
    if not found:
        remedy = "set --name-node or YARNCTL_NAME_NODE, or run without --enforce"
        raise BadInput("name_nodes", "not set, and the ResourceManager's /conf names no NameNode", remedy)
    return found
