"""``yarnctl wrap --flink``: change a Flink submit command so that its workers can be released."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

import click

from yarnctl.cli.taking_place import run_in_place
from yarnctl.errors import BadInput


class FlinkOptions(NamedTuple):
    """``--flink``, and ``--batch``: the job's code makes it a batch job."""

    flink: bool = False
    batch: bool = False


def wrap_flink(words: Sequence[str], min_executors: int, is_batch: bool, run_it: bool) -> None:
    """Print, or run, the wrapped command line."""
    from yarnctl.submitting import flink_leaving

    if not words:
        raise BadInput("command line", "is missing", "add -- flink run-application -t yarn-application ...")
    wrapped, notes = flink_leaving.wrap(words, min_executors, is_batch)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if run_it:
        run_in_place(wrapped)
    click.echo(shlex.join(wrapped))
