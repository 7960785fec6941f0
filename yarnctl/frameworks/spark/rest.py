"""Records of a Spark driver's REST API.

Shapes: https://spark.apache.org/docs/latest/monitoring.html (REST API), as 4.0 answers. ``duration`` is no
span that one may use: of a running task it is that of its last report, and in ``taskSummary`` 12 ms stood for
tasks of 3.7 s (tests/contract/recorded/spark-4.0.1.json).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import field

from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder
from yarnctl.hadoop.wire.owned import Count, InstantMs, Name, SignedCount, SignedTotal, SpanMs, Total

KIND = "SPARK"  # YARN's application type

PLUGIN = ".plugin.yarnctl.Leave."  # in the names of the gauges of the plugin in a driver
INSTANT_LENGTH = len("2023-11-14T22:29:59.000GMT")
_CONTAINER = re.compile(r"container_(?:e[0-9]+_)?[0-9]+_[0-9]+_[0-9]+_[0-9]+")
_REMOVED = "Executor killed by driver."  # ExecutorKilled: the driver's own removal of an idle executor
_ILL = re.compile(r"bad node|exit (?:status|code):? *[1-9]|killed|lost|fail|timed out", re.IGNORECASE)


def left_well(removal: str) -> bool:
    """Return whether an executor left after a drain, by its driver's ``removeReason``."""
    return removal == _REMOVED or _ILL.search(removal) is None


def instant_ms(text: str) -> int:
    """Return an instant as Spark writes it, in ms since the epoch; -1 if it is none."""
    if len(text) != INSTANT_LENGTH or not text.endswith("GMT"):
        return -1
    try:
        return int(datetime.fromisoformat(text[:-3]).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return -1


class Version(msgspec.Struct, frozen=True):
    """GET /version."""

    spark: str = ""


class Environment(msgspec.Struct, frozen=True):
    """GET /environment: what is in effect; secrets are redacted by the driver."""

    pairs: tuple[tuple[str, str], ...] = field(name="sparkProperties", default=())


class ExecutorLogs(msgspec.Struct, frozen=True):
    """The addresses of an executor's logs, which contain the id of its container."""

    stderr: str = ""
    stdout: str = ""


class Executor(msgspec.Struct, frozen=True):
    """GET /allexecutors: one executor, or the driver. Bytes; memory and disk are of cached blocks.

    ``memory_max``: what tasks and cached blocks may take together (``spark.memory.fraction``).
    """

    executor: Name = field(name="id")
    host: Name = field(name="hostPort", default="")
    is_active: bool = field(name="isActive", default=False)
    memory_used: SignedTotal = field(name="memoryUsed", default=0)
    memory_max: SignedTotal = field(name="maxMemory", default=0)
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


class HistoryExecutor(msgspec.Struct, frozen=True):
    """GET /allexecutors of the history server: when an executor came and went, and why.

    ``busy_ms``: the time of all tasks, over its task ``slots``.
    """

    executor: Name = field(name="id")
    host: Name = field(name="hostPort", default="")
    added: Name = field(name="addTime", default="")
    removed: Name = field(name="removeTime", default="")
    remove_reason: str = field(name="removeReason", default="")
    busy_ms: Total = field(name="totalDuration", default=0)
    slots: Count = field(name="maxTasks", default=0)
    cores: Count = field(name="totalCores", default=0)


class HistoryAttempt(msgspec.Struct, frozen=True):
    """One attempt of an application; without an id in client mode."""

    attempt: Name = field(name="attemptId", default="")
    user: Name = field(name="sparkUser", default="")
    ended_at_ms: InstantMs = field(name="endTimeEpoch", default=-1)


class HistoryApplication(msgspec.Struct, frozen=True):
    """GET /applications and /applications/{id}: its attempts, the newest first."""

    application: Name = field(name="id")
    name: str = ""
    attempts: tuple[HistoryAttempt, ...] = ()


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
    submitted: Name = field(name="submissionTime", default="")
    completed: Name = field(name="completionTime", default="")
    indices: Count = field(name="numCompletedIndices", default=0)
    run_ms: Total = field(name="executorRunTime", default=0)
    shuffle_read: Total = field(name="shuffleReadBytes", default=0)
    shuffle_write: Total = field(name="shuffleWriteBytes", default=0)
    by_executor: dict[str, StageOfExecutor] = field(name="executorSummary", default_factory=dict)

    @property
    def waiting(self) -> int:
        """The number of its tasks that have not started."""
        return self.tasks - (self.indices or self.complete) - max(0, self.active)


class StageTask(msgspec.Struct, frozen=True):
    """GET .../taskList: one attempt at a task; ``launched`` by the driver's clock."""

    executor: Name = field(name="executorId", default="")
    status: str = ""
    launched: Name = field(name="launchTime", default="")

    def age_ms(self, now_ms: int) -> int:
        """Return how long the task has run, in ms; -1 if its launch is unknown."""
        launched_at_ms = instant_ms(self.launched)
        return -1 if launched_at_ms < 0 else max(0, now_ms - launched_at_ms)


class TaskQuantiles(msgspec.Struct, frozen=True):
    """GET .../taskSummary?quantiles=...: how long the finished tasks of a stage took, ms."""

    run_ms: tuple[SpanMs, ...] = field(name="executorRunTime", default=())
    begin_ms: tuple[SpanMs, ...] = field(name="executorDeserializeTime", default=())

    @property
    def spans_ms(self) -> tuple[float, ...]:
        """The times of tasks within their executors, with their start."""
        return tuple(map(sum, zip(self.run_ms, self.begin_ms or (0.0,) * len(self.run_ms), strict=False)))


class Gauge(msgspec.Struct, frozen=True):
    """One gauge: a number, a text, or anything else."""

    value: Any = None


class Metrics(msgspec.Struct, frozen=True):
    """GET /metrics/json: the driver's gauges by name (https://spark.apache.org/docs/latest/monitoring.html)."""

    gauges: dict[str, Gauge] = field(default_factory=dict)

    def plugin(self) -> PluginAnswer | None:
        """Return what yarnctl's plugin answers; None if its gauges are not there."""
        found = {name.rpartition(".")[2]: one.value for name, one in self.gauges.items() if PLUGIN in name}
        order, executors = found.get("order"), found.get("executors")
        if type(order) is int and type(executors) is int and order >= 0 and executors >= 0:
            return PluginAnswer(order, executors)
        return None


class PluginAnswer(NamedTuple):
    """The number of the last order that the plugin is done with, and the executors that stay."""

    order: int
    executors: int


VERSION = OneDecoder(Version, owned=True)
METRICS = OneDecoder(Metrics, owned=True)
ENVIRONMENT = OneDecoder(Environment, owned=True)
EXECUTORS = ListDecoder(Executor, owned=True)
JOBS = ListDecoder(ActiveJob, owned=True)
STAGES = ListDecoder(Stage, owned=True)
STAGE = OneDecoder(Stage, owned=True)
TASKS = ListDecoder(StageTask, owned=True)
QUANTILES = OneDecoder(TaskQuantiles, owned=True)
