"""The command line that both programs share: lazy commands, one-line errors, two output formats, progress.

* ``--help`` imports click and nothing else. A command's module is imported when the command runs.
* An error that the user can correct is one line ``error: ...`` on stderr and an exit status: 0 done, 1
  negative answer, 2 bad input (or output not writable), 3 unreachable, 130 interrupted, 141 output closed by
  its reader.
* Results are written to stdout, everything else to stderr.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self, TextIO, TypeVar, cast

import click

from yarnctl.errors import BadInput, YarnctlError
from yarnctl.extras import missing_of

if TYPE_CHECKING:
    from pathlib import Path

SHELLS = ("bash", "fish", "zsh")  # The shells for which ``completion`` prints a script

INTERRUPTED = 130
PIPE_CLOSED = 141
HELP_WIDTH = 80

WORTH_SHOWING_S = 1.0  # Shorter work shows no progress bar
REDRAWN_S = 0.1

COMPLETION = ("yarnctl.command_line:completion", "Print a script that completes commands in a shell.")

Function = TypeVar("Function", bound=Callable[..., Any])
Item = TypeVar("Item")
Group = TypeVar("Group", bound=NamedTuple)

LazyCommand = tuple[str, str]  # The location of a command (``module:attribute``) and its one-line help


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command runs.

    ``extras``: those that its commands may need, in the order in which a missing package is looked up.
    """

    def __init__(
        self, *args: Any, lazy: Mapping[str, LazyCommand], extras: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy)
        self.extras = tuple(extras)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, sorted."""
        return sorted(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, importing its module now."""
        return load(self.lazy[cmd_name][0]) if cmd_name in self.lazy else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.lazy[name][1]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete a command's name from the table, importing none of them."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self.lazy[name][1]) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)


def load(target: str) -> click.Command:
    """Import a command from ``module:attribute``."""
    from importlib import import_module

    module, _, attribute = target.partition(":")
    command = getattr(import_module(module), attribute)
    if not isinstance(command, click.Command):
        raise TypeError(f"{target} is not a click command")
    for parameter in command.params:
        if isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType):
            parameter.type = _plain(parameter.type)
    return command


def _plain(kind: Any) -> Any:
    if "convert" in vars(kind):
        return kind
    strict, convert = copy.copy(kind), kind.convert

    def converted(value: Any, parameter: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and ("_" in value or not value.isascii()):
            kind.fail(f"{value[:40]!r} is not a number; use the digits 0 to 9", parameter, ctx)
        return convert(value, parameter, ctx)

    strict.convert = converted
    return strict


def program(name: str, about: str, lazy: Mapping[str, LazyCommand], extras: Sequence[str] = ()) -> LazyGroup:
    """Make a program: its lazy commands, ``--version``, and ``completion``; ``extras`` as in its group."""
    group = LazyGroup(
        name=name,
        help=about,
        lazy={**lazy, "completion": COMPLETION},
        extras=extras,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"], "terminal_width": terminal_width()},
    )
    return click.version_option(package_name="yarnctl", prog_name=name)(group)


def terminal_width() -> int:
    """Return the width of help in columns; click would import ``shutil`` for it."""
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:
        columns = HELP_WIDTH
    return max(50, min(columns, HELP_WIDTH) - 2)


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in SHELL."""
    from click.shell_completion import get_completion_class

    group = ctx.find_root().command
    name = group.name or ""
    shell_class = get_completion_class(shell)
    if shell_class is None:
        raise BadInput("SHELL", f"unknown shell {shell!r}", f"use one of {', '.join(SHELLS)}")
    click.echo(shell_class(group, {}, name, completion_variable(name)).source())


def completion_variable(name: str) -> str:
    """Return the environment variable with which a shell requests completions: ``_YARNCTL_COMPLETE``."""
    return f"_{name}_COMPLETE".replace("-", "_").upper()


def run(group: click.Group, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a program and exit with its status; ``main`` calls it."""
    # Open stdin, stdout and stderr where closed, so that no other file gets their descriptors.
    while (taken := os.open(os.devnull, os.O_RDONLY)) < 3:
        if taken == 1:
            sys.stdout = os.fdopen(1, "w", closefd=False)
    os.close(taken)
    output, watched = sys.stdout, WatchedOutput(sys.stdout)
    sys.stdout = cast(TextIO, watched)
    try:
        status = exit_status_of(group, sys.argv[1:] if arguments is None else list(arguments))
        if not watched.failed:  # else the error is already reported
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        status = PIPE_CLOSED
    except BadInput as error:  # raised by the last flush
        status = complain(str(error), error.exit_status)
    except KeyboardInterrupt:
        status = complain("interrupted", INTERRUPTED)
    finally:
        sys.stdout = output
    # Discard output that cannot be written; otherwise the interpreter reports an error at exit.
    try:
        output.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
    raise SystemExit(status)


class WatchedOutput:
    """Standard output while a program runs; tells its write errors from those of files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failed = False

    def write(self, text: str) -> int:
        """Write ``text``. Raises BadInput on any error except a closed pipe."""
        with self._reported():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush. Raises BadInput on any error except a closed pipe."""
        with self._reported():
            self._stream.flush()

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            self.failed = True
            raise BadInput("standard output", error.strerror or str(error)) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def exit_status_of(group: click.Group, arguments: list[str]) -> int:
    """Run a program, report an error in one line, and return the exit status (a command's own, None: 0)."""
    try:
        return invoke(group, arguments)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except YarnctlError as error:
        return complain(str(error), error.exit_status)
    except click.ClickException as error:
        return complain_of_usage(error)
    except ModuleNotFoundError as error:
        extras = group.extras if isinstance(group, LazyGroup) else ()
        lacking = missing_of((error.name or "").partition(".")[0], extras)
        if lacking is None:
            raise
        return complain(str(lacking), lacking.exit_status)
    except (KeyboardInterrupt, click.Abort):
        return complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        raise
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        return complain(f"{place}{error.strerror or error}", BadInput.exit_status)


def invoke(group: click.Group, arguments: list[str]) -> int:
    """Print the completions that a shell requests, else run the command."""
    name = group.name or ""
    instruction = os.environ.get(completion_variable(name))
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(group, {}, name, completion_variable(name), instruction)
    with group.make_context(name, arguments) as context:
        status = group.invoke(context)
    return status if isinstance(status, int) else 0


def complain(message: str, status: int) -> int:
    """Print one line ``error: ...`` on stderr and return ``status``."""
    with contextlib.suppress(OSError):
        click.echo(f"error: {printable(message)}", err=True)
    return status


def printable(message: str) -> str:
    """Return a message as one line, without control characters."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in " ".join(message.split()))


def complain_of_usage(error: click.ClickException) -> int:
    """Report a usage error in one line; print the help if the command line is empty."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return BadInput.exit_status
    remedy = f"; see '{context.command_path} --help'" if context is not None else ""
    return complain(error.format_message().rstrip(".") + remedy, BadInput.exit_status)


def output_option(function: Function) -> Function:
    """Add ``-o table|json`` and its alias ``--json`` to a command as the argument ``output``."""

    @functools.wraps(function)
    def with_output(*args: Any, output: str, as_json: bool, **kwargs: Any) -> Any:
        return function(*args, output="json" if as_json else output, **kwargs)

    choice = click.Choice(("table", "json"))
    add_json = click.option("--json", "as_json", is_flag=True, help="Same as -o json.")
    add_output = click.option(
        "-o", "output", type=choice, default="table", show_default=True, help="Set the output format."
    )
    return add_output(add_json(with_output))  # type: ignore[return-value]


def options_in(kind: type[Group], values: Mapping[str, Any]) -> Group:
    """Return a group of options (a NamedTuple) from a mapping of option values by name."""
    return kind._make(values[name] for name in kind._fields)


def option_group(
    kind: type[NamedTuple], name: str, options: Sequence[Callable[[Function], Function]], section: str = ""
) -> Callable[[Function], Function]:
    """Return a decorator that adds options to a command, as one argument ``name`` of the type ``kind``.

    ``section``: the heading of these options in ``yarnctl run --help``. They mean the same in each command.
    """

    def add(function: Function) -> Function:
        @functools.wraps(function)
        def with_group(*args: Any, **kwargs: Any) -> Any:
            rest = {key: value for key, value in kwargs.items() if key not in kind._fields}
            return function(*args, **rest, **{name: options_in(kind, kwargs)})

        command = cast(Function, with_group)
        for each in reversed(options):
            command = each(command)
            made = cast(Any, command).__click_params__[-1]
            made.section, made.of_run = section, bool(section)
        return command

    return add


def print_json(value: object) -> None:
    """Print a value (builtins or structs) as indented JSON with a final newline; keys keep their order."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    click.echo(text)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
    """Print a table: a title line, column headings, rows. Numbers are right-aligned, None is a dash.

    A table wider than the terminal is folded or printed as blocks; no text is cut (:mod:`yarnctl.tables`).
    """
    from yarnctl.tables import table_text

    click.echo(table_text(columns, rows, title, terminal_columns()), nl=False)


def terminal_columns() -> int | None:
    """Return the width of the terminal in columns; None if stdout is not a terminal."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


# --- progress ----------------------------------------------------------------------------------


class ProgressBar:
    """Counts steps; shows a progress bar after one second if stderr is a terminal (imports rich then only).

    ``whole`` is the number of steps, or a function that returns it when the bar appears; None: unknown.
    """

    def __init__(self, doing: str, whole: int | Callable[[], int | None] | None = None) -> None:
        self.doing = doing
        self.done = 0
        self._whole = whole
        self._bar: Any = None
        self._task: Any = None
        self._begun_s = self._drawn_s = time.monotonic()
        self._over = False
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if not sys.stderr.isatty():
            return self
        if WORTH_SHOWING_S <= 0:
            self.show()
            return self
        self._timer = threading.Timer(WORTH_SHOWING_S, self.show)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._draw()
                self._bar.stop()

    def step(self, doing: str | None = None, by: int = 1) -> None:
        """Count ``by`` finished steps; ``doing``, if given, is the bar's new text."""
        self.done += by
        self.doing = doing or self.doing
        if self._bar is not None and (doing or time.monotonic() - self._drawn_s > REDRAWN_S):
            self._draw()

    def expect(self, more: int) -> None:
        """Add ``more`` steps to the expected number."""
        self._whole = more + (self._whole if isinstance(self._whole, int) else 0)
        if self._bar is not None:
            self._draw()

    def counted(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items; each counts as a step when the next one is requested."""
        for item in items:
            yield item
            self.step()

    def show(self) -> None:
        """Show the bar now, unless the work is finished."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        if callable(self._whole):
            self._whole = self._whole()
        bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description:<22}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        with self._lock:
            if self._over:
                return
            self._task = bar.add_task(self.doing, total=None)
            bar.tasks[0].start_time = self._begun_s  # counts the second before the bar appeared
            bar.start()
            self._bar = bar
            self._draw()

    def _draw(self) -> None:
        self._drawn_s = time.monotonic()
        whole = None if callable(self._whole) else self._whole
        self._bar.update(self._task, refresh=True, completed=self.done, total=whole, description=self.doing)


def lines_in(*paths: Path) -> int | None:
    """Return the total number of lines; None if a path is not a regular file, is gzipped or unreadable."""
    if not all(path.is_file() and path.suffix != ".gz" for path in paths):
        return None  # counting would consume a pipe
    try:
        return sum(map(_lines_in, paths))
    except OSError:
        return None


def _lines_in(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
