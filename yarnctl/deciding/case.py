"""The case: everything one choice of victims may look at, and the choice itself.

Law: :func:`yarnctl.deciding.selector.choose` reads a case and the settings and nothing else, so a
journal that holds the (pruned) case can re-decide it to the same bytes. Jobs stand in the order of
their ids; no set is ever walked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from yarnctl.deciding.model import TaskView
from yarnctl.deciding.policies import JobUsage
from yarnctl.units import Resources


class Need(NamedTuple):
    """``containers`` of one size that must be made room for, each on one node."""

    size: Resources
    containers: int


class Candidate(NamedTuple):
    """One running job that may have to give.

    ``budget`` is how many more of its tasks may be under order at once; ``task_size`` stands in
    for its tasks' sizes until they have been observed.
    """

    usage: JobUsage
    used: Resources
    budget: int
    task_size: Resources


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed, and what could be taken.

    ``room`` is free room per node that nobody else is forecast to take. ``tasks`` has an entry per
    job whose tasks have been observed. ``barred`` maps attempts, ``closed`` applications, to the
    reason why they may not be touched now; ``reserved`` maps nodes to the others whose reservation
    would get the room.
    """

    number: int
    now_ms: int
    total: Resources
    needs: tuple[Need, ...]
    room: Mapping[str, Resources]
    jobs: tuple[Candidate, ...]
    tasks: Mapping[str, tuple[TaskView, ...]]
    barred: Mapping[str, str] = {}
    closed: Mapping[str, str] = {}
    reserved: Mapping[str, str] = {}


class Pick(NamedTuple):
    """One task to stop, with the keys that put it first.

    ``serves`` counts the asks whose room this pick completes (0: another pick on the node does);
    ``ask`` is the size of the first of them, further ones may be smaller.
    """

    application: str
    task: TaskView
    job_key: tuple[int, ...]
    task_key: tuple[int, ...]
    ask: Resources
    serves: int


class RefusedJob(NamedTuple):
    """A job that was not taken from (again), its key at the end, and why."""

    application: str
    key: tuple[int, ...]
    why: str


class RefusedTask(NamedTuple):
    """A task of a job that was hit, not taken, its key, and why."""

    application: str
    attempt: str
    key: tuple[int, ...]
    why: str


class Choice(msgspec.Struct, frozen=True):
    """The answer to a case.

    ``missing`` names jobs whose tasks must be observed first: if there are any, the picks are
    provisional. ``hit`` names the jobs that were picked from, in the order of their first pick.
    """

    picks: tuple[Pick, ...]
    handed_back: tuple[Pick, ...]
    unmet: int
    refused_jobs: tuple[RefusedJob, ...]
    refused_tasks: tuple[RefusedTask, ...]
    hit: tuple[str, ...]
    missing: tuple[str, ...] = ()
    room: Mapping[str, Resources] = {}


def prune(case: Case, choice: Choice) -> Case:
    """Return the part of ``case`` that led to ``choice``; choosing again gives the same choice.

    Kept are the jobs that were hit and those shown as refused, of the former the tasks picked,
    handed back or shown, and the room of the nodes touched. Nothing else can have mattered: what
    was never at the head of an order leaves the head as it was.
    """
    keep_jobs = dict.fromkeys(choice.hit)
    keep_jobs.update((refused.application, None) for refused in choice.refused_jobs)
    keep_tasks = {pick.task.attempt for pick in choice.picks}
    keep_tasks.update(pick.task.attempt for pick in choice.handed_back)
    keep_tasks.update(refused.attempt for refused in choice.refused_tasks)
    nodes = {pick.task.node for pick in choice.picks}
    nodes.update(pick.task.node for pick in choice.handed_back)
    tasks = {
        application: tuple(task for task in case.tasks[application] if task.attempt in keep_tasks)
        for application in sorted(keep_jobs)
        if application in case.tasks
    }
    looked_at = {task.node for row in tasks.values() for task in row} if case.reserved else set()
    shown = {refused.attempt for refused in choice.refused_tasks}
    closed = {refused.application for refused in choice.refused_jobs}
    return msgspec.structs.replace(
        case,
        room={node: case.room[node] for node in sorted(nodes) if node in case.room},
        jobs=tuple(job for job in case.jobs if job.usage.application in keep_jobs),
        tasks=tasks,
        barred={attempt: case.barred[attempt] for attempt in sorted(shown) if attempt in case.barred},
        closed={name: case.closed[name] for name in sorted(closed) if name in case.closed},
        reserved={node: case.reserved[node] for node in sorted(looked_at) if node in case.reserved},
    )
