"""Read the jobs and tasks in the store, and their manifests, with the task runner's own readers.

A name from the store is used only if it is one of Hadoop's ids or one of the runner's names, and only folders
are opened, so no path leaves the root. A file that cannot be read is reported with the reason, never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from yarnctl.errors import BadInput
from yarnctl.task_runner.runner.protocol.manifests import (
    GENERATION_NAME,
    MANIFEST_NAME,
    Manifest,
    TaskId,
    read_manifest,
)
from yarnctl.task_runner.runner.protocol.stores import Entry, Store, StoreError, Unusable

JOB = re.compile(r"job_([0-9]{1,20}_[0-9]{1,10})")
ATTEMPT = re.compile(r"attempt_([0-9]{1,20}_[0-9]{1,10})_r_[0-9]{1,10}_[0-9]{1,10}")
REQUEST = re.compile(r"\.?[A-Za-z0-9._-]{1,120}\.(?:request\.json|withdrawn|tmp)")
TASK = re.compile(r"task_([0-9]{1,20}_[0-9]{1,10})_r_[0-9]{1,10}")


class TaskCheckpoints(msgspec.Struct, frozen=True):
    """One task's folder. ``problem``: why its entries are not known; "" if they are."""

    job: str
    task: str
    owner: str
    mode: int
    entries: tuple[Entry, ...] = ()
    problem: str = ""

    @property
    def bytes(self) -> int:
        """The bytes of its files, without replication."""
        return sum(entry.bytes for entry in self.entries if not entry.is_folder)

    @property
    def manifests(self) -> tuple[str, ...]:
        """The names of its manifests, in their own order."""
        return tuple(
            sorted(e.name for e in self.entries if MANIFEST_NAME.fullmatch(e.name) and not e.is_folder)
        )

    @property
    def set_aside_files(self) -> frozenset[str]:
        """The manifests that an attempt has set aside."""
        return frozenset(e.name.partition(".aside-")[0] for e in self.entries if ".aside-" in e.name)


class JobCheckpoints(msgspec.Struct, frozen=True):
    """One job's folder. ``strange``: names in it (or below) that no task runner writes."""

    job: str
    owner: str
    tasks: tuple[TaskCheckpoints, ...] = ()
    strange: tuple[str, ...] = ()
    problem: str = ""

    @property
    def bytes(self) -> int:
        """The bytes of its files, without replication."""
        return sum(task.bytes for task in self.tasks)

    @property
    def files(self) -> int:
        """The number of files below it."""
        return sum(len(task.entries) for task in self.tasks)


def application_of(job: str) -> str:
    """Return the application that ran a job."""
    return "application_" + job.removeprefix("job_")


def job_of(name: str) -> tuple[str, str]:
    """Parse a job's, a task's or an application's id; return job and task ("": all of them)."""
    spelled = "job_" + name.removeprefix("application_") if name.startswith("application_") else name
    if JOB.fullmatch(spelled):
        return spelled, ""
    if match := TASK.fullmatch(name):
        return f"job_{match[1]}", name
    raise BadInput(
        f"id {name[:60]!r}", "not the id of a job or a reduce task", "use job_…, application_… or task_…_r_…"
    )


class RunnerFolders(NamedTuple):
    """The patterns of a runner's folder names and file names."""

    folder: re.Pattern[str]
    is_ours: Callable[[str], bool]


def _is_runners(name: str) -> bool:
    return bool(GENERATION_NAME.match(name)) or name.lstrip(".").startswith("answer-")


CHECKPOINTS = RunnerFolders(TASK, _is_runners)  # ``<job>/<task>/gen-…`` and answers
REQUESTS = RunnerFolders(ATTEMPT, lambda name: bool(REQUEST.fullmatch(name)))
"""``<job>/<attempt>/<order>.request.json`` and withdrawals."""


def stored_jobs(
    store: Store, jobs: Sequence[str] = (), folders: RunnerFolders = CHECKPOINTS
) -> tuple[JobCheckpoints, ...]:
    """Return the jobs below the root, or of ``jobs`` only, ordered by id; raises StoreError for the root."""
    found = {entry.name: entry for entry in store.list("") if entry.is_folder and JOB.fullmatch(entry.name)}
    return tuple(_job(store, found[job], folders) for job in sorted(found) if not jobs or job in jobs)


def _job(store: Store, job_entry: Entry, folders: RunnerFolders) -> JobCheckpoints:
    try:
        entries = store.list(job_entry.name)
    except (StoreError, Unusable) as error:
        return JobCheckpoints(job_entry.name, job_entry.owner, problem=str(error)[:300])
    number = job_entry.name.removeprefix("job_")
    matched = [(entry, folders.folder.fullmatch(entry.name)) for entry in entries if entry.is_folder]
    ours = [entry for entry, match in matched if match and match[1] == number]
    tasks = tuple(_task(store, job_entry.name, entry) for entry in sorted(ours))
    strange = [entry.name for entry in entries if entry not in ours]
    for task in tasks:
        strange += [
            f"{task.task}/{e.name}" for e in task.entries if e.is_folder or not folders.is_ours(e.name)
        ]
    return JobCheckpoints(job_entry.name, job_entry.owner, tasks, tuple(sorted(strange)))


def _task(store: Store, job: str, entry: Entry) -> TaskCheckpoints:
    told = TaskCheckpoints(job, entry.name, entry.owner, entry.mode)
    try:
        return msgspec.structs.replace(told, entries=tuple(sorted(store.list(f"{job}/{entry.name}"))))
    except (StoreError, Unusable) as error:
        return msgspec.structs.replace(told, problem=str(error)[:300])


def newest(store: Store, checkpoints: TaskCheckpoints) -> tuple[Manifest | None, str]:
    """Return the readable manifest of the highest generation not set aside, and the problems found."""
    problem = checkpoints.problem
    names = [name for name in checkpoints.manifests if name not in checkpoints.set_aside_files]
    for name in sorted(names, key=_rank, reverse=True):
        try:
            return read_manifest(store, TaskId(checkpoints.job, checkpoints.task, ""), name), problem
        except (Unusable, StoreError) as error:
            problem = problem or f"{name}: {error}"[:300]
    return None, problem


def _rank(name: str) -> tuple[int, str]:
    match = MANIFEST_NAME.fullmatch(name)
    return (int(match[1]) if match else 0, name)
