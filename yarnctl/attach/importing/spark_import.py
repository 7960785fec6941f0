"""Import from files in HDFS by a PySpark job: executors read them, each by the reader of its kind.

The jobs come to the driver in the order in which one machine reads the files, and it writes the same folder.
Each executor has to have yarnctl. A file is read as a whole; Spark reads none above 2 GiB.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from yarnctl.attach.importing.file_import import is_read, read_bytes
from yarnctl.attach.importing.reading import UnreadableJob
from yarnctl.errors import BadInput
from yarnctl.traces.week.week_rows import ImportedJob

OPTION = "--with-spark"
RECURSIVE = "mapreduce.input.fileinputformat.input.dir.recursive"
READS_MAX = 1_000
"""The most partitions of the files below one place."""


class FoundJob(NamedTuple):
    """A job of a file, or why one is skipped; ``place``: argument, parts of the file's path, rank in it."""

    place: tuple[int, tuple[str, ...], int]
    found: ImportedJob | str


def read_by_spark(places: Sequence[str]) -> Iterator[ImportedJob | str]:
    """Yield the jobs of all files below these paths or URLs of Hadoop, and why others are skipped, in order.

    Spark's settings are those of its environment (SPARK_CONF_DIR, PYSPARK_SUBMIT_ARGS). Raises BadInput if
    PySpark is not installed, or if a place cannot be read.
    """
    if find_spec("pyspark") is None:
        remedy = "run pip install pyspark, of the version of the cluster's Spark"
        raise BadInput(OPTION, "PySpark is not installed", remedy)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    session = (
        import_module("pyspark.sql").SparkSession.builder.appName("yarnctl history import").getOrCreate()
    )
    try:
        yield from _read(session.sparkContext, places)
    except import_module("py4j.protocol").Py4JJavaError as error:
        why = str(error.java_exception).partition("\n")[0][:300]
        raise BadInput(OPTION, why, "check the paths and Spark's settings") from None
    finally:
        session.stop()


def _read(context: Any, places: Sequence[str]) -> Iterator[ImportedJob | str]:
    context._jsc.hadoopConfiguration().set(RECURSIVE, "true")
    found = []
    for number, place in enumerate(places):
        files = context.binaryFiles(place, READS_MAX)
        found.append(files.flatMap(lambda file, number=number: _jobs_of(number, *file)))
    rows = context.union(found).persist(import_module("pyspark").StorageLevel.MEMORY_AND_DISK)
    for row in rows.sortBy(lambda row: row.place).toLocalIterator():
        yield row.found


def _jobs_of(number: int, url: str, data: bytes) -> Iterator[FoundJob]:
    """Yield the jobs of one file, on an executor."""
    path = PurePosixPath(url)
    if not is_read(path.name):
        return
    rank = 0
    try:
        for rank, found in enumerate(read_bytes(data, url), 1):
            job = str(found) if isinstance(found, UnreadableJob) else found
            yield FoundJob((number, path.parts, rank), job)
    except BadInput as problem:
        yield FoundJob((number, path.parts, rank + 1), str(problem))
