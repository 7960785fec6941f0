"""The command lines: every command, option and argument of the programs that pyproject.toml installs.

Law: read from the command objects, never from the text of ``--help``. An option stands under each of its
names, so that a new name may join an old one and none may go.
"""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from yarnctl.task_runner.runner.protocol import job_conf

ROOT = Path(__file__).parents[2]
PLAIN = (str, int, float, bool)
BOUNDS = ("min", "max", "min_open", "max_open")


def programs() -> dict[str, Any]:
    """Return what every installed program takes, and the task runner."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {
        name: facts_of(import_module(target.partition(":")[0]).PROGRAM)
        for name, target in project["scripts"].items()
    }
    return {**found, "yarnctl_task.py": runner_facts()}


def facts_of(command: click.Command) -> dict[str, Any]:
    options: dict[str, Any] = {}
    arguments: list[Any] = []
    for param in command.params:
        told = param_facts(param)
        if isinstance(param, click.Option):
            options.update(dict.fromkeys((*param.opts, *param.secondary_opts), told))
        else:
            arguments.append({"name": param.human_readable_name, **told})
    required = sorted(name for name, told in options.items() if told["required"])
    found: dict[str, Any] = {
        "options": options,
        "arguments": arguments,
        "required": " ".join(required),  # one leaf: another required option breaks who calls without it
        "unknown_options": command.context_settings.get("ignore_unknown_options", False),
    }
    if isinstance(command, click.Group):
        context = click.Context(command)
        commands = {name: command.get_command(context, name) for name in command.list_commands(context)}
        found["commands"] = {name: facts_of(each) for name, each in commands.items() if each is not None}
    return found


def param_facts(param: click.Parameter) -> dict[str, Any]:
    is_flag = bool(getattr(param, "is_flag", False))
    default = param.default is True if is_flag else plain(param.default)
    return {
        **type_facts(param.type),
        "flag": is_flag,
        "takes": param.nargs,
        "multiple": bool(getattr(param, "multiple", False)),
        "required": param.required,
        "default": default,
        "metavar": param.metavar,
        "environment": plain(param.envvar),
    }


def type_facts(kind: click.ParamType) -> dict[str, Any]:
    """Return a type's name, its choices or its bounds."""
    if isinstance(kind, click.Choice):
        return {"type": "choice", "choices": {str(each): True for each in kind.choices}}
    bounds = [getattr(kind, name, None) for name in BOUNDS]
    told = [
        f"{name} {bound}" for name, bound in zip(BOUNDS, bounds, strict=True) if bound not in (None, False)
    ]
    return {"type": kind.name.removesuffix(" range"), "bounds": ", ".join(told)}


def plain(value: object) -> Any:
    """Return a value if it says the same in every version of click; None for "not given"."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, list | tuple) and value:
        return [plain(each) for each in value]
    return None


def runner_facts() -> dict[str, Any]:
    """Return the task runner's options (before its ``--``)."""
    options = {
        name: {"type": "text" if isinstance(default, str | bool) else type(default).__name__,
            "flag": isinstance(default, bool), "default": plain(default)}
        for name, default in job_conf.OPTIONS.items()
    }  # fmt: skip
    return {"options": options}
