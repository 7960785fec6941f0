"""Old names of options, keys and values: read for one release, with a warning that names the new one.

Law: an old name means exactly what the new one means. It is warned of once a command, in one line on stderr;
both names together are bad input. Help and completion show the new name only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import click

from yarnctl.errors import BadInput

Function = Callable[..., Any]


def warn(old: str, new: str, where: str = "") -> None:
    """Say on stderr that a name was read and what it is called now."""
    place = f"{where}: " if where else ""
    with contextlib.suppress(OSError):
        click.echo(f"warning: {place}{old} is now {new}; the old name works for one release", err=True)


class RenamedOption(click.Option):
    """An option that takes its value from under its old name, too; see :func:`renamed_option`."""

    def __init__(self, declarations: Any, *, was: str, **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.was = was

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the value that was given under either name, and where it comes from."""
        old = self.was.removeprefix("--").replace("-", "_")
        if old not in opts:
            return super().consume_value(ctx, opts)
        if self.name in opts:
            raise BadInput(
                self.was, f"is the old name of {self.opts[0]}, and both are given", "give the new one"
            )
        if not ctx.resilient_parsing:
            warn(self.was, self.opts[0])
        return super().consume_value(ctx, {**opts, str(self.name): opts[old]})


def renamed_option(new: str, *, was: str, **attributes: Any) -> Callable[[Function], Function]:
    """Add the option ``new``, and its old name as a hidden option that only lends it its value."""

    def add(command: Function) -> Function:
        hidden = click.option(was, **attributes, hidden=True, expose_value=False)
        return click.option(new, **attributes, was=was, cls=RenamedOption)(hidden(command))

    return add


def renamed_keys(table: Mapping[str, Any], names: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return a table with its old keys (``names``: old to new) replaced; raises BadInput for both."""
    found = dict(table)
    for old, new in names.items():
        if old not in found:
            continue
        if new in found:
            raise BadInput(f"{where}: {old}", f"is the old name of {new}, and both are given", f"keep {new}")
        warn(old, new, where)
        found[new] = found.pop(old)
    return found


def renamed_value(value: Any, names: Mapping[str, str], where: str) -> Any:
    """Return the new name of a value that has an old one (``names``: old to new), else the value."""
    new = names.get(value) if isinstance(value, str) else None
    if new is None:
        return value
    warn(value, new, where)
    return new
