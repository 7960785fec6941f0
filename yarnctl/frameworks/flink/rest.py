"""Records of a Flink job's REST API, and the settings that a rescale needs (docs/facts/flink.md, 3 and 4)."""

from __future__ import annotations

import re
from typing import Literal

import msgspec
from msgspec import field

from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder
from yarnctl.hadoop.wire.owned import Count, InstantMs, Name, Parallel

KIND = "APACHE FLINK"  # YARN's application type, in capitals
ROUTE: Literal["rescale"] = "rescale"  # yarnctl lowers the bounds of the job's parallelism

SCHEDULER, ADAPTIVE = "jobmanager.scheduler", "adaptive"
IDLE, GONE = "slot.idle.timeout", "resourcemanager.taskmanager-timeout"
"""The times for which an idle slot, and then its TaskManager, is kept; Flink's first default is 50 s."""
TIMEOUT, TIMEOUT_MAX_MS = "2s", 5_000
CHECKPOINTS = "execution.checkpointing.interval"
DELAY = "jobmanager.adaptive-scheduler.rescale-trigger.max-delay"
"""Since Flink 2.0 a rescale waits for the next checkpoint, at most so long (FLIP-461)."""

_DURATION = re.compile(r"([0-9]{1,12}) *(ms|s|min|m|h)?")
_UNITS_MS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}


def duration_ms(text: str) -> int:
    """Return a duration in Flink's notation, in ms; -1 if it is invalid."""
    match = _DURATION.fullmatch(text.strip().lower())
    return int(match[1]) * _UNITS_MS[match[2] or ""] if match else -1


class FlinkSetting(msgspec.Struct, frozen=True):
    """One of GET /jobmanager/config."""

    key: str = ""
    value: str = ""


class TaskCounts(msgspec.Struct, frozen=True):
    """The numbers of a job's subtasks: all, running, finished."""

    total: Count = 0
    running: Count = 0
    finished: Count = 0


class FlinkConfig(msgspec.Struct, frozen=True):
    """GET /config."""

    version: Name = field(name="flink-version", default="")

    @property
    def major(self) -> int:
        """The first number of the version; 0 if there is none."""
        first = self.version.partition(".")[0]
        return int(first) if first.isascii() and first.isdecimal() and len(first) < 4 else 0


class FlinkJob(msgspec.Struct, frozen=True):
    """One of GET /jobs/overview."""

    job: Name = field(name="jid")
    state: Name = ""
    tasks: TaskCounts = TaskCounts()

    @property
    def works(self) -> bool:
        """Whether all tasks of the job are running: it is neither starting nor being rescaled."""
        tasks = self.tasks
        return self.state == "RUNNING" and 0 < tasks.running == tasks.total - tasks.finished


class TaskManager(msgspec.Struct, frozen=True):
    """One of GET /taskmanagers: its id is its container's."""

    container: Name = field(name="id")
    slots: Count = field(name="slotsNumber", default=0)


class Completed(msgspec.Struct, frozen=True):
    """A completed checkpoint; ``begun_ms``: work before this time is saved. ``took_ms``: until it was."""

    begun_ms: InstantMs = field(name="trigger_timestamp", default=0)
    took_ms: Count = field(name="end_to_end_duration", default=0)


class LatestCheckpoints(msgspec.Struct, frozen=True):
    """The last checkpoints of each kind."""

    completed: Completed | None = None


class Checkpoints(msgspec.Struct, frozen=True):
    """GET /jobs/JOB/checkpoints."""

    latest: LatestCheckpoints = LatestCheckpoints()


class Parallelism(msgspec.Struct, frozen=True):
    """Bounds of a vertex, both above 0."""

    lower: Parallel = field(name="lowerBound")
    upper: Parallel = field(name="upperBound")


class Vertex(msgspec.Struct, frozen=True):
    """The bounds of a vertex of a job."""

    parallelism: Parallelism


Bounds = dict[str, Vertex]  # GET and PUT /jobs/JOB/resource-requirements: every vertex by its id


def least(bounds: Bounds) -> int:
    """Return the smallest parallelism that the owner's lower bounds allow the whole job."""
    return max((1, *(each.parallelism.lower for each in bounds.values())))


def lowered(bounds: Bounds, most: int) -> Bounds:
    """Return bounds with at most ``most`` for every vertex; the owner's lower bounds stay."""
    found: Bounds = {}
    for name, each in bounds.items():
        lower, upper = each.parallelism.lower, each.parallelism.upper
        found[name] = Vertex(Parallelism(lower, max(lower, min(upper, most))))
    return found


SETTINGS = ListDecoder(FlinkSetting, owned=True)
CONFIG = OneDecoder(FlinkConfig, owned=True)
JOBS = ListDecoder(FlinkJob, "jobs", owned=True)
TASK_MANAGERS = ListDecoder(TaskManager, "taskmanagers", owned=True)
CHECKPOINT = OneDecoder(Checkpoints, owned=True)
