"""Open the store for the commands: checkpoints, requests, and each application's terminal state.

``delete`` alone changes anything, and only folders named by an id directly below one of the two roots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from yarnctl.checkpoint.application_ends import ApplicationEnd, ApplicationEnds
from yarnctl.checkpoint.collecting import ForgottenJobs, JudgedFolder, decide
from yarnctl.checkpoint.contents import (
    CHECKPOINTS,
    JOB,
    REQUESTS,
    JobCheckpoints,
    RunnerFolders,
    TaskCheckpoints,
    application_of,
    job_of,
    newest,
    stored_jobs,
)
from yarnctl.checkpoint.verifying import CheckpointVerdict, verify_task
from yarnctl.errors import BadInput, Unreachable, YarnctlError
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.task_runner.runner.protocol.manifests import Manifest, TaskId, read_manifest
from yarnctl.task_runner.runner.protocol.stores import StoreError, Unusable


class CheckpointRow(msgspec.Struct, frozen=True):
    """One task in ``list``; None: there is no readable manifest."""

    job: str
    task: str
    owner: str
    generation: int | None
    groups_done: int | None
    output_bytes: int | None
    created_at_ms: int | None
    age_ms: int | None
    bytes: int
    manifests: int
    application: str
    application_state: str
    problem: str


class OpenedStore:
    """The store and the requests of one cluster. Both roots are SeenStores on ``hdfs``."""

    def __init__(
        self, hdfs: WebHdfs, manager: Transport, history: Transport | None, checkpoints: Any, requests: Any
    ) -> None:
        self._hdfs = hdfs
        self.application_ends = ApplicationEnds(manager, history)
        self.checkpoints = checkpoints
        self.requests = requests

    def jobs(self, jobs: Sequence[str] = ()) -> tuple[JobCheckpoints, ...]:
        """Return the jobs in the store; raises Unreachable, Rejected where it cannot be listed."""
        self._reach(self.checkpoints.root)
        return _stored(self.checkpoints, jobs, CHECKPOINTS)

    def rows(self, now_ms: int) -> tuple[CheckpointRow, ...]:
        """Return ``list``'s rows, ordered by job and task."""
        return tuple(row for job in self.jobs() for row in self._rows_of(job, now_ms))

    def _rows_of(self, job: JobCheckpoints, now_ms: int) -> list[CheckpointRow]:
        application = application_of(job.job)
        state = self.application_ends.of(application).state
        if job.problem:
            blank = TaskCheckpoints(job.job, "", job.owner, 0, problem=job.problem)
            return [_row(blank, None, job.problem, application, state, now_ms)]
        told = [(task, *newest(self.checkpoints, task)) for task in job.tasks]
        return [_row(task, found, why, application, state, now_ms) for task, found, why in told]

    def manifests(self, name: str) -> list[tuple[str, str, Manifest | str]]:
        """Return folder, file and manifest (or why it cannot be read) of all manifests of a job or task."""
        job, task = job_of(name)
        held = [one for each in self.jobs([job]) for one in each.tasks if task in ("", one.task)]
        return [
            (f"{one.job}/{one.task}", file, self._manifest(one, file))
            for one in held
            for file in one.manifests
        ]

    def _manifest(self, checkpoints: TaskCheckpoints, file: str) -> Manifest | str:
        try:
            return read_manifest(self.checkpoints, TaskId(checkpoints.job, checkpoints.task, ""), file)
        except (Unusable, StoreError) as error:
            return str(error)[:300]

    def verdicts(self, names: Sequence[str], quick: bool) -> list[CheckpointVerdict]:
        """Verify all, or the named jobs and tasks; a name that is not in the store is bad."""
        wanted = [job_of(name) for name in names]
        jobs = self.jobs(sorted({job for job, _ in wanted}))
        rows: list[CheckpointVerdict] = []
        for job in jobs:
            if job.problem:
                rows.append(CheckpointVerdict(job.job, "", "", 0, 0, "bad", (job.problem,)))
            for task in job.tasks:
                if not wanted or (job.job, "") in wanted or (job.job, task.task) in wanted:
                    rows += verify_task(self.checkpoints, task, None if quick else self._opened)
        there = {(job.job, "") for job in jobs} | {
            (task.job, task.task) for job in jobs for task in job.tasks
        }
        missing = sorted(set(wanted) - there)
        return rows + [
            CheckpointVerdict(job, task, "", 0, 0, "bad", ("not in the store",)) for job, task in missing
        ]

    @contextmanager
    def _opened(self, path: str) -> Iterator[Iterator[bytes]]:
        try:
            with self._hdfs.open(f"{self.checkpoints.root}/{path}") as pieces:
                yield pieces
        except YarnctlError as error:
            raise StoreError(str(error)) from error

    def judged(
        self, now_ms: int | None, older_than_ms: int, unknown_after_ms: int | None = None
    ) -> tuple[JudgedFolder, ...]:
        """Return the decision of ``gc`` about each folder; read each application's end once.

        ``unknown_after_ms``: also unknown jobs whose files were last written so long ago (None: never).
        ``now_ms`` by the slowest clock; raises Unreachable, Rejected where a root cannot be listed.
        """
        checkpoints, requests = self.jobs(), self._requests()
        names = sorted({application_of(job.job) for job in (*checkpoints, *requests)})
        endings: dict[str, ApplicationEnd] = {name: self.application_ends.of(name) for name in names}
        forgotten = self._unknown(checkpoints, requests, endings, unknown_after_ms)
        return decide(checkpoints, requests, endings, now_ms, older_than_ms, forgotten)

    def _unknown(
        self,
        checkpoints: Sequence[JobCheckpoints],
        requests: Sequence[JobCheckpoints],
        endings: dict[str, ApplicationEnd],
        after_ms: int | None,
    ) -> ForgottenJobs | None:
        if after_ms is None:
            return None
        written = {
            (what, job.job): _written_at_ms(store, job)
            for what, store, jobs in (
                ("checkpoints", self.checkpoints, checkpoints),
                ("requests", self.requests, requests),
            )
            for job in jobs
            if endings[application_of(job.job)].is_unknown
        }
        return ForgottenJobs(after_ms, self.application_ends.epoch_ms() if written else None, written)

    def delete(
        self,
        rows: Sequence[JudgedFolder],
        now_ms: int | None,
        older_than_ms: int,
        unknown_after_ms: int | None = None,
    ) -> dict[tuple[str, str], str]:
        """Delete what may be, each checked again right before; return (what, job) -> why not."""
        failed: dict[tuple[str, str], str] = {}
        for row in rows:
            if not row.delete or not JOB.fullmatch(row.job):
                continue
            try:
                changed = self._changed(row, now_ms, older_than_ms, unknown_after_ms)
                root = self.checkpoints.root if row.what == "checkpoints" else self.requests.root
                if changed:
                    failed[(row.what, row.job)] = changed
                else:
                    self._hdfs.delete(f"{root}/{row.job}", recursive=True)
            except YarnctlError as error:
                failed[(row.what, row.job)] = str(error)
        return failed

    def _changed(
        self, folder: JudgedFolder, now_ms: int | None, older_than_ms: int, unknown_after_ms: int | None
    ) -> str:
        """Return why a folder with an earlier decision must not be deleted now; "": it may be."""
        is_checkpoints = folder.what == "checkpoints"
        ends = {application_of(folder.job): self.application_ends.of(application_of(folder.job))}
        held = self.jobs([folder.job]) if is_checkpoints else self._requests([folder.job])
        checkpoints, requests = (held, ()) if is_checkpoints else ((), held)
        forgotten = self._unknown(checkpoints, requests, ends, unknown_after_ms)
        again = decide(checkpoints, requests, ends, now_ms, older_than_ms, forgotten)
        if not again:
            return "kept: the folder does not exist any more"
        if not again[0].delete:
            return f"kept: {again[0].why}"
        if (again[0].bytes, again[0].files) != (folder.bytes, folder.files):
            return "kept: the folder's content has just changed"
        return ""

    def _requests(self, jobs: Sequence[str] = ()) -> tuple[JobCheckpoints, ...]:
        self._reach(self.requests.root)
        return _stored(self.requests, jobs, REQUESTS)

    def _reach(self, root: str) -> None:
        """Raise a problem of the store itself as an error of its own kind; a missing root is empty."""
        try:
            self._hdfs.listing(root)
        except Missing:
            return


def _written_at_ms(store: Any, job: JobCheckpoints) -> int:
    """Return when the newest file or folder of a job was written; 0 if one of them has no time."""
    paths = [job.job, *(f"{job.job}/{task.task}" for task in job.tasks)]
    paths += [f"{job.job}/{task.task}/{entry.name}" for task in job.tasks for entry in task.entries]
    try:
        times = [store.written_at_ms(path) for path in paths]
    except StoreError as error:
        raise Unreachable(str(error)) from error
    return 0 if min(times) <= 0 else max(times)


def _stored(store: Any, jobs: Sequence[str], folders: RunnerFolders) -> tuple[JobCheckpoints, ...]:
    try:
        return stored_jobs(store, jobs, folders)
    except StoreError as error:
        raise Unreachable(str(error)) from error


def checked_root(option: str, path: str) -> str:
    """Return a root without a slash at its end; raises BadInput for an invalid folder of a store."""
    clean = path.rstrip("/")
    parts = clean.split("/")[1:]
    if not path.startswith("/") or not parts or any(part in ("", ".", "..") for part in parts):
        raise BadInput(
            option,
            f"{path[:80]!r} is not a folder below the root of HDFS",
            "use a folder such as /yarnctl/checkpoints",
        )
    return clean


def shown_manifest(folder: str, file: str, manifest: Manifest | str) -> dict[str, Any]:
    """Return a manifest for showing: all its fields, and the last key as text that is safe to print."""
    if isinstance(manifest, str):
        return {"folder": folder, "file": file, "problem": manifest}
    return {"folder": folder, "file": file, **manifest.raw, "last_key_text": safe_bytes(manifest.last_key)}


def safe_bytes(data: bytes, most: int = 400) -> str:
    """Return bytes as printable ASCII, the rest as hex escapes, at most ``most`` bytes of them."""
    text = "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02x}" for b in data[:most])
    return text if len(data) <= most else f"{text}... ({len(data)} bytes)"


def _row(
    task: TaskCheckpoints, manifest: Manifest | None, problem: str, application: str, state: str, now_ms: int
) -> CheckpointRow:
    created = manifest.raw.get("created_at_ms") if manifest else None
    created_at_ms = created if isinstance(created, int) and not isinstance(created, bool) else None
    return CheckpointRow(
        job=task.job,
        task=task.task,
        owner=task.owner,
        generation=manifest.generation if manifest else None,
        groups_done=manifest.groups_done if manifest else None,
        output_bytes=manifest.output_bytes if manifest else None,
        created_at_ms=created_at_ms,
        age_ms=None if created_at_ms is None else max(0, now_ms - created_at_ms),
        bytes=task.bytes,
        manifests=len(task.manifests),
        application=application,
        application_state=state,
        problem=problem,
    )
