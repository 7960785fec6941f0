"""``yarnctl wrap --flink``: make a job of Flink one that goes on with fewer workers when it is asked to.

Law: thin over ``submitting.flink_leaving``.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from yarnctl.cli.taking_place import run_in_place
from yarnctl.errors import BadInput

NOT_OURS = ("spark", "route", "plugin", "fallback", "uses_pipe", "print_defaults", "restartable")


def wrap_flink(words: Sequence[str], given: Mapping[str, Any]) -> None:
    """Print, or run, the command line."""
    from yarnctl.submitting import flink_leaving

    for name in NOT_OURS:
        if given[name] not in (None, False, ""):
            raise BadInput("--" + name.replace("_", "-"), "is not for Flink", "remove it, or --flink")
    if not words:
        raise BadInput("command line", "is missing", "write -- flink run-application -t yarn-application ...")
    wrapped, notes = flink_leaving.wrap(words, given["min_executors"] or 1, given["batch"])
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if given["run_it"]:
        run_in_place(wrapped)
    click.echo(shlex.join(wrapped))
