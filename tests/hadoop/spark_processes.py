"""The processes of a Spark application on this machine, by what they were started with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.hadoop.spark_draining import SparkJob


class Process(NamedTuple):
    """A JVM in a container."""

    process: int
    container: str
    words: tuple[str, ...]


def processes_of(spark: SparkJob) -> Iterator[Process]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
            given = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has ended meanwhile
            continue
        held = [each.removeprefix("CONTAINER_ID=") for each in given if each.startswith("CONTAINER_ID=")]
        number = spark.application.removeprefix("application_")
        if words[0].endswith("java") and held and f"_{number}_" in held[0]:
            yield Process(int(folder.name), held[0], tuple(words))


def executors_of(spark: SparkJob) -> dict[str, int]:
    return {
        each.container: each.process
        for each in processes_of(spark)
        if any("ExecutorBackend" in word for word in each.words)
    }


def of_driver(spark: SparkJob) -> int:
    (found,) = (each for each in processes_of(spark) if any("ApplicationMaster" in w for w in each.words))
    return found.process
