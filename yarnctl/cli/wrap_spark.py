"""``yarnctl wrap --spark``: change a spark-submit so that its executors can be decommissioned."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

import click

from yarnctl.cli.taking_place import run_in_place
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.submitting.spark_leaving import Leaving


class SparkOptions(NamedTuple):
    """``--spark`` and the options that require it; None, "" or False: not given."""

    spark: bool = False
    route: Literal["signal", "plugin"] | None = None
    plugin: str | None = None
    fallback: str | None = None
    uses_pipe: bool = False
    print_defaults: bool = False

    def refuse_given(self, problem: str, remedy: str) -> None:
        """Raise BadInput if one of these options is given."""
        for name, value in self._asdict().items():
            if value not in (None, False, ""):
                raise BadInput("--" + name.replace("_", "-"), problem, remedy)


def wrap_spark(
    words: Sequence[str],
    options: SparkOptions,
    min_executors: int,
    requests: str,
    requests_owner: str,
    run_it: bool,
) -> None:
    """Print, or run, the wrapped command line; or print the lines for spark-defaults.conf."""
    from yarnctl.submitting import spark_leaving

    leaving = _leaving(options, min_executors, requests, requests_owner)
    if options.print_defaults:
        if words or run_it:
            raise BadInput("--print-defaults", "requires no command", "remove the command and --exec")
        click.echo("\n".join(spark_leaving.default_lines(leaving)))
        return
    if not words:
        raise BadInput("command line", "is missing", "add -- spark-submit --master yarn ...")
    home = spark_home(words)
    wrapped, notes = spark_leaving.wrap(
        words, leaving, defaults_of(words, home), spark_leaving.version_in(home) if home else ""
    )
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if run_it:
        run_in_place(wrapped)
    click.echo(shlex.join(wrapped))


def _leaving(options: SparkOptions, min_executors: int, requests: str, requests_owner: str) -> Leaving:
    from yarnctl.submitting.spark_leaving import Leaving

    return Leaving(
        route=options.route or ("plugin" if options.plugin else "signal"),
        plugin_jar=options.plugin or "",
        min_executors=min_executors,
        fallback=options.fallback or "",
        uses_pipe=options.uses_pipe,
        requests=folder_of(requests),
        owner=requests_owner,
    )


def folder_of(requests: str) -> str:
    """Return the path in HDFS of the folder for requests, from an address or a path; "" gives the default."""
    return urlsplit(requests).path.rstrip("/") or "/yarnctl/requests"


def spark_home(words: Sequence[str]) -> Path | None:
    """Return the folder of the Spark that a command runs: SPARK_HOME, else the program's; None: not found."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    program = next((word for word in words if Path(word).name == "spark-submit"), "")
    found = shutil.which(program) if program else None
    return Path(found).resolve().parent.parent if found else None


def defaults_of(words: Sequence[str], home: Path | None) -> dict[str, str]:
    """Return the settings of the defaults file that a command reads; none if the file is not found."""
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
        raise BadInput(f"{option} {path}", f"cannot be read: {problem}", "give a file of settings") from None
