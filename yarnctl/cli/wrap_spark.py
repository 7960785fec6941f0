"""``yarnctl wrap --spark``: make an application of Spark one whose executors leave with their work.

Law: thin over ``submitting.spark_leaving``; what the machine's own Spark says (its version, its file of
defaults) is read here.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from yarnctl.cli.taking_place import run_in_place
from yarnctl.errors import BadInput

OPTIONS = ("route", "plugin", "min_executors", "fallback", "uses_pipe", "print_defaults")
"""Options that mean nothing without ``--spark``."""


def refuse_without_spark(given: Mapping[str, Any]) -> None:
    """Refuse options of Spark where no Spark is wrapped."""
    for name in OPTIONS:
        if given[name] not in (None, False, ""):
            raise BadInput("--" + name.replace("_", "-"), "is for Spark", "write --spark, too")


def wrap_spark(words: Sequence[str], given: Mapping[str, Any], run_it: bool) -> None:
    """Print, or run, the command line; or print the lines of defaults."""
    from yarnctl.submitting import spark_leaving

    leaving = _leaving(given)
    if given["print_defaults"]:
        if words or run_it:
            raise BadInput("--print-defaults", "takes no command", "remove the command and --exec")
        click.echo("\n".join(spark_leaving.default_lines(leaving)))
        return
    if not words:
        raise BadInput("command line", "is missing", "write -- spark-submit --master yarn ...")
    home = spark_home(words)
    wrapped, notes = spark_leaving.wrap(
        words, leaving, defaults_of(words, home), spark_leaving.version_in(home) if home else ""
    )
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if run_it:
        run_in_place(wrapped)
    click.echo(shlex.join(wrapped))


def _leaving(given: Mapping[str, Any]) -> Any:
    from yarnctl.submitting.spark_leaving import Leaving

    return Leaving(
        route=given["route"] or ("plugin" if given["plugin"] else "signal"),
        plugin_jar=given["plugin"] or "",
        min_executors=given["min_executors"] or 1,
        fallback=given["fallback"] or "",
        uses_pipe=given["uses_pipe"],
        requests=folder_of(given["requests"]),
        owner=given["requests_owner"],
    )


def folder_of(requests: str) -> str:
    """Return the folder in HDFS of the daemon's requests, however it was named."""
    return urlsplit(requests).path.rstrip("/") or "/yarnctl/requests"


def spark_home(words: Sequence[str]) -> Path | None:
    """Return the folder of the Spark that a command would run: SPARK_HOME, else around the program."""
    if told := os.environ.get("SPARK_HOME"):
        return Path(told)
    program = next((word for word in words if Path(word).name == "spark-submit"), "")
    found = shutil.which(program) if program else None
    return Path(found).resolve().parent.parent if found else None


def defaults_of(words: Sequence[str], home: Path | None) -> dict[str, str]:
    """Return the settings of the file of defaults that a command would read; none where it is not seen."""
    from yarnctl.submitting.spark import SparkWords
    from yarnctl.submitting.spark_leaving import defaults_in

    named = SparkWords(words).value_of("--properties-file")
    if named is not None:
        return defaults_in(_text(Path(named), "--properties-file"))
    folder = os.environ.get("SPARK_CONF_DIR") or (home / "conf" if home else None)
    path = Path(folder) / "spark-defaults.conf" if folder else None
    return defaults_in(_text(path, "spark-defaults.conf")) if path is not None and path.is_file() else {}


def _text(path: Path, option: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise BadInput(f"{option} {path}", f"cannot be read: {problem}", "name a file of settings") from None
