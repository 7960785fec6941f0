"""Import from files: what a file is, is read from its first bytes, and what cannot be read is named.

A file of a kind that is not read is refused with what to do. A job that cannot be read is skipped and
counted. A folder means all files below it; of Hadoop's history folder the ``.jhist`` files alone.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import NamedTuple

from yarnctl.attach.importing import published_traces as published
from yarnctl.attach.importing.jhist import MAGIC, read_jhist
from yarnctl.attach.importing.other_files import MAGICS, OTHERS
from yarnctl.attach.importing.reading import UnreadableJob
from yarnctl.attach.importing.rest_dump import read_applications, read_ended_jobs, read_summaries
from yarnctl.attach.importing.spark_log import read_spark_log
from yarnctl.errors import BadInput, YarnctlError
from yarnctl.traces.trace_file import FILE_MAX_BYTES, read_text, text_of
from yarnctl.traces.week.week_rows import ImportedJob

HEAD_CHARS = 4096
HEAD_BYTES = 16
Reader = Callable[[str, str, str], Iterator[ImportedJob | UnreadableJob]]
"""Reads a text, with the file's name for messages and its stem for ids."""


def _one(read: Callable[[list[str]], ImportedJob]) -> Reader:
    """Return the reader of a file with one job."""

    def reader(text: str, where: str, stem: str) -> Iterator[ImportedJob | UnreadableJob]:
        try:
            yield read(text.split("\n"))  # JSON texts may contain what str.splitlines takes for a line's end
        except UnreadableJob as problem:
            yield UnreadableJob(f"{where}: {problem}")

    return reader


class FileKind(NamedTuple):
    """A kind of file that is read; ``pattern`` is found in its first characters."""

    name: str
    pattern: re.Pattern[str]
    read: Reader


ALIBABA_2017 = r"\d+,\d+,[^,\n]+,[^,\n]+,\d*,[A-Z][a-z]+,[\d.]*,[\d.]*\r?(?:\n|$)"
ALIBABA_2018 = r"[^,\n]+,\d*,[^,\n]+,[^,\n]*,[A-Z][a-z]+,\d*,\d*,[\d.]*,[\d.]*\r?(?:\n|$)"


def _kind(name: str, pattern: str, read: Reader) -> FileKind:
    return FileKind(name, re.compile(pattern, re.DOTALL), read)


KINDS = (
    _kind("MapReduce job history", rf"{MAGIC}\r?\n", _one(read_jhist)),
    _kind(
        "Spark event log", r'\s*\{"Event":"(?:org\.apache\.spark\.\S*)?SparkListener', _one(read_spark_log)
    ),
    _kind("SLS jobs", r'\s*\{[^\[]*?"(?:am\.type|job\.start\.ms|job\.tasks)"\s*:', published.read_sls),
    _kind(
        "DynoYARN workload",
        r'\s*\{.*?"(?:amResourceRequest|resourceRequestSpecs)"\s*:',
        published.read_dynoyarn,
    ),
    _kind("Rumen trace", r'\s*\{.*?"(?:jobID|mapTasks)"\s*:', published.read_rumen_jobs),
    _kind(
        "applications of /ws/v1/cluster/apps",
        r'\s*\{\s*"apps?"\s*:',
        lambda text, where, stem: read_applications(text.encode()),
    ),
    _kind(
        "jobs of the history server",
        r'\s*\{\s*"jobs?"\s*:\s*\{',
        lambda text, where, stem: read_ended_jobs(text.encode()),
    ),
    _kind(
        "log of a ResourceManager",
        r".*?appId=application_\d+_\d+,|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?:INFO|WARN|ERROR|DEBUG)",
        lambda text, where, stem: read_summaries(text),
    ),
    _kind("SWF log", r";|[ \t]*(?:-?[\d.]+[ \t]+){17}-?[\d.]+[ \t]*\r?(?:\n|$)", published.read_swf),
    _kind("SWIM trace", r"[^\t\n]+\t\d+\t-?\d+\t\d+\t\d+\t\d+(?:\t|\r?\n|$)", published.read_swim_jobs),
    _kind("Alibaba batch_task.csv", f"{ALIBABA_2017}|{ALIBABA_2018}", published.read_alibaba),
)


def files_below(path: Path) -> list[Path]:
    """Return a file, or the files below a folder in order: hidden ones, checksums and job.xml left out."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.rglob("*") if is_read(each.name) and each.is_file())


def is_read(name: str) -> bool:
    """Say whether a file with this name is read if its folder is."""
    return name[0] not in "._" and not name.endswith(("_conf.xml", ".crc", ".summary"))


def read_file(path: Path) -> Iterator[ImportedJob | UnreadableJob]:
    """Yield the jobs of a file. Raises BadInput for a file that is not read, with what to do."""
    where = str(path)
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            size_bytes = file.seek(0, 2)
    except OSError as error:
        raise BadInput(where, f"cannot be read: {error.strerror}", "check the path") from None
    _refuse(head, size_bytes, where)
    yield from _read(read_text(path, where), where)


def read_bytes(data: bytes, where: str) -> Iterator[ImportedJob | UnreadableJob]:
    """Yield the jobs of a file's content, as :func:`read_file`; ``where`` is its path or URL."""
    _refuse(data[:HEAD_BYTES], len(data), where)
    yield from _read(text_of(data, where), where)


def _read(text: str, where: str) -> Iterator[ImportedJob | UnreadableJob]:
    kind = kind_of(text[:HEAD_CHARS], where)
    stem = PurePath(where).name.partition(".")[0]
    try:
        yield from kind.read(text, where, stem)
    except BadInput:
        raise
    except (YarnctlError, csv.Error) as problem:
        raise BadInput(
            where, f"a {kind.name} file that cannot be read: {problem}", "fetch it again"
        ) from None


def kind_of(head: str, where: str) -> FileKind:
    """Return what a file is by its first characters. Raises BadInput for a kind that is not read."""
    for kind in KINDS:
        if kind.pattern.match(head):
            return kind
    for other in OTHERS:
        if other.pattern.match(head):
            raise BadInput(where, f"is {other.name}, which is not read", other.remedy)
    begin = head[:40].splitlines()[0] if head else ""
    problem = f"is not recognised by its first bytes: {begin!r}"
    raise BadInput(where, problem, f"give one of: {', '.join(kind.name for kind in KINDS)}")


def _refuse(head: bytes, size_bytes: int, where: str) -> None:
    """Raise BadInput for a packed file of another kind than gzip, and for one that is too large."""
    for magic, name, remedy in MAGICS:
        if head.startswith(magic):
            raise BadInput(where, f"is {name}, which is not read", remedy)
    if size_bytes > FILE_MAX_BYTES:
        problem = f"has {size_bytes >> 30} GiB, more than {FILE_MAX_BYTES >> 30} GiB"
        raise BadInput(where, problem, "split it at a line")
