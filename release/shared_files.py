"""Files beside the programs that are generated from them: a manual page for each command, and completion.

The wheel, the source archive and the packages hold ``release/share`` as ``share`` below their prefix.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
from click_man.man import ManPage

from emulator.cli import PROGRAM as EMULATOR
from yarnctl.cli import PROGRAM as YARNCTL
from yarnctl.command_line import LazyGroup

SHARE = Path(__file__).parent / "share"
COMPLETIONS = {
    "bash": "bash-completion/completions/{name}",
    "fish": "fish/vendor_completions.d/{name}.fish",
    "zsh": "zsh/vendor-completions/_{name}",
}
"""The file of each shell's completion, as Debian's and Red Hat's packages of the shells search for it."""


def generated(version: str, epoch_s: int) -> Iterator[tuple[str, str]]:
    """Yield path (below ``share``) and text of each generated file."""
    date = datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d")
    for program in (YARNCTL, EMULATOR):
        name = str(program.name)
        for page in man_pages(program, click.Context(program, info_name=name)):
            page.version, page.date = version, date
            yield f"man/man1/{page.command.replace(' ', '-')}.1", str(page)
        for shell, path in COMPLETIONS.items():
            yield path.format(name=name), completion_script(program, shell)


def man_pages(command: click.Command, context: click.Context) -> Iterator[ManPage]:
    """Yield the page of a command and of all below it; click-man's own walk misses lazily loaded commands."""
    page = ManPage(context.command_path)
    page.short_help = _first_line(command)
    page.description = _roff(command.help or "")
    page.synopsis = " ".join(command.collect_usage_pieces(context))
    records = [one.get_help_record(context) for one in command.params if isinstance(one, click.Option)]
    page.options = [(names, _roff(text)) for names, text in filter(None, records)]
    below = []
    if isinstance(command, click.Group):
        below = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    page.commands = [(name, _first_line(one)) for name, one in below if one is not None]
    yield page
    for name, one in below:
        if one is not None:
            yield from man_pages(one, click.Context(one, info_name=name, parent=context))


def _first_line(command: click.Command) -> str:
    return _roff(" ".join((command.help or "").split("\n\n")[0].split()))


def _roff(text: str) -> str:
    """Return a text of ours that roff takes literally: no line of it is a request."""
    lines = text.replace("\\", r"\e").replace("\b\n", "").splitlines()
    return "\n".join(
        rf"\&{line.strip()}" if line.strip()[:1] in (".", "'") else line.strip() for line in lines
    )


def completion_script(program: LazyGroup, shell: str) -> str:
    """Return what ``PROGRAM completion SHELL`` prints."""
    from click.shell_completion import get_completion_class

    from yarnctl.command_line import completion_variable

    name = str(program.name)
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    return shell_class(program, {}, name, completion_variable(name)).source()


def write(version: str, epoch_s: int) -> None:
    """Write the generated files; files of commands that are gone are removed."""
    files = dict(generated(version, epoch_s))
    for folder in ("man", *(Path(path).parts[0] for path in COMPLETIONS.values())):
        for old in (SHARE / folder).rglob("*"):
            if old.is_file() and old.relative_to(SHARE).as_posix() not in files:
                old.unlink()
    for path, text in files.items():
        (SHARE / path).parent.mkdir(parents=True, exist_ok=True)
        (SHARE / path).write_text(text, encoding="utf-8")


def source_epoch_s() -> int:
    """Return the time that all files of a release carry: ``SOURCE_DATE_EPOCH``, else hatchling's."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "1580601600"))
