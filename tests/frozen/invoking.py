"""A command of the product, run in this process: its exit status and what it said, line by line.

Law: local time is UTC and the terminal has no width, so that the same call says the same anywhere.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of


def invoked(*words: str, program: click.Group = PROGRAM, hidden: str = "") -> dict[str, Any]:
    """Run a command; ``hidden`` is a path that differs from run to run, and is told as ``PATH``."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), utc():
        status = exit_status_of(program, list(words))
    lines = {"out": out.getvalue(), "err": err.getvalue()}
    told = {name: text.replace(hidden, "PATH") if hidden else text for name, text in lines.items()}
    return {"status": status, **{name: text.splitlines() for name, text in told.items()}}


@contextlib.contextmanager
def utc() -> Iterator[None]:
    """Let local time be UTC meanwhile."""
    try:
        with environment({"TZ": "UTC"}):
            time.tzset()
            yield
    finally:
        time.tzset()


@contextlib.contextmanager
def environment(given: Mapping[str, str]) -> Iterator[None]:
    """Let these variables be set meanwhile."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
