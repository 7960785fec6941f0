"""How jobs of each framework are submitted, and which settings the daemon may grant. Pure.

A setting of the user is never overwritten: one that contradicts a granted setting is rejected by name. Each
framework has a white list of settings that the daemon may grant; no other is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from yarnctl.frameworks.flink import submission as flink
from yarnctl.frameworks.mapreduce import submission as mapreduce
from yarnctl.frameworks.spark import submission as spark
from yarnctl.frameworks.submitting import Submitter

FRAMEWORKS: dict[str, Submitter] = {"mapreduce": mapreduce, "spark": spark, "flink": flink}
"""By kind: the value in a request and an admission."""

PROGRAMS = {
    "hadoop": "mapreduce",
    "mapred": "mapreduce",
    "jar": "mapreduce",
    "streaming": "mapreduce",
    "submit": "mapreduce",
    spark.PROGRAM: "spark",
    flink.PROGRAM: "flink",
}
"""The programs of a command line, with their framework."""
PLAIN_KIND = "mapreduce"  # The kind of a request without one


def kind_of(words: Sequence[str]) -> str:
    """Return the framework of a command line's first known program; MapReduce (which rejects it) if none."""
    named = (PROGRAMS.get(PurePath(word).name) for word in words)
    return next((kind for kind in named if kind is not None), PLAIN_KIND)
