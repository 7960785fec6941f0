"""``yarnctl config``: show, check and write the file of settings of ``yarnctl run``.

Exit status of ``check`` 0: the file can be used; 2: it cannot. ``init`` also has 1, if a check of the cluster
fails (the file is written), and 3, if no ResourceManager answers.
"""

from __future__ import annotations

import os
import secrets
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.cli.cluster import (
    ClusterOptions,
    FolderOptions,
    QueueOptions,
    cluster_options,
    folder_options,
    queue_options,
)
from yarnctl.cli.grouped_help import first_sentence
from yarnctl.cli.settings_file import (
    PLACE,
    TABLE,
    Origin,
    file_faults,
    found_file,
    given,
    placed,
    scheme_and_host,
    settings_of,
    shown,
    variable_of,
)
from yarnctl.command_line import complain, load, output_option, print_json, print_table
from yarnctl.errors import BadInput, YarnctlError

if TYPE_CHECKING:
    from yarnctl.config import ClusterAddress

COMMENT_WIDTH = 90
WHY = {
    "rm": "The ResourceManager.",
    "name-node": "A gateway hides the NameNodes that the cluster's own configuration names.",
    "mode": "The queues of this cluster suit this mode.",
    "preempting": "Queues of production jobs: as named, or the leaf queue with the largest guarantee.",
    "preemptable": "Queues of research jobs: as named, or the leaf queue with the smallest guarantee.",
    "in-flight-least": "At most 4, and at most half of the containers that this cluster runs at once.",
    "eviction": "The cheapest lever for each container; jobs need no task runner.",
    "may-lose": "Maximum share of an hour of research container time; 0% loses nothing and frees less.",
    "yarn-preemption": "YARN's own preemption is on; this scheduler can be changed at run time.",
}
"""Why ``init`` writes a key; the other ones have the first sentence of their option's help."""
OBSERVING = "# Without this line yarnctl decides and records, but changes nothing:\n# enforce = true\n"


@click.group(no_args_is_help=True)
def command() -> None:
    """Show, check and write the file of settings of yarnctl run."""


def _run() -> click.Command:
    return load("yarnctl.cli.run:command")


# --- show ---------------------------------------------------------------------------------------


@command.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF yarnctl run]")
@output_option
def show(words: tuple[str, ...], output: str) -> None:
    """Show each setting of yarnctl run with its origin: flag, environment, file or default."""
    file, rows = settings_rows(words)
    if output == "json":
        keys = ("key", "value", "origin", "place")
        settings = [dict(zip(keys, row, strict=True)) for row in rows]
        print_json({"file": None if file is None else str(file), "settings": settings})
        return
    print_table(
        ("setting", "value", "origin", "set by"), [(key, shown(value), *more) for key, value, *more in rows]
    )


Row = tuple[str, Any, Origin, str]


def settings_rows(words: Sequence[str]) -> tuple[Path | None, list[Row]]:
    """Return the file, and key, value, origin and place of each setting; ``words``: options of ``run``."""
    with _run().make_context("run", list(words)) as context:
        return context.params["config"], [*_run_rows(context), *_cluster_rows(context)]


def _run_rows(context: click.Context) -> Iterator[Row]:
    for key, option in settings_of(context.command).items():
        value = context.params[str(option.name)]
        value = scheme_and_host(value) if key == "webhook" and value else value
        found = given(context, option)
        yield f"{TABLE}.{key}", _plain(value), found.origin, found.place


def _cluster_rows(context: click.Context) -> Iterator[Row]:
    """Yield the keys of [cluster]; one that is also an option only if [cluster] or Hadoop's files set it."""
    from yarnctl.config import ENVIRONMENT, ClusterAddress, cluster_faults, gathered

    values, places = gathered(context.params["config"], os.environ, {})
    for fault in cluster_faults(values, places):
        raise fault
    options = {
        ENVIRONMENT.get(variable_of(key)): option for key, option in settings_of(context.command).items()
    }
    defaults: ClusterAddress = ClusterAddress()
    for key in ClusterAddress.__struct_fields__:
        place = places.get(key, "HADOOP_CONF_DIR" if key in values else "")
        origin: Origin = "default"
        if place:
            origin = "environment" if place in ENVIRONMENT and key in places else "file"
        option = options.get(key)
        if option is not None and (origin != "file" or given(context, option).origin != "default"):
            continue
        shown_place = f"{place}: cluster.{key}" if origin == "file" and key in places else place
        yield f"cluster.{key}", _plain(values.get(key, getattr(defaults, key))), origin, shown_place


def _plain(value: Any) -> Any:
    """Return a value for JSON, without the user and the password of an address."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return shown(value) if isinstance(value, str | Path) and value != "" else value


# --- check --------------------------------------------------------------------------------------


@command.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
def check(file: Path | None) -> int:
    """Check FILE as yarnctl run would read it here, and print every fault; nothing is started.

    Without FILE: the file of YARNCTL_CONFIG, else /etc/yarnctl/yarnctl.toml.
    """
    from yarnctl.config import read_document

    found = found_file(file, os.environ)
    if found is None:
        raise BadInput(str(PLACE), "no such file", "run yarnctl config init --rm URL, or name a file")
    document, command_of_run = read_document(found), _run()
    faults = [str(each) for each in file_faults(found, document, settings_of(command_of_run))]
    faults = faults or list(_combined_faults(command_of_run, found))
    for fault in faults:
        complain(fault, BadInput.exit_status)
    if faults:
        return BadInput.exit_status
    count = sum(len(table) for table in document.values())
    click.echo(f"{found}: no fault; {count} setting{'s' if count != 1 else ''}")
    return 0


def _combined_faults(command_of_run: click.Command, file: Path) -> Iterator[str]:
    """Yield the faults of values that each are allowed; a wrong one is left out to find the next one."""
    from yarnctl.cli.run import options_of, prepare

    with command_of_run.make_context("run", ["--config", str(file)]) as context:
        values, options = dict(context.params), settings_of(command_of_run)
        left_out: list[str] = []
        while True:
            try:
                prepare(options_of(values))
            except BadInput as error:
                key = error.where.split()[0].strip(":").lstrip("-")
                option = options.get(key)
                follows = any(f"--{each}" in f"{error.problem} {error.remedy}" for each in left_out)
                if not follows:
                    yield str(placed(error, context))
                if option is None or key in left_out:
                    return
                left_out.append(key)
                alone = click.Command("run", params=[option])  # Without --config there is no file
                values.update(alone.make_context("run", []).params)
            else:
                return


# --- init ---------------------------------------------------------------------------------------


@command.command()
@cluster_options
@queue_options
@folder_options
@click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=PLACE,
    show_default=True,
    help="File to write.",
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
def init(
    cluster: ClusterOptions, queues: QueueOptions, folders: FolderOptions, file: Path, force: bool
) -> int:
    """Read the cluster as yarnctl check does, and write the settings that suit it.

    The daemon then only observes. To act, remove the comment sign before enforce.
    """
    from yarnctl.cli.check import examined

    if file.exists() and not force:
        raise BadInput(str(file), "exists", "use --force to overwrite it, or --file for another one")
    results, steps = examined(cluster, queues, folders)
    if steps is None:
        raise YarnctlError("the queues cannot be read; run yarnctl check for the reason")
    written_file(file, "\n".join(_lines(steps.run[2:])), force=force)
    click.echo(f"wrote {file}")
    failed = [name for name, one in results.items() if one.severity == "fail"]
    if failed:
        click.echo(f"checks that fail: {', '.join(failed)}; run yarnctl check for the fixes")
    click.echo(f"next: yarnctl config check {file} && yarnctl run --config {file}")
    return 1 if failed else 0


def _lines(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of the file for a command line of ``yarnctl run``."""
    yield "# Settings of yarnctl; all of them: yarnctl run --help-all"
    yield f"[{TABLE}]"
    with _run().make_context("run", ["--config", os.devnull, *words]) as context:
        for key, option in settings_of(context.command).items():
            if given(context, option).origin == "flag":
                why = WHY.get(key) or first_sentence(option.help or "").partition("  [")[0]
                yield from textwrap.wrap(f"# {why}", COMMENT_WIDTH, subsequent_indent="# ")
                yield f"{key} = {toml_text(context.params[str(option.name)])}"
    yield OBSERVING


def toml_text(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(toml_text(each) for each in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def written_file(file: Path, text: str, *, force: bool) -> None:
    """Write a file completely or not at all; without ``force`` one that exists is not replaced."""
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with part.open("x", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        if force:
            part.replace(file)
        else:
            os.link(part, file)
    except FileExistsError:
        raise BadInput(
            str(file), "exists", "use --force to overwrite it, or --file for another one"
        ) from None
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
