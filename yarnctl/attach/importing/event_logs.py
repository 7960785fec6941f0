"""A folder of Spark's event logs, as the source of a bill."""

from __future__ import annotations

from pathlib import Path

from yarnctl.attach.importing.file_import import files_below, read_file
from yarnctl.errors import BadInput
from yarnctl.frameworks.spark.rest import KIND
from yarnctl.traces.week.week_rows import ImportedJob


def read_event_logs(folder: Path) -> tuple[dict[str, ImportedJob], list[str]]:
    """Return the applications of a folder by id, and what could not be read.

    The attempts of an application have a log each: it has the containers of all, and ends with the last one.
    Raises BadInput for a folder that is not there.
    """
    if not folder.is_dir():
        raise BadInput("--event-logs", f"{str(folder)!r} is not a folder", "give that of spark.eventLog.dir")
    found: dict[str, ImportedJob] = {}
    problems: list[str] = []
    for path in files_below(folder):
        try:
            for one in read_file(path):
                if not isinstance(one, ImportedJob):
                    problems.append(str(one))
                elif one.job.kind == KIND:
                    found[one.job.job] = _joined(one, found.get(one.job.job))
        except BadInput as problem:
            problems.append(str(problem))
    return found, problems


def _joined(job: ImportedJob, known_job: ImportedJob | None) -> ImportedJob:
    if known_job is None:
        return job
    last = max((job.job, known_job.job), key=lambda row: row.ended_at_ms or 0)
    return ImportedJob(last, known_job.tasks + job.tasks, known_job.containers + job.containers)
