"""The scenario of a week: its jobs in the leaves where they ran, and the times of its own cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median_low

import msgspec

from emulator.cluster.timing import HADOOP3, Timing
from emulator.scenario.checking import require_leaf
from emulator.scenario.preparing import identity, require_room
from emulator.scenario.record import Prepared, Scenario
from emulator.workload.week_jobs import week_jobs
from yarnctl.errors import BadInput
from yarnctl.traces.job import JobClass
from yarnctl.traces.week.week_folder import WeekNodes
from yarnctl.traces.week.week_rows import ImportedJob
from yarnctl.units import Resources

LAUNCH_MS = 200
"""From a granted container to the start of its attempt: the master's call to the node."""
GRANTS_MS = 1_500
"""Mean wait for heartbeats before a job's first container: a node's, the master's, and half of one more."""
LAG_PART = 4
"""One job in this number counts as started on free capacity at once."""


def prepare_week(scenario: Scenario, week: Sequence[ImportedJob]) -> Prepared:
    """Return a week's jobs on the queues of ``scheduler_xml``. Raises BadInput for a queue that is not there.

    A job of ``production_queue`` is of production, any other one of research.
    """
    leaves: dict[str, str] = {}

    def leaf(queue: str) -> str:
        if queue not in leaves:
            leaves[queue] = require_leaf(scenario, queue, f"queue {queue[:60]!r} of the week")
        return leaves[queue]

    production = require_leaf(scenario, scenario.production_queue, "--production-queue")

    def class_of(queue: str) -> JobClass:
        return "production" if leaf(queue) == production else "research"

    jobs, notes = week_jobs(week, class_of)
    if not jobs:
        raise BadInput("--week", "no job of it held a container", "import another span")
    placed = tuple(msgspec.structs.replace(job, queue=leaf(job.queue or "")) for job in jobs)
    scenario = msgspec.structs.replace(scenario, measured=measured_timing(week))
    require_room(scenario, placed)
    return Prepared(scenario, placed, tuple(notes), ("week",), identity(scenario, placed))


def measured_timing(week: Iterable[ImportedJob]) -> Timing:
    """Return Hadoop's times, with those of masters and commits as the week shows them.

    An attempt of a week has its JVM's start and its commit in it, so that neither is added again. Masters
    start as fast as that of the job at the first quarter, by (first container - submission): it is taken to
    have waited for heartbeats only.
    """
    lags_ms, commits_ms = [], []
    for one in week:
        tasks = [each for each in one.containers if each.kind != "master"]
        if tasks and one.job.state == "SUCCEEDED" and one.job.ended_at_ms is not None:
            lags_ms.append(min(each.started_at_ms for each in tasks) - one.job.submitted_at_ms)
            commits_ms.append(one.job.ended_at_ms - max(each.ended_at_ms for each in tasks))
    changes = {"submit_ms": 0, "launch_ms": LAUNCH_MS, "task_commit_ms": 0}
    if lags_ms:
        lag_ms = sorted(lags_ms)[len(lags_ms) // LAG_PART]
        changes["am_start_ms"] = max(0, lag_ms - GRANTS_MS - LAUNCH_MS)
        changes["job_commit_ms"] = max(0, median_low(commits_ms))
    return msgspec.structs.replace(HADOOP3, **changes)


def nodes_of(groups: Sequence[WeekNodes]) -> tuple[int, Resources, str]:
    """Return how many nodes of which size a cluster counts as, and a note if its nodes differ.

    The emulator's nodes are alike: those of the most frequent size, as many as have the cluster's memory.
    """
    if not groups:
        problem, remedy = "the week does not know the cluster's nodes", "give --nodes and --slots"
        raise BadInput("--nodes", problem, remedy)
    counts = Counter({(one.memory_mib, one.vcores): one.nodes for one in groups})
    (memory_mib, vcores), _ = max(counts.items(), key=lambda each: (each[1], each[0]))
    whole_mib = sum(one.nodes * one.memory_mib for one in groups)
    count = max(1, round(whole_mib / memory_mib))
    note = f"nodes of {len(groups)} sizes count as {count} of {memory_mib} MiB" if len(groups) > 1 else ""
    return count, Resources(memory_mib, vcores), note
