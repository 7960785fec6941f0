"""``docs/reference``: commands, configuration, metrics, API and journal, generated from the program.

python -m tests.architecture.reference_pages    write the pages; test_reference_pages.py compares them

The page of reasons has a generator of its own (``reasons_page``).
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from emulator.cli import PROGRAM as EMULATOR
from tests.frozen.environment import read_by_programs
from yarnctl.cli import PROGRAM as YARNCTL
from yarnctl.config import ENVIRONMENT, ClusterAddress
from yarnctl.deciding.records import Record

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference"
GENERATED = "This page is generated from the program; do not edit it."


def text_of(value: Any) -> str:
    return " ".join(str(value or "").split()).replace("|", "\\|")


def commands() -> str:
    """Return the page of every command with its arguments and options."""
    lines = ["# Commands", "", GENERATED]
    for program in (YARNCTL, EMULATOR):
        lines += ["", f"## {program.name}", "", text_of(program.help)]
        for words, command in each_command(program, str(program.name)):
            with click.Context(command, info_name=words) as context:
                lines += ["", f"### {words}", "", "```", *usage(command, context), "```"]
                lines += ["", text_of((command.help or "").split("\n\n")[0])]
                lines += option_rows(command, context)
    return "\n".join(lines) + "\n"


def usage(command: click.Command, context: click.Context) -> list[str]:
    """Return the line that shows how a command is called."""
    return [f"{context.info_name} {' '.join(command.collect_usage_pieces(context))}"]


def each_command(group: click.Group, words: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below a group with its words; groups themselves are left out."""
    with click.Context(group, info_name=words) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from each_command(command, f"{words} {name}")
            elif command is not None:
                yield f"{words} {name}", command


def option_rows(command: click.Command, context: click.Context) -> list[str]:
    found = [param.get_help_record(context) for param in command.params if isinstance(param, click.Option)]
    rows = [f"| `{names}` | {text_of(says)} |" for names, says in filter(None, found)]
    return ["", "| option | what it does |", "|---|---|", *rows] if rows else []


def configuration() -> str:
    """Return the page of the cluster's file and of the environment."""
    keys = {key: variable for variable, key in ENVIRONMENT.items()}
    rows = [
        f"| `{field.encode_name}` | `{field.default!r}` | {keys.get(field.name, '')} |"
        for field in msgspec.structs.fields(ClusterAddress)
    ]
    variables = [f"* `{name}`" for name in read_by_programs()]
    return "\n".join(
        ["# Configuration", "", GENERATED, "", "## The cluster's file", "",
         "Keys of `[cluster]` in the file of `--config`, where `[run]` has the options of `yarnctl run`, by",
         "their names: `in-flight = 0.2` is `--in-flight 0.2` and `YARNCTL_IN_FLIGHT=0.2`. An option has",
         "priority over the environment, and the environment over the file. Times are in milliseconds.", "",
         "| key | default | environment |", "|---|---|---|", *rows, "",
         "## Environment variables that the programs read", "", *variables, ""]
    )  # fmt: skip


def metrics() -> str:
    """Return the page of every metric, read from the source that makes them."""
    tree = ast.parse(inspect.getsource(import_module("yarnctl.service.routes.prometheus")))
    kinds = {
        "GaugeMetricFamily": "gauge",
        "CounterMetricFamily": "counter",
        "HistogramMetricFamily": "histogram",
    }
    rows = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds):
            continue
        values = [str(each.value) for each in node.args[:2] if isinstance(each, ast.Constant)]
        if len(values) == 2 and values[0].startswith("yarnctl_"):
            labels = [ast.literal_eval(word.value) for word in node.keywords if word.arg == "labels"]
            shown = ", ".join(f"`{name}`" for name in (labels[0] if labels else ()))
            rows.append(f"| `{values[0]}` | {kinds[node.func.id]} | {shown} | {text_of(values[1])} |")
    head = ["# Metrics", "", "`GET /metrics` of the daemon, for Prometheus. " + GENERATED, ""]
    head += ["A counter's name in `/metrics` ends with `_total`, for example `yarnctl_ticks_total`.", ""]
    return "\n".join([*head, "| metric | type | labels | meaning |", "|---|---|---|---|", *sorted(rows), ""])


def api() -> str:
    """Return the page of every operation of the REST API."""
    from tests.unit.service.played import busy
    from yarnctl.service.app import make_app

    document = make_app(busy).openapi()
    lines = ["# REST API", "", "The daemon serves the OpenAPI document at `/openapi.json`. " + GENERATED, ""]
    lines += ["| operation | what it returns or does | parameters |", "|---|---|---|"]
    for path, methods in sorted(document["paths"].items()):
        for method, each in methods.items():
            names = ", ".join(f"`{one['name']}`" for one in each.get("parameters", ()))
            says = (each.get("description") or each.get("summary") or "").split("\n\n")[0]
            lines.append(f"| `{method.upper()} {path}` | {text_of(says)} | {names} |")
    return "\n".join(lines) + "\n"


def journal() -> str:
    """Return the page of every record of the journal with its fields."""
    lines = ["# Journal", "", "One JSON object a line, chained by digests. " + GENERATED]
    kinds = sorted(get_args(Record), key=lambda kind: str(kind.__struct_config__.tag))
    for kind in kinds:
        fields = ", ".join(f"`{field.encode_name}`" for field in msgspec.structs.fields(kind))
        says = re.sub(r"``", "`", text_of((inspect.getdoc(kind) or "").split("\n\n")[0]))
        lines += ["", f"## {kind.__struct_config__.tag}", "", says, "", f"Fields: {fields or 'none'}."]
    return "\n".join(lines) + "\n"


WRITERS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "configuration": configuration,
    "metrics": metrics,
    "api": api,
    "journal": journal,
}
"""Each page by its name."""


if __name__ == "__main__":
    for name, write in WRITERS.items():
        (PAGES / f"{name}.md").write_text(write(), encoding="utf-8")
