"""One file of settings for ``run`` and the commands that share options with it.

* The file is ``--config``, else ``YARNCTL_CONFIG``, else ``/etc/yarnctl/yarnctl.toml`` if it exists.
* The keys of ``[run]`` are the options of ``yarnctl run``, without the dashes. ``[cluster]`` has the
  connection (:mod:`yarnctl.config`).
* An option ``--in-flight`` is the variable ``YARNCTL_IN_FLIGHT``; several values have commas between them.
* An option has priority over its variable, the variable over the file, the file over the default.
* The whole file is checked, whatever the command: an unknown table or key, or a value that its option would
  not accept, is a fault with file and key.
* Secrets are files, and their paths are absolute. Only the address of ``webhook`` may be one: it is never
  shown whole (:func:`scheme_and_host`).

::

    [run]
    rm = ["http://rm.example:8088"]
    enforce = true
    eviction = "mix"
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import click

from yarnctl.errors import BadInput, nearest

PLACE = Path("/etc/yarnctl/yarnctl.toml")
PLACE_ENV = "YARNCTL_CONFIG"
TABLE = "run"
TEXT_MAX = 4096
_ORIGINS = "yarnctl.cli.settings_file.origins"
_TRUTHS = {"1": True, "true": True, "0": False, "false": False}
_OPTION = re.compile(r"--([a-z][a-z0-9-]*)")
_CREDENTIALS = re.compile(r"://[^/@\s]*@")

Origin = Literal["flag", "environment", "file", "default"]


class Given(NamedTuple):
    """Where an option's value comes from; ``place``: the flag, the variable, or file and key."""

    origin: Origin
    place: str = ""


def settings_of(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command that a file may set, by key."""
    return {key_of(one): one for one in command.params if isinstance(one, click.Option) and not one.is_eager}


def key_of(option: click.Option) -> str:
    """Return an option's key in the file: its long name without dashes in front."""
    return max(option.opts, key=len).lstrip("-")


def variable_of(key: str) -> str:
    """Return the environment variable of an option."""
    return "YARNCTL_" + key.replace("-", "_").upper()


def shown(value: object) -> str:
    """Return an option's value as text: a dash for none; user and password in an address are left out."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ", ".join(shown(each) for each in value) or "-"
    return "-" if value in (None, "") else _CREDENTIALS.sub("://***@", str(value))


def scheme_and_host(url: str) -> str:
    """Return an address whose path or query may be a secret without both, for example ``https://h:1/***``."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "***"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/***" if parts.netloc else "***"


def of_run(context: click.Context) -> dict[str, click.Option]:
    """Return the options of ``yarnctl run`` that a file may set, by key; ``context``: any command's."""
    root = context.find_root()
    found = root.command.get_command(root, "run") if isinstance(root.command, click.Group) else None
    return settings_of(found or root.command)


def shared_with_run(option: Callable[..., Any]) -> Callable[..., Any]:
    """Mark an option of another command that means the same as that of ``yarnctl run``."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        made = option(function)
        made.__click_params__[-1].of_run = True
        return made  # type: ignore[no-any-return]

    return add


# --- values -------------------------------------------------------------------------------------


def allowed(option: click.Option) -> str:
    """Return what an option's value may be."""
    kind = option.type
    if option.is_flag:
        return "true or false"
    if option.multiple:
        return 'a list of texts, for example ["a", "b"]'
    if isinstance(kind, click.Choice):
        return f"one of {', '.join(kind.choices)}"
    if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        number = "a whole number" if isinstance(kind, click.types.IntParamType) else "a number"
        low, high = getattr(kind, "min", None), getattr(kind, "max", None)
        return number + ("" if low is None else f" from {low}") + ("" if high is None else f" to {high}")
    return "an absolute path" if isinstance(kind, click.Path) else 'a text, for example "a"'


def checked(option: click.Option, value: Any, where: str) -> Any:
    """Return a value of a TOML type if the option accepts it; BadInput has ``where`` and what is allowed."""
    kind = option.type
    wrong = BadInput(where, f"{repr(value)[:80]} is not {allowed(option)}")
    if option.multiple:
        if not isinstance(value, list) or not value:
            raise wrong
        return tuple(_text(each, where, wrong) for each in value)
    if option.is_flag:
        is_fit = isinstance(value, bool)
    elif isinstance(kind, click.types.IntParamType):
        is_fit = isinstance(value, int) and not isinstance(value, bool)
    elif isinstance(kind, click.types.FloatParamType):
        is_fit = isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300
    else:
        text = _text(value, where, wrong)
        is_fit = text.startswith("/") or not isinstance(kind, click.Path)
    if not is_fit:
        raise wrong
    try:
        kind.convert(value, option, None)
    except click.BadParameter as error:
        raise (
            BadInput(where, error.message.rstrip(".")) if isinstance(kind, click.Path) else wrong
        ) from None
    return value


def _text(value: Any, where: str, bad_input: BadInput) -> str:
    if not isinstance(value, str):
        raise bad_input
    if not value.strip() or not value.isprintable() or len(value) > TEXT_MAX:
        raise BadInput(where, f"{repr(value)[:80]} is empty, too long or has control characters")
    if _CREDENTIALS.search(value):
        raise BadInput(where, "the address contains a user or a password", "use password_file in [cluster]")
    return value


def from_text(option: click.Option, text: str, where: str) -> Any:
    """Return the value of an environment variable, as :func:`checked` does."""
    value: Any = text.strip()
    if option.multiple:
        value = [part for part in (one.strip() for one in text.split(",")) if part]
    elif option.is_flag:
        value = _TRUTHS.get(value, value)
    elif isinstance(option.type, click.types.IntParamType | click.types.FloatParamType):
        is_whole = re.fullmatch("-?[0-9]{1,300}", value, re.ASCII)
        with contextlib.suppress(ValueError):  # Not a number: reported with what is allowed
            if value.isascii() and "_" not in value:
                value = int(value) if is_whole else float(value)
    elif isinstance(option.type, click.Path):
        value = os.path.abspath(value)  # A shell's variable may be relative to its folder
    return checked(option, value, where)


# --- the file -----------------------------------------------------------------------------------


def file_faults(
    file: Path, document: Mapping[str, Any], known: Mapping[str, click.Option]
) -> Iterator[BadInput]:
    """Yield each unknown table and key of a file, and each value that cannot be used."""
    from yarnctl.config import TABLES, ClusterAddress

    cluster_keys = ClusterAddress.__struct_fields__
    homes = {**dict.fromkeys(cluster_keys, "cluster"), **dict.fromkeys(known, TABLE)}
    for name, table in document.items():
        if name not in TABLES:
            what = "table" if isinstance(table, dict) else "key"
            yield _unknown(file, name, what, TABLES, homes)
        elif not isinstance(table, dict):
            yield BadInput(f"{file}: {name}", "is not a table", f"write [{name}] and its keys below")
        elif name == TABLE:
            yield from _run_faults(file, table, known, homes, document.get("cluster"))
        else:
            yield from _cluster_table_faults(file, table, cluster_keys, homes)


def _unknown(file: Path, place: str, what: str, keys: Iterable[str], homes: Mapping[str, str]) -> BadInput:
    """Return the fault of a word that is none of ``keys``; ``homes``: the table of each key."""
    key = place.rpartition(".")[2]
    spelled = key.lstrip("-").replace("_", "-")
    near = f"use {spelled}" if spelled in keys else nearest(key, keys, f"use one of {', '.join(keys)}")
    remedy = f"write it below [{homes[key]}]" if key in homes else near
    return BadInput(f"{file}: {place[:80]}", f"unknown {what}", remedy)


def _run_faults(
    file: Path,
    table: Mapping[str, Any],
    known: Mapping[str, click.Option],
    homes: Mapping[str, str],
    cluster: Any,
) -> Iterator[BadInput]:
    from yarnctl.config import ENVIRONMENT

    for key, value in table.items():
        if key not in known:
            yield _unknown(file, f"{TABLE}.{key}", "key", known, homes)
            continue
        where = f"{file}: {TABLE}.{key}"
        try:
            checked(known[key], value, where)
        except BadInput as wrong:
            yield wrong
        twin = ENVIRONMENT.get(variable_of(key))
        if twin is not None and isinstance(cluster, dict) and twin in cluster:
            yield BadInput(where, f"is also set as {twin} in [cluster]", "remove one of the two")


def _cluster_table_faults(
    file: Path, table: Mapping[str, Any], keys: Iterable[str], homes: Mapping[str, str]
) -> Iterator[BadInput]:
    from yarnctl.config import cluster_faults

    for key, value in table.items():
        if key not in keys:
            yield _unknown(file, f"cluster.{key}", "key", keys, homes)
            continue
        texts = value if isinstance(value, list) else [value]
        if any(isinstance(each, str) and _CREDENTIALS.search(each) for each in texts):
            problem = "the address contains a user or a password"
            yield BadInput(f"{file}: cluster.{key}", problem, "use password_file")
        yield from cluster_faults({key: value}, {key: str(file)})


def found_file(given: Path | None, environment: Mapping[str, str]) -> Path | None:
    """Return the file of settings: as given, by the variable, or the usual place if it exists."""
    if given is not None:
        return given
    if environment.get(PLACE_ENV):
        return Path(environment[PLACE_ENV])
    try:
        return PLACE if PLACE.exists() else None
    except PermissionError:
        raise BadInput(str(PLACE), "cannot be read", "make it readable, or use --config /dev/null") from None


def use_file(context: click.Context, option: click.Parameter, value: Path | None) -> Path | None:
    """Read the file of settings and the environment: the callback of ``--config``, before other options."""
    if context.resilient_parsing:
        return value
    file = found_file(value, os.environ)
    values, origins = settings_for(context, file, os.environ)
    context.default_map = {**(context.default_map or {}), **values}
    context.meta[_ORIGINS] = origins
    return file


def settings_for(
    context: click.Context, file: Path | None, environment: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Given]]:
    """Return the values that file and environment set, and their origins, by the name of the argument."""
    from yarnctl.config import read_document

    document = {} if file is None else read_document(file)
    known = of_run(context) if document else {}
    for fault in file_faults(file or PLACE, document, known):
        raise fault
    values: dict[str, Any] = {}
    origins: dict[str, Given] = {}
    for key, option in settings_of(context.command).items():
        if not getattr(option, "of_run", False):
            continue
        name, variable = str(option.name), variable_of(key)
        if environment.get(variable):
            values[name] = from_text(option, environment[variable], variable)
            origins[name] = Given("environment", variable)
        elif key in document.get(TABLE, {}):
            values[name] = checked(option, document[TABLE][key], f"{file}: {TABLE}.{key}")
            origins[name] = Given("file", f"{file}: {TABLE}.{key}")
    return values, origins


def given(context: click.Context, option: click.Option) -> Given:
    """Return where the value of an option in this command line comes from."""
    name = str(option.name)
    if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
        return Given("flag", f"--{key_of(option)}")
    found: Given = context.meta.get(_ORIGINS, {}).get(name, Given("default"))
    return found


def placed(bad_input: BadInput, context: click.Context) -> BadInput:
    """Return an error about an option with the variable or the key of the file that set it."""
    match = _OPTION.match(bad_input.where)
    option = settings_of(context.command).get(match[1]) if match else None
    if match is None or option is None:
        return bad_input
    found = given(context, option)
    if found.origin not in ("environment", "file"):
        return bad_input
    return BadInput(found.place + bad_input.where[match.end() :], bad_input.problem, bad_input.remedy)
