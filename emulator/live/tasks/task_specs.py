"""Tasks as processes: how a streaming job is split, and the specification of each task's process.

Law: splits and the job's file are a function of the job and of its input alone; nothing here starts
anything. A task's process reads two things: the job's file in the staging folder, and its own entry in the
environment (``streaming.ENTRY``).
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from emulator.live.tasks.streaming import merge_folders
from emulator.live.wire.submitted_job import StreamingJob, configuration, number_setting
from yarnctl.errors import BadInput
from yarnctl.traces.job import Job

SOURCES = str(Path(__file__).resolve().parents[3])
"""What a task's own Python needs on its path; the user's command has none of it."""

BLOCK_BYTES = 128 << 20
SLOP_RATIO = 1.1
"""The last split of a file may be this much larger than the others (FileInputFormat)."""


class InputSplit(NamedTuple):
    """One map's share of the input."""

    path: str
    offset: int
    length: int


def input_files(inputs: tuple[str, ...]) -> list[tuple[str, int]]:
    """Return the input files with their sizes: those of a folder by name, hidden ones left out."""
    found: list[tuple[str, int]] = []
    for name in inputs:
        path = Path(name)
        try:
            entries = sorted(path.iterdir()) if path.is_dir() else [path]
            for entry in entries:
                if entry is path or (not entry.name.startswith(("_", ".")) and entry.is_file()):
                    found.append((str(entry), entry.stat().st_size))
        except OSError as error:
            raise BadInput(f"input {name}", error.strerror or "cannot be read") from error
    return found


def plan_splits(job: StreamingJob) -> list[InputSplit]:
    """Cut the input as Hadoop's (old) FileInputFormat does: by blocks and by ``mapreduce.job.maps``."""
    files = input_files(job.inputs)
    wanted = max(1, int(number_setting(job.settings, "mapreduce.job.maps", 2)))
    smallest = int(number_setting(job.settings, "mapreduce.input.fileinputformat.split.minsize", 1))
    goal = sum(size for _, size in files) // wanted
    size = max(1, smallest, min(goal, BLOCK_BYTES))
    splits: list[InputSplit] = []
    for path, length in files:
        offset = 0
        while (length - offset) / size > SLOP_RATIO:
            splits.append(InputSplit(path, offset, size))
            offset += size
        if length - offset or not length:
            splits.append(InputSplit(path, offset, length - offset))
    return splits


def job_record(job: StreamingJob, splits: list[InputSplit]) -> Job:
    """Return the job for the AM actor: how many tasks of which size, and no timetable."""
    return Job(
        name=job.name,
        job_class="research",
        submitted_at_ms=0,
        map_ms=(0,) * len(splits),
        reduce_ms=(0,) * job.reduces,
        reduce_keys=(1,) * job.reduces,
        shuffle_ms=0,
        deadline_at_ms=job.deadline_at_ms,
        user=job.user,
        queue=job.queue,
        am_size=job.am_size,
        map_size=job.map_size,
        reduce_size=job.reduce_size,
    )


class Staging:
    """A streaming job's folder below ``<work>/staging``: its file, the files shipped with it, map outputs."""

    def __init__(self, work: Path, job_id: str) -> None:
        self.folder = (work / "staging" / job_id).absolute()
        self.maps = self.folder / "maps"
        self.files = self.folder / "files"
        self.job_file = self.folder / "job.json"

    def prepare(self, job: StreamingJob, job_id: str, maps: int) -> None:
        """Keep the files as they are now, and write the tasks' specifications; once for all attempts."""
        self.maps.mkdir(parents=True, exist_ok=True)
        self.files.mkdir(exist_ok=True)
        if self.job_file.exists():
            return
        shipped: dict[str, str] = {}
        for name, path in sorted(job.files.items()):
            try:
                shutil.copy2(path, self.files / name)
            except OSError as error:
                raise BadInput(f"file {path}", error.strerror or "cannot be read") from error
            shipped[name] = str(self.files / name)
        told = {
            "job_id": job_id,
            "conf": configuration(job),
            "mapper": job.mapper,
            "reducer": job.reducer,
            "combiner": job.combiner,
            "cmdenv": job.cmdenv,
            "files": shipped,
            "output": job.output,
            "reduces": job.reduces,
            "maps": maps,
        }
        unfinished = self.job_file.with_suffix(".tmp")
        unfinished.write_text(json.dumps(told), encoding="utf-8")
        os.replace(unfinished, self.job_file)


class TaskOutput:
    """A job's output folder, committed as FileOutputCommitter does: tasks by rename, the job at its end."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.temporary = self.folder / "_temporary"
        self.committed = self.temporary / "committed"

    def prepare(self, first: bool) -> None:
        """Make the folder; a first attempt refuses one that holds something."""
        try:
            if first and self.folder.exists() and any(self.folder.iterdir()):
                raise BadInput(f"output {self.folder}", "exists", "use a new folder")
            self.committed.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"output {self.folder}", error.strerror or "cannot be written") from error

    def drop(self, attempt: str) -> None:
        """Delete what an attempt that is gone has left."""
        shutil.rmtree(self.temporary / attempt, ignore_errors=True)

    def has(self, task: int) -> bool:
        """Say whether a task's output is committed (here or, after the job's commit began, in place)."""
        name = f"part-{task:05d}"
        return (self.committed / name).exists() or (self.folder / name).exists()

    def commit(self) -> None:
        """Put all committed parts in place, then ``_SUCCESS``; may be repeated after a crash."""
        if self.committed.is_dir():
            merge_folders(str(self.committed), str(self.folder))
        (self.folder / "_SUCCESS").touch()
        shutil.rmtree(self.temporary, ignore_errors=True)

    def abort(self) -> None:
        """Leave nothing of a job that failed."""
        shutil.rmtree(self.temporary, ignore_errors=True)
