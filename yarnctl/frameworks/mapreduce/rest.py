"""Records of the REST answers of a MapReduce master and of the history server.

``elapsedTime`` is not decoded: it is 0 for a running reduce attempt (facts, section 2). The history server
writes ``finishTime`` where YARN writes ``finishedTime``. Instants are ms since the epoch, 0 while the thing
has not happened; progress is percent of what *Java* has consumed.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import field

from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder
from yarnctl.hadoop.wire.owned import Count, InstantMs, Long, Name, Percent
from yarnctl.hadoop.wire.yarn import Property, StateAnswer

KIND = "MAPREDUCE"  # YARN's application type
NAME, QUEUE, TAGS = "mapreduce.job.name", "mapreduce.job.queuename", "mapreduce.job.tags"
MAPS, REDUCES = "mapreduce.job.maps", "mapreduce.job.reduces"
MAP_LIMIT, REDUCE_LIMIT = "mapreduce.job.running.map.limit", "mapreduce.job.running.reduce.limit"
LIMITS = (MAP_LIMIT, REDUCE_LIMIT)  # The most maps, and the most reduces, that run at once; 0: no limit
SLOW_START = "mapreduce.job.reduce.slowstart.completedmaps"

Phase = Literal["new", "shuffle", "sort", "reduce", "over"]


class EndedJob(msgspec.Struct, frozen=True):
    """GET /jobs and /jobs/{job} of the history server: a job that has ended.

    A row of the list comes from the *name* of the job's file: its ``name`` is cut after
    ``mapreduce.jobhistory.jobname.limit`` bytes (50), and it lacks ``uberized``.
    """

    job: Name = field(name="id")
    name: str = ""
    user: str = ""
    queue: str = ""
    state: Name = ""
    submitted_at_ms: InstantMs = field(name="submitTime", default=0)
    started_at_ms: InstantMs = field(name="startTime", default=0)
    finished_at_ms: InstantMs = field(name="finishTime", default=0)
    maps_total: Count = field(name="mapsTotal", default=0)
    reduces_total: Count = field(name="reducesTotal", default=0)
    uberized: bool = False
    killed_maps: Count = field(name="killedMapAttempts", default=0)
    killed_reduces: Count = field(name="killedReduceAttempts", default=0)
    failed_maps: Count = field(name="failedMapAttempts", default=0)
    failed_reduces: Count = field(name="failedReduceAttempts", default=0)


class Task(msgspec.Struct, frozen=True):
    """GET /jobs/{job}/tasks: one task, with all its attempts."""

    task: Name = field(name="id")
    kind: str = field(name="type", default="")
    state: Name = ""
    progress_percent: Percent = field(name="progress", default=0.0)
    started_at_ms: InstantMs = field(name="startTime", default=0)
    finished_at_ms: InstantMs = field(name="finishTime", default=0)
    successful: str = field(name="successfulAttempt", default="")


class TaskAttempt(msgspec.Struct, frozen=True):
    """GET .../tasks/{task}/attempts: one attempt at a task."""

    attempt: Name = field(name="id")
    state: Name = ""
    kind: str = field(name="type", default="")
    progress_percent: Percent = field(name="progress", default=0.0)
    started_at_ms: InstantMs = field(name="startTime", default=0)
    finished_at_ms: InstantMs = field(name="finishTime", default=0)
    shuffled_at_ms: InstantMs = field(name="shuffleFinishTime", default=0)
    merged_at_ms: InstantMs = field(name="mergeFinishTime", default=0)
    container: Name = field(name="assignedContainerId", default="")
    node_http: str = field(name="nodeHttpAddress", default="")
    rack: str = ""
    status: str = ""
    diagnostics: str = ""

    @property
    def running(self) -> bool:
        """Whether the attempt runs now."""
        return self.state == "RUNNING"

    @property
    def phase(self) -> Phase:
        """The phase of a reduce attempt; only in ``reduce`` is there anything to checkpoint.

        ``new``: no container's process yet. An instant of a phase's end is 0 (or -1) until then.
        """
        if self.finished_at_ms > 0 or self.state in ("SUCCEEDED", "FAILED", "KILLED"):
            return "over"
        if self.merged_at_ms > 0:
            return "reduce"
        if self.shuffled_at_ms > 0:
            return "sort"
        return "shuffle" if self.started_at_ms > 0 else "new"

    def elapsed_ms(self, now_ms: int) -> int:
        """How long the attempt has run (or ran), by its start and ``now_ms``, never negative."""
        if self.started_at_ms <= 0:
            return 0
        end_ms = self.finished_at_ms if self.finished_at_ms > 0 else now_ms
        return max(0, end_ms - self.started_at_ms)


class Counter(msgspec.Struct, frozen=True, gc=False):
    """One counter; jobs have a total, tasks and attempts a value."""

    name: str
    total: Long | None = field(name="totalCounterValue", default=None)
    single: Long | None = field(name="value", default=None)


class CounterGroup(msgspec.Struct, frozen=True):
    """One group of counters."""

    group: str = field(name="counterGroupName")
    counters: tuple[Counter, ...] = field(name="counter", default=())


class JobCounters(msgspec.Struct, frozen=True):
    """GET /jobs/{job}/counters."""

    owner: str = field(name="id")
    groups: tuple[CounterGroup, ...] = field(name="counterGroup", default=())


class AttemptCounters(msgspec.Struct, frozen=True):
    """GET .../attempts/{attempt}/counters."""

    owner: str = field(name="id")
    groups: tuple[CounterGroup, ...] = field(name="taskAttemptCounterGroup", default=())


ENDED_JOBS = ListDecoder(EndedJob, "jobs", "job", owned=True, skips=True)
ENDED_JOB = OneDecoder(EndedJob, "job", owned=True)
TASKS = ListDecoder(Task, "tasks", "task", owned=True)
ATTEMPTS = ListDecoder(TaskAttempt, "taskAttempts", "taskAttempt", owned=True)
ATTEMPT_STATE = OneDecoder(StateAnswer, "jobTaskAttemptState", owned=True)
JOB_COUNTERS = OneDecoder(JobCounters, "jobCounters", owned=True)
ATTEMPT_COUNTERS = OneDecoder(AttemptCounters, "jobTaskAttemptCounters", owned=True)
JOB_CONFIGURATION = ListDecoder(Property, "conf", "property", owned=True)


def counters(groups: tuple[CounterGroup, ...]) -> dict[str, dict[str, int]]:
    """Return group -> name -> value, whichever of its two spellings a counter has."""
    return {
        group.group: {
            one.name: one.total if one.total is not None else one.single or 0 for one in group.counters
        }
        for group in groups
    }
