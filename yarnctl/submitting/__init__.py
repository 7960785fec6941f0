"""Submitting: how a framework's jobs are submitted, and what a gate may set in a user's name.

Law: pure. Nothing is run, requested or opened here; command lines and settings come in and go out,
never a shell. The user's own settings are never overwritten: one that contradicts the gate is refused by its
name. Each framework has a white list of what a gate may set, and nothing else is set. By the import contracts
this package is above the clients and the task runner's words, beside ``checkpoint``; the service, which shows
what to submit with, reads ``FRAMEWORKS`` and names no framework.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from yarnctl.submitting import flink, mapreduce, spark
from yarnctl.submitting.framework import Framework

FRAMEWORKS: dict[str, Framework] = {"mapreduce": mapreduce, "spark": spark, "flink": flink}
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
"""The word of a command line that names its framework."""
PLAIN_KIND = "mapreduce"
"""The kind of a request that says none."""


def kind_of(words: Sequence[str]) -> str:
    """Return the framework whose program a command line names first; MapReduce, which refuses it, if none."""
    named = (PROGRAMS.get(PurePath(word).name) for word in words)
    return next((kind for kind in named if kind is not None), PLAIN_KIND)
