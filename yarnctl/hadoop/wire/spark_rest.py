"""Records of a Spark driver's REST API, and the settings and tags that draining needs.

Shapes: https://spark.apache.org/docs/latest/monitoring.html (REST API), as 4.0 answers. ``duration`` is no
span that one may use: of a running task it is that of its last report, and in ``taskSummary`` 12 ms stood for
tasks of 3.7 s (tests/contract/recorded/spark-4.0.1.json).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec import field

from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder
from yarnctl.hadoop.wire.drain_tags import routes_in
from yarnctl.hadoop.wire.owned import Count, Name, SignedCount, SignedTotal, SpanMs, Total

Route = Literal["signal", "plugin"]  # SIGTERM to the container, or a plugin in the driver

KIND = "SPARK"  # YARN's application type

TRAP = "yarnctl-trap.sh"  # It keeps a container's shell alive after SIGTERM (docs/facts/spark.md, 2)
PLUGIN = "yarnctl.Leave"  # The class of the driver's plugin
LEAST_VERSION = (3, 2)  # 3.1 moves shuffle blocks; 3.2 ends executors when all blocks are moved

DECOMMISSION = "spark.decommission.enabled"
MOVES = "spark.storage.decommission.enabled"
MOVES_SHUFFLE = "spark.storage.decommission.shuffleBlocks.enabled"
MOVES_CACHE = "spark.storage.decommission.rddBlocks.enabled"
MOVES_EVERY = "spark.storage.decommission.replicationReattemptInterval"
SIGNAL = "spark.executor.decommission.signal"
SHELL_FILE = "spark.executorEnv.BASH_ENV"
FORCE_KILL = "spark.executor.decommission.forceKillTimeout"
"""Spark kills an executor that has not left by then, with its tasks; not set by default. No other setting of
Spark 3.2 to 4.1 does so: ``spark.executor.decommission.killInterval`` only announces a kill from outside."""
FALLBACK = "spark.storage.decommission.fallbackStorage.path"
SHUFFLE_SERVICE = "spark.shuffle.service.enabled"
PLUGINS = "spark.plugins"
REQUESTS, REQUESTS_OWNER = "spark.yarnctl.requests", "spark.yarnctl.requests.owner"
"""The settings with the plugin's folder of orders and the account that must have written them."""
START = "spark.app.startTime"  # Set by Spark: the instant of a driver's start

REQUIRED: Mapping[str, str] = {
    DECOMMISSION: "true",
    MOVES: "true",
    MOVES_SHUFFLE: "true",
    MOVES_CACHE: "true",
    MOVES_EVERY: "1s",
}
"""Without the last (Spark's 30 s) an executor that is empty stays for half a minute to a minute."""
REQUIRED_BY_SIGNAL: Mapping[str, str] = {SIGNAL: "TERM", SHELL_FILE: f"./{TRAP}"}

INSTANT_LENGTH = len("2023-11-14T22:29:59.000GMT")
_JAVA_OPTIONS = ("spark.executor.extraJavaOptions", "spark.executor.defaultJavaOptions")
_NO_SIGNALS = re.compile(r"(?<!\S)-Xrs(?!\S)")
_VERSION = re.compile(r"([0-9]{1,3})\.([0-9]{1,4})")
_CONTAINER = re.compile(r"container_(?:e[0-9]+_)?[0-9]+_[0-9]+_[0-9]+_[0-9]+")


def version_of(text: str) -> tuple[int, int]:
    """Return major and minor of a version; (0, 0) if it is none."""
    match = _VERSION.match(text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def no_signal_options(settings: Mapping[str, str]) -> list[str]:
    """Return the settings that give executors ``-Xrs``: then no handler of a signal can be registered."""
    return [name for name in _JAVA_OPTIONS if _NO_SIGNALS.search(settings.get(name, ""))]


def route_of(tags: Sequence[str]) -> Route | None:
    """Return the route that a tag allows; None: no executor of this application may be drained."""
    found = routes_in(tags)
    if "plugin" in found:
        return "plugin"
    return "signal" if "signal" in found else None


_ILL = re.compile(r"bad node|exit (?:status|code):? *[1-9]|killed|lost|fail|timed out", re.IGNORECASE)


def leaves_whole(settings: Mapping[str, str], route: Route) -> bool:
    """Return whether all executors may leave: shuffle blocks go to a folder, and the driver waits."""
    return route == "plugin" and settings.get(FALLBACK, "").strip().endswith("/")


def left_well(removal: str) -> bool:
    """Return whether an executor left after a drain, by its driver's ``removeReason``."""
    return _ILL.search(removal) is None


class Version(msgspec.Struct, frozen=True):
    """GET /version."""

    spark: str = ""


class Environment(msgspec.Struct, frozen=True):
    """GET /environment: what is in effect; secrets are redacted by the driver."""

    pairs: tuple[tuple[str, str], ...] = field(name="sparkProperties", default=())

    @property
    def settings(self) -> dict[str, str]:
        """The settings by name."""
        return dict(self.pairs)


class ExecutorLogs(msgspec.Struct, frozen=True):
    """The addresses of an executor's logs, which contain the id of its container."""

    stderr: str = ""
    stdout: str = ""


class Executor(msgspec.Struct, frozen=True):
    """GET /allexecutors: one executor, or the driver. Bytes; memory and disk are of cached blocks."""

    executor: Name = field(name="id")
    host: Name = field(name="hostPort", default="")
    is_active: bool = field(name="isActive", default=False)
    memory_used: SignedTotal = field(name="memoryUsed", default=0)
    disk_used: SignedTotal = field(name="diskUsed", default=0)
    cores: Count = field(name="totalCores", default=0)
    cached_partitions: SignedCount = field(name="rddBlocks", default=0)
    remove_reason: str = field(name="removeReason", default="")
    logs: ExecutorLogs = field(name="executorLogs", default=ExecutorLogs())

    @property
    def is_driver(self) -> bool:
        """Whether this row is the driver's own."""
        return self.executor == "driver"

    @property
    def container(self) -> str:
        """The id of its container; "" if its logs name none."""
        for address in (self.logs.stderr, self.logs.stdout):
            if match := _CONTAINER.search(address):
                return match[0]
        return ""

    @property
    def cached_bytes(self) -> int:
        """Cached blocks, in memory and on disk."""
        return max(0, self.memory_used) + max(0, self.disk_used)


class ActiveJob(msgspec.Struct, frozen=True):
    """GET /jobs: a job of the application (an action), with its stages."""

    job: Count = field(name="jobId")
    status: str = ""
    stages: tuple[Count, ...] = field(name="stageIds", default=())


class StageOfExecutor(msgspec.Struct, frozen=True):
    """The bytes and tasks of one executor in a stage."""

    succeeded: Count = field(name="succeededTasks", default=0)
    shuffle_write: Total = field(name="shuffleWrite", default=0)


class Stage(msgspec.Struct, frozen=True):
    """GET /stages and /stages/{stage}/{attempt}: one attempt at a stage; the latter has ``by_executor``."""

    stage: Count = field(name="stageId")
    attempt: Count = field(name="attemptId", default=0)
    status: str = ""
    tasks: Count = field(name="numTasks", default=0)
    active: SignedCount = field(name="numActiveTasks", default=0)
    complete: Count = field(name="numCompleteTasks", default=0)
    run_ms: Total = field(name="executorRunTime", default=0)
    shuffle_read: Total = field(name="shuffleReadBytes", default=0)
    shuffle_write: Total = field(name="shuffleWriteBytes", default=0)
    by_executor: dict[str, StageOfExecutor] = field(name="executorSummary", default_factory=dict)

    @property
    def waiting(self) -> int:
        """The number of its tasks that have not started."""
        return self.tasks - self.complete - max(0, self.active)


class StageTask(msgspec.Struct, frozen=True):
    """GET .../taskList: one attempt at a task; ``launched`` by the driver's clock."""

    executor: Name = field(name="executorId", default="")
    status: str = ""
    launched: Name = field(name="launchTime", default="")

    def age_ms(self, now_ms: int) -> int:
        """Return how long the task has run, in ms; -1 if its launch is unknown."""
        text = self.launched
        if len(text) != INSTANT_LENGTH or not text.endswith("GMT"):
            return -1
        try:
            launched = datetime.fromisoformat(text[:-3]).replace(tzinfo=UTC)
        except ValueError:
            return -1
        return max(0, now_ms - int(launched.timestamp() * 1000))


class TaskQuantiles(msgspec.Struct, frozen=True):
    """GET .../taskSummary?quantiles=...: how long the finished tasks of a stage took, ms."""

    run_ms: tuple[SpanMs, ...] = field(name="executorRunTime", default=())
    begin_ms: tuple[SpanMs, ...] = field(name="executorDeserializeTime", default=())

    @property
    def spans_ms(self) -> tuple[float, ...]:
        """The times of tasks within their executors, with their start."""
        return tuple(map(sum, zip(self.run_ms, self.begin_ms or (0.0,) * len(self.run_ms), strict=False)))


VERSION = OneDecoder(Version, owned=True)
ENVIRONMENT = OneDecoder(Environment, owned=True)
EXECUTORS = ListDecoder(Executor, owned=True)
JOBS = ListDecoder(ActiveJob, owned=True)
STAGES = ListDecoder(Stage, owned=True)
STAGE = OneDecoder(Stage, owned=True)
TASKS = ListDecoder(StageTask, owned=True)
QUANTILES = OneDecoder(TaskQuantiles, owned=True)
