"""How jobs of each framework are submitted, and which settings the daemon may grant. Pure.

A setting of the user is never overwritten: one that contradicts a granted setting is rejected by name. Each
framework has a white list of settings that the daemon may grant; no other is set.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarnctl.errors import BadInput
from yarnctl.frameworks.command_words import program_in, refuse_hidden, shown_program
from yarnctl.frameworks.flink import submission as flink
from yarnctl.frameworks.mapreduce import submission as mapreduce
from yarnctl.frameworks.spark import submission as spark
from yarnctl.frameworks.submitting import Submitter

FRAMEWORKS: dict[str, Submitter] = {"mapreduce": mapreduce, "spark": spark, "flink": flink}
"""By kind: the value in a request and an admission."""

PLAIN_KIND = "mapreduce"  # The kind of a request without one


def kind_of(words: Sequence[str]) -> str:
    """Return the framework of a command line's first program; BadInput if none submits through admission."""
    program = program_in(words)
    if program is not None:
        return program.kind
    refuse_hidden(words, "yarnctl admit")
    raise BadInput(
        shown_program(words),
        "admission supports Hadoop streaming, spark-submit and flink only",
        "submit this job without yarnctl",
    )
